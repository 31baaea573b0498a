// state.h has the declarations that the parts of the shim share: the objects behind the handles of
// shim.h, the reporting of failures, and the entry of a call into a device. cuda.c includes the
// parts.

#ifndef CONCORD_CUDA_STATE_H
#define CONCORD_CUDA_STATE_H

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../shim.h"
#include "api.h"

// A cs_lib is a driver and a compiler, each with its own table, so that a process can use a real
// one and a simulated one.
struct cs_lib {
  cs_lib *next;
  void *driver, *compiler, *builtins; // handles of dlopen, NULL if there is none
  struct driver_api cu;
  struct nvrtc_api rtc;
  int simulated;
  pthread_mutex_t lock; // guards the following fields
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
  int32_t lowest, highest; // limits of streams' priorities: the highest is the smallest number
  int32_t shared, shared_optin;
  int async_alloc, managed;
  atomic_int lost;      // set after a failure that makes the context unusable
  pthread_mutex_t lock; // guards the free lists; [1] has events with timing
  cs_event *events[2];
  pthread_mutex_t blas_lock;
  void *blas;
  struct blas_api cublas;
  cublasHandle blas_handle;
};

// Copies from and to pageable memory are done in pieces, through pinned memory of the stream.
enum { CHUNKS = 4, CHUNK_BYTES = 1 << 20 };

struct chunk {
  unsigned char *at;
  CUevent passed; // recorded after the last copy that uses the chunk
  int busy;       // no call has waited for passed
  uint64_t used;
};

struct cs_stream {
  cs_device *dev;
  CUstream handle;
  int owned;
  atomic_int capturing;
  unsigned char *pinned; // CHUNKS * CHUNK_BYTES, from the first copy on
  struct chunk ring[CHUNKS];
  int at; // index of the current chunk
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
  pthread_mutex_t lock; // guards kernels
  cs_kernel *kernels;
};

struct cs_graph {
  cs_device *dev;
  CUgraphExec exec;
};

// tell writes an error and returns its status.
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

// lacks returns the error that the driver has no such function.
static int32_t lacks(cs_error *err, const char *symbol) {
  return tell(err, CS_UNSUPPORTED, 0, "this driver has no %s", symbol);
}

static int32_t class_of(CUresult code);
static int sticky(CUresult code);

// check converts the result of a call to a CS_* status, with the driver's name and text of the
// error.
static int32_t check(cs_lib *lib, CUresult code, const char *call, cs_error *err) {
  if (code == CU_OK)
    return CS_OK;
  const char *name = NULL, *words = NULL;
  lib->cu.cuGetErrorName(code, &name);
  lib->cu.cuGetErrorString(code, &words);
  return tell(err, class_of(code), code, "%s: %s: %s", call, name != NULL ? name : "unknown error",
              words != NULL ? words : "no error text");
}

// on_device is check for calls on a context. A failure that makes the context unusable marks the
// device as lost, and from then on such failures are CS_LOST.
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

// CALL calls a function of the driver on a device, by its name.
#define CALL(d, function, ...) on_device((d), (d)->lib->cu.function(__VA_ARGS__), #function, err)

#endif
