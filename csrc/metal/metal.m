// metal.m is the shim for Apple: the table of csrc/shim.h over Metal and Metal Performance Shaders,
// frameworks that every Mac has. It is one translation unit of several parts, in which everything
// is static except the function at the end.

#include "state.h"

// Each part uses only the parts above it.
// clang-format off
#include "device.m"
#include "memory.m"
#include "batch.m"
#include "stream.m"
#include "event.m"
#include "compile.m"
#include "kernel.m"
#include "copy.m"
#include "mps.m"
// clang-format on

// Metal has no assembler, no allocation in stream order and no occupancy; its graphs are not used.
static const concord_shim metal_shim = {
    .open = metal_open,
    .has_driver = metal_linked,
    .has_compiler = metal_linked,
    .missing = metal_missing,
    .versions = metal_versions,
    .device_count = metal_device_count,
    .device_info = metal_device_info,
    .targets = metal_targets,
    .compile = metal_compile,
    .blob_free = free_blob,
    .device_open = metal_device_open,
    .device_close = metal_device_close,
    .device_handles = metal_device_handles,
    .memory_info = metal_memory_info,
    .alloc = metal_alloc,
    .free = metal_free,
    .module_load = metal_module_load,
    .module_unload = metal_module_unload,
    .module_kernel = metal_module_kernel,
    .stream_new = metal_stream_new,
    .stream_wrap = metal_stream_wrap,
    .stream_handle = metal_stream_handle,
    .stream_close = metal_stream_close,
    .upload = metal_upload,
    .download = metal_download,
    .upload_pinned = metal_copy, // host and device have one address for it,
    .download_pinned = metal_copy,
    .copy = metal_copy,
    .fill = metal_fill,
    .prefetch = metal_prefetch,
    .launch = metal_launch,
    .stream_wait = metal_stream_wait,
    .stream_query = metal_stream_query,
    .stream_sync = finish,
    .record = metal_record,
    .event_query = metal_event_query,
    .event_wait = metal_event_wait,
    .event_elapsed = metal_event_elapsed,
    .event_close = metal_event_close,
    .blas_open = metal_blas_open,
    .gemm = metal_gemm,
};

const concord_shim *concord_shim_metal(void);

const concord_shim *concord_shim_metal(void) { return &metal_shim; }
