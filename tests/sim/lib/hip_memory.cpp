// hip_memory.cpp: HIP's memory, copies and fills.

#include "hip.h"

using namespace sim;

SIM_EXPORT hipError_t hipMalloc(void **out, size_t bytes) {
  HIP(K_ALLOC);
  NEED(out);
  if (bytes == 0) {
    *out = nullptr;
    return OK;
  }
  return hip_keep(memory_alloc(ctx, bytes, ON_DEVICE, 0, out));
}

SIM_EXPORT hipError_t hipMallocManaged(void **out, size_t bytes, unsigned flags) {
  HIP(K_ALLOC);
  NEED(out && (flags == 1 || flags == 2));
  return hip_keep(memory_alloc(ctx, bytes, MANAGED, 0, out));
}

SIM_EXPORT hipError_t hipFree(void *p) {
  HIP(K_FREE);
  return hip_keep(memory_free(ctx, p, false));
}

SIM_EXPORT hipError_t hipHostMalloc(void **out, size_t bytes, unsigned flags) {
  HIP(K_PINNED);
  NEED(out);
  return hip_keep(memory_alloc(ctx, bytes, PINNED, flags, out));
}

SIM_EXPORT hipError_t hipHostFree(void *p) {
  HIP(K_FREE);
  return hip_keep(memory_free(ctx, p, true));
}

SIM_EXPORT hipError_t hipHostRegister(void *p, size_t bytes, unsigned flags) {
  HIP(K_PINNED);
  return hip_keep(memory_register(ctx, p, bytes, flags | 1));
}

SIM_EXPORT hipError_t hipHostUnregister(void *p) {
  HIP(K_FREE);
  return hip_keep(memory_unregister(p));
}

SIM_EXPORT hipError_t hipHostGetDevicePointer(void **out, void *p, unsigned flags) {
  HIP(K_OTHER);
  NEED(out && flags == 0 && memory_mapped(p));
  *out = p;
  return OK;
}

SIM_EXPORT hipError_t hipMallocAsync(void **out, size_t bytes, hipStream_t s) {
  HIP(K_ALLOC);
  NEED(out);
  return hip_keep(memory_alloc_queued(ctx, bytes, s, out));
}

SIM_EXPORT hipError_t hipFreeAsync(void *p, hipStream_t s) {
  HIP(K_FREE);
  return hip_keep(memory_free_queued(ctx, p, s));
}

SIM_EXPORT hipError_t hipMemGetInfo(size_t *free, size_t *total) {
  HIP(K_OTHER);
  size_t f, t;
  memory_info(ctx->device, free != nullptr ? free : &f, total != nullptr ? total : &t);
  return OK;
}

SIM_EXPORT hipError_t hipMemPrefetchAsync(const void *p, size_t bytes, int d, hipStream_t s) {
  HIP(K_COPY);
  return hip_keep(memory_prefetch(ctx, p, bytes, d, s));
}

#define COPY(to_side, from_side, s, async)                                                         \
  HIP(K_COPY);                                                                                     \
  return hip_keep(copy(ctx, to, to_side, from, from_side, bytes, s, async))

SIM_EXPORT hipError_t hipMemcpy(void *to, const void *from, size_t bytes, int) {
  COPY(ANY_SIDE, ANY_SIDE, nullptr, false);
}
SIM_EXPORT hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, int, hipStream_t s) {
  COPY(ANY_SIDE, ANY_SIDE, s, true);
}
SIM_EXPORT hipError_t hipMemcpyHtoD(void *to, void *from, size_t bytes) {
  COPY(DEVICE_SIDE, HOST_SIDE, nullptr, false);
}
SIM_EXPORT hipError_t hipMemcpyDtoH(void *to, void *from, size_t bytes) {
  COPY(HOST_SIDE, DEVICE_SIDE, nullptr, false);
}
SIM_EXPORT hipError_t hipMemcpyDtoD(void *to, void *from, size_t bytes) {
  COPY(DEVICE_SIDE, DEVICE_SIDE, nullptr, false);
}
SIM_EXPORT hipError_t hipMemcpyHtoDAsync(void *to, void *from, size_t bytes, hipStream_t s) {
  COPY(DEVICE_SIDE, HOST_SIDE, s, true);
}
SIM_EXPORT hipError_t hipMemcpyDtoHAsync(void *to, void *from, size_t bytes, hipStream_t s) {
  COPY(HOST_SIDE, DEVICE_SIDE, s, true);
}
SIM_EXPORT hipError_t hipMemcpyDtoDAsync(void *to, void *from, size_t bytes, hipStream_t s) {
  COPY(DEVICE_SIDE, DEVICE_SIDE, s, true);
}
SIM_EXPORT hipError_t hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                         size_t bytes, hipStream_t s) {
  DEVICE(to_device);
  DEVICE(from_device);
  COPY(DEVICE_SIDE, DEVICE_SIDE, s, true);
}

#define FILL(width, s, async)                                                                      \
  HIP(K_FILL);                                                                                     \
  return hip_keep(fill(ctx, p, static_cast<unsigned>(value), width, count, s, async))

SIM_EXPORT hipError_t hipMemset(void *p, int value, size_t count) { FILL(1, nullptr, false); }
SIM_EXPORT hipError_t hipMemsetAsync(void *p, int value, size_t count, hipStream_t s) {
  FILL(1, s, true);
}
SIM_EXPORT hipError_t hipMemsetD8(void *p, unsigned char value, size_t count) {
  FILL(1, nullptr, false);
}
SIM_EXPORT hipError_t hipMemsetD16(void *p, unsigned short value, size_t count) {
  FILL(2, nullptr, false);
}
SIM_EXPORT hipError_t hipMemsetD32(void *p, int value, size_t count) { FILL(4, nullptr, false); }
SIM_EXPORT hipError_t hipMemsetD8Async(void *p, unsigned char value, size_t count, hipStream_t s) {
  FILL(1, s, true);
}
SIM_EXPORT hipError_t hipMemsetD16Async(void *p, unsigned short value, size_t count,
                                        hipStream_t s) {
  FILL(2, s, true);
}
SIM_EXPORT hipError_t hipMemsetD32Async(void *p, int value, size_t count, hipStream_t s) {
  FILL(4, s, true);
}
