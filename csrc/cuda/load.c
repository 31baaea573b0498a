// load.c opens the vendor's libraries, and maps their error codes to the classes of shim.h.

#include "state.h"

// class_of returns the class of a CUresult.
static int32_t class_of(CUresult code) {
  switch (code) {
  case 1:   // invalid value
  case 400: // invalid handle
  case 401: // illegal state
  case 704: // peer access already enabled, not enabled, primary context active
  case 705:
  case 708:
  case 712: // host memory registered already, not registered
  case 713:
  case 910: // graph update failed
    return CS_INVALID;
  case 2:
    return CS_NO_MEMORY;
  case 3:   // not initialized
  case 34:  // stub library
  case 35:  // driver older than the runtime
  case 46:  // device unavailable
  case 100: // no device, invalid device, not licensed
  case 101:
  case 102:
  case 802: // system not ready, driver mismatch, no compatibility mode
  case 803:
  case 804:
    return CS_NO_DEVICE;
  case 200: // invalid image, no binary for this GPU, invalid PTX, invalid source
  case 209:
  case 218:
  case 300:
    return CS_FORMAT;
  case 215: // limit, peer access
  case 217:
  case 221: // no just-in-time compiler, PTX too new for it, it is disabled
  case 222:
  case 223:
  case 224:
  case 711: // too many peers
  case 800: // not permitted
  case 801: // not supported
    return CS_UNSUPPORTED;
  case 500:
    return CS_NOT_FOUND;
  case 701: // the launch needs more resources than exist: it was refused, the context is valid
  case 703:
  case 720: // cooperative launch, cluster too large
  case 912:
    return CS_LAUNCH;
  case 702: // the watchdog of a launch
  case 909:
    return CS_TIMEOUT;
  }
  if (code >= 805 && code <= 809) // MPS
    return CS_NO_DEVICE;
  if (code >= 900 && code <= 908) // stream capture
    return CS_INVALID;
  return sticky(code) ? CS_LOST : CS_FAILED;
}

// sticky reports whether the context cannot be used after this error.
static int sticky(CUresult code) {
  switch (code) {
  case 4:   // the driver is shutting down
  case 201: // invalid context
  case 214: // uncorrectable errors of memory, of NVLink
  case 220:
  case 226: // an error of the hardware or of a peer's memory, contained to this process
  case 700: // illegal address
  case 702: // launch timeout
  case 709: // context destroyed
  case 710: // assert
  case 721: // tensor memory leak
  case 810: // ended by MPS
  case 911: // a device outside of CUDA, for which work waited, failed
    return 1;
  }
  return code >= 714 && code <= 719; // stack, instruction, misaligned, address space, pc, failed
}

// -- symbols --

struct symbol {
  const char *names; // separated by spaces; the first that exists is used
  size_t at;         // offset in the table
  int required;
};

#define ROW_AT(table, member, names, needed) {names, offsetof(struct table, member), needed},
#define DRIVER_NEEDED(member, names, result, params) ROW_AT(driver_api, member, names, 1)
#define DRIVER_EXTRA(member, names, result, params) ROW_AT(driver_api, member, names, 0)
#define NVRTC_NEEDED(member, names, result, params) ROW_AT(nvrtc_api, member, names, 1)
#define NVRTC_EXTRA(member, names, result, params) ROW_AT(nvrtc_api, member, names, 0)
#define PTX_NEEDED(member, names, result, params) ROW_AT(ptx_api, member, names, 1)
#define BLAS_NEEDED(member, names, result, params) ROW_AT(blas_api, member, names, 1)
#define BLAS_EXTRA(member, names, result, params) ROW_AT(blas_api, member, names, 0)

static const struct symbol driver_symbols[] = {CUDA_REQUIRED(DRIVER_NEEDED)
                                                   CUDA_OPTIONAL(DRIVER_EXTRA){NULL, 0, 0}};
static const struct symbol nvrtc_symbols[] = {NVRTC_REQUIRED(NVRTC_NEEDED)
                                                  NVRTC_OPTIONAL(NVRTC_EXTRA){NULL, 0, 0}};
static const struct symbol ptx_symbols[] = {PTX_REQUIRED(PTX_NEEDED){NULL, 0, 0}};
static const struct symbol blas_symbols[] = {BLAS_REQUIRED(BLAS_NEEDED)
                                                 BLAS_OPTIONAL(BLAS_EXTRA){NULL, 0, 0}};
static const struct symbol no_symbols[] = {{NULL, 0, 0}};

// find looks up a symbol by each of its names.
static void *find(void *library, const char *names) {
  char name[96];
  while (*names != '\0') {
    size_t n = strcspn(names, " ");
    snprintf(name, sizeof name, "%.*s", (int)n, names);
    void *p = dlsym(library, name);
    if (p != NULL)
      return p;
    names += n + (names[n] == ' ');
  }
  return NULL;
}

// resolve fills a table. It returns the names of a required symbol that is missing, or NULL.
static const char *resolve(void *library, const struct symbol *symbols, void *table) {
  for (const struct symbol *s = symbols; s->names != NULL; s++) {
    void *p = find(library, s->names);
    if (p == NULL && s->required)
      return s->names;
    memcpy((char *)table + s->at, &p, sizeof p);
  }
  return NULL;
}

// -- opening --

// note is a buffer to which text is appended up to its size.
struct note {
  char *text;
  uint64_t bytes, used;
};

__attribute__((format(printf, 2, 3))) static void add(struct note *n, const char *format, ...) {
  if (n->bytes == 0 || n->used + 1 >= n->bytes)
    return;
  va_list args;
  va_start(args, format);
  int wrote = vsnprintf(n->text + n->used, n->bytes - n->used, format, args);
  va_end(args);
  if (wrote > 0)
    n->used += (uint64_t)wrote;
  if (n->used >= n->bytes)
    n->used = n->bytes - 1;
}

// open_file opens a library. cuBLAS needs cublasLt, which the loader does not find in every
// directory from which cuBLAS is opened by its path.
static void *open_file(const char *name) {
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

// open_next opens the first library of *names that has all required symbols, and fills the table
// from it. *names becomes the rest of the list.
static void *open_next(const char **names, const struct symbol *symbols, void *table,
                       struct note *tried) {
  while (**names != '\0') {
    const char *name = *names, *line = tried->used > 0 ? "\n" : "";
    *names += strlen(name) + 1;
    // RTLD_LOCAL hides its symbols from other libraries. With RTLD_NOW a missing symbol fails here.
    void *library = open_file(name);
    if (library == NULL) {
      const char *why = dlerror();
      size_t n = strlen(name);
      if (why != NULL && strncmp(why, name, n) == 0 && strncmp(why + n, ": ", 2) == 0)
        why += n + 2; // the loader's text mostly begins with the name; do not repeat it
      add(tried, "%s%s: not found: %s", line, name,
          why != NULL ? why : "the loader gives no reason");
      continue;
    }
    const char *missing = resolve(library, symbols, table);
    if (missing == NULL) {
      add(tried, "%s%s: found", line, name);
      return library;
    }
    // The library stays open, since vendors' libraries may crash when they are closed.
    add(tried, "%s%s: of no use: it has no %s", line, name, missing);
  }
  return NULL;
}

static void *open_first(const char *names, const struct symbol *symbols, void *table,
                        struct note *tried) {
  return open_next(&names, symbols, table, tried);
}

// -- what is open --

// path_of writes the path of an open library, or "".
static void path_of(void *library, char *path, size_t bytes) {
  struct link_map *at = NULL;
  int known = dlinfo(library, RTLD_DI_LINKMAP, &at) == 0 && at != NULL && at->l_name != NULL;
  snprintf(path, bytes, "%s", known ? at->l_name : "");
}

// list adds a library's line to a list of libraries, with the file that the path leads to.
static void list(struct note *n, const char *name, const char *version, void *library) {
  if (library == NULL)
    return;
  char path[4096];
  path_of(library, path, sizeof path);
  char *file = realpath(path, NULL);
  add(n, "%s\t%s\t%d\t%s\n", name, version, dlsym(library, "concord_sim_control") != NULL,
      file != NULL ? file : path);
  free(file);
}

// misfit tells how badly an NVRTC suits the driver, in CUDA's version numbers; 0 is well. A driver
// reads the PTX of its own version and of older ones, and mostly machine code of its major version.
static int misfit(int driver, int major, int minor) {
  if (driver == 0 || (major == driver / 1000 && 1000 * major + 10 * minor <= driver))
    return 0;
  return major == driver / 1000 ? 1 : major < driver / 1000 ? 2 : 3;
}

// open_compiler opens NVRTC: the first of names that suits the driver, else the one that suits it
// best.
static void *open_compiler(cs_lib *lib, const char *names, struct note *tried) {
  int driver = 0, best = 4;
  if (lib->driver != NULL && lib->cu.cuDriverGetVersion(&driver) != CU_OK)
    driver = 0;
  void *chosen = NULL, *library;
  struct nvrtc_api api;
  while (best > 0 && (library = open_next(&names, nvrtc_symbols, &api, tried)) != NULL) {
    int major = 0, minor = 0;
    if (api.nvrtcVersion(&major, &minor) != NVRTC_OK)
      major = minor = 0;
    int n = misfit(driver, major, minor);
    if (n > 0)
      add(tried, ", of version %d.%d, while the driver is for %d.%d", major, minor, driver / 1000,
          driver % 1000 / 10);
    if (n >= best)
      continue;
    best = n;
    chosen = library;
    lib->rtc = api;
  }
  return chosen;
}

// open_builtins opens a library that NVRTC opens by its bare name at the first compilation. The
// loader would not find it in every directory from which NVRTC is opened by its path.
static void open_builtins(cs_lib *lib, struct note *tried) {
  int major = 0, minor = 0;
  if (lib->rtc.nvrtcVersion(&major, &minor) != NVRTC_OK)
    return;
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
  lib->builtins = open_first(names, no_symbols, NULL, tried);
}

static pthread_mutex_t libs_lock = PTHREAD_MUTEX_INITIALIZER;
static cs_lib *libs;

static int32_t cuda_open(const char *driver_names, const char *compiler_names, cs_lib **lib,
                         char *tried, uint64_t tried_bytes, cs_error *err) {
  struct note note = {tried, tried_bytes, 0};
  if (tried_bytes > 0)
    tried[0] = '\0';
  cs_lib *made = calloc(1, sizeof *made);
  if (made == NULL)
    return no_host_memory(err);
  made->driver = open_first(driver_names, driver_symbols, &made->cu, &note);
  made->simulated = made->driver != NULL && dlsym(made->driver, "concord_sim_control") != NULL;
  made->compiler = open_compiler(made, compiler_names, &note);
  if (made->compiler != NULL)
    open_builtins(made, &note);
  if (made->driver == NULL && made->compiler == NULL) {
    free(made);
    return tell(err, CS_NO_DEVICE, 0, "neither a CUDA driver nor NVRTC was found");
  }
  // The loader returns the same handle for the same file.
  pthread_mutex_lock(&libs_lock);
  for (cs_lib *l = libs; l != NULL; l = l->next) {
    if (l->driver != made->driver || l->compiler != made->compiler)
      continue;
    pthread_mutex_unlock(&libs_lock);
    free(made);
    *lib = l;
    return CS_OK;
  }
  pthread_mutex_init(&made->lock, NULL);
  made->next = libs;
  libs = made;
  pthread_mutex_unlock(&libs_lock);
  *lib = made;
  return CS_OK;
}

static int32_t cuda_has_driver(cs_lib *lib) { return lib->driver != NULL; }

static int32_t cuda_has_compiler(cs_lib *lib) { return lib->compiler != NULL; }

static void list_missing(struct note *n, const struct symbol *symbols, const void *table) {
  for (const struct symbol *s = symbols; s->names != NULL; s++) {
    void *p;
    memcpy(&p, (const char *)table + s->at, sizeof p);
    if (p == NULL)
      add(n, "%s%.*s", n->used > 0 ? " " : "", (int)strcspn(s->names, " "), s->names);
  }
}

static void cuda_missing(cs_lib *lib, char *text, uint64_t bytes) {
  struct note n = {text, bytes, 0};
  if (bytes > 0)
    text[0] = '\0';
  if (lib->driver != NULL)
    list_missing(&n, driver_symbols, &lib->cu);
  if (lib->compiler != NULL)
    list_missing(&n, nvrtc_symbols, &lib->rtc);
}

static int32_t cuda_versions(cs_lib *lib, cs_versions *out, cs_error *err) {
  cs_versions v = {0, 0, 0, 0};
  if (lib->driver != NULL) {
    int32_t status = check(lib, lib->cu.cuDriverGetVersion(&v.driver), "cuDriverGetVersion", err);
    if (status != CS_OK)
      return status;
  }
  if (lib->compiler != NULL &&
      lib->rtc.nvrtcVersion(&v.compiler_major, &v.compiler_minor) != NVRTC_OK)
    v.compiler_major = v.compiler_minor = 0;
  *out = v;
  return CS_OK;
}

static void cuda_libraries(cs_lib *lib, cs_device *dev, char *text, uint64_t bytes) {
  struct note n = {text, bytes, 0};
  if (bytes > 0)
    text[0] = '\0';
  cs_versions v;
  cs_error ignored;
  if (cuda_versions(lib, &v, &ignored) != CS_OK)
    memset(&v, 0, sizeof v);
  char version[64] = "";
  if (v.driver != 0)
    snprintf(version, sizeof version, "%d.%d", v.driver / 1000, v.driver % 1000 / 10);
  list(&n, "cuda", version, lib->driver);
  snprintf(version, sizeof version, "%d.%d", v.compiler_major, v.compiler_minor);
  list(&n, "nvrtc", version, lib->compiler);
  list(&n, "nvrtc-builtins", version, lib->builtins);
  pthread_mutex_lock(&lib->lock);
  list(&n, "ptxjitcompiler", "", lib->assembler);
  pthread_mutex_unlock(&lib->lock);
  if (dev == NULL)
    return;
  pthread_mutex_lock(&dev->blas_lock);
  int blas = 0;
  if (dev->blas_handle != NULL && dev->cublas.cublasGetVersion != NULL &&
      dev->cublas.cublasGetVersion(dev->blas_handle, &blas) == CUBLAS_OK)
    snprintf(version, sizeof version, "%d.%d.%d", blas / 10000, blas / 100 % 100, blas % 100);
  else
    version[0] = '\0';
  list(&n, "cublas", version, dev->blas);
  pthread_mutex_unlock(&dev->blas_lock);
}

// start initializes the driver. Any failure is reported as CS_NO_DEVICE.
static int32_t start(cs_lib *lib, cs_error *err) {
  if (lib->driver == NULL)
    return tell(err, CS_NO_DEVICE, 0, "no CUDA driver was found");
  pthread_mutex_lock(&lib->lock);
  int32_t status = CS_OK;
  if (!lib->initialized) {
    status = check(lib, lib->cu.cuInit(0), "cuInit", err);
    lib->initialized = status == CS_OK;
  }
  pthread_mutex_unlock(&lib->lock);
  if (status != CS_OK)
    err->status = status = CS_NO_DEVICE;
  return status;
}
