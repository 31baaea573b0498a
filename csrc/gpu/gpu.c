// gpu.c is the part that the shims for CUDA and HIP share: the table of csrc/shim.h over the
// functions of a gpu_vendor. It is one translation unit of several parts, in which everything is
// static except the function at the end.

#ifndef _GNU_SOURCE
#define _GNU_SOURCE // dlinfo
#endif

#include "load.h"

// Each part uses only the parts above it.
// clang-format off
#include "load.c"
#include "device.c"
#include "kernel.c"
#include "stream.c"
#include "copy.c"
#include "compile.c"
#include "blas.c"
#include "symbols.c"
#include "ccl.c"
// clang-format on

static const concord_shim gpu_shim = {
    .open = gpu_open,
    .has_driver = gpu_has_driver,
    .has_compiler = gpu_has_compiler,
    .missing = gpu_missing,
    .versions = gpu_versions,
    .device_count = gpu_device_count,
    .device_info = gpu_device_info,
    .peer_access = gpu_peer_access,
    .targets = gpu_targets,
    .compile = gpu_compile,
    .blob_free = free_blob,
    .device_open = gpu_device_open,
    .device_close = gpu_device_close,
    .device_handles = gpu_device_handles,
    .memory_info = gpu_memory_info,
    .alloc = gpu_alloc,
    .free = gpu_free,
    .alloc_on = gpu_alloc_on,
    .free_on = gpu_free_on,
    .module_load = gpu_module_load,
    .module_unload = gpu_module_unload,
    .module_kernel = gpu_module_kernel,
    .occupancy = gpu_occupancy,
    .suggest = gpu_suggest,
    .stream_new = gpu_stream_new,
    .stream_wrap = gpu_stream_wrap,
    .stream_handle = gpu_stream_handle,
    .stream_close = gpu_stream_close,
    .upload = gpu_upload,
    .download = gpu_download,
    .upload_pinned = gpu_upload_pinned,
    .download_pinned = gpu_download_pinned,
    .copy = gpu_copy,
    .copy_peer = gpu_copy_peer,
    .peer = gpu_peer,
    .fill = gpu_fill,
    .prefetch = gpu_prefetch,
    .launch = gpu_launch,
    .stream_wait = gpu_stream_wait,
    .stream_query = gpu_stream_query,
    .stream_sync = gpu_stream_sync,
    .record = gpu_record,
    .event_query = gpu_event_query,
    .event_wait = gpu_event_wait,
    .event_elapsed = gpu_event_elapsed,
    .event_close = gpu_event_close,
    .capture_begin = gpu_capture_begin,
    .capture_end = gpu_capture_end,
    .capture_drop = gpu_capture_drop,
    .graph_launch = gpu_graph_launch,
    .graph_close = gpu_graph_close,
    .blas_open = gpu_blas_open,
    .gemm = gpu_gemm,
    .comm_id = gpu_comm_id,
    .comm_join = gpu_comm_join,
    .comm_queue = gpu_comm_queue,
    .comm_state = gpu_comm_state,
    .comm_abort = gpu_comm_abort,
    .libraries = gpu_libraries,
};

const concord_shim *concord_gpu_shim(struct gpu_vendor *v) {
  v->shim = gpu_shim;
  v->shim.assemble = v->assemble;
  return &v->shim;
}
