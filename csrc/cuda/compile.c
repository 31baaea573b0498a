// compile.c builds programs: CUDA C++ through NVRTC, and PTX through the PTX compiler that comes
// with the driver. Neither needs a device.

#include "state.h"

static int32_t rtc_failed(cs_lib *lib, int code, const char *call, cs_error *err) {
  int32_t status = CS_FAILED;
  if (code == NVRTC_COMPILATION)
    status = CS_COMPILE;
  else if (code == NVRTC_INVALID_OPTION || code == NVRTC_INVALID_INPUT)
    status = CS_INVALID;
  const char *words = lib->rtc.nvrtcGetErrorString(code);
  return tell(err, status, code, "%s: %s", call, words != NULL ? words : "unknown error");
}

static int32_t no_compiler(cs_error *err) {
  return tell(err, CS_UNSUPPORTED, 0, "NVRTC was not found");
}

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
  if (lib->compiler == NULL)
    return no_compiler(err);
  int archs[256], count = 0, code;
  if (lib->rtc.nvrtcGetNumSupportedArchs != NULL && lib->rtc.nvrtcGetSupportedArchs != NULL) {
    code = lib->rtc.nvrtcGetNumSupportedArchs(&count);
    if (code == NVRTC_OK && count > 256)
      return tell(err, CS_FAILED, 0, "NVRTC returned too large a number of architectures: %d", count);
    if (code == NVRTC_OK)
      code = lib->rtc.nvrtcGetSupportedArchs(archs);
    if (code != NVRTC_OK)
      return rtc_failed(lib, code, "nvrtcGetSupportedArchs", err);
  } else {
    int major = 0, minor = 0;
    code = lib->rtc.nvrtcVersion(&major, &minor);
    if (code != NVRTC_OK)
      return rtc_failed(lib, code, "nvrtcVersion", err);
    count = known_archs(major, minor, archs);
  }
  struct note n = {text, bytes, 0};
  if (bytes > 0)
    text[0] = '\0';
  for (int i = 0; i < count; i++)
    add(&n, "%ssm_%d", i > 0 ? " " : "", archs[i]);
  return CS_OK;
}

// split returns the options as an array for the compiler; the caller frees it.
static const char **split(const char *options, int *count) {
  int n = 0;
  for (const char *o = options; *o != '\0'; o += strlen(o) + 1)
    n++;
  const char **list = calloc((size_t)n + 1, sizeof *list);
  if (list == NULL)
    return NULL;
  *count = 0;
  for (const char *o = options; *o != '\0'; o += strlen(o) + 1)
    list[(*count)++] = o;
  return list;
}

static void cuda_blob_free(cs_blob *blob) {
  free(blob->data);
  free(blob->log);
  memset(blob, 0, sizeof *blob);
}

// take_log copies the compiler's log. It is no failure if there is none.
static void take_log(cs_lib *lib, nvrtcProgram p, cs_blob *out) {
  size_t n = 0;
  if (lib->rtc.nvrtcGetProgramLogSize(p, &n) != NVRTC_OK || n <= 1)
    return;
  char *log = calloc(1, n + 1);
  if (log == NULL || lib->rtc.nvrtcGetProgramLog(p, log) != NVRTC_OK) {
    free(log);
    return;
  }
  out->log = log;
  out->log_bytes = strlen(log);
}

// take_code copies the machine code if NVRTC made it (for sm_XX), otherwise the PTX (for
// compute_XX).
static int32_t take_code(cs_lib *lib, nvrtcProgram p, cs_blob *out, cs_error *err) {
  size_t n = 0;
  int cubin = lib->rtc.nvrtcGetCUBINSize != NULL && lib->rtc.nvrtcGetCUBIN != NULL &&
              lib->rtc.nvrtcGetCUBINSize(p, &n) == NVRTC_OK && n > 0;
  int code = cubin ? NVRTC_OK : lib->rtc.nvrtcGetPTXSize(p, &n);
  if (code != NVRTC_OK)
    return rtc_failed(lib, code, "nvrtcGetPTXSize", err);
  out->data = malloc(n + 1);
  if (out->data == NULL)
    return no_host_memory(err);
  code = cubin ? lib->rtc.nvrtcGetCUBIN(p, (char *)out->data)
               : lib->rtc.nvrtcGetPTX(p, (char *)out->data);
  if (code != NVRTC_OK)
    return rtc_failed(lib, code, cubin ? "nvrtcGetCUBIN" : "nvrtcGetPTX", err);
  out->bytes = n;
  return CS_OK;
}

static int32_t build(cs_lib *lib, const char *name, const char *source, const char **options,
                     int count, cs_blob *out, cs_error *err) {
  nvrtcProgram p = NULL;
  int code = lib->rtc.nvrtcCreateProgram(&p, source, name, 0, NULL, NULL);
  if (code != NVRTC_OK)
    return rtc_failed(lib, code, "nvrtcCreateProgram", err);
  code = lib->rtc.nvrtcCompileProgram(p, count, options);
  take_log(lib, p, out);
  int32_t status = code == NVRTC_OK ? take_code(lib, p, out, err)
                                    : rtc_failed(lib, code, "nvrtcCompileProgram", err);
  lib->rtc.nvrtcDestroyProgram(&p);
  return status;
}

static int32_t cuda_compile(cs_lib *lib, const char *name, const char *source, const char *options,
                            cs_blob *out, cs_error *err) {
  if (lib->compiler == NULL)
    return no_compiler(err);
  int count = 0;
  const char **list = split(options, &count);
  if (list == NULL)
    return no_host_memory(err);
  cs_blob made = {NULL, 0, NULL, 0};
  int32_t status = build(lib, name, source, list, count, &made, err);
  free(list);
  if (status != CS_OK) {
    free(made.data);
    made.data = NULL;
    made.bytes = 0;
  }
  *out = made;
  return status;
}

// -- PTX --

// The names of the PTX compiler: the one of the driver, and the one in Debian's directory for
// several drivers.
static const char assembler_names[] = "libnvidia-ptxjitcompiler.so.1\0"
                                      "/usr/lib/x86_64-linux-gnu/nvidia/current/"
                                      "libnvidia-ptxjitcompiler.so.1\0"
                                      "/usr/lib/aarch64-linux-gnu/nvidia/current/"
                                      "libnvidia-ptxjitcompiler.so.1\0"
                                      "/usr/lib/wsl/lib/libnvidia-ptxjitcompiler.so.1\0"
                                      "/usr/local/nvidia/lib64/libnvidia-ptxjitcompiler.so.1\0";

static int has_assembler(cs_lib *lib) {
  pthread_mutex_lock(&lib->lock);
  if (!lib->assembler_tried) {
    struct note nobody = {NULL, 0, 0};
    lib->assembler = open_first(assembler_names, ptx_symbols, &lib->ptx, &nobody);
    lib->assembler_tried = 1;
  }
  pthread_mutex_unlock(&lib->lock);
  return lib->assembler != NULL;
}

// text_of returns a log of the PTX compiler, or NULL if there is none.
static char *text_of(nvptxCompiler c, int (*size)(nvptxCompiler, size_t *),
                     int (*get)(nvptxCompiler, char *)) {
  size_t n = 0;
  if (size(c, &n) != NVPTX_OK || n == 0)
    return NULL;
  char *text = calloc(1, n + 1);
  if (text != NULL && get(c, text) != NVPTX_OK) {
    free(text);
    return NULL;
  }
  return text;
}

static int32_t assemble(cs_lib *lib, nvptxCompiler c, const char **options, int count, cs_blob *out,
                        cs_error *err) {
  int code = lib->ptx.nvPTXCompilerCompile(c, count, options);
  if (code != NVPTX_OK) {
    out->log = text_of(c, lib->ptx.nvPTXCompilerGetErrorLogSize, lib->ptx.nvPTXCompilerGetErrorLog);
    out->log_bytes = out->log != NULL ? strlen(out->log) : 0;
    return tell(err, CS_COMPILE, code, "nvPTXCompilerCompile: the PTX did not assemble (code %d)",
                code);
  }
  out->log = text_of(c, lib->ptx.nvPTXCompilerGetInfoLogSize, lib->ptx.nvPTXCompilerGetInfoLog);
  out->log_bytes = out->log != NULL ? strlen(out->log) : 0;
  size_t n = 0;
  code = lib->ptx.nvPTXCompilerGetCompiledProgramSize(c, &n);
  unsigned char *data = NULL;
  if (code == NVPTX_OK) {
    data = malloc(n + 1);
    if (data == NULL)
      return no_host_memory(err);
    code = lib->ptx.nvPTXCompilerGetCompiledProgram(c, data);
  }
  if (code != NVPTX_OK) {
    free(data);
    return tell(err, CS_FAILED, code, "nvPTXCompilerGetCompiledProgram: code %d", code);
  }
  out->data = data;
  out->bytes = n;
  return CS_OK;
}

static int32_t cuda_assemble(cs_lib *lib, const unsigned char *text, uint64_t bytes,
                             const char *options, cs_blob *out, cs_error *err) {
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
  nvptxCompiler c = NULL;
  cs_blob made = {NULL, 0, NULL, 0};
  int32_t status;
  int code = lib->ptx.nvPTXCompilerCreate(&c, strlen(ptx) + 1, ptx);
  if (code != NVPTX_OK) {
    status = tell(err, CS_FORMAT, code, "nvPTXCompilerCreate: code %d", code);
  } else {
    status = assemble(lib, c, list, count, &made, err);
    lib->ptx.nvPTXCompilerDestroy(&c);
  }
  free(list);
  free(ptx);
  *out = made;
  return status;
}
