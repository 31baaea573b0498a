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
  X(name) X(open) X(has_driver) X(has_compiler) X(missing) X(versions) X(device_count)             \
  X(device_info) X(targets) X(compile) X(blob_free) X(device_open) X(device_close)                 \
  X(device_handles) X(memory_info) X(alloc) X(free) X(module_load) X(module_unload)                \
  X(module_kernel) X(stream_new) X(stream_handle) X(stream_close) X(upload) X(download) X(copy)    \
  X(fill) X(launch) X(stream_wait) X(stream_query) X(stream_sync) X(record) X(event_query)         \
  X(event_wait) X(event_elapsed) X(event_close)

#define COUNT(entry) +1
_Static_assert(offsetof(concord_shim, peer_access) == (REQUIRED(COUNT)) * sizeof(void *),
               "REQUIRED has all entries before the optional ones");
#undef COUNT

// Groups of optional entries: a table has all entries of a group or none.
#define ORDERED(X) X(alloc_on) X(free_on)
#define PINNED_COPIES(X) X(upload_pinned) X(download_pinned)
#define PEERS(X) X(peer_access) X(copy_peer) X(peer)
#define GRAPHS(X) X(capture_begin) X(capture_end) X(capture_drop) X(graph_launch) X(graph_close)
#define BLAS(X) X(blas_open) X(gemm)

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
  TOGETHER(ORDERED)
  TOGETHER(PINNED_COPIES)
  TOGETHER(PEERS)
  TOGETHER(GRAPHS)
  TOGETHER(BLAS)
#undef LACKS
#undef OR_HAS
#undef TOGETHER
  return NULL;
}

// LACKING returns CS_UNSUPPORTED from a caller if the table does not have its entry.
#define LACKING(t, entry, err)                                                                     \
  do {                                                                                             \
    if (TABLE(t)->entry == NULL) {                                                                 \
      (err)->code = 0;                                                                             \
      (err)->text[0] = 0;                                                                          \
      return CS_UNSUPPORTED;                                                                       \
    }                                                                                              \
  } while (0)

// -- libraries and compiler --

static inline int32_t table_open(uintptr_t t, const char *drivers, const char *compilers,
                                 cs_lib **lib, char *tried, uint64_t bytes, cs_error *err) {
  return TABLE(t)->open(TABLE(t), drivers, compilers, lib, tried, bytes, err);
}
static inline int32_t table_has_driver(uintptr_t t, cs_lib *lib) {
  return TABLE(t)->has_driver(lib);
}
static inline int32_t table_has_compiler(uintptr_t t, cs_lib *lib) {
  return TABLE(t)->has_compiler(lib);
}
static inline void table_missing(uintptr_t t, cs_lib *lib, char *text, uint64_t bytes) {
  TABLE(t)->missing(lib, text, bytes);
}
static inline int32_t table_versions(uintptr_t t, cs_lib *lib, cs_versions *out, cs_error *err) {
  return TABLE(t)->versions(lib, out, err);
}
static inline int32_t table_device_count(uintptr_t t, cs_lib *lib, int32_t *count, cs_error *err) {
  return TABLE(t)->device_count(lib, count, err);
}
static inline int32_t table_device_info(uintptr_t t, cs_lib *lib, int32_t ordinal, cs_info *out,
                                        cs_error *err) {
  return TABLE(t)->device_info(lib, ordinal, out, err);
}
static inline int32_t table_peer_access(uintptr_t t, cs_lib *lib, int32_t to, int32_t from,
                                        int32_t *can, cs_error *err) {
  LACKING(t, peer_access, err);
  return TABLE(t)->peer_access(lib, to, from, can, err);
}
static inline int32_t table_targets(uintptr_t t, cs_lib *lib, char *text, uint64_t bytes,
                                    cs_error *err) {
  return TABLE(t)->targets(lib, text, bytes, err);
}
static inline int32_t table_compile(uintptr_t t, cs_lib *lib, const char *name, const char *source,
                                    const char *options, cs_blob *out, cs_error *err) {
  return TABLE(t)->compile(lib, name, source, options, out, err);
}
static inline int32_t table_assemble(uintptr_t t, cs_lib *lib, const unsigned char *text,
                                     uint64_t bytes, const char *options, cs_blob *out,
                                     cs_error *err) {
  LACKING(t, assemble, err);
  return TABLE(t)->assemble(lib, text, bytes, options, out, err);
}
static inline void table_blob_free(uintptr_t t, cs_blob *blob) { TABLE(t)->blob_free(blob); }

// -- device, memory, programs --

static inline int32_t table_device_open(uintptr_t t, cs_lib *lib, int32_t ordinal, cs_device **dev,
                                        cs_error *err) {
  return TABLE(t)->device_open(lib, ordinal, dev, err);
}
static inline int32_t table_device_close(uintptr_t t, cs_device *dev, cs_error *err) {
  return TABLE(t)->device_close(dev, err);
}
static inline void table_device_handles(uintptr_t t, cs_device *dev, uint64_t *device,
                                        uint64_t *context) {
  TABLE(t)->device_handles(dev, device, context);
}
static inline int32_t table_memory_info(uintptr_t t, cs_device *dev, uint64_t *free_bytes,
                                        uint64_t *total_bytes, cs_error *err) {
  return TABLE(t)->memory_info(dev, free_bytes, total_bytes, err);
}
static inline int32_t table_alloc(uintptr_t t, cs_device *dev, uint8_t kind, uint64_t bytes,
                                  cs_memory *out, cs_error *err) {
  return TABLE(t)->alloc(dev, kind, bytes, out, err);
}
static inline int32_t table_free(uintptr_t t, cs_device *dev, uint8_t kind, uint64_t address,
                                 cs_error *err) {
  return TABLE(t)->free(dev, kind, address, err);
}
static inline int32_t table_alloc_on(uintptr_t t, cs_stream *s, uint64_t bytes, uint64_t *address,
                                     cs_error *err) {
  LACKING(t, alloc_on, err);
  return TABLE(t)->alloc_on(s, bytes, address, err);
}
static inline int32_t table_free_on(uintptr_t t, cs_stream *s, uint64_t address, cs_error *err) {
  LACKING(t, free_on, err);
  return TABLE(t)->free_on(s, address, err);
}
static inline int32_t table_module_load(uintptr_t t, cs_device *dev, const unsigned char *code,
                                        uint64_t bytes, cs_module **mod, char *log,
                                        uint64_t log_bytes, cs_error *err) {
  return TABLE(t)->module_load(dev, code, bytes, mod, log, log_bytes, err);
}
static inline int32_t table_module_unload(uintptr_t t, cs_module *mod, cs_error *err) {
  return TABLE(t)->module_unload(mod, err);
}
static inline int32_t table_module_kernel(uintptr_t t, cs_module *mod, const char *name,
                                          cs_kernel **kernel, cs_kernel_info *info, cs_error *err) {
  return TABLE(t)->module_kernel(mod, name, kernel, info, err);
}
static inline int32_t table_occupancy(uintptr_t t, cs_kernel *k, int32_t group,
                                      uint64_t dynamic_bytes, int32_t *groups, cs_error *err) {
  LACKING(t, occupancy, err);
  return TABLE(t)->occupancy(k, group, dynamic_bytes, groups, err);
}
static inline int32_t table_suggest(uintptr_t t, cs_kernel *k, uint64_t dynamic_bytes,
                                    int32_t *group, cs_error *err) {
  LACKING(t, suggest, err);
  return TABLE(t)->suggest(k, dynamic_bytes, group, err);
}

// -- streams --

static inline int32_t table_stream_new(uintptr_t t, cs_device *dev, int32_t priority, cs_stream **s,
                                       cs_error *err) {
  return TABLE(t)->stream_new(dev, priority, s, err);
}
static inline int32_t table_stream_wrap(uintptr_t t, cs_device *dev, uint64_t handle, cs_stream **s,
                                        cs_error *err) {
  LACKING(t, stream_wrap, err);
  return TABLE(t)->stream_wrap(dev, handle, s, err);
}
static inline uint64_t table_stream_handle(uintptr_t t, cs_stream *s) {
  return TABLE(t)->stream_handle(s);
}
static inline int32_t table_stream_close(uintptr_t t, cs_stream *s, cs_error *err) {
  return TABLE(t)->stream_close(s, err);
}
static inline int32_t table_upload(uintptr_t t, cs_stream *s, uint64_t dst,
                                   const unsigned char *src, uint64_t bytes, cs_error *err) {
  return TABLE(t)->upload(s, dst, src, bytes, err);
}
static inline int32_t table_download(uintptr_t t, cs_stream *s, unsigned char *dst, uint64_t src,
                                     uint64_t bytes, cs_error *err) {
  return TABLE(t)->download(s, dst, src, bytes, err);
}
static inline int32_t table_upload_pinned(uintptr_t t, cs_stream *s, uint64_t dst, uint64_t host,
                                          uint64_t bytes, cs_error *err) {
  LACKING(t, upload_pinned, err);
  return TABLE(t)->upload_pinned(s, dst, host, bytes, err);
}
static inline int32_t table_download_pinned(uintptr_t t, cs_stream *s, uint64_t host, uint64_t src,
                                            uint64_t bytes, cs_error *err) {
  LACKING(t, download_pinned, err);
  return TABLE(t)->download_pinned(s, host, src, bytes, err);
}
static inline int32_t table_copy(uintptr_t t, cs_stream *s, uint64_t dst, uint64_t src,
                                 uint64_t bytes, cs_error *err) {
  return TABLE(t)->copy(s, dst, src, bytes, err);
}
static inline int32_t table_copy_peer(uintptr_t t, cs_stream *s, cs_device *to, uint64_t dst,
                                      cs_device *from, uint64_t src, uint64_t bytes,
                                      cs_error *err) {
  LACKING(t, copy_peer, err);
  return TABLE(t)->copy_peer(s, to, dst, from, src, bytes, err);
}
static inline int32_t table_peer(uintptr_t t, cs_device *to, cs_device *from, int32_t enable,
                                 int32_t *can, cs_error *err) {
  LACKING(t, peer, err);
  return TABLE(t)->peer(to, from, enable, can, err);
}
static inline int32_t table_fill(uintptr_t t, cs_stream *s, uint64_t dst, uint64_t bytes,
                                 const unsigned char *pattern, uint64_t pattern_bytes,
                                 cs_error *err) {
  return TABLE(t)->fill(s, dst, bytes, pattern, pattern_bytes, err);
}
static inline int32_t table_prefetch(uintptr_t t, cs_stream *s, uint64_t address, uint64_t bytes,
                                     int32_t host, cs_error *err) {
  LACKING(t, prefetch, err);
  return TABLE(t)->prefetch(s, address, bytes, host, err);
}
// table_launch takes its objects as numbers, too, which cgo does not check: launches have to be
// fast.
static inline int32_t table_launch(uintptr_t t, uintptr_t s, uintptr_t k, const uint64_t *groups,
                                   const uint64_t *group, const cs_arg *args, uint32_t count,
                                   const unsigned char *data, cs_error *err) {
  return TABLE(t)->launch((cs_stream *)s, (cs_kernel *)k, groups, group, args, count, data, err);
}
static inline int32_t table_stream_wait(uintptr_t t, cs_stream *s, cs_event *e, cs_error *err) {
  return TABLE(t)->stream_wait(s, e, err);
}
static inline int32_t table_stream_query(uintptr_t t, cs_stream *s, int32_t *done, cs_error *err) {
  return TABLE(t)->stream_query(s, done, err);
}
static inline int32_t table_stream_sync(uintptr_t t, cs_stream *s, cs_error *err) {
  return TABLE(t)->stream_sync(s, err);
}

// -- events --

static inline int32_t table_record(uintptr_t t, cs_stream *s, int32_t timing, cs_event **e,
                                   cs_error *err) {
  return TABLE(t)->record(s, timing, e, err);
}
static inline int32_t table_event_query(uintptr_t t, cs_event *e, int32_t *done, cs_error *err) {
  return TABLE(t)->event_query(e, done, err);
}
static inline int32_t table_event_wait(uintptr_t t, cs_event *e, cs_error *err) {
  return TABLE(t)->event_wait(e, err);
}
static inline int32_t table_event_elapsed(uintptr_t t, cs_event *from, cs_event *to,
                                          double *nanoseconds, cs_error *err) {
  return TABLE(t)->event_elapsed(from, to, nanoseconds, err);
}
static inline void table_event_close(uintptr_t t, cs_event *e) { TABLE(t)->event_close(e); }

// -- graphs --

static inline int32_t table_capture_begin(uintptr_t t, cs_stream *s, cs_error *err) {
  LACKING(t, capture_begin, err);
  return TABLE(t)->capture_begin(s, err);
}
static inline int32_t table_capture_end(uintptr_t t, cs_stream *s, cs_graph **g, cs_error *err) {
  LACKING(t, capture_end, err);
  return TABLE(t)->capture_end(s, g, err);
}
static inline int32_t table_capture_drop(uintptr_t t, cs_stream *s, cs_error *err) {
  LACKING(t, capture_drop, err);
  return TABLE(t)->capture_drop(s, err);
}
static inline int32_t table_graph_launch(uintptr_t t, cs_graph *g, cs_stream *s, cs_error *err) {
  LACKING(t, graph_launch, err);
  return TABLE(t)->graph_launch(g, s, err);
}
static inline int32_t table_graph_close(uintptr_t t, cs_graph *g, cs_error *err) {
  LACKING(t, graph_close, err);
  return TABLE(t)->graph_close(g, err);
}

// -- the vendor's BLAS --

static inline int32_t table_blas_open(uintptr_t t, cs_device *dev, const char *names,
                                      cs_error *err) {
  LACKING(t, blas_open, err);
  return TABLE(t)->blas_open(dev, names, err);
}
static inline int32_t table_gemm(uintptr_t t, cs_stream *s, const cs_gemm *g, cs_error *err) {
  LACKING(t, gemm, err);
  return TABLE(t)->gemm(s, g, err);
}

static inline void table_libraries(uintptr_t t, cs_lib *lib, cs_device *dev, char *text,
                                   uint64_t bytes) {
  text[0] = 0;
  if (TABLE(t)->libraries != NULL)
    TABLE(t)->libraries(lib, dev, text, bytes);
}

#endif
