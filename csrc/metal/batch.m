// batch.m has batches of commands: how they are encoded, committed, and how they end.
//
// A stream encodes commands into its open batch. The batch is committed when a caller waits for it,
// when it is full, and at once if the device has no other work of the stream. So small launches
// share a few command buffers, and none waits for long. When a batch is done, its
// handler, on a thread of Metal, records the result.
//
// Locks: the stream's lock guards encoding, the device's lock guards the data that handlers write.
// While a thread holds the device's lock, it takes no other.

#include "state.h"

// -- lifetimes --

static void release_stream(cs_stream *s) {
  if (--s->refs > 0)
    return;
  [s->signal release];
  pthread_mutex_destroy(&s->lock);
  free(s);
}

static struct batch *retain_batch(struct batch *b) {
  b->refs++;
  return b;
}

static void release_batch(struct batch *b) {
  if (b == NULL || --b->refs > 0)
    return;
  release_batch(b->after);
  for (size_t i = 0; i < b->managed_count; i++)
    drop_block(b->managed[i]);
  free(b->managed);
  [b->buffer release];
  release_stream(b->stream);
  free(b);
}

// let_go is release_batch for callers without an autorelease pool.
static void let_go(struct batch *b) {
  cs_error ignored;
  int32_t status;
  RUN(status, &ignored, (release_batch(b), CS_OK));
  (void)status;
}

// -- how batches end --

// code_name returns Apple's name for an error of a command buffer, and its class in *class.
static const char *code_name(NSInteger code, int32_t *class) {
  *class = CS_LAUNCH;
  switch (code) {
  case MTLCommandBufferErrorInternal:
    return "MTLCommandBufferErrorInternal";
  case MTLCommandBufferErrorTimeout:
    *class = CS_TIMEOUT;
    return "MTLCommandBufferErrorTimeout";
  case MTLCommandBufferErrorPageFault:
    return "MTLCommandBufferErrorPageFault";
  case MTLCommandBufferErrorAccessRevoked:
    *class = CS_LOST;
    return "MTLCommandBufferErrorAccessRevoked";
  case MTLCommandBufferErrorNotPermitted:
    return "MTLCommandBufferErrorNotPermitted";
  case MTLCommandBufferErrorOutOfMemory:
    *class = CS_NO_MEMORY;
    return "MTLCommandBufferErrorOutOfMemory";
  case MTLCommandBufferErrorInvalidResource:
    return "MTLCommandBufferErrorInvalidResource";
  case MTLCommandBufferErrorDeviceRemoved:
    *class = CS_LOST;
    return "MTLCommandBufferErrorDeviceRemoved";
  case MTLCommandBufferErrorStackOverflow:
    return "MTLCommandBufferErrorStackOverflow";
  }
  return "MTLCommandBufferError";
}

// read_end reads the result of a command buffer, and the time when the device was done with it.
static void read_end(id<MTLCommandBuffer> buffer, cs_error *failure, double *ended) {
  failure->status = CS_OK;
  if ([buffer status] == MTLCommandBufferStatusError) {
    NSError *why = [buffer error];
    int32_t class;
    const char *name = code_name([why code], &class);
    failed(failure, class, name, why);
  }
  *ended = [buffer GPUEndTime];
  if (*ended > 0)
    return;
  // A command buffer without commands may have no times: its end is now, on the same clock.
  struct timespec now;
#ifdef CLOCK_UPTIME_RAW
  clock_gettime(CLOCK_UPTIME_RAW, &now);
#else
  clock_gettime(CLOCK_MONOTONIC, &now);
#endif
  *ended = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// ending returns the result of a batch as far as it is known: a failure of the stream is also that
// of all later batches, and the failure of a batch is also that of batches that waited for it. The
// caller holds the device's lock.
static const cs_error *ending(const struct batch *b) {
  for (;; b = b->after) {
    const cs_stream *s = b->stream;
    if (b->failure.status == CS_OK && s->failure.status != CS_OK && s->failed < b->number)
      return &s->failure;
    if (b->failure.status != CS_OK || b->after == NULL)
      return &b->failure;
  }
}

// blame sets the failure of a batch and its stream, unless they have one. The caller holds the
// device's lock.
static void blame(struct batch *b, const cs_error *failure) {
  cs_stream *s = b->stream;
  if (failure->status == CS_OK)
    return;
  if (b->failure.status == CS_OK)
    b->failure = *failure;
  if (s->failure.status == CS_OK) {
    s->failure = *failure;
    s->failed = b->number;
  }
  if (failure->status == CS_LOST)
    s->dev->lost = 1;
}

// settle records that a batch is done, and its result. The caller holds the device's lock.
static void settle(struct batch *b, const cs_error *failure, double ended) {
  cs_stream *s = b->stream;
  blame(b, failure);
  b->done = 1;
  b->ended = ended;
  if (b->number > s->reached)
    s->reached = b->number;
  for (size_t i = 0; i < b->managed_count; i++)
    b->managed[i]->uses--;
  pthread_cond_broadcast(&s->dev->passed);
}

// is_done reports whether a batch and the batch that it waited for are done; the handlers of the
// two may be called in any order. The caller holds the device's lock.
static int is_done(const struct batch *b) {
  while (b != NULL && b->done)
    b = b->after;
  return b == NULL;
}

// detach removes and returns the batch that a batch waited for, if that is done, and copies its
// failure: the handlers of two queues are called in any order. The caller holds the device's lock,
// and releases the returned batch without it.
static struct batch *detach(struct batch *b) {
  struct batch *after = b->after;
  if (after == NULL || !is_done(after))
    return NULL;
  blame(b, ending(after));
  b->after = NULL;
  return after;
}

// outcome returns the result of a batch that is done.
static int32_t outcome(struct batch *b, cs_error *err) {
  cs_device *d = b->stream->dev;
  pthread_mutex_lock(&d->lock);
  cs_error failure = *ending(b);
  blame(b, &failure);
  pthread_mutex_unlock(&d->lock);
  if (failure.status != CS_OK)
    *err = failure;
  return failure.status;
}

// raise_signal signals the event of a stream that failed, so that other streams do not wait
// forever: failed batches have not signaled. Batches that were committed before the failure was
// known may signal meanwhile. To set a lower number after theirs would undo that, so it repeats
// until the value is high enough, and every handler calls it.
static void raise_signal(cs_stream *s) {
  for (;;) {
    pthread_mutex_lock(&s->dev->lock);
    uint64_t number = s->failure.status != CS_OK ? s->reached : 0;
    pthread_mutex_unlock(&s->dev->lock);
    if ([s->signal signaledValue] >= number)
      return;
    [s->signal setSignaledValue:number];
  }
}

static int32_t healthy(cs_stream *s, cs_error *err);
static int32_t commit(cs_stream *s, cs_error *err);

// finished is the handler of a batch.
static int32_t finished(struct batch *b, id<MTLCommandBuffer> buffer) {
  cs_stream *s = b->stream;
  cs_device *d = s->dev;
  cs_error failure, ignored;
  double ended;
  read_end(buffer, &failure, &ended);
  pthread_mutex_lock(&d->lock);
  s->running--;
  settle(b, &failure, ended);
  int idle = s->running == 0;
  struct batch *after = detach(b);
  pthread_mutex_unlock(&d->lock);
  release_batch(after);
  raise_signal(s);
  if (idle) { // the device has no work of the stream: commit the open batch
    pthread_mutex_lock(&s->lock);
    if (s->open != NULL && s->open->commands > 0 && healthy(s, &ignored) == CS_OK) {
      int32_t status;
      RUN(status, &ignored, commit(s, &ignored));
      (void)status; // the call that waits for the batch commits it again and gets the error
    }
    pthread_mutex_unlock(&s->lock);
  }
  release_batch(b);
  return CS_OK;
}

// ended calls finished, and then allows the stream's owner to continue, as the stream is not in use
// any more.
static void ended(struct batch *b, id<MTLCommandBuffer> buffer) {
  cs_stream *s = b->stream;
  cs_device *d = s->dev;
  cs_error ignored;
  int32_t status;
  RUN(status, &ignored, finished(b, buffer));
  (void)status;
  pthread_mutex_lock(&d->lock);
  s->handlers--;
  pthread_cond_broadcast(&d->passed);
  pthread_mutex_unlock(&d->lock);
}

// healthy returns the first failure of a stream that has failed, so that it accepts no work.
static int32_t healthy(cs_stream *s, cs_error *err) {
  cs_device *d = s->dev;
  pthread_mutex_lock(&d->lock);
  cs_error first = s->failure;
  pthread_mutex_unlock(&d->lock);
  if (first.status == CS_OK)
    return present(d, err);
  *err = first;
  return first.status;
}

// -- encoding: the caller holds the stream's lock --

static void end_encoding(cs_stream *s) {
  [s->compute endEncoding];
  [s->compute release];
  [s->blit endEncoding];
  [s->blit release];
  s->compute = nil;
  s->blit = nil;
}

// begin opens a batch unless one is open.
static int32_t begin(cs_stream *s, cs_error *err) {
  if (s->open != NULL)
    return CS_OK;
  struct batch *b = calloc(1, sizeof *b);
  if (b == NULL)
    return no_host_memory(err);
  b->buffer = [[s->queue commandBuffer] retain];
  if (b->buffer == nil) {
    free(b);
    return tell(err, CS_FAILED, 0, "commandBuffer: the queue returned none");
  }
  b->refs = 1;
  s->refs++;
  b->stream = s;
  b->number = ++s->numbered;
  s->open = b;
  return CS_OK;
}

static int32_t blitting(cs_stream *s, cs_error *err) {
  int32_t status = begin(s, err);
  if (status != CS_OK || s->blit != nil)
    return status;
  end_encoding(s);
  s->blit = [[s->open->buffer blitCommandEncoder] retain];
  return s->blit != nil ? CS_OK : tell(err, CS_FAILED, 0, "blitCommandEncoder: there is none");
}

static int32_t computing(cs_stream *s, cs_error *err) {
  int32_t status = begin(s, err);
  if (status != CS_OK || s->compute != nil)
    return status;
  end_encoding(s);
  s->locals = 0;
  s->compute = [[s->open->buffer computeCommandEncoder] retain];
  return s->compute != nil ? CS_OK
                           : tell(err, CS_FAILED, 0, "computeCommandEncoder: there is none");
}

// touch records that the open batch uses a block. If no other batch uses a managed block, the host
// may have written to it, so all of it is copied to the device. While a batch uses it, the host
// must not write.
static int32_t touch(cs_stream *s, struct block *block, cs_error *err) {
  struct batch *b = s->open;
  if (!block->managed)
    return CS_OK;
  for (size_t i = 0; i < b->managed_count; i++)
    if (b->managed[i] == block)
      return CS_OK;
  if (b->managed_count == b->managed_room) {
    size_t room = b->managed_room > 0 ? 2 * b->managed_room : 8;
    struct block **more = realloc(b->managed, room * sizeof *more);
    if (more == NULL)
      return no_host_memory(err);
    b->managed = more;
    b->managed_room = room;
  }
  pthread_mutex_lock(&s->dev->lock);
  int first = block->uses++ == 0;
  pthread_mutex_unlock(&s->dev->lock);
  b->managed[b->managed_count++] = block;
  block->refs++;
  if (first)
    [block->buffer didModifyRange:NSMakeRange(0, [block->buffer length])];
  return CS_OK;
}

// synchronize ends the batch with the commands that copy the device's writes to managed memory to
// the host.
static int32_t synchronize(cs_stream *s, cs_error *err) {
  struct batch *b = s->open;
  int32_t status = b->managed_count > 0 ? blitting(s, err) : CS_OK;
  for (size_t i = 0; i < b->managed_count && status == CS_OK; i++)
    [s->blit synchronizeResource:b->managed[i]->buffer];
  return status;
}

// submit gives a batch to Metal, with its handler.
static int32_t submit(struct batch *b, cs_error *err) {
  cs_stream *s = b->stream;
  int32_t status = CS_OK;
  retain_batch(b); // a reference for the handler
  pthread_mutex_lock(&s->dev->lock);
  b->committed = 1;
  s->running++;
  s->handlers++;
  pthread_mutex_unlock(&s->dev->lock);
  @try {
    [b->buffer addCompletedHandler:^(id<MTLCommandBuffer> buffer) {
      ended(b, buffer);
    }];
    [b->buffer commit];
  } @catch (id exception) { // the handler will not be called
    status = thrown(err, exception);
    pthread_mutex_lock(&s->dev->lock);
    s->running--;
    s->handlers--;
    settle(b, err, 0);
    pthread_mutex_unlock(&s->dev->lock);
    release_batch(b);
  }
  return status;
}

// close_batch makes the open batch of the stream its last batch; there is then no open one.
static void close_batch(cs_stream *s) {
  struct batch *b = s->open, *before = s->last, *after = NULL;
  s->open = NULL;
  s->last = b; // with the stream's reference
  if (before != NULL) {
    pthread_mutex_lock(&s->dev->lock);
    after = detach(before); // an event may keep `before` for long
    // A batch that waits for no other stream is done only after the batch that its predecessor
    // waited for.
    if (before->after != NULL && b->after == NULL)
      b->after = retain_batch(before->after);
    pthread_mutex_unlock(&s->dev->lock);
  }
  release_batch(after);
  release_batch(before);
}

// commit commits the open batch to the device.
static int32_t commit(cs_stream *s, cs_error *err) {
  struct batch *b = s->open;
  if (b == NULL)
    return CS_OK;
  int32_t status = synchronize(s, err);
  if (status != CS_OK)
    return status;
  end_encoding(s);
  [b->buffer encodeSignalEvent:s->signal value:b->number];
  close_batch(s);
  return submit(b, err);
}

// queued is called at the end of each call that encoded a command.
static int32_t queued(cs_stream *s, cs_error *err) {
  pthread_mutex_lock(&s->dev->lock);
  int idle = s->running == 0;
  pthread_mutex_unlock(&s->dev->lock);
  return ++s->open->commands >= BATCH_COMMANDS || idle ? commit(s, err) : CS_OK;
}

// ready waits while too many batches are in flight. It does not hold the stream's lock meanwhile,
// because a query of the stream needs that. An entry opens few batches, so the limit is exceeded by
// few.
static int32_t ready(cs_stream *s, cs_error *err) {
  cs_device *d = s->dev;
  pthread_mutex_lock(&d->lock);
  while (s->running >= BATCHES_IN_FLIGHT)
    pthread_cond_wait(&d->passed, &d->lock);
  pthread_mutex_unlock(&d->lock);
  return healthy(s, err);
}

// ON evaluates an expression with the stream's lock held, if the stream has not failed.
#define ON(s, status, err, expression)                                                             \
  do {                                                                                             \
    (status) = ready((s), (err));                                                                  \
    if ((status) == CS_OK) {                                                                       \
      pthread_mutex_lock(&(s)->lock);                                                              \
      RUN((status), (err), (expression));                                                          \
      pthread_mutex_unlock(&(s)->lock);                                                            \
    }                                                                                              \
  } while (0)
