// api.h declares the parts of the vendor's APIs that the shim uses: of HIP, hipRTC, comgr and
// rocBLAS. The build needs no header of the vendor and links none of its libraries:
// every function is a member of a table that is filled symbol by symbol. Numbers and layouts are
// those of HIP 5 to 7.

#ifndef CONCORD_ROCM_API_H
#define CONCORD_ROCM_API_H

#include <stddef.h>
#include <stdint.h>

typedef int hipError;
typedef int hipDevice;
typedef uint64_t hipDeviceptr; // the vendor's is a pointer, which is passed in the same way
typedef struct ihipStream_t *hipStream;
typedef struct ihipEvent_t *hipEvent;
typedef struct ihipModule_t *hipModule;
typedef struct ihipModuleSymbol_t *hipFunction;
typedef struct ihipGraph *hipGraph;
typedef struct hipGraphExec_st *hipGraphExec;
typedef struct hipGraphNode_st *hipGraphNode;
typedef struct hipUUID {
  unsigned char bytes[16];
} hipUUID;

// The values of hipError_t for which the shim has special code.
enum {
  HIP_OK = 0,
  HIP_INVALID_VALUE = 1,
  HIP_NO_DEVICE = 100,
  HIP_NOT_READY = 600,
  HIP_PEER_ALREADY_ENABLED = 704,
};

// hipDeviceAttribute_t. The numbers have been the same since HIP 5.0.
enum {
  ATTR_CLOCK_RATE = 5,
  ATTR_CONCURRENT_MANAGED = 9,
  ATTR_COOPERATIVE_LAUNCH = 10,
  ATTR_INTEGRATED = 16,
  ATTR_CAPABILITY_MAJOR = 23,
  ATTR_MANAGED_MEMORY = 24,
  ATTR_MAX_BLOCKS_PER_MULTIPROCESSOR = 25,
  ATTR_MAX_BLOCK_DIM_X = 26, // Y and Z follow
  ATTR_MAX_GRID_DIM_X = 29,  // Y and Z follow
  ATTR_MAX_THREADS_PER_BLOCK = 56,
  ATTR_MAX_THREADS_PER_MULTIPROCESSOR = 57,
  ATTR_MEMORY_BUS_WIDTH = 59,
  ATTR_MEMORY_CLOCK_RATE = 60,
  ATTR_CAPABILITY_MINOR = 61,
  ATTR_MULTIPROCESSORS = 63,
  ATTR_REGISTERS_PER_MULTIPROCESSOR = 72,
  ATTR_SHARED_PER_BLOCK = 74,
  ATTR_SHARED_PER_MULTIPROCESSOR = 76,
  ATTR_WARP_SIZE = 87,
  ATTR_MEMORY_POOLS = 88,
  ATTR_AMD_SHARED_PER_MULTIPROCESSOR = 10002, // the number in HIP 5 instead of 76
};

// hipFunction_attribute.
enum {
  FUNC_MAX_THREADS = 0,
  FUNC_SHARED_BYTES = 1,
  FUNC_CONST_BYTES = 2,
  FUNC_LOCAL_BYTES = 3,
  FUNC_REGISTERS = 4,
};

// Flags of single functions.
enum {
  HOST_PORTABLE = 1,   // hipHostMalloc
  HOST_DEVICEMAP = 2,  // hipHostMalloc
  ATTACH_GLOBAL = 1,   // hipMallocManaged
  NON_BLOCKING = 1,    // hipStreamCreateWithPriority
  DISABLE_TIMING = 2,  // hipEventCreateWithFlags
  CAPTURE_RELAXED = 2, // hipStreamBeginCapture
  DEVICE_CPU = -1,     // hipMemPrefetchAsync
};

// The symbols, as X(member, names, result, parameters). The names are tried in order: the newest
// version of a function first, as the vendor's header does it by macros.
#define HIP_REQUIRED(X)                                                                            \
  X(hipInit, "hipInit", hipError, (unsigned flags))                                                \
  X(hipDriverGetVersion, "hipDriverGetVersion", hipError, (int *version))                          \
  X(hipGetErrorName, "hipGetErrorName", const char *, (int code))                                  \
  X(hipGetErrorString, "hipGetErrorString", const char *, (int code))                              \
  X(hipGetDeviceCount, "hipGetDeviceCount", hipError, (int *count))                                \
  X(hipDeviceGet, "hipDeviceGet", hipError, (hipDevice * device, int ordinal))                     \
  X(hipSetDevice, "hipSetDevice", hipError, (int device))                                          \
  X(hipDeviceReset, "hipDeviceReset", hipError, (void))                                            \
  X(hipDeviceGetAttribute, "hipDeviceGetAttribute", hipError,                                      \
    (int *value, int attribute, int device))                                                       \
  X(hipDeviceGetName, "hipDeviceGetName", hipError, (char *name, int bytes, int device))           \
  X(hipDeviceTotalMem, "hipDeviceTotalMem", hipError, (size_t * bytes, int device))                \
  X(hipMemGetInfo, "hipMemGetInfo", hipError, (size_t * free, size_t * total))                     \
  X(hipMalloc, "hipMalloc", hipError, (hipDeviceptr * address, size_t bytes))                      \
  X(hipFree, "hipFree", hipError, (hipDeviceptr address))                                          \
  X(hipHostMalloc, "hipHostMalloc", hipError, (void **host, size_t bytes, unsigned flags))         \
  X(hipHostFree, "hipHostFree", hipError, (void *host))                                            \
  X(hipHostGetDevicePointer, "hipHostGetDevicePointer", hipError,                                  \
    (hipDeviceptr * address, void *host, unsigned flags))                                          \
  X(hipDeviceGetStreamPriorityRange, "hipDeviceGetStreamPriorityRange", hipError,                  \
    (int *least, int *greatest))                                                                   \
  X(hipStreamCreateWithPriority, "hipStreamCreateWithPriority", hipError,                          \
    (hipStream * stream, unsigned flags, int priority))                                            \
  X(hipStreamDestroy, "hipStreamDestroy", hipError, (hipStream stream))                            \
  X(hipStreamQuery, "hipStreamQuery", hipError, (hipStream stream))                                \
  X(hipStreamSynchronize, "hipStreamSynchronize", hipError, (hipStream stream))                    \
  X(hipStreamWaitEvent, "hipStreamWaitEvent", hipError,                                            \
    (hipStream stream, hipEvent event, unsigned flags))                                            \
  X(hipEventCreateWithFlags, "hipEventCreateWithFlags", hipError,                                  \
    (hipEvent * event, unsigned flags))                                                            \
  X(hipEventRecord, "hipEventRecord", hipError, (hipEvent event, hipStream stream))                \
  X(hipEventQuery, "hipEventQuery", hipError, (hipEvent event))                                    \
  X(hipEventSynchronize, "hipEventSynchronize", hipError, (hipEvent event))                        \
  X(hipEventElapsedTime, "hipEventElapsedTime", hipError,                                          \
    (float *milliseconds, hipEvent from, hipEvent to))                                             \
  X(hipEventDestroy, "hipEventDestroy", hipError, (hipEvent event))                                \
  X(hipMemcpyHtoDAsync, "hipMemcpyHtoDAsync", hipError,                                            \
    (hipDeviceptr to, const void *from, size_t bytes, hipStream stream))                           \
  X(hipMemcpyDtoHAsync, "hipMemcpyDtoHAsync", hipError,                                            \
    (void *to, hipDeviceptr from, size_t bytes, hipStream stream))                                 \
  X(hipMemcpyDtoDAsync, "hipMemcpyDtoDAsync", hipError,                                            \
    (hipDeviceptr to, hipDeviceptr from, size_t bytes, hipStream stream))                          \
  X(hipMemsetD8Async, "hipMemsetD8Async", hipError,                                                \
    (hipDeviceptr to, unsigned char value, size_t count, hipStream stream))                        \
  X(hipMemsetD16Async, "hipMemsetD16Async", hipError,                                              \
    (hipDeviceptr to, unsigned short value, size_t count, hipStream stream))                       \
  X(hipMemsetD32Async, "hipMemsetD32Async", hipError,                                              \
    (hipDeviceptr to, int value, size_t count, hipStream stream))                                  \
  X(hipModuleLoadData, "hipModuleLoadData", hipError, (hipModule * module, const void *image))     \
  X(hipModuleUnload, "hipModuleUnload", hipError, (hipModule module))                              \
  X(hipModuleGetFunction, "hipModuleGetFunction", hipError,                                        \
    (hipFunction * function, hipModule module, const char *name))                                  \
  X(hipFuncGetAttribute, "hipFuncGetAttribute", hipError,                                          \
    (int *value, int attribute, hipFunction function))                                             \
  X(hipModuleLaunchKernel, "hipModuleLaunchKernel", hipError,                                      \
    (hipFunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,        \
     unsigned bz, unsigned shared, hipStream stream, void **parameters, void **extra))

// Functions that a version of HIP may lack. Each is checked before it is called.
#define HIP_OPTIONAL(X)                                                                            \
  X(hipRuntimeGetVersion, "hipRuntimeGetVersion", hipError, (int *version))                        \
  X(hipDeviceGetUuid, "hipDeviceGetUuid", hipError, (hipUUID * uuid, int device))                  \
  X(hipDeviceGetPCIBusId, "hipDeviceGetPCIBusId", hipError, (char *text, int bytes, int device))   \
  X(hipGetDeviceProperties, "hipGetDevicePropertiesR0600 hipGetDeviceProperties", hipError,        \
    (void *properties, int device))                                                                \
  X(hipMallocManaged, "hipMallocManaged", hipError,                                                \
    (hipDeviceptr * address, size_t bytes, unsigned flags))                                        \
  X(hipMallocAsync, "hipMallocAsync", hipError,                                                    \
    (hipDeviceptr * address, size_t bytes, hipStream stream))                                      \
  X(hipFreeAsync, "hipFreeAsync", hipError, (hipDeviceptr address, hipStream stream))              \
  X(hipMemPrefetchAsync, "hipMemPrefetchAsync", hipError,                                          \
    (hipDeviceptr address, size_t bytes, int device, hipStream stream))                            \
  X(hipMemcpyPeerAsync, "hipMemcpyPeerAsync", hipError,                                            \
    (hipDeviceptr to, int to_device, hipDeviceptr from, int from_device, size_t bytes,             \
     hipStream stream))                                                                            \
  X(hipDeviceCanAccessPeer, "hipDeviceCanAccessPeer", hipError, (int *can, int device, int peer))  \
  X(hipDeviceEnablePeerAccess, "hipDeviceEnablePeerAccess", hipError, (int peer, unsigned flags))  \
  X(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor,                                            \
    "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", hipError,                                \
    (int *groups, hipFunction function, int group, size_t dynamic))                                \
  X(hipModuleOccupancyMaxPotentialBlockSize, "hipModuleOccupancyMaxPotentialBlockSize", hipError,  \
    (int *grid, int *group, hipFunction function, size_t dynamic, int limit))                      \
  X(hipStreamBeginCapture, "hipStreamBeginCapture", hipError, (hipStream stream, int mode))        \
  X(hipStreamEndCapture, "hipStreamEndCapture", hipError, (hipStream stream, hipGraph * graph))    \
  X(hipGraphInstantiateWithFlags, "hipGraphInstantiateWithFlags", hipError,                        \
    (hipGraphExec * exec, hipGraph graph, unsigned long long flags))                               \
  X(hipGraphExecUpdate, "hipGraphExecUpdate", hipError,                                            \
    (hipGraphExec exec, hipGraph graph, hipGraphNode * node, int *result))                         \
  X(hipGraphLaunch, "hipGraphLaunch", hipError, (hipGraphExec exec, hipStream stream))             \
  X(hipGraphExecDestroy, "hipGraphExecDestroy", hipError, (hipGraphExec exec))                     \
  X(hipGraphDestroy, "hipGraphDestroy", hipError, (hipGraph graph))

// -- hipRTC --

typedef struct _hiprtcProgram *hiprtcProgram;

enum {
  HIPRTC_OK = 0,
  HIPRTC_OUT_OF_MEMORY = 1,
  HIPRTC_INVALID_INPUT = 3,
  HIPRTC_INVALID_OPTION = 5,
  HIPRTC_COMPILATION = 6,
};

#define HIPRTC_REQUIRED(X)                                                                         \
  X(hiprtcGetErrorString, "hiprtcGetErrorString", const char *, (int code))                        \
  X(hiprtcVersion, "hiprtcVersion", int, (int *major, int *minor))                                 \
  X(hiprtcCreateProgram, "hiprtcCreateProgram", int,                                               \
    (hiprtcProgram * program, const char *source, const char *name, int headers,                   \
     const char *const *texts, const char *const *names))                                          \
  X(hiprtcDestroyProgram, "hiprtcDestroyProgram", int, (hiprtcProgram * program))                  \
  X(hiprtcCompileProgram, "hiprtcCompileProgram", int,                                             \
    (hiprtcProgram program, int count, const char *const *options))                                \
  X(hiprtcGetProgramLogSize, "hiprtcGetProgramLogSize", int,                                       \
    (hiprtcProgram program, size_t * bytes))                                                       \
  X(hiprtcGetProgramLog, "hiprtcGetProgramLog", int, (hiprtcProgram program, char *log))           \
  X(hiprtcGetCodeSize, "hiprtcGetCodeSize", int, (hiprtcProgram program, size_t * bytes))          \
  X(hiprtcGetCode, "hiprtcGetCode", int, (hiprtcProgram program, char *code))

// -- comgr, which hipRTC compiles with --

typedef struct comgrAction { // passed by value
  uint64_t handle;
} comgrAction;

enum { COMGR_OK = 0 };

#define COMGR_REQUIRED(X)                                                                          \
  X(amd_comgr_get_isa_count, "amd_comgr_get_isa_count", int, (size_t * count))                     \
  X(amd_comgr_get_isa_name, "amd_comgr_get_isa_name", int, (size_t index, const char **name))      \
  X(amd_comgr_create_action_info, "amd_comgr_create_action_info", int, (comgrAction * action))     \
  X(amd_comgr_destroy_action_info, "amd_comgr_destroy_action_info", int, (comgrAction action))     \
  X(amd_comgr_action_info_set_isa_name, "amd_comgr_action_info_set_isa_name", int,                 \
    (comgrAction action, const char *name))

// -- rocBLAS --

typedef struct _rocblas_handle *rocblasHandle;

enum {
  ROCBLAS_OK = 0,
  ROCBLAS_NOT_IMPLEMENTED = 2,
  ROCBLAS_INVALID_SIZE = 4,
  ROCBLAS_MEMORY_ERROR = 5,
  ROCBLAS_INTERNAL_ERROR = 6,
  ROCBLAS_INVALID_VALUE = 11,
  ROCBLAS_ARCH_MISMATCH = 15,
  ROCBLAS_OP_N = 111,
  ROCBLAS_OP_T = 112,
  ROCBLAS_POINTER_HOST = 0,
  ROCBLAS_R_16F = 150,
  ROCBLAS_R_32F = 151,
  ROCBLAS_STANDARD = 0,
};

#define BLAS_REQUIRED(X)                                                                           \
  X(rocblas_create_handle, "rocblas_create_handle", int, (rocblasHandle * handle))                 \
  X(rocblas_destroy_handle, "rocblas_destroy_handle", int, (rocblasHandle handle))                 \
  X(rocblas_set_stream, "rocblas_set_stream", int, (rocblasHandle handle, hipStream stream))       \
  X(rocblas_set_pointer_mode, "rocblas_set_pointer_mode", int, (rocblasHandle handle, int mode))   \
  X(rocblas_sgemm, "rocblas_sgemm", int,                                                           \
    (rocblasHandle handle, int ta, int tb, int m, int n, int k, const float *alpha,                \
     const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc))      \
  X(rocblas_dgemm, "rocblas_dgemm", int,                                                           \
    (rocblasHandle handle, int ta, int tb, int m, int n, int k, const double *alpha,               \
     const double *a, int lda, const double *b, int ldb, const double *beta, double *c, int ldc))

#define BLAS_OPTIONAL(X)                                                                           \
  X(rocblas_get_version_string, "rocblas_get_version_string", int, (char *text, size_t bytes))     \
  X(rocblas_gemm_ex, "rocblas_gemm_ex", int,                                                       \
    (rocblasHandle handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a,  \
     int a_type, int lda, const void *b, int b_type, int ldb, const void *beta, const void *c,     \
     int c_type, int ldc, void *d, int d_type, int ldd, int compute_type, int algorithm,           \
     int32_t solution, uint32_t flags))

#define MEMBER(member, names, result, params) result(*member) params;
struct driver_api {
  HIP_REQUIRED(MEMBER)
  HIP_OPTIONAL(MEMBER)
};
struct hiprtc_api {
  HIPRTC_REQUIRED(MEMBER)
};
struct comgr_api {
  COMGR_REQUIRED(MEMBER)
};
struct blas_api {
  BLAS_REQUIRED(MEMBER)
  BLAS_OPTIONAL(MEMBER)
};
#undef MEMBER

#endif
