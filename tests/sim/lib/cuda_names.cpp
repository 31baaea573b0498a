// cuda_names.cpp: libcuda's names of errors, and its function for looking up functions.

#include "cuda.h"

#include <dlfcn.h>

using namespace sim;

static const struct {
  int code;
  const char *name, *text;
} errors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {215, "CUDA_ERROR_UNSUPPORTED_LIMIT", "limit is not supported on this architecture"},
    {217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
     "peer access is not supported between these two devices"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {710, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {714, "CUDA_ERROR_HARDWARE_STACK_ERROR", "hardware stack error"},
    {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {902, "CUDA_ERROR_STREAM_CAPTURE_MERGE",
     "operation would result in a merge of separate capture sequences"},
    {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not ended in the same stream as it began"},
    {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
    {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "dependency created on uncaptured work in another stream"},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {907, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
     "the graph update was not performed because it included changes which violated constraints"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

SIM_EXPORT CUresult cuGetErrorName(CUresult code, const char **out) {
  for (auto &e : errors)
    if (e.code == code && out != nullptr) {
      *out = e.name;
      return OK;
    }
  if (out != nullptr)
    *out = nullptr;
  return INVALID_VALUE;
}

SIM_EXPORT CUresult cuGetErrorString(CUresult code, const char **out) {
  for (auto &e : errors)
    if (e.code == code && out != nullptr) {
      *out = e.text;
      return OK;
    }
  if (out != nullptr)
    *out = nullptr;
  return INVALID_VALUE;
}

// The newer form of a function has the suffix _v2 from some version on.
static int newer_from(const std::string &name) {
  if (name == "cuGraphExecUpdate" || name == "cuGetProcAddress")
    return 12000;
  if (name == "cuEventElapsedTime" || name == "cuMemPrefetchAsync")
    return 13000;
  if (name == "cuStreamGetCaptureInfo")
    return 11030;
  return name == "cuDeviceGetUuid" ? 11040 : 3020;
}

SIM_EXPORT CUresult cuGetProcAddress(const char *name, void **out, int version, uint64_t) {
  NEED(name && out);
  *out = nullptr;
  if (version > settings().driver || symbol_hidden(name))
    return NOT_FOUND;
  Dl_info info;
  void *self = dladdr(reinterpret_cast<void *>(&cuGetErrorName), &info)
                   ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD)
                   : nullptr;
  if (self == nullptr)
    return NOT_FOUND;
  std::string n = name;
  if (version >= newer_from(n))
    *out = dlsym(self, (n + "_v2").c_str());
  if (n == "cuGraphInstantiate" && version >= 12000)
    *out = dlsym(self, "cuGraphInstantiateWithFlags");
  if (*out == nullptr)
    *out = dlsym(self, name);
  dlclose(self);
  return *out != nullptr ? OK : NOT_FOUND;
}

SIM_EXPORT CUresult cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags,
                                        int *status) {
  CUresult code = cuGetProcAddress(name, out, version, flags);
  if (status != nullptr)
    *status = code == OK ? 0 : version > settings().driver ? 2 : 1;
  return code;
}
