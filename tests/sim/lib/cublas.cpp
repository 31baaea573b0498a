// cublas.cpp: a cuBLAS for the simulated devices, with the part of its interface that csrc/cuda
// uses.

#include "blas.h"
#include "flavour.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

// A program takes a library with this symbol for a simulated one.
EXPORT int concord_sim_control(const char *);
EXPORT int concord_sim_control(const char *) { return -1; }

enum { OK = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum { R_32F = 0, R_16F = 2, COMPUTE_32F = 68, DEFAULT_ALGORITHM = -1 };

struct cublasContext {
  blas::Queue queue;
  void *stream;
};

EXPORT int cublasCreate_v2(cublasContext **handle) {
  auto queue = reinterpret_cast<blas::Queue>(blas::sibling("libcuda.so.1", "cuLaunchHostFunc"));
  if (queue == nullptr)
    return NOT_INITIALIZED;
  *handle = new cublasContext{queue, nullptr};
  return OK;
}

EXPORT int cublasDestroy_v2(cublasContext *h) {
  delete h;
  return OK;
}

EXPORT int cublasGetVersion_v2(cublasContext *, int *version) {
  *version = sim::flavour.blas;
  return OK;
}

EXPORT int cublasSetStream_v2(cublasContext *h, void *stream) {
  h->stream = stream;
  return OK;
}

EXPORT int cublasSetPointerMode_v2(cublasContext *, int mode) {
  return mode == 0 ? OK : NOT_SUPPORTED;
}

EXPORT int cublasSetMathMode(cublasContext *, int mode) {
  return (mode & ~16) == 0 ? OK : NOT_SUPPORTED;
}

template <typename T, typename S>
static int product(cublasContext *h, int ta, int tb, int m, int n, int k, const S *alpha,
                   const T *a, int lda, const T *b, int ldb, const S *beta, T *c, int ldc) {
  if (ta < 0 || ta > 1 || tb < 0 || tb > 1)
    return INVALID_VALUE;
  blas::Product<T, S> p{ta == 1, tb == 1, m, n, k, *alpha, *beta, a, b, c, lda, ldb, ldc};
  if (!p.legal())
    return INVALID_VALUE;
  return blas::put(h->queue, h->stream, p) == 0 ? OK : EXECUTION_FAILED;
}

EXPORT int cublasSgemm_v2(cublasContext *h, int ta, int tb, int m, int n, int k, const float *alpha,
                          const float *a, int lda, const float *b, int ldb, const float *beta,
                          float *c, int ldc) {
  return product<float, float>(h, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

EXPORT int cublasDgemm_v2(cublasContext *h, int ta, int tb, int m, int n, int k,
                          const double *alpha, const double *a, int lda, const double *b, int ldb,
                          const double *beta, double *c, int ldc) {
  return product<double, double>(h, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

EXPORT int cublasGemmEx(cublasContext *h, int ta, int tb, int m, int n, int k, const void *alpha,
                        const void *a, int a_type, int lda, const void *b, int b_type, int ldb,
                        const void *beta, void *c, int c_type, int ldc, int compute, int algorithm) {
  if (algorithm != DEFAULT_ALGORITHM)
    return INVALID_VALUE;
  if (a_type != R_16F || b_type != R_16F || c_type != R_16F || compute != COMPUTE_32F)
    return NOT_SUPPORTED;
  return product<blas::half, float>(
      h, ta, tb, m, n, k, static_cast<const float *>(alpha), static_cast<const blas::half *>(a),
      lda, static_cast<const blas::half *>(b), ldb, static_cast<const float *>(beta),
      static_cast<blas::half *>(c), ldc);
}
