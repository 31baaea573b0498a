// sim.h: the parts of CUDA's driver API and of NVRTC that the self-test uses, with dlopen and its
// own prototypes, so that it needs no headers of the vendor.

#ifndef SIM_TEST_H
#define SIM_TEST_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t dptr;

#define CUDA_FUNCTIONS(X)                                                                          \
  X(cuInit, (unsigned))                                                                            \
  X(cuDeviceGetCount, (int *))                                                                     \
  X(cuDriverGetVersion, (int *))                                                                   \
  X(cuDevicePrimaryCtxRetain, (void **, int))                                                      \
  X(cuDevicePrimaryCtxRelease_v2, (int))                                                           \
  X(cuDevicePrimaryCtxReset_v2, (int))                                                             \
  X(cuCtxSetCurrent, (void *))                                                                     \
  X(cuCtxSynchronize, (void))                                                                      \
  X(cuCtxEnablePeerAccess, (void *, unsigned))                                                     \
  X(cuMemAlloc_v2, (dptr *, size_t))                                                               \
  X(cuMemFree_v2, (dptr))                                                                          \
  X(cuMemAllocAsync, (dptr *, size_t, void *))                                                     \
  X(cuMemFreeAsync, (dptr, void *))                                                                \
  X(cuMemAllocManaged, (dptr *, size_t, unsigned))                                                 \
  X(cuMemHostAlloc, (void **, size_t, unsigned))                                                   \
  X(cuMemFreeHost, (void *))                                                                       \
  X(cuMemHostRegister_v2, (void *, size_t, unsigned))                                              \
  X(cuMemHostUnregister, (void *))                                                                 \
  X(cuMemGetInfo_v2, (size_t *, size_t *))                                                         \
  X(cuMemcpyHtoD_v2, (dptr, const void *, size_t))                                                 \
  X(cuMemcpyDtoH_v2, (void *, dptr, size_t))                                                       \
  X(cuMemcpyHtoDAsync_v2, (dptr, const void *, size_t, void *))                                    \
  X(cuMemcpyDtoHAsync_v2, (void *, dptr, size_t, void *))                                          \
  X(cuMemcpyDtoDAsync_v2, (dptr, dptr, size_t, void *))                                            \
  X(cuMemcpyPeerAsync, (dptr, void *, dptr, void *, size_t, void *))                               \
  X(cuMemsetD32_v2, (dptr, unsigned, size_t))                                                      \
  X(cuMemsetD32Async, (dptr, unsigned, size_t, void *))                                            \
  X(cuStreamCreate, (void **, unsigned))                                                           \
  X(cuStreamDestroy_v2, (void *))                                                                  \
  X(cuStreamSynchronize, (void *))                                                                 \
  X(cuStreamQuery, (void *))                                                                       \
  X(cuStreamWaitEvent, (void *, void *, unsigned))                                                 \
  X(cuStreamBeginCapture_v2, (void *, int))                                                        \
  X(cuStreamEndCapture, (void *, void **))                                                         \
  X(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long))                            \
  X(cuGraphLaunch, (void *, void *))                                                               \
  X(cuGraphExecUpdate, (void *, void *, void **, int *))                                           \
  X(cuGraphExecDestroy, (void *))                                                                  \
  X(cuGraphDestroy, (void *))                                                                      \
  X(cuEventCreate, (void **, unsigned))                                                            \
  X(cuEventDestroy_v2, (void *))                                                                   \
  X(cuEventRecord, (void *, void *))                                                               \
  X(cuEventQuery, (void *))                                                                        \
  X(cuEventSynchronize, (void *))                                                                  \
  X(cuEventElapsedTime, (float *, void *, void *))                                                 \
  X(cuModuleLoadData, (void **, const void *))                                                     \
  X(cuModuleUnload, (void *))                                                                      \
  X(cuModuleGetFunction, (void **, void *, const char *))                                          \
  X(cuModuleGetGlobal_v2, (dptr *, size_t *, void *, const char *))                                \
  X(cuFuncGetAttribute, (int *, int, void *))                                                      \
  X(cuFuncSetAttribute, (void *, int, int))                                                        \
  X(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                     void *, void **, void **))                                                    \
  X(cuLaunchHostFunc, (void *, void (*)(void *), void *))                                          \
  X(cuGetProcAddress, (const char *, void **, int, uint64_t))

#define NVRTC_FUNCTIONS(X)                                                                         \
  X(nvrtcCreateProgram,                                                                            \
    (void **, const char *, const char *, int, const char *const *, const char *const *))          \
  X(nvrtcCompileProgram, (void *, int, const char *const *))                                       \
  X(nvrtcDestroyProgram, (void **))                                                                \
  X(nvrtcGetPTXSize, (void *, size_t *))                                                           \
  X(nvrtcGetPTX, (void *, char *))                                                                 \
  X(nvrtcGetCUBINSize, (void *, size_t *))                                                         \
  X(nvrtcGetCUBIN, (void *, char *))                                                               \
  X(nvrtcGetProgramLogSize, (void *, size_t *))                                                    \
  X(nvrtcGetProgramLog, (void *, char *))                                                          \
  X(nvrtcAddNameExpression, (void *, const char *))                                                \
  X(nvrtcGetLoweredName, (void *, const char *, const char **))

#define DECLARE(name, params) static int(*name) params;
CUDA_FUNCTIONS(DECLARE)
NVRTC_FUNCTIONS(DECLARE)
#undef DECLARE

static int (*control)(const char *), (*compiler_control)(const char *);
static long (*count)(const char *), (*compiler_count)(const char *);
static int failures;

// WANT compares two numbers and prints the line if they differ.
#define WANT(expression, want)                                                                     \
  do {                                                                                             \
    long long got_ = (long long)(expression), want_ = (long long)(want);                           \
    if (got_ != want_) {                                                                           \
      printf("%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #expression, got_, want_);       \
      failures++;                                                                                  \
    }                                                                                              \
  } while (0)

static void *symbol(void *library, const char *name) {
  void *p = dlsym(library, name);
  if (p == NULL) {
    printf("no %s\n", name);
    exit(1);
  }
  return p;
}

static void *library(const char *directory, const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  void *l = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (l == NULL) {
    printf("%s\n", dlerror());
    exit(1);
  }
  return l;
}

static void open_libraries(const char *directory) {
  void *cuda = library(directory, "libcuda.so.1"), *nvrtc = library(directory, "libnvrtc.so.11.2");
#define RESOLVE(name, params) *(void **)&name = symbol(cuda, #name);
  CUDA_FUNCTIONS(RESOLVE)
#undef RESOLVE
#define RESOLVE(name, params) *(void **)&name = symbol(nvrtc, #name);
  NVRTC_FUNCTIONS(RESOLVE)
#undef RESOLVE
  *(void **)&control = symbol(cuda, "concord_sim_control");
  *(void **)&count = symbol(cuda, "concord_sim_count");
  *(void **)&compiler_control = symbol(nvrtc, "concord_sim_control");
  *(void **)&compiler_count = symbol(nvrtc, "concord_sim_count");
}

#endif
