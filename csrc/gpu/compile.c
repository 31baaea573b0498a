// compile.c builds programs at run time through the vendor's compiler. It needs no device.

#include "load.h"

static int32_t no_compiler(cs_lib *lib, cs_error *err) {
  return tell(err, CS_UNSUPPORTED, 0, "%s was not found", lib->vendor->compiler_title);
}

static int32_t gpu_targets(cs_lib *lib, char *text, uint64_t bytes, cs_error *err) {
  return lib->compiler != NULL ? lib->vendor->targets(lib, text, bytes, err)
                               : no_compiler(lib, err);
}

// take_code copies the program. NVRTC has machine code for sm_XX, and PTX for compute_XX.
static int32_t take_code(cs_lib *lib, void *p, cs_blob *out, cs_error *err) {
  size_t n = 0;
  int native = lib->rtc.native_size != NULL && lib->rtc.native != NULL &&
               lib->rtc.native_size(p, &n) == 0 && n > 0;
  int code = native ? 0 : lib->rtc.code_size(p, &n);
  if (code != 0)
    return rtc_failed(lib, code, RTC(code_size), err);
  out->data = malloc(n + 1);
  if (out->data == NULL)
    return no_host_memory(err);
  code = native ? lib->rtc.native(p, (char *)out->data) : lib->rtc.code(p, (char *)out->data);
  if (code != 0)
    return rtc_failed(lib, code, native ? RTC(native) : RTC(code), err);
  out->bytes = n;
  return CS_OK;
}

static int32_t build(cs_lib *lib, const char *name, const char *source, const char **options,
                     int count, cs_blob *out, cs_error *err) {
  void *p = NULL;
  int code = lib->rtc.create(&p, source, name, 0, NULL, NULL);
  if (code != 0)
    return rtc_failed(lib, code, RTC(create), err);
  code = lib->rtc.compile(p, count, options);
  take_log(p, lib->rtc.log_size, lib->rtc.log, out);
  int32_t status =
      code == 0 ? take_code(lib, p, out, err) : rtc_failed(lib, code, RTC(compile), err);
  lib->rtc.destroy(&p);
  return status;
}

static int32_t gpu_compile(cs_lib *lib, const char *name, const char *source, const char *options,
                           cs_blob *out, cs_error *err) {
  static pthread_mutex_t alone = PTHREAD_MUTEX_INITIALIZER;
  const struct gpu_vendor *v = lib->vendor;
  if (lib->compiler == NULL)
    return no_compiler(lib, err);
  int32_t status = v->check_options != NULL ? v->check_options(lib, options, err) : CS_OK;
  if (status != CS_OK)
    return status;
  int count = 0;
  const char **list = split(options, &count);
  if (list == NULL)
    return no_host_memory(err);
  cs_blob made = {NULL, 0, NULL, 0};
  if (v->compiles_alone)
    pthread_mutex_lock(&alone);
  status = build(lib, name, source, list, count, &made, err);
  if (v->compiles_alone)
    pthread_mutex_unlock(&alone);
  free(list);
  if (status != CS_OK) {
    free(made.data);
    made.data = NULL;
    made.bytes = 0;
  }
  *out = made;
  return status;
}
