// cuda.c is the shim for NVIDIA: the table of csrc/shim.h over the CUDA driver API, NVRTC and
// cuBLAS, all opened at run time. It is one translation unit of several parts, in which everything
// is static except the function at the end.

#ifndef _GNU_SOURCE
#define _GNU_SOURCE // dlinfo
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

static const concord_shim cuda_shim = {
    .name = "cuda",
    .open = cuda_open,
    .has_driver = cuda_has_driver,
    .has_compiler = cuda_has_compiler,
    .missing = cuda_missing,
    .versions = cuda_versions,
    .device_count = cuda_device_count,
    .device_info = cuda_device_info,
    .peer_access = cuda_peer_access,
    .targets = cuda_targets,
    .compile = cuda_compile,
    .assemble = cuda_assemble,
    .blob_free = cuda_blob_free,
    .device_open = cuda_device_open,
    .device_close = cuda_device_close,
    .device_handles = cuda_device_handles,
    .memory_info = cuda_memory_info,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .alloc_on = cuda_alloc_on,
    .free_on = cuda_free_on,
    .module_load = cuda_module_load,
    .module_unload = cuda_module_unload,
    .module_kernel = cuda_module_kernel,
    .occupancy = cuda_occupancy,
    .suggest = cuda_suggest,
    .stream_new = cuda_stream_new,
    .stream_wrap = cuda_stream_wrap,
    .stream_handle = cuda_stream_handle,
    .stream_close = cuda_stream_close,
    .upload = cuda_upload,
    .download = cuda_download,
    .upload_pinned = cuda_upload_pinned,
    .download_pinned = cuda_download_pinned,
    .copy = cuda_copy,
    .copy_peer = cuda_copy_peer,
    .peer = cuda_peer,
    .fill = cuda_fill,
    .prefetch = cuda_prefetch,
    .launch = cuda_launch,
    .stream_wait = cuda_stream_wait,
    .stream_query = cuda_stream_query,
    .stream_sync = cuda_stream_sync,
    .record = cuda_record,
    .event_query = cuda_event_query,
    .event_wait = cuda_event_wait,
    .event_elapsed = cuda_event_elapsed,
    .event_close = cuda_event_close,
    .capture_begin = cuda_capture_begin,
    .capture_end = cuda_capture_end,
    .capture_drop = cuda_capture_drop,
    .graph_launch = cuda_graph_launch,
    .graph_close = cuda_graph_close,
    .blas_open = cuda_blas_open,
    .gemm = cuda_gemm,
    .libraries = cuda_libraries,
};

const concord_shim *concord_shim_cuda(void);

const concord_shim *concord_shim_cuda(void) { return &cuda_shim; }
