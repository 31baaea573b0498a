// shim.h is the contract between Concord's Go side and one vendor's API: a table of functions that
// each vendor's shim fills (csrc/cuda, csrc/rocm, csrc/metal) and internal/cgo calls. It includes
// nothing but stdint.h.
//
// Rules for every entry
//  - It makes its own device current first, in the same call: the caller may be on any thread.
//  - It returns CS_OK or another CS_* status; then *err, which the caller owns, says what happened
//    in the vendor's words. *err is written only on failure. Outputs are written only on success.
//  - It never calls back, never aborts, never keeps a pointer that it was given (sources, options,
//    arguments and host memory of a copy are the caller's again on return).
//  - A vendor fills every entry before the optional ones, which internal/cgo checks. It may leave
//    an optional one NULL, some of them only all together, which internal/cgo checks too; one that
//    is there can return CS_UNSUPPORTED where this driver lacks it.
//  - Entries that queue return at once unless they say that they block.
//  - Objects of one library never meet those of another. A stream is used by one thread at a time,
//    except for stream_sync, stream_query, and event calls; everything else is safe for threads.

#ifndef CONCORD_SHIM_H
#define CONCORD_SHIM_H

#include <stdint.h>

// What went wrong, in classes that map to the error sentinels of runtime/driver.
enum {
  CS_OK = 0,
  CS_FAILED = 1,      // anything that has no class of its own
  CS_INVALID = 2,     // an argument makes no sense
  CS_NO_DEVICE = 3,   // no library, no driver, no such device
  CS_UNSUPPORTED = 4, // not possible with this device or driver
  CS_NO_MEMORY = 5,   // the device, or the host for pinned memory, has no room
  CS_TOO_LARGE = 6,   // can never fit
  CS_COMPILE = 7,     // the program did not build; the log is in the blob
  CS_FORMAT = 8,      // bytes that are not a program for this device
  CS_NOT_FOUND = 9,   // no kernel of that name
  CS_LAUNCH = 10,     // the kernel was refused, or failed while it ran
  CS_TIMEOUT = 11,    // the watchdog ended it
  CS_LOST = 12,       // the context is gone; every later call says so
};

typedef struct cs_error {
  int32_t status; // CS_*
  int32_t code;   // the vendor's number
  char text[248]; // the vendor's name and words, NUL-terminated
} cs_error;

typedef struct cs_lib cs_lib;       // opened libraries with their symbols; lives as long as the process
typedef struct cs_device cs_device; // one device with its context
typedef struct cs_stream cs_stream;
typedef struct cs_event cs_event;
typedef struct cs_module cs_module;
typedef struct cs_kernel cs_kernel; // lives as long as its module
typedef struct cs_graph cs_graph;   // an instantiated graph

// cs_versions: 0 is unknown.
typedef struct cs_versions {
  int32_t driver;         // the vendor's number, CUDA's 12020 or HIP's 50221153
  int32_t runtime;        // the same of a runtime library, if there is one apart from the driver
  int32_t compiler_major; // NVRTC 11.8, hipRTC 5.2
  int32_t compiler_minor;
} cs_versions;

enum { CS_KIND_UNKNOWN = 0, CS_KIND_DISCRETE = 1, CS_KIND_INTEGRATED = 2 };

// cs_info describes a device without opening a context on it. Zero and "" are unknown.
typedef struct cs_info {
  char name[256];
  char arch[128]; // "sm_90", "gfx90a:sramecc+:xnack-"
  char uuid[40];  // 8-4-4-4-12 hexadecimal digits
  char pci[32];   // "0000:3b:00.0"
  uint64_t total_memory;
  uint64_t max_allocation;
  uint64_t shared_block;
  uint64_t shared_block_optin;
  uint64_t shared_multiprocessor;
  int64_t max_group[3];  // items of a group in each dimension
  int64_t max_groups[3]; // groups in each dimension
  int32_t kind;          // CS_KIND_*
  int32_t major, minor;  // compute capability
  int32_t multiprocessors;
  int32_t warp;
  int32_t clock_khz;
  int32_t memory_clock_khz;
  int32_t memory_bus_bits;
  int32_t max_threads; // items of a group in all
  int32_t max_threads_multiprocessor;
  int32_t max_blocks_multiprocessor;
  int32_t registers_multiprocessor;
  int32_t simulated;          // a library of tests/sim, which says so itself
  int32_t unified;            // host and device share one physical memory
  int32_t managed;            // CS_UNIFIED memory can be allocated
  int32_t concurrent_managed; // host and device may use it at the same time
  int32_t async_alloc;        // alloc_on and free_on work
  int32_t cooperative;        // groups of one launch can wait for each other
} cs_info;

// cs_blob is bytes that an entry made. blob_free gives them back; zero it before.
typedef struct cs_blob {
  unsigned char *data;
  uint64_t bytes;
  char *log; // NUL-terminated, or NULL
  uint64_t log_bytes;
} cs_blob;

// Kinds of memory, equal to driver.MemoryKind.
enum { CS_ON_DEVICE = 0, CS_PINNED = 1, CS_UNIFIED = 2 };

// cs_memory is an allocation. host is where the host sees it, 0 where it does not.
typedef struct cs_memory {
  uint64_t address;
  uint64_t host;
} cs_memory;

typedef struct cs_kernel_info {
  int32_t max_group; // largest number of items of a group
  int32_t registers; // per item
  int32_t multiple;  // items that run in step, where that is the kernel's own; else 0
  uint64_t local_bytes;  // static local (shared) memory
  uint64_t spill_bytes;  // private memory per item that is not in registers
  uint64_t constant_bytes;
  uint64_t max_dynamic_bytes; // dynamic local memory that a launch may ask for
} cs_kernel_info;

// cs_arg is one argument of a launch, in the order of the kernel's parameters. It has the layout of
// driver.Arg, so that the runtime's table crosses as it is.
typedef struct cs_arg {
  uint8_t kind;   // CS_ARG_*
  int64_t offset; // CS_ARG_VALUE: where in data
  int64_t size;   // CS_ARG_VALUE, CS_ARG_LOCAL: bytes
  uint64_t mem;   // CS_ARG_MEMORY: cs_memory.address
  int64_t mem_offset;
  int64_t mem_size;
  uint8_t mem_kind;
} cs_arg;

enum { CS_ARG_VALUE = 0, CS_ARG_MEMORY = 1, CS_ARG_LOCAL = 2 };

// Local arguments become offsets into one dynamic block, each aligned to this (source/internal/render/prelude).
#define CS_LOCAL_ALIGN 128u

// The largest number of arguments of a launch.
#define CS_MAX_ARGS 1024u

// cs_gemm is C = alpha op(A) op(B) + beta C in row-major order: op(A) is m x k, op(B) is k x n, C is
// m x n; lda, ldb, ldc count elements of a row as stored. type is 0 for float, 1 for double, 2 for
// half with float sums.
typedef struct cs_gemm {
  int32_t type;
  int32_t trans_a, trans_b;
  int64_t m, n, k;
  double alpha, beta;
  uint64_t a, b, c; // addresses
  int64_t lda, ldb, ldc;
} cs_gemm;

typedef struct concord_shim {
  const char *name; // "cuda"

  // -- libraries --

  // open opens the driver and the compiler. names are candidates, best first, each a path or a bare
  // name ending in NUL, the list ending in an empty one. What was tried goes to tried, a line each
  // ("libcuda.so.1: not found: ..."), NUL-terminated and cut to bytes. A missing driver leaves a
  // library that can still compile and the other way round; with neither it is CS_NO_DEVICE. The
  // same files give the same cs_lib again; nothing is ever unloaded.
  int32_t (*open)(const char *driver_names, const char *compiler_names, cs_lib **lib, char *tried,
                  uint64_t tried_bytes, cs_error *err);
  // has_driver and has_compiler tell what open found; missing lists the optional symbols that the
  // libraries lack, separated by spaces.
  int32_t (*has_driver)(cs_lib *lib);
  int32_t (*has_compiler)(cs_lib *lib);
  void (*missing)(cs_lib *lib, char *text, uint64_t bytes);
  // versions needs no device; it may initialize the driver.
  int32_t (*versions)(cs_lib *lib, cs_versions *out, cs_error *err);
  // device_count initializes the driver. CS_NO_DEVICE, with the driver's reason, if it will not.
  int32_t (*device_count)(cs_lib *lib, int32_t *count, cs_error *err);
  int32_t (*device_info)(cs_lib *lib, int32_t ordinal, cs_info *out, cs_error *err);

  // -- compiler: needs no device --

  // targets lists the architectures that the compiler knows ("sm_80 sm_90", "gfx90a"), separated by
  // spaces. A target that is not among them must not reach compile.
  int32_t (*targets)(cs_lib *lib, char *text, uint64_t bytes, cs_error *err);
  // compile builds source (NUL-terminated) for options, each ending in NUL, the list ending in an
  // empty one. On CS_OK and on CS_COMPILE out->log is what the compiler said. Takes seconds.
  int32_t (*compile)(cs_lib *lib, const char *name, const char *source, const char *options,
                     cs_blob *out, cs_error *err);
  void (*blob_free)(cs_blob *blob);

  // -- device --

  int32_t (*device_open)(cs_lib *lib, int32_t ordinal, cs_device **dev, cs_error *err);
  // device_close releases the context. Everything made on it is closed before; a lost context is
  // reset, so that opening the device again can succeed.
  int32_t (*device_close)(cs_device *dev, cs_error *err);
  // device_handles are the vendor's device and context.
  void (*device_handles)(cs_device *dev, uint64_t *device, uint64_t *context);
  int32_t (*memory_info)(cs_device *dev, uint64_t *free_bytes, uint64_t *total_bytes, cs_error *err);

  int32_t (*alloc)(cs_device *dev, uint8_t kind, uint64_t bytes, cs_memory *out, cs_error *err);
  // free may block until the device is idle.
  int32_t (*free)(cs_device *dev, uint8_t kind, uint64_t address, cs_error *err);

  // module_load reads code during the call only. log gets what the driver says, cut to log_bytes.
  int32_t (*module_load)(cs_device *dev, const unsigned char *code, uint64_t bytes, cs_module **mod,
                         char *log, uint64_t log_bytes, cs_error *err);
  int32_t (*module_unload)(cs_module *mod, cs_error *err);
  // module_kernel finds an entry point and allows it all the local memory that the device has.
  int32_t (*module_kernel)(cs_module *mod, const char *name, cs_kernel **kernel, cs_kernel_info *info,
                           cs_error *err);

  // -- streams --

  // stream_new: priority 0 is normal, 1 above it, -1 below; clamped to what the device has.
  int32_t (*stream_new)(cs_device *dev, int32_t priority, cs_stream **s, cs_error *err);
  uint64_t (*stream_handle)(cs_stream *s);
  // stream_close waits for the work in flight and releases the stream, whatever its state.
  int32_t (*stream_close)(cs_stream *s, cs_error *err);
  // upload copies src aside where it is small or pinned memory has room, else it waits for the
  // stream; src may be changed on return.
  int32_t (*upload)(cs_stream *s, uint64_t dst, const unsigned char *src, uint64_t bytes,
                    cs_error *err);
  // download blocks until dst is filled.
  int32_t (*download)(cs_stream *s, unsigned char *dst, uint64_t src, uint64_t bytes, cs_error *err);
  int32_t (*copy)(cs_stream *s, uint64_t dst, uint64_t src, uint64_t bytes, cs_error *err);
  // fill sets bytes at dst to copies of a pattern of 1, 2, 4 or 8 bytes; dst may have any alignment.
  int32_t (*fill)(cs_stream *s, uint64_t dst, uint64_t bytes, const unsigned char *pattern,
                  uint64_t pattern_bytes, cs_error *err);
  // launch: groups and group have three valid entries.
  int32_t (*launch)(cs_stream *s, cs_kernel *k, const uint64_t *groups, const uint64_t *group,
                    const cs_arg *args, uint32_t count, const unsigned char *data, cs_error *err);
  int32_t (*stream_wait)(cs_stream *s, cs_event *e, cs_error *err);
  // stream_query: *done. It never blocks. A failure of earlier work is its error.
  int32_t (*stream_query)(cs_stream *s, int32_t *done, cs_error *err);
  int32_t (*stream_sync)(cs_stream *s, cs_error *err);

  // -- events: belong to their device --

  int32_t (*record)(cs_stream *s, int32_t timing, cs_event **e, cs_error *err);
  int32_t (*event_query)(cs_event *e, int32_t *done, cs_error *err);
  int32_t (*event_wait)(cs_event *e, cs_error *err);
  int32_t (*event_elapsed)(cs_event *from, cs_event *to, double *nanoseconds, cs_error *err);
  void (*event_close)(cs_event *e);

  // -- optional: from here on an entry is NULL where the vendor has no such thing --

  // peer_access tells whether device to can reach the memory of device from directly. It
  // opens neither. It is there together with copy_peer and peer.
  int32_t (*peer_access)(cs_lib *lib, int32_t to, int32_t from, int32_t *can, cs_error *err);
  // assemble turns the vendor's assembly (PTX) into code, for its report: the log has
  // registers, spills and shared memory of each kernel.
  int32_t (*assemble)(cs_lib *lib, const unsigned char *text, uint64_t bytes, const char *options,
                      cs_blob *out, cs_error *err);

  // alloc_on and free_on take effect in stream order. Both or none.
  int32_t (*alloc_on)(cs_stream *s, uint64_t bytes, uint64_t *address, cs_error *err);
  int32_t (*free_on)(cs_stream *s, uint64_t address, cs_error *err);
  // occupancy is how many groups of group items with that much dynamic local memory fit on one
  // multiprocessor; suggest the group size that gets the most items there.
  int32_t (*occupancy)(cs_kernel *k, int32_t group, uint64_t dynamic_bytes, int32_t *groups,
                       cs_error *err);
  int32_t (*suggest)(cs_kernel *k, uint64_t dynamic_bytes, int32_t *group, cs_error *err);

  // stream_wrap makes a stream over the vendor's own, which stays the program's.
  int32_t (*stream_wrap)(cs_device *dev, uint64_t handle, cs_stream **s, cs_error *err);
  // upload_pinned and download_pinned queue a copy from and to pinned memory by its host address,
  // which stays valid and unchanged (unread) until the stream has passed. Both or none.
  int32_t (*upload_pinned)(cs_stream *s, uint64_t dst, uint64_t host, uint64_t bytes, cs_error *err);
  int32_t (*download_pinned)(cs_stream *s, uint64_t host, uint64_t src, uint64_t bytes,
                             cs_error *err);
  // copy_peer copies from another device of the same library; the driver stages it where the
  // devices cannot reach each other. s belongs to to.
  int32_t (*copy_peer)(cs_stream *s, cs_device *to, uint64_t dst, cs_device *from, uint64_t src,
                       uint64_t bytes, cs_error *err);
  // peer tells whether to reaches from's memory directly, and makes it so if enable is not 0.
  int32_t (*peer)(cs_device *to, cs_device *from, int32_t enable, int32_t *can, cs_error *err);
  // prefetch moves CS_UNIFIED memory to the device, or to the host if host is not 0.
  int32_t (*prefetch)(cs_stream *s, uint64_t address, uint64_t bytes, int32_t host, cs_error *err);

  // -- optional: graphs, all five or none --

  // From capture_begin to capture_end what is queued on the stream is recorded and not run. Uploads
  // from pageable memory, downloads and waiting are CS_INVALID in between.
  int32_t (*capture_begin)(cs_stream *s, cs_error *err);
  // capture_end makes *g of what was recorded. If *g is not NULL it is updated instead: in place
  // where the work differs only in its arguments, anew otherwise; on failure *g stays as it was.
  int32_t (*capture_end)(cs_stream *s, cs_graph **g, cs_error *err);
  // capture_drop forgets what was recorded.
  int32_t (*capture_drop)(cs_stream *s, cs_error *err);
  int32_t (*graph_launch)(cs_graph *g, cs_stream *s, cs_error *err);
  int32_t (*graph_close)(cs_graph *g, cs_error *err);

  // -- optional: the vendor's BLAS, both or none --

  // blas_open loads it; the device keeps its handle until it is closed.
  int32_t (*blas_open)(cs_device *dev, const char *names, cs_error *err);
  int32_t (*gemm)(cs_stream *s, const cs_gemm *g, cs_error *err);
} concord_shim;

#endif
