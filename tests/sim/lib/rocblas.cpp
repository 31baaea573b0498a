// rocblas.cpp: a rocBLAS for the simulated devices, with the part of its interface that csrc/rocm
// uses.

#include "blas.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

// A program takes a library with this symbol for a simulated one.
EXPORT int concord_sim_control(const char *);
EXPORT int concord_sim_control(const char *) { return -1; }

enum {
  OK = 0,
  INVALID_HANDLE = 1,
  NOT_IMPLEMENTED = 2,
  INVALID_SIZE = 4,
  INTERNAL_ERROR = 6,
  INVALID_VALUE = 11
};
enum { NONE = 111, TRANSPOSE = 112, R_16F = 150, R_32F = 151 };

struct rocblasHandle {
  blas::Queue queue;
  void *stream;
};

EXPORT int rocblas_create_handle(rocblasHandle **handle) {
  auto queue =
      reinterpret_cast<blas::Queue>(blas::sibling("libamdhip64.so.5", "hipLaunchHostFunc"));
  if (queue == nullptr)
    return INVALID_HANDLE;
  *handle = new rocblasHandle{queue, nullptr};
  return OK;
}

EXPORT int rocblas_destroy_handle(rocblasHandle *h) {
  delete h;
  return OK;
}

EXPORT int rocblas_set_stream(rocblasHandle *h, void *stream) {
  h->stream = stream;
  return OK;
}

EXPORT int rocblas_set_pointer_mode(rocblasHandle *, int mode) {
  return mode == 0 ? OK : NOT_IMPLEMENTED;
}

template <typename T, typename S>
static int product(rocblasHandle *h, int ta, int tb, int m, int n, int k, const S *alpha,
                   const T *a, int lda, const T *b, int ldb, const S *beta, T *c, int ldc) {
  if (ta < NONE || ta > TRANSPOSE || tb < NONE || tb > TRANSPOSE)
    return INVALID_VALUE;
  blas::Product<T, S> p{
      ta == TRANSPOSE, tb == TRANSPOSE, m, n, k, *alpha, *beta, a, b, c, lda, ldb, ldc};
  if (!p.legal())
    return INVALID_SIZE;
  return blas::put(h->queue, h->stream, p) == 0 ? OK : INTERNAL_ERROR;
}

EXPORT int rocblas_sgemm(rocblasHandle *h, int ta, int tb, int m, int n, int k, const float *alpha,
                         const float *a, int lda, const float *b, int ldb, const float *beta,
                         float *c, int ldc) {
  return product<float, float>(h, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

EXPORT int rocblas_dgemm(rocblasHandle *h, int ta, int tb, int m, int n, int k, const double *alpha,
                         const double *a, int lda, const double *b, int ldb, const double *beta,
                         double *c, int ldc) {
  return product<double, double>(h, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

// C and D have to be the same matrix, as in csrc/rocm.
EXPORT int rocblas_gemm_ex(rocblasHandle *h, int ta, int tb, int m, int n, int k, const void *alpha,
                           const void *a, int a_type, int lda, const void *b, int b_type, int ldb,
                           const void *beta, const void *c, int c_type, int ldc, void *d,
                           int d_type, int ldd, int compute, int, int32_t, uint32_t) {
  if (a_type != R_16F || b_type != R_16F || c_type != R_16F || d_type != R_16F ||
      compute != R_32F || c != d || ldc != ldd)
    return NOT_IMPLEMENTED;
  return product<blas::half, float>(
      h, ta, tb, m, n, k, static_cast<const float *>(alpha), static_cast<const blas::half *>(a),
      lda, static_cast<const blas::half *>(b), ldb, static_cast<const float *>(beta),
      static_cast<blas::half *>(d), ldd);
}
