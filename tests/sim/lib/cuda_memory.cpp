// cuda_memory.cpp: libcuda's memory, copies and fills.

#include "cuda.h"

#include <cstring>

using namespace sim;

static CUresult alloc(CUdeviceptr *out, size_t bytes, Context *c, MemoryKind kind) {
  void *p;
  int code = memory_alloc(c, bytes, kind, 0, &p);
  if (code == OK)
    *out = address(p);
  return code;
}

SIM_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes) {
  CU(K_ALLOC, CONTEXT);
  NEED(out);
  return alloc(out, bytes, ctx, ON_DEVICE);
}

SIM_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
                                       unsigned element) {
  CU(K_ALLOC, CONTEXT);
  NEED(out && pitch && width && height && (element == 4 || element == 8 || element == 16));
  *pitch = (width + 511) / 512 * 512;
  return alloc(out, *pitch * height, ctx, ON_DEVICE);
}

SIM_EXPORT CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned flags) {
  CU(K_ALLOC, CONTEXT);
  NEED(out && (flags == 1 || flags == 2));
  return alloc(out, bytes, ctx, MANAGED);
}

SIM_EXPORT CUresult cuMemFree_v2(CUdeviceptr p) {
  CU(K_FREE, CONTEXT);
  return memory_free(ctx, at(p), false);
}

SIM_EXPORT CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream s) {
  CU(K_ALLOC, CONTEXT);
  NEED(out);
  void *p;
  int code = memory_alloc_queued(ctx, bytes, s, &p);
  if (code == OK)
    *out = address(p);
  return code;
}

SIM_EXPORT CUresult cuMemFreeAsync(CUdeviceptr p, CUstream s) {
  CU(K_FREE, CONTEXT);
  return memory_free_queued(ctx, at(p), s);
}

static Pool *pool_of(int device) {
  Pool &p = world().pools[device];
  return &p;
}

SIM_EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice d) {
  CU(K_OTHER, INIT);
  NEED(out);
  DEVICE(d);
  Lock lock(world().mu);
  *out = pool_of(d);
  return OK;
}

SIM_EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice d) {
  return cuDeviceGetDefaultMemPool(out, d);
}

SIM_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool pool,
                                            CUstream s) {
  NEED(pool);
  return cuMemAllocAsync(out, bytes, s);
}

SIM_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int n, void *value) {
  CU(K_OTHER, INIT);
  NEED(pool && value && n >= 1 && n <= 8);
  Lock lock(world().mu);
  if (n <= 3)
    pool->attributes[n] = static_cast<uint64_t>(*static_cast<int *>(value));
  else
    memcpy(&pool->attributes[n], value, 8);
  return OK;
}

SIM_EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int n, void *value) {
  CU(K_OTHER, INIT);
  NEED(pool && value && n >= 1 && n <= 8);
  Lock lock(world().mu);
  if (n <= 3)
    *static_cast<int *>(value) = static_cast<int>(pool->attributes[n]);
  else
    memcpy(value, &pool->attributes[n], 8);
  return OK;
}

SIM_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t) {
  CU(K_OTHER, INIT);
  NEED(pool);
  return OK;
}

static CUresult host_alloc(void **out, size_t bytes, unsigned flags) {
  CU(K_PINNED, CONTEXT);
  NEED(out && flags < 8);
  return memory_alloc(ctx, bytes, PINNED, flags, out);
}

SIM_EXPORT CUresult cuMemAllocHost_v2(void **out, size_t bytes) {
  return host_alloc(out, bytes, 0);
}

SIM_EXPORT CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned flags) {
  return host_alloc(out, bytes, flags);
}

SIM_EXPORT CUresult cuMemFreeHost(void *p) {
  CU(K_FREE, CONTEXT);
  return memory_free(ctx, p, true);
}

SIM_EXPORT CUresult cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags) {
  CU(K_PINNED, CONTEXT);
  NEED(flags < 16);
  return memory_register(ctx, p, bytes, flags);
}

SIM_EXPORT CUresult cuMemHostUnregister(void *p) {
  CU(K_FREE, CONTEXT);
  return memory_unregister(p);
}

SIM_EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *p, unsigned flags) {
  CU(K_OTHER, CONTEXT);
  NEED(out && flags == 0 && memory_mapped(p));
  *out = address(p);
  return OK;
}

SIM_EXPORT CUresult cuMemHostGetFlags(unsigned *flags, void *p) {
  CU(K_OTHER, CONTEXT);
  Lock lock(world().mu);
  Memory *m = memory_find(lock, p);
  NEED(flags && m && m->kind == PINNED);
  *flags = m->flags;
  return OK;
}

SIM_EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
  CU(K_OTHER, CONTEXT);
  size_t f, t;
  memory_info(ctx->device, free != nullptr ? free : &f, total != nullptr ? total : &t);
  return OK;
}

SIM_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr p) {
  CU(K_OTHER, CONTEXT);
  Lock lock(world().mu);
  Memory *m = memory_find(lock, at(p));
  if (m == nullptr)
    return NOT_FOUND;
  if (base != nullptr)
    *base = address(m->base);
  if (bytes != nullptr)
    *bytes = m->bytes;
  return OK;
}

SIM_EXPORT CUresult cuPointerGetAttribute(void *data, int n, CUdeviceptr p) {
  CU(K_OTHER, INIT);
  NEED(data);
  Lock lock(world().mu);
  Memory *m = memory_find(lock, at(p));
  NEED(m);
  bool host = m->kind == PINNED || m->kind == REGISTERED;
  switch (n) {
  case 1:
    *static_cast<CUcontext *>(data) = m->context;
    return OK;
  case 2:
    *static_cast<unsigned *>(data) = host ? 1 : 2;
    return OK;
  case 3:
    *static_cast<CUdeviceptr *>(data) = p;
    return OK;
  case 4:
    NEED(m->kind != ON_DEVICE && m->kind != GLOBAL);
    *static_cast<void **>(data) = at(p);
    return OK;
  case 8:
    *static_cast<unsigned char *>(data) = m->kind == MANAGED;
    return OK;
  case 9:
    *static_cast<int *>(data) = m->context->device;
    return OK;
  case 11:
    *static_cast<CUdeviceptr *>(data) = address(m->base);
    return OK;
  case 12:
    *static_cast<size_t *>(data) = m->bytes;
    return OK;
  case 13:
    *static_cast<unsigned char *>(data) = 1;
    return OK;
  default:
    return NOT_SUPPORTED;
  }
}

SIM_EXPORT CUresult cuMemPrefetchAsync(CUdeviceptr p, size_t bytes, CUdevice d, CUstream s) {
  CU(K_COPY, CONTEXT);
  return memory_prefetch(ctx, at(p), bytes, d, s);
}

struct CUmemLocation {
  int type, id;
};

SIM_EXPORT CUresult cuMemPrefetchAsync_v2(CUdeviceptr p, size_t bytes, CUmemLocation to,
                                          unsigned flags, CUstream s) {
  NEED(flags == 0 && (to.type == 1 || to.type == 2)); // a device, the host
  return cuMemPrefetchAsync(p, bytes, to.type == 1 ? to.id : -1, s);
}

SIM_EXPORT CUresult cuMemAdvise(CUdeviceptr p, size_t bytes, int, CUdevice) {
  CU(K_OTHER, CONTEXT);
  Lock lock(world().mu);
  Memory *m = memory_find(lock, at(p));
  NEED(m && m->kind == MANAGED && memory_holds(lock, at(p), bytes, true));
  return OK;
}

#define COPY(to, to_side, from, from_side, s, async)                                               \
  CU(K_COPY, CONTEXT);                                                                             \
  return copy(ctx, to, to_side, from, from_side, bytes, s, async)

SIM_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
  COPY(at(to), DEVICE_SIDE, from, HOST_SIDE, nullptr, false);
}
SIM_EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
  COPY(to, HOST_SIDE, at(from), DEVICE_SIDE, nullptr, false);
}
SIM_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  COPY(at(to), DEVICE_SIDE, at(from), DEVICE_SIDE, nullptr, false);
}
SIM_EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  COPY(at(to), ANY_SIDE, at(from), ANY_SIDE, nullptr, false);
}
SIM_EXPORT CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext,
                                 size_t bytes) {
  COPY(at(to), DEVICE_SIDE, at(from), DEVICE_SIDE, nullptr, false);
}
SIM_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes,
                                         CUstream s) {
  COPY(at(to), DEVICE_SIDE, from, HOST_SIDE, s, true);
}
SIM_EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream s) {
  COPY(to, HOST_SIDE, at(from), DEVICE_SIDE, s, true);
}
SIM_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                         CUstream s) {
  COPY(at(to), DEVICE_SIDE, at(from), DEVICE_SIDE, s, true);
}
SIM_EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {
  COPY(at(to), ANY_SIDE, at(from), ANY_SIDE, s, true);
}
SIM_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from,
                                      CUcontext from_ctx, size_t bytes, CUstream s) {
  if (!context_known(to_ctx) || !context_known(from_ctx))
    return INVALID_CONTEXT;
  COPY(at(to), DEVICE_SIDE, at(from), DEVICE_SIDE, s, true);
}

#define FILL(width, s, async)                                                                      \
  CU(K_FILL, CONTEXT);                                                                             \
  return fill(ctx, at(p), value, width, count, s, async)

SIM_EXPORT CUresult cuMemsetD8_v2(CUdeviceptr p, unsigned char value, size_t count) {
  FILL(1, nullptr, false);
}
SIM_EXPORT CUresult cuMemsetD16_v2(CUdeviceptr p, unsigned short value, size_t count) {
  FILL(2, nullptr, false);
}
SIM_EXPORT CUresult cuMemsetD32_v2(CUdeviceptr p, unsigned value, size_t count) {
  FILL(4, nullptr, false);
}
SIM_EXPORT CUresult cuMemsetD8Async(CUdeviceptr p, unsigned char value, size_t count, CUstream s) {
  FILL(1, s, true);
}
SIM_EXPORT CUresult cuMemsetD16Async(CUdeviceptr p, unsigned short value, size_t count,
                                     CUstream s) {
  FILL(2, s, true);
}
SIM_EXPORT CUresult cuMemsetD32Async(CUdeviceptr p, unsigned value, size_t count, CUstream s) {
  FILL(4, s, true);
}
