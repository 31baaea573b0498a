// rocm.c is the shim for AMD: the table of csrc/shim.h over HIP, hipRTC and rocBLAS, all opened at
// run time. It is one translation unit of several parts, in which everything is static except the
// function at the end.

#ifndef _GNU_SOURCE
#define _GNU_SOURCE // dladdr, dlinfo
#endif

#include "state.h"

// Each part uses only the parts above it.
// clang-format off
#include "load.c"
#include "device.c"
#include "kernel.c"
#include "stream.c"
#include "copy.c"
#include "compile.c"
#include "blas.c"
// clang-format on

static const concord_shim rocm_shim = {
    .name = "rocm",
    .open = rocm_open,
    .has_driver = rocm_has_driver,
    .has_compiler = rocm_has_compiler,
    .missing = rocm_missing,
    .versions = rocm_versions,
    .device_count = rocm_device_count,
    .device_info = rocm_device_info,
    .peer_access = rocm_peer_access,
    .targets = rocm_targets,
    .compile = rocm_compile,
    .blob_free = rocm_blob_free,
    .device_open = rocm_device_open,
    .device_close = rocm_device_close,
    .device_handles = rocm_device_handles,
    .memory_info = rocm_memory_info,
    .alloc = rocm_alloc,
    .free = rocm_free,
    .alloc_on = rocm_alloc_on,
    .free_on = rocm_free_on,
    .module_load = rocm_module_load,
    .module_unload = rocm_module_unload,
    .module_kernel = rocm_module_kernel,
    .occupancy = rocm_occupancy,
    .suggest = rocm_suggest,
    .stream_new = rocm_stream_new,
    .stream_wrap = rocm_stream_wrap,
    .stream_handle = rocm_stream_handle,
    .stream_close = rocm_stream_close,
    .upload = rocm_upload,
    .download = rocm_download,
    .upload_pinned = rocm_upload_pinned,
    .download_pinned = rocm_download_pinned,
    .copy = rocm_copy,
    .copy_peer = rocm_copy_peer,
    .peer = rocm_peer,
    .fill = rocm_fill,
    .prefetch = rocm_prefetch,
    .launch = rocm_launch,
    .stream_wait = rocm_stream_wait,
    .stream_query = rocm_stream_query,
    .stream_sync = rocm_stream_sync,
    .record = rocm_record,
    .event_query = rocm_event_query,
    .event_wait = rocm_event_wait,
    .event_elapsed = rocm_event_elapsed,
    .event_close = rocm_event_close,
    .capture_begin = rocm_capture_begin,
    .capture_end = rocm_capture_end,
    .capture_drop = rocm_capture_drop,
    .graph_launch = rocm_graph_launch,
    .graph_close = rocm_graph_close,
    .blas_open = rocm_blas_open,
    .gemm = rocm_gemm,
    .libraries = rocm_libraries,
};

const concord_shim *concord_shim_rocm(void);

const concord_shim *concord_shim_rocm(void) { return &rocm_shim; }
