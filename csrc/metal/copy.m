// copy.m moves and sets memory in stream order.

#include "state.h"

// -- the tools: kernels for operations that blits do not support --

// Blits copy and fill only whole units of 4 bytes at multiples of 4, and fill only with one byte.
static NSString *const tools_source =
    @"#include <metal_stdlib>\n"
     "using namespace metal;\n"
     "struct span { uint count; uint low; uint high; };\n"
     "kernel void fill_words(device uint *to [[buffer(0)]], constant span &s [[buffer(1)]],\n"
     "                       uint i [[thread_position_in_grid]]) {\n"
     "  if (i < s.count) to[i] = (i & 1) != 0 ? s.high : s.low;\n"
     "}\n"
     "kernel void fill_bytes(device uchar *to [[buffer(0)]], constant span &s [[buffer(1)]],\n"
     "                       uint i [[thread_position_in_grid]]) {\n"
     "  if (i < s.count) to[i] = (uchar)(((i & 4) != 0 ? s.high : s.low) >> (8 * (i & 3)));\n"
     "}\n"
     "kernel void copy_bytes(device uchar *to [[buffer(0)]], constant span &s [[buffer(1)]],\n"
     "                       const device uchar *from [[buffer(2)]],\n"
     "                       uint i [[thread_position_in_grid]]) {\n"
     "  if (i < s.count) to[i] = from[i];\n"
     "}\n";

struct span {
  uint32_t count;
  unsigned char pattern[8];
};

// A span has a multiple of 8 items, so that the next span begins with the first byte of the
// pattern, and a group has as many items as every device allows.
enum { SPAN_ITEMS = 1 << 30, TOOL_GROUP = 256 };

static int32_t make_tools(cs_device *d, cs_error *err) {
  NSArray<NSString *> *names =
      [NSArray arrayWithObjects:@"fill_words", @"fill_bytes", @"copy_bytes", nil];
  NSError *why = nil;
  id<MTLLibrary> library = [d->handle newLibraryWithSource:tools_source options:nil error:&why];
  if (library == nil)
    return failed(err, CS_FAILED, "newLibraryWithSource", why);
  id<MTLFunction> function = nil;
  int32_t status = CS_OK;
  @try {
    for (int i = 0; i < TOOLS && status == CS_OK; i++) {
      function = [library newFunctionWithName:[names objectAtIndex:(NSUInteger)i]];
      if (function == nil)
        status = tell(err, CS_FAILED, 0, "newFunctionWithName: a tool is missing");
      else if (d->tools[i] == nil)
        status = pipeline_of(d, function, nil, MTLPipelineOptionNone, NULL, &d->tools[i], err);
      [function release];
      function = nil;
    }
  } @finally { // RUN handles exceptions
    [function release];
    [library release];
  }
  return status;
}

// tool returns one of the kernels; the first call makes them.
static int32_t tool(cs_device *d, int which, id<MTLComputePipelineState> *out, cs_error *err) {
  int32_t status = CS_OK;
  pthread_mutex_lock(&d->tools_lock);
  if (d->tools[which] == nil)
    RUN(status, err, make_tools(d, err));
  *out = d->tools[which];
  pthread_mutex_unlock(&d->tools_lock);
  return status;
}

// prepare makes the tools, which may take long, before a copy or fill takes the stream's lock.
// units is the bitwise or of all offsets and sizes, which shows whether one is needed.
static int32_t prepare(cs_device *d, uint64_t units, cs_error *err) {
  id<MTLComputePipelineState> pipeline;
  return units % 4 == 0 ? CS_OK : tool(d, TOOL_COPY_BYTES, &pipeline, err);
}

// use queues a tool for count items of the given number of bytes each.
static int32_t use(cs_stream *s, int which, struct place to, struct place from, uint64_t count,
                   uint64_t bytes, const unsigned char *pattern, cs_error *err) {
  id<MTLComputePipelineState> pipeline = nil;
  int32_t status = tool(s->dev, which, &pipeline, err);
  if (status == CS_OK)
    status = computing(s, err);
  if (status != CS_OK)
    return status;
  [s->compute setComputePipelineState:pipeline];
  for (uint64_t at = 0; at < count; at += SPAN_ITEMS) {
    struct span span = {.count = (uint32_t)(count - at < SPAN_ITEMS ? count - at : SPAN_ITEMS)};
    memcpy(span.pattern, pattern, sizeof span.pattern);
    [s->compute setBuffer:to.block->buffer offset:(NSUInteger)(to.offset + at * bytes) atIndex:0];
    [s->compute setBytes:&span length:sizeof span atIndex:1];
    if (from.block != NULL)
      [s->compute setBuffer:from.block->buffer
                     offset:(NSUInteger)(from.offset + at * bytes)
                    atIndex:2];
    [s->compute dispatchThreadgroups:MTLSizeMake((span.count + TOOL_GROUP - 1) / TOOL_GROUP, 1, 1)
               threadsPerThreadgroup:MTLSizeMake(TOOL_GROUP, 1, 1)];
  }
  return CS_OK;
}

// -- within the device: the caller holds the stream's lock --

static const unsigned char no_pattern[8];

// move encodes a copy: whole units by a blit, the rest by a tool.
static int32_t move(cs_stream *s, struct place to, struct place from, uint64_t bytes,
                    cs_error *err) {
  uint64_t whole = to.offset % 4 == 0 && from.offset % 4 == 0 ? bytes & ~(uint64_t)3 : 0;
  int32_t status = begin(s, err);
  if (status == CS_OK)
    status = touch(s, to.block, err);
  if (status == CS_OK)
    status = touch(s, from.block, err);
  if (status == CS_OK && whole > 0) {
    status = blitting(s, err);
    if (status == CS_OK)
      [s->blit copyFromBuffer:from.block->buffer
                 sourceOffset:(NSUInteger)from.offset
                     toBuffer:to.block->buffer
            destinationOffset:(NSUInteger)to.offset
                         size:(NSUInteger)whole];
  }
  to.offset += whole;
  from.offset += whole;
  if (status == CS_OK && whole < bytes)
    status = use(s, TOOL_COPY_BYTES, to, from, bytes - whole, 1, no_pattern, err);
  return status;
}

static int32_t move_now(cs_stream *s, struct place to, struct place from, uint64_t bytes,
                        cs_error *err) {
  int32_t status = move(s, to, from, bytes, err);
  return status == CS_OK ? queued(s, err) : status;
}

static int32_t metal_copy(cs_stream *s, uint64_t dst, uint64_t src, uint64_t bytes, cs_error *err) {
  struct place to, from;
  int32_t status = find(s->dev, dst, bytes, &to, err);
  if (status == CS_OK)
    status = find(s->dev, src, bytes, &from, err);
  if (status == CS_OK)
    status = prepare(s->dev, to.offset | from.offset | bytes, err);
  if (status == CS_OK && bytes > 0)
    ON(s, status, err, move_now(s, to, from, bytes, err));
  return status;
}

// one_byte reports whether all bytes of a pattern are equal, so that a blit can fill with it.
static int one_byte(const unsigned char *pattern) { return memcmp(pattern, pattern + 1, 7) == 0; }

static int32_t fill_now(cs_stream *s, struct place to, uint64_t bytes, const unsigned char *pattern,
                        cs_error *err) {
  int units = to.offset % 4 == 0 && bytes % 4 == 0;
  int32_t status = begin(s, err);
  if (status == CS_OK)
    status = touch(s, to.block, err);
  if (status != CS_OK)
    return status;
  if (units && one_byte(pattern)) {
    status = blitting(s, err);
    if (status == CS_OK)
      [s->blit fillBuffer:to.block->buffer
                    range:NSMakeRange((NSUInteger)to.offset, (NSUInteger)bytes)
                    value:pattern[0]];
  } else {
    struct place none = {NULL, 0};
    status = use(s, units ? TOOL_FILL_WORDS : TOOL_FILL_BYTES, to, none, units ? bytes / 4 : bytes,
                 units ? 4 : 1, pattern, err);
  }
  return status == CS_OK ? queued(s, err) : status;
}

static int32_t metal_fill(cs_stream *s, uint64_t dst, uint64_t bytes, const unsigned char *pattern,
                          uint64_t pattern_bytes, cs_error *err) {
  int32_t status = check_fill(bytes, pattern_bytes, err);
  if (status != CS_OK)
    return status;
  unsigned char eight[8];
  for (uint64_t i = 0; i < 8; i++)
    eight[i] = pattern[i % pattern_bytes];
  struct place to;
  status = find(s->dev, dst, bytes, &to, err);
  if (status == CS_OK)
    status = prepare(s->dev, one_byte(eight) ? to.offset | bytes : 1, err);
  if (status == CS_OK && bytes > 0)
    ON(s, status, err, fill_now(s, to, bytes, eight, err));
  return status;
}

// Host and device share unified memory, or each has a copy already: there is nothing to move.
static int32_t metal_prefetch(cs_stream *s, uint64_t address, uint64_t bytes, int32_t host,
                              cs_error *err) {
  (void)host;
  struct place p;
  int32_t status = healthy(s, err);
  return status == CS_OK ? find(s->dev, address, bytes, &p, err) : status;
}

// -- the ring of shared memory --

static int32_t make_ring(cs_stream *s, cs_error *err) {
  if (s->ring == nil)
    s->ring = [s->dev->handle newBufferWithLength:(NSUInteger)CHUNKS * CHUNK_BYTES
                                          options:MTLResourceStorageModeShared];
  return s->ring != nil ? CS_OK
                        : tell(err, CS_NO_MEMORY, 0, "newBufferWithLength: no memory for staging");
}

// room finds a chunk with that many free bytes: the current one, or else the next one. If a batch
// uses the next one, it returns that batch in *used, with a reference.
static int32_t room(cs_stream *s, uint64_t bytes, struct chunk **out, struct batch **used,
                    cs_error *err) {
  int32_t status = make_ring(s, err);
  struct chunk *c = &s->chunks[s->at];
  *out = c;
  if (status != CS_OK || CHUNK_BYTES - c->used >= bytes)
    return status;
  c = &s->chunks[(s->at + 1) % CHUNKS];
  if (c->batch != NULL && c->batch == s->open)
    status = commit(s, err);
  int busy = 0;
  if (c->batch != NULL) {
    pthread_mutex_lock(&s->dev->lock);
    busy = !c->batch->done;
    pthread_mutex_unlock(&s->dev->lock);
  }
  if (status != CS_OK)
    return status;
  if (busy) {
    *used = retain_batch(c->batch);
    return CS_OK;
  }
  release_batch(c->batch);
  *c = (struct chunk){NULL, 0};
  s->at = (int)(c - s->chunks);
  *out = c;
  return CS_OK;
}

// piece is a copy between a chunk and a block.
struct piece {
  struct place device;
  const unsigned char *src; // NULL: to the host
  uint64_t bytes;
  unsigned char *at;  // out: its address in the ring
  struct batch *used; // out: the batch to wait for before another try, or NULL
};

// stage encodes a piece: from the host through the ring to the device, or from the device to the
// ring.
static int32_t stage(cs_stream *s, struct piece *p, cs_error *err) {
  struct chunk *c;
  int32_t status;
  if (p->src == NULL)
    s->chunks[s->at].used = CHUNK_BYTES; // the piece does not share its chunk
  status = room(s, p->bytes, &c, &p->used, err);
  if (status != CS_OK || p->used != NULL)
    return status;
  struct block ring = {.buffer = s->ring};
  uint64_t offset = (uint64_t)(c - s->chunks) * CHUNK_BYTES + c->used;
  struct place here = {&ring, offset};
  p->at = (unsigned char *)[s->ring contents] + offset;
  if (p->src != NULL)
    memcpy(p->at, p->src, p->bytes);
  status = p->src != NULL ? move(s, p->device, here, p->bytes, err)
                          : move(s, here, p->device, p->bytes, err);
  if (status != CS_OK)
    return status;
  c->used = (c->used + p->bytes + 63) & ~(uint64_t)63; // the next copy begins at a cache line
  if (c->used > CHUNK_BYTES)
    c->used = CHUNK_BYTES;
  release_batch(c->batch);
  c->batch = retain_batch(s->open);
  return queued(s, err);
}

// pass stages a piece; it waits until a chunk is free.
static int32_t pass(cs_stream *s, struct piece *p, cs_error *err) {
  int32_t status;
  for (;;) {
    p->used = NULL;
    ON(s, status, err, stage(s, p, err));
    if (status != CS_OK || p->used == NULL)
      return status;
    await(p->used);
    let_go(p->used);
  }
}

// -- between pageable memory and the device --

// quiet reports whether the stream has no open batch and none that runs.
static int quiet(cs_stream *s) {
  pthread_mutex_lock(&s->lock);
  int open = s->open != NULL;
  pthread_mutex_unlock(&s->lock);
  pthread_mutex_lock(&s->dev->lock);
  int running = s->running;
  pthread_mutex_unlock(&s->dev->lock);
  return !open && running == 0;
}

static int32_t metal_upload(cs_stream *s, uint64_t dst, const unsigned char *src, uint64_t bytes,
                            cs_error *err) {
  struct place to;
  int32_t status = healthy(s, err);
  if (status == CS_OK)
    status = find(s->dev, dst, bytes, &to, err);
  if (status != CS_OK || bytes == 0)
    return status;
  int visible = to.block->host != NULL && !to.block->managed;
  if (visible && bytes > (uint64_t)CHUNKS * CHUNK_BYTES) // larger than the ring: wait and copy directly
    status = finish(s, err);
  if (status == CS_OK && visible && quiet(s)) {
    memcpy(to.block->host + to.offset, src, bytes);
    return CS_OK;
  }
  if (status == CS_OK)
    status = prepare(s->dev, to.offset | bytes, err);
  while (bytes > 0 && status == CS_OK) {
    struct piece p = {.device = to, .src = src, .bytes = bytes};
    if (p.bytes > CHUNK_BYTES)
      p.bytes = CHUNK_BYTES;
    status = pass(s, &p, err);
    to.offset += p.bytes;
    src += p.bytes;
    bytes -= p.bytes;
  }
  return status;
}

// fetch downloads memory that the host cannot access: it queues pieces while there are free chunks,
// and copies them to dst in the same order.
static int32_t fetch(cs_stream *s, unsigned char *dst, struct place from, uint64_t bytes,
                     cs_error *err) {
  int32_t status = prepare(s->dev, from.offset | bytes, err);
  while (bytes > 0 && status == CS_OK) {
    struct piece pieces[CHUNKS];
    int n = 0;
    for (; n < CHUNKS && bytes > 0 && status == CS_OK; n++) {
      pieces[n] = (struct piece){.device = from, .bytes = bytes};
      if (bytes > CHUNK_BYTES)
        pieces[n].bytes = CHUNK_BYTES;
      status = pass(s, &pieces[n], err);
      from.offset += pieces[n].bytes;
      bytes -= pieces[n].bytes;
    }
    if (status == CS_OK)
      status = finish(s, err);
    for (int i = 0; i < n && status == CS_OK; i++) {
      memcpy(dst, pieces[i].at, pieces[i].bytes);
      dst += pieces[i].bytes;
    }
  }
  return status;
}

static int32_t metal_download(cs_stream *s, unsigned char *dst, uint64_t src, uint64_t bytes,
                              cs_error *err) {
  struct place from;
  int32_t status = healthy(s, err);
  if (status == CS_OK)
    status = find(s->dev, src, bytes, &from, err);
  if (status != CS_OK || bytes == 0)
    return status;
  if (from.block->host == NULL || from.block->managed)
    return fetch(s, dst, from, bytes, err);
  status = finish(s, err);
  if (status == CS_OK)
    memcpy(dst, from.block->host + from.offset, bytes);
  return status;
}
