// compile.c lists the architectures of NVRTC, and assembles PTX. Neither needs a device.

#include "cuda.h"

// known_archs is the list of architectures for an NVRTC that cannot return it: 11.1 and before.
static int known_archs(int major, int minor, int *archs) {
  static const int all[] = {35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86};
  int n = (int)(sizeof all / sizeof *all);
  if (major < 11)
    n -= 2;
  else if (major == 11 && minor < 1)
    n -= 1;
  memcpy(archs, all, sizeof all);
  return n;
}

static int32_t cuda_targets(cs_lib *lib, char *text, uint64_t bytes, cs_error *err) {
  int archs[256], count = 0, code;
  if (lib->rtc.arch_count != NULL && lib->rtc.archs != NULL) {
    code = lib->rtc.arch_count(&count);
    if (code == 0 && count > 256)
      return tell(err, CS_FAILED, 0, "NVRTC returned too large a number of architectures: %d",
                  count);
    if (code == 0)
      code = lib->rtc.archs(archs);
    if (code != 0)
      return rtc_failed(lib, code, RTC(archs), err);
  } else {
    int major = 0, minor = 0;
    code = lib->rtc.version(&major, &minor);
    if (code != 0)
      return rtc_failed(lib, code, RTC(version), err);
    count = known_archs(major, minor, archs);
  }
  struct gpu_note n = note_in(text, bytes);
  for (int i = 0; i < count; i++)
    add(&n, "%ssm_%d", i > 0 ? " " : "", archs[i]);
  return CS_OK;
}

// -- PTX, by the PTX compiler that comes with the driver --

// The names of the PTX compiler: the one of the driver, and the one in Debian's directory for
// several drivers.
static const char assembler_names[] = "libnvidia-ptxjitcompiler.so.1\0"
                                      "/usr/lib/x86_64-linux-gnu/nvidia/current/"
                                      "libnvidia-ptxjitcompiler.so.1\0"
                                      "/usr/lib/aarch64-linux-gnu/nvidia/current/"
                                      "libnvidia-ptxjitcompiler.so.1\0"
                                      "/usr/lib/wsl/lib/libnvidia-ptxjitcompiler.so.1\0"
                                      "/usr/local/nvidia/lib64/libnvidia-ptxjitcompiler.so.1\0";

static int has_assembler(struct cuda_lib *lib) {
  pthread_mutex_lock(&lib->base.lock);
  if (!lib->assembler_tried) {
    struct gpu_note nobody = {NULL, 0, 0};
    lib->base.others[1].library =
        open_first(lib->base.vendor, assembler_names, ptx_symbols, lib, &nobody);
    lib->assembler_tried = 1;
  }
  pthread_mutex_unlock(&lib->base.lock);
  return lib->base.others[1].library != NULL;
}

static int32_t assemble(struct cuda_lib *lib, void *c, const char **options, int count,
                        cs_blob *out, cs_error *err) {
  int code = lib->ptx.compile(c, count, options);
  if (code != 0) {
    take_log(c, lib->ptx.error_log_size, lib->ptx.error_log, out);
    return tell(err, CS_COMPILE, code, "nvPTXCompilerCompile: the PTX did not assemble (code %d)",
                code);
  }
  take_log(c, lib->ptx.info_log_size, lib->ptx.info_log, out);
  size_t n = 0;
  code = lib->ptx.code_size(c, &n);
  unsigned char *data = NULL;
  if (code == 0) {
    data = malloc(n + 1);
    if (data == NULL)
      return no_host_memory(err);
    code = lib->ptx.code(c, data);
  }
  if (code != 0) {
    free(data);
    return tell(err, CS_FAILED, code, "nvPTXCompilerGetCompiledProgram: code %d", code);
  }
  out->data = data;
  out->bytes = n;
  return CS_OK;
}

static int32_t cuda_assemble(cs_lib *base, const unsigned char *text, uint64_t bytes,
                             const char *options, cs_blob *out, cs_error *err) {
  struct cuda_lib *lib = (struct cuda_lib *)base;
  if (!has_assembler(lib))
    return tell(err, CS_UNSUPPORTED, 0, "libnvidia-ptxjitcompiler.so.1 was not found");
  int count = 0;
  const char **list = split(options, &count);
  char *ptx = malloc(bytes + 1);
  if (list == NULL || ptx == NULL) {
    free(list);
    free(ptx);
    return no_host_memory(err);
  }
  memcpy(ptx, text, bytes);
  ptx[bytes] = '\0';
  void *c = NULL;
  cs_blob made = {NULL, 0, NULL, 0};
  int32_t status;
  int code = lib->ptx.create(&c, strlen(ptx) + 1, ptx);
  if (code != 0) {
    status = tell(err, CS_FORMAT, code, "nvPTXCompilerCreate: code %d", code);
  } else {
    status = assemble(lib, c, list, count, &made, err);
    lib->ptx.destroy(&c);
  }
  free(list);
  free(ptx);
  *out = made;
  return status;
}
