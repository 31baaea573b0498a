// stream.c has streams, events, waiting, and graphs.

#include "state.h"

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
  if (CALL(d, hipEventCreateWithFlags, &e->handle, timing ? 0 : DISABLE_TIMING) != CS_OK) {
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

static int32_t rocm_record(cs_stream *s, int32_t timing, cs_event **out, cs_error *err) {
  if (atomic_load(&s->capturing))
    return capturing("an event", err);
  cs_device *d = s->dev;
  int32_t status = enter(d, err);
  if (status != CS_OK)
    return status;
  cs_event *e = take_event(d, timing != 0, err);
  if (e == NULL)
    return err->status;
  status = CALL(d, hipEventRecord, e->handle, s->handle);
  if (status != CS_OK) {
    put_event(e);
    return status;
  }
  *out = e;
  return CS_OK;
}

static int32_t rocm_event_query(cs_event *e, int32_t *done, cs_error *err) {
  int32_t status = enter(e->dev, err);
  if (status != CS_OK)
    return status;
  hipError code = e->dev->lib->hip.hipEventQuery(e->handle);
  if (code != HIP_NOT_READY)
    status = on_device(e->dev, code, "hipEventQuery", err);
  if (status == CS_OK)
    *done = code == HIP_OK;
  return status;
}

static int32_t rocm_event_wait(cs_event *e, cs_error *err) {
  int32_t status = enter(e->dev, err);
  return status != CS_OK ? status : CALL(e->dev, hipEventSynchronize, e->handle);
}

static int32_t rocm_event_elapsed(cs_event *from, cs_event *to, double *nanoseconds,
                                  cs_error *err) {
  if (!from->timing || !to->timing)
    return tell(err, CS_INVALID, 0, "event was recorded without timing");
  float ms = 0;
  int32_t status = enter(to->dev, err);
  if (status == CS_OK)
    status = CALL(to->dev, hipEventElapsedTime, &ms, from->handle, to->handle);
  if (status != CS_OK && err->code == HIP_NOT_READY)
    err->status = status = CS_INVALID; // not reached yet
  if (status == CS_OK)
    *nanoseconds = (double)ms * 1e6;
  return status;
}

static void rocm_event_close(cs_event *e) { put_event(e); }

// -- streams --

// priority_of converts a priority of shim.h (1 is above normal) to one of the driver, for which the
// smallest number is the highest priority and 0 the default.
static int priority_of(const cs_device *d, int32_t ours) {
  if (ours > 0)
    return d->highest;
  return ours < 0 ? d->lowest : (d->lowest < 0 ? d->lowest : 0);
}

static int32_t rocm_stream_new(cs_device *d, int32_t priority, cs_stream **out, cs_error *err) {
  int32_t status = enter(d, err);
  if (status != CS_OK)
    return status;
  cs_stream *s = calloc(1, sizeof *s);
  if (s == NULL)
    return no_host_memory(err);
  s->dev = d;
  s->owned = 1;
  status = CALL(d, hipStreamCreateWithPriority, &s->handle, NON_BLOCKING, priority_of(d, priority));
  if (status != CS_OK) {
    free(s);
    return status;
  }
  *out = s;
  return CS_OK;
}

static int32_t rocm_stream_wrap(cs_device *d, uint64_t handle, cs_stream **out, cs_error *err) {
  cs_stream *s = calloc(1, sizeof *s);
  if (s == NULL)
    return no_host_memory(err);
  s->dev = d;
  s->handle = (hipStream)(uintptr_t)handle;
  *out = s;
  return CS_OK;
}

static uint64_t rocm_stream_handle(cs_stream *s) { return (uint64_t)(uintptr_t)s->handle; }

static void drop_ring(cs_stream *s);
static void drop_capture(cs_stream *s);

static int32_t rocm_stream_close(cs_stream *s, cs_error *err) {
  cs_device *d = s->dev;
  int32_t status = enter(d, err);
  if (atomic_load(&s->capturing))
    drop_capture(s);
  if (status == CS_OK)
    status = CALL(d, hipStreamSynchronize, s->handle);
  else // HIP finds the device from the handle
    d->lib->hip.hipStreamSynchronize(s->handle);
  drop_ring(s);
  if (s->owned) {
    hipError code = d->lib->hip.hipStreamDestroy(s->handle);
    if (status == CS_OK)
      status = on_device(d, code, "hipStreamDestroy", err);
  }
  free(s);
  return status;
}

static int32_t rocm_stream_wait(cs_stream *s, cs_event *e, cs_error *err) {
  if (atomic_load(&s->capturing))
    return capturing("waiting for an event", err);
  int32_t status = enter(s->dev, err);
  return status != CS_OK ? status : CALL(s->dev, hipStreamWaitEvent, s->handle, e->handle, 0);
}

static int32_t rocm_stream_query(cs_stream *s, int32_t *done, cs_error *err) {
  if (atomic_load(&s->capturing))
    return capturing("querying its state", err);
  int32_t status = enter(s->dev, err);
  if (status != CS_OK)
    return status;
  hipError code = s->dev->lib->hip.hipStreamQuery(s->handle);
  if (code != HIP_NOT_READY)
    status = on_device(s->dev, code, "hipStreamQuery", err);
  if (status == CS_OK)
    *done = code == HIP_OK;
  return status;
}

static int32_t rocm_stream_sync(cs_stream *s, cs_error *err) {
  if (atomic_load(&s->capturing))
    return capturing("waiting", err);
  int32_t status = enter(s->dev, err);
  return status != CS_OK ? status : CALL(s->dev, hipStreamSynchronize, s->handle);
}

// -- graphs --

static int32_t rocm_capture_begin(cs_stream *s, cs_error *err) {
  cs_device *d = s->dev;
  if (d->lib->hip.hipStreamBeginCapture == NULL || d->lib->hip.hipStreamEndCapture == NULL ||
      d->lib->hip.hipGraphLaunch == NULL || d->lib->hip.hipGraphDestroy == NULL ||
      d->lib->hip.hipGraphExecDestroy == NULL)
    return lacks(err, "graphs");
  if (atomic_load(&s->capturing))
    return capturing("another recording", err);
  int32_t status = enter(d, err);
  // The relaxed mode, because the caller may end the capture on another thread.
  if (status == CS_OK)
    status = CALL(d, hipStreamBeginCapture, s->handle, CAPTURE_RELAXED);
  if (status == CS_OK)
    atomic_store(&s->capturing, 1);
  return status;
}

static int32_t instantiate(cs_device *d, hipGraph graph, hipGraphExec *exec, cs_error *err) {
  if (d->lib->hip.hipGraphInstantiateWithFlags == NULL)
    return lacks(err, "hipGraphInstantiateWithFlags");
  return CALL(d, hipGraphInstantiateWithFlags, exec, graph, 0);
}

// update tries to change an instantiated graph in place.
static int update(cs_device *d, hipGraphExec exec, hipGraph graph) {
  if (d->lib->hip.hipGraphExecUpdate == NULL)
    return 0;
  hipGraphNode node = NULL;
  int result = 0;
  return d->lib->hip.hipGraphExecUpdate(exec, graph, &node, &result) == HIP_OK && result == 0;
}

// passed waits for the launches of a graph. CUDA allows changing or destroying an executable graph
// while it runs. HIP does not promise that, and reads the nodes while they run.
static int32_t passed(cs_graph *g, cs_error *err) {
  return g->last == NULL ? CS_OK : CALL(g->dev, hipEventSynchronize, g->last->handle);
}

// change replaces the graph of *g: in place, or by a new one if its structure differs.
static int32_t change(cs_graph *g, hipGraph graph, cs_error *err) {
  cs_device *d = g->dev;
  pthread_mutex_lock(&g->lock);
  int32_t status = passed(g, err);
  if (status == CS_OK && !update(d, g->exec, graph)) {
    hipGraphExec exec = NULL;
    status = instantiate(d, graph, &exec, err);
    if (status == CS_OK) {
      d->lib->hip.hipGraphExecDestroy(g->exec);
      g->exec = exec;
    }
  }
  pthread_mutex_unlock(&g->lock);
  return status;
}

// adopt makes *g from a recorded graph, or if *g exists, changes it to that graph.
static int32_t adopt(cs_device *d, hipGraph graph, cs_graph **g, cs_error *err) {
  if (*g != NULL)
    return change(*g, graph, err);
  hipGraphExec exec = NULL;
  int32_t status = instantiate(d, graph, &exec, err);
  if (status != CS_OK)
    return status;
  cs_graph *made = calloc(1, sizeof *made);
  if (made == NULL) {
    d->lib->hip.hipGraphExecDestroy(exec);
    return no_host_memory(err);
  }
  made->dev = d;
  made->exec = exec;
  pthread_mutex_init(&made->lock, NULL);
  *g = made;
  return CS_OK;
}

static int32_t rocm_capture_end(cs_stream *s, cs_graph **g, cs_error *err) {
  cs_device *d = s->dev;
  if (!atomic_load(&s->capturing))
    return tell(err, CS_INVALID, 0, "the stream records no graph");
  hipGraph graph = NULL;
  int32_t status = enter(d, err);
  if (status == CS_OK)
    status = CALL(d, hipStreamEndCapture, s->handle, &graph);
  atomic_store(&s->capturing, 0);
  if (status == CS_OK)
    status = adopt(d, graph, g, err);
  if (graph != NULL)
    d->lib->hip.hipGraphDestroy(graph);
  return status;
}

static void drop_capture(cs_stream *s) {
  hipGraph graph = NULL;
  s->dev->lib->hip.hipStreamEndCapture(s->handle, &graph);
  if (graph != NULL)
    s->dev->lib->hip.hipGraphDestroy(graph);
  atomic_store(&s->capturing, 0);
}

static int32_t rocm_capture_drop(cs_stream *s, cs_error *err) {
  if (!atomic_load(&s->capturing))
    return tell(err, CS_INVALID, 0, "the stream records no graph");
  int32_t status = enter(s->dev, err);
  drop_capture(s);
  return status;
}

// launch_graph runs a graph after its previous launch, which may have been on another stream. As in
// CUDA, a graph does not run twice at the same time, and one event tells when its launches are
// done.
static int32_t launch_graph(cs_graph *g, cs_stream *s, cs_error *err) {
  cs_device *d = s->dev;
  int32_t status = CS_OK;
  if (g->last != NULL)
    status = CALL(d, hipStreamWaitEvent, s->handle, g->last->handle, 0);
  else if ((g->last = take_event(d, 0, err)) == NULL)
    status = err->status;
  if (status == CS_OK)
    status = CALL(d, hipGraphLaunch, g->exec, s->handle);
  if (status != CS_OK)
    return status;
  status = CALL(d, hipEventRecord, g->last->handle, s->handle);
  if (status != CS_OK) // without the event its end would be unknown
    d->lib->hip.hipStreamSynchronize(s->handle);
  return status;
}

static int32_t rocm_graph_launch(cs_graph *g, cs_stream *s, cs_error *err) {
  if (atomic_load(&s->capturing))
    return capturing("running another graph", err);
  int32_t status = enter(s->dev, err);
  if (status != CS_OK)
    return status;
  pthread_mutex_lock(&g->lock);
  status = launch_graph(g, s, err);
  pthread_mutex_unlock(&g->lock);
  return status;
}

static int32_t rocm_graph_close(cs_graph *g, cs_error *err) {
  cs_device *d = g->dev;
  int32_t status = enter(d, err);
  if (status == CS_OK)
    status = passed(g, err);
  hipError code = d->lib->hip.hipGraphExecDestroy(g->exec);
  if (status == CS_OK)
    status = on_device(d, code, "hipGraphExecDestroy", err);
  if (g->last != NULL)
    put_event(g->last);
  pthread_mutex_destroy(&g->lock);
  free(g);
  return status;
}
