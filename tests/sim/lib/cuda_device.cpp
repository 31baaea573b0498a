// cuda_device.cpp: libcuda's devices and contexts.

#include "cuda.h"

#include <cstdio>
#include <cstring>

using namespace sim;

SIM_EXPORT CUresult cuInit(unsigned flags) {
  if (int code = call(K_OTHER))
    return code;
  NEED(flags == 0);
  return init();
}

SIM_EXPORT CUresult cuDriverGetVersion(int *version) {
  NEED(version);
  *version = settings().driver;
  return OK;
}

SIM_EXPORT CUresult cuDeviceGetCount(int *count) {
  CU(K_OTHER, INIT);
  NEED(count);
  *count = device_count();
  return OK;
}

SIM_EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  CU(K_OTHER, INIT);
  NEED(device);
  DEVICE(ordinal);
  *device = ordinal;
  return OK;
}

SIM_EXPORT CUresult cuDeviceGetName(char *name, int len, CUdevice d) {
  CU(K_OTHER, INIT);
  NEED(name && len > 0);
  DEVICE(d);
  snprintf(name, static_cast<size_t>(len), "Concord Simulated CUDA Device %d", d);
  return OK;
}

SIM_EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice d) {
  CU(K_OTHER, INIT);
  NEED(uuid);
  DEVICE(d);
  memcpy(uuid->bytes, "concord-sim-uuid", 16);
  uuid->bytes[15] = static_cast<char>(d);
  return OK;
}

SIM_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice d) {
  return cuDeviceGetUuid(uuid, d);
}

SIM_EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice d) {
  CU(K_OTHER, INIT);
  NEED(bytes);
  DEVICE(d);
  size_t unused;
  memory_info(d, &unused, bytes);
  return OK;
}

SIM_EXPORT CUresult cuDeviceGetPCIBusId(char *text, int len, CUdevice d) {
  CU(K_OTHER, INIT);
  NEED(text && len > 0);
  DEVICE(d);
  snprintf(text, static_cast<size_t>(len), "0000:%02x:00.0", d + 1);
  return OK;
}

SIM_EXPORT CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text) {
  CU(K_OTHER, INIT);
  NEED(device && text);
  unsigned domain, bus;
  if (sscanf(text, "%x:%x:00.0", &domain, &bus) != 2 || !device_ok(static_cast<int>(bus) - 1))
    return INVALID_DEVICE;
  *device = static_cast<int>(bus) - 1;
  return OK;
}

SIM_EXPORT CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice d) {
  CU(K_OTHER, INIT);
  NEED(major && minor);
  DEVICE(d);
  *major = settings().arch / 10;
  *minor = settings().arch % 10;
  return OK;
}

// The attributes of one simulated device, by CUDA's number; the others are 0.
static int attribute(int n, CUdevice d) {
  using namespace limits;
  static const std::map<int, int> table = {
      {1, static_cast<int>(threads)},
      {2, static_cast<int>(block[0])},
      {3, static_cast<int>(block[1])},
      {4, static_cast<int>(block[2])},
      {5, static_cast<int>(grid[0])},
      {6, static_cast<int>(grid[1])},
      {7, static_cast<int>(grid[2])},
      {8, static_cast<int>(shared)},
      {9, 65536},       // constant memory
      {10, 32},         // warp
      {11, 0x7fffffff}, // pitch
      {12, registers},  // of a block
      {13, 1410000},    // kHz
      {14, 512},        // texture alignment
      {15, 1},          // copies overlap kernels
      {16, multiprocessors},
      {19, 1},        // maps host memory
      {31, 1},        // concurrent kernels
      {34, 0},        // PCI device
      {36, 1215000},  // kHz, memory
      {37, 5120},     // bits of the memory bus
      {38, 40 << 20}, // L2
      {39, threads_sm},
      {40, 2}, // copy engines
      {41, 1}, // unified addressing
      {78, 1}, // stream priorities
      {79, 1},
      {80, 1}, // L1
      {81, static_cast<int>(shared_sm)},
      {82, registers}, // of a multiprocessor
      {83, 1},         // managed memory
      {87, 2},         // float to double rate
      {89, 1},         // managed memory at the same time as the host
      {90, 1},
      {91, 1},
      {95, 1}, // preemption, host pointers of registered memory, cooperative launch
      {97, static_cast<int>(shared_optin)},
      {99, 1}, // host memory can be registered
      {106, blocks_sm},
      {111, static_cast<int>(reserved)},
      {115, 1}, // memory pools
  };
  if (n == 33)
    return d + 1; // PCI bus
  if (n == 75 || n == 76)
    return n == 75 ? settings().arch / 10 : settings().arch % 10;
  auto it = table.find(n);
  return it == table.end() ? 0 : it->second;
}

SIM_EXPORT CUresult cuDeviceGetAttribute(int *value, int n, CUdevice d) {
  CU(K_OTHER, INIT);
  NEED(value && n > 0 && n < 150);
  DEVICE(d);
  *value = attribute(n, d);
  return OK;
}

SIM_EXPORT CUresult cuDeviceCanAccessPeer(int *can, CUdevice d, CUdevice peer) {
  CU(K_OTHER, INIT);
  NEED(can);
  DEVICE(d);
  DEVICE(peer);
  *can = d != peer;
  return OK;
}

SIM_EXPORT CUresult cuDeviceGetP2PAttribute(int *value, int n, CUdevice d, CUdevice peer) {
  CU(K_OTHER, INIT);
  NEED(value && n >= 1 && n <= 4);
  DEVICE(d);
  DEVICE(peer);
  *value = n == 2 && d != peer;
  return OK;
}

SIM_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice d) {
  CU(K_CONTEXT, INIT);
  NEED(out);
  DEVICE(d);
  return primary_retain(d, out);
}

// Releasing never fails, even for a context that reports errors.
SIM_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d) {
  DEVICE(d);
  return primary_release(d);
}

SIM_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice d) {
  DEVICE(d);
  return primary_reset(d);
}

// The name of the function before CUDA 11.
SIM_EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice d) { return cuDevicePrimaryCtxReset_v2(d); }

SIM_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice d, unsigned *flags, int *active) {
  CU(K_OTHER, INIT);
  NEED(flags && active);
  DEVICE(d);
  Lock lock(world().mu);
  auto &all = world().primaries;
  bool made = static_cast<size_t>(d) < all.size();
  *flags = made ? all[static_cast<size_t>(d)]->flags : 0;
  *active = made && all[static_cast<size_t>(d)]->alive;
  return OK;
}

SIM_EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice d, unsigned flags) {
  CU(K_OTHER, INIT);
  DEVICE(d);
  NEED(flags < 32);
  Lock lock(world().mu);
  if (static_cast<size_t>(d) < world().primaries.size())
    world().primaries[static_cast<size_t>(d)]->flags = flags;
  return OK;
}

SIM_EXPORT CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice d) {
  CU(K_CONTEXT, INIT);
  NEED(out);
  DEVICE(d);
  return context_create(d, flags, out);
}

SIM_EXPORT CUresult cuCtxDestroy_v2(CUcontext c) { return context_destroy(c); }

SIM_EXPORT CUresult cuCtxSetCurrent(CUcontext c) {
  CU(K_OTHER, INIT);
  if (c != nullptr && !context_known(c))
    return INVALID_CONTEXT;
  context_set(c);
  return OK;
}

SIM_EXPORT CUresult cuCtxGetCurrent(CUcontext *out) {
  CU(K_OTHER, INIT);
  NEED(out);
  *out = context_current();
  return OK;
}

SIM_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext c) {
  CU(K_OTHER, INIT);
  return context_push(c);
}

SIM_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *out) {
  CU(K_OTHER, INIT);
  CUcontext unused;
  return context_pop(out != nullptr ? out : &unused);
}

SIM_EXPORT CUresult cuCtxGetDevice(CUdevice *d) {
  CU(K_OTHER, INIT);
  NEED(d);
  Context *c = context_current();
  if (c == nullptr)
    return INVALID_CONTEXT;
  *d = c->device;
  return OK;
}

SIM_EXPORT CUresult cuCtxGetFlags(unsigned *flags) {
  CU(K_OTHER, CONTEXT);
  NEED(flags);
  *flags = ctx->flags;
  return OK;
}

SIM_EXPORT CUresult cuCtxSynchronize() {
  CU(K_SYNC, CONTEXT);
  Lock lock(world().mu);
  if (int code = capture_forbids(lock))
    return code;
  context_wait(lock, ctx);
  return context_end(lock, ctx, OK);
}

SIM_EXPORT CUresult cuCtxGetApiVersion(CUcontext c, unsigned *version) {
  CU(K_OTHER, INIT);
  NEED(version);
  if (c != nullptr && !context_known(c))
    return INVALID_CONTEXT;
  *version = 3020;
  return OK;
}

SIM_EXPORT CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  CU(K_OTHER, CONTEXT);
  if (least != nullptr)
    *least = 0;
  if (greatest != nullptr)
    *greatest = -5;
  return OK;
}

SIM_EXPORT CUresult cuCtxSetLimit(int limit, size_t value) {
  CU(K_OTHER, CONTEXT);
  Lock lock(world().mu);
  if (ctx->limits.count(limit) == 0)
    return 215;
  ctx->limits[limit] = value;
  return OK;
}

SIM_EXPORT CUresult cuCtxGetLimit(size_t *value, int limit) {
  CU(K_OTHER, CONTEXT);
  NEED(value);
  Lock lock(world().mu);
  if (ctx->limits.count(limit) == 0)
    return 215;
  *value = ctx->limits[limit];
  return OK;
}

SIM_EXPORT CUresult cuCtxSetCacheConfig(int) {
  CU(K_OTHER, CONTEXT);
  return OK;
}

SIM_EXPORT CUresult cuCtxGetCacheConfig(int *config) {
  CU(K_OTHER, CONTEXT);
  NEED(config);
  *config = 0;
  return OK;
}

SIM_EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  CU(K_OTHER, CONTEXT);
  NEED(flags == 0);
  if (!context_known(peer) || peer == ctx)
    return INVALID_CONTEXT;
  Lock lock(world().mu);
  if (peer->device == ctx->device)
    return PEER_UNSUPPORTED;
  return ctx->peers.insert(peer).second ? OK : PEER_ENABLED;
}

SIM_EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  CU(K_OTHER, CONTEXT);
  Lock lock(world().mu);
  return ctx->peers.erase(peer) > 0 ? OK : PEER_NOT_ENABLED;
}

namespace sim {
long programs(const std::string &) { return -1; }
} // namespace sim
