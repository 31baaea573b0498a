// shim.h is the interface between Concord's Go code and one vendor's API: a table of functions that
// each vendor's shim (csrc/gpu with csrc/cuda and csrc/rocm, csrc/metal) implements and internal/cgo calls. It
// includes only stdint.h.
//
// Rules for every entry
//  - It makes its own device current first, in the same call, since the caller may be on any thread.
//  - It returns CS_OK or another CS_* status, and in the latter case writes the vendor's error to *err,
//    which the caller owns. *err is written only on failure. Outputs are written only on success.
//  - It never calls back, never aborts, and never keeps a pointer that it was given (after it returns, the
//    caller may change or free sources, options, arguments and host memory of a copy).
//  - A vendor implements every entry before the optional ones, which internal/cgo checks. An optional
//    entry may be NULL, some only together with others, which internal/cgo checks too; one that is
//    not NULL returns CS_UNSUPPORTED if the installed driver lacks it.
//  - Entries that queue work return at once, unless their comments say that they block.
//  - Objects of one library are not passed to another. A stream is used by one thread at a time,
//    except for stream_sync, stream_query, and event calls; all other entries may be called concurrently.

#ifndef CONCORD_SHIM_H
#define CONCORD_SHIM_H

#include <stdint.h>

// Classes of errors, which internal/cgo maps to the error sentinels of runtime/driver.
enum {
  CS_OK = 0,
  CS_FAILED = 1,      // an error without a class of its own
  CS_INVALID = 2,     // an argument is not valid
  CS_NO_DEVICE = 3,   // no library, no driver, no such device
  CS_UNSUPPORTED = 4, // not possible with this device or driver
  CS_NO_MEMORY = 5,   // the device, or the host for pinned memory, has no free memory
  CS_TOO_LARGE = 6,   // larger than this device can ever support
  CS_COMPILE = 7,     // the program did not build; the log is in the blob
  CS_FORMAT = 8,      // bytes that are not a program for this device
  CS_NOT_FOUND = 9,   // no kernel of that name
  CS_LAUNCH = 10,     // the kernel was refused, or failed while it ran
  CS_TIMEOUT = 11,    // the watchdog ended the kernel
  CS_LOST = 12,       // the context is unusable; every later call returns this, too
};

typedef struct cs_error {
  int32_t status; // CS_*
  int32_t code;   // the vendor's number
  char text[248]; // the vendor's name and text of the error, NUL-terminated
} cs_error;

typedef struct cs_lib cs_lib;       // opened libraries with their symbols; lives as long as the process
typedef struct cs_device cs_device; // one device with its context
typedef struct cs_stream cs_stream;
typedef struct cs_event cs_event;
typedef struct cs_module cs_module;
typedef struct cs_kernel cs_kernel; // lives as long as its module
typedef struct cs_graph cs_graph;   // an instantiated graph
typedef struct cs_comm cs_comm;     // one rank of a communicator

// cs_versions: 0 is unknown.
typedef struct cs_versions {
  int32_t driver;         // the vendor's number, CUDA's 12020 or HIP's 50221153
  int32_t runtime;        // the number of the runtime library, if there is one besides the driver
  int32_t compiler_major; // NVRTC 11.8, hipRTC 5.2
  int32_t compiler_minor;
} cs_versions;

enum {
  CS_KIND_UNKNOWN = 0,
  CS_KIND_DISCRETE = 1,
  CS_KIND_INTEGRATED = 2,
  CS_KIND_VIRTUAL = 3,
  CS_KIND_CPU = 4,
};

// cs_info describes a device without opening a context on it. Zero and "" are unknown.
typedef struct cs_info {
  char name[256];
  char arch[128]; // "sm_90", "gfx90a:sramecc+:xnack-"
  char uuid[40];  // 8-4-4-4-12 hexadecimal digits
  char pci[32];   // "0000:3b:00.0"
  char maker[32];   // of the device, if it is not the vendor
  char driver[128]; // its driver's version, where devices of one library have several drivers
  uint64_t total_memory;
  uint64_t max_allocation;
  uint64_t shared_block;
  uint64_t shared_block_optin;
  uint64_t shared_multiprocessor;
  uint64_t l2_cache;     // bytes
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
  int32_t simulated; // a library of tests/sim, which reports it
  int32_t unified;   // host and device share one physical memory
  int32_t by_name;   // it is opened only by programs that name it
} cs_info;

// cs_blob has bytes that an entry allocated. The caller passes it zeroed, and frees it by
// blob_free.
typedef struct cs_blob {
  unsigned char *data;
  uint64_t bytes;
  char *log; // NUL-terminated, or NULL
  uint64_t log_bytes;
} cs_blob;

// Kinds of memory, equal to driver.MemoryKind.
enum { CS_ON_DEVICE = 0, CS_PINNED = 1, CS_UNIFIED = 2 };

// cs_memory is an allocation. host is its address on the host, 0 if the host cannot access it.
typedef struct cs_memory {
  uint64_t address;
  uint64_t host;
} cs_memory;

typedef struct cs_kernel_info {
  int32_t max_group; // largest number of items of a group
  int32_t registers; // per item
  int32_t multiple;  // number of items that run in lockstep, if the kernel has its own; else 0
  uint64_t local_bytes;  // static local (shared) memory
  uint64_t spill_bytes;  // private memory per item that is not in registers
} cs_kernel_info;

// cs_arg is one argument of a launch, in the order of the kernel's parameters. It has the layout of
// driver.Arg, so that Go can pass the runtime's table without a copy.
typedef struct cs_arg {
  uint8_t kind;   // CS_ARG_*
  int64_t offset; // CS_ARG_VALUE: offset in data
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

// The bytes of the identity of a communicator.
#define CS_COMM_ID 128

enum { // cs_collective.kind
  CS_ALL_REDUCE = 0,
  CS_REDUCE = 1,
  CS_BROADCAST = 2,
  CS_ALL_GATHER = 3,
  CS_REDUCE_SCATTER = 4,
  CS_SEND_RECEIVE = 5,
};

// cs_collective is one rank's part of a collective. Sizes are elements.
typedef struct cs_collective {
  int32_t kind; // CS_*
  int32_t type; // 0 i8, 1 u8, 2 i32, 3 u32, 4 i64, 5 u64, 6 f16, 7 f32, 8 f64, 9 bf16
  int32_t op;   // of those that combine: 0 sum, 1 product, 2 maximum, 3 minimum
  int32_t root; // of CS_REDUCE and CS_BROADCAST
  int32_t to, from;  // of CS_SEND_RECEIVE, -1 for none
  uint64_t count;    // of one rank: src of CS_ALL_GATHER, dst of CS_REDUCE_SCATTER, what CS_SEND_RECEIVE sends
  uint64_t received; // what CS_SEND_RECEIVE receives
  uint64_t dst, src; // addresses
} cs_collective;

typedef struct concord_shim concord_shim;

struct concord_shim {
  // -- libraries --

  // open opens the driver and the compiler. shim is the table itself. The names are candidates in order of preference, each a
  // path or a file name ending in NUL; the list ends in an empty name. It writes the result of each
  // attempt to tried, one line each ("libcuda.so.1: not found: ..."), NUL-terminated and truncated
  // to tried_bytes. Without a driver the library can still compile, and without a compiler it can
  // still load programs; without both the result is CS_NO_DEVICE. A compiler that suits the driver
  // is preferred to one before it that does not. The same files give the same cs_lib again, which
  // is never unloaded.
  int32_t (*open)(const concord_shim *shim, const char *driver_names, const char *compiler_names,
                  cs_lib **lib, char *tried, uint64_t tried_bytes, cs_error *err);
  // has_driver and has_compiler report what open found. missing writes the names of the optional
  // symbols that the libraries lack, separated by spaces, to text.
  int32_t (*has_driver)(cs_lib *lib);
  int32_t (*has_compiler)(cs_lib *lib);
  void (*missing)(cs_lib *lib, char *text, uint64_t bytes);
  // versions needs no device; it may initialize the driver.
  int32_t (*versions)(cs_lib *lib, cs_versions *out, cs_error *err);
  // device_count initializes the driver. If that fails, it returns CS_NO_DEVICE with the driver's
  // reason.
  int32_t (*device_count)(cs_lib *lib, int32_t *count, cs_error *err);
  int32_t (*device_info)(cs_lib *lib, int32_t ordinal, cs_info *out, cs_error *err);

  // blob_free frees what compile or assemble returned.
  void (*blob_free)(cs_blob *blob);

  // -- device --

  int32_t (*device_open)(cs_lib *lib, int32_t ordinal, cs_device **dev, cs_error *err);
  // device_close releases the context. The caller has closed all objects of the device before. A
  // lost context is reset, so that opening the device again can succeed.
  int32_t (*device_close)(cs_device *dev, cs_error *err);
  // device_handles returns the vendor's handles of the device and its context.
  void (*device_handles)(cs_device *dev, uint64_t *device, uint64_t *context);
  int32_t (*memory_info)(cs_device *dev, uint64_t *free_bytes, cs_error *err);

  int32_t (*alloc)(cs_device *dev, uint8_t kind, uint64_t bytes, cs_memory *out, cs_error *err);
  // free may block until the device is idle.
  int32_t (*free)(cs_device *dev, uint8_t kind, uint64_t address, cs_error *err);

  // module_load reads code during the call only. It writes the driver's log to log, truncated to
  // log_bytes.
  int32_t (*module_load)(cs_device *dev, const unsigned char *code, uint64_t bytes, cs_module **mod,
                         char *log, uint64_t log_bytes, cs_error *err);
  int32_t (*module_unload)(cs_module *mod, cs_error *err);
  // module_kernel finds an entry point and allows it to use all local memory of the device.
  int32_t (*module_kernel)(cs_module *mod, const char *name, cs_kernel **kernel, cs_kernel_info *info,
                           cs_error *err);

  // -- streams --

  // stream_new: priority 0 is normal, 1 above it, -1 below it; it is clamped to the device's range.
  int32_t (*stream_new)(cs_device *dev, int32_t priority, cs_stream **s, cs_error *err);
  uint64_t (*stream_handle)(cs_stream *s);
  // stream_close blocks until queued work is done and releases the stream, whatever its state.
  int32_t (*stream_close)(cs_stream *s, cs_error *err);
  // upload copies src to other memory and returns, if src is small or the stream's pinned memory
  // has room; otherwise it blocks until the stream has read src. The caller may change src after it
  // returns.
  int32_t (*upload)(cs_stream *s, uint64_t dst, const unsigned char *src, uint64_t bytes,
                    cs_error *err);
  // download blocks until dst is filled.
  int32_t (*download)(cs_stream *s, unsigned char *dst, uint64_t src, uint64_t bytes, cs_error *err);
  int32_t (*copy)(cs_stream *s, uint64_t dst, uint64_t src, uint64_t bytes, cs_error *err);
  // fill sets bytes at dst to copies of a pattern of 1, 2, 4 or 8 bytes; dst may have any alignment.
  int32_t (*fill)(cs_stream *s, uint64_t dst, uint64_t bytes, const unsigned char *pattern,
                  uint64_t pattern_bytes, cs_error *err);
  // launch queues a kernel. groups is the number of groups and group the number of items of a
  // group, both with three valid entries; data has the values of the arguments.
  int32_t (*launch)(cs_stream *s, cs_kernel *k, const uint64_t *groups, const uint64_t *group,
                    const cs_arg *args, uint32_t count, const unsigned char *data, cs_error *err);
  int32_t (*stream_wait)(cs_stream *s, cs_event *e, cs_error *err);
  // stream_query sets *done to whether all work is done. It never blocks. If earlier work failed,
  // it returns that error.
  int32_t (*stream_query)(cs_stream *s, int32_t *done, cs_error *err);
  int32_t (*stream_sync)(cs_stream *s, cs_error *err);

  // -- events: belong to their device --

  int32_t (*record)(cs_stream *s, int32_t timing, cs_event **e, cs_error *err);
  int32_t (*event_query)(cs_event *e, int32_t *done, cs_error *err);
  int32_t (*event_wait)(cs_event *e, cs_error *err);
  int32_t (*event_elapsed)(cs_event *from, cs_event *to, double *nanoseconds, cs_error *err);
  void (*event_close)(cs_event *e);

  // -- optional: from here on an entry is NULL if the vendor's API has no such function --

  // A table has both of the compiler's entries, or neither: then the vendor's compiler is Go code
  // (Vendor.Compiler of internal/cgo). They need no device.
  //
  // targets lists the architectures that the compiler knows ("sm_80 sm_90", "gfx90a"), separated by
  // spaces. A target that is not among them must not reach compile.
  int32_t (*targets)(cs_lib *lib, char *text, uint64_t bytes, cs_error *err);
  // compile builds source (NUL-terminated) with options, each ending in NUL, the list ending in an
  // empty one. Whatever the status, out->log is the compiler's log if it wrote one. It blocks for
  // seconds.
  int32_t (*compile)(cs_lib *lib, const char *name, const char *source, const char *options,
                     cs_blob *out, cs_error *err);

  // peer_access sets *can to whether device to can access the memory of device from directly. It
  // does not open the devices.
  int32_t (*peer_access)(cs_lib *lib, int32_t to, int32_t from, int32_t *can, cs_error *err);
  // assemble assembles the vendor's assembly (PTX). Its purpose is the log, which has the
  // registers, spills and shared memory of each kernel.
  int32_t (*assemble)(cs_lib *lib, const unsigned char *text, uint64_t bytes, const char *options,
                      cs_blob *out, cs_error *err);

  // alloc_on and free_on take effect in stream order. A table has both or neither.
  int32_t (*alloc_on)(cs_stream *s, uint64_t bytes, uint64_t *address, cs_error *err);
  int32_t (*free_on)(cs_stream *s, uint64_t address, cs_error *err);
  // occupancy returns the number of groups of group items with that much dynamic local memory that
  // fit on one multiprocessor; suggest returns the group size with which most items fit.
  int32_t (*occupancy)(cs_kernel *k, int32_t group, uint64_t dynamic_bytes, int32_t *groups,
                       cs_error *err);
  int32_t (*suggest)(cs_kernel *k, uint64_t dynamic_bytes, int32_t *group, cs_error *err);

  // stream_wrap makes a cs_stream from a stream of the vendor's API, which the program continues to
  // own.
  int32_t (*stream_wrap)(cs_device *dev, uint64_t handle, cs_stream **s, cs_error *err);
  // upload_pinned and download_pinned queue a copy from and to pinned memory, given by its host
  // address. The caller must not free or change (for download_pinned: read) it until the stream has
  // done the copy. A table has both or neither.
  int32_t (*upload_pinned)(cs_stream *s, uint64_t dst, uint64_t host, uint64_t bytes, cs_error *err);
  int32_t (*download_pinned)(cs_stream *s, uint64_t host, uint64_t src, uint64_t bytes,
                             cs_error *err);
  // copy_peer copies from another device of the same library. If the devices cannot access each
  // other's memory, the driver copies through the host. s is a stream of device to. A table has
  // copy_peer, peer and peer_access, or none of them.
  int32_t (*copy_peer)(cs_stream *s, cs_device *to, uint64_t dst, cs_device *from, uint64_t src,
                       uint64_t bytes, cs_error *err);
  // peer sets *can to whether device to can access the memory of device from directly. If enable is
  // not 0, it enables that access.
  int32_t (*peer)(cs_device *to, cs_device *from, int32_t enable, int32_t *can, cs_error *err);
  // prefetch moves CS_UNIFIED memory to the device, or to the host if host is not 0.
  int32_t (*prefetch)(cs_stream *s, uint64_t address, uint64_t bytes, int32_t host, cs_error *err);

  // -- optional: graphs, all five or none --

  // From capture_begin to capture_end, work that is queued on the stream is recorded and not run.
  // Uploads from pageable memory, downloads and waiting return CS_INVALID in between.
  int32_t (*capture_begin)(cs_stream *s, cs_error *err);
  // capture_end makes *g from the recorded work. If *g is not NULL, it is changed to the recorded
  // work: in place if only the arguments differ, otherwise by instantiating it again. After a
  // failure *g is unchanged.
  int32_t (*capture_end)(cs_stream *s, cs_graph **g, cs_error *err);
  // capture_drop discards the recorded work.
  int32_t (*capture_drop)(cs_stream *s, cs_error *err);
  int32_t (*graph_launch)(cs_graph *g, cs_stream *s, cs_error *err);
  int32_t (*graph_close)(cs_graph *g, cs_error *err);

  // -- optional: the vendor's BLAS, both or none --

  // blas_open opens the library, the first of names that works; the device keeps its handle until
  // it is closed.
  int32_t (*blas_open)(cs_device *dev, const char *names, cs_error *err);
  int32_t (*gemm)(cs_stream *s, const cs_gemm *g, cs_error *err);

  // -- optional: the vendor's library of collectives, all or none --

  // comm_id opens the library, the first of names that works, and makes the identity of a new communicator: CS_COMM_ID
  // bytes, which are passed to all ranks.
  int32_t (*comm_id)(cs_device *dev, const char *names, unsigned char *id, cs_error *err);
  // comm_join makes a rank of the communicator of an identity. It waits for no other rank: the communicator can be
  // used once comm_state says that it is done. comm_abort releases it.
  int32_t (*comm_join)(cs_device *dev, const char *names, const unsigned char *id, int32_t rank, int32_t ranks,
                       cs_comm **comm, cs_error *err);
  // comm_queue begins to queue a collective on a stream of the communicator's device. It is queued, and another one
  // may follow, once comm_state says that it is done.
  int32_t (*comm_queue)(cs_comm *comm, cs_stream *s, const cs_collective *c, cs_error *err);
  // comm_state sets *done to whether the library has done what the call before has begun. A failure is that of this
  // call, or of a collective under way; then the communicator is of no more use.
  int32_t (*comm_state)(cs_comm *comm, int32_t *done, cs_error *err);
  // comm_abort ends the collectives under way, whose results are undefined, and releases the communicator. No call
  // uses it at the time or later.
  int32_t (*comm_abort)(cs_comm *comm, cs_error *err);

  // -- optional: what is open --

  // libraries writes a line to text for each of the vendor's libraries that are open: name,
  // version, 1 or 0 for simulated or not, and path, with tabs between them. If dev is not NULL,
  // those that it has opened are among them.
  void (*libraries)(cs_lib *lib, cs_device *dev, char *text, uint64_t bytes);

  // -- optional: what the driver compiles when a kernel is first launched, both or none --

  // pipelines_put gives a device that has launched nothing what pipelines_get returned in an earlier
  // process. Data of another device or driver are CS_FORMAT.
  int32_t (*pipelines_put)(cs_device *dev, const unsigned char *data, uint64_t bytes, cs_error *err);
  int32_t (*pipelines_get)(cs_device *dev, cs_blob *out, cs_error *err);
};

#endif
