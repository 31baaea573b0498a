// device.c has the contexts of devices, copies between them, the loading of programs, and cuBLAS.

#include "cuda.h"

// -- devices --

static int32_t cuda_identify(cs_lib *lib, int device, cs_info *info, cs_error *err) {
  // They are needed to compile anything, so a failure is an error.
  int32_t status = check(
      lib, lib->api.device_attribute(&info->major, cuda_attributes[ATTR_CAPABILITY_MAJOR], device),
      API(device_attribute), err);
  if (status == CS_OK)
    status = check(
        lib,
        lib->api.device_attribute(&info->minor, cuda_attributes[ATTR_CAPABILITY_MINOR], device),
        API(device_attribute), err);
  if (status == CS_OK)
    snprintf(info->arch, sizeof info->arch, "sm_%d%d", info->major, info->minor);
  return status;
}

static int make_current(cs_device *d) {
  return ((cuda_set_current)d->lib->api.set_current)(d->context);
}

static int32_t cuda_acquire(cs_device *d, cs_error *err) {
  struct cuda_lib *lib = (struct cuda_lib *)d->lib;
  int32_t status = check(d->lib, lib->retain(&d->context, d->handle), OWN(retain), err);
  if (status != CS_OK)
    return status;
  status = enter(d, err);
  if (status != CS_OK)
    lib->release(d->handle);
  return status;
}

static int32_t cuda_release(cs_device *d, cs_error *err) {
  struct cuda_lib *lib = (struct cuda_lib *)d->lib;
  // Other users of a lost context have lost their work already, so it may be reset.
  if (atomic_load(&d->lost))
    lib->reset(d->handle);
  // Otherwise a context that does not exist any more would stay current on this thread.
  ((cuda_set_current)d->lib->api.set_current)(NULL);
  int code = lib->release(d->handle);
  return atomic_load(&d->lost) ? CS_OK : check(d->lib, code, OWN(release), err);
}

static int enable_peer(cs_device *to, cs_device *from) {
  return ((cuda_enable_peer)to->lib->api.enable_peer)(from->context, 0);
}

static int copy_peer(cs_stream *s, cs_device *to, uint64_t dst, cs_device *from, uint64_t src,
                     uint64_t bytes) {
  return ((cuda_copy_peer)to->lib->api.copy_peer)(dst, to->context, src, from->context, bytes,
                                                  s->handle);
}

// -- programs --

static int32_t load_image(cs_device *d, const void *image, void **out, char *log,
                          uint64_t log_bytes, cs_error *err) {
  char info[4096], errors[4096];
  info[0] = errors[0] = '\0';
  int options[] = {JIT_INFO_LOG, JIT_INFO_LOG_BYTES, JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES};
  void *values[] = {info, (void *)(uintptr_t)sizeof info, errors, (void *)(uintptr_t)sizeof errors};
  cuda_module_load load = (cuda_module_load)d->lib->api.module_load;
  int32_t status = on_device(d, load(out, image, 4, options, values), API(module_load), err);
  info[sizeof info - 1] = errors[sizeof errors - 1] = '\0';
  if (log_bytes > 0)
    snprintf(log, log_bytes, "%s%s%s", errors, errors[0] != '\0' && info[0] != '\0' ? "\n" : "",
             info);
  return status;
}

static int32_t cuda_load(cs_device *d, const unsigned char *code, uint64_t bytes, void **module,
                         char *log, uint64_t log_bytes, cs_error *err) {
  int elf = bytes >= 4 && memcmp(code, "\177ELF", 4) == 0;
  if (elf && !whole(code, bytes))
    return tell(err, CS_FORMAT, 0, "the program is damaged or cut short");
  int32_t status = enter(d, err);
  if (status != CS_OK)
    return status;
  if (elf)
    return load_image(d, code, module, log, log_bytes, err);
  char *text = malloc(bytes + 1); // PTX ends in a NUL for the driver
  if (text == NULL)
    return no_host_memory(err);
  memcpy(text, code, bytes);
  text[bytes] = '\0';
  status = load_image(d, text, module, log, log_bytes, err);
  free(text);
  return status;
}

// -- cuBLAS --

static void cublas_version(cs_device *d, char *text, size_t bytes) {
  cublas_get_version get = (cublas_get_version)d->blas_api.get_version;
  int version = 0;
  text[0] = '\0';
  if (d->blas_handle != NULL && get != NULL && get(d->blas_handle, &version) == 0)
    snprintf(text, bytes, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

static int cublas_half(cs_device *d, int ta, int tb, int m, int n, int k, const float *alpha,
                       const void *a, int lda, const void *b, int ldb, const float *beta, void *c,
                       int ldc) {
  return ((cublas_gemm_ex)d->blas_api.gemm_ex)(
      d->blas_handle, ta, tb, m, n, k, alpha, a, CUDA_R_16F, lda, b, CUDA_R_16F, ldb, beta, c,
      CUDA_R_16F, ldc, CUBLAS_COMPUTE_32F, CUBLAS_DEFAULT_ALGORITHM);
}
