// cuda.h declares what CUDA has beside csrc/gpu/gpu.h: contexts, the PTX compiler, signatures of
// its own. The build needs no header of the vendor and links none of its libraries. Numbers and
// layouts are those of the stable ABI.

#ifndef CONCORD_CUDA_H
#define CONCORD_CUDA_H

#include "../gpu/load.h"

typedef int (*cuda_error_text)(int code, const char **text);
typedef int (*cuda_set_current)(void *context);
typedef int (*cuda_enable_peer)(void *peer, unsigned flags);
typedef int (*cuda_copy_peer)(uint64_t dst, void *to, uint64_t src, void *from, size_t bytes,
                              void *stream);
typedef int (*cuda_module_load)(void **module, const void *image, unsigned count, int *options,
                                void **values);

enum { // CUjit_option
  JIT_INFO_LOG = 3,
  JIT_INFO_LOG_BYTES = 4,
  JIT_ERROR_LOG = 5,
  JIT_ERROR_LOG_BYTES = 6,
};

enum { // of cublasGemmEx
  CUDA_R_16F = 2,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_DEFAULT_ALGORITHM = -1,
};

// CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION keeps split sums of half in float. A library
// without that mode does not split them.
enum { CUBLAS_FULL_SUMS = 16 };

typedef int (*cublas_gemm_ex)(void *handle, int ta, int tb, int m, int n, int k, const void *alpha,
                              const void *a, int a_type, int lda, const void *b, int b_type,
                              int ldb, const void *beta, void *c, int c_type, int ldc, int compute,
                              int algorithm);
typedef int (*cublas_get_version)(void *handle, int *version);

struct ptx_api {
  int (*create)(void **compiler, size_t bytes, const char *text);
  int (*destroy)(void **compiler);
  int (*compile)(void *compiler, int count, const char *const *options);
  int (*code_size)(void *compiler, size_t *bytes);
  int (*code)(void *compiler, void *code);
  int (*error_log_size)(void *compiler, size_t *bytes);
  int (*error_log)(void *compiler, char *text);
  int (*info_log_size)(void *compiler, size_t *bytes);
  int (*info_log)(void *compiler, char *text);
};

// others[0] is NVRTC's library of built-in functions, others[1] the PTX compiler.
struct cuda_lib {
  cs_lib base;
  int (*retain)(void **context, int device);
  int (*release)(int device);
  int (*reset)(int device);
  int assembler_tried; // guarded by base.lock
  struct ptx_api ptx;
};

#define OWN(member) offsetof(struct cuda_lib, member)
#define PTX(member) offsetof(struct cuda_lib, ptx.member)

#endif
