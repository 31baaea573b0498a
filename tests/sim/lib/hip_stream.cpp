// hip_stream.cpp: HIP's streams, events and graphs.

#include "hip.h"

using namespace sim;

SIM_EXPORT hipError_t hipStreamCreateWithPriority(hipStream_t *out, unsigned flags, int priority) {
  HIP(K_STREAM);
  NEED(out && flags <= 1);
  return hip_keep(stream_create(ctx, flags, priority > 1 ? 1 : priority < -1 ? -1 : priority, out));
}

SIM_EXPORT hipError_t hipStreamCreateWithFlags(hipStream_t *out, unsigned flags) {
  return hipStreamCreateWithPriority(out, flags, 0);
}

SIM_EXPORT hipError_t hipStreamCreate(hipStream_t *out) {
  return hipStreamCreateWithPriority(out, 0, 0);
}

SIM_EXPORT hipError_t hipStreamDestroy(hipStream_t s) {
  HIP_END(stream_destroy(ctx, s));
}

SIM_EXPORT hipError_t hipStreamSynchronize(hipStream_t s) {
  HIP(K_SYNC);
  return hip_keep(stream_sync(ctx, s));
}

SIM_EXPORT hipError_t hipStreamQuery(hipStream_t s) {
  HIP(K_SYNC);
  return hip_keep(stream_query(ctx, s));
}

SIM_EXPORT hipError_t hipStreamWaitEvent(hipStream_t s, hipEvent_t e, unsigned) {
  HIP(K_RECORD);
  return hip_keep(stream_wait(ctx, s, e));
}

SIM_EXPORT hipError_t hipStreamGetPriority(hipStream_t s, int *priority) {
  HIP(K_OTHER);
  NEED(priority);
  Lock lock(world().mu);
  Stream *real = stream_find(lock, ctx, s);
  if (real == nullptr)
    return hip_keep(INVALID_HANDLE);
  *priority = real->priority;
  return OK;
}

SIM_EXPORT hipError_t hipLaunchHostFunc(hipStream_t s, void (*fn)(void *), void *user) {
  HIP(K_LAUNCH);
  NEED(fn);
  return hip_keep(stream_host(ctx, s, [fn, user] { fn(user); }));
}

SIM_EXPORT hipError_t hipEventCreateWithFlags(hipEvent_t *out, unsigned flags) {
  HIP(K_EVENT);
  NEED(out);
  return hip_keep(event_create(ctx, flags, out));
}

SIM_EXPORT hipError_t hipEventCreate(hipEvent_t *out) { return hipEventCreateWithFlags(out, 0); }

SIM_EXPORT hipError_t hipEventDestroy(hipEvent_t e) {
  HIP_END(event_destroy(ctx, e));
}

SIM_EXPORT hipError_t hipEventRecord(hipEvent_t e, hipStream_t s) {
  HIP(K_RECORD);
  return hip_keep(event_record(ctx, e, s));
}

SIM_EXPORT hipError_t hipEventQuery(hipEvent_t e) {
  HIP(K_SYNC);
  return hip_keep(event_query(ctx, e));
}

SIM_EXPORT hipError_t hipEventSynchronize(hipEvent_t e) {
  HIP(K_SYNC);
  return hip_keep(event_sync(ctx, e));
}

SIM_EXPORT hipError_t hipEventElapsedTime(float *ms, hipEvent_t from, hipEvent_t to) {
  HIP(K_OTHER);
  NEED(ms);
  return hip_keep(event_elapsed(ms, from, to));
}

SIM_EXPORT hipError_t hipStreamBeginCapture(hipStream_t s, int mode) {
  HIP(K_GRAPH);
  NEED(mode >= 0 && mode <= 2);
  return hip_keep(capture_begin(ctx, s, mode));
}

SIM_EXPORT hipError_t hipStreamEndCapture(hipStream_t s, hipGraph_t *out) {
  HIP(K_GRAPH);
  NEED(out);
  return hip_keep(capture_end(ctx, s, out));
}

SIM_EXPORT hipError_t hipStreamIsCapturing(hipStream_t s, int *status) {
  HIP(K_OTHER);
  NEED(status);
  return hip_keep(capture_status(ctx, s, status));
}

SIM_EXPORT hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t *out, hipGraph_t g,
                                                   unsigned long long) {
  HIP(K_GRAPH);
  NEED(out);
  return hip_keep(graph_instantiate(ctx, g, out));
}

SIM_EXPORT hipError_t hipGraphInstantiate(hipGraphExec_t *out, hipGraph_t g, hipGraphNode_t *,
                                          char *log, size_t room) {
  if (log != nullptr && room > 0)
    *log = 0;
  return hipGraphInstantiateWithFlags(out, g, 0);
}

SIM_EXPORT hipError_t hipGraphExecUpdate(hipGraphExec_t e, hipGraph_t g, hipGraphNode_t *node,
                                         int *result) {
  HIP(K_GRAPH);
  NEED(result);
  if (node != nullptr)
    *node = nullptr;
  return hip_keep(graph_update(e, g, result));
}

SIM_EXPORT hipError_t hipGraphLaunch(hipGraphExec_t e, hipStream_t s) {
  HIP(K_LAUNCH);
  return hip_keep(graph_launch(ctx, e, s));
}

SIM_EXPORT hipError_t hipGraphExecDestroy(hipGraphExec_t e) {
  NEED(exec_destroy(e) == OK);
  HIP_ANY(K_OTHER);
  return OK;
}

SIM_EXPORT hipError_t hipGraphDestroy(hipGraph_t g) {
  NEED(graph_destroy(g) == OK);
  HIP_ANY(K_OTHER);
  return OK;
}
