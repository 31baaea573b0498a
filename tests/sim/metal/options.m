// options.m: the classes that Metal declares as concrete. In Objective-C without Apple's runtime
// instance variables have to be in the declaration of the class, which is Apple's. So each class
// has a subclass with the variables, which alloc returns.

#include "sim.h"

#define CLUSTER(declared, concrete)                                                                \
  +(id)allocWithZone : (NSZone *)zone {                                                            \
    return self == [declared class] ? [concrete allocWithZone:zone] : [super allocWithZone:zone];  \
  }
#define COUNTED                                                                                    \
  -(id)init {                                                                                      \
    self = [super init];                                                                           \
    simmetal_count(GAUGE_OBJECTS, 1);                                                              \
    return self;                                                                                   \
  }

@interface SimCompileOptions : MTLCompileOptions {
  BOOL fast;
  MTLLanguageVersion version;
  NSDictionary *macros;
}
@end

@implementation MTLCompileOptions
@dynamic preprocessorMacros, fastMathEnabled, languageVersion;
CLUSTER(MTLCompileOptions, SimCompileOptions)
- (id)copyWithZone:(NSZone *)zone {
  MTLCompileOptions *o = [[MTLCompileOptions allocWithZone:zone] init];
  o.preprocessorMacros = self.preprocessorMacros;
  o.fastMathEnabled = self.fastMathEnabled;
  o.languageVersion = self.languageVersion;
  return o;
}
@end

@implementation SimCompileOptions
- (id)init {
  self = [super init];
  simmetal_count(GAUGE_OBJECTS, 1);
  fast = YES; // Apple's default
  version = MTLLanguageVersion3_2; // the default is the newest version of the system
  return self;
}
- (void)dealloc {
  [macros release];
  simmetal_count(GAUGE_OBJECTS, -1);
  [super dealloc];
}
- (NSDictionary *)preprocessorMacros {
  return macros;
}
- (void)setPreprocessorMacros:(NSDictionary *)m {
  NSDictionary *copy = [m copy];
  [macros release];
  macros = copy;
}
- (BOOL)fastMathEnabled {
  return fast;
}
- (void)setFastMathEnabled:(BOOL)on {
  fast = on;
}
- (MTLLanguageVersion)languageVersion {
  return version;
}
- (void)setLanguageVersion:(MTLLanguageVersion)v {
  version = v;
}
@end

@interface SimPipelineDescriptor : MTLComputePipelineDescriptor {
  id<MTLFunction> function;
  NSArray *archives;
}
@end

@implementation MTLComputePipelineDescriptor
@dynamic computeFunction, binaryArchives;
CLUSTER(MTLComputePipelineDescriptor, SimPipelineDescriptor)
- (id)copyWithZone:(NSZone *)zone {
  MTLComputePipelineDescriptor *d = [[MTLComputePipelineDescriptor allocWithZone:zone] init];
  d.computeFunction = self.computeFunction;
  d.binaryArchives = self.binaryArchives;
  return d;
}
@end

@implementation SimPipelineDescriptor
COUNTED
- (void)dealloc {
  [(id)function release];
  [archives release];
  simmetal_count(GAUGE_OBJECTS, -1);
  [super dealloc];
}
- (id<MTLFunction>)computeFunction {
  return function;
}
- (void)setComputeFunction:(id<MTLFunction>)f {
  [(id)f retain];
  [(id)function release];
  function = f;
}
- (NSArray *)binaryArchives {
  return archives;
}
- (void)setBinaryArchives:(NSArray *)a {
  NSArray *copy = [a copy];
  [archives release];
  archives = copy;
}
@end

@interface SimArchiveDescriptor : MTLBinaryArchiveDescriptor {
  NSURL *place;
}
@end

@implementation MTLBinaryArchiveDescriptor
@dynamic url;
CLUSTER(MTLBinaryArchiveDescriptor, SimArchiveDescriptor)
- (id)copyWithZone:(NSZone *)zone {
  MTLBinaryArchiveDescriptor *d = [[MTLBinaryArchiveDescriptor allocWithZone:zone] init];
  d.url = self.url;
  return d;
}
@end

@implementation SimArchiveDescriptor
COUNTED
- (void)dealloc {
  [place release];
  simmetal_count(GAUGE_OBJECTS, -1);
  [super dealloc];
}
- (NSURL *)url {
  return place;
}
- (void)setUrl:(NSURL *)u {
  NSURL *copy = [u copy];
  [place release];
  place = copy;
}
@end
