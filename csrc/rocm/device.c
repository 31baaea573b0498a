// device.c has the opening of devices, copies between them, the loading of programs, and rocBLAS.

#include <dirent.h>

#include "rocm.h"

// -- devices --

// architecture copies the name of the architecture, which HIP returns only in its structure of
// properties. The layout of that structure differs between versions, so the function searches it:
// the name is the only text after the device's name, at the beginning, that starts with "gfx".
static int32_t architecture(cs_lib *lib, int device, char *out, size_t bytes, cs_error *err) {
  enum { name_bytes = 256, room = 16384 }; // HIP 7 has 1472 bytes
  out[0] = '\0';
  struct rocm_lib *own = (struct rocm_lib *)lib;
  if (own->properties == NULL)
    return CS_OK;
  unsigned char *p = calloc(1, room);
  if (p == NULL)
    return no_host_memory(err);
  int32_t status = check(lib, own->properties(p, device), OWN(properties), err);
  for (size_t i = name_bytes; status == CS_OK && i + bytes < room; i++) {
    if (memcmp(p + i, "gfx", 3) != 0)
      continue;
    size_t n = strspn((const char *)p + i, "abcdefghijklmnopqrstuvwxyz0123456789:+-");
    if (n <= 3 || n >= bytes || p[i + n] != '\0')
      continue;
    memcpy(out, p + i, n + 1);
    break;
  }
  free(p);
  return status;
}

static int32_t rocm_identify(cs_lib *lib, int device, cs_info *info, cs_error *err) {
  const int which[] = {rocm_attributes[ATTR_CAPABILITY_MAJOR],
                       rocm_attributes[ATTR_CAPABILITY_MINOR]};
  int32_t *const out[] = {&info->major, &info->minor};
  for (int i = 0; i < 2; i++)
    if (lib->api.device_attribute(out[i], which[i], device) != 0)
      *out[i] = 0;
  return architecture(lib, device, info->arch, sizeof info->arch, err);
}

static int make_current(cs_device *d) {
  return ((hip_set_device)d->lib->api.set_current)(d->handle);
}

// reset resets a lost device. Other users have lost their work on it already. If the device does
// not become current, nothing is reset, as that would reset another device.
static int32_t reset(cs_device *d, cs_error *err) {
  int code = make_current(d);
  if (code == 0)
    code = ((struct rocm_lib *)d->lib)->reset();
  return check(d->lib, code, OWN(reset), err);
}

static int32_t rocm_acquire(cs_device *d, cs_error *err) {
  struct rocm_device *own = (struct rocm_device *)d;
  int32_t status = enter(d, err);
  size_t left, total; // this query makes HIP initialize the device, which fails if it does not work
  if (status == CS_OK)
    status = CALL(d, err, memory_info, &left, &total);
  if (status == CS_OK)
    status = architecture(d->lib, d->handle, own->arch, sizeof own->arch, err);
  cs_error ignored;
  if (status != CS_OK && atomic_load(&d->lost)) // clears the state of an earlier use
    reset(d, &ignored);
  return status;
}

// There is no context to release: HIP has one context per device for the whole process.
static int32_t rocm_release(cs_device *d, cs_error *err) {
  return atomic_load(&d->lost) ? reset(d, err) : CS_OK;
}

static int enable_peer(cs_device *to, cs_device *from) {
  return ((hip_enable_peer)to->lib->api.enable_peer)(from->handle, 0);
}

static int copy_peer(cs_stream *s, cs_device *to, uint64_t dst, cs_device *from, uint64_t src,
                     uint64_t bytes) {
  return ((hip_copy_peer)to->lib->api.copy_peer)(dst, to->handle, src, from->handle, bytes,
                                                 s->handle);
}

// -- programs --

// HIP loads complete code objects for AMD's GPUs. It writes no log.
static int32_t rocm_load(cs_device *d, const unsigned char *code, uint64_t bytes, void **module,
                         char *log, uint64_t log_bytes, cs_error *err) {
  enum { machine = 224 };
  (void)log;
  (void)log_bytes;
  // The simulated library has another format, which it checks itself.
  if (!d->lib->simulated && (!whole(code, bytes) || memcmp(code, "\177ELF\2\1", 6) != 0 ||
                             little(code + 0x12, 2) != machine))
    return tell(err, CS_FORMAT, 0, "the program is damaged or cut short");
  int32_t status = enter(d, err);
  if (status != CS_OK)
    return status;
  hip_module_load load = (hip_module_load)d->lib->api.module_load;
  return on_device(d, load(module, code), API(module_load), err);
}

// -- rocBLAS --

// knows reports whether a rocBLAS was built for an architecture: its kernels are in files whose
// names contain it. If it was not, rocBLAS would end the whole process, so it is not used.
static int knows(cs_device *d) {
  const char *arch = ((struct rocm_device *)d)->arch;
  char dir[4096], name[64];
  const char *path = getenv("ROCBLAS_TENSILE_LIBPATH");
  Dl_info where;
  void *symbol;
  memcpy(&symbol, &d->blas_api.create, sizeof symbol);
  snprintf(name, sizeof name, "%.*s", (int)strcspn(arch, ":"), arch);
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

static int32_t rocblas_suits(cs_device *d, cs_error *err) {
  if (knows(d))
    return CS_OK;
  return tell(err, CS_UNSUPPORTED, 0, "rocBLAS has no kernels for %.64s",
              ((struct rocm_device *)d)->arch);
}

static void rocblas_version(cs_device *d, char *text, size_t bytes) {
  rocblas_get_version get = (rocblas_get_version)d->blas_api.get_version;
  if (get == NULL || get(text, bytes) != 0)
    text[0] = '\0';
}

static int rocblas_half(cs_device *d, int ta, int tb, int m, int n, int k, const float *alpha,
                        const void *a, int lda, const void *b, int ldb, const float *beta, void *c,
                        int ldc) {
  return ((rocblas_gemm_ex)d->blas_api.gemm_ex)(
      d->blas_handle, ta, tb, m, n, k, alpha, a, ROCBLAS_R_16F, lda, b, ROCBLAS_R_16F, ldb, beta, c,
      ROCBLAS_R_16F, ldc, c, ROCBLAS_R_16F, ldc, ROCBLAS_R_32F, ROCBLAS_STANDARD, 0, 0);
}
