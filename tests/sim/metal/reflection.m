// reflection.m: the reflection of a pipeline: the arguments of its kernel, and the members of
// structs.

#include "sim.h"

@interface SimStructMember : MTLStructMember {
@public
  NSUInteger at;
}
@end

@implementation MTLStructMember
@dynamic offset;
@end

@implementation SimStructMember
- (id)init {
  self = [super init];
  simmetal_count(GAUGE_OBJECTS, 1);
  return self;
}
- (void)dealloc {
  simmetal_count(GAUGE_OBJECTS, -1);
  [super dealloc];
}
- (NSUInteger)offset {
  return at;
}
@end

@interface SimStructType : MTLStructType {
  NSMutableArray *list;
}
- (id)initWithParam:(const simmetal_param *)param;
@end

@implementation MTLStructType
@dynamic members;
@end

@implementation SimStructType
- (id)initWithParam:(const simmetal_param *)param {
  self = [super init];
  simmetal_count(GAUGE_OBJECTS, 1);
  list = [[NSMutableArray alloc] init];
  for (uint32_t i = 0; i < param->member_count; i++) {
    SimStructMember *m = [[SimStructMember alloc] init];
    m->at = param->members[i].offset;
    [list addObject:m];
    [m release];
  }
  return self;
}
- (void)dealloc {
  [list release];
  simmetal_count(GAUGE_OBJECTS, -1);
  [super dealloc];
}
- (NSArray<MTLStructMember *> *)members {
  return list;
}
@end

@interface SimBinding : SimObject <MTLBufferBinding> {
@public
  SimFunction *function;
  const simmetal_param *param;
  BOOL types; // whether types of buffers were requested
}
@end

@implementation SimBinding
- (void)dealloc {
  [function release];
  [super dealloc];
}
- (MTLBindingType)type {
  return param->kind == SIMMETAL_THREADGROUP ? MTLBindingTypeThreadgroupMemory
                                             : MTLBindingTypeBuffer;
}
- (NSUInteger)index {
  return param->index;
}
- (NSUInteger)bufferDataSize {
  return param->bytes;
}
- (MTLStructType *)bufferStructType {
  if (!types || param->member_count == 0)
    return nil;
  return [[[SimStructType alloc] initWithParam:param] autorelease];
}
@end

@interface SimReflection : MTLComputePipelineReflection {
  NSMutableArray *list;
}
- (id)initWithFunction:(SimFunction *)f types:(BOOL)types;
@end

@implementation MTLComputePipelineReflection
@dynamic bindings;
@end

@implementation SimReflection
- (id)initWithFunction:(SimFunction *)f types:(BOOL)types {
  self = [super init];
  simmetal_count(GAUGE_OBJECTS, 1);
  list = [[NSMutableArray alloc] init];
  for (uint32_t i = 0; i < f->kernel->param_count; i++) {
    SimBinding *b = [[SimBinding alloc] init];
    b->function = [f retain];
    b->param = &f->kernel->params[i];
    b->types = types;
    [list addObject:b];
    [b release];
  }
  return self;
}
- (void)dealloc {
  [list release];
  simmetal_count(GAUGE_OBJECTS, -1);
  [super dealloc];
}
- (NSArray<id<MTLBinding>> *)bindings {
  return list;
}
@end

MTLComputePipelineReflection *sim_reflection(SimFunction *f, MTLPipelineOption options) {
  if ((options & MTLPipelineOptionArgumentInfo) == 0)
    return nil;
  BOOL types = (options & MTLPipelineOptionBufferTypeInfo) != 0;
  return [[[SimReflection alloc] initWithFunction:f types:types] autorelease];
}
