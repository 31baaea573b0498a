// load.c opens the vendor's libraries, and maps their error codes to the classes of shim.h.

#include "state.h"

// class_of returns the class of a hipError.
static int32_t class_of(hipError code) {
  switch (code) {
  case 1:   // invalid value
  case 17:  // invalid device pointer
  case 400: // invalid handle
  case 401: // illegal state
  case 704: // peer access already enabled, not enabled, device in use
  case 705:
  case 708:
  case 712: // host memory registered already, not registered
  case 713:
  case 910: // graph update failed
    return CS_INVALID;
  case 2:
    return CS_NO_MEMORY;
  case 3:   // not initialized
  case 35:  // driver older than the runtime
  case 100: // no device, invalid device
  case 101:
    return CS_NO_DEVICE;
  case 98:  // no function for this device
  case 200: // invalid image, no binary for this GPU, invalid file, invalid source
  case 209:
  case 218:
  case 300:
  case 301: // file, symbol, initialization of a code object
  case 302:
  case 303:
    return CS_FORMAT;
  case 215: // limit, peer access
  case 217:
  case 801: // not supported
    return CS_UNSUPPORTED;
  case 500:
    return CS_NOT_FOUND;
  case 9:   // a configuration that the kernel does not allow
  case 701: // the launch needs more resources than exist: it was refused, the device is valid
  case 720: // cooperative launch too large
    return CS_LAUNCH;
  case 702: // the watchdog of a launch
    return CS_TIMEOUT;
  }
  if (code >= 900 && code <= 908) // stream capture
    return CS_INVALID;
  return sticky(code) ? CS_LOST : CS_FAILED;
}

// sticky reports whether the device cannot be used after this error until it is reset.
static int sticky(hipError code) {
  switch (code) {
  case 4:   // the library is shutting down
  case 201: // invalid context
  case 214: // uncorrectable error of memory
  case 700: // illegal address
  case 702: // launch timeout
  case 709: // context destroyed
  case 710: // assert
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
#define HIPRTC_NEEDED(member, names, result, params) ROW_AT(hiprtc_api, member, names, 1)
#define COMGR_NEEDED(member, names, result, params) ROW_AT(comgr_api, member, names, 1)
#define BLAS_NEEDED(member, names, result, params) ROW_AT(blas_api, member, names, 1)
#define BLAS_EXTRA(member, names, result, params) ROW_AT(blas_api, member, names, 0)

static const struct symbol driver_symbols[] = {HIP_REQUIRED(DRIVER_NEEDED)
                                                   HIP_OPTIONAL(DRIVER_EXTRA){NULL, 0, 0}};
static const struct symbol hiprtc_symbols[] = {HIPRTC_REQUIRED(HIPRTC_NEEDED){NULL, 0, 0}};
static const struct symbol comgr_symbols[] = {COMGR_REQUIRED(COMGR_NEEDED){NULL, 0, 0}};
static const struct symbol blas_symbols[] = {BLAS_REQUIRED(BLAS_NEEDED)
                                                 BLAS_OPTIONAL(BLAS_EXTRA){NULL, 0, 0}};

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

// open_next opens the first library of *names that has all required symbols, and fills the table
// from it. *names becomes the rest of the list.
static void *open_next(const char **names, const struct symbol *symbols, void *table,
                       struct note *tried) {
  while (**names != '\0') {
    const char *name = *names, *line = tried->used > 0 ? "\n" : "";
    *names += strlen(name) + 1;
    // RTLD_LOCAL hides its symbols from other libraries. With RTLD_NOW a missing symbol fails here.
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
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

// open_comgr opens comgr, with which hipRTC compiles: in the same library (those of tests/sim), in
// the same directory, or by its usual names.
static void open_comgr(cs_lib *lib, struct note *tried) {
  if (resolve(lib->compiler, comgr_symbols, &lib->isa) == NULL) {
    lib->comgr = lib->compiler;
    return;
  }
  if (lib->simulated)
    return;
  static const char *const versions[] = {"libamd_comgr.so.3", "libamd_comgr.so.2"};
  char names[4096];
  size_t used = 0;
  Dl_info where;
  void *symbol;
  memcpy(&symbol, &lib->rtc.hiprtcVersion, sizeof symbol);
  const char *path = dladdr(symbol, &where) != 0 ? where.dli_fname : NULL;
  const char *slash = path != NULL ? strrchr(path, '/') : NULL;
  for (int i = slash != NULL ? 0 : 2; i < 4; i++) {
    int dir = i < 2 ? (int)(slash + 1 - path) : 0;
    if (used + (size_t)dir + 32 > sizeof names)
      continue;
    used += (size_t)sprintf(names + used, "%.*s%s", dir, dir > 0 ? path : "", versions[i % 2]) + 1;
  }
  names[used] = '\0';
  lib->comgr = open_first(names, comgr_symbols, &lib->isa, tried);
}

static pthread_mutex_t libs_lock = PTHREAD_MUTEX_INITIALIZER;
static cs_lib *libs;

static int32_t rocm_open(const char *driver_names, const char *compiler_names, cs_lib **lib,
                         char *tried, uint64_t tried_bytes, cs_error *err) {
  struct note note = {tried, tried_bytes, 0};
  if (tried_bytes > 0)
    tried[0] = '\0';
  cs_lib *made = calloc(1, sizeof *made);
  if (made == NULL)
    return no_host_memory(err);
  made->driver = open_first(driver_names, driver_symbols, &made->hip, &note);
  made->simulated = made->driver != NULL && dlsym(made->driver, "concord_sim_control") != NULL;
  // The hipRTC in the HIP library has its version; since HIP 6 there is also a separate library.
  if (made->driver != NULL && resolve(made->driver, hiprtc_symbols, &made->rtc) == NULL)
    made->compiler = made->driver;
  else
    made->compiler = open_first(compiler_names, hiprtc_symbols, &made->rtc, &note);
  if (made->compiler != NULL)
    open_comgr(made, &note);
  if (made->driver == NULL && made->compiler == NULL) {
    free(made);
    return tell(err, CS_NO_DEVICE, 0, "neither HIP nor hipRTC was found");
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

static int32_t rocm_has_driver(cs_lib *lib) { return lib->driver != NULL; }

static int32_t rocm_has_compiler(cs_lib *lib) { return lib->compiler != NULL; }

static void list_missing(struct note *n, const struct symbol *symbols, const void *table) {
  for (const struct symbol *s = symbols; s->names != NULL; s++) {
    void *p;
    memcpy(&p, (const char *)table + s->at, sizeof p);
    if (p == NULL)
      add(n, "%s%.*s", n->used > 0 ? " " : "", (int)strcspn(s->names, " "), s->names);
  }
}

static void rocm_missing(cs_lib *lib, char *text, uint64_t bytes) {
  struct note n = {text, bytes, 0};
  if (bytes > 0)
    text[0] = '\0';
  if (lib->driver != NULL)
    list_missing(&n, driver_symbols, &lib->hip);
  if (lib->compiler != NULL)
    list_missing(&n, hiprtc_symbols, &lib->rtc);
}

static int32_t rocm_versions(cs_lib *lib, cs_versions *out, cs_error *err) {
  cs_versions v = {0, 0, 0, 0};
  if (lib->driver != NULL) {
    int32_t status =
        check(lib, lib->hip.hipDriverGetVersion(&v.driver), "hipDriverGetVersion", err);
    if (status != CS_OK)
      return status;
    if (lib->hip.hipRuntimeGetVersion == NULL ||
        lib->hip.hipRuntimeGetVersion(&v.runtime) != HIP_OK)
      v.runtime = 0;
  }
  if (lib->compiler != NULL &&
      lib->rtc.hiprtcVersion(&v.compiler_major, &v.compiler_minor) != HIPRTC_OK)
    v.compiler_major = v.compiler_minor = 0;
  *out = v;
  return CS_OK;
}

static void rocm_libraries(cs_lib *lib, cs_device *dev, char *text, uint64_t bytes) {
  struct note n = {text, bytes, 0};
  if (bytes > 0)
    text[0] = '\0';
  cs_versions v;
  cs_error ignored;
  if (rocm_versions(lib, &v, &ignored) != CS_OK)
    memset(&v, 0, sizeof v);
  char version[64] = "";
  if (v.driver != 0)
    snprintf(version, sizeof version, "%d.%d.%d", v.driver / 10000000, v.driver / 100000 % 100,
             v.driver % 100000);
  list(&n, "hip", version, lib->driver);
  snprintf(version, sizeof version, "%d.%d", v.compiler_major, v.compiler_minor);
  list(&n, "hiprtc", version, lib->compiler);
  list(&n, "comgr", "", lib->comgr);
  if (dev == NULL)
    return;
  pthread_mutex_lock(&dev->blas_lock);
  if (dev->rocblas.rocblas_get_version_string == NULL ||
      dev->rocblas.rocblas_get_version_string(version, sizeof version) != ROCBLAS_OK)
    version[0] = '\0';
  list(&n, "rocblas", version, dev->blas);
  pthread_mutex_unlock(&dev->blas_lock);
}

// start initializes the driver. Any failure is reported as CS_NO_DEVICE.
static int32_t start(cs_lib *lib, cs_error *err) {
  if (lib->driver == NULL)
    return tell(err, CS_NO_DEVICE, 0, "HIP was not found");
  pthread_mutex_lock(&lib->lock);
  int32_t status = CS_OK;
  if (!lib->initialized) {
    status = check(lib, lib->hip.hipInit(0), "hipInit", err);
    lib->initialized = status == CS_OK;
  }
  pthread_mutex_unlock(&lib->lock);
  if (status != CS_OK)
    err->status = status = CS_NO_DEVICE;
  return status;
}
