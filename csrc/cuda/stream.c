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
  if (CALL(d, cuEventCreate, &e->handle, timing ? 0 : DISABLE_TIMING) != CS_OK) {
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

static int32_t cuda_record(cs_stream *s, int32_t timing, cs_event **out, cs_error *err) {
  if (atomic_load(&s->capturing))
    return capturing("an event", err);
  cs_device *d = s->dev;
  int32_t status = enter(d, err);
  if (status != CS_OK)
    return status;
  cs_event *e = take_event(d, timing != 0, err);
  if (e == NULL)
    return err->status;
  status = CALL(d, cuEventRecord, e->handle, s->handle);
  if (status != CS_OK) {
    put_event(e);
    return status;
  }
  *out = e;
  return CS_OK;
}

static int32_t cuda_event_query(cs_event *e, int32_t *done, cs_error *err) {
  int32_t status = enter(e->dev, err);
  if (status != CS_OK)
    return status;
  CUresult code = e->dev->lib->cu.cuEventQuery(e->handle);
  if (code != CU_NOT_READY)
    status = on_device(e->dev, code, "cuEventQuery", err);
  if (status == CS_OK)
    *done = code == CU_OK;
  return status;
}

static int32_t cuda_event_wait(cs_event *e, cs_error *err) {
  int32_t status = enter(e->dev, err);
  return status != CS_OK ? status : CALL(e->dev, cuEventSynchronize, e->handle);
}

static int32_t cuda_event_elapsed(cs_event *from, cs_event *to, double *nanoseconds,
                                  cs_error *err) {
  if (!from->timing || !to->timing)
    return tell(err, CS_INVALID, 0, "event was recorded without timing");
  float ms = 0;
  int32_t status = enter(to->dev, err);
  if (status == CS_OK)
    status = CALL(to->dev, cuEventElapsedTime, &ms, from->handle, to->handle);
  if (status != CS_OK && err->code == CU_NOT_READY)
    err->status = status = CS_INVALID; // not reached yet
  if (status == CS_OK)
    *nanoseconds = (double)ms * 1e6;
  return status;
}

static void cuda_event_close(cs_event *e) { put_event(e); }

// -- streams --

// priority_of converts a priority of shim.h (1 is above normal) to one of the driver, for which the
// smallest number is the highest priority and 0 the default.
static int priority_of(const cs_device *d, int32_t ours) {
  if (ours > 0)
    return d->highest;
  return ours < 0 ? d->lowest : (d->lowest < 0 ? d->lowest : 0);
}

static int32_t cuda_stream_new(cs_device *d, int32_t priority, cs_stream **out, cs_error *err) {
  int32_t status = enter(d, err);
  if (status != CS_OK)
    return status;
  cs_stream *s = calloc(1, sizeof *s);
  if (s == NULL)
    return no_host_memory(err);
  s->dev = d;
  s->owned = 1;
  status = CALL(d, cuStreamCreateWithPriority, &s->handle, NON_BLOCKING, priority_of(d, priority));
  if (status != CS_OK) {
    free(s);
    return status;
  }
  *out = s;
  return CS_OK;
}

static int32_t cuda_stream_wrap(cs_device *d, uint64_t handle, cs_stream **out, cs_error *err) {
  cs_stream *s = calloc(1, sizeof *s);
  if (s == NULL)
    return no_host_memory(err);
  s->dev = d;
  s->handle = (CUstream)(uintptr_t)handle;
  *out = s;
  return CS_OK;
}

static uint64_t cuda_stream_handle(cs_stream *s) { return (uint64_t)(uintptr_t)s->handle; }

static void drop_ring(cs_stream *s);
static void drop_capture(cs_stream *s);

static int32_t cuda_stream_close(cs_stream *s, cs_error *err) {
  cs_device *d = s->dev;
  int32_t status = enter(d, err);
  if (atomic_load(&s->capturing))
    drop_capture(s);
  if (status == CS_OK)
    status = CALL(d, cuStreamSynchronize, s->handle);
  else // the driver finds the context from the handle
    d->lib->cu.cuStreamSynchronize(s->handle);
  drop_ring(s);
  if (s->owned) {
    CUresult code = d->lib->cu.cuStreamDestroy(s->handle);
    if (status == CS_OK)
      status = on_device(d, code, "cuStreamDestroy", err);
  }
  free(s);
  return status;
}

static int32_t cuda_stream_wait(cs_stream *s, cs_event *e, cs_error *err) {
  if (atomic_load(&s->capturing))
    return capturing("waiting for an event", err);
  int32_t status = enter(s->dev, err);
  return status != CS_OK ? status : CALL(s->dev, cuStreamWaitEvent, s->handle, e->handle, 0);
}

static int32_t cuda_stream_query(cs_stream *s, int32_t *done, cs_error *err) {
  if (atomic_load(&s->capturing))
    return capturing("querying its state", err);
  int32_t status = enter(s->dev, err);
  if (status != CS_OK)
    return status;
  CUresult code = s->dev->lib->cu.cuStreamQuery(s->handle);
  if (code != CU_NOT_READY)
    status = on_device(s->dev, code, "cuStreamQuery", err);
  if (status == CS_OK)
    *done = code == CU_OK;
  return status;
}

static int32_t cuda_stream_sync(cs_stream *s, cs_error *err) {
  if (atomic_load(&s->capturing))
    return capturing("waiting", err);
  int32_t status = enter(s->dev, err);
  return status != CS_OK ? status : CALL(s->dev, cuStreamSynchronize, s->handle);
}

// -- graphs --

static int32_t cuda_capture_begin(cs_stream *s, cs_error *err) {
  cs_device *d = s->dev;
  if (d->lib->cu.cuStreamBeginCapture == NULL || d->lib->cu.cuStreamEndCapture == NULL ||
      d->lib->cu.cuGraphLaunch == NULL || d->lib->cu.cuGraphDestroy == NULL ||
      d->lib->cu.cuGraphExecDestroy == NULL)
    return lacks(err, "graphs");
  if (atomic_load(&s->capturing))
    return capturing("another recording", err);
  int32_t status = enter(d, err);
  // The relaxed mode, because the caller may end the capture on another thread.
  if (status == CS_OK)
    status = CALL(d, cuStreamBeginCapture, s->handle, CAPTURE_RELAXED);
  if (status == CS_OK)
    atomic_store(&s->capturing, 1);
  return status;
}

static int32_t instantiate(cs_device *d, CUgraph graph, CUgraphExec *exec, cs_error *err) {
  if (d->lib->cu.cuGraphInstantiateWithFlags != NULL)
    return CALL(d, cuGraphInstantiateWithFlags, exec, graph, 0);
  if (d->lib->cu.cuGraphInstantiate == NULL)
    return lacks(err, "cuGraphInstantiate");
  CUgraphNode node = NULL;
  char log[256] = "";
  return CALL(d, cuGraphInstantiate, exec, graph, &node, log, sizeof log);
}

// update tries to change an instantiated graph in place.
static int update(cs_device *d, CUgraphExec exec, CUgraph graph) {
  if (d->lib->cu.cuGraphExecUpdate_v2 != NULL) {
    CUupdate result = {0, NULL, NULL};
    return d->lib->cu.cuGraphExecUpdate_v2(exec, graph, &result) == CU_OK;
  }
  if (d->lib->cu.cuGraphExecUpdate == NULL)
    return 0;
  CUgraphNode node = NULL;
  int result = 0;
  return d->lib->cu.cuGraphExecUpdate(exec, graph, &node, &result) == CU_OK;
}

// change replaces the graph of *g: in place, or by a new one if its structure differs.
static int32_t change(cs_graph *g, CUgraph graph, cs_error *err) {
  cs_device *d = g->dev;
  int32_t status = CS_OK;
  if (!update(d, g->exec, graph)) {
    CUgraphExec exec = NULL;
    status = instantiate(d, graph, &exec, err);
    if (status == CS_OK) {
      d->lib->cu.cuGraphExecDestroy(g->exec); // launches that still run end first
      g->exec = exec;
    }
  }
  return status;
}

// adopt makes *g from a recorded graph, or if *g exists, changes it to that graph.
static int32_t adopt(cs_device *d, CUgraph graph, cs_graph **g, cs_error *err) {
  if (*g != NULL)
    return change(*g, graph, err);
  CUgraphExec exec = NULL;
  int32_t status = instantiate(d, graph, &exec, err);
  if (status != CS_OK)
    return status;
  cs_graph *made = calloc(1, sizeof *made);
  if (made == NULL) {
    d->lib->cu.cuGraphExecDestroy(exec);
    return no_host_memory(err);
  }
  made->dev = d;
  made->exec = exec;
  *g = made;
  return CS_OK;
}

static int32_t cuda_capture_end(cs_stream *s, cs_graph **g, cs_error *err) {
  cs_device *d = s->dev;
  if (!atomic_load(&s->capturing))
    return tell(err, CS_INVALID, 0, "the stream records no graph");
  CUgraph graph = NULL;
  int32_t status = enter(d, err);
  if (status == CS_OK)
    status = CALL(d, cuStreamEndCapture, s->handle, &graph);
  atomic_store(&s->capturing, 0);
  if (status == CS_OK)
    status = adopt(d, graph, g, err);
  if (graph != NULL)
    d->lib->cu.cuGraphDestroy(graph);
  return status;
}

static void drop_capture(cs_stream *s) {
  CUgraph graph = NULL;
  s->dev->lib->cu.cuStreamEndCapture(s->handle, &graph);
  if (graph != NULL)
    s->dev->lib->cu.cuGraphDestroy(graph);
  atomic_store(&s->capturing, 0);
}

static int32_t cuda_capture_drop(cs_stream *s, cs_error *err) {
  if (!atomic_load(&s->capturing))
    return tell(err, CS_INVALID, 0, "the stream records no graph");
  int32_t status = enter(s->dev, err);
  drop_capture(s);
  return status;
}

static int32_t cuda_graph_launch(cs_graph *g, cs_stream *s, cs_error *err) {
  if (atomic_load(&s->capturing))
    return capturing("running another graph", err);
  int32_t status = enter(s->dev, err);
  return status != CS_OK ? status : CALL(s->dev, cuGraphLaunch, g->exec, s->handle);
}

static int32_t cuda_graph_close(cs_graph *g, cs_error *err) {
  cs_device *d = g->dev;
  int32_t status = enter(d, err);
  CUresult code = d->lib->cu.cuGraphExecDestroy(g->exec);
  if (status == CS_OK)
    status = on_device(d, code, "cuGraphExecDestroy", err);
  free(g);
  return status;
}
