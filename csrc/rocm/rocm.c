// rocm.c is the shim for AMD: a gpu_vendor over HIP, hipRTC and rocBLAS, all opened at run time. It
// is one translation unit of several parts, in which everything is static except the function at
// the end. csrc/gpu has what it shares with CUDA.

#ifndef _GNU_SOURCE
#define _GNU_SOURCE // dladdr, dlinfo
#endif

#include "rocm.h"

static const int rocm_attributes[ATTRIBUTES] = {
    // hipDeviceAttribute_t, the same since HIP 5.0
    [ATTR_CLOCK_RATE] = 5,
    [ATTR_CONCURRENT_MANAGED] = 9,
    [ATTR_INTEGRATED] = 16,
    [ATTR_L2_CACHE_SIZE] = 19,
    [ATTR_CAPABILITY_MAJOR] = 23,
    [ATTR_MANAGED_MEMORY] = 24,
    [ATTR_MAX_BLOCKS_PER_MULTIPROCESSOR] = 25,
    [ATTR_MAX_BLOCK_DIM_X] = 26, // Y and Z follow
    [ATTR_MAX_GRID_DIM_X] = 29,  // Y and Z follow
    [ATTR_MAX_THREADS_PER_BLOCK] = 56,
    [ATTR_MAX_THREADS_PER_MULTIPROCESSOR] = 57,
    [ATTR_MEMORY_BUS_WIDTH] = 59,
    [ATTR_MEMORY_CLOCK_RATE] = 60,
    [ATTR_CAPABILITY_MINOR] = 61,
    [ATTR_MULTIPROCESSORS] = 63,
    [ATTR_REGISTERS_PER_MULTIPROCESSOR] = 72,
    [ATTR_SHARED_PER_BLOCK] = 74,
    [ATTR_SHARED_PER_MULTIPROCESSOR] = 76,
    [ATTR_WARP_SIZE] = 87,
    [ATTR_MEMORY_POOLS] = 88,
    [ATTR_SHARED_PER_MULTIPROCESSOR_BEFORE] = 10002, // in HIP 5 instead of 76
};

// Each part uses only the parts above it.
// clang-format off
#include "symbols.c"
#include "load.c"
#include "device.c"
#include "compile.c"
// clang-format on

static struct gpu_vendor rocm_vendor = {
    .driver_title = "HIP",
    .compiler_title = "hipRTC",
    .blas_title = "rocBLAS",
    .ccl_title = "RCCL",
    .driver_name = "hip",
    .compiler_name = "hiprtc",
    .blas_name = "rocblas",
    .ccl_name = "rccl",
    .lib_bytes = sizeof(struct rocm_lib),
    .device_bytes = sizeof(struct rocm_device),
    .driver_symbols = hip_symbols,
    .compiler_symbols = hiprtc_symbols,
    .blas_symbols = rocblas_symbols,
    .attributes = rocm_attributes,
    .codes = rocm_codes,
    .blas_codes = rocblas_codes,
    .max_items = UINT32_MAX,
    .no_device = HIP_NO_DEVICE,
    .compiles_alone = 1, // the LLVM in hipRTC keeps its options in global variables
    .blas_plain = 111,
    .blas_transposed = 112,
    .open_compiler = rocm_open_compiler,
    .error_text = rocm_error_words,
    .version = rocm_version,
    .targets = rocm_targets,
    .check_options = check_target,
    .load = rocm_load,
    .identify = rocm_identify,
    .set_current = make_current,
    .acquire = rocm_acquire,
    .release = rocm_release,
    .enable_peer = enable_peer,
    .copy_peer = copy_peer,
    .blas_suits = rocblas_suits,
    .blas_version = rocblas_version,
    .gemm_half = rocblas_half,
};

struct gpu_vendor *concord_vendor_rocm(void);

struct gpu_vendor *concord_vendor_rocm(void) {
  return &rocm_vendor;
}
