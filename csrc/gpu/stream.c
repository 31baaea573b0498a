// stream.c has streams, events, waiting, and graphs.

#include "load.h"

// -- the vendor's events, from the device's free list --

static cs_event *take_event(cs_device *d, int timing, cs_error *err) {
  pthread_mutex_lock(&d->lock);
  cs_event *e = d->events[timing];
  if (e != NULL)
    d->events[timing] = e->next;
  pthread_mutex_unlock(&d->lock);
  if (e != NULL)
    return e;
  e = calloc(1, sizeof *e);
  if (e == NULL) {
    no_host_memory(err);
    return NULL;
  }
  e->dev = d;
  e->timing = timing;
  if (CALL(d, err, event_create, &e->handle, timing ? 0 : DISABLE_TIMING) != CS_OK) {
    free(e);
    return NULL;
  }
  return e;
}

static void put_event(cs_event *e) {
  pthread_mutex_lock(&e->dev->lock);
  e->next = e->dev->events[e->timing];
  e->dev->events[e->timing] = e;
  pthread_mutex_unlock(&e->dev->lock);
}

static int32_t capturing(const char *what, cs_error *err) {
  return tell(err, CS_INVALID, 0, "%s is not possible while the stream records a graph", what);
}

static int32_t gpu_record(cs_stream *s, int32_t timing, cs_event **out, cs_error *err) {
  if (atomic_load(&s->capturing))
    return capturing("an event", err);
  cs_device *d = s->dev;
  int32_t status = enter(d, err);
  if (status != CS_OK)
    return status;
  cs_event *e = take_event(d, timing != 0, err);
  if (e == NULL)
    return err->status;
  status = CALL(d, err, event_record, e->handle, s->handle);
  if (status != CS_OK) {
    put_event(e);
    return status;
  }
  *out = e;
  return CS_OK;
}

// queried ends a query, which returned code.
static int32_t queried(cs_device *d, int code, size_t at, int32_t *done, cs_error *err) {
  int32_t status = code == NOT_READY ? CS_OK : on_device(d, code, at, err);
  if (status == CS_OK)
    *done = code == 0;
  return status;
}

static int32_t gpu_event_query(cs_event *e, int32_t *done, cs_error *err) {
  cs_device *d = e->dev;
  int32_t status = enter(d, err);
  return status != CS_OK
             ? status
             : queried(d, d->lib->api.event_query(e->handle), API(event_query), done, err);
}

static int32_t gpu_event_wait(cs_event *e, cs_error *err) {
  return ENTERED(e->dev, err, event_sync, e->handle);
}

static int32_t gpu_event_elapsed(cs_event *from, cs_event *to, double *nanoseconds, cs_error *err) {
  if (!from->timing || !to->timing)
    return tell(err, CS_INVALID, 0, "event was recorded without timing");
  float ms = 0;
  int32_t status = ENTERED(to->dev, err, event_elapsed, &ms, from->handle, to->handle);
  if (status != CS_OK && err->code == NOT_READY)
    err->status = status = CS_INVALID; // not reached yet
  if (status == CS_OK)
    *nanoseconds = (double)ms * 1e6;
  return status;
}

static void gpu_event_close(cs_event *e) { put_event(e); }

// -- streams --

// priority_of converts a priority of shim.h (1 is above normal) to one of the driver, for which the
// smallest number is the highest priority and 0 the default.
static int priority_of(const cs_device *d, int32_t ours) {
  if (ours > 0)
    return d->highest;
  return ours < 0 ? d->lowest : (d->lowest < 0 ? d->lowest : 0);
}

static int32_t gpu_stream_new(cs_device *d, int32_t priority, cs_stream **out, cs_error *err) {
  int32_t status = enter(d, err);
  if (status != CS_OK)
    return status;
  cs_stream *s = calloc(1, sizeof *s);
  if (s == NULL)
    return no_host_memory(err);
  s->dev = d;
  s->owned = 1;
  status = CALL(d, err, stream_create, &s->handle, NON_BLOCKING, priority_of(d, priority));
  if (status != CS_OK) {
    free(s);
    return status;
  }
  *out = s;
  return CS_OK;
}

static int32_t gpu_stream_wrap(cs_device *d, uint64_t handle, cs_stream **out, cs_error *err) {
  cs_stream *s = calloc(1, sizeof *s);
  if (s == NULL)
    return no_host_memory(err);
  s->dev = d;
  s->handle = (void *)(uintptr_t)handle;
  *out = s;
  return CS_OK;
}

static uint64_t gpu_stream_handle(cs_stream *s) { return (uint64_t)(uintptr_t)s->handle; }

static void drop_ring(cs_stream *s);
static void drop_capture(cs_stream *s);

static int32_t gpu_stream_close(cs_stream *s, cs_error *err) {
  cs_device *d = s->dev;
  int32_t status = enter(d, err);
  if (atomic_load(&s->capturing))
    drop_capture(s);
  if (status == CS_OK)
    status = CALL(d, err, stream_sync, s->handle);
  else // the driver finds the context from the handle
    d->lib->api.stream_sync(s->handle);
  drop_ring(s);
  if (s->owned) {
    int code = d->lib->api.stream_destroy(s->handle);
    if (status == CS_OK)
      status = on_device(d, code, API(stream_destroy), err);
  }
  free(s);
  return status;
}

static int32_t gpu_stream_wait(cs_stream *s, cs_event *e, cs_error *err) {
  if (atomic_load(&s->capturing))
    return capturing("waiting for an event", err);
  return ENTERED(s->dev, err, stream_wait, s->handle, e->handle, 0);
}

static int32_t gpu_stream_query(cs_stream *s, int32_t *done, cs_error *err) {
  if (atomic_load(&s->capturing))
    return capturing("querying its state", err);
  cs_device *d = s->dev;
  int32_t status = enter(d, err);
  return status != CS_OK
             ? status
             : queried(d, d->lib->api.stream_query(s->handle), API(stream_query), done, err);
}

static int32_t gpu_stream_sync(cs_stream *s, cs_error *err) {
  if (atomic_load(&s->capturing))
    return capturing("waiting", err);
  return ENTERED(s->dev, err, stream_sync, s->handle);
}

// -- graphs --

static int32_t gpu_capture_begin(cs_stream *s, cs_error *err) {
  cs_device *d = s->dev;
  if (d->lib->api.capture_begin == NULL || d->lib->api.capture_end == NULL ||
      d->lib->api.graph_launch == NULL || d->lib->api.graph_destroy == NULL ||
      d->lib->api.exec_destroy == NULL)
    return tell(err, CS_UNSUPPORTED, 0, "this version of %s has no graphs",
                d->lib->vendor->driver_title);
  if (atomic_load(&s->capturing))
    return capturing("another recording", err);
  // The relaxed mode, because the caller may end the capture on another thread.
  int32_t status = ENTERED(d, err, capture_begin, s->handle, CAPTURE_RELAXED);
  if (status == CS_OK)
    atomic_store(&s->capturing, 1);
  return status;
}

static int32_t instantiate(cs_device *d, void *graph, void **exec, cs_error *err) {
  if (d->lib->api.instantiate != NULL)
    return CALL(d, err, instantiate, exec, graph, 0);
  if (d->lib->api.instantiate_logged == NULL)
    return lacks(d->lib, API(instantiate), err);
  void *node = NULL;
  char log[256] = "";
  return CALL(d, err, instantiate_logged, exec, graph, &node, log, sizeof log);
}

// update tries to change an instantiated graph in place.
static int update(cs_device *d, void *exec, void *graph) {
  if (d->lib->api.update_detailed != NULL) {
    struct gpu_update result = {0, NULL, NULL};
    return d->lib->api.update_detailed(exec, graph, &result) == 0;
  }
  if (d->lib->api.update == NULL)
    return 0;
  void *node = NULL;
  int result = 0;
  return d->lib->api.update(exec, graph, &node, &result) == 0 && result == 0;
}

// passed waits for the launches of a graph, where the vendor does not promise that an executable
// graph may be changed or destroyed while it runs: HIP reads the nodes while they run.
static int32_t passed(cs_graph *g, cs_error *err) {
  return g->last == NULL ? CS_OK : CALL(g->dev, err, event_sync, g->last->handle);
}

// change replaces the graph of *g: in place, or by a new one if its structure differs.
static int32_t change(cs_graph *g, void *graph, cs_error *err) {
  cs_device *d = g->dev;
  pthread_mutex_lock(&g->lock);
  int32_t status = passed(g, err);
  if (status == CS_OK && !update(d, g->exec, graph)) {
    void *exec = NULL;
    status = instantiate(d, graph, &exec, err);
    if (status == CS_OK) {
      d->lib->api.exec_destroy(g->exec); // launches that still run end first
      g->exec = exec;
    }
  }
  pthread_mutex_unlock(&g->lock);
  return status;
}

// adopt makes *g from a recorded graph, or if *g exists, changes it to that graph.
static int32_t adopt(cs_device *d, void *graph, cs_graph **g, cs_error *err) {
  if (*g != NULL)
    return change(*g, graph, err);
  void *exec = NULL;
  int32_t status = instantiate(d, graph, &exec, err);
  if (status != CS_OK)
    return status;
  cs_graph *made = calloc(1, sizeof *made);
  if (made == NULL) {
    d->lib->api.exec_destroy(exec);
    return no_host_memory(err);
  }
  made->dev = d;
  made->exec = exec;
  pthread_mutex_init(&made->lock, NULL);
  *g = made;
  return CS_OK;
}

static int32_t gpu_capture_end(cs_stream *s, cs_graph **g, cs_error *err) {
  cs_device *d = s->dev;
  if (!atomic_load(&s->capturing))
    return tell(err, CS_INVALID, 0, "the stream records no graph");
  void *graph = NULL;
  int32_t status = ENTERED(d, err, capture_end, s->handle, &graph);
  atomic_store(&s->capturing, 0);
  if (status == CS_OK)
    status = adopt(d, graph, g, err);
  if (graph != NULL)
    d->lib->api.graph_destroy(graph);
  return status;
}

static void drop_capture(cs_stream *s) {
  void *graph = NULL;
  s->dev->lib->api.capture_end(s->handle, &graph);
  if (graph != NULL)
    s->dev->lib->api.graph_destroy(graph);
  atomic_store(&s->capturing, 0);
}

static int32_t gpu_capture_drop(cs_stream *s, cs_error *err) {
  if (!atomic_load(&s->capturing))
    return tell(err, CS_INVALID, 0, "the stream records no graph");
  int32_t status = enter(s->dev, err);
  drop_capture(s);
  return status;
}

// launch_after runs a graph after its previous launch, which may have been on another stream, where
// a graph may not run twice at the same time. One event tells when its launches are done.
static int32_t launch_after(cs_graph *g, cs_stream *s, cs_error *err) {
  cs_device *d = s->dev;
  int32_t status = CS_OK;
  if (g->last != NULL)
    status = CALL(d, err, stream_wait, s->handle, g->last->handle, 0);
  else if ((g->last = take_event(d, 0, err)) == NULL)
    status = err->status;
  if (status == CS_OK)
    status = CALL(d, err, graph_launch, g->exec, s->handle);
  if (status != CS_OK)
    return status;
  status = CALL(d, err, event_record, g->last->handle, s->handle);
  if (status != CS_OK) // without the event its end would be unknown
    d->lib->api.stream_sync(s->handle);
  return status;
}

static int32_t gpu_graph_launch(cs_graph *g, cs_stream *s, cs_error *err) {
  if (atomic_load(&s->capturing))
    return capturing("running another graph", err);
  int32_t status = enter(s->dev, err);
  if (status != CS_OK)
    return status;
  if (s->dev->lib->vendor->graphs_overlap)
    return CALL(s->dev, err, graph_launch, g->exec, s->handle);
  pthread_mutex_lock(&g->lock);
  status = launch_after(g, s, err);
  pthread_mutex_unlock(&g->lock);
  return status;
}

static int32_t gpu_graph_close(cs_graph *g, cs_error *err) {
  cs_device *d = g->dev;
  int32_t status = enter(d, err);
  if (status == CS_OK)
    status = passed(g, err);
  int code = d->lib->api.exec_destroy(g->exec);
  if (status == CS_OK)
    status = on_device(d, code, API(exec_destroy), err);
  if (g->last != NULL)
    put_event(g->last);
  pthread_mutex_destroy(&g->lock);
  free(g);
  return status;
}
