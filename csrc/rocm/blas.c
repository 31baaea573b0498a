// blas.c multiplies matrices with the vendor's library.

#include "state.h"

#include <dirent.h>

static int32_t blas_failed(cs_device *d, int code, const char *call, cs_error *err) {
  int32_t status = CS_FAILED;
  switch (code) {
  case ROCBLAS_MEMORY_ERROR:
    status = CS_NO_MEMORY;
    break;
  case ROCBLAS_INVALID_SIZE:
  case ROCBLAS_INVALID_VALUE:
    status = CS_INVALID;
    break;
  case ROCBLAS_ARCH_MISMATCH:
  case ROCBLAS_NOT_IMPLEMENTED:
    status = CS_UNSUPPORTED;
    break;
  case ROCBLAS_INTERNAL_ERROR:
    status = atomic_load(&d->lost) ? CS_LOST : CS_LAUNCH;
    break;
  }
  return tell(err, status, code, "%s: rocBLAS status %d", call, code);
}

// knows reports whether a rocBLAS was built for an architecture: its kernels are in files whose
// names contain it. If it was not, rocBLAS would end the whole process, so it is not used.
static int knows(cs_device *d) {
  char dir[4096], name[64];
  const char *path = getenv("ROCBLAS_TENSILE_LIBPATH");
  Dl_info where;
  void *symbol;
  memcpy(&symbol, &d->rocblas.rocblas_create_handle, sizeof symbol);
  snprintf(name, sizeof name, "%.*s", (int)strcspn(d->arch, ":"), d->arch);
  if (path != NULL && path[0] != '\0')
    snprintf(dir, sizeof dir, "%s", path);
  else if (dladdr(symbol, &where) != 0 && strrchr(where.dli_fname, '/') != NULL)
    snprintf(dir, sizeof dir, "%.*s/rocblas/library",
             (int)(strrchr(where.dli_fname, '/') - where.dli_fname), where.dli_fname);
  else
    return 0;
  DIR *files = name[0] != '\0' ? opendir(dir) : NULL;
  if (files == NULL)
    return 0;
  int found = 0;
  for (struct dirent *f; !found && (f = readdir(files)) != NULL;) {
    const char *at = strstr(f->d_name, name);
    found = at != NULL && strspn(at + strlen(name), "0123456789abcdef") == 0; // gfx90 is not gfx90a
  }
  closedir(files);
  return found;
}

// open_blas does the work of blas_open. The caller holds the lock.
static int32_t open_blas(cs_device *d, const char *names, cs_error *err) {
  char tried[160];
  struct note note = {tried, sizeof tried, 0};
  tried[0] = '\0';
  if (d->blas == NULL)
    d->blas = open_first(names, blas_symbols, &d->rocblas, &note);
  if (d->blas == NULL)
    return tell(err, CS_UNSUPPORTED, 0, "rocBLAS was not found: %s", tried);
  if (!knows(d))
    return tell(err, CS_UNSUPPORTED, 0, "rocBLAS has no kernels for %.64s", d->arch);
  rocblasHandle handle = NULL;
  int code = d->rocblas.rocblas_create_handle(&handle);
  if (code != ROCBLAS_OK)
    return blas_failed(d, code, "rocblas_create_handle", err);
  code = d->rocblas.rocblas_set_pointer_mode(handle, ROCBLAS_POINTER_HOST);
  if (code != ROCBLAS_OK) {
    d->rocblas.rocblas_destroy_handle(handle);
    return blas_failed(d, code, "rocblas_set_pointer_mode", err);
  }
  d->blas_handle = handle;
  return CS_OK;
}

static int32_t rocm_blas_open(cs_device *d, const char *names, cs_error *err) {
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
  int ta = g->trans_a ? ROCBLAS_OP_T : ROCBLAS_OP_N, tb = g->trans_b ? ROCBLAS_OP_T : ROCBLAS_OP_N;
  int m = (int)g->m, n = (int)g->n, k = (int)g->k;
  int lda = (int)g->lda, ldb = (int)g->ldb, ldc = (int)g->ldc;
  void *a = (void *)(uintptr_t)g->a, *b = (void *)(uintptr_t)g->b, *c = (void *)(uintptr_t)g->c;
  float alpha = (float)g->alpha, beta = (float)g->beta;
  switch (g->type) {
  case 0:
    return d->rocblas.rocblas_sgemm(d->blas_handle, tb, ta, n, m, k, &alpha, b, ldb, a, lda, &beta,
                                    c, ldc);
  case 1:
    return d->rocblas.rocblas_dgemm(d->blas_handle, tb, ta, n, m, k, &g->alpha, b, ldb, a, lda,
                                    &g->beta, c, ldc);
  }
  return d->rocblas.rocblas_gemm_ex(d->blas_handle, tb, ta, n, m, k, &alpha, b, ROCBLAS_R_16F, ldb,
                                    a, ROCBLAS_R_16F, lda, &beta, c, ROCBLAS_R_16F, ldc, c,
                                    ROCBLAS_R_16F, ldc, ROCBLAS_R_32F, ROCBLAS_STANDARD, 0, 0);
}

static int32_t rocm_gemm(cs_stream *s, const cs_gemm *g, cs_error *err) {
  cs_device *d = s->dev;
  const int64_t sizes[] = {g->m, g->n, g->k, g->lda, g->ldb, g->ldc};
  for (int i = 0; i < 6; i++) {
    if (sizes[i] < 1)
      return tell(err, CS_INVALID, 0, "a matrix product with a size of %lld", (long long)sizes[i]);
    if (sizes[i] > INT32_MAX)
      return tell(err, CS_TOO_LARGE, 0, "rocBLAS takes no size of %lld", (long long)sizes[i]);
  }
  if (g->type < 0 || g->type > 2)
    return tell(err, CS_INVALID, 0, "no matrix product of type %d", g->type);
  int32_t status = enter(d, err);
  if (status != CS_OK)
    return status;
  pthread_mutex_lock(&d->blas_lock);
  if (d->blas_handle == NULL)
    status = tell(err, CS_UNSUPPORTED, 0, "rocBLAS is not open");
  else if (g->type == 2 && d->rocblas.rocblas_gemm_ex == NULL)
    status = tell(err, CS_UNSUPPORTED, 0, "this rocBLAS has no rocblas_gemm_ex");
  if (status == CS_OK) {
    int code = d->rocblas.rocblas_set_stream(d->blas_handle, s->handle);
    if (code == ROCBLAS_OK)
      code = multiply(d, g);
    if (code != ROCBLAS_OK)
      status = blas_failed(d, code, "gemm", err);
  }
  pthread_mutex_unlock(&d->blas_lock);
  return status;
}
