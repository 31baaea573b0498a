// selftest.m uses the simulated Metal like a program, and checks that it follows Metal's rules:
// order, storage modes, handlers, errors, ownership.

#import <Metal/Metal.h>
#import <MetalPerformanceShaders/MetalPerformanceShaders.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern int concord_sim_control(const char *command);
extern long concord_sim_count(const char *what);

#define MUST(condition)                                                                            \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                      \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

// REFUSED checks that validation raises an exception for a statement.
#define REFUSED(statement)                                                                         \
  do {                                                                                             \
    BOOL raised = NO;                                                                              \
    @try {                                                                                         \
      statement;                                                                                   \
    } @catch (NSException * e) {                                                                   \
      raised = [[e name] isEqualToString:@"MTLAssertion"];                                         \
    }                                                                                              \
    if (!raised) {                                                                                 \
      fprintf(stderr, "line %d: accepted: %s\n", __LINE__, #statement);                            \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

static NSString *const text =
    @"#include <metal_stdlib>\n"
     "using namespace metal;\n"
     "kernel void saxpy(constant float &a [[buffer(0)]], device const float *x [[buffer(1)]],\n"
     "                  device float *y [[buffer(2)]], uint i [[thread_position_in_grid]]) {\n"
     "  y[i] = a * x[i] + y[i];\n"
     "}\n"
     "kernel void sum(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],\n"
     "                threadgroup float *part [[threadgroup(0)]],\n"
     "                uint l [[thread_position_in_threadgroup]],\n"
     "                uint n [[threads_per_threadgroup]],\n"
     "                uint g [[threadgroup_position_in_grid]]) {\n"
     "  part[l] = x[g * n + l];\n"
     "  for (uint s = n / 2; s > 0; s /= 2) {\n"
     "    threadgroup_barrier(mem_flags::mem_threadgroup);\n"
     "    if (l < s) part[l] += part[l + s];\n"
     "  }\n"
     "  if (l == 0) out[g] = part[0];\n"
     "}\n"
     "struct place { char pad; ushort page[3], unused; uint4 at; };\n"
     "kernel void beyond(device float *x [[buffer(0)]], constant place &p [[buffer(1)]]) {\n"
     "  x[p.at.w] = 1;\n"
     "}\n";

enum { N = 1024 };

// finish commits a command buffer and waits for it. Handlers are called in order; this one is the
// last.
static void finish(id<MTLCommandBuffer> b) {
  __block volatile int done = 0;
  [b addCompletedHandler:^(id<MTLCommandBuffer> ended) {
    done = [ended status] >= MTLCommandBufferStatusCompleted;
  }];
  [b commit];
  while (!done)
    usleep(100);
}

static id<MTLComputePipelineState> pipeline(id<MTLDevice> d, id<MTLLibrary> l, NSString *name) {
  id<MTLFunction> f = [l newFunctionWithName:name];
  MUST(f != nil);
  MTLComputePipelineDescriptor *p = [[MTLComputePipelineDescriptor alloc] init];
  p.computeFunction = f;
  NSError *why = nil;
  MTLComputePipelineReflection *told = nil;
  id<MTLComputePipelineState> s =
      [d newComputePipelineStateWithDescriptor:p
                                       options:MTLPipelineOptionArgumentInfo | MTLPipelineOptionBufferTypeInfo
                                    reflection:&told
                                         error:&why];
  MUST(s != nil);
  if ([name isEqualToString:@"saxpy"]) {
    MUST([[told bindings] count] == 3);
    id<MTLBufferBinding> a = (id<MTLBufferBinding>)[[told bindings] objectAtIndex:0];
    MUST([a index] == 0 && [a type] == MTLBindingTypeBuffer && [a bufferDataSize] == 4);
    MUST([a bufferStructType] == nil);
  }
  if ([name isEqualToString:@"beyond"]) {
    id<MTLBufferBinding> place = (id<MTLBufferBinding>)[[told bindings] objectAtIndex:1];
    NSArray *members = [[place bufferStructType] members];
    MUST([members count] == 4 && [place bufferDataSize] == 32);
    MUST([[members objectAtIndex:0] offset] == 0 && [[members objectAtIndex:1] offset] == 2);
    MUST([[members objectAtIndex:2] offset] == 8 && [[members objectAtIndex:3] offset] == 16);
  }
  [(id)f release];
  [p release];
  return s;
}

static id<MTLLibrary> library(id<MTLDevice> d) {
  MTLCompileOptions *o = [[MTLCompileOptions alloc] init];
  MUST(o.fastMathEnabled);
  o.fastMathEnabled = NO;
  NSError *why = nil;
  id<MTLLibrary> l = [d newLibraryWithSource:text options:o error:&why];
  if (l == nil)
    fprintf(stderr, "%s\n", [[why localizedDescription] UTF8String]);
  MUST(l != nil && [[l functionNames] count] == 3);
  MUST([d newLibraryWithSource:@"kernel void f( {" options:o error:&why] == nil);
  MUST([why code] == MTLLibraryErrorCompileFailure && [[why localizedDescription] length] > 10);
  [o release];
  return l;
}

static void launches(id<MTLDevice> d, id<MTLLibrary> l) {
  id<MTLComputePipelineState> saxpy = pipeline(d, l, @"saxpy"), sum = pipeline(d, l, @"sum");
  id<MTLCommandQueue> q = [d newCommandQueueWithMaxCommandBufferCount:8];
  id<MTLBuffer> x = [d newBufferWithLength:4 * N options:MTLResourceStorageModeShared];
  id<MTLBuffer> y = [d newBufferWithLength:4 * N options:MTLResourceStorageModePrivate];
  id<MTLBuffer> back = [d newBufferWithLength:4 * N options:MTLResourceStorageModeShared];
  id<MTLBuffer> out = [d newBufferWithLength:4 * 4 options:MTLResourceStorageModeShared];
  MUST([y contents] == NULL);
  for (int i = 0; i < N; i++)
    ((float *)[x contents])[i] = (float)i;
  id<MTLSharedEvent> event = [d newSharedEvent];
  __block volatile int handled = 0;
  float a = 2;

  id<MTLCommandBuffer> b = [q commandBuffer];
  [b encodeWaitForEvent:event value:1]; // from the host, below
  id<MTLBlitCommandEncoder> blit = [b blitCommandEncoder];
  REFUSED([b computeCommandEncoder]);
  REFUSED([b commit]);
  REFUSED([blit fillBuffer:y range:NSMakeRange(2, 4) value:0]);
  REFUSED([blit copyFromBuffer:x sourceOffset:0 toBuffer:out destinationOffset:0 size:4 * N]);
  [blit copyFromBuffer:x sourceOffset:0 toBuffer:y destinationOffset:0 size:4 * N];
  [blit endEncoding];
  REFUSED([blit endEncoding]);
  id<MTLComputeCommandEncoder> e = [b computeCommandEncoder];
  [e setComputePipelineState:saxpy];
  REFUSED([e dispatchThreadgroups:MTLSizeMake(4, 1, 1) threadsPerThreadgroup:MTLSizeMake(256, 1, 1)]);
  [e setBytes:&a length:sizeof a atIndex:0];
  [e setBuffer:x offset:0 atIndex:1];
  [e setBuffer:y offset:0 atIndex:2];
  REFUSED([e dispatchThreadgroups:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(2048, 1, 1)]);
  REFUSED([e setThreadgroupMemoryLength:100 atIndex:0]);
  [e dispatchThreadgroups:MTLSizeMake(4, 1, 1) threadsPerThreadgroup:MTLSizeMake(256, 1, 1)];
  a = 100; // the dispatch has a copy of the old value
  [e setComputePipelineState:sum];
  [e setBuffer:y offset:0 atIndex:0];
  [e setBuffer:out offset:0 atIndex:1];
  [e setThreadgroupMemoryLength:4 * 256 atIndex:0];
  [e dispatchThreadgroups:MTLSizeMake(4, 1, 1) threadsPerThreadgroup:MTLSizeMake(256, 1, 1)];
  [e endEncoding];
  blit = [b blitCommandEncoder];
  [blit copyFromBuffer:y sourceOffset:0 toBuffer:back destinationOffset:0 size:4 * N];
  [blit endEncoding];
  [b encodeSignalEvent:event value:2];
  [b addCompletedHandler:^(id<MTLCommandBuffer> done) {
    handled = [done status] == MTLCommandBufferStatusCompleted ? 1 : -1;
  }];
  [b commit];
  REFUSED([b commit]);
  [(id)y release]; // the command buffer retains it
  MUST([event signaledValue] == 0 && [b status] == MTLCommandBufferStatusCommitted);
  event.signaledValue = 1;
  while (handled == 0)
    usleep(100);
  MUST(handled == 1 && [b error] == nil && [event signaledValue] == 2);
  MUST([b GPUEndTime] > 0);
  for (int i = 0; i < N; i++)
    MUST(((float *)[back contents])[i] == 3 * (float)i);
  for (int g = 0; g < 4; g++)
    MUST(((float *)[out contents])[g] == 3.f * (256 * (256 * g) + 255 * 128));

  [(id)x release];
  [(id)back release];
  [(id)out release];
  [(id)event release];
  [(id)q release];
  [(id)saxpy release];
  [(id)sum release];
}

// A kernel that writes out of bounds makes its command buffer fail, which then signals no event.
static void failures(id<MTLDevice> d, id<MTLLibrary> l) {
  id<MTLComputePipelineState> beyond = pipeline(d, l, @"beyond");
  id<MTLCommandQueue> q = [d newCommandQueueWithMaxCommandBufferCount:8];
  id<MTLBuffer> x = [d newBufferWithLength:4096 options:MTLResourceStorageModeShared];
  id<MTLSharedEvent> event = [d newSharedEvent];
  struct {
    uint32_t pad[7], at;
  } place = {.at = 1024 + 64};
  id<MTLCommandBuffer> b = [q commandBuffer];
  id<MTLComputeCommandEncoder> e = [b computeCommandEncoder];
  [e setComputePipelineState:beyond];
  [e setBuffer:x offset:0 atIndex:0];
  [e setBytes:&place length:sizeof place atIndex:1];
  [e dispatchThreadgroups:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(1, 1, 1)];
  [e endEncoding];
  [b encodeSignalEvent:event value:1];
  finish(b);
  MUST([b status] == MTLCommandBufferStatusError);
  MUST([[b error] code] == MTLCommandBufferErrorPageFault && [event signaledValue] == 0);
  b = [q commandBuffer]; // the next one runs
  [b encodeSignalEvent:event value:7];
  finish(b);
  MUST([event signaledValue] == 7);
  [(id)event release];
  [(id)x release];
  [(id)q release];
  [(id)beyond release];
}

// The two sides of a managed buffer differ until they are synchronized.
static void managed(id<MTLDevice> d) {
  id<MTLDevice> unified = MTLCreateSystemDefaultDevice();
  REFUSED([unified newBufferWithLength:64 options:MTLResourceStorageModeManaged]);
  [(id)unified release];
  id<MTLBuffer> m = [d newBufferWithLength:64 options:MTLResourceStorageModeManaged];
  id<MTLBuffer> s = [d newBufferWithLength:64 options:MTLResourceStorageModeShared];
  id<MTLCommandQueue> q = [d newCommandQueueWithMaxCommandBufferCount:8];
  memset([m contents], 1, 64);
  [m didModifyRange:NSMakeRange(0, 32)];
  id<MTLCommandBuffer> b = [q commandBuffer];
  id<MTLBlitCommandEncoder> blit = [b blitCommandEncoder];
  [blit copyFromBuffer:m sourceOffset:0 toBuffer:s destinationOffset:0 size:64];
  [blit fillBuffer:m range:NSMakeRange(0, 64) value:9];
  [blit endEncoding];
  finish(b);
  MUST(((char *)[s contents])[31] == 1 && ((char *)[s contents])[32] != 1);
  MUST(((char *)[m contents])[0] == 1);
  b = [q commandBuffer];
  blit = [b blitCommandEncoder];
  [blit synchronizeResource:m];
  [blit endEncoding];
  finish(b);
  MUST(((char *)[m contents])[0] == 9);
  [(id)m release];
  [(id)s release];
  [(id)q release];
}

static void faults(id<MTLDevice> d) {
  MUST(concord_sim_control("alloc:2") == 0);
  id<MTLBuffer> first = [d newBufferWithLength:64 options:MTLResourceStorageModeShared];
  MUST(first != nil && [d newBufferWithLength:64 options:MTLResourceStorageModeShared] == nil);
  MUST(concord_sim_control("sync:1=8,event:1") == 0);
  MUST([d newSharedEvent] == nil);
  id<MTLCommandQueue> q = [d newCommandQueueWithMaxCommandBufferCount:8];
  id<MTLCommandBuffer> b = [q commandBuffer];
  finish(b);
  MUST([[b error] code] == MTLCommandBufferErrorOutOfMemory);
  MUST(concord_sim_control("lost:1") == 0);
  b = [q commandBuffer];
  MUST(b == nil);
  MUST(concord_sim_control("memory:1") == 0);
  MUST([d newBufferWithLength:2 << 20 options:MTLResourceStorageModeShared] == nil);
  MUST(concord_sim_control("") == 0);
  [(id)first release];
  [(id)q release];
}

static void product(id<MTLDevice> d) {
  id<MTLCommandQueue> q = [d newCommandQueueWithMaxCommandBufferCount:8];
  id<MTLBuffer> m = [d newBufferWithLength:64 options:MTLResourceStorageModeShared];
  float *v = [m contents];
  memcpy(v, (float[]){1, 2, 3, 4, 5, 6, 7, 8}, 32);
  MPSMatrixDescriptor *two = [MPSMatrixDescriptor matrixDescriptorWithRows:2 columns:2 rowBytes:8 dataType:MPSDataTypeFloat32];
  MPSMatrix *a = [[MPSMatrix alloc] initWithBuffer:m offset:0 descriptor:two];
  MPSMatrix *b = [[MPSMatrix alloc] initWithBuffer:m offset:16 descriptor:two];
  MPSMatrix *c = [[MPSMatrix alloc] initWithBuffer:m offset:32 descriptor:two];
  MPSMatrixMultiplication *op = [[MPSMatrixMultiplication alloc] initWithDevice:d
                                                                  transposeLeft:YES
                                                                 transposeRight:NO
                                                                     resultRows:2
                                                                  resultColumns:2
                                                                interiorColumns:2
                                                                          alpha:2
                                                                           beta:0];
  id<MTLCommandBuffer> cb = [q commandBuffer];
  [op encodeToCommandBuffer:cb leftMatrix:a rightMatrix:b resultMatrix:c];
  finish(cb);
  MUST(v[8] == 2 * (1 * 5 + 3 * 7) && v[9] == 2 * (1 * 6 + 3 * 8) && v[11] == 2 * (2 * 6 + 4 * 8));
  [a release];
  [b release];
  [c release];
  [op release];
  [(id)m release];
  [(id)q release];
}

int main(void) {
  MUST(concord_sim_control("nonsense") != 0);
  @autoreleasepool {
    NSArray *all = MTLCopyAllDevices();
    MUST([all count] == 2);
    for (id<MTLDevice> d in all) {
      MUST([d supportsFamily:MTLGPUFamilyCommon1] && [[d name] length] > 0);
      id<MTLLibrary> l = library(d);
      launches(d, l);
      failures(d, l);
      faults(d);
      product(d);
      [(id)l release];
    }
    managed([all objectAtIndex:1]);
    [all release];
  }
  for (int i = 0; i < 1000 && concord_sim_count("threads") > 0; i++)
    usleep(1000);
  const char *names[] = {"objects", "allocations", "bytes", "streams", "threads", "events", "modules", "commands"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (concord_sim_count(names[i]) != 0) {
      fprintf(stderr, "%ld %s are left\n", concord_sim_count(names[i]), names[i]);
      return 1;
    }
  // The refused statements above left some encoders ended; no other rule was violated silently.
  printf("violations %ld\nok\n", concord_sim_count("violations"));
  return 0;
}
