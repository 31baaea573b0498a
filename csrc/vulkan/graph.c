// graph.c has graphs: commands that are recorded once and submitted many times.

#include "state.h"

static struct recorder *capture_recorder(cs_stream *s) { return s->capture != NULL ? &s->capture->r : NULL; }

static void end_recording(cs_device *d, struct dead *dead) {
  struct recording *g = (struct recording *)dead;
  d->vk.DestroyCommandPool(d->handle, g->pool, NULL);
  drop_chunks(d, g->chunks);
  free(g);
}

// GRAPH_CHUNK is the size of a graph's memory for arguments.
enum { GRAPH_CHUNK = 1 << 16 };

// graph_room finds memory for arguments that is as old as the graph.
static int32_t graph_room(cs_stream *s, uint64_t bytes, struct piece *out, cs_error *err) {
  struct recording *g = s->capture;
  struct chunk *c = g->chunks;
  if (c == NULL || c->used + bytes > c->block->bytes) {
    int32_t status = new_chunk(s->dev, bytes > GRAPH_CHUNK ? bytes : GRAPH_CHUNK, &c, err);
    if (status != CS_OK)
      return status;
    c->next = g->chunks;
    g->chunks = c;
  }
  cut(c, bytes, out);
  return CS_OK;
}

// drop_capture ends a capture without a graph. The caller holds the stream's lock.
static void drop_capture(cs_stream *s) {
  if (s->capture != NULL)
    end_recording(s->dev, &s->capture->dead);
  s->capture = NULL;
}

static int32_t start_recording(cs_device *d, struct recording *g, cs_error *err) {
  VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, .queueFamilyIndex = d->t.family};
  int32_t status = CALL(d, err, CreateCommandPool, &pool, NULL, &g->pool);
  VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                      .commandPool = g->pool,
                                      .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                      .commandBufferCount = 1};
  if (status == CS_OK)
    status = CALL(d, err, AllocateCommandBuffers, &info, &g->r.commands);
  if (status == CS_OK)
    status = begin_commands(d, g->r.commands, VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT, err);
  return status;
}

static int32_t vulkan_capture_begin(cs_stream *s, cs_error *err) {
  int32_t status = present(s->dev, err);
  if (status != CS_OK)
    return status;
  struct recording *g = calloc(1, sizeof *g);
  if (g == NULL)
    return no_host_memory(err);
  g->dead.end = end_recording;
  status = start_recording(s->dev, g, err);
  pthread_mutex_lock(&s->lock);
  if (status == CS_OK && s->capture != NULL)
    status = capturing("a second graph", err);
  if (status == CS_OK)
    s->capture = g;
  pthread_mutex_unlock(&s->lock);
  if (status != CS_OK)
    end_recording(s->dev, &g->dead);
  return status;
}

static int32_t vulkan_capture_end(cs_stream *s, cs_graph **graph, cs_error *err) {
  cs_device *d = s->dev;
  pthread_mutex_lock(&s->lock);
  struct recording *made = s->capture;
  s->capture = NULL;
  pthread_mutex_unlock(&s->lock);
  if (made == NULL)
    return tell(err, CS_INVALID, 0, "the stream records no graph");
  to_host(d, made->r.commands);
  int32_t status = on_device(d, d->vk.EndCommandBuffer(made->r.commands), "EndCommandBuffer", err);
  if (status == CS_OK)
    status = present(d, err);
  cs_graph *g = *graph;
  if (status == CS_OK && g == NULL) {
    g = calloc(1, sizeof *g);
    if (g == NULL)
      status = no_host_memory(err);
    else
      g->dev = d;
  }
  if (status != CS_OK) {
    end_recording(d, &made->dead);
    return status;
  }
  struct recording *before = g->now;
  g->now = made;
  if (before != NULL)
    bury(d, &before->dead);
  *graph = g;
  return CS_OK;
}

static int32_t vulkan_capture_drop(cs_stream *s, cs_error *err) {
  pthread_mutex_lock(&s->lock);
  int was = s->capture != NULL;
  drop_capture(s);
  pthread_mutex_unlock(&s->lock);
  return was ? CS_OK : tell(err, CS_INVALID, 0, "the stream records no graph");
}

static int32_t replay(cs_stream *s, const struct recording *g, cs_error *err) {
  if (s->capture != NULL)
    return capturing("a graph's launch", err);
  int32_t status = begin(s, err);
  return status == CS_OK ? submit(s, g, err) : status;
}

// vulkan_graph_launch: the graph's first command waits for those before it like any other.
static int32_t vulkan_graph_launch(cs_graph *g, cs_stream *s, cs_error *err) {
  int32_t status;
  ON(s, status, err, replay(s, g->now, err));
  return status;
}

static int32_t vulkan_graph_close(cs_graph *g, cs_error *err) {
  (void)err;
  bury(g->dev, &g->now->dead);
  free(g);
  return CS_OK;
}
