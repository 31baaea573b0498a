// queue.m: command queues and command buffers. Each queue has a thread, which runs committed
// command buffers in order and ends when there are none left.

#include "sim.h"

#include <Block.h>
#include <time.h>

NSString *const MTLCommandBufferErrorDomain = @"MTLCommandBufferErrorDomain";

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct work *work_keep(struct work *w) {
  pthread_mutex_lock(&w->lock);
  w->refs++;
  pthread_mutex_unlock(&w->lock);
  return w;
}

static void work_release(struct work *w) {
  pthread_mutex_lock(&w->lock);
  int left = --w->refs;
  pthread_mutex_unlock(&w->lock);
  if (left > 0)
    return;
  [w->committed release];
  pthread_cond_destroy(&w->changed);
  pthread_mutex_destroy(&w->lock);
  free(w);
}

// work_next returns the next command buffer, which the caller releases; nil ends the thread.
static SimCommandBuffer *work_next(struct work *w) {
  pthread_mutex_lock(&w->lock);
  while ([w->committed count] == 0 && !w->closing)
    pthread_cond_wait(&w->changed, &w->lock);
  SimCommandBuffer *b = nil;
  if ([w->committed count] > 0) {
    b = [[w->committed objectAtIndex:0] retain];
    [w->committed removeObjectAtIndex:0];
  }
  pthread_mutex_unlock(&w->lock);
  return b;
}

static void *work_thread(void *arg) {
  struct work *w = arg;
  for (BOOL more = YES; more;) {
    @autoreleasepool {
      SimCommandBuffer *b = work_next(w);
      more = b != nil;
      [b run];
      [b release];
    }
  }
  simmetal_count(GAUGE_THREADS, -1);
  work_release(w);
  return NULL;
}

// work_commit must be called with the lock held.
static void work_commit(struct work *w, SimCommandBuffer *b) {
  [w->committed addObject:b];
  if (!w->thread) {
    pthread_t t;
    w->thread = YES;
    w->refs++;
    simmetal_count(GAUGE_THREADS, 1);
    if (pthread_create(&t, NULL, work_thread, w) != 0)
      abort(); // cannot happen in the tests
    pthread_detach(t);
  }
  pthread_cond_broadcast(&w->changed);
}

@implementation SimQueue
- (id)initOn:(SimDevice *)d most:(NSUInteger)most {
  self = [super init];
  owner = d;
  work = calloc(1, sizeof *work);
  pthread_mutex_init(&work->lock, NULL);
  pthread_cond_init(&work->changed, NULL);
  work->refs = 1;
  work->most = most;
  work->committed = [[NSMutableArray alloc] init];
  simmetal_count(GAUGE_STREAMS, 1);
  return self;
}
- (void)dealloc {
  pthread_mutex_lock(&work->lock);
  work->closing = YES;
  pthread_cond_broadcast(&work->changed);
  pthread_mutex_unlock(&work->lock);
  work_release(work);
  simmetal_count(GAUGE_STREAMS, -1);
  [super dealloc];
}
- (id<MTLDevice>)device {
  return owner;
}
- (id<MTLCommandBuffer>)commandBuffer {
  if (simmetal_fault(CALL_RECORD) != 0)
    return nil;
  pthread_mutex_lock(&work->lock);
  while (work->uncompleted >= work->most) // blocks, as Metal does
    pthread_cond_wait(&work->changed, &work->lock);
  work->uncompleted++;
  pthread_mutex_unlock(&work->lock);
  return [[[SimCommandBuffer alloc] initOn:self] autorelease];
}
@end

@implementation SimCommandBuffer
- (id)initOn:(SimQueue *)q {
  self = [super init];
  queue = [q retain];
  work = work_keep(q->work);
  last = &first;
  handlers = [[NSMutableArray alloc] init];
  simmetal_count(GAUGE_COMMANDS, 1);
  return self;
}
- (void)finished { // called when the buffer will not run any further command
  pthread_mutex_lock(&work->lock);
  work->uncompleted--;
  pthread_cond_broadcast(&work->changed);
  pthread_mutex_unlock(&work->lock);
}
- (void)drop {
  while (first != NULL) {
    struct command *c = first;
    first = c->next;
    sim_command_free(c);
  }
  last = &first;
}
- (void)dealloc {
  if (encoder != nil) {
    fprintf(stderr, "simulated Metal: a command buffer ended with an open encoder\n");
    simmetal_count(GAUGE_VIOLATIONS, 1);
  }
  if (state == MTLCommandBufferStatusNotEnqueued)
    [self finished];
  [self drop];
  [handlers release];
  [failure release];
  [queue release];
  work_release(work);
  simmetal_count(GAUGE_COMMANDS, -1);
  [super dealloc];
}

- (struct command *)add:(enum command_kind)kind {
  CHECK(state == MTLCommandBufferStatusNotEnqueued, @"encoding into a command buffer after commit");
  struct command *c = calloc(1, sizeof *c);
  c->kind = kind;
  *last = c;
  last = &c->next;
  return c;
}
- (void)closed {
  encoder = nil;
}
- (id<MTLBlitCommandEncoder>)blitCommandEncoder {
  CHECK(encoder == nil, @"a second encoder while one is open");
  CHECK(state == MTLCommandBufferStatusNotEnqueued, @"an encoder after commit");
  if (simmetal_fault(CALL_COPY) != 0)
    return nil;
  return encoder = [[[SimBlit alloc] initOn:self] autorelease];
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoder {
  CHECK(encoder == nil, @"a second encoder while one is open");
  CHECK(state == MTLCommandBufferStatusNotEnqueued, @"an encoder after commit");
  if (simmetal_fault(CALL_LAUNCH) != 0)
    return nil;
  return encoder = [[[SimCompute alloc] initOn:self] autorelease];
}
- (void)encodeWaitForEvent:(id<MTLEvent>)event value:(uint64_t)value {
  CHECK(encoder == nil, @"encodeWaitForEvent: while an encoder is open");
  struct command *c = [self add:WAIT];
  c->what = [(id)event retain];
  c->target = value;
}
- (void)encodeSignalEvent:(id<MTLEvent>)event value:(uint64_t)value {
  CHECK(encoder == nil, @"encodeSignalEvent: while an encoder is open");
  struct command *c = [self add:SIGNAL];
  c->what = [(id)event retain];
  c->target = value;
}
- (void)addCompletedHandler:(MTLCommandBufferHandler)block {
  CHECK(state == MTLCommandBufferStatusNotEnqueued, @"addCompletedHandler: after commit");
  // Without Apple's runtime a block is not an object.
  [handlers addObject:[NSValue valueWithPointer:_Block_copy(block)]];
}

- (void)commit {
  CHECK(encoder == nil, @"commit while an encoder is open");
  pthread_mutex_lock(&work->lock);
  BOOL again = state != MTLCommandBufferStatusNotEnqueued;
  if (!again) {
    state = MTLCommandBufferStatusCommitted;
    work_commit(work, self);
  }
  pthread_mutex_unlock(&work->lock);
  CHECK(!again, @"a command buffer is committed twice");
}

// execute runs the commands up to the first one that fails.
- (NSError *)execute {
  int code = simmetal_fault(CALL_SYNC);
  if (code != 0)
    return sim_error(MTLCommandBufferErrorDomain,
                     code == SIMMETAL_LOST ? MTLCommandBufferErrorDeviceRemoved
                     : code < 13           ? code
                                           : MTLCommandBufferErrorInternal,
                     code == SIMMETAL_LOST ? @"the device was removed"
                                           : @"the command buffer failed, as it was told to");
  for (struct command *c = first; c != NULL; c = c->next) {
    NSError *why = sim_execute(c);
    if (why != nil)
      return why;
  }
  return nil;
}

- (void)run {
  NSError *why = [[self execute] retain];
  ended = seconds();
  [self drop];
  pthread_mutex_lock(&work->lock);
  failure = why;
  state = why != nil ? MTLCommandBufferStatusError : MTLCommandBufferStatusCompleted;
  pthread_mutex_unlock(&work->lock);
  for (NSValue *v in handlers) {
    MTLCommandBufferHandler h = [v pointerValue];
    h(self);
    _Block_release(h);
  }
  [handlers removeAllObjects];
  [self finished];
}
- (MTLCommandBufferStatus)status {
  pthread_mutex_lock(&work->lock);
  MTLCommandBufferStatus s = state;
  pthread_mutex_unlock(&work->lock);
  return s;
}
- (NSError *)error {
  pthread_mutex_lock(&work->lock);
  NSError *why = [[failure retain] autorelease];
  pthread_mutex_unlock(&work->lock);
  return why;
}
- (CFTimeInterval)GPUEndTime {
  return ended;
}
@end
