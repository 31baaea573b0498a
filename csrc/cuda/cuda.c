// cuda.c is the shim for NVIDIA: a gpu_vendor over the CUDA driver API, NVRTC and cuBLAS, all
// opened at run time. It is one translation unit of several parts, in which everything is static
// except the function at the end. csrc/gpu has what it shares with HIP.

#ifndef _GNU_SOURCE
#define _GNU_SOURCE // dlinfo
#endif

#include "cuda.h"

static const int cuda_attributes[ATTRIBUTES] = {
    // CUdevice_attribute
    [ATTR_MAX_THREADS_PER_BLOCK] = 1,
    [ATTR_MAX_BLOCK_DIM_X] = 2, // Y and Z follow
    [ATTR_MAX_GRID_DIM_X] = 5,  // Y and Z follow
    [ATTR_SHARED_PER_BLOCK] = 8,
    [ATTR_WARP_SIZE] = 10,
    [ATTR_CLOCK_RATE] = 13,
    [ATTR_MULTIPROCESSORS] = 16,
    [ATTR_INTEGRATED] = 18,
    [ATTR_MEMORY_CLOCK_RATE] = 36,
    [ATTR_MEMORY_BUS_WIDTH] = 37,
    [ATTR_L2_CACHE_SIZE] = 38,
    [ATTR_MAX_THREADS_PER_MULTIPROCESSOR] = 39,
    [ATTR_CAPABILITY_MAJOR] = 75,
    [ATTR_CAPABILITY_MINOR] = 76,
    [ATTR_SHARED_PER_MULTIPROCESSOR] = 81,
    [ATTR_REGISTERS_PER_MULTIPROCESSOR] = 82,
    [ATTR_MANAGED_MEMORY] = 83,
    [ATTR_CONCURRENT_MANAGED] = 89,
    [ATTR_SHARED_PER_BLOCK_OPTIN] = 97,
    [ATTR_MAX_BLOCKS_PER_MULTIPROCESSOR] = 106,
    [ATTR_MEMORY_POOLS] = 115,
};

// Each part uses only the parts above it.
// clang-format off
#include "symbols.c"
#include "load.c"
#include "device.c"
#include "compile.c"
// clang-format on

static struct gpu_vendor cuda_vendor = {
    .driver_title = "the CUDA driver",
    .compiler_title = "NVRTC",
    .blas_title = "cuBLAS",
    .ccl_title = "NCCL",
    .driver_name = "cuda",
    .compiler_name = "nvrtc",
    .blas_name = "cublas",
    .ccl_name = "nccl",
    .lib_bytes = sizeof(struct cuda_lib),
    .device_bytes = sizeof(struct cs_device),
    .driver_symbols = cuda_symbols,
    .compiler_symbols = nvrtc_symbols,
    .blas_symbols = cublas_symbols,
    .attributes = cuda_attributes,
    .codes = cuda_codes,
    .blas_codes = cublas_codes,
    .max_items = UINT64_MAX,
    .context_frees = 1,
    .graphs_overlap = 1,
    .blas_plain = 0,
    .blas_transposed = 1,
    .blas_math_mode = CUBLAS_FULL_SUMS,
    .open_file = cuda_open_file,
    .open_compiler = cuda_open_compiler,
    .error_text = cuda_error_words,
    .version = cuda_version,
    .targets = cuda_targets,
    .assemble = cuda_assemble,
    .load = cuda_load,
    .identify = cuda_identify,
    .set_current = make_current,
    .acquire = cuda_acquire,
    .release = cuda_release,
    .enable_peer = enable_peer,
    .copy_peer = copy_peer,
    .blas_version = cublas_version,
    .gemm_half = cublas_half,
};

struct gpu_vendor *concord_vendor_cuda(void);

struct gpu_vendor *concord_vendor_cuda(void) {
  return &cuda_vendor;
}
