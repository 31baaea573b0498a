// blas.c multiplies matrices with the vendor's library.

#include "state.h"

static int32_t blas_failed(cs_device *d, int code, const char *call, cs_error *err) {
  int32_t status = CS_FAILED;
  switch (code) {
  case CUBLAS_ALLOC_FAILED:
    status = CS_NO_MEMORY;
    break;
  case CUBLAS_INVALID_VALUE:
    status = CS_INVALID;
    break;
  case CUBLAS_ARCH_MISMATCH:
  case CUBLAS_NOT_SUPPORTED:
    status = CS_UNSUPPORTED;
    break;
  case CUBLAS_EXECUTION_FAILED:
    status = atomic_load(&d->lost) ? CS_LOST : CS_LAUNCH;
    break;
  }
  return tell(err, status, code, "%s: cuBLAS status %d", call, code);
}

// start_blas makes the handle of the library that is open.
static int32_t start_blas(cs_device *d, cs_error *err) {
  cublasHandle handle = NULL;
  int code = d->cublas.cublasCreate(&handle);
  if (code != CUBLAS_OK)
    return blas_failed(d, code, "cublasCreate", err);
  code = d->cublas.cublasSetPointerMode(handle, CUBLAS_POINTER_HOST);
  if (code != CUBLAS_OK) {
    d->cublas.cublasDestroy(handle);
    return blas_failed(d, code, "cublasSetPointerMode", err);
  }
  // Keep split sums of half in float. A library without that mode does not split them.
  if (d->cublas.cublasSetMathMode != NULL)
    d->cublas.cublasSetMathMode(handle, CUBLAS_FULL_SUMS);
  d->blas_handle = handle;
  return CS_OK;
}

// open_blas does the work of blas_open. The caller holds the lock. A cuBLAS for a newer CUDA than
// the driver's opens but does not start; another one may.
static int32_t open_blas(cs_device *d, const char *names, cs_error *err) {
  char tried[160];
  struct note note = {tried, sizeof tried, 0};
  tried[0] = '\0';
  int32_t status = CS_OK;
  cs_error first;
  for (;; d->blas = NULL) {
    if (d->blas == NULL)
      d->blas = open_next(&names, blas_symbols, &d->cublas, &note);
    if (d->blas == NULL)
      break;
    int32_t before = status;
    status = start_blas(d, err);
    if (status == CS_OK || status == CS_NO_MEMORY || status == CS_LOST)
      return status;
    if (before == CS_OK)
      first = *err;
  }
  if (status == CS_OK)
    return tell(err, CS_UNSUPPORTED, 0, "cuBLAS was not found: %s", tried);
  *err = first;
  return first.status;
}

static int32_t cuda_blas_open(cs_device *d, const char *names, cs_error *err) {
  int32_t status = enter(d, err);
  if (status != CS_OK)
    return status;
  pthread_mutex_lock(&d->blas_lock);
  if (d->blas_handle == NULL)
    status = open_blas(d, names, err);
  pthread_mutex_unlock(&d->blas_lock);
  return status;
}

// multiply queues the product. The library's matrices are column-major: a row-major matrix is the
// transpose of a column-major one, so it computes C' = op(B)' op(A)' with swapped operands and no
// copy.
static int multiply(cs_device *d, const cs_gemm *g) {
  int ta = g->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N, tb = g->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  int m = (int)g->m, n = (int)g->n, k = (int)g->k;
  int lda = (int)g->lda, ldb = (int)g->ldb, ldc = (int)g->ldc;
  void *a = (void *)(uintptr_t)g->a, *b = (void *)(uintptr_t)g->b, *c = (void *)(uintptr_t)g->c;
  float alpha = (float)g->alpha, beta = (float)g->beta;
  switch (g->type) {
  case 0:
    return d->cublas.cublasSgemm(d->blas_handle, tb, ta, n, m, k, &alpha, b, ldb, a, lda, &beta, c,
                                 ldc);
  case 1:
    return d->cublas.cublasDgemm(d->blas_handle, tb, ta, n, m, k, &g->alpha, b, ldb, a, lda,
                                 &g->beta, c, ldc);
  }
  return d->cublas.cublasGemmEx(d->blas_handle, tb, ta, n, m, k, &alpha, b, CUDA_R_16F, ldb, a,
                                CUDA_R_16F, lda, &beta, c, CUDA_R_16F, ldc, CUBLAS_COMPUTE_32F,
                                CUBLAS_DEFAULT_ALGORITHM);
}

static int32_t cuda_gemm(cs_stream *s, const cs_gemm *g, cs_error *err) {
  cs_device *d = s->dev;
  const int64_t sizes[] = {g->m, g->n, g->k, g->lda, g->ldb, g->ldc};
  for (int i = 0; i < 6; i++) {
    if (sizes[i] < 1)
      return tell(err, CS_INVALID, 0, "a matrix product with a size of %lld", (long long)sizes[i]);
    if (sizes[i] > INT32_MAX)
      return tell(err, CS_TOO_LARGE, 0, "cuBLAS takes no size of %lld", (long long)sizes[i]);
  }
  if (g->type < 0 || g->type > 2)
    return tell(err, CS_INVALID, 0, "no matrix product of type %d", g->type);
  int32_t status = enter(d, err);
  if (status != CS_OK)
    return status;
  pthread_mutex_lock(&d->blas_lock);
  if (d->blas_handle == NULL)
    status = tell(err, CS_UNSUPPORTED, 0, "cuBLAS is not open");
  else if (g->type == 2 && d->cublas.cublasGemmEx == NULL)
    status = tell(err, CS_UNSUPPORTED, 0, "this cuBLAS has no cublasGemmEx");
  if (status == CS_OK) {
    int code = d->cublas.cublasSetStream(d->blas_handle, s->handle);
    if (code == CUBLAS_OK)
      code = multiply(d, g);
    if (code != CUBLAS_OK)
      status = blas_failed(d, code, "gemm", err);
  }
  pthread_mutex_unlock(&d->blas_lock);
  return status;
}
