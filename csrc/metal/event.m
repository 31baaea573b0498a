// event.m has events: points in a stream, which are the ends of batches.

#include "state.h"

// mark selects the batch whose end is the event. Without timing it is the open batch, or else the
// last one. With timing, the batch has to end with the work that is queued now, or now if none is.
static int32_t mark(cs_stream *s, int timing, struct batch **out, cs_error *err) {
  int32_t status = CS_OK;
  if (timing) {
    if (s->open != NULL && s->open->commands > 0)
      status = commit(s, err);
    int idle = s->last == NULL;
    if (!idle) {
      pthread_mutex_lock(&s->dev->lock);
      idle = s->last->done;
      pthread_mutex_unlock(&s->dev->lock);
    }
    if (status == CS_OK && idle)
      status = begin(s, err);
    if (status == CS_OK && idle)
      status = commit(s, err);
  }
  int open = !timing && s->open != NULL && s->open->commands > 0;
  struct batch *b = open ? s->open : s->last;
  if (status == CS_OK)
    *out = b != NULL ? retain_batch(b) : NULL;
  return status;
}

static int32_t metal_record(cs_stream *s, int32_t timing, cs_event **out, cs_error *err) {
  cs_event *e = calloc(1, sizeof *e);
  if (e == NULL)
    return no_host_memory(err);
  int32_t status;
  ON(s, status, err, mark(s, timing, &e->batch, err));
  e->timing = timing != 0;
  if (status == CS_OK)
    *out = e;
  else
    free(e);
  return status;
}

static int32_t metal_event_query(cs_event *e, int32_t *done, cs_error *err) {
  struct batch *b = e->batch;
  int32_t status = b != NULL ? flush(b, err) : CS_OK;
  int is = 1;
  if (status == CS_OK && b != NULL) {
    cs_device *d = b->stream->dev;
    pthread_mutex_lock(&d->lock);
    is = is_done(b);
    pthread_mutex_unlock(&d->lock);
    if (is)
      status = outcome(b, err);
  }
  if (status == CS_OK)
    *done = is;
  return status;
}

static int32_t metal_event_wait(cs_event *e, cs_error *err) {
  struct batch *b = e->batch;
  int32_t status = b != NULL ? flush(b, err) : CS_OK;
  if (status != CS_OK || b == NULL)
    return status;
  await(b);
  return outcome(b, err);
}

static int32_t metal_event_elapsed(cs_event *from, cs_event *to, double *nanoseconds,
                                   cs_error *err) {
  if (!from->timing || !to->timing)
    return tell(err, CS_INVALID, 0, "event was recorded without timing");
  pthread_mutex_t *lock = &to->batch->stream->dev->lock;
  pthread_mutex_lock(lock);
  int done = from->batch->done && to->batch->done;
  double seconds = to->batch->ended - from->batch->ended;
  pthread_mutex_unlock(lock);
  if (!done)
    return tell(err, CS_INVALID, 0, "event is not reached yet");
  *nanoseconds = seconds * 1e9;
  return CS_OK;
}

static void metal_event_close(cs_event *e) {
  let_go(e->batch);
  free(e);
}

// wait_for makes later work of the stream wait. It begins a new batch, so that earlier work does
// not wait.
static int32_t wait_for(cs_stream *s, struct batch *b, cs_error *err) {
  int32_t status = commit(s, err);
  if (status == CS_OK)
    status = begin(s, err);
  if (status != CS_OK)
    return status;
  [s->open->buffer encodeWaitForEvent:b->stream->signal value:b->number];
  s->open->after = retain_batch(b);
  s->open->commands++; // counts as a command, and is committed with those that follow
  return CS_OK;
}

static int32_t metal_stream_wait(cs_stream *s, cs_event *e, cs_error *err) {
  struct batch *b = e->batch;
  int32_t status = healthy(s, err);
  if (status != CS_OK || b == NULL || b->stream == s)
    return status;
  status = flush(b, err);
  if (status != CS_OK)
    return status;
  pthread_mutex_lock(&s->dev->lock);
  int done = is_done(b);
  pthread_mutex_unlock(&s->dev->lock);
  if (done)
    return outcome(b, err);
  ON(s, status, err, wait_for(s, b, err));
  return status;
}
