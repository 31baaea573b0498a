// event.c has events: points in a stream, which are the ends of batches, and timestamps.

#include "state.h"

// -- timestamps --

// sweep makes the timestamps of closed events free that are reached by now. The caller holds the
// device's lock.
static void sweep(cs_device *d) {
  for (cs_event **at = &d->queries.closed; *at != NULL;) {
    cs_event *e = *at;
    if (e->number > poll_reached(e->stream)) {
      at = &e->next;
      continue;
    }
    *at = e->next;
    d->queries.free[d->queries.free_count++] = e->query;
    release_stream(e->stream);
    free(e);
  }
}

static int32_t more_queries(cs_device *d, cs_error *err) {
  struct queries *q = &d->queries;
  VkQueryPool *pools = realloc(q->pools, (q->pools_count + 1) * sizeof *pools);
  if (pools == NULL)
    return no_host_memory(err);
  q->pools = pools;
  uint32_t *list = realloc(q->free, (q->pools_count + 1) * QUERIES * sizeof *list);
  if (list == NULL)
    return no_host_memory(err);
  q->free = list;
  VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                .queryCount = QUERIES};
  int32_t status = CALL(d, err, CreateQueryPool, &info, NULL, &q->pools[q->pools_count]);
  if (status != CS_OK)
    return status;
  for (uint32_t i = 0; i < QUERIES; i++)
    q->free[q->free_count++] = q->pools_count * QUERIES + QUERIES - 1 - i;
  q->pools_count++;
  return CS_OK;
}

// new_query returns the number of a timestamp that nothing uses.
static int32_t new_query(cs_device *d, uint32_t *out, cs_error *err) {
  int32_t status = CS_OK;
  pthread_mutex_lock(&d->lock);
  if (d->queries.free_count == 0)
    sweep(d);
  if (d->queries.free_count == 0)
    status = more_queries(d, err);
  if (status == CS_OK) {
    *out = d->queries.free[--d->queries.free_count];
    d->vk.ResetQueryPool(d->handle, d->queries.pools[*out / QUERIES], *out % QUERIES, 1);
  }
  pthread_mutex_unlock(&d->lock);
  return status;
}

static void free_query(cs_device *d, uint32_t query) {
  pthread_mutex_lock(&d->lock);
  d->queries.free[d->queries.free_count++] = query;
  pthread_mutex_unlock(&d->lock);
}

static VkQueryPool pool_of(cs_device *d, uint32_t query) {
  pthread_mutex_lock(&d->lock);
  VkQueryPool pool = d->queries.pools[query / QUERIES];
  pthread_mutex_unlock(&d->lock);
  return pool;
}

// -- the entries --

// mark chooses the batch whose end is the event: the open one, to which nothing is added any more, or else the
// last one. A timestamp is a command of its own.
static int32_t mark(cs_stream *s, cs_event *e, cs_error *err) {
  if (s->capture != NULL)
    return capturing("an event", err);
  if (e->query == NONE) {
    e->number = s->open != NULL ? s->open->number : s->submitted;
    if (s->open != NULL)
      s->open->marked = 1;
    return CS_OK;
  }
  int32_t status = begin(s, err);
  if (status != CS_OK)
    return status;
  e->number = s->open->number;
  s->open->marked = 1;
  s->dev->vk.CmdWriteTimestamp2(s->open->r.commands, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, pool_of(s->dev, e->query),
                                e->query % QUERIES);
  return queued(s, err);
}

static int32_t vulkan_record(cs_stream *s, int32_t timing, cs_event **out, cs_error *err) {
  cs_device *d = s->dev;
  int32_t status = present(d, err);
  if (status != CS_OK)
    return status;
  cs_event *e = calloc(1, sizeof *e);
  if (e == NULL)
    return no_host_memory(err);
  e->query = NONE;
  e->stream = s;
  if (timing && d->t.timestamp_bits > 0)
    status = new_query(d, &e->query, err);
  if (status == CS_OK)
    ON(s, status, err, mark(s, e, err));
  if (status == CS_OK) {
    retain_stream(s);
    *out = e;
    return CS_OK;
  }
  if (e->query != NONE)
    free_query(d, e->query);
  free(e);
  return status;
}

static int is_reached(cs_event *e) {
  return e->number <= atomic_load(&e->stream->reached) || e->number <= poll_reached(e->stream);
}

static int32_t vulkan_event_query(cs_event *e, int32_t *done, cs_error *err) {
  if (e->number <= atomic_load(&e->stream->reached)) {
    *done = 1;
    return CS_OK;
  }
  int32_t status = present(e->stream->dev, err);
  if (status == CS_OK)
    status = flush(e->stream, e->number, err);
  int is = status == CS_OK && is_reached(e);
  if (status == CS_OK && !is)
    status = present(e->stream->dev, err);
  if (status == CS_OK)
    *done = is;
  return status;
}

static int32_t vulkan_event_wait(cs_event *e, cs_error *err) {
  if (e->number <= atomic_load(&e->stream->reached))
    return CS_OK;
  int32_t status = present(e->stream->dev, err);
  if (status == CS_OK)
    status = flush(e->stream, e->number, err);
  return status == CS_OK ? await(e->stream, e->number, err) : status;
}

static int32_t timestamp(cs_event *e, uint64_t *out, cs_error *err) {
  cs_device *d = e->stream->dev;
  if (!is_reached(e))
    return tell(err, CS_INVALID, 0, "event is not reached yet");
  return CALL(d, err, GetQueryPoolResults, pool_of(d, e->query), e->query % QUERIES, 1, sizeof *out, out, sizeof *out,
              VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
}

static int32_t vulkan_event_elapsed(cs_event *from, cs_event *to, double *nanoseconds, cs_error *err) {
  cs_device *d = to->stream->dev;
  if (d->t.timestamp_bits == 0)
    return tell(err, CS_UNSUPPORTED, 0, "the driver has no timestamps for this queue");
  if (from->query == NONE || to->query == NONE)
    return tell(err, CS_INVALID, 0, "event was recorded without timing");
  int32_t status = present(d, err);
  uint64_t begin = 0, end = 0;
  if (status == CS_OK)
    status = timestamp(from, &begin, err);
  if (status == CS_OK)
    status = timestamp(to, &end, err);
  if (status != CS_OK)
    return status;
  // The counter has timestamp_bits bits and wraps; a difference of more than half of them is negative.
  int unused = 64 - (int)d->t.timestamp_bits;
  int64_t ticks = (int64_t)((end - begin) << unused) >> unused;
  *nanoseconds = (double)ticks * (double)d->t.properties.properties.limits.timestampPeriod;
  return CS_OK;
}

static void vulkan_event_close(cs_event *e) {
  cs_stream *s = e->stream;
  cs_device *d = s->dev;
  if (e->query != NONE && !is_reached(e)) { // its timestamp is still written
    pthread_mutex_lock(&d->lock);
    e->next = d->queries.closed;
    d->queries.closed = e;
    pthread_mutex_unlock(&d->lock);
    return;
  }
  if (e->query != NONE)
    free_query(d, e->query);
  release_stream(s);
  free(e);
}

// wait_for makes later work of the stream wait. It begins a new batch, so that earlier work does not wait.
static int32_t wait_for(cs_stream *s, const cs_event *e, cs_error *err) {
  if (s->capture != NULL)
    return capturing("a wait for an event", err);
  int32_t status = CS_OK;
  if (s->open != NULL && (s->open->r.count > 0 || s->open->waits == WAITS))
    status = commit(s, err);
  if (status == CS_OK)
    status = begin(s, err);
  if (status != CS_OK)
    return status;
  s->open->wait[s->open->waits].stream = retain_stream(e->stream);
  s->open->wait[s->open->waits++].number = e->number;
  return CS_OK;
}

static int32_t vulkan_stream_wait(cs_stream *s, cs_event *e, cs_error *err) {
  int32_t status = present(s->dev, err);
  if (status != CS_OK || e->stream == s)
    return status;
  status = flush(e->stream, e->number, err);
  if (status == CS_OK && !is_reached(e))
    ON(s, status, err, wait_for(s, e, err));
  return status;
}
