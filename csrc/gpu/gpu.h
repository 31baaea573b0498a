// gpu.h has what the shims for CUDA and HIP share, whose APIs differ in names and numbers mostly:
// the table of the vendor's functions by neutral names, the objects behind the handles of shim.h,
// and struct gpu_vendor, by which a vendor describes itself. gpu.c implements shim.h over them.
// csrc/cuda and csrc/rocm each have a loader, which fills the tables symbol by symbol, and the
// parts in which the vendor has a way of its own.

#ifndef CONCORD_GPU_H
#define CONCORD_GPU_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "../shim.h"

// The results of the driver that the shared code knows. They are the same in CUDA and HIP, as are
// the flags and the attributes of kernels below.
enum { INVALID_VALUE = 1, NOT_READY = 600, PEER_ALREADY_ENABLED = 704 };

enum {                 // flags of single functions
  HOST_PORTABLE = 1,   // host_alloc
  HOST_DEVICEMAP = 2,  // host_alloc
  ATTACH_GLOBAL = 1,   // alloc_managed
  NON_BLOCKING = 1,    // stream_create
  DISABLE_TIMING = 2,  // event_create
  CAPTURE_RELAXED = 2, // capture_begin
  DEVICE_CPU = -1,     // prefetch
  PLACE_DEVICE = 1,    // gpu_place.type
  PLACE_HOST = 2,
};

enum { // function_attribute
  FUNC_MAX_THREADS = 0,
  FUNC_SHARED_BYTES = 1,
  FUNC_LOCAL_BYTES = 3,
  FUNC_REGISTERS = 4,
  FUNC_MAX_DYNAMIC_SHARED = 8, // CUDA only
};

// Attributes of devices, whose numbers differ: gpu_vendor.attributes has them.
enum {
  ATTR_MAX_BLOCK_DIM_X, // Y and Z follow
  ATTR_MAX_GRID_DIM_X,  // Y and Z follow
  ATTR_MAX_THREADS_PER_BLOCK,
  ATTR_MAX_THREADS_PER_MULTIPROCESSOR,
  ATTR_MAX_BLOCKS_PER_MULTIPROCESSOR,
  ATTR_REGISTERS_PER_MULTIPROCESSOR,
  ATTR_SHARED_PER_BLOCK,
  ATTR_SHARED_PER_BLOCK_OPTIN,
  ATTR_SHARED_PER_MULTIPROCESSOR,
  ATTR_SHARED_PER_MULTIPROCESSOR_BEFORE, // its number in an older version
  ATTR_WARP_SIZE,
  ATTR_MULTIPROCESSORS,
  ATTR_CLOCK_RATE,
  ATTR_MEMORY_CLOCK_RATE,
  ATTR_MEMORY_BUS_WIDTH,
  ATTR_L2_CACHE_SIZE,
  ATTR_INTEGRATED,
  ATTR_CAPABILITY_MAJOR,
  ATTR_CAPABILITY_MINOR,
  ATTR_MANAGED_MEMORY,
  ATTR_CONCURRENT_MANAGED,
  ATTR_MEMORY_POOLS,
  ATTRIBUTES
};

struct gpu_place { // CUDA's CUmemLocation, passed by value
  int type, id;
};

struct gpu_update { // CUDA's CUgraphExecUpdateResultInfo
  int result;
  void *node, *from;
};

// gpu_own is a function with a signature of the vendor's own, which the vendor's part casts.
typedef void (*gpu_own)(void);

// gpu_api has the functions of the driver. Streams, events, modules, functions and graphs are
// pointers, and addresses uint64_t: some vendor's are pointers to void, which are passed in the
// same way. A function that the driver lacks is NULL.
struct gpu_api {
  int (*init)(unsigned flags);
  int (*driver_version)(int *version);
  int (*runtime_version)(int *version);
  gpu_own error_name, error_string;
  int (*device_count)(int *count);
  int (*device)(int *device, int ordinal);
  int (*device_name)(char *name, int bytes, int device);
  int (*device_memory)(size_t *bytes, int device);
  int (*device_attribute)(int *value, int attribute, int device);
  int (*device_uuid)(unsigned char *uuid, int device); // 16 bytes
  int (*device_pci)(char *id, int bytes, int device);
  gpu_own set_current;
  int (*priority_range)(int *lowest, int *highest);
  int (*can_access_peer)(int *can, int device, int peer);
  gpu_own enable_peer;
  int (*memory_info)(size_t *free, size_t *total);
  int (*alloc)(uint64_t *address, size_t bytes);
  int (*free)(uint64_t address);
  int (*host_alloc)(void **host, size_t bytes, unsigned flags);
  int (*host_address)(uint64_t *address, void *host, unsigned flags);
  int (*host_free)(void *host);
  int (*alloc_managed)(uint64_t *address, size_t bytes, unsigned flags);
  int (*alloc_async)(uint64_t *address, size_t bytes, void *stream);
  int (*free_async)(uint64_t address, void *stream);
  int (*prefetch)(uint64_t address, size_t bytes, int device, void *stream);
  int (*prefetch_to)(uint64_t address, size_t bytes, struct gpu_place to, unsigned flags,
                     void *stream);
  int (*upload)(uint64_t dst, const void *src, size_t bytes, void *stream);
  int (*download)(void *dst, uint64_t src, size_t bytes, void *stream);
  int (*copy)(uint64_t dst, uint64_t src, size_t bytes, void *stream);
  gpu_own copy_peer;
  int (*set8)(uint64_t dst, unsigned char value, size_t count, void *stream);
  int (*set16)(uint64_t dst, unsigned short value, size_t count, void *stream);
  int (*set32)(uint64_t dst, unsigned value, size_t count, void *stream);
  int (*set8_strided)(uint64_t dst, size_t pitch, unsigned char value, size_t width, size_t height,
                      void *stream);
  int (*set16_strided)(uint64_t dst, size_t pitch, unsigned short value, size_t width,
                       size_t height, void *stream);
  int (*set32_strided)(uint64_t dst, size_t pitch, unsigned value, size_t width, size_t height,
                       void *stream);
  gpu_own module_load;
  int (*module_unload)(void *module);
  int (*module_function)(void **function, void *module, const char *name);
  int (*function_attribute)(int *value, int attribute, void *function);
  int (*set_function_attribute)(void *function, int attribute, int value);
  int (*occupancy)(int *groups, void *function, int group, size_t dynamic);
  int (*suggest)(int *grid, int *group, void *function, size_t dynamic, int limit);
  int (*suggest_sized)(int *grid, int *group, void *function, size_t (*dynamic_of)(int),
                       size_t dynamic, int limit);
  int (*launch)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                unsigned bz, unsigned shared, void *stream, void **params, void **extra);
  int (*stream_create)(void **stream, unsigned flags, int priority);
  int (*stream_destroy)(void *stream);
  int (*stream_query)(void *stream);
  int (*stream_sync)(void *stream);
  int (*stream_wait)(void *stream, void *event, unsigned flags);
  int (*event_create)(void **event, unsigned flags);
  int (*event_destroy)(void *event);
  int (*event_record)(void *event, void *stream);
  int (*event_query)(void *event);
  int (*event_sync)(void *event);
  int (*event_elapsed)(float *ms, void *from, void *to);
  int (*capture_begin)(void *stream, int mode);
  int (*capture_end)(void *stream, void **graph);
  int (*instantiate)(void **exec, void *graph, unsigned long long flags);
  int (*instantiate_logged)(void **exec, void *graph, void **node, char *log, size_t bytes);
  int (*update)(void *exec, void *graph, void **node, int *result);
  int (*update_detailed)(void *exec, void *graph, struct gpu_update *result);
  int (*graph_launch)(void *exec, void *stream);
  int (*exec_destroy)(void *exec);
  int (*graph_destroy)(void *graph);
};

enum { RTC_INVALID_INPUT = 3, RTC_INVALID_OPTION = 5, RTC_COMPILATION = 6 };

// rtc_api has the functions of NVRTC or hipRTC. Both return 0 on success.
struct rtc_api {
  int (*version)(int *major, int *minor);
  const char *(*error_string)(int code);
  int (*create)(void **program, const char *source, const char *name, int count,
                const char *const *headers, const char *const *names);
  int (*destroy)(void **program);
  int (*compile)(void *program, int count, const char *const *options);
  int (*log_size)(void *program, size_t *bytes);
  int (*log)(void *program, char *text);
  int (*code_size)(void *program, size_t *bytes);
  int (*code)(void *program, char *code);
  int (*native_size)(void *program, size_t *bytes); // machine code, where code is not
  int (*native)(void *program, char *code);
  int (*arch_count)(int *count);
  int (*archs)(int *archs);
};

// blas_api has the functions of cuBLAS or rocBLAS, whose matrices are column-major.
struct blas_api {
  int (*create)(void **handle);
  int (*destroy)(void *handle);
  int (*set_stream)(void *handle, void *stream);
  int (*set_pointer_mode)(void *handle, int mode); // 0: alpha and beta are on the host
  int (*set_math_mode)(void *handle, int mode);
  int (*sgemm)(void *handle, int ta, int tb, int m, int n, int k, const float *alpha,
               const float *a, int lda, const float *b, int ldb, const float *beta, float *c,
               int ldc);
  int (*dgemm)(void *handle, int ta, int tb, int m, int n, int k, const double *alpha,
               const double *a, int lda, const double *b, int ldb, const double *beta, double *c,
               int ldc);
  gpu_own gemm_ex, get_version;
};

enum { CCL_IN_PROGRESS = 7 };

struct ccl_id { // passed by value
  char bytes[CS_COMM_ID];
};

// ccl_config is how the library's configuration began in 2.14, the first version with communicators that do not
// block. Later versions read as much of it as its size and version say.
struct ccl_config {
  size_t bytes;
  unsigned magic, version;
  int blocking;
};

// ccl_api has the functions of NCCL or RCCL, whose names and numbers are the same.
struct ccl_api {
  int (*version)(int *version);
  const char *(*error_string)(int code);
  const char *(*last_error)(void *comm);
  int (*id)(struct ccl_id *id);
  int (*join)(void **comm, int ranks, struct ccl_id id, int rank, struct ccl_config *config);
  int (*state)(void *comm, int *code);
  int (*abort)(void *comm);
  int (*all_reduce)(const void *src, void *dst, size_t n, int type, int op, void *comm,
                    void *stream);
  int (*reduce)(const void *src, void *dst, size_t n, int type, int op, int root, void *comm,
                void *stream);
  int (*broadcast)(const void *src, void *dst, size_t n, int type, int root, void *comm,
                   void *stream);
  int (*all_gather)(const void *src, void *dst, size_t n, int type, void *comm, void *stream);
  int (*reduce_scatter)(const void *src, void *dst, size_t n, int type, int op, void *comm,
                        void *stream);
  int (*send)(const void *src, size_t n, int type, int to, void *comm, void *stream);
  int (*receive)(void *dst, size_t n, int type, int from, void *comm, void *stream);
  int (*group_start)(void);
  int (*group_end)(void);
};

// gpu_symbol is a row of a loader: the function at an offset of cs_lib, or for BLAS of cs_device.
// The rows end with one without names.
struct gpu_symbol {
  const char *names; // separated by spaces, the newest version first; the first that exists is used
  size_t at;
  int required;
};

enum { OPTIONAL = 0, REQUIRED = 1 };

// gpu_code is the class of the vendor's results from first to last; sticky is whether the context
// cannot be used after it. The rows end with one whose first is 0.
struct gpu_code {
  int first, last;
  int32_t status; // CS_*
  int sticky;
};

// A cs_lib is a driver and a compiler, each with its own table, so that a process can use a real
// one and a simulated one. A vendor may add fields: its struct begins with this one.
struct cs_lib {
  const struct gpu_vendor *vendor;
  cs_lib *next;
  void *driver, *compiler; // handles of dlopen, NULL if there is none
  struct gpu_api api;
  struct rtc_api rtc;
  int simulated;
  pthread_mutex_t lock; // guards the following fields after opening
  int initialized;      // init has succeeded
  struct {
    const char *name;
    void *library; // NULL if it is not open
    int versioned; // of the compiler's version
  } others[2];     // further libraries that the compiler needs
  void *ccl;       // NULL if it is not open; it and its functions do not change once it is
  struct ccl_api ccl_api;
};

struct cs_comm {
  cs_device *dev;
  void *handle;
};

struct cs_event {
  cs_device *dev;
  void *handle;
  int timing;
  cs_event *next; // in the device's free list
};

// A vendor may add fields to a cs_device, as to cs_lib.
struct cs_device {
  cs_lib *lib;
  int handle;
  void *context;           // NULL if the vendor has none
  int32_t lowest, highest; // limits of streams' priorities: the highest is the smallest number
  int32_t shared, shared_optin;
  int async_alloc, managed;
  atomic_int lost;      // set after a failure that makes the context unusable
  pthread_mutex_t lock; // guards the free lists; [1] has events with timing
  cs_event *events[2];
  pthread_mutex_t blas_lock;
  void *blas;
  struct blas_api blas_api;
  void *blas_handle;
};

// Copies from and to pageable memory are done in pieces, through pinned memory of the stream.
enum { CHUNKS = 4, CHUNK_BYTES = 1 << 20 };

struct chunk {
  unsigned char *at;
  void *passed; // the event after the last copy that uses the chunk
  int busy;     // no call has waited for passed
  uint64_t used;
};

struct cs_stream {
  cs_device *dev;
  void *handle;
  int owned;
  atomic_int capturing;
  unsigned char *pinned; // CHUNKS * CHUNK_BYTES, from the first copy on
  struct chunk ring[CHUNKS];
  int at; // index of the current chunk
};

struct cs_kernel {
  cs_module *module;
  void *handle;
  cs_kernel *next;
};

struct cs_module {
  cs_device *dev;
  void *handle;
  pthread_mutex_t lock; // guards kernels
  cs_kernel *kernels;
};

struct cs_graph {
  cs_device *dev;
  pthread_mutex_t lock; // guards the following fields
  void *exec;
  cs_event *last; // recorded after the last launch, NULL before the first and if graphs_overlap
};

// gpu_note is a buffer to which text is appended up to its size.
struct gpu_note {
  char *text;
  uint64_t bytes, used;
};

// gpu_vendor is a vendor's description of itself. Functions return the vendor's result, which the
// shared code classifies, or a CS_* status with *err, as shim.h has it. Those that may be NULL say
// so.
struct gpu_vendor {
  concord_shim shim; // filled by concord_gpu_shim; the first, as open finds the vendor by it
  const char *driver_title, *compiler_title, *blas_title, *ccl_title; // in errors
  const char *driver_name, *compiler_name, *blas_name, *ccl_name; // in the list of libraries
  size_t lib_bytes, device_bytes;                         // of its structs
  const struct gpu_symbol *driver_symbols, *compiler_symbols, *blas_symbols;
  const int *attributes; // numbers of ATTR_*; 0 is none
  const struct gpu_code *codes, *blas_codes;
  uint64_t max_items;              // the most items of a grid in a dimension
  int no_device;                   // the result of device_count if there are none, or 0
  int context_frees;               // the end of a context frees what is left in it
  int graphs_overlap;              // a graph may be changed, launched again or closed while it runs
  int compiles_alone;              // the compiler compiles one program at a time
  int blas_plain, blas_transposed; // operations of BLAS
  int blas_math_mode;              // for set_math_mode

  // -- libraries --
  void *(*open_file)(const char *name); // NULL: dlopen
  // open_compiler sets compiler, rtc and others of a library whose driver is open.
  void (*open_compiler)(cs_lib *lib, const char *names, struct gpu_note *tried);
  void (*error_text)(cs_lib *lib, int code, const char **name, const char **words);
  void (*version)(int driver, char *text, size_t bytes); // of a driver's number

  // -- programs --
  int32_t (*targets)(cs_lib *lib, char *text, uint64_t bytes, cs_error *err); // with a compiler
  int32_t (*check_options)(cs_lib *lib, const char *options, cs_error *err);  // NULL: none
  int32_t (*assemble)(cs_lib *lib, const unsigned char *text, uint64_t bytes, const char *options,
                      cs_blob *out, cs_error *err); // NULL: no assembler
  int32_t (*load)(cs_device *d, const unsigned char *code, uint64_t bytes, void **module, char *log,
                  uint64_t log_bytes, cs_error *err);

  // -- devices --
  // identify sets arch, major and minor of a device.
  int32_t (*identify)(cs_lib *lib, int device, cs_info *info, cs_error *err);
  int (*set_current)(cs_device *d);
  // acquire takes the device's context and makes it current; if it fails, it takes nothing.
  int32_t (*acquire)(cs_device *d, cs_error *err);
  int32_t (*release)(cs_device *d, cs_error *err); // resets a lost device
  int (*enable_peer)(cs_device *to, cs_device *from);
  int (*copy_peer)(cs_stream *s, cs_device *to, uint64_t dst, cs_device *from, uint64_t src,
                   uint64_t bytes);

  // -- BLAS --
  int32_t (*blas_suits)(cs_device *d, cs_error *err); // whether it runs on the device; NULL: yes
  void (*blas_version)(cs_device *d, char *text, size_t bytes);
  int (*gemm_half)(cs_device *d, int ta, int tb, int m, int n, int k, const float *alpha,
                   const void *a, int lda, const void *b, int ldb, const float *beta, void *c,
                   int ldc);
};

// concord_gpu_shim fills the table of a vendor, and returns it. The vendor lives as long as the
// process.
const concord_shim *concord_gpu_shim(struct gpu_vendor *v);

#endif
