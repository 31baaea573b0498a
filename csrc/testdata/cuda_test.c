// cuda_test.c drives the shim of csrc/cuda over cuda_fake.c: cuda_test TEST FAKE [FAKE]. It exits
// with 0 if all is well. cuda_test.go builds it with sanitizers, which find the leaks.

#include "../cuda/cuda.c"

static const concord_shim *t;
static cs_error e;
static void (*fake_control)(long, int);
static long (*fake_alive)(void), (*fake_calls)(void);

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

static cs_lib *open_fake(const char *path) {
  char names[512];
  name_list(names, sizeof names, path);
  cs_lib *lib = NULL;
  OK(t->open(names, names, &lib, tried, sizeof tried, &e));
  void *self = dlopen(path, RTLD_NOW);
  *(void **)&fake_control = dlsym(self, "fake_control");
  *(void **)&fake_alive = dlsym(self, "fake_alive");
  *(void **)&fake_calls = dlsym(self, "fake_calls");
  return lib;
}

// -- what goes right --

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
    fake_control(2, 2);         // after the context
    if (i == 0)
      OK(t->upload(s, m.address, there, 100, &e));
    else
      OK(t->download(s, back, m.address, 100, &e));
    CHECK(s->pinned == NULL);
  }
  CHECK(memcmp(there, back, 100) == 0);
  fake_control(0, 0);
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

// Machine code that was cut or damaged does not reach the driver, which would read on past its end.
static void damaged(cs_device *d, const char *path) {
  static unsigned char file[1 << 20];
  FILE *f = fopen(path, "rb");
  CHECK(f != NULL);
  uint64_t bytes = fread(file, 1, sizeof file, f);
  fclose(f);
  cs_module *mod;
  OK(t->module_load(d, file, bytes, &mod, NULL, 0, &e));
  OK(t->module_unload(mod, &e));
  for (uint64_t n = 4; n < bytes; n += n < 64 ? 1 : bytes / 100) {
    unsigned char *cut = malloc(n);
    memcpy(cut, file, n);
    CHECK(t->module_load(d, cut, n, &mod, NULL, 0, &e) == CS_FORMAT);
    free(cut);
  }
  unsigned char *copy = malloc(bytes);
  uint64_t table = little(file + 0x28, 8); // of the sections
  for (uint64_t i = 0; i < 64 + 640; i++)
    for (int with = 0; with < 3; with++) {
      memcpy(copy, file, bytes);
      copy[i < 64 ? i : table + i - 64] ^= (unsigned char[]){0xff, 0x80, 1}[with];
      whole(copy, bytes); // whatever it says, it stays inside
    }
  free(copy);
}

static void launches(cs_device *d, cs_stream *s) {
  cs_module *mod;
  cs_kernel *k, *same;
  cs_kernel_info info;
  char log[64];
  OK(t->module_load(d, (const unsigned char *)"text", 4, &mod, log, sizeof log, &e));
  CHECK(strcmp(log, "said the assembler") == 0);
  CHECK(t->module_kernel(mod, "nobody", &k, &info, &e) == CS_NOT_FOUND);
  OK(t->module_kernel(mod, "kernel", &k, &info, &e));
  OK(t->module_kernel(mod, "kernel", &same, &info, &e));
  CHECK(k == same && info.local_bytes == 1024 && info.max_dynamic_bytes == 101376 - 1024);
  CHECK(info.max_group == 10 && info.registers == 14 && info.spill_bytes == 13);
  cs_memory m;
  OK(t->alloc(d, CS_ON_DEVICE, 256, &m, &e));
  uint64_t groups[3] = {3, 2, 1}, group[3] = {32, 1, 1};
  const unsigned char data[16] = {0, 0, 0, 0, 42};
  cs_arg args[] = {{.kind = CS_ARG_MEMORY, .mem = m.address, .mem_offset = 64},
                   {.kind = CS_ARG_VALUE, .offset = 4, .size = 4},
                   {.kind = CS_ARG_LOCAL, .size = 100},
                   {.kind = CS_ARG_LOCAL, .size = 300}};
  OK(t->launch(s, k, groups, group, args, 4, data, &e));
  uint64_t got[5];
  OK(t->download(s, (unsigned char *)got, m.address + 64, sizeof got, &e));
  CHECK(got[0] == 42 && got[1] == 0 && got[2] == 128 && got[3] == 428 && got[4] == 30201);
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
  CHECK(n == 8 && t->occupancy(k, 0, 0, &n, &e) == CS_INVALID);
  OK(t->suggest(k, 0, &n, &e));
  CHECK(n == 256);
  OK(t->free(d, CS_ON_DEVICE, m.address, &e));
  OK(t->module_unload(mod, &e));
  CHECK(t->module_load(d, (const unsigned char *)"bad", 3, &mod, log, sizeof log, &e) == CS_FORMAT);
  CHECK(t->module_load(d, (const unsigned char *)"", 0, &mod, log, sizeof log, &e) == CS_FORMAT);
  CHECK(t->module_load(d, (const unsigned char *)"\177ELF\2", 5, &mod, log, 0, &e) == CS_FORMAT);
}

static void events(cs_stream *s, cs_stream *other) {
  cs_event *a, *b, *plain;
  OK(t->record(s, 1, &a, &e));
  OK(t->record(s, 1, &b, &e));
  OK(t->record(s, 0, &plain, &e));
  int32_t done;
  OK(t->event_query(a, &done, &e));
  CHECK(!done);
  OK(t->event_query(a, &done, &e));
  CHECK(done);
  OK(t->event_wait(b, &e));
  double ns;
  OK(t->event_elapsed(a, b, &ns, &e));
  CHECK(ns == 1.5e6 && t->event_elapsed(a, plain, &ns, &e) == CS_INVALID);
  OK(t->stream_wait(other, plain, &e));
  OK(t->stream_query(s, &done, &e));
  CHECK(!done);
  OK(t->stream_query(s, &done, &e));
  CHECK(done);
  long before = fake_alive();
  t->event_close(a);
  OK(t->record(s, 1, &a, &e));
  CHECK(fake_alive() == before); // the same one again
  t->event_close(a);
  t->event_close(b);
  t->event_close(plain);
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
  OK(t->copy(s, unified.address, here, 64, &e));
  OK(t->copy_peer(s, other, far.address, d, here, 64, &e));
  OK(t->download_pinned(s, pinned.host, far.address, 64, &e));
  CHECK(((unsigned char *)(uintptr_t)pinned.host)[63] == 9);
  OK(t->prefetch(s, unified.address, 64, 1, &e));
  for (int i = 0; i < 2; i++)
    OK(t->peer(d, other, 1, &can, &e));
  CHECK(can == 1);
  OK(t->peer(other, d, 1, &can, &e));
  CHECK(can == 0);
  OK(t->peer(d, d, 1, &can, &e));
  CHECK(can == 1);
  OK(t->free_on(s, here, &e));
  OK(t->free(d, CS_PINNED, pinned.address, &e));
  OK(t->free(d, CS_UNIFIED, unified.address, &e));
  OK(t->free(other, CS_ON_DEVICE, far.address, &e));
}

static void products(cs_device *d, cs_stream *s, const char *fake) {
  char names[512];
  name_list(names, sizeof names, fake);
  // 2x3 by 3x2, by rows
  float a[] = {1, 2, 3, 4, 5, 6}, b[] = {7, 8, 9, 10, 11, 12}, c[] = {1, 1, 1, 1};
  double da[] = {1, 4, 2, 5, 3, 6}, db[] = {7, 8, 9, 10, 11, 12}, dc[] = {0, 0, 0, 0};
  cs_gemm g = {.m = 2, .n = 2, .k = 3, .alpha = 2, .beta = 1, .lda = 3, .ldb = 2, .ldc = 2};
  g.a = (uint64_t)(uintptr_t)a, g.b = (uint64_t)(uintptr_t)b, g.c = (uint64_t)(uintptr_t)c;
  CHECK(t->gemm(s, &g, &e) == CS_UNSUPPORTED);
  CHECK(t->blas_open(d, "/no/such/blas\0", &e) == CS_UNSUPPORTED);
  OK(t->blas_open(d, names, &e));
  OK(t->blas_open(d, names, &e));
  OK(t->gemm(s, &g, &e));
  CHECK(c[0] == 117 && c[1] == 129 && c[2] == 279 && c[3] == 309);
  g.type = 1, g.trans_a = 1, g.lda = 2, g.alpha = 1, g.beta = 0;
  g.a = (uint64_t)(uintptr_t)da, g.b = (uint64_t)(uintptr_t)db, g.c = (uint64_t)(uintptr_t)dc;
  OK(t->gemm(s, &g, &e));
  CHECK(dc[0] == 58 && dc[1] == 64 && dc[2] == 139 && dc[3] == 154);
  static const int codes[][2] = {{3, CS_NO_MEMORY}, {7, CS_INVALID}, {8, CS_UNSUPPORTED},
                                 {13, CS_LAUNCH},   {14, CS_FAILED}, {15, CS_UNSUPPORTED}};
  for (int i = 0; i < 6; i++) {
    fake_control(2, codes[i][0]); // after the context
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
}

static void describes(cs_lib *lib) {
  cs_versions v;
  OK(t->versions(lib, &v, &e));
  CHECK(v.driver == 12020 && v.compiler_major == 11);
  int32_t n;
  OK(t->device_count(lib, &n, &e));
  cs_info info;
  OK(t->device_info(lib, 1, &info, &e));
  CHECK(n == 2 && strcmp(info.arch, "sm_86") == 0 && info.shared_block_optin == 101376);
  CHECK(strcmp(info.uuid, "00112233-4455-6677-8899-aabbccddeeff") == 0);
  CHECK(strcmp(info.pci, "0000:3b:00.0") == 0 && strlen(info.name) == 254 && !info.simulated);
  CHECK(info.async_alloc && info.managed && info.kind == CS_KIND_DISCRETE);
  CHECK(t->device_info(lib, 2, &info, &e) == CS_NO_DEVICE);
  int32_t can;
  OK(t->peer_access(lib, 0, 1, &can, &e));
  CHECK(can);
}

static void compiles(cs_lib *lib) {
  char text[64];
  OK(t->targets(lib, text, sizeof text, &e));
  CHECK(strcmp(text, "sm_80 sm_90") == 0);
  cs_blob b = {NULL, 0, NULL, 0};
  OK(t->compile(lib, "n", "right", "--arch=sm\0", &b, &e));
  CHECK(b.bytes == 6 && memcmp(b.data, "cubin\n", 6) == 0 && strcmp(b.log, "said") == 0);
  t->blob_free(&b);
  OK(t->compile(lib, "n", "right", "", &b, &e));
  CHECK(b.bytes == 4 && strcmp((char *)b.data, "PTX") == 0);
  t->blob_free(&b);
  CHECK(t->compile(lib, "n", "wrong", "", &b, &e) == CS_COMPILE && strcmp(b.log, "said") == 0);
  t->blob_free(&b);
  CHECK(t->compile(lib, "n", "right", "--bad\0", &b, &e) == CS_INVALID && b.log == NULL);
}

// assembler gives a library the PTX compiler of the fake.
static void assembler(cs_lib *lib, const char *fake) {
  char names[512];
  struct note nobody = {NULL, 0, 0};
  name_list(names, sizeof names, fake);
  lib->assembler = open_first(names, ptx_symbols, &lib->ptx, &nobody);
  lib->assembler_tried = 1;
}

static void assembles(cs_lib *lib, const char *fake) {
  cs_blob b = {NULL, 0, NULL, 0};
  const unsigned char *ptx = (const unsigned char *)"PTX";
  lib->assembler_tried = 1; // and not found
  CHECK(t->assemble(lib, ptx, 3, "", &b, &e) == CS_UNSUPPORTED);
  assembler(lib, fake);
  OK(t->assemble(lib, ptx, 3, "--verbose\0", &b, &e));
  CHECK(b.bytes == 4 && memcmp(b.data, "code", 4) == 0 && strcmp(b.log, "verbose.") == 0);
  t->blob_free(&b);
  OK(t->assemble(lib, ptx, 3, "", &b, &e));
  CHECK(b.log == NULL);
  t->blob_free(&b);
  CHECK(t->assemble(lib, ptx, 3, "--wrong\0", &b, &e) == CS_COMPILE && strcmp(b.log, "wrong") == 0);
  t->blob_free(&b);
}

static void all(const char *fake) {
  cs_lib *lib = open_fake(fake);
  CHECK(open_fake(fake) == lib);
  describes(lib);
  compiles(lib);
  assembles(lib, fake);
  cs_device *d, *other;
  OK(t->device_open(lib, 0, &d, &e));
  OK(t->device_open(lib, 1, &other, &e));
  uint64_t left, total, device, ctx;
  OK(t->memory_info(d, &left, &total, &e));
  t->device_handles(other, &device, &ctx);
  CHECK(left == 1 && total == 2 && device == 1 && ctx != 0);
  cs_stream *s, *high, *low, *wrapped;
  OK(t->stream_new(d, 0, &s, &e));
  OK(t->stream_new(d, 1, &high, &e));
  OK(t->stream_new(d, -1, &low, &e));
  OK(t->stream_wrap(d, t->stream_handle(s), &wrapped, &e));
  fills(d, s);
  copies(d, s);
  launches(d, s);
  damaged(d, fake);
  events(s, high);
  graphs(d, s);
  kinds(d, other, s);
  products(d, s, fake);
  OK(t->stream_close(wrapped, &e));
  OK(t->capture_begin(low, &e));
  OK(t->stream_close(low, &e));
  OK(t->stream_close(high, &e));
  OK(t->stream_close(s, &e));
  OK(t->device_close(d, &e));
  OK(t->device_close(other, &e));
  CHECK(fake_alive() == 0);
}

// -- what goes wrong --

// TRY does a call, and notes how many failed; what failed says why.
static long failed;
static int try(int32_t status) {
  if (status == CS_OK)
    return 1;
  failed++;
  CHECK(e.status == status && e.text[0] != '\0');
  return 0;
}

static void some(cs_device *d, cs_stream *s, cs_lib *lib, const char *fake) {
  static unsigned char bytes[CHUNK_BYTES + 1];
  cs_memory m = {0, 0}, pinned = {0, 0};
  cs_module *mod = NULL;
  cs_kernel *k = NULL;
  cs_kernel_info info;
  cs_event *a = NULL, *b = NULL;
  cs_graph *g = NULL;
  cs_blob blob = {NULL, 0, NULL, 0};
  char names[512], text[64];
  uint64_t here = 0;
  double ns;
  int32_t n;
  name_list(names, sizeof names, fake);
  try(t->compile(lib, "n", "right", "--arch=sm\0", &blob, &e));
  t->blob_free(&blob);
  try(t->assemble(lib, (const unsigned char *)"PTX", 3, "--verbose\0", &blob, &e));
  t->blob_free(&blob);
  try(t->targets(lib, text, sizeof text, &e));
  if (try(t->module_load(d, (const unsigned char *)"text", 4, &mod, text, sizeof text, &e)))
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
  if (try(t->blas_open(d, names, &e))) {
    float f[] = {1};
    uint64_t at = (uint64_t)(uintptr_t)f;
    cs_gemm gemm = {0, 0, 0, 1, 1, 1, 1, 0, at, at, at, 1, 1, 1};
    try(t->gemm(s, &gemm, &e));
  }
  try(t->stream_sync(s, &e));
  if (pinned.address != 0)
    try(t->free(d, CS_PINNED, pinned.address, &e));
  if (m.address != 0)
    try(t->free(d, CS_ON_DEVICE, m.address, &e));
  if (mod != NULL)
    try(t->module_unload(mod, &e));
}

// Every call of the vendor's fails once, in every way that matters.
static void sweep(const char *fake) {
  static const int codes[] = {2, 700, 999};
  cs_lib *lib = open_fake(fake);
  assembler(lib, fake);
  long pairs = 0;
  for (int c = 0; c < 3; c++)
    for (long nth = 1;; nth++, pairs++) {
      cs_device *d;
      cs_stream *s;
      lib->initialized = 0;
      failed = 0;
      fake_control(nth, codes[c]);
      int opened = try(t->device_open(lib, 0, &d, &e));
      if (opened) {
        if (try(t->stream_new(d, 1, &s, &e))) {
          some(d, s, lib, fake);
          try(t->stream_close(s, &e));
        }
        int lost = atomic_load(&d->lost);
        try(t->device_close(d, &e));
        if (codes[c] == 700 && lost)
          CHECK(failed > 0 && e.status == CS_LOST);
      }
      long seen = fake_calls();
      if (fake_alive() != 0)
        fprintf(stderr, "call %ld failed with %d: %ld objects stay\n", nth, codes[c], fake_alive());
      CHECK(fake_alive() == 0);
      // The next one works.
      fake_control(0, 0);
      OK(t->device_open(lib, 0, &d, &e));
      OK(t->device_close(d, &e));
      if (nth > seen)
        break;
    }
  printf("%ld calls failed one at a time\n", pairs);
  CHECK(pairs > 200);
}

// An old driver does less; one that lacks what is needed is of no use.
static void less(const char *old, const char *broken) {
  cs_lib *lib = open_fake(old);
  char text[1024];
  t->missing(lib, text, sizeof text);
  CHECK(strstr(text, "cuMemAllocAsync") != NULL && strstr(text, "nvrtcGetCUBIN ") != NULL);
  t->missing(lib, text, 10);
  CHECK(strlen(text) == 9);
  cs_device *d;
  cs_stream *s;
  cs_memory m;
  cs_info info;
  uint64_t here;
  cs_graph *g = NULL;
  OK(t->device_info(lib, 0, &info, &e));
  CHECK(info.uuid[0] == '\0' && info.pci[0] == '\0' && !info.async_alloc && !info.managed);
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
  OK(t->module_load(d, (const unsigned char *)"text", 4, &mod, text, sizeof text, &e));
  OK(t->module_kernel(mod, "kernel", &k, &kernel, &e));
  CHECK(kernel.max_dynamic_bytes == 49152 - 1024);
  CHECK(t->occupancy(k, 32, 0, &n, &e) == CS_UNSUPPORTED);
  CHECK(t->suggest(k, 0, &n, &e) == CS_UNSUPPORTED);
  OK(t->module_unload(mod, &e));
  fills(d, s);
  char names[512];
  name_list(names, sizeof names, old);
  cs_gemm half = {.type = 2, .m = 1, .n = 1, .k = 1, .lda = 1, .ldb = 1, .ldc = 1};
  OK(t->blas_open(d, names, &e));
  CHECK(t->gemm(s, &half, &e) == CS_UNSUPPORTED);
  OK(t->stream_close(s, &e));
  OK(t->device_close(d, &e));
  OK(t->targets(lib, text, sizeof text, &e));
  CHECK(strstr(text, "sm_80") != NULL && strstr(text, "sm_86") == NULL); // 11.0
  cs_blob b = {NULL, 0, NULL, 0};
  OK(t->compile(lib, "n", "right", "--arch=sm\0", &b, &e));
  CHECK(strcmp((char *)b.data, "PTX") == 0);
  t->blob_free(&b);
  CHECK(fake_alive() == 0);

  name_list(names, sizeof names, broken);
  OK(t->open(names, names, &lib, tried, sizeof tried, &e));
  CHECK(!t->has_driver(lib) && t->has_compiler(lib));
  CHECK(strstr(tried, "of no use: it has no cuMemAlloc_v2") != NULL);
  CHECK(t->device_count(lib, &n, &e) == CS_NO_DEVICE);
  CHECK(t->open("/no/such\0", "", &lib, tried, sizeof tried, &e) == CS_NO_DEVICE);
  CHECK(strstr(tried, "/no/such: not found: ") == tried);

  // A driver without a compiler.
  name_list(names, sizeof names, old);
  OK(t->open(names, "", &lib, NULL, 0, &e));
  CHECK(t->has_driver(lib) && !t->has_compiler(lib));
  CHECK(t->targets(lib, text, sizeof text, &e) == CS_UNSUPPORTED);
  CHECK(t->compile(lib, "n", "right", "", &b, &e) == CS_UNSUPPORTED);
  OK(t->device_count(lib, &n, &e));
}

int main(int argc, char **argv) {
  t = concord_shim_cuda();
  if (argc == 3 && strcmp(argv[1], "all") == 0)
    all(argv[2]);
  else if (argc == 3 && strcmp(argv[1], "sweep") == 0)
    sweep(argv[2]);
  else if (argc == 4 && strcmp(argv[1], "less") == 0)
    less(argv[2], argv[3]);
  else
    return 2;
  return 0;
}
