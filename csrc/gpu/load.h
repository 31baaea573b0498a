// load.h has the functions that gpu.c and the vendors' parts share: errors, and the opening of
// libraries. They are compiled into each, since the C of two Go packages cannot call each other by
// name.

#ifndef CONCORD_GPU_LOAD_H
#define CONCORD_GPU_LOAD_H

#include <dlfcn.h>
#include <link.h>

#include "../tell.h"
#include "gpu.h"

// -- errors --

// The results that mean the same in CUDA and in HIP.
static const struct gpu_code shared_codes[] = {
    {1, 1, CS_INVALID, 0}, // invalid value
    {2, 2, CS_NO_MEMORY, 0},
    {3, 3, CS_NO_DEVICE, 0},       // not initialized
    {4, 4, CS_LOST, 1},            // the driver is shutting down
    {35, 35, CS_NO_DEVICE, 0},     // driver older than the runtime
    {100, 101, CS_NO_DEVICE, 0},   // no device, invalid device
    {200, 200, CS_FORMAT, 0},      // invalid image
    {201, 201, CS_LOST, 1},        // invalid context
    {209, 209, CS_FORMAT, 0},      // no binary for this GPU
    {214, 214, CS_LOST, 1},        // uncorrectable errors of memory, of NVLink
    {215, 215, CS_UNSUPPORTED, 0}, // limit
    {217, 217, CS_UNSUPPORTED, 0}, // peer access
    {218, 218, CS_FORMAT, 0},      // invalid PTX, invalid file
    {300, 300, CS_FORMAT, 0},      // invalid source
    {400, 401, CS_INVALID, 0},     // invalid handle, illegal state
    {500, 500, CS_NOT_FOUND, 0},
    {700, 700, CS_LOST, 1},    // illegal address
    {701, 701, CS_LAUNCH, 0},  // it needs more resources than exist: refused, the context is valid
    {702, 702, CS_TIMEOUT, 1}, // the watchdog of a launch
    {704, 705, CS_INVALID, 0}, // peer access already enabled, not enabled
    {708, 708, CS_INVALID, 0}, // context active, device in use
    {709, 710, CS_LOST, 1},    // context destroyed, assert
    {712, 713, CS_INVALID, 0}, // host memory registered already, not registered
    {714, 719, CS_LOST, 1},    // stack, instruction, misaligned, address space, pc, failed
    {720, 720, CS_LAUNCH, 0},  // cooperative launch too large
    {801, 801, CS_UNSUPPORTED, 0}, // not supported
    {900, 908, CS_INVALID, 0},     // stream capture
    {910, 910, CS_INVALID, 0},     // graph update failed
    {0, 0, 0, 0}};

// code_in returns the row of a result, or the last one, which has the status 0.
static inline const struct gpu_code *code_in(const struct gpu_code *rows, int code) {
  while (rows->first != 0 && (code < rows->first || code > rows->last))
    rows++;
  return rows;
}

static inline const struct gpu_code *code_of(const struct gpu_vendor *v, int code) {
  const struct gpu_code *own = code_in(v->codes, code);
  return own->first != 0 ? own : code_in(shared_codes, code);
}

// symbol_name writes the name of the function at an offset as the vendor's documentation has it:
// without the suffix of a version.
static inline const char *symbol_name(const struct gpu_symbol *rows, size_t at, char *name,
                                      size_t bytes) {
  while (rows->names != NULL && rows->at != at)
    rows++;
  if (rows->names == NULL)
    return "a function";
  size_t n = strcspn(rows->names, " ");
  if (n > 3 && strncmp(rows->names + n - 3, "_v2", 3) == 0)
    n -= 3;
  snprintf(name, bytes, "%.*s", (int)n, rows->names);
  return name;
}

// lacks returns the error that the driver has no such function.
static inline int32_t lacks(cs_lib *lib, size_t at, cs_error *err) {
  char name[96];
  return tell(err, CS_UNSUPPORTED, 0, "this version of %s has no %s", lib->vendor->driver_title,
              symbol_name(lib->vendor->driver_symbols, at, name, sizeof name));
}

// check converts the result of a call to a CS_* status, with the driver's name and text of the
// error. at is the offset of the function.
static inline int32_t check(cs_lib *lib, int code, size_t at, cs_error *err) {
  if (code == 0)
    return CS_OK;
  const char *name = NULL, *words = NULL;
  char call[96];
  lib->vendor->error_text(lib, code, &name, &words);
  const struct gpu_code *row = code_of(lib->vendor, code);
  return tell(err, row->first != 0 ? row->status : CS_FAILED, code, "%s: %s: %s",
              symbol_name(lib->vendor->driver_symbols, at, call, sizeof call),
              name != NULL ? name : "unknown error", words != NULL ? words : "no error text");
}

// on_device is check for calls on a context. A failure that makes the context unusable marks the
// device as lost, and from then on such failures are CS_LOST.
static inline int32_t on_device(cs_device *d, int code, size_t at, cs_error *err) {
  if (code == 0)
    return CS_OK;
  int32_t status = check(d->lib, code, at, err);
  if (code_of(d->lib->vendor, code)->sticky && atomic_exchange(&d->lost, 1) != 0)
    err->status = status = CS_LOST;
  return status;
}

// note_in returns an empty note that uses a buffer.
static inline struct gpu_note note_in(char *text, uint64_t bytes) {
  if (bytes > 0)
    text[0] = '\0';
  return (struct gpu_note){text, bytes, 0};
}

// The offsets of functions in a cs_lib and a cs_device.
#define API(member) offsetof(struct cs_lib, api.member)
#define RTC(member) offsetof(struct cs_lib, rtc.member)
#define BLAS(member) offsetof(struct cs_device, blas_api.member)
#define CCL(member) offsetof(struct cs_lib, ccl_api.member)

// CALL calls a function of the driver on a device, by its name in gpu_api.
#define CALL(d, err, member, ...)                                                                  \
  on_device((d), (d)->lib->api.member(__VA_ARGS__), API(member), (err))

// rtc_failed returns the error of a call of the compiler.
static inline int32_t rtc_failed(cs_lib *lib, int code, size_t at, cs_error *err) {
  int32_t status = CS_FAILED;
  char call[96];
  if (code == RTC_COMPILATION)
    status = CS_COMPILE;
  else if (code == RTC_INVALID_OPTION || code == RTC_INVALID_INPUT)
    status = CS_INVALID;
  const char *words = lib->rtc.error_string(code);
  return tell(err, status, code, "%s: %s",
              symbol_name(lib->vendor->compiler_symbols, at, call, sizeof call),
              words != NULL ? words : "unknown error");
}

// enter makes the device's context current on this thread. Every entry begins with it.
static inline int32_t enter(cs_device *d, cs_error *err) {
  return on_device(d, d->lib->vendor->set_current(d), API(set_current), err);
}

// ENTERED makes the device's context current, and is CALL if that succeeds.
#define ENTERED(d, err, member, ...)                                                               \
  (enter((d), (err)) == CS_OK ? CALL((d), (err), member, __VA_ARGS__) : (err)->status)

// -- libraries --

// add appends text to a note.
__attribute__((format(printf, 2, 3))) static inline void add(struct gpu_note *n, const char *format,
                                                             ...) {
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

// find looks up a symbol by each of its names.
static inline void *find(void *library, const char *names) {
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

// resolve sets the functions of a cs_lib or cs_device. It returns the names of a required symbol
// that is missing, or NULL.
static inline const char *resolve(void *library, const struct gpu_symbol *symbols, void *object) {
  for (const struct gpu_symbol *s = symbols; s->names != NULL; s++) {
    void *p = find(library, s->names);
    if (p == NULL && s->required)
      return s->names;
    memcpy((char *)object + s->at, &p, sizeof p);
  }
  return NULL;
}

// open_next opens the first library of *names that has all required symbols, and sets the functions
// of an object from it. *names becomes the rest of the list.
static inline void *open_next(const struct gpu_vendor *v, const char **names,
                              const struct gpu_symbol *symbols, void *object,
                              struct gpu_note *tried) {
  while (**names != '\0') {
    const char *name = *names, *line = tried->used > 0 ? "\n" : "";
    *names += strlen(name) + 1;
    // RTLD_LOCAL hides its symbols from other libraries. With RTLD_NOW a missing symbol fails here.
    void *library = v->open_file != NULL ? v->open_file(name) : dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
      const char *why = dlerror();
      size_t n = strlen(name);
      if (why != NULL && strncmp(why, name, n) == 0 && strncmp(why + n, ": ", 2) == 0)
        why += n + 2; // the loader's text mostly begins with the name; do not repeat it
      add(tried, "%s%s: not found: %s", line, name,
          why != NULL ? why : "the loader gives no reason");
      continue;
    }
    const char *missing = resolve(library, symbols, object);
    if (missing == NULL) {
      add(tried, "%s%s: found", line, name);
      return library;
    }
    // The library stays open, since vendors' libraries may crash when they are closed.
    add(tried, "%s%s: of no use: it has no %s", line, name, missing);
  }
  return NULL;
}

static inline void *open_first(const struct gpu_vendor *v, const char *names,
                               const struct gpu_symbol *symbols, void *object,
                               struct gpu_note *tried) {
  return open_next(v, &names, symbols, object, tried);
}

// path_of writes the path of an open library, or "".
static inline void path_of(void *library, char *path, size_t bytes) {
  struct link_map *at = NULL;
  int known = dlinfo(library, RTLD_DI_LINKMAP, &at) == 0 && at != NULL && at->l_name != NULL;
  snprintf(path, bytes, "%s", known ? at->l_name : "");
}

// -- programs --

static inline uint64_t little(const unsigned char *at, int bytes) {
  uint64_t v = 0;
  for (int i = bytes; i-- > 0;)
    v = v << 8 | at[i];
  return v;
}

// table reports whether a file contains all bytes of a table of sections or segments and of its
// entries.
static inline int table(const unsigned char *code, uint64_t bytes, uint64_t from, uint64_t each,
                        uint64_t count, uint64_t least, uint64_t offset, uint64_t length) {
  if (count == 0)
    return 1;
  if (from > bytes || each < least || count > (bytes - from) / each)
    return 0;
  for (uint64_t i = 0; i < count; i++) {
    const unsigned char *row = code + from + i * each;
    uint64_t at = little(row + offset, 8), n = little(row + length, 8);
    uint64_t type = little(row + 4, 4);
    if (least == 64 &&
        (type == 0 || type == 8)) // an unused entry, or a section without bytes in the file
      continue;
    if (at > bytes || n > bytes - at)
      return 0;
  }
  return 1;
}

// whole reports whether an ELF file contains all bytes that its tables refer to. The driver gets no
// size, so it would read past the end of a truncated file.
static inline int whole(const unsigned char *code, uint64_t bytes) {
  return bytes >= 64 && code[4] == 2 && // 64-bit headers
         table(code, bytes, little(code + 0x28, 8), little(code + 0x3a, 2), little(code + 0x3c, 2),
               64, 0x18, 0x20) &&
         table(code, bytes, little(code + 0x20, 8), little(code + 0x36, 2), little(code + 0x38, 2),
               56, 8, 0x20);
}

// take_log copies the log of a compiler. It is no failure if there is none.
static inline void take_log(void *compiler, int (*size)(void *, size_t *),
                            int (*get)(void *, char *), cs_blob *out) {
  size_t n = 0;
  if (size(compiler, &n) != 0 || n <= 1)
    return;
  char *log = calloc(1, n + 1);
  if (log == NULL || get(compiler, log) != 0) {
    free(log);
    return;
  }
  out->log = log;
  out->log_bytes = strlen(log);
}

// split returns the options as an array for a compiler; the caller frees it.
static inline const char **split(const char *options, int *count) {
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

#endif
