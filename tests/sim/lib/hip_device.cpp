// hip_device.cpp: HIP's devices and errors.

#include "hip.h"

#include <cstdio>
#include <cstring>

using namespace sim;

namespace {

thread_local int device_of_thread = 0;
thread_local int last_error = 0;

bool accepts(const std::string &target, bool) {
  return target.substr(0, target.find(':')) == hip_arch().substr(0, hip_arch().find(':'));
}

// setup runs once, before any other function of the library.
bool setup() {
  image_accepts = accepts;
  shared_plain = 64 << 10;
  contexts_stay = true;
  return true;
}

} // namespace

std::string hip_arch() {
  int n = settings().arch; // 80, CUDA's default, stands for HIP's default
  return n == 80 ? "gfx90a:sramecc+:xnack-" : "gfx" + std::to_string(n);
}

int hip_device() { return device_of_thread; }
void hip_device_set(int device) { device_of_thread = device; }

hipError_t hip_keep(hipError_t code) {
  if (code != OK && code != NOT_READY)
    last_error = code;
  return code;
}

Enter::Enter(Kind kind, bool device) : code(call(kind)), context(nullptr) {
  static const bool ready = setup();
  (void)ready;
  if (code == OK && !world().initialized)
    code = init();
  if (!device || !world().initialized)
    return;
  if (!device_ok(device_of_thread)) {
    if (code == OK)
      code = device_count() == 0 ? NO_DEVICE : INVALID_DEVICE;
    return;
  }
  {
    // The first call on a device makes its context; it stays until a reset.
    Lock lock(world().mu);
    auto &all = world().primaries;
    if (static_cast<size_t>(device_of_thread) < all.size() &&
        all[static_cast<size_t>(device_of_thread)]->alive)
      context = all[static_cast<size_t>(device_of_thread)];
  }
  if (code != OK)
    return;
  if (context == nullptr)
    code = primary_retain(device_of_thread, &context);
  if (code == OK)
    code = context->sticky;
}

SIM_EXPORT hipError_t hipInit(unsigned flags) {
  if (int code = call(K_OTHER))
    return hip_keep(code);
  NEED(flags == 0);
  return hip_keep(init());
}

SIM_EXPORT hipError_t hipDriverGetVersion(int *version) {
  NEED(version);
  *version = settings().driver == 12020 ? 50221153 : settings().driver;
  return OK;
}

SIM_EXPORT hipError_t hipRuntimeGetVersion(int *version) { return hipDriverGetVersion(version); }

SIM_EXPORT hipError_t hipGetLastError() {
  int code = last_error;
  last_error = OK;
  return code;
}

SIM_EXPORT hipError_t hipPeekAtLastError() { return last_error; }

SIM_EXPORT hipError_t hipGetDeviceCount(int *count) {
  HIP_ANY(K_OTHER);
  NEED(count);
  *count = device_count();
  return *count == 0 ? hip_keep(NO_DEVICE) : static_cast<int>(OK);
}

SIM_EXPORT hipError_t hipDeviceGet(hipDevice_t *device, int ordinal) {
  HIP_ANY(K_OTHER);
  NEED(device);
  DEVICE(ordinal);
  *device = ordinal;
  return OK;
}

SIM_EXPORT hipError_t hipSetDevice(int d) {
  Enter enter(K_CONTEXT, false);
  if (enter.code != OK && enter.code != code_lost) // a lost device is not reported here
    return hip_keep(enter.code);
  DEVICE(d);
  hip_device_set(d);
  return OK;
}

SIM_EXPORT hipError_t hipGetDevice(int *d) {
  HIP_ANY(K_OTHER);
  NEED(d);
  *d = hip_device();
  return OK;
}

SIM_EXPORT hipError_t hipDeviceReset() { return primary_reset(hip_device()); }

SIM_EXPORT hipError_t hipDeviceSynchronize() {
  HIP(K_SYNC);
  Lock lock(world().mu);
  if (int code = capture_forbids(lock))
    return hip_keep(code);
  context_wait(lock, ctx);
  return hip_keep(context_end(lock, ctx, OK));
}

SIM_EXPORT hipError_t hipDeviceGetName(char *name, int len, hipDevice_t d) {
  HIP_ANY(K_OTHER);
  NEED(name && len > 0);
  DEVICE(d);
  snprintf(name, static_cast<size_t>(len), "Concord Simulated HIP Device %d", d);
  return OK;
}

SIM_EXPORT hipError_t hipDeviceGetUuid(hipUUID *uuid, hipDevice_t d) {
  HIP_ANY(K_OTHER);
  NEED(uuid);
  DEVICE(d);
  memcpy(uuid->bytes, "concord-sim-hip-", 16);
  uuid->bytes[15] = static_cast<char>(d);
  return OK;
}

SIM_EXPORT hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t d) {
  HIP_ANY(K_OTHER);
  NEED(bytes);
  DEVICE(d);
  size_t unused;
  memory_info(d, &unused, bytes);
  return OK;
}

SIM_EXPORT hipError_t hipDeviceGetPCIBusId(char *text, int len, int d) {
  HIP_ANY(K_OTHER);
  NEED(text && len > 0);
  DEVICE(d);
  snprintf(text, static_cast<size_t>(len), "0000:%02x:00.0", d + 0x41);
  return OK;
}

static int warp() { return hip_arch().compare(0, 5, "gfx10") == 0 ? 32 : 64; }

SIM_EXPORT hipError_t hipDeviceGetAttribute(int *value, int n, int d) {
  using namespace limits;
  static const std::map<int, int> table = {
      {2, 2},
      {3, 1},
      {4, 1},
      {5, 1700000},
      {8, 1},
      {9, 1},
      {10, 1},
      {19, 8 << 20},
      {23, 9},
      {24, 1},
      {25, blocks_sm},
      {26, static_cast<int>(block[0])},
      {27, static_cast<int>(block[1])},
      {28, static_cast<int>(block[1])},
      {29, static_cast<int>(grid[0])},
      {30, static_cast<int>(grid[1])},
      {31, static_cast<int>(grid[2])},
      {56, static_cast<int>(threads)},
      {57, threads_sm},
      {58, 0x7fffffff},
      {59, 4096},
      {60, 1600000},
      {61, 0},
      {63, multiprocessors},
      {71, registers},
      {72, registers},
      {74, 64 << 10},
      {76, 64 << 10},
      {78, 1},
      {83, 65536},
      {85, 1},
      {88, 1},
      {10002, 64 << 10},
  };
  HIP_ANY(K_OTHER);
  NEED(value);
  DEVICE(d);
  auto it = table.find(n);
  *value = n == 87 ? warp() : n == 67 ? d + 0x41 : it == table.end() ? 0 : it->second;
  return OK;
}

// hipDeviceProp_t of HIP 5.
struct hipDeviceProp_t {
  char name[256];
  size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate,
      memoryClockRate, memoryBusWidth;
  size_t totalConstMem;
  int major, minor, multiProcessorCount, l2CacheSize, maxThreadsPerMultiProcessor, computeMode,
      clockInstructionRate;
  unsigned arch;
  int concurrentKernels, pciDomainID, pciBusID, pciDeviceID;
  size_t maxSharedMemoryPerMultiProcessor;
  int isMultiGpuBoard, canMapHostMemory, gcnArch;
  char gcnArchName[256];
  int integrated, cooperativeLaunch, cooperativeMultiDeviceLaunch, maxTexture[7];
  unsigned *hdp[2];
  size_t memPitch, textureAlignment, texturePitchAlignment;
  int kernelExecTimeoutEnabled, ECCEnabled, tccDriver, unmatched[4], isLargeBar, asicRevision,
      managedMemory, directManagedMemAccessFromHost, concurrentManagedAccess, pageableMemoryAccess,
      pageableMemoryAccessUsesHostPageTables;
};

SIM_EXPORT hipError_t hipGetDeviceProperties(hipDeviceProp_t *p, int d) {
  HIP_ANY(K_OTHER);
  NEED(p);
  DEVICE(d);
  memset(p, 0, sizeof *p);
  snprintf(p->name, sizeof p->name, "Concord Simulated HIP Device %d", d);
  size_t unused;
  memory_info(d, &unused, &p->totalGlobalMem);
  p->sharedMemPerBlock = p->maxSharedMemoryPerMultiProcessor = 64 << 10;
  p->regsPerBlock = limits::registers;
  p->warpSize = warp();
  p->maxThreadsPerBlock = limits::threads;
  for (int i = 0; i < 3; i++) {
    p->maxThreadsDim[i] = static_cast<int>(limits::threads);
    p->maxGridSize[i] = static_cast<int>(limits::grid[i]);
  }
  p->major = 9;
  p->multiProcessorCount = limits::multiprocessors;
  p->maxThreadsPerMultiProcessor = limits::threads_sm;
  p->pciBusID = d + 0x41;
  p->managedMemory = p->cooperativeLaunch = p->canMapHostMemory = p->concurrentKernels = 1;
  snprintf(p->gcnArchName, sizeof p->gcnArchName, "%s", hip_arch().c_str());
  return OK;
}

SIM_EXPORT hipError_t hipDeviceCanAccessPeer(int *can, int d, int peer) {
  HIP_ANY(K_OTHER);
  NEED(can);
  DEVICE(d);
  DEVICE(peer);
  *can = d != peer;
  return OK;
}

SIM_EXPORT hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  HIP(K_OTHER);
  NEED(flags == 0);
  DEVICE(peer);
  if (peer == ctx->device)
    return hip_keep(INVALID_DEVICE);
  Lock lock(world().mu);
  auto &all = world().primaries;
  Context *other =
      static_cast<size_t>(peer) < all.size() ? all[static_cast<size_t>(peer)] : nullptr;
  return hip_keep(ctx->peers.insert(other).second ? OK : PEER_ENABLED);
}

SIM_EXPORT hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest) {
  HIP(K_OTHER);
  if (least != nullptr)
    *least = 1;
  if (greatest != nullptr)
    *greatest = -1;
  return OK;
}

static const struct {
  int code;
  const char *name, *text;
} errors[] = {
    {0, "hipSuccess", "no error"},
    {1, "hipErrorInvalidValue", "invalid argument"},
    {2, "hipErrorOutOfMemory", "out of memory"},
    {3, "hipErrorNotInitialized", "initialization error"},
    {100, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {101, "hipErrorInvalidDevice", "invalid device ordinal"},
    {200, "hipErrorInvalidImage", "device kernel image is invalid"},
    {201, "hipErrorInvalidContext", "invalid device context"},
    {209, "hipErrorNoBinaryForGpu", "no kernel image is available for execution on the device"},
    {214, "hipErrorECCNotCorrectable", "uncorrectable ECC error encountered"},
    {217, "hipErrorPeerAccessUnsupported",
     "peer access is not supported between these two devices"},
    {400, "hipErrorInvalidHandle", "invalid resource handle"},
    {500, "hipErrorNotFound", "named symbol not found"},
    {600, "hipErrorNotReady", "device not ready"},
    {700, "hipErrorIllegalAddress", "an illegal memory access was encountered"},
    {701, "hipErrorLaunchOutOfResources", "too many resources requested for launch"},
    {704, "hipErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {705, "hipErrorPeerAccessNotEnabled", "peer access has not been enabled"},
    {710, "hipErrorAssert", "device-side assert triggered"},
    {712, "hipErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {713, "hipErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {719, "hipErrorLaunchFailure", "unspecified launch failure"},
    {720, "hipErrorCooperativeLaunchTooLarge", "too many blocks in cooperative launch"},
    {801, "hipErrorNotSupported", "operation not supported"},
    {900, "hipErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
    {901, "hipErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {902, "hipErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {903, "hipErrorStreamCaptureUnmatched", "capture was not ended in the same stream as it began"},
    {904, "hipErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {905, "hipErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {906, "hipErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {907, "hipErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {910, "hipErrorGraphExecUpdateFailure", "the graph update was not performed"},
    {999, "hipErrorUnknown", "unknown error"},
};

SIM_EXPORT const char *hipGetErrorName(hipError_t code) {
  for (auto &e : errors)
    if (e.code == code)
      return e.name;
  return "hipErrorUnknown";
}

SIM_EXPORT const char *hipGetErrorString(hipError_t code) {
  for (auto &e : errors)
    if (e.code == code)
      return e.text;
  return "unknown error";
}
