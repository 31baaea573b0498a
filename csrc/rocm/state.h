// state.h has the declarations that the parts of the shim share: the objects behind the handles of
// shim.h, the reporting of failures, and the entry of a call into a device. rocm.c includes the
// parts.

#ifndef CONCORD_ROCM_STATE_H
#define CONCORD_ROCM_STATE_H

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
  void *driver, *compiler; // handles of dlopen, NULL if there is none
  struct driver_api hip;
  struct hiprtc_api rtc;
  int simulated;
  pthread_mutex_t lock; // guards the following fields
  int initialized;      // hipInit has succeeded
  void *comgr;          // comgr, with which hipRTC compiles; NULL if it was not found
  struct comgr_api isa;
};

struct cs_event {
  cs_device *dev;
  hipEvent handle;
  int timing;
  cs_event *next; // in the device's free list
};

struct cs_device {
  cs_lib *lib;
  hipDevice handle;
  char arch[128];          // "gfx90a:sramecc+:xnack-"
  int32_t lowest, highest; // limits of streams' priorities: the highest is the smallest number
  int32_t shared;
  int async_alloc, managed;
  atomic_int lost;      // set after a failure that makes the device unusable
  pthread_mutex_t lock; // guards the free lists; [1] has events with timing
  cs_event *events[2];
  pthread_mutex_t blas_lock;
  void *blas;
  struct blas_api rocblas;
  rocblasHandle blas_handle;
};

// Copies from and to pageable memory are done in pieces, through pinned memory of the stream.
enum { CHUNKS = 4, CHUNK_BYTES = 1 << 20 };

struct chunk {
  unsigned char *at;
  hipEvent passed; // recorded after the last copy that uses the chunk
  int busy;        // no call has waited for passed
  uint64_t used;
};

struct cs_stream {
  cs_device *dev;
  hipStream handle;
  int owned;
  atomic_int capturing;
  unsigned char *pinned; // CHUNKS * CHUNK_BYTES, from the first copy on
  struct chunk ring[CHUNKS];
  int at; // index of the current chunk
};

struct cs_kernel {
  cs_module *module;
  hipFunction handle;
  uint64_t max_dynamic;
  cs_kernel *next;
};

struct cs_module {
  cs_device *dev;
  hipModule handle;
  pthread_mutex_t lock; // guards kernels
  cs_kernel *kernels;
};

struct cs_graph {
  cs_device *dev;
  pthread_mutex_t lock; // guards the following fields
  hipGraphExec exec;
  cs_event *last; // recorded after the last launch, NULL before the first
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
  return tell(err, CS_UNSUPPORTED, 0, "this version of HIP has no %s", symbol);
}

static int32_t class_of(hipError code);
static int sticky(hipError code);

// check converts the result of a call to a CS_* status, with HIP's name and text of the error.
static int32_t check(cs_lib *lib, hipError code, const char *call, cs_error *err) {
  if (code == HIP_OK)
    return CS_OK;
  const char *name = lib->hip.hipGetErrorName(code), *words = lib->hip.hipGetErrorString(code);
  return tell(err, class_of(code), code, "%s: %s: %s", call, name != NULL ? name : "unknown error",
              words != NULL ? words : "no error text");
}

// on_device is check for calls on a device. A failure that makes the device unusable marks it as
// lost, and from then on such failures are CS_LOST.
static int32_t on_device(cs_device *d, hipError code, const char *call, cs_error *err) {
  if (code == HIP_OK)
    return CS_OK;
  int32_t status = check(d->lib, code, call, err);
  if (sticky(code) && atomic_exchange(&d->lost, 1) != 0)
    err->status = status = CS_LOST;
  return status;
}

// enter makes the device current on this thread. Every entry begins with it.
static int32_t enter(cs_device *d, cs_error *err) {
  return on_device(d, d->lib->hip.hipSetDevice(d->handle), "hipSetDevice", err);
}

// CALL calls a function of HIP on a device, by its name.
#define CALL(d, function, ...) on_device((d), (d)->lib->hip.function(__VA_ARGS__), #function, err)

#endif
