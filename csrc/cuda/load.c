// load.c opens NVRTC and what it needs, and has the driver's error codes.

#include "cuda.h"

// The results that HIP does not have.
static const struct gpu_code cuda_codes[] = {
    {34, 34, CS_NO_DEVICE, 0},     // stub library
    {46, 46, CS_NO_DEVICE, 0},     // device unavailable
    {102, 102, CS_NO_DEVICE, 0},   // not licensed
    {220, 220, CS_LOST, 1},        // uncorrectable error of NVLink
    {221, 224, CS_UNSUPPORTED, 0}, // no just-in-time compiler, PTX too new for it, it is disabled
    {226, 226, CS_LOST,
     1}, // an error of the hardware or of a peer's memory, contained to this process
    {703, 703, CS_LAUNCH, 0},      // like 701
    {711, 711, CS_UNSUPPORTED, 0}, // too many peers
    {721, 721, CS_LOST, 1},        // tensor memory leak
    {800, 800, CS_UNSUPPORTED, 0}, // not permitted
    {802, 809, CS_NO_DEVICE, 0},   // system not ready, driver mismatch, no compatibility mode, MPS
    {810, 810, CS_LOST, 1},        // ended by MPS
    {909, 909, CS_TIMEOUT, 0},     // stream capture
    {911, 911, CS_LOST, 1},        // a device outside of CUDA, for which work waited, failed
    {912, 912, CS_LAUNCH, 0},      // cluster too large
    {0, 0, 0, 0}};

static const struct gpu_code cublas_codes[] = {{3, 3, CS_NO_MEMORY, 0},     // allocation failed
                                               {7, 7, CS_INVALID, 0},       // invalid value
                                               {8, 8, CS_UNSUPPORTED, 0},   // architecture mismatch
                                               {13, 13, CS_LAUNCH, 0},      // execution failed
                                               {15, 15, CS_UNSUPPORTED, 0}, // not supported
                                               {0, 0, 0, 0}};

static void cuda_error_words(cs_lib *lib, int code, const char **name, const char **words) {
  ((cuda_error_text)lib->api.error_name)(code, name);
  ((cuda_error_text)lib->api.error_string)(code, words);
}

static void cuda_version(int driver, char *text, size_t bytes) {
  snprintf(text, bytes, "%d.%d", driver / 1000, driver % 1000 / 10);
}

// open_file opens a library. cuBLAS needs cublasLt, which the loader does not find in every
// directory from which cuBLAS is opened by its path.
static void *cuda_open_file(const char *name) {
  static const char blas[] = "/libcublas.so";
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  const char *at = strstr(name, blas);
  if (library != NULL || at == NULL)
    return library;
  char beside[4096];
  snprintf(beside, sizeof beside, "%.*s/libcublasLt.so%s", (int)(at - name), name,
           at + strlen(blas));
  dlopen(beside, RTLD_NOW | RTLD_LOCAL);
  return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

// misfit tells how badly an NVRTC suits the driver, in CUDA's version numbers; 0 is well. A driver
// reads the PTX of its own version and of older ones, and mostly machine code of its major version.
static int misfit(int driver, int major, int minor) {
  if (driver == 0 || (major == driver / 1000 && 1000 * major + 10 * minor <= driver))
    return 0;
  return major == driver / 1000 ? 1 : major < driver / 1000 ? 2 : 3;
}

// open_nvrtc opens NVRTC: the first of names that suits the driver, else the one that suits it
// best.
static void *open_nvrtc(cs_lib *lib, const char *names, struct gpu_note *tried) {
  int driver = 0, best = 4;
  if (lib->driver != NULL && lib->api.driver_version(&driver) != 0)
    driver = 0;
  void *chosen = NULL, *library;
  cs_lib probe;
  while (best > 0 &&
         (library = open_next(lib->vendor, &names, nvrtc_symbols, &probe, tried)) != NULL) {
    int major = 0, minor = 0;
    if (probe.rtc.version(&major, &minor) != 0)
      major = minor = 0;
    int n = misfit(driver, major, minor);
    if (n > 0)
      add(tried, ", of version %d.%d, while the driver is for %d.%d", major, minor, driver / 1000,
          driver % 1000 / 10);
    if (n >= best)
      continue;
    best = n;
    chosen = library;
    lib->rtc = probe.rtc;
  }
  return chosen;
}

// open_builtins opens a library that NVRTC opens by its bare name at the first compilation. The
// loader would not find it in every directory from which NVRTC is opened by its path.
static void *open_builtins(cs_lib *lib, struct gpu_note *tried) {
  int major = 0, minor = 0;
  if (lib->rtc.version(&major, &minor) != 0)
    return NULL;
  char name[64], path[4096], names[2 * sizeof path + 2 * sizeof name + 1];
  snprintf(name, sizeof name, "libnvrtc-builtins.so.%d.%d", major, minor);
  path_of(lib->compiler, path, sizeof path);
  char *file = realpath(path, NULL); // NULL if it was removed since it was opened
  const char *const from[] = {path, file != NULL && strcmp(path, file) != 0 ? file : ""};
  size_t used = 0;
  for (int i = 0; i < 2; i++) {
    const char *slash = strrchr(from[i], '/');
    if (slash != NULL)
      used += (size_t)sprintf(names + used, "%.*s/%s", (int)(slash - from[i]), from[i], name) + 1;
  }
  free(file);
  used += (size_t)sprintf(names + used, "%s", name) + 1;
  names[used] = '\0';
  return open_first(lib->vendor, names, no_symbols, NULL, tried);
}

static void cuda_open_compiler(cs_lib *lib, const char *names, struct gpu_note *tried) {
  lib->others[0].name = "nvrtc-builtins";
  lib->others[0].versioned = 1;
  lib->others[1].name = "ptxjitcompiler";
  lib->compiler = open_nvrtc(lib, names, tried);
  if (lib->compiler != NULL)
    lib->others[0].library = open_builtins(lib, tried);
}
