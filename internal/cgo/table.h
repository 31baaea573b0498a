// table.h calls the entries of a vendor's table. Go cannot call through a pointer to a function, so
// there is one caller per entry. The caller of an entry that the vendor does not have returns
// CS_UNSUPPORTED.
//
// The table is passed as a number: cgo checks pointers to structs that contain pointers, and this
// struct is never memory of Go.

#ifndef CONCORD_TABLE_H
#define CONCORD_TABLE_H

#include <stddef.h>

#include "../../csrc/shim.h"

#define TABLE(t) ((const concord_shim *)(t))

// REQUIRED lists the entries that every vendor has to have: all before the first optional one.
#define REQUIRED(X)                                                                                \
  X(open) X(has_driver) X(has_compiler) X(missing) X(versions) X(device_count)             \
  X(device_info) X(blob_free) X(device_open) X(device_close)                 \
  X(device_handles) X(memory_info) X(alloc) X(free) X(module_load) X(module_unload)                \
  X(module_kernel) X(stream_new) X(stream_handle) X(stream_close) X(upload) X(download) X(copy)    \
  X(fill) X(launch) X(stream_wait) X(stream_query) X(stream_sync) X(record) X(event_query)         \
  X(event_wait) X(event_elapsed) X(event_close)

#define COUNT(entry) +1
_Static_assert(offsetof(concord_shim, targets) == (REQUIRED(COUNT)) * sizeof(void *),
               "REQUIRED has all entries before the optional ones");
#undef COUNT

// Groups of optional entries: a table has all entries of a group or none.
#define COMPILER(X) X(targets) X(compile)
#define ORDERED(X) X(alloc_on) X(free_on)
#define PINNED_COPIES(X) X(upload_pinned) X(download_pinned)
#define PEERS(X) X(peer_access) X(copy_peer) X(peer)
#define GRAPHS(X) X(capture_begin) X(capture_end) X(capture_drop) X(graph_launch) X(graph_close)
#define BLAS(X) X(blas_open) X(gemm)
#define COLLECTIVES(X) X(comm_id) X(comm_join) X(comm_queue) X(comm_state) X(comm_abort)
#define PIPELINES(X) X(pipelines_put) X(pipelines_get)

// table_lacks returns the name of an entry that is NULL although it must not be. It returns NULL if
// there is none.
static inline const char *table_lacks(uintptr_t t) {
#define LACKS(entry)                                                                               \
  if (TABLE(t)->entry == NULL)                                                                     \
    return #entry;
#define OR_HAS(entry) || TABLE(t)->entry != NULL
#define TOGETHER(entries)                                                                          \
  if (0 entries(OR_HAS)) {                                                                         \
    entries(LACKS)                                                                                 \
  }
  REQUIRED(LACKS)
  TOGETHER(COMPILER)
  TOGETHER(ORDERED)
  TOGETHER(PINNED_COPIES)
  TOGETHER(PEERS)
  TOGETHER(GRAPHS)
  TOGETHER(BLAS)
  TOGETHER(COLLECTIVES)
  TOGETHER(PIPELINES)
#undef LACKS
#undef OR_HAS
#undef TOGETHER
  return NULL;
}

// ENTRY defines the caller of an entry, given the names of its arguments and then their declarations. OPTIONAL is for
// an optional entry, VOID for one that returns nothing.
#define VOID(entry, args, ...)                                                                     \
  static inline void table_##entry(uintptr_t t, __VA_ARGS__) { TABLE(t)->entry args; }
#define ENTRY(entry, args, ...)                                                                    \
  static inline int32_t table_##entry(uintptr_t t, __VA_ARGS__) { return TABLE(t)->entry args; }
#define OPTIONAL(entry, args, ...)                                                                 \
  static inline int32_t table_##entry(uintptr_t t, __VA_ARGS__) {                                  \
    return TABLE(t)->entry != NULL ? TABLE(t)->entry args : lacking(err);                          \
  }

static inline int32_t lacking(cs_error *err) {
  err->code = 0;
  err->text[0] = 0;
  return CS_UNSUPPORTED;
}

// clang-format off: a line or two each

// -- libraries and compiler --

static inline int32_t table_open(uintptr_t t, const char *drivers, const char *compilers,
                                 cs_lib **lib, char *tried, uint64_t bytes, cs_error *err) {
  return TABLE(t)->open(TABLE(t), drivers, compilers, lib, tried, bytes, err);
}
ENTRY(has_driver, (lib), cs_lib *lib)
ENTRY(has_compiler, (lib), cs_lib *lib)
VOID(missing, (lib, text, bytes), cs_lib *lib, char *text, uint64_t bytes)
ENTRY(versions, (lib, out, err), cs_lib *lib, cs_versions *out, cs_error *err)
ENTRY(device_count, (lib, count, err), cs_lib *lib, int32_t *count, cs_error *err)
ENTRY(device_info, (lib, ordinal, out, err), cs_lib *lib, int32_t ordinal, cs_info *out, cs_error *err)
OPTIONAL(peer_access, (lib, to, from, can, err), cs_lib *lib, int32_t to, int32_t from, int32_t *can,
         cs_error *err)
OPTIONAL(targets, (lib, text, bytes, err), cs_lib *lib, char *text, uint64_t bytes, cs_error *err)
OPTIONAL(compile, (lib, name, source, options, out, err), cs_lib *lib, const char *name, const char *source,
      const char *options, cs_blob *out, cs_error *err)
OPTIONAL(assemble, (lib, text, bytes, options, out, err), cs_lib *lib, const unsigned char *text,
         uint64_t bytes, const char *options, cs_blob *out, cs_error *err)
VOID(blob_free, (blob), cs_blob *blob)

// -- device, memory, programs --

ENTRY(device_open, (lib, ordinal, dev, err), cs_lib *lib, int32_t ordinal, cs_device **dev, cs_error *err)
ENTRY(device_close, (dev, err), cs_device *dev, cs_error *err)
VOID(device_handles, (dev, device, context), cs_device *dev, uint64_t *device, uint64_t *context)
ENTRY(memory_info, (dev, free_bytes, err), cs_device *dev, uint64_t *free_bytes, cs_error *err)
ENTRY(alloc, (dev, kind, bytes, out, err), cs_device *dev, uint8_t kind, uint64_t bytes, cs_memory *out,
      cs_error *err)
ENTRY(free, (dev, kind, address, err), cs_device *dev, uint8_t kind, uint64_t address, cs_error *err)
OPTIONAL(alloc_on, (s, bytes, address, err), cs_stream *s, uint64_t bytes, uint64_t *address, cs_error *err)
OPTIONAL(free_on, (s, address, err), cs_stream *s, uint64_t address, cs_error *err)
ENTRY(module_load, (dev, code, bytes, mod, log, log_bytes, err), cs_device *dev, const unsigned char *code,
      uint64_t bytes, cs_module **mod, char *log, uint64_t log_bytes, cs_error *err)
ENTRY(module_unload, (mod, err), cs_module *mod, cs_error *err)
ENTRY(module_kernel, (mod, name, kernel, info, err), cs_module *mod, const char *name, cs_kernel **kernel,
      cs_kernel_info *info, cs_error *err)
OPTIONAL(occupancy, (k, group, dynamic_bytes, groups, err), cs_kernel *k, int32_t group, uint64_t dynamic_bytes,
         int32_t *groups, cs_error *err)
OPTIONAL(suggest, (k, dynamic_bytes, group, err), cs_kernel *k, uint64_t dynamic_bytes, int32_t *group,
         cs_error *err)

OPTIONAL(pipelines_put, (dev, data, bytes, err), cs_device *dev, const unsigned char *data, uint64_t bytes,
         cs_error *err)
OPTIONAL(pipelines_get, (dev, out, err), cs_device *dev, cs_blob *out, cs_error *err)
static inline int32_t table_has_pipelines(uintptr_t t) { return TABLE(t)->pipelines_get != NULL; }

// -- streams --

ENTRY(stream_new, (dev, priority, s, err), cs_device *dev, int32_t priority, cs_stream **s, cs_error *err)
OPTIONAL(stream_wrap, (dev, handle, s, err), cs_device *dev, uint64_t handle, cs_stream **s, cs_error *err)
static inline uint64_t table_stream_handle(uintptr_t t, cs_stream *s) {
  return TABLE(t)->stream_handle(s);
}
ENTRY(stream_close, (s, err), cs_stream *s, cs_error *err)
ENTRY(upload, (s, dst, src, bytes, err), cs_stream *s, uint64_t dst, const unsigned char *src, uint64_t bytes,
      cs_error *err)
ENTRY(download, (s, dst, src, bytes, err), cs_stream *s, unsigned char *dst, uint64_t src, uint64_t bytes,
      cs_error *err)
OPTIONAL(upload_pinned, (s, dst, host, bytes, err), cs_stream *s, uint64_t dst, uint64_t host, uint64_t bytes,
         cs_error *err)
OPTIONAL(download_pinned, (s, host, src, bytes, err), cs_stream *s, uint64_t host, uint64_t src, uint64_t bytes,
         cs_error *err)
ENTRY(copy, (s, dst, src, bytes, err), cs_stream *s, uint64_t dst, uint64_t src, uint64_t bytes, cs_error *err)
OPTIONAL(copy_peer, (s, to, dst, from, src, bytes, err), cs_stream *s, cs_device *to, uint64_t dst,
         cs_device *from, uint64_t src, uint64_t bytes, cs_error *err)
OPTIONAL(peer, (to, from, enable, can, err), cs_device *to, cs_device *from, int32_t enable, int32_t *can,
         cs_error *err)
ENTRY(fill, (s, dst, bytes, pattern, pattern_bytes, err), cs_stream *s, uint64_t dst, uint64_t bytes,
      const unsigned char *pattern, uint64_t pattern_bytes, cs_error *err)
OPTIONAL(prefetch, (s, address, bytes, host, err), cs_stream *s, uint64_t address, uint64_t bytes, int32_t host,
         cs_error *err)
// table_launch takes its objects as numbers, too, which cgo does not check: launches have to be
// fast.
static inline int32_t table_launch(uintptr_t t, uintptr_t s, uintptr_t k, const uint64_t *groups,
                                   const uint64_t *group, const cs_arg *args, uint32_t count,
                                   const unsigned char *data, cs_error *err) {
  return TABLE(t)->launch((cs_stream *)s, (cs_kernel *)k, groups, group, args, count, data, err);
}
ENTRY(stream_wait, (s, e, err), cs_stream *s, cs_event *e, cs_error *err)
ENTRY(stream_query, (s, done, err), cs_stream *s, int32_t *done, cs_error *err)
ENTRY(stream_sync, (s, err), cs_stream *s, cs_error *err)

// -- events --

ENTRY(record, (s, timing, e, err), cs_stream *s, int32_t timing, cs_event **e, cs_error *err)
ENTRY(event_query, (e, done, err), cs_event *e, int32_t *done, cs_error *err)
ENTRY(event_wait, (e, err), cs_event *e, cs_error *err)
ENTRY(event_elapsed, (from, to, nanoseconds, err), cs_event *from, cs_event *to, double *nanoseconds,
      cs_error *err)
VOID(event_close, (e), cs_event *e)

// -- graphs --

OPTIONAL(capture_begin, (s, err), cs_stream *s, cs_error *err)
OPTIONAL(capture_end, (s, g, err), cs_stream *s, cs_graph **g, cs_error *err)
OPTIONAL(capture_drop, (s, err), cs_stream *s, cs_error *err)
OPTIONAL(graph_launch, (g, s, err), cs_graph *g, cs_stream *s, cs_error *err)
OPTIONAL(graph_close, (g, err), cs_graph *g, cs_error *err)

// -- the vendor's BLAS --

OPTIONAL(blas_open, (dev, names, err), cs_device *dev, const char *names, cs_error *err)
OPTIONAL(gemm, (s, g, err), cs_stream *s, const cs_gemm *g, cs_error *err)

// -- the vendor's library of collectives --

OPTIONAL(comm_id, (dev, names, id, err), cs_device *dev, const char *names, unsigned char *id, cs_error *err)
OPTIONAL(comm_join, (dev, names, id, rank, ranks, comm, err), cs_device *dev, const char *names,
         const unsigned char *id, int32_t rank, int32_t ranks, cs_comm **comm, cs_error *err)
OPTIONAL(comm_queue, (comm, s, c, err), cs_comm *comm, cs_stream *s, const cs_collective *c, cs_error *err)
OPTIONAL(comm_state, (comm, done, err), cs_comm *comm, int32_t *done, cs_error *err)
OPTIONAL(comm_abort, (comm, err), cs_comm *comm, cs_error *err)

static inline void table_libraries(uintptr_t t, cs_lib *lib, cs_device *dev, char *text,
                                   uint64_t bytes) {
  text[0] = 0;
  if (TABLE(t)->libraries != NULL)
    TABLE(t)->libraries(lib, dev, text, bytes);
}

// clang-format on

#endif
