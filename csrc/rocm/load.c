// load.c opens hipRTC and what it needs, and has HIP's error codes.

#include "rocm.h"

// The results that CUDA's driver does not have.
static const struct gpu_code rocm_codes[] = {
    {9, 9, CS_LAUNCH, 0},     // a configuration that the kernel does not allow
    {17, 17, CS_INVALID, 0},  // invalid device pointer
    {98, 98, CS_FORMAT, 0},   // no function for this device
    {301, 303, CS_FORMAT, 0}, // file, symbol, initialization of a code object
    {0, 0, 0, 0}};

static const struct gpu_code rocblas_codes[] = {
    {2, 2, CS_UNSUPPORTED, 0},   // not implemented
    {4, 4, CS_INVALID, 0},       // invalid size
    {5, 5, CS_NO_MEMORY, 0},     // memory error
    {6, 6, CS_LAUNCH, 0},        // internal error
    {11, 11, CS_INVALID, 0},     // invalid value
    {15, 15, CS_UNSUPPORTED, 0}, // architecture mismatch
    {0, 0, 0, 0}};

static void rocm_error_words(cs_lib *lib, int code, const char **name, const char **words) {
  *name = ((hip_error_text)lib->api.error_name)(code);
  *words = ((hip_error_text)lib->api.error_string)(code);
}

static void rocm_version(int driver, char *text, size_t bytes) {
  snprintf(text, bytes, "%d.%d.%d", driver / 10000000, driver / 100000 % 100, driver % 100000);
}

// open_comgr opens comgr, with which hipRTC compiles: in the same library (those of tests/sim), in
// the same directory, or by its usual names.
static void *open_comgr(cs_lib *lib, struct gpu_note *tried) {
  if (resolve(lib->compiler, comgr_symbols, lib) == NULL)
    return lib->compiler;
  if (lib->simulated)
    return NULL;
  static const char *const versions[] = {"libamd_comgr.so.3", "libamd_comgr.so.2"};
  char names[4096];
  size_t used = 0;
  Dl_info where;
  void *symbol;
  memcpy(&symbol, &lib->rtc.version, sizeof symbol);
  const char *path = dladdr(symbol, &where) != 0 ? where.dli_fname : NULL;
  const char *slash = path != NULL ? strrchr(path, '/') : NULL;
  for (int i = slash != NULL ? 0 : 2; i < 4; i++) {
    int dir = i < 2 ? (int)(slash + 1 - path) : 0;
    if (used + (size_t)dir + 32 > sizeof names)
      continue;
    used += (size_t)sprintf(names + used, "%.*s%s", dir, dir > 0 ? path : "", versions[i % 2]) + 1;
  }
  names[used] = '\0';
  return open_first(lib->vendor, names, comgr_symbols, lib, tried);
}

static void rocm_open_compiler(cs_lib *lib, const char *names, struct gpu_note *tried) {
  lib->others[0].name = "comgr";
  // The hipRTC in the HIP library has its version; since HIP 6 there is also a separate library.
  if (lib->driver != NULL && resolve(lib->driver, hiprtc_symbols, lib) == NULL)
    lib->compiler = lib->driver;
  else
    lib->compiler = open_first(lib->vendor, names, hiprtc_symbols, lib, tried);
  if (lib->compiler != NULL)
    lib->others[0].library = open_comgr(lib, tried);
}
