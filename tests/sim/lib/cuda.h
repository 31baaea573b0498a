// cuda.h: the types of NVIDIA's driver API as in its public interface, for the cuda_*.cpp files,
// which export that interface. Handles are objects of core.h.

#ifndef CONCORD_SIM_CUDA_H
#define CONCORD_SIM_CUDA_H

#include "core.h"

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef sim::Context *CUcontext;
typedef sim::Stream *CUstream;
typedef sim::Event *CUevent;
typedef sim::Module *CUmodule;
typedef sim::Function *CUfunction;
typedef sim::Graph *CUgraph;
typedef sim::GraphNode *CUgraphNode;
typedef sim::GraphExec *CUgraphExec;
typedef sim::Pool *CUmemoryPool;

struct CUuuid {
  char bytes[16];
};

struct CUDA_KERNEL_NODE_PARAMS {
  CUfunction func;
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  void **kernelParams, **extra;
};

// CU begins a function: it counts the call, and returns from the function if it has to fail.
#define CU(kind, needs)                                                                            \
  sim::Call call_(sim::kind, sim::needs);                                                          \
  if (call_.code != sim::OK)                                                                       \
    return call_.code;                                                                             \
  sim::Context *ctx = call_.context;                                                               \
  (void)ctx
#define NEED(condition)                                                                            \
  if (!(condition))                                                                                \
  return sim::INVALID_VALUE
#define DEVICE(d)                                                                                  \
  if (!sim::device_ok(d))                                                                          \
  return sim::INVALID_DEVICE

static inline void *at(CUdeviceptr p) { return reinterpret_cast<void *>(p); }
static inline CUdeviceptr address(const void *p) { return reinterpret_cast<CUdeviceptr>(p); }

#endif
