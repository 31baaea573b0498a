// state.h is what the parts of the shim share: the objects behind the contract's handles, the way a
// failure is told, and how a call enters a device. cuda.c puts the parts together.

#ifndef CONCORD_CUDA_STATE_H
#define CONCORD_CUDA_STATE_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../shim.h"
#include "api.h"

// A library is a driver and a compiler, each with its own table: a real one and a simulated one
// live side by side.
struct cs_lib {
  cs_lib *next;
  void *driver, *compiler; // of dlopen, NULL where there is none
  struct driver_api cu;
  struct nvrtc_api rtc;
  int simulated;
  pthread_mutex_t lock; // of what follows
  int initialized;      // cuInit has succeeded
  int assembler_tried;
  void *assembler;
  struct ptx_api ptx;
};

struct cs_event {
  cs_device *dev;
  CUevent handle;
  int timing;
  cs_event *next; // in the device's free list
};

struct cs_device {
  cs_lib *lib;
  CUdevice handle;
  CUcontext context;
  int32_t lowest, highest; // priorities of streams: the highest is the smallest number
  int32_t shared, shared_optin;
  int async_alloc, managed;
  atomic_int lost;      // a failure that the context does not survive was seen
  pthread_mutex_t lock; // of the free lists: [1] with timing
  cs_event *events[2];
  pthread_mutex_t blas_lock;
  void *blas;
  struct blas_api cublas;
  cublasHandle blas_handle;
};

// Pageable memory crosses in pieces through pinned memory of the stream.
enum { CHUNKS = 4, CHUNK_BYTES = 1 << 20 };

struct chunk {
  unsigned char *at;
  CUevent passed; // recorded after the last copy that uses it
  int busy;       // passed has not been waited for
  uint64_t used;
};

struct cs_stream {
  cs_device *dev;
  CUstream handle;
  int owned;
  atomic_int capturing;
  unsigned char *pinned; // CHUNKS * CHUNK_BYTES, from the first copy on
  struct chunk ring[CHUNKS];
  int at; // the chunk that is being filled
};

struct cs_kernel {
  cs_module *module;
  CUfunction handle;
  uint64_t max_dynamic;
  cs_kernel *next;
};

struct cs_module {
  cs_device *dev;
  CUmodule handle;
  pthread_mutex_t lock; // of kernels
  cs_kernel *kernels;
};

struct cs_graph {
  cs_device *dev;
  CUgraphExec exec;
};

// tell writes an error and returns its class.
__attribute__((format(printf, 4, 5))) static int32_t tell(cs_error *err, int32_t status,
                                                          int32_t code, const char *format, ...) {
  err->status = status;
  err->code = code;
  va_list args;
  va_start(args, format);
  vsnprintf(err->text, sizeof err->text, format, args);
  va_end(args);
  return status;
}

static int32_t no_host_memory(cs_error *err) {
  return tell(err, CS_FAILED, 0, "no host memory left");
}

// lacks says that the driver has no such function.
static int32_t lacks(cs_error *err, const char *symbol) {
  return tell(err, CS_UNSUPPORTED, 0, "this driver has no %s", symbol);
}

static int32_t class_of(CUresult code);
static int sticky(CUresult code);

// check turns the driver's answer into ours, in the driver's words.
static int32_t check(cs_lib *lib, CUresult code, const char *call, cs_error *err) {
  if (code == CU_OK)
    return CS_OK;
  const char *name = NULL, *words = NULL;
  lib->cu.cuGetErrorName(code, &name);
  lib->cu.cuGetErrorString(code, &words);
  return tell(err, class_of(code), code, "%s: %s: %s", call, name != NULL ? name : "unknown error",
              words != NULL ? words : "no words for it");
}

// on_device is check for calls on a context: the first failure that it does not survive marks the
// device, and what fails the same way later is a lost device.
static int32_t on_device(cs_device *d, CUresult code, const char *call, cs_error *err) {
  if (code == CU_OK)
    return CS_OK;
  int32_t status = check(d->lib, code, call, err);
  if (sticky(code) && atomic_exchange(&d->lost, 1) != 0)
    err->status = status = CS_LOST;
  return status;
}

// enter makes the device's context current on this thread. Every entry begins with it.
static int32_t enter(cs_device *d, cs_error *err) {
  return on_device(d, d->lib->cu.cuCtxSetCurrent(d->context), "cuCtxSetCurrent", err);
}

// CALL is a call of the driver on a device, by name.
#define CALL(d, function, ...) on_device((d), (d)->lib->cu.function(__VA_ARGS__), #function, err)

#endif
