// stream.c creates and closes streams, and waits for them. batch.c has the commands in them.

#include "state.h"

static struct recorder *capture_recorder(cs_stream *s);

static int32_t recorder_of(cs_stream *s, struct recorder **out, cs_error *err) {
  struct recorder *r = capture_recorder(s);
  int32_t status = r == NULL ? begin(s, err) : CS_OK;
  if (status != CS_OK)
    return status;
  *out = r != NULL ? r : &s->open->r;
  order(s->dev, (*out)->commands);
  return CS_OK;
}

// capturing returns the error of a call that graphs cannot have.
static int32_t capturing(const char *what, cs_error *err) {
  return tell(err, CS_INVALID, 0, "%s while the stream records a graph", what);
}

// -- waiting --

// flush submits the open batch if it has that number.
static int32_t flush(cs_stream *s, uint64_t number, cs_error *err) {
  int32_t status = CS_OK;
  pthread_mutex_lock(&s->lock);
  if (s->open != NULL && s->open->number <= number)
    status = commit(s, err);
  pthread_mutex_unlock(&s->lock);
  return status;
}

// last_number submits the open batch and returns the number of the last one.
static int32_t last_number(cs_stream *s, uint64_t *out, cs_error *err) {
  int32_t status = s->capture != NULL ? capturing("a wait", err) : commit(s, err);
  *out = s->submitted;
  return status;
}

// finish waits for all work that is queued so far.
static int32_t finish(cs_stream *s, cs_error *err) {
  uint64_t number = 0;
  int32_t status = present(s->dev, err);
  if (status != CS_OK)
    return status;
  pthread_mutex_lock(&s->lock);
  status = last_number(s, &number, err);
  pthread_mutex_unlock(&s->lock);
  if (status == CS_OK)
    status = await(s, number, err);
  if (status == CS_OK)
    collect(s->dev);
  return status;
}

// wait_idle waits for everything on the device before something of it is destroyed that may be in use, after a
// call that should have waited failed. A driver returns at once if the device is lost.
static void wait_idle(cs_device *d) {
  pthread_mutex_lock(&d->submit);
  d->vk.DeviceWaitIdle(d->handle);
  pthread_mutex_unlock(&d->submit);
}

// finish_all waits for all streams.
static int32_t finish_all(cs_device *d, cs_error *err) {
  int32_t status = CS_OK;
  cs_stream *list[256];
  uint32_t n = 0;
  pthread_mutex_lock(&d->lock);
  for (cs_stream *s = d->streams; s != NULL && n < 256; s = s->next)
    list[n++] = retain_stream(s);
  pthread_mutex_unlock(&d->lock);
  for (uint32_t i = 0; i < n; i++) {
    uint64_t number = 0;
    pthread_mutex_lock(&list[i]->lock);
    if (status == CS_OK && !list[i]->closed) {
      if (list[i]->capture == NULL)
        status = commit(list[i], err);
      number = list[i]->submitted;
    }
    pthread_mutex_unlock(&list[i]->lock);
    if (status == CS_OK)
      status = await(list[i], number, err);
    release_stream(list[i]);
  }
  return status;
}

static int32_t vulkan_stream_query(cs_stream *s, int32_t *done, cs_error *err) {
  uint64_t number = 0;
  int32_t status = present(s->dev, err);
  if (status != CS_OK)
    return status;
  pthread_mutex_lock(&s->lock);
  status = last_number(s, &number, err);
  pthread_mutex_unlock(&s->lock);
  if (status != CS_OK)
    return status;
  int is = number <= atomic_load(&s->reached) || number <= poll_reached(s);
  status = present(s->dev, err);
  if (status == CS_OK)
    *done = is;
  return status;
}

// -- streams --

static int32_t make_stream(cs_stream *s, cs_error *err) {
  cs_device *d = s->dev;
  VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                  .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                  .queueFamilyIndex = d->t.family};
  int32_t status = new_semaphore(d, &s->done, err);
  return status == CS_OK ? CALL(d, err, CreateCommandPool, &pool, NULL, &s->pool) : status;
}

// Queues of Vulkan have priorities only among those of one device and at the driver's choice: all are equal.
static int32_t vulkan_stream_new(cs_device *d, int32_t priority, cs_stream **out, cs_error *err) {
  (void)priority;
  int32_t status = present(d, err);
  if (status != CS_OK)
    return status;
  cs_stream *s = calloc(1, sizeof *s);
  if (s == NULL)
    return no_host_memory(err);
  s->refs = 1;
  s->dev = d;
  s->oldest = UINT64_MAX;
  s->last = &s->running;
  s->chunks_end = &s->chunks;
  s->queue = d->queues[atomic_fetch_add(&d->next_queue, 1) % d->queue_count];
  pthread_mutex_init(&s->lock, NULL);
  status = make_stream(s, err);
  if (status != CS_OK) {
    release_stream(s);
    return status;
  }
  pthread_mutex_lock(&d->lock);
  s->next = d->streams;
  d->streams = s;
  pthread_mutex_unlock(&d->lock);
  *out = s;
  return CS_OK;
}

static uint64_t vulkan_stream_handle(cs_stream *s) { return (uint64_t)(uintptr_t)s->queue; }

static void drop_batches(struct batch *b) {
  while (b != NULL) {
    struct batch *next = b->next;
    for (uint32_t i = 0; i < b->waits; i++)
      release_stream(b->wait[i].stream);
    free(b);
    b = next;
  }
}

static void drop_chunks(cs_device *d, struct chunk *c);
static void drop_capture(cs_stream *s);

static int32_t vulkan_stream_close(cs_stream *s, cs_error *err) {
  cs_device *d = s->dev;
  pthread_mutex_lock(&s->lock);
  drop_capture(s);
  pthread_mutex_unlock(&s->lock);
  int32_t status = finish(s, err);
  if (status != CS_OK)
    wait_idle(d);
  pthread_mutex_lock(&d->lock);
  for (cs_stream **at = &d->streams; *at != NULL; at = &(*at)->next)
    if (*at == s) {
      *at = s->next;
      break;
    }
  pthread_mutex_unlock(&d->lock);
  pthread_mutex_lock(&s->lock);
  if (status == CS_OK)
    look(s);
  s->closed = 1;
  atomic_store(&s->waiting, 0);
  drop_batches(s->running);
  drop_batches(s->open);
  drop_batches(s->spare);
  s->running = s->open = s->spare = NULL;
  s->last = &s->running;
  *s->chunks_end = s->chunk;
  drop_chunks(d, s->chunks);
  s->chunks = s->chunk = NULL;
  d->vk.DestroyCommandPool(d->handle, s->pool, NULL); // and its buffers
  pthread_mutex_unlock(&s->lock);
  release_stream(s);
  collect(d);
  return status;
}
