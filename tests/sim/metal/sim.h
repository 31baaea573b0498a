// sim.h: the simulated Metal framework, for the tests of csrc/metal. It implements the declarations
// in include/, with the rules that Metal's validation checks: breaking one raises an NSException
// named MTLAssertion. Kernels are compiled and run by compile.h.
//
// Ownership is counted: every object but the devices is in GAUGE_OBJECTS until it is deallocated. A
// command buffer retains the objects that its commands use until it is done, even if it is released
// meanwhile.

#ifndef CONCORD_SIMMETAL_SIM_H
#define CONCORD_SIMMETAL_SIM_H

#import <Metal/Metal.h>
#import <MetalPerformanceShaders/MetalPerformanceShaders.h>

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "compile.h"
#include "faults.h"

// CHECK raises the error of Metal's validation layer unless a condition holds.
#define CHECK(condition, ...)                                                                      \
  do {                                                                                             \
    if (!(condition))                                                                              \
      [NSException raise:@"MTLAssertion" format:__VA_ARGS__];                                      \
  } while (0)

// SimObject counts live objects.
@interface SimObject : NSObject
@end

@class SimDevice;

enum { SIM_DEVICES = 8 };
SimDevice *sim_device(int ordinal);
NSError *sim_error(NSString *domain, NSInteger code, NSString *text);

@interface SimDevice : NSObject <MTLDevice> {
@public
  int ordinal;
  BOOL unified;
  pthread_mutex_t lock;
  NSUInteger used; // bytes of its buffers
}
- (id)initWithOrdinal:(int)n;
@end

// A buffer is a memory mapping followed by a guard page. Between its end and the guard is a
// pattern, which a kernel that writes too far overwrites. Managed buffers have a second mapping for
// the host.
@interface SimBuffer : SimObject <MTLBuffer> {
@public
  SimDevice *owner;
  NSUInteger bytes, mapped;
  MTLResourceOptions options;
  unsigned char *device, *host; // host: of managed buffers
}
- (id)initOn:(SimDevice *)d length:(NSUInteger)n options:(MTLResourceOptions)o;
- (BOOL)spoiled;
@end

@interface SimLibrary : SimObject <MTLLibrary> {
@public
  struct program *program; // reference-counted in library.m
}
- (id)initWithProgram:(struct program *)p;
@end

@interface SimFunction : SimObject <MTLFunction> {
@public
  SimLibrary *library;
  const simmetal_kernel *kernel;
}
- (id)initIn:(SimLibrary *)l kernel:(const simmetal_kernel *)k;
@end

@interface SimPipeline : SimObject <MTLComputePipelineState> {
@public
  SimFunction *function;
}
- (id)initWithFunction:(SimFunction *)f;
@end

@interface SimArchive : SimObject <MTLBinaryArchive> {
@public
  NSMutableSet *entries; // keys of pipelines
}
- (id)initWithEntries:(NSSet *)e;
- (BOOL)has:(SimFunction *)f;
@end

id<MTLLibrary> sim_library(NSString *source, MTLCompileOptions *options, NSError **error);
id<MTLComputePipelineState> sim_pipeline(MTLComputePipelineDescriptor *d, MTLPipelineOption options,
                                         MTLComputePipelineReflection **reflection,
                                         NSError **error);
MTLComputePipelineReflection *sim_reflection(SimFunction *f, MTLPipelineOption options);
id<MTLBinaryArchive> sim_archive(MTLBinaryArchiveDescriptor *d, NSError **error);

@interface SimEvent : SimObject <MTLSharedEvent> {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint64_t value;
}
- (void)waitFor:(uint64_t)v;
@end

// The bindings of a dispatch.
struct bindings {
  SimBuffer *buffer[SIMMETAL_BUFFERS];
  NSUInteger offset[SIMMETAL_BUFFERS];
  void *bytes[SIMMETAL_BUFFERS];
  size_t length[SIMMETAL_BUFFERS], threadgroup[SIMMETAL_BUFFERS];
};

enum command_kind { DISPATCH, COPY, FILL, SYNCHRONIZE, WAIT, SIGNAL, MULTIPLY };

// Commands are kept in the order in which they were encoded. Objects are retained.
struct command {
  enum command_kind kind;
  id what, from, to, result;
  uint64_t source, target, bytes; // value of events: target
  unsigned char value;
  MTLSize groups, group;
  struct bindings *bindings;
  struct command *next;
};

// A work queue is shared by a command queue and its thread, of which either may end first.
struct work {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int refs;
  BOOL thread, closing;
  NSUInteger uncompleted, most;
  NSMutableArray *committed;
};

@interface SimQueue : SimObject <MTLCommandQueue> {
@public
  SimDevice *owner;
  struct work *work;
}
- (id)initOn:(SimDevice *)d most:(NSUInteger)most;
@end

@interface SimCommandBuffer : SimObject <MTLCommandBuffer> {
@public
  SimQueue *queue;
  struct work *work;
  struct command *first, **last;
  NSMutableArray *handlers;
  id encoder; // the open one, not retained
  MTLCommandBufferStatus state;
  NSError *failure;
  double ended;
}
- (id)initOn:(SimQueue *)q;
- (struct command *)add:(enum command_kind)kind;
- (void)closed; // the open encoder has ended
- (void)run;    // on the queue's thread
@end

@interface SimEncoder : SimObject {
@public
  SimCommandBuffer *buffer;
  BOOL open;
}
- (id)initOn:(SimCommandBuffer *)b;
- (void)endEncoding;
@end
@interface SimBlit : SimEncoder <MTLBlitCommandEncoder>
@end
@interface SimCompute : SimEncoder <MTLComputeCommandEncoder> {
  SimPipeline *pipeline;
  struct bindings bound;
}
@end

// sim_execute executes one command. It returns nil, or the reason for a failure.
NSError *sim_execute(struct command *c);
void sim_command_free(struct command *c);
NSError *sim_multiply(struct command *c);

#endif
