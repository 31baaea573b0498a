// load.c opens the vendor's libraries, and tells what is open.

#include "load.h"

static pthread_mutex_t libs_lock = PTHREAD_MUTEX_INITIALIZER;
static cs_lib *libs; // of all vendors

static int32_t gpu_open(const concord_shim *shim, const char *driver_names,
                        const char *compiler_names, cs_lib **lib, char *tried, uint64_t tried_bytes,
                        cs_error *err) {
  const struct gpu_vendor *v = (const struct gpu_vendor *)shim;
  struct gpu_note note = note_in(tried, tried_bytes);
  cs_lib *made = calloc(1, v->lib_bytes);
  if (made == NULL)
    return no_host_memory(err);
  made->vendor = v;
  made->driver = open_first(v, driver_names, v->driver_symbols, made, &note);
  made->simulated = made->driver != NULL && dlsym(made->driver, "concord_sim_control") != NULL;
  v->open_compiler(made, compiler_names, &note);
  if (made->driver == NULL && made->compiler == NULL) {
    free(made);
    return tell(err, CS_NO_DEVICE, 0, "neither %s nor %s was found", v->driver_title,
                v->compiler_title);
  }
  // The loader returns the same handle for the same file.
  pthread_mutex_lock(&libs_lock);
  for (cs_lib *l = libs; l != NULL; l = l->next) {
    if (l->vendor != v || l->driver != made->driver || l->compiler != made->compiler)
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

static int32_t gpu_has_driver(cs_lib *lib) { return lib->driver != NULL; }

static int32_t gpu_has_compiler(cs_lib *lib) { return lib->compiler != NULL; }

static void list_missing(struct gpu_note *n, const struct gpu_symbol *symbols, const cs_lib *lib) {
  for (const struct gpu_symbol *s = symbols; s->names != NULL; s++) {
    void *p;
    memcpy(&p, (const char *)lib + s->at, sizeof p);
    if (p == NULL)
      add(n, "%s%.*s", n->used > 0 ? " " : "", (int)strcspn(s->names, " "), s->names);
  }
}

static void gpu_missing(cs_lib *lib, char *text, uint64_t bytes) {
  struct gpu_note n = note_in(text, bytes);
  if (lib->driver != NULL)
    list_missing(&n, lib->vendor->driver_symbols, lib);
  if (lib->compiler != NULL)
    list_missing(&n, lib->vendor->compiler_symbols, lib);
}

static int32_t gpu_versions(cs_lib *lib, cs_versions *out, cs_error *err) {
  cs_versions v = {0, 0, 0, 0};
  if (lib->driver != NULL) {
    int32_t status = check(lib, lib->api.driver_version(&v.driver), API(driver_version), err);
    if (status != CS_OK)
      return status;
    if (lib->api.runtime_version == NULL || lib->api.runtime_version(&v.runtime) != 0)
      v.runtime = 0;
  }
  if (lib->compiler != NULL && lib->rtc.version(&v.compiler_major, &v.compiler_minor) != 0)
    v.compiler_major = v.compiler_minor = 0;
  *out = v;
  return CS_OK;
}

// list adds a library's line to a list of libraries, with the file that the path leads to.
static void list(struct gpu_note *n, const char *name, const char *version, void *library) {
  if (library == NULL)
    return;
  char path[4096];
  path_of(library, path, sizeof path);
  char *file = realpath(path, NULL);
  add(n, "%s\t%s\t%d\t%s\n", name, version, dlsym(library, "concord_sim_control") != NULL,
      file != NULL ? file : path);
  free(file);
}

static void gpu_libraries(cs_lib *lib, cs_device *dev, char *text, uint64_t bytes) {
  const struct gpu_vendor *own = lib->vendor;
  struct gpu_note n = note_in(text, bytes);
  cs_versions v;
  cs_error ignored;
  if (gpu_versions(lib, &v, &ignored) != CS_OK)
    memset(&v, 0, sizeof v);
  char version[64] = "";
  if (v.driver != 0)
    own->version(v.driver, version, sizeof version);
  list(&n, own->driver_name, version, lib->driver);
  snprintf(version, sizeof version, "%d.%d", v.compiler_major, v.compiler_minor);
  list(&n, own->compiler_name, version, lib->compiler);
  pthread_mutex_lock(&lib->lock);
  for (int i = 0; i < 2; i++)
    list(&n, lib->others[i].name, lib->others[i].versioned ? version : "", lib->others[i].library);
  if (lib->ccl != NULL) {
    int of = 0;
    lib->ccl_api.version(&of);
    snprintf(version, sizeof version, "%d.%d.%d", of / 10000, of / 100 % 100, of % 100);
    list(&n, own->ccl_name, version, lib->ccl);
  }
  pthread_mutex_unlock(&lib->lock);
  if (dev == NULL)
    return;
  pthread_mutex_lock(&dev->blas_lock);
  own->blas_version(dev, version, sizeof version);
  list(&n, own->blas_name, version, dev->blas);
  pthread_mutex_unlock(&dev->blas_lock);
}

// start initializes the driver. Any failure is reported as CS_NO_DEVICE.
static int32_t start(cs_lib *lib, cs_error *err) {
  if (lib->driver == NULL)
    return tell(err, CS_NO_DEVICE, 0, "%s was not found", lib->vendor->driver_title);
  pthread_mutex_lock(&lib->lock);
  int32_t status = CS_OK;
  if (!lib->initialized) {
    status = check(lib, lib->api.init(0), API(init), err);
    lib->initialized = status == CS_OK;
  }
  pthread_mutex_unlock(&lib->lock);
  if (status != CS_OK)
    err->status = status = CS_NO_DEVICE;
  return status;
}
