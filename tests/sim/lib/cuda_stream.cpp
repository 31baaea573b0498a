// cuda_stream.cpp: libcuda's streams, events and recordings.

#include "cuda.h"

using namespace sim;

static CUresult create(CUstream *out, unsigned flags, int priority) {
  CU(K_STREAM, CONTEXT);
  NEED(out && flags <= 1);
  int clamped = priority > 0 ? 0 : priority < -5 ? -5 : priority;
  return stream_create(ctx, flags, clamped, out);
}

SIM_EXPORT CUresult cuStreamCreate(CUstream *out, unsigned flags) { return create(out, flags, 0); }

SIM_EXPORT CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority) {
  return create(out, flags, priority);
}

SIM_EXPORT CUresult cuStreamDestroy_v2(CUstream s) {
  CU(K_OTHER, CONTEXT);
  return stream_destroy(ctx, s);
}

SIM_EXPORT CUresult cuStreamSynchronize(CUstream s) {
  CU(K_SYNC, CONTEXT);
  return stream_sync(ctx, s);
}

SIM_EXPORT CUresult cuStreamQuery(CUstream s) {
  CU(K_SYNC, CONTEXT);
  return stream_query(ctx, s);
}

SIM_EXPORT CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned) {
  CU(K_RECORD, CONTEXT);
  return stream_wait(ctx, s, e);
}

// READ gives one field of a stream.
#define READ(field, out)                                                                           \
  CU(K_OTHER, CONTEXT);                                                                            \
  NEED(out);                                                                                       \
  Lock lock(world().mu);                                                                           \
  Stream *real = stream_find(lock, ctx, s);                                                        \
  if (real == nullptr)                                                                             \
    return INVALID_HANDLE;                                                                         \
  *out = real->field;                                                                              \
  return OK

SIM_EXPORT CUresult cuStreamGetPriority(CUstream s, int *priority) { READ(priority, priority); }
SIM_EXPORT CUresult cuStreamGetFlags(CUstream s, unsigned *flags) { READ(flags, flags); }
SIM_EXPORT CUresult cuStreamGetCtx(CUstream s, CUcontext *context) { READ(context, context); }

SIM_EXPORT CUresult cuLaunchHostFunc(CUstream s, void (*fn)(void *), void *user) {
  CU(K_LAUNCH, CONTEXT);
  NEED(fn);
  return stream_host(ctx, s, [fn, user] { fn(user); });
}

SIM_EXPORT CUresult cuStreamAddCallback(CUstream s, void (*fn)(CUstream, CUresult, void *),
                                        void *user, unsigned flags) {
  CU(K_LAUNCH, CONTEXT);
  NEED(fn && flags == 0);
  int status;
  if (int code = capture_status(ctx, s, &status))
    return code;
  if (status != 0)
    return CAPTURE_UNSUPPORTED;
  return stream_host(ctx, s, [fn, s, ctx, user] { fn(s, ctx->sticky, user); });
}

SIM_EXPORT CUresult cuEventCreate(CUevent *out, unsigned flags) {
  CU(K_EVENT, CONTEXT);
  NEED(out && flags < 8);
  return event_create(ctx, flags, out);
}

SIM_EXPORT CUresult cuEventDestroy_v2(CUevent e) {
  CU(K_OTHER, CONTEXT);
  return event_destroy(ctx, e);
}

SIM_EXPORT CUresult cuEventRecord(CUevent e, CUstream s) {
  CU(K_RECORD, CONTEXT);
  return event_record(ctx, e, s);
}

SIM_EXPORT CUresult cuEventRecordWithFlags(CUevent e, CUstream s, unsigned flags) {
  NEED(flags <= 1);
  return cuEventRecord(e, s);
}

SIM_EXPORT CUresult cuEventQuery(CUevent e) {
  CU(K_SYNC, CONTEXT);
  return event_query(ctx, e);
}

SIM_EXPORT CUresult cuEventSynchronize(CUevent e) {
  CU(K_SYNC, CONTEXT);
  return event_sync(ctx, e);
}

SIM_EXPORT CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to) {
  CU(K_OTHER, CONTEXT);
  NEED(ms);
  return event_elapsed(ms, from, to);
}

SIM_EXPORT CUresult cuEventElapsedTime_v2(float *ms, CUevent from, CUevent to) {
  return cuEventElapsedTime(ms, from, to);
}

SIM_EXPORT CUresult cuStreamBeginCapture_v2(CUstream s, int mode) {
  CU(K_GRAPH, CONTEXT);
  NEED(mode >= 0 && mode <= 2);
  return capture_begin(ctx, s, mode);
}

SIM_EXPORT CUresult cuStreamEndCapture(CUstream s, CUgraph *out) {
  CU(K_GRAPH, CONTEXT);
  NEED(out);
  return capture_end(ctx, s, out);
}

SIM_EXPORT CUresult cuStreamIsCapturing(CUstream s, int *status) {
  CU(K_OTHER, CONTEXT);
  NEED(status);
  return capture_status(ctx, s, status);
}

SIM_EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream s, int *status, uint64_t *id, CUgraph *graph,
                                              const CUgraphNode **after, size_t *count) {
  CU(K_OTHER, CONTEXT);
  NEED(status);
  if (int code = capture_status(ctx, s, status))
    return code;
  Lock lock(world().mu);
  Stream *real = stream_find(lock, ctx, s);
  if (*status != 1 || real == nullptr || real->capture == nullptr)
    return OK;
  if (id != nullptr)
    *id = real->capture->id;
  if (graph != nullptr)
    *graph = real->capture->graph.get();
  if (after != nullptr)
    *after = real->frontier.data();
  if (count != nullptr)
    *count = real->frontier.size();
  return OK;
}

SIM_EXPORT CUresult cuStreamGetCaptureInfo(CUstream s, int *status, uint64_t *id) {
  return cuStreamGetCaptureInfo_v2(s, status, id, nullptr, nullptr, nullptr);
}

SIM_EXPORT CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
  static thread_local int own = 0;
  NEED(mode && *mode >= 0 && *mode <= 2);
  std::swap(own, *mode);
  return OK;
}
