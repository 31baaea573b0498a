// encoder.m: encoding commands into a command buffer, and running them.

#include "sim.h"

@implementation SimEncoder
- (id)initOn:(SimCommandBuffer *)b {
  self = [super init];
  buffer = [b retain];
  open = YES;
  return self;
}
- (void)dealloc {
  if (open) {
    fprintf(stderr, "simulated Metal: an encoder is released and has not ended\n");
    simmetal_count(GAUGE_VIOLATIONS, 1);
    [buffer closed];
  }
  [buffer release];
  [super dealloc];
}
- (void)endEncoding {
  CHECK(open, @"endEncoding twice");
  open = NO;
  [buffer closed];
}
@end

static void inside(SimBuffer *b, uint64_t offset, uint64_t bytes, NSString *what) {
  CHECK(b != nil, @"%@: no buffer", what);
  CHECK(offset <= b->bytes && bytes <= b->bytes - offset, @"%@: beyond the end of the buffer", what);
  CHECK(offset % 4 == 0 && bytes % 4 == 0, @"%@: offset and size are multiples of 4 on macOS", what);
  CHECK(bytes > 0, @"%@: of 0 bytes", what);
}

@implementation SimBlit
- (void)copyFromBuffer:(id<MTLBuffer>)from
          sourceOffset:(NSUInteger)source
              toBuffer:(id<MTLBuffer>)to
     destinationOffset:(NSUInteger)target
                  size:(NSUInteger)bytes {
  CHECK(open, @"a copy after endEncoding");
  inside((SimBuffer *)from, source, bytes, @"copyFromBuffer");
  inside((SimBuffer *)to, target, bytes, @"toBuffer");
  CHECK(from != to || source + bytes <= target || target + bytes <= source,
        @"a copy that overlaps itself");
  struct command *c = [buffer add:COPY];
  c->from = [(id)from retain];
  c->to = [(id)to retain];
  c->source = source;
  c->target = target;
  c->bytes = bytes;
}
- (void)fillBuffer:(id<MTLBuffer>)to range:(NSRange)range value:(uint8_t)value {
  CHECK(open, @"a fill after endEncoding");
  inside((SimBuffer *)to, range.location, range.length, @"fillBuffer");
  struct command *c = [buffer add:FILL];
  c->to = [(id)to retain];
  c->target = range.location;
  c->bytes = range.length;
  c->value = value;
}
- (void)synchronizeResource:(id<MTLResource>)resource {
  CHECK(open, @"synchronizeResource: after endEncoding");
  CHECK(((SimBuffer *)resource)->host != NULL, @"synchronizeResource: of a buffer that is not managed");
  struct command *c = [buffer add:SYNCHRONIZE];
  c->from = [(id)resource retain];
}
@end

static void bindings_clear(struct bindings *b) {
  for (int i = 0; i < SIMMETAL_BUFFERS; i++) {
    [b->buffer[i] release];
    free(b->bytes[i]);
  }
  memset(b, 0, sizeof *b);
}

// A dispatch uses the bindings of the time at which it is encoded, hence a copy.
static struct bindings *bindings_copy(const struct bindings *from) {
  struct bindings *b = malloc(sizeof *b);
  *b = *from;
  for (int i = 0; i < SIMMETAL_BUFFERS; i++) {
    [b->buffer[i] retain];
    if (b->bytes[i] != NULL) {
      b->bytes[i] = malloc(b->length[i]);
      memcpy(b->bytes[i], from->bytes[i], b->length[i]);
    }
  }
  return b;
}

@implementation SimCompute
- (void)dealloc {
  [pipeline release];
  bindings_clear(&bound);
  [super dealloc];
}
- (void)place:(NSUInteger)index {
  CHECK(open, @"an argument after endEncoding");
  CHECK(index < SIMMETAL_BUFFERS, @"an argument at index %lu", (unsigned long)index);
  [bound.buffer[index] release];
  free(bound.bytes[index]);
  bound.buffer[index] = nil;
  bound.bytes[index] = NULL;
}
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state {
  CHECK(open && state != nil, @"setComputePipelineState");
  [(id)state retain];
  [pipeline release];
  pipeline = (SimPipeline *)state;
}
- (void)setBytes:(const void *)bytes length:(NSUInteger)length atIndex:(NSUInteger)index {
  CHECK(length > 0 && length <= 4096, @"setBytes: of %lu bytes", (unsigned long)length);
  [self place:index];
  bound.bytes[index] = malloc(length);
  bound.length[index] = length;
  memcpy(bound.bytes[index], bytes, length);
}
- (void)setBuffer:(id<MTLBuffer>)b offset:(NSUInteger)offset atIndex:(NSUInteger)index {
  CHECK(b == nil || offset < [b length], @"setBuffer: offset %lu is beyond the end",
        (unsigned long)offset);
  [self place:index];
  bound.buffer[index] = [(SimBuffer *)b retain];
  bound.offset[index] = offset;
}
- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index {
  CHECK(open && index < SIMMETAL_BUFFERS, @"threadgroup memory at index %lu", (unsigned long)index);
  CHECK(length % 16 == 0, @"threadgroup memory of %lu bytes, no multiple of 16",
        (unsigned long)length);
  bound.threadgroup[index] = length;
}

// checkArguments raises the errors of Metal's validation for a dispatch.
- (void)checkArguments {
  const simmetal_kernel *k = pipeline->function->kernel;
  NSUInteger local = k->static_bytes;
  for (int i = 0; i < SIMMETAL_BUFFERS; i++)
    local += bound.threadgroup[i];
  CHECK(local <= SIMMETAL_MEMORY, @"%lu bytes of threadgroup memory", (unsigned long)local);
  for (uint32_t i = 0; i < k->param_count; i++) {
    const simmetal_param *p = &k->params[i];
    if (p->kind == SIMMETAL_THREADGROUP) {
      CHECK(bound.threadgroup[p->index] > 0, @"%s: no threadgroup memory for %s", k->name, p->name);
      continue;
    }
    SimBuffer *b = bound.buffer[p->index];
    // A pointer may be nil. A reference may not, and the buffer has to contain its whole target.
    CHECK(!p->reference || b != nil || bound.bytes[p->index] != NULL, @"%s: nothing bound for %s",
          k->name, p->name);
    size_t have = b != nil ? b->bytes - bound.offset[p->index] : bound.length[p->index];
    CHECK(!p->reference || have >= p->bytes, @"%s: %lu bytes bound for %s", k->name,
          (unsigned long)have, p->name);
    CHECK(b == nil || bound.offset[p->index] % p->align == 0, @"%s: offset of %s is not aligned",
          k->name, p->name);
  }
}
- (void)dispatchThreadgroups:(MTLSize)groups threadsPerThreadgroup:(MTLSize)group {
  CHECK(open, @"a dispatch after endEncoding");
  CHECK(pipeline != nil, @"a dispatch without a pipeline");
  NSUInteger threads = group.width * group.height * group.depth;
  CHECK(threads > 0 && threads <= [pipeline maxTotalThreadsPerThreadgroup],
        @"%lu threads per threadgroup", (unsigned long)threads);
  CHECK(groups.width > 0 && groups.height > 0 && groups.depth > 0, @"no threadgroups");
  [self checkArguments];
  struct command *c = [buffer add:DISPATCH];
  c->what = [pipeline retain];
  c->bindings = bindings_copy(&bound);
  c->groups = groups;
  c->group = group;
}
@end

void sim_command_free(struct command *c) {
  [c->what release];
  [c->from release];
  [c->to release];
  [c->result release];
  if (c->bindings != NULL)
    bindings_clear(c->bindings);
  free(c->bindings);
  free(c);
}

static NSError *trouble(NSInteger code, NSString *text) {
  return sim_error(MTLCommandBufferErrorDomain, code, text);
}

// ends returns the error for the outcome of a kernel's run.
static NSError *ends(int how, const simmetal_kernel *k, const char *log) {
  NSString *text = [NSString stringWithFormat:@"%s: %s", k->name, log];
  switch (how) {
  case SIMMETAL_OK:
    return nil;
  case SIMMETAL_INVALID:
    return trouble(MTLCommandBufferErrorInvalidResource, text);
  case SIMMETAL_FAULT:
    return trouble(MTLCommandBufferErrorPageFault, text);
  case SIMMETAL_HANG:
    return trouble(MTLCommandBufferErrorTimeout, text);
  case SIMMETAL_NOMEM:
    return trouble(MTLCommandBufferErrorOutOfMemory, text);
  }
  return trouble(MTLCommandBufferErrorInternal, text);
}

static NSError *dispatch(struct command *c) {
  const simmetal_kernel *k = ((SimPipeline *)c->what)->function->kernel;
  int code = simmetal_fault(CALL_LATE);
  if (code != 0)
    return trouble(code < 13 ? code : MTLCommandBufferErrorInternal,
                   @"the dispatch failed, as it was told to");
  simmetal_slow_kernel();
  simmetal_args args;
  memset(&args, 0, sizeof args);
  struct bindings *b = c->bindings;
  for (int i = 0; i < SIMMETAL_BUFFERS; i++) {
    args.buffer[i] = b->buffer[i] != nil ? b->buffer[i]->device + b->offset[i] : b->bytes[i];
    args.threadgroup[i] = b->threadgroup[i];
  }
  const uint32_t groups[3] = {(uint32_t)c->groups.width, (uint32_t)c->groups.height,
                              (uint32_t)c->groups.depth};
  const uint32_t group[3] = {(uint32_t)c->group.width, (uint32_t)c->group.height,
                             (uint32_t)c->group.depth};
  char log[512] = "";
  NSError *why = ends(simmetal_run(k, groups, group, &args, log, sizeof log), k, log);
  for (int i = 0; why == nil && i < SIMMETAL_BUFFERS; i++)
    if (b->buffer[i] != nil && [b->buffer[i] spoiled])
      why = trouble(MTLCommandBufferErrorPageFault,
                    [NSString stringWithFormat:@"%s wrote behind the buffer at index %d", k->name, i]);
  return why;
}

NSError *sim_execute(struct command *c) {
  SimBuffer *from = c->from, *to = c->to;
  switch (c->kind) {
  case DISPATCH:
    return dispatch(c);
  case COPY:
    simmetal_slow_copy();
    memcpy(to->device + c->target, from->device + c->source, c->bytes);
    return nil;
  case FILL:
    if (simmetal_fault(CALL_FILL) != 0)
      return trouble(MTLCommandBufferErrorInternal, @"the fill failed, as it was told to");
    memset(to->device + c->target, c->value, c->bytes);
    return nil;
  case SYNCHRONIZE:
    memcpy(from->host, from->device, from->bytes);
    return nil;
  case WAIT:
    [(SimEvent *)c->what waitFor:c->target];
    return nil;
  case SIGNAL:
    [(SimEvent *)c->what setSignaledValue:c->target];
    return nil;
  case MULTIPLY:
    return sim_multiply(c);
  }
  return nil;
}
