// stream.m creates and closes streams, and waits for them. batch.m has the commands in them.

#include "state.h"

// -- waiting --

// await waits for a committed batch.
static void await(struct batch *b) {
  cs_device *d = b->stream->dev;
  pthread_mutex_lock(&d->lock);
  while (!is_done(b))
    pthread_cond_wait(&d->passed, &d->lock);
  pthread_mutex_unlock(&d->lock);
}

// flush commits a batch if it is still open.
static int32_t flush(struct batch *b, cs_error *err) {
  cs_stream *s = b->stream;
  int32_t status = CS_OK;
  pthread_mutex_lock(&s->lock);
  if (s->open == b) {
    status = healthy(s, err);
    if (status == CS_OK)
      RUN(status, err, commit(s, err));
  }
  pthread_mutex_unlock(&s->lock);
  return status;
}

// last_batch commits the open batch and returns the last batch with a reference, or NULL if there
// is none.
static int32_t last_batch(cs_stream *s, struct batch **out, cs_error *err) {
  int32_t status = commit(s, err);
  if (status == CS_OK)
    *out = s->last != NULL ? retain_batch(s->last) : NULL;
  return status;
}

// finish waits for all work that is queued so far.
static int32_t finish(cs_stream *s, cs_error *err) {
  struct batch *last = NULL;
  int32_t status = CS_OK;
  ON(s, status, err, last_batch(s, &last, err));
  if (status == CS_OK && last != NULL) {
    await(last);
    status = outcome(last, err);
  }
  let_go(last);
  return status == CS_OK ? healthy(s, err) : status;
}

// metal_stream_query takes the stream's lock, which no thread holds while it waits for the device
// or a compiler.
static int32_t metal_stream_query(cs_stream *s, int32_t *done, cs_error *err) {
  struct batch *last = NULL;
  int32_t status = healthy(s, err);
  if (status != CS_OK)
    return status;
  pthread_mutex_lock(&s->lock);
  RUN(status, err, last_batch(s, &last, err));
  pthread_mutex_unlock(&s->lock);
  if (status != CS_OK)
    return status;
  pthread_mutex_lock(&s->dev->lock);
  int is = is_done(last);
  pthread_mutex_unlock(&s->dev->lock);
  if (is && last != NULL)
    status = outcome(last, err);
  let_go(last);
  if (status == CS_OK)
    status = healthy(s, err);
  if (status == CS_OK)
    *done = is;
  return status;
}

// -- streams --

static int32_t new_stream(cs_device *d, id<MTLCommandQueue> queue, cs_stream **out, cs_error *err) {
  if (queue == nil)
    return tell(err, CS_NO_MEMORY, 0, "newCommandQueue: the device returned none");
  cs_stream *s = calloc(1, sizeof *s);
  if (s == NULL)
    return no_host_memory(err);
  s->signal = [d->handle newSharedEvent];
  if (s->signal == nil) {
    free(s);
    return tell(err, CS_NO_MEMORY, 0, "newSharedEvent: the device returned none");
  }
  s->refs = 1;
  s->dev = d;
  s->queue = [queue retain];
  pthread_mutex_init(&s->lock, NULL);
  *out = s;
  return CS_OK;
}

static int32_t own_stream(cs_device *d, cs_stream **out, cs_error *err) {
  id<MTLCommandQueue> queue = [d->handle newCommandQueueWithMaxCommandBufferCount:QUEUE_BUFFERS];
  int32_t status = new_stream(d, queue, out, err);
  [queue release];
  return status;
}

// Metal's queues have no priorities.
static int32_t metal_stream_new(cs_device *d, int32_t priority, cs_stream **out, cs_error *err) {
  (void)priority;
  int32_t status = present(d, err);
  if (status == CS_OK)
    RUN(status, err, own_stream(d, out, err));
  return status;
}

static int32_t wrap_stream(cs_device *d, uint64_t handle, cs_stream **out, cs_error *err) {
  id<MTLCommandQueue> queue = (id<MTLCommandQueue>)(uintptr_t)handle;
  if (queue == nil || [queue device] != d->handle)
    return tell(err, CS_INVALID, 0, "%#llx is not a queue of this device", (unsigned long long)handle);
  return new_stream(d, queue, out, err);
}

static int32_t metal_stream_wrap(cs_device *d, uint64_t handle, cs_stream **out, cs_error *err) {
  int32_t status = present(d, err);
  if (status == CS_OK)
    RUN(status, err, wrap_stream(d, handle, out, err));
  return status;
}

static uint64_t metal_stream_handle(cs_stream *s) { return (uint64_t)(uintptr_t)s->queue; }

// drop_open ends a batch that is never committed, with the failure of the stream.
static int32_t drop_open(cs_stream *s, const cs_error *failure) {
  end_encoding(s);
  struct batch *b = s->open;
  if (b == NULL)
    return CS_OK;
  pthread_mutex_lock(&s->dev->lock);
  b->committed = 1;
  settle(b, failure, 0);
  pthread_mutex_unlock(&s->dev->lock);
  close_batch(s);
  return CS_OK;
}

static int32_t close_stream(cs_stream *s) {
  for (int i = 0; i < CHUNKS; i++)
    release_batch(s->chunks[i].batch);
  [s->ring release];
  [s->queue release];
  release_batch(s->last);
  s->last = NULL;
  release_stream(s);
  return CS_OK;
}

static int32_t metal_stream_close(cs_stream *s, cs_error *err) {
  cs_device *d = s->dev;
  cs_error ignored;
  int32_t status = finish(s, err), dropped;
  cs_error failure = {.status = CS_FAILED};
  if (status != CS_OK)
    failure = *err;
  pthread_mutex_lock(&s->lock);
  RUN(dropped, &ignored, drop_open(s, &failure)); // only a failed stream has an open batch
  pthread_mutex_unlock(&s->lock);
  pthread_mutex_lock(&d->lock);
  while (s->handlers > 0)
    pthread_cond_wait(&d->passed, &d->lock);
  pthread_mutex_unlock(&d->lock);
  RUN(dropped, &ignored, close_stream(s));
  (void)dropped;
  return status;
}
