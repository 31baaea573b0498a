// compile.c builds programs: HIP C++ through hipRTC. It needs no device.

#include "state.h"

static int32_t rtc_failed(cs_lib *lib, int code, const char *call, cs_error *err) {
  int32_t status = CS_FAILED;
  if (code == HIPRTC_COMPILATION)
    status = CS_COMPILE;
  else if (code == HIPRTC_INVALID_OPTION || code == HIPRTC_INVALID_INPUT)
    status = CS_INVALID;
  const char *words = lib->rtc.hiprtcGetErrorString(code);
  return tell(err, status, code, "%s: %s", call, words != NULL ? words : "unknown error");
}

static int32_t no_compiler(cs_error *err) {
  return tell(err, CS_UNSUPPORTED, 0, "hipRTC was not found");
}

// -- architectures --
//
// hipRTC ends the whole process if it does not know an architecture. So the shim first asks comgr,
// the library that hipRTC compiles with, and compiles nothing without it.

#define ISA "amdgcn-amd-amdhsa--"

static int32_t no_comgr(cs_error *err) {
  return tell(err, CS_UNSUPPORTED, 0,
              "libamd_comgr was not found: which architectures hipRTC knows cannot be told");
}

static int32_t rocm_targets(cs_lib *lib, char *text, uint64_t bytes, cs_error *err) {
  if (lib->compiler == NULL)
    return no_compiler(err);
  if (lib->comgr == NULL)
    return no_comgr(err);
  size_t count = 0;
  int code = lib->isa.amd_comgr_get_isa_count(&count);
  struct note n = {text, bytes, 0};
  if (bytes > 0)
    text[0] = '\0';
  for (size_t i = 0; i < count && code == COMGR_OK; i++) {
    const char *name = NULL;
    code = lib->isa.amd_comgr_get_isa_name(i, &name);
    if (code == COMGR_OK && name != NULL && strncmp(name, ISA, strlen(ISA)) == 0)
      add(&n, "%s%s", n.used > 0 ? " " : "", name + strlen(ISA));
  }
  return code == COMGR_OK ? CS_OK
                          : tell(err, CS_FAILED, code, "amd_comgr_get_isa_name: code %d", code);
}

// known reports whether hipRTC knows a target: an architecture, with or without features such as
// ":xnack-".
static int known(cs_lib *lib, const char *target) {
  char name[128];
  int n = snprintf(name, sizeof name, ISA "%s", target);
  if (strncmp(target, "gfx", 3) != 0 || n < 0 || (size_t)n >= sizeof name)
    return 0;
  comgrAction action;
  if (lib->isa.amd_comgr_create_action_info(&action) != COMGR_OK)
    return 0;
  int code = lib->isa.amd_comgr_action_info_set_isa_name(action, name);
  lib->isa.amd_comgr_destroy_action_info(action);
  return code == COMGR_OK;
}

// check_target refuses options without a target, or with one that is not known.
static int32_t check_target(cs_lib *lib, const char *options, cs_error *err) {
  static const char flag[] = "--offload-arch=";
  int targets = 0;
  if (lib->comgr == NULL)
    return no_comgr(err);
  for (const char *o = options; *o != '\0'; o += strlen(o) + 1) {
    if (strncmp(o, flag, sizeof flag - 1) != 0)
      continue;
    targets++;
    if (!known(lib, o + sizeof flag - 1))
      return tell(err, CS_INVALID, 0, "hipRTC does not know the architecture \"%.64s\"",
                  o + sizeof flag - 1);
  }
  return targets == 1 ? CS_OK : tell(err, CS_INVALID, 0, "%d options %s, not 1", targets, flag);
}

// -- compiling --

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

static void rocm_blob_free(cs_blob *blob) {
  free(blob->data);
  free(blob->log);
  memset(blob, 0, sizeof *blob);
}

// take_log copies the compiler's log. It is no failure if there is none.
static void take_log(cs_lib *lib, hiprtcProgram p, cs_blob *out) {
  size_t n = 0;
  if (lib->rtc.hiprtcGetProgramLogSize(p, &n) != HIPRTC_OK || n <= 1)
    return;
  char *log = calloc(1, n + 1);
  if (log == NULL || lib->rtc.hiprtcGetProgramLog(p, log) != HIPRTC_OK) {
    free(log);
    return;
  }
  out->log = log;
  out->log_bytes = strlen(log);
}

static int32_t take_code(cs_lib *lib, hiprtcProgram p, cs_blob *out, cs_error *err) {
  size_t n = 0;
  int code = lib->rtc.hiprtcGetCodeSize(p, &n);
  if (code != HIPRTC_OK)
    return rtc_failed(lib, code, "hiprtcGetCodeSize", err);
  out->data = malloc(n + 1);
  if (out->data == NULL)
    return no_host_memory(err);
  code = lib->rtc.hiprtcGetCode(p, (char *)out->data);
  if (code != HIPRTC_OK)
    return rtc_failed(lib, code, "hiprtcGetCode", err);
  out->bytes = n;
  return CS_OK;
}

// One program is compiled at a time, because the LLVM in hipRTC keeps its options in global
// variables.
static pthread_mutex_t compile_lock = PTHREAD_MUTEX_INITIALIZER;

static int32_t build(cs_lib *lib, const char *name, const char *source, const char **options,
                     int count, cs_blob *out, cs_error *err) {
  hiprtcProgram p = NULL;
  int code = lib->rtc.hiprtcCreateProgram(&p, source, name, 0, NULL, NULL);
  if (code != HIPRTC_OK)
    return rtc_failed(lib, code, "hiprtcCreateProgram", err);
  code = lib->rtc.hiprtcCompileProgram(p, count, options);
  take_log(lib, p, out);
  int32_t status = code == HIPRTC_OK ? take_code(lib, p, out, err)
                                     : rtc_failed(lib, code, "hiprtcCompileProgram", err);
  lib->rtc.hiprtcDestroyProgram(&p);
  return status;
}

static int32_t rocm_compile(cs_lib *lib, const char *name, const char *source, const char *options,
                            cs_blob *out, cs_error *err) {
  if (lib->compiler == NULL)
    return no_compiler(err);
  int32_t status = check_target(lib, options, err);
  if (status != CS_OK)
    return status;
  int count = 0;
  const char **list = split(options, &count);
  if (list == NULL)
    return no_host_memory(err);
  cs_blob made = {NULL, 0, NULL, 0};
  pthread_mutex_lock(&compile_lock);
  status = build(lib, name, source, list, count, &made, err);
  pthread_mutex_unlock(&compile_lock);
  free(list);
  if (status != CS_OK) {
    free(made.data);
    made.data = NULL;
    made.bytes = 0;
  }
  *out = made;
  return status;
}
