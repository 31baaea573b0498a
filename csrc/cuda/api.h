// api.h declares the parts of the vendor's APIs that the shim uses: of the CUDA driver API, NVRTC,
// the PTX compiler and cuBLAS. The build needs no header of the vendor and links none of its
// libraries: every function is a member of a table that is filled symbol by symbol.
// Numbers and layouts are those of the vendor's stable ABI.

#ifndef CONCORD_CUDA_API_H
#define CONCORD_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUuuid {
  unsigned char bytes[16];
} CUuuid;
typedef struct CUupdate { // CUgraphExecUpdateResultInfo
  int result;
  CUgraphNode node, from;
} CUupdate;

typedef struct CUplace { // CUmemLocation, passed by value
  int type, id;
} CUplace;

// The values of CUresult for which the shim has special code.
enum {
  CU_OK = 0,
  CU_INVALID_VALUE = 1,
  CU_NOT_READY = 600,
  CU_PEER_ALREADY_ENABLED = 704,
};

// CUdevice_attribute.
enum {
  ATTR_MAX_THREADS_PER_BLOCK = 1,
  ATTR_MAX_BLOCK_DIM_X = 2, // Y and Z follow
  ATTR_MAX_GRID_DIM_X = 5,  // Y and Z follow
  ATTR_SHARED_PER_BLOCK = 8,
  ATTR_WARP_SIZE = 10,
  ATTR_CLOCK_RATE = 13,
  ATTR_MULTIPROCESSORS = 16,
  ATTR_INTEGRATED = 18,
  ATTR_MEMORY_CLOCK_RATE = 36,
  ATTR_MEMORY_BUS_WIDTH = 37,
  ATTR_MAX_THREADS_PER_MULTIPROCESSOR = 39,
  ATTR_CAPABILITY_MAJOR = 75,
  ATTR_CAPABILITY_MINOR = 76,
  ATTR_SHARED_PER_MULTIPROCESSOR = 81,
  ATTR_REGISTERS_PER_MULTIPROCESSOR = 82,
  ATTR_MANAGED_MEMORY = 83,
  ATTR_CONCURRENT_MANAGED = 89,
  ATTR_COOPERATIVE_LAUNCH = 95,
  ATTR_SHARED_PER_BLOCK_OPTIN = 97,
  ATTR_MAX_BLOCKS_PER_MULTIPROCESSOR = 106,
  ATTR_MEMORY_POOLS = 115,
};

// CUfunction_attribute.
enum {
  FUNC_MAX_THREADS = 0,
  FUNC_SHARED_BYTES = 1,
  FUNC_CONST_BYTES = 2,
  FUNC_LOCAL_BYTES = 3,
  FUNC_REGISTERS = 4,
  FUNC_MAX_DYNAMIC_SHARED = 8,
};

// CUjit_option.
enum {
  JIT_INFO_LOG = 3,
  JIT_INFO_LOG_BYTES = 4,
  JIT_ERROR_LOG = 5,
  JIT_ERROR_LOG_BYTES = 6,
};

// Flags of single functions.
enum {
  HOST_PORTABLE = 1,   // cuMemHostAlloc
  HOST_DEVICEMAP = 2,  // cuMemHostAlloc
  ATTACH_GLOBAL = 1,   // cuMemAllocManaged
  NON_BLOCKING = 1,    // cuStreamCreateWithPriority
  DISABLE_TIMING = 2,  // cuEventCreate
  CAPTURE_RELAXED = 2, // cuStreamBeginCapture
  DEVICE_CPU = -1,     // cuMemPrefetchAsync
  PLACE_DEVICE = 1,    // CUplace.type
  PLACE_HOST = 2,
};

// The symbols, as X(member, names, result, parameters). The names are tried in order, the newest
// version of a function first; the vendor's header selects it by macros.
#define CUDA_REQUIRED(X)                                                                           \
  X(cuInit, "cuInit", CUresult, (unsigned flags))                                                  \
  X(cuDriverGetVersion, "cuDriverGetVersion", CUresult, (int *version))                            \
  X(cuGetErrorName, "cuGetErrorName", CUresult, (CUresult code, const char **text))                \
  X(cuGetErrorString, "cuGetErrorString", CUresult, (CUresult code, const char **text))            \
  X(cuDeviceGetCount, "cuDeviceGetCount", CUresult, (int *count))                                  \
  X(cuDeviceGet, "cuDeviceGet", CUresult, (CUdevice * device, int ordinal))                        \
  X(cuDeviceGetName, "cuDeviceGetName", CUresult, (char *name, int bytes, CUdevice device))        \
  X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", CUresult, (size_t * bytes, CUdevice device))          \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute", CUresult,                                        \
    (int *value, int attribute, CUdevice device))                                                  \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", CUresult,                                \
    (CUcontext * context, CUdevice device))                                                        \
  X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2 cuDevicePrimaryCtxRelease", CUresult, \
    (CUdevice device))                                                                             \
  X(cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset_v2 cuDevicePrimaryCtxReset", CUresult,       \
    (CUdevice device))                                                                             \
  X(cuCtxSetCurrent, "cuCtxSetCurrent", CUresult, (CUcontext context))                             \
  X(cuMemGetInfo, "cuMemGetInfo_v2", CUresult, (size_t * free, size_t * total))                    \
  X(cuMemAlloc, "cuMemAlloc_v2", CUresult, (CUdeviceptr * address, size_t bytes))                  \
  X(cuMemFree, "cuMemFree_v2", CUresult, (CUdeviceptr address))                                    \
  X(cuMemHostAlloc, "cuMemHostAlloc", CUresult, (void **host, size_t bytes, unsigned flags))       \
  X(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2", CUresult,                           \
    (CUdeviceptr * address, void *host, unsigned flags))                                           \
  X(cuMemFreeHost, "cuMemFreeHost", CUresult, (void *host))                                        \
  X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", CUresult,                                           \
    (CUdeviceptr dst, const void *src, size_t bytes, CUstream stream))                             \
  X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", CUresult,                                           \
    (void *dst, CUdeviceptr src, size_t bytes, CUstream stream))                                   \
  X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", CUresult,                                           \
    (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream))                             \
  X(cuMemsetD8Async, "cuMemsetD8Async", CUresult,                                                  \
    (CUdeviceptr dst, unsigned char value, size_t count, CUstream stream))                         \
  X(cuMemsetD16Async, "cuMemsetD16Async", CUresult,                                                \
    (CUdeviceptr dst, unsigned short value, size_t count, CUstream stream))                        \
  X(cuMemsetD32Async, "cuMemsetD32Async", CUresult,                                                \
    (CUdeviceptr dst, unsigned value, size_t count, CUstream stream))                              \
  X(cuModuleLoadDataEx, "cuModuleLoadDataEx", CUresult,                                            \
    (CUmodule * module, const void *image, unsigned count, int *options, void **values))           \
  X(cuModuleUnload, "cuModuleUnload", CUresult, (CUmodule module))                                 \
  X(cuModuleGetFunction, "cuModuleGetFunction", CUresult,                                          \
    (CUfunction * function, CUmodule module, const char *name))                                    \
  X(cuFuncGetAttribute, "cuFuncGetAttribute", CUresult,                                            \
    (int *value, int attribute, CUfunction function))                                              \
  X(cuLaunchKernel, "cuLaunchKernel", CUresult,                                                    \
    (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,         \
     unsigned bz, unsigned shared, CUstream stream, void **params, void **extra))                  \
  X(cuStreamCreateWithPriority, "cuStreamCreateWithPriority", CUresult,                            \
    (CUstream * stream, unsigned flags, int priority))                                             \
  X(cuStreamDestroy, "cuStreamDestroy_v2", CUresult, (CUstream stream))                            \
  X(cuStreamQuery, "cuStreamQuery", CUresult, (CUstream stream))                                   \
  X(cuStreamSynchronize, "cuStreamSynchronize", CUresult, (CUstream stream))                       \
  X(cuStreamWaitEvent, "cuStreamWaitEvent", CUresult,                                              \
    (CUstream stream, CUevent event, unsigned flags))                                              \
  X(cuEventCreate, "cuEventCreate", CUresult, (CUevent * event, unsigned flags))                   \
  X(cuEventDestroy, "cuEventDestroy_v2", CUresult, (CUevent event))                                \
  X(cuEventRecord, "cuEventRecord", CUresult, (CUevent event, CUstream stream))                    \
  X(cuEventQuery, "cuEventQuery", CUresult, (CUevent event))                                       \
  X(cuEventSynchronize, "cuEventSynchronize", CUresult, (CUevent event))                           \
  X(cuEventElapsedTime, "cuEventElapsedTime_v2 cuEventElapsedTime", CUresult,                      \
    (float *ms, CUevent from, CUevent to))

// Functions that an old driver may lack. Each is checked before it is called.
#define CUDA_OPTIONAL(X)                                                                           \
  X(cuDeviceGetUuid, "cuDeviceGetUuid_v2 cuDeviceGetUuid", CUresult,                               \
    (CUuuid * uuid, CUdevice device))                                                              \
  X(cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", CUresult, (char *id, int bytes, CUdevice device))  \
  X(cuCtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange", CUresult,                          \
    (int *lowest, int *highest))                                                                   \
  X(cuMemAllocManaged, "cuMemAllocManaged", CUresult,                                              \
    (CUdeviceptr * address, size_t bytes, unsigned flags))                                         \
  X(cuMemAllocAsync, "cuMemAllocAsync", CUresult,                                                  \
    (CUdeviceptr * address, size_t bytes, CUstream stream))                                        \
  X(cuMemFreeAsync, "cuMemFreeAsync", CUresult, (CUdeviceptr address, CUstream stream))            \
  X(cuMemPrefetchAsync_v2, "cuMemPrefetchAsync_v2", CUresult,                                      \
    (CUdeviceptr address, size_t bytes, CUplace to, unsigned flags, CUstream stream))              \
  X(cuMemPrefetchAsync, "cuMemPrefetchAsync", CUresult,                                            \
    (CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream))                         \
  X(cuMemcpyPeerAsync, "cuMemcpyPeerAsync", CUresult,                                              \
    (CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t bytes,                 \
     CUstream stream))                                                                             \
  X(cuDeviceCanAccessPeer, "cuDeviceCanAccessPeer", CUresult,                                      \
    (int *can, CUdevice device, CUdevice peer))                                                    \
  X(cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess", CUresult, (CUcontext peer, unsigned flags))    \
  X(cuMemsetD2D8Async, "cuMemsetD2D8Async", CUresult,                                              \
    (CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height,              \
     CUstream stream))                                                                             \
  X(cuMemsetD2D16Async, "cuMemsetD2D16Async", CUresult,                                            \
    (CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height,             \
     CUstream stream))                                                                             \
  X(cuMemsetD2D32Async, "cuMemsetD2D32Async", CUresult,                                            \
    (CUdeviceptr dst, size_t pitch, unsigned value, size_t width, size_t height, CUstream stream)) \
  X(cuFuncSetAttribute, "cuFuncSetAttribute", CUresult,                                            \
    (CUfunction function, int attribute, int value))                                               \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor",    \
    CUresult, (int *groups, CUfunction function, int group, size_t dynamic))                       \
  X(cuOccupancyMaxPotentialBlockSize, "cuOccupancyMaxPotentialBlockSize", CUresult,                \
    (int *grid, int *group, CUfunction function, size_t (*dynamic_of)(int), size_t dynamic,        \
     int limit))                                                                                   \
  X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", CUresult, (CUstream stream, int mode))        \
  X(cuStreamEndCapture, "cuStreamEndCapture", CUresult, (CUstream stream, CUgraph * graph))        \
  X(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", CUresult,                          \
    (CUgraphExec * exec, CUgraph graph, unsigned long long flags))                                 \
  X(cuGraphInstantiate, "cuGraphInstantiate_v2 cuGraphInstantiate", CUresult,                      \
    (CUgraphExec * exec, CUgraph graph, CUgraphNode * node, char *log, size_t bytes))              \
  X(cuGraphExecUpdate_v2, "cuGraphExecUpdate_v2", CUresult,                                        \
    (CUgraphExec exec, CUgraph graph, CUupdate * result))                                          \
  X(cuGraphExecUpdate, "cuGraphExecUpdate", CUresult,                                              \
    (CUgraphExec exec, CUgraph graph, CUgraphNode * node, int *result))                            \
  X(cuGraphLaunch, "cuGraphLaunch", CUresult, (CUgraphExec exec, CUstream stream))                 \
  X(cuGraphExecDestroy, "cuGraphExecDestroy", CUresult, (CUgraphExec exec))                        \
  X(cuGraphDestroy, "cuGraphDestroy", CUresult, (CUgraph graph))

// -- NVRTC --

typedef struct nvrtc_program *nvrtcProgram;

enum {
  NVRTC_OK = 0,
  NVRTC_OUT_OF_MEMORY = 1,
  NVRTC_INVALID_INPUT = 3,
  NVRTC_INVALID_OPTION = 5,
  NVRTC_COMPILATION = 6,
};

#define NVRTC_REQUIRED(X)                                                                          \
  X(nvrtcVersion, "nvrtcVersion", int, (int *major, int *minor))                                   \
  X(nvrtcGetErrorString, "nvrtcGetErrorString", const char *, (int code))                          \
  X(nvrtcCreateProgram, "nvrtcCreateProgram", int,                                                 \
    (nvrtcProgram * program, const char *source, const char *name, int count,                      \
     const char *const *headers, const char *const *names))                                        \
  X(nvrtcDestroyProgram, "nvrtcDestroyProgram", int, (nvrtcProgram * program))                     \
  X(nvrtcCompileProgram, "nvrtcCompileProgram", int,                                               \
    (nvrtcProgram program, int count, const char *const *options))                                 \
  X(nvrtcGetPTXSize, "nvrtcGetPTXSize", int, (nvrtcProgram program, size_t * bytes))               \
  X(nvrtcGetPTX, "nvrtcGetPTX", int, (nvrtcProgram program, char *text))                           \
  X(nvrtcGetProgramLogSize, "nvrtcGetProgramLogSize", int, (nvrtcProgram program, size_t * bytes)) \
  X(nvrtcGetProgramLog, "nvrtcGetProgramLog", int, (nvrtcProgram program, char *text))

#define NVRTC_OPTIONAL(X)                                                                          \
  X(nvrtcGetCUBINSize, "nvrtcGetCUBINSize", int, (nvrtcProgram program, size_t * bytes))           \
  X(nvrtcGetCUBIN, "nvrtcGetCUBIN", int, (nvrtcProgram program, char *code))                       \
  X(nvrtcGetNumSupportedArchs, "nvrtcGetNumSupportedArchs", int, (int *count))                     \
  X(nvrtcGetSupportedArchs, "nvrtcGetSupportedArchs", int, (int *archs))

// -- the PTX compiler, which the driver's own just-in-time compiler exports --

typedef struct nvptx_compiler *nvptxCompiler;

enum { NVPTX_OK = 0 };

#define PTX_REQUIRED(X)                                                                            \
  X(nvPTXCompilerCreate, "nvPTXCompilerCreate", int,                                               \
    (nvptxCompiler * compiler, size_t bytes, const char *text))                                    \
  X(nvPTXCompilerDestroy, "nvPTXCompilerDestroy", int, (nvptxCompiler * compiler))                 \
  X(nvPTXCompilerCompile, "nvPTXCompilerCompile", int,                                             \
    (nvptxCompiler compiler, int count, const char *const *options))                               \
  X(nvPTXCompilerGetCompiledProgramSize, "nvPTXCompilerGetCompiledProgramSize", int,               \
    (nvptxCompiler compiler, size_t * bytes))                                                      \
  X(nvPTXCompilerGetCompiledProgram, "nvPTXCompilerGetCompiledProgram", int,                       \
    (nvptxCompiler compiler, void *code))                                                          \
  X(nvPTXCompilerGetErrorLogSize, "nvPTXCompilerGetErrorLogSize", int,                             \
    (nvptxCompiler compiler, size_t * bytes))                                                      \
  X(nvPTXCompilerGetErrorLog, "nvPTXCompilerGetErrorLog", int,                                     \
    (nvptxCompiler compiler, char *text))                                                          \
  X(nvPTXCompilerGetInfoLogSize, "nvPTXCompilerGetInfoLogSize", int,                               \
    (nvptxCompiler compiler, size_t * bytes))                                                      \
  X(nvPTXCompilerGetInfoLog, "nvPTXCompilerGetInfoLog", int, (nvptxCompiler compiler, char *text))

// -- cuBLAS --

typedef struct cublas_context *cublasHandle;

enum {
  CUBLAS_OK = 0,
  CUBLAS_ALLOC_FAILED = 3,
  CUBLAS_INVALID_VALUE = 7,
  CUBLAS_ARCH_MISMATCH = 8,
  CUBLAS_EXECUTION_FAILED = 13,
  CUBLAS_NOT_SUPPORTED = 15,
  CUBLAS_OP_N = 0,
  CUBLAS_OP_T = 1,
  CUBLAS_POINTER_HOST = 0,
  CUBLAS_DEFAULT_ALGORITHM = -1,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_FULL_SUMS = 16, // CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION
  CUDA_R_16F = 2,
};

#define BLAS_REQUIRED(X)                                                                           \
  X(cublasCreate, "cublasCreate_v2", int, (cublasHandle * handle))                                 \
  X(cublasDestroy, "cublasDestroy_v2", int, (cublasHandle handle))                                 \
  X(cublasSetStream, "cublasSetStream_v2", int, (cublasHandle handle, CUstream stream))            \
  X(cublasSetPointerMode, "cublasSetPointerMode_v2", int, (cublasHandle handle, int mode))         \
  X(cublasSgemm, "cublasSgemm_v2", int,                                                            \
    (cublasHandle handle, int ta, int tb, int m, int n, int k, const float *alpha, const float *a, \
     int lda, const float *b, int ldb, const float *beta, float *c, int ldc))                      \
  X(cublasDgemm, "cublasDgemm_v2", int,                                                            \
    (cublasHandle handle, int ta, int tb, int m, int n, int k, const double *alpha,                \
     const double *a, int lda, const double *b, int ldb, const double *beta, double *c, int ldc))

#define BLAS_OPTIONAL(X)                                                                           \
  X(cublasGetVersion, "cublasGetVersion_v2", int, (cublasHandle handle, int *version))             \
  X(cublasSetMathMode, "cublasSetMathMode", int, (cublasHandle handle, int mode))                  \
  X(cublasGemmEx, "cublasGemmEx", int,                                                             \
    (cublasHandle handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a,   \
     int a_type, int lda, const void *b, int b_type, int ldb, const void *beta, void *c,           \
     int c_type, int ldc, int compute, int algorithm))

#define MEMBER(member, names, result, params) result(*member) params;
struct driver_api {
  CUDA_REQUIRED(MEMBER)
  CUDA_OPTIONAL(MEMBER)
};
struct nvrtc_api {
  NVRTC_REQUIRED(MEMBER)
  NVRTC_OPTIONAL(MEMBER)
};
struct ptx_api {
  PTX_REQUIRED(MEMBER)
};
struct blas_api {
  BLAS_REQUIRED(MEMBER)
  BLAS_OPTIONAL(MEMBER)
};
#undef MEMBER

#endif
