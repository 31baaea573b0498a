// go:build cgo && unix

// null.c is a vendor that does nothing: a complete table that uses the host's memory, counts its
// objects and fails on request. Copies are done at once; kernels do not run.

#include "null.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICE, STREAM, EVENT, MODULE, GRAPH, MEMORY, BLOB, COMM, KINDS };
static const char *const kinds[] = {"device", "stream", "event", "module",
                                    "graph",  "memory", "blob", "communicator"};

struct cs_lib {
  int unused;
};
struct cs_device {
  int32_t ordinal, lost;
};
struct cs_stream {
  cs_device *dev;
  int32_t broken, wrapped, capturing;
  uint64_t handle;
};
struct cs_event {
  cs_stream *s;
  int32_t timing, broken, lost_with;
  double at;
};
struct cs_module {
  cs_device *dev;
};
struct cs_kernel {
  int unused;
};
struct cs_graph {
  int unused;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static struct {
  const char *entry[64];
  int64_t calls[64];
  char fail[32];
  int32_t after, status, breaks, held, devices, no_driver, no_compiler;
  int64_t live[KINDS];
  double clock;
  null_launch last;
  cs_gemm product;
  cs_collective collective;
  unsigned char pipelines[64];
  uint64_t pipelines_bytes;
} state = {.devices = 2};

static struct cs_lib the_lib;
static struct cs_kernel the_kernel;

static int32_t fail(cs_error *err, int32_t status) {
  err->status = status;
  err->code = 1000 + status;
  snprintf(err->text, sizeof err->text, "NULL_ERROR_%d", status);
  return status;
}

// enter counts a call, and returns the requested failure if there is one.
static int32_t enter(const char *entry) {
  int32_t status = CS_OK;
  pthread_mutex_lock(&lock);
  int i = 0;
  while (state.entry[i] != NULL && strcmp(state.entry[i], entry) != 0)
    i++;
  state.entry[i] = entry;
  state.calls[i]++;
  if (strcmp(state.fail, entry) == 0 && state.after-- == 0) {
    status = state.status;
    state.fail[0] = 0;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

#define ENTER(err)                                                                                 \
  do {                                                                                             \
    int32_t status_ = enter(__func__);                                                             \
    if (status_ != CS_OK)                                                                          \
      return fail(err, status_);                                                                   \
  } while (0)

// USE is ENTER for calls that fail on a broken stream or a lost device.
#define USE(s, err)                                                                                \
  do {                                                                                             \
    ENTER(err);                                                                                    \
    if ((s)->dev->lost)                                                                            \
      return fail(err, CS_LOST);                                                                   \
    if ((s)->broken)                                                                               \
      return fail(err, (s)->broken);                                                               \
  } while (0)

static void live(int kind, int64_t n) {
  pthread_mutex_lock(&lock);
  state.live[kind] += n;
  pthread_mutex_unlock(&lock);
}

static void *make(int kind, size_t bytes) {
  live(kind, 1);
  return calloc(1, bytes);
}

static void drop(int kind, void *p) {
  live(kind, -1);
  free(p);
}

// wait_released waits until null_hold has ended.
static void wait_released(void) {
  pthread_mutex_lock(&lock);
  while (state.held)
    pthread_cond_wait(&moved, &lock);
  pthread_mutex_unlock(&lock);
}

static int32_t held(void) {
  pthread_mutex_lock(&lock);
  int32_t h = state.held;
  pthread_mutex_unlock(&lock);
  return h;
}

// -- libraries and compiler --

static int32_t lib_open(const concord_shim *shim, const char *drivers, const char *compilers,
                        cs_lib **lib, char *tried, uint64_t bytes, cs_error *err) {
  (void)shim;
  snprintf(tried, bytes, "%s: %s\n%s: %s\n", drivers, state.no_driver ? "not found" : "opened",
           compilers, state.no_compiler ? "not found" : "opened");
  ENTER(err);
  if (state.no_driver && state.no_compiler)
    return fail(err, CS_NO_DEVICE);
  *lib = &the_lib;
  return CS_OK;
}
static int32_t has_driver(cs_lib *lib) { return (void)lib, !state.no_driver; }
static int32_t has_compiler(cs_lib *lib) { return (void)lib, !state.no_compiler; }
static void missing(cs_lib *lib, char *text, uint64_t bytes) {
  (void)lib;
  snprintf(text, bytes, "nullOptional");
}
static int32_t versions(cs_lib *lib, cs_versions *out, cs_error *err) {
  (void)lib;
  ENTER(err);
  *out = (cs_versions){.driver = 12020, .compiler_major = 11, .compiler_minor = 8};
  return CS_OK;
}
static int32_t device_count(cs_lib *lib, int32_t *count, cs_error *err) {
  (void)lib;
  ENTER(err);
  *count = state.devices;
  return CS_OK;
}
static int32_t device_info(cs_lib *lib, int32_t ordinal, cs_info *out, cs_error *err) {
  (void)lib;
  ENTER(err);
  *out = (cs_info){.name = "Nothing",
                   .arch = "null_1",
                   .total_memory = 1 << 30,
                   .max_allocation = 1 << 28,
                   .shared_block = 49152,
                   .max_group = {1024, 1024, 64},
                   .max_groups = {0x7fffffff, 65535, 65535},
                   .kind = CS_KIND_DISCRETE,
                   .major = 1,
                   .multiprocessors = 4,
                   .warp = 32,
                   .clock_khz = 1500000,
                   .memory_clock_khz = 1000000,
                   .memory_bus_bits = 256,
                   .l2_cache = 4 << 20,
                   .max_threads = 1024,
                   .simulated = 1};
  snprintf(out->pci, sizeof out->pci, "%d", ordinal);
  return CS_OK;
}
static int32_t peer_access(cs_lib *lib, int32_t to, int32_t from, int32_t *can, cs_error *err) {
  (void)lib;
  ENTER(err);
  *can = to < from;
  return CS_OK;
}
static int32_t targets(cs_lib *lib, char *text, uint64_t bytes, cs_error *err) {
  (void)lib;
  ENTER(err);
  snprintf(text, bytes, "null_1 null_2");
  return CS_OK;
}
static void fill_blob(cs_blob *out, const void *data, uint64_t bytes, const char *log) {
  live(BLOB, 1);
  out->data = malloc(bytes + 1);
  memcpy(out->data, data, bytes);
  out->bytes = bytes;
  out->log_bytes = strlen(log) + 1;
  out->log = malloc(out->log_bytes);
  memcpy(out->log, log, out->log_bytes);
}
static int32_t compile(cs_lib *lib, const char *name, const char *source, const char *options,
                       cs_blob *out, cs_error *err) {
  (void)lib, (void)name, (void)options;
  int32_t status = enter(__func__);
  fill_blob(out, source, status == CS_OK ? strlen(source) : 0,
            status == CS_COMPILE ? "p.cl:3:1: error: asked for" : "a warning");
  return status == CS_OK ? CS_OK : fail(err, status);
}
static int32_t assemble(cs_lib *lib, const unsigned char *text, uint64_t bytes, const char *options,
                        cs_blob *out, cs_error *err) {
  (void)lib, (void)options;
  ENTER(err);
  fill_blob(out, text, bytes, "Used 8 registers");
  return CS_OK;
}
static void blob_free(cs_blob *blob) {
  if (blob->data != NULL)
    live(BLOB, -1);
  free(blob->data);
  free(blob->log);
  *blob = (cs_blob){0};
}

// -- device, memory, programs --

static int32_t device_open(cs_lib *lib, int32_t ordinal, cs_device **dev, cs_error *err) {
  (void)lib;
  ENTER(err);
  *dev = make(DEVICE, sizeof **dev);
  (*dev)->ordinal = ordinal;
  return CS_OK;
}
static int32_t device_close(cs_device *dev, cs_error *err) {
  int32_t status = enter(__func__), lost = dev->lost;
  drop(DEVICE, dev);
  return lost ? fail(err, CS_LOST) : status != CS_OK ? fail(err, status) : CS_OK;
}
static void device_handles(cs_device *dev, uint64_t *device, uint64_t *context) {
  *device = (uint64_t)dev->ordinal;
  *context = (uint64_t)(uintptr_t)dev;
}
static int32_t memory_info(cs_device *dev, uint64_t *free_bytes, cs_error *err) {
  ENTER(err);
  if (dev->lost)
    return fail(err, CS_LOST);
  *free_bytes = 1 << 29;
  return CS_OK;
}
static int32_t mem_alloc(cs_device *dev, uint8_t kind, uint64_t bytes, cs_memory *out,
                         cs_error *err) {
  ENTER(err);
  if (dev->lost)
    return fail(err, CS_LOST);
  void *p = aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (p == NULL)
    return fail(err, CS_NO_MEMORY);
  live(MEMORY, 1);
  out->address = (uint64_t)(uintptr_t)p;
  out->host = kind == CS_ON_DEVICE ? 0 : out->address;
  return CS_OK;
}
static int32_t mem_free(cs_device *dev, uint8_t kind, uint64_t address, cs_error *err) {
  (void)kind;
  int32_t status = enter(__func__), lost = dev->lost;
  if (!lost && status != CS_OK && status != CS_LOST)
    return fail(err, status); // it is still there
  drop(MEMORY, (void *)(uintptr_t)address);
  return lost ? fail(err, CS_LOST) : status != CS_OK ? fail(err, status) : CS_OK;
}
static int32_t module_load(cs_device *dev, const unsigned char *code, uint64_t bytes,
                           cs_module **mod, char *log, uint64_t log_bytes, cs_error *err) {
  (void)code, (void)bytes;
  snprintf(log, log_bytes, "loaded");
  ENTER(err);
  if (dev->lost)
    return fail(err, CS_LOST);
  *mod = make(MODULE, sizeof **mod);
  (*mod)->dev = dev;
  return CS_OK;
}
static int32_t module_unload(cs_module *mod, cs_error *err) {
  int32_t status = enter(__func__), lost = mod->dev->lost;
  drop(MODULE, mod);
  return lost ? fail(err, CS_LOST) : status != CS_OK ? fail(err, status) : CS_OK;
}
static int32_t module_kernel(cs_module *mod, const char *name, cs_kernel **kernel,
                             cs_kernel_info *info, cs_error *err) {
  (void)mod;
  ENTER(err);
  if (strstr(name, "absent") != NULL)
    return fail(err, CS_NOT_FOUND);
  *kernel = &the_kernel;
  *info = (cs_kernel_info){.max_group = 512, .registers = 8, .local_bytes = 64, .spill_bytes = 4};
  return CS_OK;
}
static int32_t occupancy(cs_kernel *k, int32_t group, uint64_t bytes, int32_t *groups,
                         cs_error *err) {
  (void)k, (void)bytes;
  ENTER(err);
  *groups = 2048 / group;
  return CS_OK;
}
static int32_t suggest(cs_kernel *k, uint64_t bytes, int32_t *group, cs_error *err) {
  (void)k, (void)bytes;
  ENTER(err);
  *group = 256;
  return CS_OK;
}

// -- streams --

static int32_t stream_new(cs_device *dev, int32_t priority, cs_stream **s, cs_error *err) {
  ENTER(err);
  if (dev->lost)
    return fail(err, CS_LOST);
  *s = make(STREAM, sizeof **s);
  (*s)->dev = dev;
  (*s)->handle = (uint64_t)(100 + priority);
  return CS_OK;
}
static int32_t stream_wrap(cs_device *dev, uint64_t handle, cs_stream **s, cs_error *err) {
  ENTER(err);
  *s = make(STREAM, sizeof **s);
  (*s)->dev = dev;
  (*s)->handle = handle;
  return CS_OK;
}
static uint64_t stream_handle(cs_stream *s) { return s->handle; }
static int32_t stream_close(cs_stream *s, cs_error *err) {
  int32_t status = enter(__func__);
  wait_released();
  if (status == CS_OK)
    status = s->dev->lost ? CS_LOST : s->broken;
  drop(STREAM, s);
  return status == CS_OK ? CS_OK : fail(err, status);
}
static int32_t alloc_on(cs_stream *s, uint64_t bytes, uint64_t *address, cs_error *err) {
  USE(s, err);
  cs_memory m;
  int32_t status = mem_alloc(s->dev, CS_ON_DEVICE, bytes, &m, err);
  if (status == CS_OK)
    *address = m.address;
  return status;
}
static int32_t free_on(cs_stream *s, uint64_t address, cs_error *err) {
  int32_t status = enter(__func__), lost = s->dev->lost;
  if (!lost && status != CS_OK && status != CS_LOST)
    return fail(err, status); // it is still there
  drop(MEMORY, (void *)(uintptr_t)address);
  return lost ? fail(err, CS_LOST) : status != CS_OK ? fail(err, status) : CS_OK;
}
static void *at(uint64_t address) { return (void *)(uintptr_t)address; }
static int32_t upload(cs_stream *s, uint64_t dst, const unsigned char *src, uint64_t bytes,
                      cs_error *err) {
  USE(s, err);
  memcpy(at(dst), src, bytes);
  return CS_OK;
}
static int32_t download(cs_stream *s, unsigned char *dst, uint64_t src, uint64_t bytes,
                        cs_error *err) {
  USE(s, err);
  wait_released();
  memcpy(dst, at(src), bytes);
  return CS_OK;
}
static int32_t upload_pinned(cs_stream *s, uint64_t dst, uint64_t host, uint64_t bytes,
                             cs_error *err) {
  USE(s, err);
  memcpy(at(dst), at(host), bytes);
  return CS_OK;
}
static int32_t download_pinned(cs_stream *s, uint64_t host, uint64_t src, uint64_t bytes,
                               cs_error *err) {
  USE(s, err);
  memcpy(at(host), at(src), bytes);
  return CS_OK;
}
static int32_t copy(cs_stream *s, uint64_t dst, uint64_t src, uint64_t bytes, cs_error *err) {
  USE(s, err);
  memmove(at(dst), at(src), bytes);
  return CS_OK;
}
static int32_t copy_peer(cs_stream *s, cs_device *to, uint64_t dst, cs_device *from, uint64_t src,
                         uint64_t bytes, cs_error *err) {
  (void)to, (void)from;
  USE(s, err);
  memcpy(at(dst), at(src), bytes);
  return CS_OK;
}
static int32_t peer(cs_device *to, cs_device *from, int32_t enable, int32_t *can, cs_error *err) {
  (void)enable;
  ENTER(err);
  *can = to->ordinal < from->ordinal;
  return CS_OK;
}
static int32_t fill(cs_stream *s, uint64_t dst, uint64_t bytes, const unsigned char *pattern,
                    uint64_t pattern_bytes, cs_error *err) {
  USE(s, err);
  for (uint64_t i = 0; i < bytes; i++)
    ((unsigned char *)at(dst))[i] = pattern[i % pattern_bytes];
  return CS_OK;
}
static int32_t prefetch(cs_stream *s, uint64_t address, uint64_t bytes, int32_t host,
                        cs_error *err) {
  (void)address, (void)bytes, (void)host;
  USE(s, err);
  return CS_OK;
}

static uint64_t hash(uint64_t sum, const void *p, size_t n) {
  for (size_t i = 0; i < n; i++)
    sum = (sum ^ ((const unsigned char *)p)[i]) * 1099511628211u;
  return sum;
}
static int32_t launch(cs_stream *s, cs_kernel *k, const uint64_t *groups, const uint64_t *group,
                      const cs_arg *args, uint32_t count, const unsigned char *data,
                      cs_error *err) {
  (void)k;
  USE(s, err);
  null_launch l = {.count = count, .sum = 14695981039346656037u};
  memcpy(l.groups, groups, sizeof l.groups);
  memcpy(l.group, group, sizeof l.group);
  for (uint32_t i = 0; i < count; i++) {
    uint64_t address = args[i].mem + (uint64_t)args[i].mem_offset;
    l.sum = hash(l.sum, &args[i].kind, 1);
    if (args[i].kind == CS_ARG_MEMORY)
      l.sum = hash(l.sum, &address, sizeof address);
    else if (args[i].kind == CS_ARG_VALUE)
      l.sum = hash(l.sum, data + args[i].offset, (size_t)args[i].size);
    else
      l.sum = hash(l.sum, &args[i].size, sizeof args[i].size);
  }
  state.last = l;
  if (state.breaks) {
    s->broken = state.breaks;
    s->dev->lost = state.breaks == CS_LOST;
    state.breaks = CS_OK;
  }
  return CS_OK;
}
static int32_t launch_fast(cs_stream *s, cs_kernel *k, const uint64_t *groups,
                           const uint64_t *group, const cs_arg *args, uint32_t count,
                           const unsigned char *data, cs_error *err) {
  (void)s, (void)k, (void)groups, (void)group, (void)args, (void)count, (void)data, (void)err;
  return CS_OK;
}
static int32_t stream_wait(cs_stream *s, cs_event *e, cs_error *err) {
  (void)e;
  USE(s, err);
  return CS_OK;
}
static int32_t stream_query(cs_stream *s, int32_t *done, cs_error *err) {
  USE(s, err);
  *done = !held();
  return CS_OK;
}
static int32_t stream_sync(cs_stream *s, cs_error *err) {
  USE(s, err);
  wait_released();
  return s->broken ? fail(err, s->broken) : CS_OK;
}

// -- events --

static int32_t record(cs_stream *s, int32_t timing, cs_event **e, cs_error *err) {
  USE(s, err);
  *e = make(EVENT, sizeof **e);
  (*e)->timing = timing;
  pthread_mutex_lock(&lock);
  (*e)->at = state.clock += 1000;
  pthread_mutex_unlock(&lock);
  return CS_OK;
}
static int32_t event_query(cs_event *e, int32_t *done, cs_error *err) {
  (void)e;
  ENTER(err);
  *done = !held();
  return CS_OK;
}
static int32_t event_wait(cs_event *e, cs_error *err) {
  (void)e;
  ENTER(err);
  wait_released();
  return CS_OK;
}
static int32_t event_elapsed(cs_event *from, cs_event *to, double *nanoseconds, cs_error *err) {
  ENTER(err);
  *nanoseconds = to->at - from->at;
  return CS_OK;
}
static void event_close(cs_event *e) { drop(EVENT, e); }

// -- graphs --

static int32_t capture_begin(cs_stream *s, cs_error *err) {
  USE(s, err);
  s->capturing = 1;
  return CS_OK;
}
static int32_t capture_end(cs_stream *s, cs_graph **g, cs_error *err) {
  s->capturing = 0;
  USE(s, err);
  if (*g == NULL)
    *g = make(GRAPH, sizeof **g);
  return CS_OK;
}
static int32_t capture_drop(cs_stream *s, cs_error *err) {
  s->capturing = 0;
  USE(s, err);
  return CS_OK;
}
static int32_t graph_launch(cs_graph *g, cs_stream *s, cs_error *err) {
  (void)g;
  USE(s, err);
  return CS_OK;
}
static int32_t graph_close(cs_graph *g, cs_error *err) {
  int32_t status = enter(__func__);
  drop(GRAPH, g);
  return status == CS_OK ? CS_OK : fail(err, status);
}

#define REQUIRED                                                                                   \
  .open = lib_open, .has_driver = has_driver, .has_compiler = has_compiler,        \
  .missing = missing, .versions = versions, .device_count = device_count,                          \
  .device_info = device_info, .targets = targets, .compile = compile, .blob_free = blob_free,      \
  .device_open = device_open, .device_close = device_close, .device_handles = device_handles,      \
  .memory_info = memory_info, .alloc = mem_alloc, .free = mem_free, .module_load = module_load,    \
  .module_unload = module_unload, .module_kernel = module_kernel, .stream_new = stream_new,        \
  .stream_handle = stream_handle, .stream_close = stream_close, .upload = upload,                  \
  .download = download, .copy = copy, .fill = fill, .stream_wait = stream_wait,                    \
  .stream_query = stream_query, .stream_sync = stream_sync, .record = record,                      \
  .event_query = event_query, .event_wait = event_wait, .event_elapsed = event_elapsed,            \
  .event_close = event_close

// -- matrix products --

static int32_t blas_open(cs_device *dev, const char *names, cs_error *err) {
  ENTER(err);
  if (dev->lost)
    return fail(err, CS_LOST);
  return strcmp(names, "libnullblas.so") == 0 ? CS_OK : fail(err, CS_UNSUPPORTED);
}
static int32_t gemm(cs_stream *s, const cs_gemm *g, cs_error *err) {
  USE(s, err);
  state.product = *g;
  return CS_OK;
}

// -- collectives, of one rank --

struct cs_comm {
  cs_device *dev;
  int32_t asked;
};
static int32_t comm_id(cs_device *dev, const char *names, unsigned char *id, cs_error *err) {
  ENTER(err);
  memset(id, 7, CS_COMM_ID);
  return dev->lost ? fail(err, CS_LOST) : strcmp(names, "libnullccl.so") == 0 ? CS_OK : fail(err, CS_UNSUPPORTED);
}
static int32_t comm_join(cs_device *dev, const char *names, const unsigned char *id, int32_t rank, int32_t ranks,
                         cs_comm **comm, cs_error *err) {
  ENTER(err);
  if (dev->lost)
    return fail(err, CS_LOST);
  if (rank != 0 || ranks != 1 || id[0] != 7 || strcmp(names, "libnullccl.so") != 0)
    return fail(err, CS_UNSUPPORTED);
  *comm = make(COMM, sizeof **comm);
  (*comm)->dev = dev;
  return CS_OK;
}
static int32_t comm_queue(cs_comm *comm, cs_stream *s, const cs_collective *c, cs_error *err) {
  USE(s, err);
  comm->asked = 0;
  state.collective = *c;
  return CS_OK;
}
static int32_t comm_state(cs_comm *comm, int32_t *done, cs_error *err) {
  ENTER(err);
  *done = comm->asked++ > 0 && !state.held;
  return comm->dev->lost ? fail(err, CS_LOST) : CS_OK;
}
static int32_t comm_abort(cs_comm *comm, cs_error *err) {
  int32_t status = enter(__func__);
  if (status == CS_OK && comm->dev->lost)
    status = CS_LOST;
  drop(COMM, comm);
  return status == CS_OK ? CS_OK : fail(err, status);
}

static void libraries(cs_lib *lib, cs_device *dev, char *text, uint64_t bytes) {
  (void)lib;
  snprintf(text, bytes, "null\t12.2\t1\t/null/libnull.so\nnullc\t11.8\t0\t/null/libnullc.so\n%s",
           dev != NULL ? "nullblas\t\t0\t\n" : "");
}

// Pipelines are the bytes that were put last.
static int32_t pipelines_put(cs_device *dev, const unsigned char *data, uint64_t bytes, cs_error *err) {
  ENTER(err);
  if (dev->lost)
    return fail(err, CS_LOST);
  if (bytes > sizeof state.pipelines)
    return fail(err, CS_FORMAT);
  memcpy(state.pipelines, data, bytes);
  state.pipelines_bytes = bytes;
  return CS_OK;
}
static int32_t pipelines_get(cs_device *dev, cs_blob *out, cs_error *err) {
  ENTER(err);
  if (dev->lost)
    return fail(err, CS_LOST);
  fill_blob(out, state.pipelines, state.pipelines_bytes, "");
  return CS_OK;
}

const concord_shim null_table = {
    REQUIRED,
    .launch = launch,
    .peer_access = peer_access,
    .assemble = assemble,
    .occupancy = occupancy,
    .suggest = suggest,
    .stream_wrap = stream_wrap,
    .alloc_on = alloc_on,
    .free_on = free_on,
    .upload_pinned = upload_pinned,
    .download_pinned = download_pinned,
    .copy_peer = copy_peer,
    .peer = peer,
    .prefetch = prefetch,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .capture_drop = capture_drop,
    .graph_launch = graph_launch,
    .graph_close = graph_close,
    .blas_open = blas_open,
    .gemm = gemm,
    .comm_id = comm_id,
    .comm_join = comm_join,
    .comm_queue = comm_queue,
    .comm_state = comm_state,
    .comm_abort = comm_abort,
    .libraries = libraries,
    .pipelines_put = pipelines_put,
    .pipelines_get = pipelines_get,
};

const concord_shim null_bare = {REQUIRED, .launch = launch_fast};

// -- controls --

void null_reset(void) {
  pthread_mutex_lock(&lock);
  memset(state.calls, 0, sizeof state.calls);
  state.fail[0] = 0;
  state.breaks = state.held = state.no_driver = state.no_compiler = 0;
  state.pipelines_bytes = 0;
  state.devices = 2;
  pthread_cond_broadcast(&moved);
  pthread_mutex_unlock(&lock);
}
void null_fail(const char *entry, int32_t after, int32_t status) {
  pthread_mutex_lock(&lock);
  snprintf(state.fail, sizeof state.fail, "%s", entry);
  state.after = after;
  state.status = status;
  pthread_mutex_unlock(&lock);
}
void null_break(int32_t status) { state.breaks = status; }
void null_hold(int32_t on) {
  pthread_mutex_lock(&lock);
  state.held = on;
  pthread_cond_broadcast(&moved);
  pthread_mutex_unlock(&lock);
}
void null_devices(int32_t count) { state.devices = count; }
void null_absent(int32_t driver, int32_t compiler) {
  state.no_driver = driver;
  state.no_compiler = compiler;
}
int64_t null_live(const char *kind) {
  int64_t n = 0;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < KINDS; i++)
    if (strcmp(kinds[i], kind) == 0)
      n = state.live[i];
  pthread_mutex_unlock(&lock);
  return n;
}
int64_t null_calls(const char *entry) {
  int64_t n = 0;
  pthread_mutex_lock(&lock);
  for (int i = 0; state.entry[i] != NULL; i++)
    if (strcmp(state.entry[i], entry) == 0)
      n = state.calls[i];
  pthread_mutex_unlock(&lock);
  return n;
}
null_launch null_last(void) { return state.last; }
cs_gemm null_product(void) { return state.product; }
cs_collective null_collective(void) { return state.collective; }
int32_t null_nothing(void) { return 0; }
