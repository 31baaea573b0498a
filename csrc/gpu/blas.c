// blas.c multiplies matrices with the vendor's library.

#include "load.h"

static int32_t blas_failed(cs_device *d, int code, const char *call, cs_error *err) {
  const struct gpu_code *row = code_in(d->lib->vendor->blas_codes, code);
  int32_t status = row->first != 0 ? row->status : CS_FAILED;
  if (status == CS_LAUNCH && atomic_load(&d->lost))
    status = CS_LOST;
  return tell(err, status, code, "%s: %s status %d", call, d->lib->vendor->blas_title, code);
}

static int32_t start_failed(cs_device *d, int code, size_t at, cs_error *err) {
  char name[96];
  return blas_failed(d, code, symbol_name(d->lib->vendor->blas_symbols, at, name, sizeof name),
                     err);
}

// start_blas makes the handle of the library that is open.
static int32_t start_blas(cs_device *d, cs_error *err) {
  const struct gpu_vendor *v = d->lib->vendor;
  int32_t status = v->blas_suits != NULL ? v->blas_suits(d, err) : CS_OK;
  if (status != CS_OK)
    return status;
  void *handle = NULL;
  int code = d->blas_api.create(&handle);
  if (code != 0)
    return start_failed(d, code, BLAS(create), err);
  code = d->blas_api.set_pointer_mode(handle, 0);
  if (code != 0) {
    d->blas_api.destroy(handle);
    return start_failed(d, code, BLAS(set_pointer_mode), err);
  }
  if (d->blas_api.set_math_mode != NULL)
    d->blas_api.set_math_mode(handle, v->blas_math_mode);
  d->blas_handle = handle;
  return CS_OK;
}

// open_blas does the work of blas_open. The caller holds the lock. A library
// may open and not start, such as a cuBLAS for a newer CUDA than the driver's; another one may.
static int32_t open_blas(cs_device *d, const char *names, cs_error *err) {
  char tried[160];
  struct gpu_note note = {tried, sizeof tried, 0};
  tried[0] = '\0';
  int32_t status = CS_OK;
  cs_error first;
  for (;; d->blas = NULL) {
    if (d->blas == NULL)
      d->blas = open_next(d->lib->vendor, &names, d->lib->vendor->blas_symbols, d, &note);
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
    return tell(err, CS_UNSUPPORTED, 0, "%s was not found: %s", d->lib->vendor->blas_title, tried);
  *err = first;
  return first.status;
}

static int32_t gpu_blas_open(cs_device *d, const char *names, cs_error *err) {
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
  const struct gpu_vendor *v = d->lib->vendor;
  int ta = g->trans_a ? v->blas_transposed : v->blas_plain;
  int tb = g->trans_b ? v->blas_transposed : v->blas_plain;
  int m = (int)g->m, n = (int)g->n, k = (int)g->k;
  int lda = (int)g->lda, ldb = (int)g->ldb, ldc = (int)g->ldc;
  void *a = (void *)(uintptr_t)g->a, *b = (void *)(uintptr_t)g->b, *c = (void *)(uintptr_t)g->c;
  float alpha = (float)g->alpha, beta = (float)g->beta;
  switch (g->type) {
  case 0:
    return d->blas_api.sgemm(d->blas_handle, tb, ta, n, m, k, &alpha, b, ldb, a, lda, &beta, c,
                             ldc);
  case 1:
    return d->blas_api.dgemm(d->blas_handle, tb, ta, n, m, k, &g->alpha, b, ldb, a, lda, &g->beta,
                             c, ldc);
  }
  return v->gemm_half(d, tb, ta, n, m, k, &alpha, b, ldb, a, lda, &beta, c, ldc);
}

static int32_t gpu_gemm(cs_stream *s, const cs_gemm *g, cs_error *err) {
  cs_device *d = s->dev;
  const char *title = d->lib->vendor->blas_title;
  const int64_t sizes[] = {g->m, g->n, g->k, g->lda, g->ldb, g->ldc};
  for (int i = 0; i < 6; i++) {
    if (sizes[i] < 1)
      return tell(err, CS_INVALID, 0, "a matrix product with a size of %lld", (long long)sizes[i]);
    if (sizes[i] > INT32_MAX)
      return tell(err, CS_TOO_LARGE, 0, "%s takes no size of %lld", title, (long long)sizes[i]);
  }
  if (g->type < 0 || g->type > 2)
    return tell(err, CS_INVALID, 0, "no matrix product of type %d", g->type);
  int32_t status = enter(d, err);
  if (status != CS_OK)
    return status;
  pthread_mutex_lock(&d->blas_lock);
  if (d->blas_handle == NULL)
    status = tell(err, CS_UNSUPPORTED, 0, "%s is not open", title);
  else if (g->type == 2 && d->blas_api.gemm_ex == NULL)
    status = tell(err, CS_UNSUPPORTED, 0, "this %s has no product of halves", title);
  if (status == CS_OK) {
    int code = d->blas_api.set_stream(d->blas_handle, s->handle);
    if (code == 0)
      code = multiply(d, g);
    if (code != 0)
      status = blas_failed(d, code, "gemm", err);
  }
  pthread_mutex_unlock(&d->blas_lock);
  return status;
}
