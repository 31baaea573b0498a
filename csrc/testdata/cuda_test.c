// cuda_test.c tests the shim of csrc/cuda on the simulated libraries: cuda_test TEST DIRECTORY.
// It exits with 0 if all tests pass. cuda_test.go builds it with sanitizers, which find leaks.
// Behaviour that the simulated libraries do not have is put into the tables of symbols: functions
// that an old driver lacks, failures of NVRTC and cuBLAS, the PTX compiler.

#include "../cuda/cuda.c"
#include "../gpu/gpu.c"

static const concord_shim *t;
static cs_error e;
static int (*sim_control)(const char *);
static long (*sim_count)(const char *), (*sim_programs)(const char *);

#define CHECK(what)                                                                                \
  do {                                                                                             \
    if (!(what)) {                                                                                 \
      fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #what, e.text);                      \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)
#define OK(call) CHECK((call) == CS_OK)

static char tried[1024];

static void name_list(char *list, size_t bytes, const char *path) {
  memset(list, 0, bytes);
  snprintf(list, bytes - 2, "%s", path);
}

static char driver_list[4096], compiler_list[4096], blas_list[4096], ccl_list[4096];
static int (*ccl_control)(const char *);
static long (*ccl_count)(const char *);

static void *of_library(const char *path, const char *symbol) {
  void *found = dlsym(dlopen(path, RTLD_NOW), symbol);
  CHECK(found != NULL);
  return found;
}

// open_sim opens the simulated libraries of a directory.
static cs_lib *open_sim(const char *dir) {
  char path[2048];
  snprintf(path, sizeof path, "%s/libcuda.so.1", dir);
  name_list(driver_list, sizeof driver_list, path);
  *(void **)&sim_control = of_library(path, "concord_sim_control");
  *(void **)&sim_count = of_library(path, "concord_sim_count");
  snprintf(path, sizeof path, "%s/libnvrtc.so.11.2", dir);
  name_list(compiler_list, sizeof compiler_list, path);
  *(void **)&sim_programs = of_library(path, "concord_sim_count");
  snprintf(path, sizeof path, "%s/libcublas.so.12", dir);
  name_list(blas_list, sizeof blas_list, path);
  snprintf(path, sizeof path, "%s/libnccl.so.2", dir);
  name_list(ccl_list, sizeof ccl_list, path);
  *(void **)&ccl_control = of_library(path, "concord_sim_control");
  *(void **)&ccl_count = of_library(path, "concord_sim_count");
  cs_lib *lib = NULL;
  OK(t->open(t, driver_list, compiler_list, &lib, tried, sizeof tried, &e));
  CHECK(t->has_driver(lib) && t->has_compiler(lib));
  return lib;
}

static void control(const char *faults) { CHECK(sim_control(faults) == 0); }

// alive returns the number of objects of the shim in the driver, except events, which are kept for
// reuse.
static long alive(void) {
  return sim_count("allocations") + sim_count("streams") + sim_count("modules") +
         sim_count("graphs") + sim_programs("programs");
}

// The simulated cuBLAS never releases a product, which a graph could run again; its handles are
// counted below.
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libcublas.so"; }

// -- the functions that replace those in the tables of symbols --

// step fails the call at which fail_at arrives.
static long calls, fail_at;
static int fail_code;
static int step(void) { return ++calls == fail_at ? fail_code : 0; }
static void fail_call(long nth, int code) {
  calls = 0;
  fail_at = nth;
  fail_code = code;
}

static struct gpu_api cu;
static struct cuda_lib own;
static struct rtc_api rtc;
static struct blas_api blas;

// Functions that destroy an object fail after they have destroyed it.
#define DESTROYS(name, type)                                                                       \
  static int do_##name(type x) {                                                                   \
    int code = cu.name(x);                                                                         \
    if (code != 0)                                                                                 \
      cu.name(x);                                                                                  \
    return code;                                                                                   \
  }
DESTROYS(free, uint64_t)
DESTROYS(host_free, void *)
DESTROYS(module_unload, void *)
DESTROYS(stream_destroy, void *)
DESTROYS(event_destroy, void *)
DESTROYS(exec_destroy, void *)
DESTROYS(graph_destroy, void *)
static int do_free_async(uint64_t p, void *s) {
  int code = cu.free_async(p, s);
  if (code != 0)
    cu.free_async(p, s);
  return code;
}

static int do_release(int device) {
  int code = own.release(device);
  if (code != 0)
    own.release(device);
  return code;
}

// A reset ends the loss of a device.
static long calls_before_reset;
static int do_reset(int device) {
  calls_before_reset += sim_count("calls");
  control("");
  return own.reset(device);
}

static unsigned launched_with; // shared memory
static int do_launch(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                     unsigned bz, unsigned shared, void *s, void **params, void **extra) {
  launched_with = shared;
  return cu.launch(f, gx, gy, gz, bx, by, bz, shared, s, params, extra);
}
static int do_module_load(void **m, const void *image, unsigned count, int *options,
                          void **values) {
  int code = ((cuda_module_load)cu.module_load)(m, image, count, options, values);
  for (unsigned i = 0; i < count; i++)
    if (options[i] == JIT_ERROR_LOG)
      strcpy(values[i], "said the assembler");
  return code;
}
static int do_device_name(char *name, int bytes, int device) {
  (void)device;
  memset(name, 'N', (size_t)bytes - 1);
  name[bytes - 1] = '\0';
  return 0;
}
static int do_device_uuid(unsigned char *uuid, int device) {
  (void)device;
  for (int i = 0; i < 16; i++)
    uuid[i] = (unsigned char)(i * 17);
  return 0;
}
static int do_device_pci(char *id, int bytes, int device) {
  (void)device;
  snprintf(id, (size_t)bytes, "0000:3B:00.0");
  return 0;
}
static int one_way(int *can, int device, int peer) {
  *can = device < peer;
  return 0;
}
static int version_11_0(int *major, int *minor) {
  *major = 11, *minor = 0;
  return 0;
}

// Functions that either call the original function or fail.
#define FAILS(table, name, params, args)                                                           \
  static int table##_##name params {                                                               \
    int code = step();                                                                             \
    return code != 0 ? code : table.name args;                                                     \
  }
FAILS(rtc, version, (int *a, int *b), (a, b))
FAILS(rtc, create,
      (void **p, const char *source, const char *name, int n, const char *const *headers,
       const char *const *names),
      (p, source, name, n, headers, names))
FAILS(rtc, compile, (void *p, int n, const char *const *options), (p, n, options))
FAILS(rtc, code_size, (void *p, size_t *n), (p, n))
FAILS(rtc, code, (void *p, char *text), (p, text))
FAILS(rtc, log_size, (void *p, size_t *n), (p, n))
FAILS(rtc, log, (void *p, char *text), (p, text))
FAILS(rtc, native_size, (void *p, size_t *n), (p, n))
FAILS(rtc, native, (void *p, char *text), (p, text))
FAILS(rtc, arch_count, (int *n), (n))
FAILS(rtc, archs, (int *list), (list))
static int said_size(void *p, size_t *n) {
  (void)p;
  *n = 5;
  return 0;
}
static int said(void *p, char *text) {
  (void)p;
  strcpy(text, "said");
  return 0;
}
static int rtc_destroy(void **p) {
  rtc.destroy(p);
  return step();
}
static long handles;
static int blas_create(void **h) {
  int code = step();
  if (code == 0)
    code = blas.create(h);
  handles += code == 0;
  return code;
}
static int blas_destroy(void *h) {
  handles--;
  return blas.destroy(h);
}
FAILS(blas, set_stream, (void *h, void *s), (h, s))
FAILS(blas, set_pointer_mode, (void *h, int mode), (h, mode))
FAILS(blas, sgemm,
      (void *h, int ta, int tb, int m, int n, int k, const float *alpha, const float *a, int lda,
       const float *b, int ldb, const float *beta, float *c, int ldc),
      (h, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc))
FAILS(blas, dgemm,
      (void *h, int ta, int tb, int m, int n, int k, const double *alpha, const double *a, int lda,
       const double *b, int ldb, const double *beta, double *c, int ldc),
      (h, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc))

// A PTX compiler, which the simulated libraries do not have.
struct ptx_compiler {
  int verbose;
};
static long assemblers;
static int ptx_create(void **c, size_t bytes, const char *text) {
  int code = step();
  if (code != 0 || text[bytes - 1] != '\0')
    return code != 0 ? code : 1;
  *c = calloc(1, sizeof(struct ptx_compiler));
  assemblers++;
  return 0;
}
static int ptx_destroy(void **c) {
  free(*c);
  assemblers--;
  return 0;
}
static int ptx_compile(void *c, int count, const char *const *options) {
  ((struct ptx_compiler *)c)->verbose = count > 0 && strcmp(options[0], "--verbose") == 0;
  int code = step();
  return code != 0 ? code : count > 0 && strcmp(options[0], "--wrong") == 0;
}
static int size_of(size_t n, size_t *bytes) {
  *bytes = n;
  return step();
}
static int text_is(const char *is, void *text) {
  int code = step();
  if (code == 0)
    strcpy(text, is);
  return code;
}
static int ptx_code_size(void *c, size_t *bytes) {
  (void)c;
  return size_of(5, bytes);
}
static int ptx_code(void *c, void *code) {
  (void)c;
  return text_is("code", code);
}
static int ptx_error_log_size(void *c, size_t *bytes) {
  (void)c;
  return size_of(6, bytes);
}
static int ptx_error_log(void *c, char *text) {
  (void)c;
  return text_is("wrong", text);
}
static int ptx_info_log_size(void *c, size_t *bytes) {
  return size_of(((struct ptx_compiler *)c)->verbose ? 9 : 0, bytes);
}
static int ptx_info_log(void *c, char *text) {
  (void)c;
  return text_is("verbose.", text);
}

// assembler gives a library the PTX compiler.
static void assembler(cs_lib *lib) {
  struct cuda_lib *with = (struct cuda_lib *)lib;
  with->ptx = (struct ptx_api){.create = ptx_create,
                               .destroy = ptx_destroy,
                               .compile = ptx_compile,
                               .code_size = ptx_code_size,
                               .code = ptx_code,
                               .error_log_size = ptx_error_log_size,
                               .error_log = ptx_error_log,
                               .info_log_size = ptx_info_log_size,
                               .info_log = ptx_info_log};
  lib->others[1].library = lib->driver;
  with->assembler_tried = 1;
}

// intercept puts the functions above into the tables.
static void intercept(cs_lib *lib) {
  static int done;
  if (done++ > 0)
    return;
  cu = lib->api, rtc = lib->rtc;
  memcpy(&own, lib, sizeof own);
  ((struct cuda_lib *)lib)->release = do_release;
  ((struct cuda_lib *)lib)->reset = do_reset;
#define PUT(member) lib->api.member = do_##member;
  PUT(free)
  PUT(host_free) PUT(module_unload) PUT(stream_destroy) PUT(event_destroy) PUT(exec_destroy)
      PUT(graph_destroy) PUT(free_async) PUT(launch) lib->api.module_load = (gpu_own)do_module_load;
  PUT(device_name)
  PUT(device_uuid) PUT(device_pci)
#undef PUT
#define PUT(member) lib->rtc.member = rtc_##member;
      PUT(version) PUT(create) PUT(compile) PUT(code_size) PUT(code) PUT(log_size) PUT(log)
          PUT(native_size) PUT(native) PUT(arch_count) PUT(archs) PUT(destroy)
#undef PUT
}

// open_products opens cuBLAS, all of whose calls can fail.
static int32_t open_products(cs_device *d) {
  if (d->blas == NULL) {
    struct gpu_note nobody = {NULL, 0, 0};
    d->blas = open_first(d->lib->vendor, blas_list, cublas_symbols, d, &nobody);
    CHECK(d->blas != NULL);
    blas = d->blas_api;
#define PUT(member) d->blas_api.member = blas_##member;
    PUT(create) PUT(destroy) PUT(set_stream) PUT(set_pointer_mode) PUT(sgemm) PUT(dgemm)
#undef PUT
  }
  return t->blas_open(d, blas_list, &e);
}

// program is the kernel of these tests, compiled.
static cs_blob program;
static const char program_text[] =
    "extern \"C\" __global__ void kernel(unsigned long long *out, unsigned value, unsigned a,\n"
    "                                  unsigned b) {\n"
    "  __shared__ unsigned fixed[256];\n"
    "  fixed[threadIdx.x] = value;\n"
    "  if (threadIdx.x + blockIdx.x + blockIdx.y == 0) {\n"
    "    out[0] = fixed[0], out[1] = a, out[2] = b;\n"
    "    out[3] = gridDim.x * 10000 + gridDim.y * 100 + gridDim.z;\n"
    "  }\n"
    "}\n";

// -- calls that succeed --

static void fills(cs_device *d, cs_stream *s) {
  static const uint64_t patterns[] = {0, 0x0101010101010101u, 0x0102010201020102u,
                                      0x0102030401020304u, 0x0102030405060708u};
  cs_memory m;
  OK(t->alloc(d, CS_ON_DEVICE, 100000, &m, &e));
  unsigned char *bytes = (unsigned char *)(uintptr_t)m.address;
  for (int p = 0; p < 5; p++)
    for (uint64_t n = 1; n <= 8; n *= 2)
      for (uint64_t from = 0; from < 9; from += from < 5 ? 1 : 3)
        for (uint64_t count = 0; count < 9000; count = count * 19 + 1) {
          uint64_t all = count * n;
          memset(bytes, 0xee, all + from + 1);
          OK(t->fill(s, m.address + from, all, (const unsigned char *)&patterns[p], n, &e));
          OK(t->stream_sync(s, &e));
          for (uint64_t i = 0; i < all; i++)
            CHECK(bytes[from + i] == ((const unsigned char *)&patterns[p])[i % n]);
          CHECK((from == 0 || bytes[from - 1] == 0xee) && bytes[from + all] == 0xee);
        }
  CHECK(t->fill(s, m.address, 8, (const unsigned char *)patterns, 3, &e) == CS_INVALID);
  CHECK(t->fill(s, m.address, 7, (const unsigned char *)patterns, 2, &e) == CS_INVALID);
  OK(t->free(d, CS_ON_DEVICE, m.address, &e));
}

static void copies(cs_device *d, cs_stream *s) {
  enum { MOST = 9 * CHUNK_BYTES + 12345 };
  unsigned char *there = malloc(MOST), *back = malloc(MOST);
  cs_memory m;
  OK(t->alloc(d, CS_ON_DEVICE, MOST, &m, &e));
  static const uint64_t sizes[] = {0,
                                   1,
                                   63,
                                   64,
                                   65,
                                   4096,
                                   CHUNK_BYTES - 1,
                                   CHUNK_BYTES,
                                   CHUNK_BYTES + 1,
                                   (uint64_t)CHUNKS * CHUNK_BYTES + 7,
                                   MOST};
  memset(there, 5, 100);
  for (int i = 0; i < 2; i++) { // with no room for pinned memory: slower, and right
    control("pinned:1");
    if (i == 0)
      OK(t->upload(s, m.address, there, 100, &e));
    else
      OK(t->download(s, back, m.address, 100, &e));
    CHECK(s->pinned == NULL);
  }
  CHECK(memcmp(there, back, 100) == 0);
  control("");
  for (int i = 0; i < 11; i++)
    for (int again = 0; again < 3; again++) {
      for (uint64_t j = 0; j < sizes[i]; j++)
        there[j] = (unsigned char)(j * 7 + j / 251 + (uint64_t)again);
      memset(back, 0, sizes[i]);
      OK(t->upload(s, m.address, there, sizes[i], &e));
      OK(t->download(s, back, m.address, sizes[i], &e));
      CHECK(memcmp(there, back, sizes[i]) == 0);
    }
  free(there);
  free(back);
  OK(t->free(d, CS_ON_DEVICE, m.address, &e));
}

// Truncated or damaged machine code must not reach the driver, which would read past its end.
static void damaged(cs_device *d) {
  static unsigned char file[1 << 22];
  FILE *f = fopen(blas_list, "rb");
  CHECK(f != NULL);
  uint64_t bytes = fread(file, 1, sizeof file, f);
  fclose(f);
  cs_module *mod;
  CHECK(bytes < sizeof file && whole(file, bytes));
  control("");
  for (uint64_t n = 4; n < bytes; n += n < 64 ? 1 : bytes / 100) {
    unsigned char *cut = malloc(n);
    memcpy(cut, file, n);
    CHECK(t->module_load(d, cut, n, &mod, NULL, 0, &e) == CS_FORMAT);
    free(cut);
  }
  CHECK(sim_count("calls:load") == 0);
  CHECK(t->module_load(d, file, bytes, &mod, NULL, 0, &e) == CS_FORMAT);
  CHECK(sim_count("calls:load") == 1); // a whole one the driver has to judge
  unsigned char *copy = malloc(bytes);
  uint64_t from = little(file + 0x28, 8); // of the sections
  memcpy(copy, file, bytes);
  for (uint64_t i = 0; i < 64 + 640; i++)
    for (int with = 0; with < 3; with++) {
      uint64_t at = i < 64 ? i : from + i - 64;
      copy[at] ^= (unsigned char[]){0xff, 0x80, 1}[with];
      whole(copy, bytes); // whatever it says, it stays inside
      copy[at] = file[at];
    }
  free(copy);
}

static int attribute_of(cs_device *d, cs_kernel *k, int which) {
  int value = -1;
  CHECK(d->lib->api.function_attribute(&value, which, k->handle) == 0);
  return value;
}

static void launches(cs_device *d, cs_stream *s) {
  cs_module *mod;
  cs_kernel *k, *same;
  cs_kernel_info info;
  char log[64];
  OK(t->module_load(d, program.data, program.bytes, &mod, log, sizeof log, &e));
  CHECK(strcmp(log, "said the assembler") == 0);
  CHECK(t->module_kernel(mod, "nobody", &k, &info, &e) == CS_NOT_FOUND);
  OK(t->module_kernel(mod, "kernel", &k, &info, &e));
  OK(t->module_kernel(mod, "kernel", &same, &info, &e));
  CHECK(k == same && info.local_bytes == 1024);
  CHECK(d->shared_optin > d->shared && allow(d, k->handle, 1024) == (uint64_t)d->shared_optin - 1024);
  CHECK(info.max_group == attribute_of(d, k, FUNC_MAX_THREADS) && info.max_group > 0);
  CHECK(info.registers == attribute_of(d, k, FUNC_REGISTERS) && info.registers > 0);
  CHECK(info.spill_bytes == (uint64_t)attribute_of(d, k, FUNC_LOCAL_BYTES));
  cs_memory m;
  OK(t->alloc(d, CS_ON_DEVICE, 256, &m, &e));
  uint64_t groups[3] = {3, 2, 1}, group[3] = {32, 1, 1};
  const unsigned char data[16] = {0, 0, 0, 0, 42};
  cs_arg args[] = {{.kind = CS_ARG_MEMORY, .mem = m.address, .mem_offset = 64},
                   {.kind = CS_ARG_VALUE, .offset = 4, .size = 4},
                   {.kind = CS_ARG_LOCAL, .size = 100},
                   {.kind = CS_ARG_LOCAL, .size = 300}};
  OK(t->launch(s, k, groups, group, args, 4, data, &e));
  uint64_t got[4];
  OK(t->download(s, (unsigned char *)got, m.address + 64, sizeof got, &e));
  CHECK(got[0] == 42 && got[1] == 0 && got[2] == 128 && got[3] == 30201 && launched_with == 428);
  group[1] = 64;
  CHECK(t->launch(s, k, groups, group, args, 4, data, &e) == CS_LAUNCH && e.code == 1);
  groups[0] = (uint64_t)1 << 33;
  CHECK(t->launch(s, k, groups, group, args, 4, data, &e) == CS_TOO_LARGE);
  groups[0] = 1;
  args[2].size = -1;
  CHECK(t->launch(s, k, groups, group, args, 4, data, &e) == CS_TOO_LARGE);
  args[2].kind = 9;
  CHECK(t->launch(s, k, groups, group, args, 4, data, &e) == CS_INVALID);
  CHECK(t->launch(s, k, groups, group, args, CS_MAX_ARGS + 1, data, &e) == CS_INVALID);
  int32_t n;
  OK(t->occupancy(k, 256, 0, &n, &e));
  CHECK(n > 1 && t->occupancy(k, 0, 0, &n, &e) == CS_INVALID);
  int32_t fewer;
  OK(t->occupancy(k, 256, (uint64_t)d->shared_optin - 1024, &fewer, &e));
  CHECK(fewer == 1);
  OK(t->suggest(k, 0, &n, &e));
  CHECK(n >= 32 && n <= info.max_group);
  OK(t->free(d, CS_ON_DEVICE, m.address, &e));
  OK(t->module_unload(mod, &e));
  CHECK(t->module_load(d, (const unsigned char *)"bad", 3, &mod, log, sizeof log, &e) == CS_FORMAT);
  CHECK(t->module_load(d, (const unsigned char *)"", 0, &mod, log, sizeof log, &e) == CS_FORMAT);
  CHECK(t->module_load(d, (const unsigned char *)"\177ELF\2", 5, &mod, log, 0, &e) == CS_FORMAT);
}

static void events(cs_device *d, cs_stream *s, cs_stream *other) {
  cs_memory memory, *m = &memory;
  OK(t->alloc(d, CS_ON_DEVICE, 1 << 10, m, &e));
  cs_event *a, *b, *plain;
  control("slow-copy:300");
  OK(t->copy(s, m->address, m->address + 512, 512, &e));
  OK(t->record(s, 1, &a, &e));
  OK(t->record(s, 1, &b, &e));
  OK(t->record(s, 0, &plain, &e));
  int32_t done;
  OK(t->event_query(a, &done, &e));
  CHECK(!done);
  OK(t->stream_query(s, &done, &e));
  CHECK(!done);
  OK(t->event_wait(b, &e));
  OK(t->event_query(a, &done, &e));
  CHECK(done);
  control("");
  double ns;
  OK(t->event_elapsed(a, b, &ns, &e));
  float ms;
  CHECK(d->lib->api.event_elapsed(&ms, a->handle, b->handle) == 0);
  CHECK(ns == (double)ms * 1e6 && t->event_elapsed(a, plain, &ns, &e) == CS_INVALID);
  OK(t->stream_wait(other, plain, &e));
  OK(t->stream_sync(s, &e));
  OK(t->stream_query(s, &done, &e));
  CHECK(done);
  long before = sim_count("events");
  t->event_close(a);
  OK(t->record(s, 1, &a, &e));
  CHECK(sim_count("events") == before); // the same one again
  t->event_close(a);
  t->event_close(b);
  t->event_close(plain);
  OK(t->free(d, CS_ON_DEVICE, m->address, &e));
}

static void graphs(cs_device *d, cs_stream *s) {
  cs_memory m;
  cs_graph *g = NULL;
  cs_event *v;
  int32_t done;
  unsigned char byte = 7;
  OK(t->alloc(d, CS_ON_DEVICE, 16, &m, &e));
  CHECK(t->capture_end(s, &g, &e) == CS_INVALID && t->capture_drop(s, &e) == CS_INVALID);
  for (int nodes = 1; nodes < 3; nodes++) { // made, changed in place, made anew
    for (int again = 0; again < 2; again++) {
      OK(t->capture_begin(s, &e));
      for (int i = 0; i < nodes; i++)
        OK(t->fill(s, m.address, 16, &byte, 1, &e));
      CHECK(t->capture_begin(s, &e) == CS_INVALID);
      CHECK(t->upload(s, m.address, &byte, 1, &e) == CS_INVALID);
      CHECK(t->download(s, &byte, m.address, 1, &e) == CS_INVALID);
      CHECK(t->stream_sync(s, &e) == CS_INVALID && t->stream_query(s, &done, &e) == CS_INVALID);
      CHECK(t->record(s, 0, &v, &e) == CS_INVALID);
      cs_graph *before = g;
      OK(t->capture_end(s, &g, &e));
      CHECK(before == NULL || before == g);
      OK(t->graph_launch(g, s, &e));
      CHECK(g->exec != NULL);
    }
  }
  OK(t->capture_begin(s, &e));
  OK(t->capture_drop(s, &e));
  OK(t->stream_sync(s, &e));
  OK(t->graph_close(g, &e));
  OK(t->free(d, CS_ON_DEVICE, m.address, &e));
}

static void kinds(cs_device *d, cs_device *other, cs_stream *s) {
  cs_memory pinned, unified, far;
  uint64_t here;
  int32_t can;
  OK(t->alloc(d, CS_PINNED, 64, &pinned, &e));
  OK(t->alloc(d, CS_UNIFIED, 64, &unified, &e));
  OK(t->alloc(other, CS_ON_DEVICE, 64, &far, &e));
  CHECK(pinned.host == pinned.address && unified.host == unified.address && far.host == 0);
  CHECK(t->alloc(d, 7, 64, &far, &e) == CS_INVALID);
  CHECK(t->alloc(d, CS_ON_DEVICE, 0, &far, &e) == CS_INVALID);
  OK(t->alloc_on(s, 64, &here, &e));
  memset((void *)(uintptr_t)pinned.host, 9, 64);
  OK(t->upload_pinned(s, here, pinned.host, 64, &e));
  OK(t->stream_sync(s, &e));
  memset((void *)(uintptr_t)pinned.host, 0, 64);
  OK(t->copy(s, unified.address, here, 64, &e));
  OK(t->copy_peer(s, other, far.address, d, here, 64, &e));
  OK(t->download_pinned(s, pinned.host, far.address, 64, &e));
  OK(t->stream_sync(s, &e));
  CHECK(((unsigned char *)(uintptr_t)pinned.host)[63] == 9);
  OK(t->prefetch(s, unified.address, 64, 1, &e));
  d->lib->api.can_access_peer = one_way;
  for (int i = 0; i < 2; i++)
    OK(t->peer(d, other, 1, &can, &e));
  CHECK(can == 1);
  OK(t->peer(other, d, 1, &can, &e));
  CHECK(can == 0);
  OK(t->peer(d, d, 1, &can, &e));
  CHECK(can == 1);
  d->lib->api.can_access_peer = cu.can_access_peer;
  OK(t->free_on(s, here, &e));
  OK(t->free(d, CS_PINNED, pinned.address, &e));
  OK(t->free(d, CS_UNIFIED, unified.address, &e));
  OK(t->free(other, CS_ON_DEVICE, far.address, &e));
}

static void products(cs_device *d, cs_stream *s) {
  // 2x3 by 3x2, by rows
  float a[] = {1, 2, 3, 4, 5, 6}, b[] = {7, 8, 9, 10, 11, 12}, c[] = {1, 1, 1, 1};
  double da[] = {1, 4, 2, 5, 3, 6}, db[] = {7, 8, 9, 10, 11, 12}, dc[] = {0, 0, 0, 0};
  cs_gemm g = {.m = 2, .n = 2, .k = 3, .alpha = 2, .beta = 1, .lda = 3, .ldb = 2, .ldc = 2};
  cs_memory m;
  OK(t->alloc(d, CS_ON_DEVICE, 3 * 64, &m, &e));
  g.a = m.address, g.b = m.address + 64, g.c = m.address + 128;
  OK(t->upload(s, g.a, (unsigned char *)a, sizeof a, &e));
  OK(t->upload(s, g.b, (unsigned char *)b, sizeof b, &e));
  OK(t->upload(s, g.c, (unsigned char *)c, sizeof c, &e));
  CHECK(t->gemm(s, &g, &e) == CS_UNSUPPORTED);
  CHECK(t->blas_open(d, "/no/such/blas\0", &e) == CS_UNSUPPORTED);
  OK(open_products(d));
  OK(open_products(d));
  CHECK(handles == 1);
  OK(t->gemm(s, &g, &e));
  OK(t->download(s, (unsigned char *)c, g.c, sizeof c, &e));
  CHECK(c[0] == 117 && c[1] == 129 && c[2] == 279 && c[3] == 309);
  g.type = 1, g.trans_a = 1, g.lda = 2, g.alpha = 1, g.beta = 0;
  OK(t->upload(s, g.a, (unsigned char *)da, sizeof da, &e));
  OK(t->upload(s, g.b, (unsigned char *)db, sizeof db, &e));
  OK(t->gemm(s, &g, &e));
  OK(t->download(s, (unsigned char *)dc, g.c, sizeof dc, &e));
  CHECK(dc[0] == 58 && dc[1] == 64 && dc[2] == 139 && dc[3] == 154);
  static const int codes[][2] = {{3, CS_NO_MEMORY}, {7, CS_INVALID}, {8, CS_UNSUPPORTED},
                                 {13, CS_LAUNCH},   {14, CS_FAILED}, {15, CS_UNSUPPORTED}};
  for (int i = 0; i < 6; i++) {
    fail_call(1, codes[i][0]);
    CHECK(t->gemm(s, &g, &e) == codes[i][1] && e.code == codes[i][0]);
  }
  g.type = 2;
  OK(t->gemm(s, &g, &e));
  g.type = 3;
  CHECK(t->gemm(s, &g, &e) == CS_INVALID);
  g.k = 0;
  CHECK(t->gemm(s, &g, &e) == CS_INVALID);
  g.k = (int64_t)1 << 40;
  CHECK(t->gemm(s, &g, &e) == CS_TOO_LARGE);
  OK(t->free(d, CS_ON_DEVICE, m.address, &e));
}

static void describes(cs_lib *lib) {
  cs_versions v;
  OK(t->versions(lib, &v, &e));
  CHECK(v.driver == 12020 && v.compiler_major == 11);
  int32_t n;
  OK(t->device_count(lib, &n, &e));
  cs_info info;
  OK(t->device_info(lib, 1, &info, &e));
  CHECK(n == 2 && strcmp(info.arch, "sm_80") == 0 && info.shared_block_optin == 163 << 10);
  CHECK(strcmp(info.uuid, "00112233-4455-6677-8899-aabbccddeeff") == 0);
  CHECK(strcmp(info.pci, "0000:3b:00.0") == 0 && strlen(info.name) == 254 && info.simulated);
  CHECK(has_async_alloc(lib, 1) && has_managed(lib, 1) && info.kind == CS_KIND_DISCRETE);
  CHECK(t->device_info(lib, 2, &info, &e) == CS_NO_DEVICE);
  int32_t can;
  OK(t->peer_access(lib, 0, 1, &can, &e));
  CHECK(can);
}

// A driver reads what its own version and older ones of NVRTC make.
static void compilers(void) {
  static const int least[][4] = {{13000, 13, 0, 0}, {13000, 12, 8, 2}, {12020, 12, 2, 0},
                                 {12020, 12, 4, 1}, {12020, 11, 8, 2}, {12020, 13, 0, 3},
                                 {0, 13, 0, 0}};
  for (int i = 0; i < 7; i++)
    CHECK(misfit(least[i][0], least[i][1], least[i][2]) == least[i][3]);
}

// done asks until a communicator has done what it began.
static int32_t done(cs_comm *c) {
  int32_t is = 0, status = CS_OK;
  while (!is && status == CS_OK)
    status = t->comm_state(c, &is, &e);
  return status;
}

// join_two joins two ranks, if none of the calls fails.
static int32_t join_two(cs_device *const *dev, cs_comm **comm) {
  unsigned char id[CS_COMM_ID];
  int32_t status = t->comm_id(dev[0], ccl_list, id, &e);
  for (int r = 0; r < 2 && status == CS_OK; r++)
    status = t->comm_join(dev[r], ccl_list, id, r, 2, &comm[r], &e);
  for (int r = 0; r < 2 && status == CS_OK; r++)
    status = done(comm[r]);
  return status;
}

static void collectives(cs_lib *lib, cs_device *d, cs_device *other) {
  unsigned char id[CS_COMM_ID];
  CHECK(t->comm_id(d, "/no/such/nccl\0", id, &e) == CS_UNSUPPORTED && lib->ccl == NULL);
  CHECK(t->comm_join(d, "/no/such/nccl\0", id, 0, 1, NULL, &e) == CS_UNSUPPORTED);
  CHECK(t->comm_join(d, ccl_list, id, 2, 2, NULL, &e) == CS_INVALID);
  cs_device *const dev[] = {d, other};
  cs_comm *comm[2];
  cs_stream *on[2];
  cs_memory m[2];
  OK(join_two(dev, comm));
  for (int r = 0; r < 2; r++) {
    OK(t->stream_new(dev[r], 0, &on[r], &e));
    OK(t->alloc(dev[r], CS_ON_DEVICE, 64, &m[r], &e));
  }
  // Rank r has r + 1 and r + 2, and gets these two.
  static const float want[][2][2] = {
      {{3, 5}, {3, 5}}, {{0, 0}, {2, 6}}, {{2, 3}, {2, 3}}, {{1, 2}, {1, 2}}, {{2, 0}, {6, 0}}, {{2, 3}, {1, 2}}};
  for (int kind = CS_ALL_REDUCE; kind <= CS_SEND_RECEIVE; kind++) {
    for (int r = 0; r < 2; r++) {
      float x[] = {(float)r + 1, (float)r + 2, 0, 0};
      uint64_t n = kind == CS_ALL_GATHER || kind == CS_REDUCE_SCATTER ? 1 : 2;
      cs_collective w = {kind, 7, kind == CS_ALL_REDUCE ? 0 : 1, 1, 1 - r, 1 - r, n, n, m[r].address + 32, m[r].address};
      OK(t->upload(on[r], m[r].address, (unsigned char *)x, 16, &e));
      OK(t->upload(on[r], m[r].address + 32, (unsigned char *)(float[4]){0}, 16, &e));
      OK(t->comm_queue(comm[r], on[r], &w, &e));
      OK(done(comm[r]));
    }
    for (int r = 0; r < 2; r++) {
      float got[2];
      OK(t->download(on[r], (unsigned char *)got, m[r].address + 32, sizeof got, &e));
      CHECK(got[0] == want[kind][r][0] && (got[1] == want[kind][r][1] || kind == CS_ALL_GATHER));
    }
  }
  cs_collective w = {CS_ALL_REDUCE, 7, 0, 0, 0, 0, 2, 2, m[0].address + 32, m[0].address};
  CHECK(t->comm_queue(comm[0], on[1], &w, &e) == CS_INVALID);
  w.type = 10;
  CHECK(t->comm_queue(comm[0], on[0], &w, &e) == CS_INVALID);
  w.type = 7, w.kind = 6;
  CHECK(t->comm_queue(comm[0], on[0], &w, &e) == CS_INVALID);
  for (w.kind = CS_ALL_REDUCE; w.kind <= CS_SEND_RECEIVE; w.kind++) {
    CHECK(ccl_control("collective:1=3") == 0);
    CHECK(t->comm_queue(comm[0], on[0], &w, &e) == CS_FAILED && e.code == 3);
    CHECK(strncmp(e.text, "nccl", 4) == 0 && strstr(e.text, ": internal error") != NULL);
  }
  // A part that fails when it runs is told by the state, and aborting ends it and what waits for it.
  CHECK(ccl_control("collective-late:1=6") == 0);
  w.kind = CS_ALL_REDUCE;
  OK(t->comm_queue(comm[0], on[0], &w, &e));
  int32_t is = 1, status = done(comm[0]);
  while (status == CS_OK)
    status = t->comm_state(comm[0], &is, &e);
  CHECK(status == CS_LAUNCH && e.code == 6);
  for (int r = 0; r < 2; r++)
    OK(t->comm_abort(comm[r], &e));
  for (int r = 0; r < 2; r++) {
    OK(t->stream_close(on[r], &e));
    OK(t->free(dev[r], CS_ON_DEVICE, m[r].address, &e));
  }
  CHECK(ccl_control("join:2=5") == 0);
  CHECK(join_two(dev, comm) == CS_INVALID && e.code == 5);
  OK(t->comm_abort(comm[0], &e));
  CHECK(ccl_control("") == 0 && ccl_count("communicators") == 0);
}

static void opened(cs_lib *lib, cs_device *d, const char *dir) {
  char text[4096], line[2048];
  t->libraries(lib, NULL, text, sizeof text);
  CHECK(strncmp(text, "cuda\t12.2\t1\t/", 13) == 0 && strstr(text, "\nnvrtc\t11.8\t1\t/") != NULL);
  CHECK(strstr(text, "cublas") == NULL);
  t->libraries(lib, d, text, sizeof text);
  char *real = realpath(dir, NULL);
  snprintf(line, sizeof line, "\t1\t%s/libcublas.so.12\n", real);
  free(real);
  CHECK(strstr(text, "\ncublas\t") != NULL && strstr(text, line) != NULL);
  CHECK(strstr(text, "\nnccl\t2.18.5\t1\t/") != NULL);
  t->libraries(lib, d, text, 10);
  CHECK(strcmp(text, "cuda\t12.2") == 0);
}

static const char for_sm[] = "--gpu-architecture=sm_80\0";
static const char for_any[] = "--gpu-architecture=compute_80\0";

static void compiles(cs_lib *lib) {
  char text[1024];
  OK(t->targets(lib, text, sizeof text, &e));
  CHECK(strstr(text, "sm_80 sm_86 ") != NULL && strstr(text, "sm_90") != NULL);
  cs_blob b = {NULL, 0, NULL, 0};
  OK(t->compile(lib, "n", program_text, for_any, &b, &e));
  CHECK(b.bytes > 0 && strncmp((char *)b.data, "//", 2) == 0);
  t->blob_free(&b);
  lib->rtc.log_size = said_size, lib->rtc.log = said;
  OK(t->compile(lib, "n", "", for_sm, &b, &e));
  CHECK(strcmp(b.log, "said") == 0 && b.log_bytes == 4);
  t->blob_free(&b);
  fail_call(2, 7);
  CHECK(t->compile(lib, "n", "", for_sm, &b, &e) == CS_FAILED && e.code == 7 && b.data == NULL);
  CHECK(strcmp(b.log, "said") == 0 && strstr(e.text, "BUILTIN_OPERATION_FAILURE") != NULL);
  fail_call(0, 0);
  t->blob_free(&b);
  lib->rtc.log_size = rtc_log_size;
  lib->rtc.log = rtc_log;
  CHECK(t->compile(lib, "n", "wrong", for_sm, &b, &e) == CS_COMPILE);
  CHECK(strstr(b.log, "wrong") != NULL);
  t->blob_free(&b);
  CHECK(t->compile(lib, "n", "", "--bad\0", &b, &e) == CS_INVALID);
  CHECK(strstr(b.log, "--bad") != NULL && b.data == NULL);
  t->blob_free(&b);
  OK(t->compile(lib, "n", program_text, for_sm, &program, &e));
  CHECK(program.bytes > 0 && strncmp((char *)program.data, "//", 2) != 0);
}

static void assembles(cs_lib *lib) {
  cs_blob b = {NULL, 0, NULL, 0};
  const unsigned char *ptx = (const unsigned char *)"PTX";
  ((struct cuda_lib *)lib)->assembler_tried = 1; // and not found
  CHECK(t->assemble(lib, ptx, 3, "", &b, &e) == CS_UNSUPPORTED);
  assembler(lib);
  OK(t->assemble(lib, ptx, 3, "--verbose\0", &b, &e));
  CHECK(b.bytes == 5 && strcmp((char *)b.data, "code") == 0 && strcmp(b.log, "verbose.") == 0);
  t->blob_free(&b);
  OK(t->assemble(lib, ptx, 3, "", &b, &e));
  CHECK(b.log == NULL);
  t->blob_free(&b);
  CHECK(t->assemble(lib, ptx, 3, "--wrong\0", &b, &e) == CS_COMPILE && strcmp(b.log, "wrong") == 0);
  t->blob_free(&b);
}

static void all(const char *dir) {
  cs_lib *lib = open_sim(dir);
  CHECK(open_sim(dir) == lib);
  intercept(lib);
  describes(lib);
  compiles(lib);
  assembles(lib);
  cs_device *d, *other;
  OK(t->device_open(lib, 0, &d, &e));
  OK(t->device_open(lib, 1, &other, &e));
  uint64_t left, device, ctx;
  OK(t->memory_info(d, &left, &e));
  t->device_handles(other, &device, &ctx);
  CHECK(left > 0 && left <= (uint64_t)8192 << 20 && device == 1 && ctx != 0);
  cs_stream *s, *high, *low, *wrapped;
  OK(t->stream_new(d, 0, &s, &e));
  OK(t->stream_new(d, 1, &high, &e));
  OK(t->stream_new(d, -1, &low, &e));
  OK(t->stream_wrap(d, t->stream_handle(s), &wrapped, &e));
  fills(d, s);
  copies(d, s);
  launches(d, s);
  damaged(d);
  events(d, s, high);
  graphs(d, s);
  kinds(d, other, s);
  products(d, s);
  collectives(lib, d, other);
  opened(lib, d, dir);
  compilers();
  OK(t->stream_close(wrapped, &e));
  OK(t->capture_begin(low, &e));
  OK(t->stream_close(low, &e));
  OK(t->stream_close(high, &e));
  OK(t->stream_close(s, &e));
  CHECK(alive() == 0 && sim_count("pinned") == 0);
  OK(t->device_close(d, &e));
  OK(t->device_close(other, &e));
  CHECK(sim_count("contexts") == 0 && handles == 0 && assemblers == 0);
  t->blob_free(&program);
}

// -- calls that fail --

// TRY makes a call, counts the failures, and checks that a failure has a text.
static long failed;
static int try(int32_t status) {
  if (status == CS_OK)
    return 1;
  failed++;
  CHECK(e.status == status && e.text[0] != '\0');
  return 0;
}

// some makes the calls of the driver, without those whose failures others tests.
static void some(cs_device *d, cs_stream *s) {
  static unsigned char bytes[CHUNK_BYTES + 1];
  cs_memory m = {0, 0}, pinned = {0, 0};
  cs_module *mod = NULL;
  cs_kernel *k = NULL;
  cs_kernel_info info;
  cs_event *a = NULL, *b = NULL;
  cs_graph *g = NULL;
  char text[64];
  uint64_t here = 0;
  double ns;
  int32_t n;
  if (try(t->module_load(d, program.data, program.bytes, &mod, text, sizeof text, &e)))
    try(t->module_kernel(mod, "kernel", &k, &info, &e));
  try(t->alloc(d, CS_PINNED, 64, &pinned, &e));
  if (try(t->alloc(d, CS_ON_DEVICE, sizeof bytes, &m, &e))) {
    try(t->upload(s, m.address, bytes, sizeof bytes, &e));
    try(t->download(s, bytes, m.address, sizeof bytes, &e));
    try(t->fill(s, m.address + 1, 4000, (const unsigned char *)"12345678", 8, &e));
    uint64_t one[3] = {1, 1, 1};
    unsigned char data[8] = {0};
    cs_arg args[] = {{.kind = CS_ARG_MEMORY, .mem = m.address},
                     {.kind = CS_ARG_VALUE, .size = 4},
                     {.kind = CS_ARG_LOCAL, .size = 4},
                     {.kind = CS_ARG_LOCAL, .size = 4}};
    if (k != NULL)
      try(t->launch(s, k, one, one, args, 4, data, &e));
    for (int i = 0; i < 2; i++)
      if (try(t->capture_begin(s, &e))) {
        try(t->fill(s, m.address, 16, bytes, 1, &e));
        if (i == 1)
          try(t->fill(s, m.address, 16, bytes, 1, &e));
        cs_graph *before = g;
        if (!try(t->capture_end(s, &g, &e)))
          CHECK(g == before);
      }
  }
  if (try(t->alloc_on(s, 64, &here, &e)))
    try(t->free_on(s, here, &e));
  if (g != NULL) {
    try(t->graph_launch(g, s, &e));
    try(t->graph_close(g, &e));
  }
  if (try(t->record(s, 1, &a, &e)) && try(t->record(s, 1, &b, &e)))
    try(t->event_elapsed(a, b, &ns, &e));
  if (a != NULL) {
    try(t->event_query(a, &n, &e));
    t->event_close(a);
  }
  if (b != NULL)
    t->event_close(b);
  try(t->stream_sync(s, &e));
  if (pinned.address != 0)
    try(t->free(d, CS_PINNED, pinned.address, &e));
  if (m.address != 0)
    try(t->free(d, CS_ON_DEVICE, m.address, &e));
  if (mod != NULL)
    try(t->module_unload(mod, &e));
}

// others makes the calls of NVRTC, the PTX compiler and cuBLAS.
static void others(cs_device *d, cs_stream *s, cs_lib *lib) {
  cs_blob blob = {NULL, 0, NULL, 0};
  cs_versions v;
  char text[1024];
  try(t->versions(lib, &v, &e));
  try(t->targets(lib, text, sizeof text, &e));
  try(t->compile(lib, "n", "", for_sm, &blob, &e));
  t->blob_free(&blob);
  try(t->compile(lib, "n", "", for_any, &blob, &e));
  t->blob_free(&blob);
  try(t->assemble(lib, (const unsigned char *)"PTX", 3, "--verbose\0", &blob, &e));
  t->blob_free(&blob);
  if (try(open_products(d))) {
    cs_memory m;
    OK(t->alloc(d, CS_ON_DEVICE, 64, &m, &e));
    for (int type = 0; type < 2; type++) {
      cs_gemm gemm = {type, 0, 0, 1, 1, 1, 1, 0, m.address, m.address, m.address, 1, 1, 1};
      try(t->gemm(s, &gemm, &e));
    }
    OK(t->stream_sync(s, &e));
    OK(t->free(d, CS_ON_DEVICE, m.address, &e));
  }
}

// Makes every call into the vendor's libraries fail once, with each class of error.
static void sweep(const char *dir) {
  static const struct {
    const char *fault;
    int code;
  } faults[] = {{"any", 2}, {"any", 999}, {"lost", 700}};
  cs_lib *lib = open_sim(dir);
  intercept(lib);
  assembler(lib);
  OK(t->compile(lib, "n", program_text, for_sm, &program, &e));
  cs_device *d;
  cs_stream *s;
  long pairs = 0;
  for (int c = 0; c < 3; c++)
    for (long nth = 1;; nth++, pairs++) {
      char fault[64];
      lib->initialized = 0;
      failed = calls_before_reset = 0;
      snprintf(fault, sizeof fault, "%s:%ld=%d", faults[c].fault, nth, faults[c].code);
      control(fault);
      if (try(t->device_open(lib, 0, &d, &e))) {
        if (try(t->stream_new(d, 1, &s, &e))) {
          some(d, s);
          try(t->stream_close(s, &e));
        }
        int lost = atomic_load(&d->lost);
        if (!lost && alive() + sim_count("pinned") != 0) // before the context takes them along
          fprintf(stderr, "%s: %ld objects stay\n", fault, alive());
        CHECK(lost || alive() + sim_count("pinned") == 0);
        try(t->device_close(d, &e));
        if (c == 2 && lost)
          CHECK(failed > 0 && e.status == CS_LOST && calls_before_reset > 0);
      }
      long seen = calls_before_reset + sim_count("calls");
      control("");
      CHECK(alive() + sim_count("pinned") + sim_count("events") + sim_count("contexts") == 0);
      // The next one works.
      OK(t->device_open(lib, 0, &d, &e));
      OK(t->device_close(d, &e));
      if (nth > seen)
        break;
    }
  for (long nth = 1;; nth++, pairs++) {
    OK(t->device_open(lib, 0, &d, &e));
    OK(t->stream_new(d, 0, &s, &e));
    failed = 0;
    fail_call(nth, 999);
    others(d, s, lib);
    long seen = calls;
    fail_call(0, 0);
    OK(t->stream_close(s, &e));
    OK(t->device_close(d, &e));
    CHECK(alive() == 0 && handles == 0 && assemblers == 0);
    if (nth > seen)
      break;
  }
  t->blob_free(&program);
  printf("%ld calls failed one at a time\n", pairs);
  CHECK(pairs > 200);
}

// An old driver lacks optional functions; one that lacks a required function is not used.
static void less(const char *dir) {
  cs_lib *lib = open_sim(dir), *whole_lib = lib;
  char text[4096], names[4096];
  snprintf(names, sizeof names, "%s/old/libcuda.so.1", dir);
  name_list(driver_list, sizeof driver_list, names);
  OK(t->open(t, driver_list, compiler_list, &lib, tried, sizeof tried, &e));
  CHECK(lib != whole_lib);
  *(void **)&sim_control = of_library(names, "concord_sim_control");
  *(void **)&sim_count = of_library(names, "concord_sim_count");
  t->missing(lib, text, sizeof text);
  CHECK(strstr(text, "cuMemAllocAsync") != NULL && strstr(text, "nvrtc") == NULL);
  const struct gpu_symbol *const tables[] = {cuda_symbols, nvrtc_symbols};
  for (int i = 0; i < 2; i++)
    for (const struct gpu_symbol *row = tables[i]; row->names != NULL; row++)
      if (!row->required)
        memset((char *)lib + row->at, 0, sizeof(void *));
  lib->rtc.version = version_11_0;
  t->missing(lib, text, sizeof text);
  CHECK(strstr(text, "cuMemAllocAsync") != NULL && strstr(text, "nvrtcGetCUBIN ") != NULL);
  t->missing(lib, text, 10);
  CHECK(strlen(text) == 9);
  cs_blob b = {NULL, 0, NULL, 0};
  OK(t->compile(lib, "n", program_text, for_any, &b, &e));
  CHECK(strncmp((char *)b.data, "//", 2) == 0);
  cs_device *d;
  cs_stream *s;
  cs_memory m;
  cs_info info;
  uint64_t here;
  cs_graph *g = NULL;
  OK(t->device_info(lib, 0, &info, &e));
  CHECK(info.uuid[0] == '\0' && info.pci[0] == '\0' && !has_async_alloc(lib, 0) &&
        !has_managed(lib, 0));
  OK(t->device_open(lib, 0, &d, &e));
  OK(t->stream_new(d, 1, &s, &e));
  CHECK(t->alloc(d, CS_UNIFIED, 8, &m, &e) == CS_UNSUPPORTED);
  CHECK(t->alloc_on(s, 8, &here, &e) == CS_UNSUPPORTED);
  CHECK(t->free_on(s, 0, &e) == CS_UNSUPPORTED);
  CHECK(t->prefetch(s, 0, 8, 0, &e) == CS_UNSUPPORTED);
  CHECK(t->capture_begin(s, &e) == CS_UNSUPPORTED && t->capture_end(s, &g, &e) == CS_INVALID);
  CHECK(t->copy_peer(s, d, 0, d, 0, 1, &e) == CS_UNSUPPORTED);
  cs_module *mod;
  cs_kernel *k;
  cs_kernel_info kernel;
  int32_t n;
  OK(t->module_load(d, b.data, b.bytes, &mod, text, sizeof text, &e));
  t->blob_free(&b);
  OK(t->module_kernel(mod, "kernel", &k, &kernel, &e));
  CHECK(allow(d, k->handle, kernel.local_bytes) == 49152 - 1024);
  CHECK(t->occupancy(k, 32, 0, &n, &e) == CS_UNSUPPORTED);
  CHECK(t->suggest(k, 0, &n, &e) == CS_UNSUPPORTED);
  OK(t->module_unload(mod, &e));
  fills(d, s);
  cs_gemm half = {.type = 2, .m = 1, .n = 1, .k = 1, .lda = 1, .ldb = 1, .ldc = 1};
  OK(open_products(d));
  d->blas_api.gemm_ex = NULL;
  CHECK(t->gemm(s, &half, &e) == CS_UNSUPPORTED);
  OK(t->stream_close(s, &e));
  OK(t->device_close(d, &e));
  OK(t->targets(lib, text, sizeof text, &e));
  CHECK(strstr(text, "sm_80") != NULL && strstr(text, "sm_86") == NULL); // 11.0
  CHECK(alive() == 0);

  // A library without the required functions: NVRTC instead of the driver.
  OK(t->open(t, compiler_list, compiler_list, &lib, tried, sizeof tried, &e));
  CHECK(!t->has_driver(lib) && t->has_compiler(lib));
  CHECK(strstr(tried, "of no use: it has no cuInit") != NULL);
  CHECK(t->device_count(lib, &n, &e) == CS_NO_DEVICE);
  CHECK(t->open(t, "/no/such\0", "", &lib, tried, sizeof tried, &e) == CS_NO_DEVICE);
  CHECK(strstr(tried, "/no/such: not found: ") == tried);

  // A driver without a compiler.
  OK(t->open(t, driver_list, "", &lib, NULL, 0, &e));
  CHECK(t->has_driver(lib) && !t->has_compiler(lib));
  CHECK(t->targets(lib, text, sizeof text, &e) == CS_UNSUPPORTED);
  CHECK(t->compile(lib, "n", "", for_sm, &b, &e) == CS_UNSUPPORTED);
  OK(t->device_count(lib, &n, &e));
}

int main(int argc, char **argv) {
  t = concord_gpu_shim(concord_vendor_cuda());
  if (argc == 3 && strcmp(argv[1], "all") == 0)
    all(argv[2]);
  else if (argc == 3 && strcmp(argv[1], "sweep") == 0)
    sweep(argv[2]);
  else if (argc == 3 && strcmp(argv[1], "less") == 0)
    less(argv[2]);
  else
    return 2;
  return 0;
}
