// host_test.c checks the executor without a compiler for kernels: the kernels are C functions of
// the ABI's form. Usage: host_test CASE, or host_test with no argument for all of them.

#include "../host/host.c"

#include <sched.h>

static int failures;
#define CHECK(cond, ...)                                                                           \
  do {                                                                                             \
    if (!(cond)) {                                                                                 \
      failures++;                                                                                  \
      printf("%s:%d: %s: ", __func__, __LINE__, #cond);                                            \
      printf(__VA_ARGS__);                                                                         \
      printf("\n");                                                                                \
    }                                                                                              \
  } while (0)

#define KERNEL(fn, fl, n, loc)                                                                     \
  { #fn, fl, n, NULL, loc, fn, 0 }
#define FIBERS CONCORD_KERNEL_FIBERS

// each loops over the items of a group, as the prelude's entry does.
#define EACH(c)                                                                                    \
  for (uint64_t z = 0; z < (c)->grid->local[2]; z++)                                               \
    for (uint64_t y = 0; y < (c)->grid->local[1]; y++)                                             \
      for (uint64_t x = 0; x < (c)->grid->local[0]; x++)

static uint64_t gid(const concord_ctx *c, int d, uint64_t lid) {
  return c->group[d] * c->grid->local[d] + c->grid->offset[d] + lid;
}

static void mark(concord_ctx *c, void *const *a) { // out[linear id] += 1
  uint32_t *out = *(uint32_t **)a[0];
  const concord_grid *g = c->grid;
  EACH(c) {
    uint64_t i = gid(c, 0, x) - g->offset[0], j = gid(c, 1, y) - g->offset[1],
             k = gid(c, 2, z) - g->offset[2];
    out[(k * g->global[1] + j) * g->global[0] + i]++;
  }
}

static void mark_fiber(concord_ctx *c, void *const *a) {
  uint32_t *out = *(uint32_t **)a[0];
  const concord_grid *g = c->grid;
  uint64_t i = gid(c, 0, c->item[0]), j = gid(c, 1, c->item[1]), k = gid(c, 2, c->item[2]);
  out[(k * g->global[1] + j) * g->global[0] + i]++;
}

static void reduce(concord_ctx *c, void *const *a) { // sum of a group by a tree in local memory
  const float *x = *(const float **)a[0];
  float *out = *(float **)a[1], *tile = *(float **)a[2], *fixed = c->local;
  uint64_t l = c->item[0], n = c->grid->local[0];
  tile[l] = x[gid(c, 0, l)];
  if (l == 0)
    fixed[0] = 1;
  c->calls->barrier(c, 0);
  uint64_t step = 1;
  while (step < n)
    step *= 2;
  for (step /= 2; step > 0; step /= 2) {
    if (l < step && l + step < n)
      tile[l] += tile[l + step];
    c->calls->barrier(c, 1);
  }
  if (l == 0)
    out[c->group[0]] = tile[0] + fixed[0] - 1;
}

static void diverge_return(concord_ctx *c, void *const *a) {
  (void)a;
  if (c->item[0] == 3)
    return;
  c->calls->barrier(c, 7);
}
static void diverge_site(concord_ctx *c, void *const *a) {
  (void)a;
  c->calls->barrier(c, c->item[0] % 2 ? 8 : 9);
}
static void diverge_count(concord_ctx *c, void *const *a) {
  (void)a;
  for (uint64_t i = 0; i <= c->item[0]; i++)
    c->calls->barrier(c, 5);
}
static void no_mark(concord_ctx *c, void *const *a) {
  (void)a;
  c->calls->barrier(c, 4);
}

#if defined(__x86_64__)
#define DIVIDE_STATUS CONCORD_FAULT
#else
#define DIVIDE_STATUS CONCORD_OK // on other processors the division has a result
#endif

static volatile int zero;
static void divide(concord_ctx *c, void *const *a) {
  if (c->group[0] == 5)
    **(volatile int **)a[0] = 7 / zero;
}
static void null_write(concord_ctx *c, void *const *a) {
  (void)a;
  if (c->group[0] == 2 && c->item[0] == 1)
    *(volatile int *)(uintptr_t)zero = 1;
}
static void illegal(concord_ctx *c, void *const *a) {
  (void)c, (void)a;
  __builtin_trap();
}
static __attribute__((noinline)) int deep(volatile char *p, int n) {
  volatile char frame[512];
  frame[n & 511] = p[0];
  return n == 0 ? frame[0] : deep(frame, n - 1) + frame[n & 511];
}
static void overflow(concord_ctx *c, void *const *a) {
  volatile char start = 0;
  (void)c;
  **(volatile int **)a[0] = deep(&start, 1 << 30);
}
static void over_local(concord_ctx *c, void *const *a) {
  (void)a;
  memset(c->local, 1, c->local_bytes + 1);
}
static void stray(concord_ctx *c, void *const *a) { // faults in the last of the groups of one call
  (void)a;
  if (c->group[0] <= 5000 && 5000 <= c->group[0] + c->more[0])
    *(volatile int *)(uintptr_t)zero = 1;
}
static void hold(concord_ctx *c, void *const *a) { // reports that it runs, and waits
  _Atomic int *state = *(_Atomic int **)a[0];
  struct timespec t = {0, 100000};
  if (c->item[0] == 0)
    for (atomic_fetch_add(&state[0], 1); atomic_load(&state[1]) == 0;)
      nanosleep(&t, NULL);
  c->calls->barrier(c, 0);
}
static void slow(concord_ctx *c, void *const *a) {
  (void)c;
  struct timespec t = {0, 2000000};
  nanosleep(&t, NULL);
  atomic_fetch_add(*(_Atomic int **)a[0], 1);
}
static void print(concord_ctx *c, void *const *a) {
  (void)a;
  float f[4] = {1.5f, -2, 0, 1e10f};
  uint8_t u[4] = {1, 2, 255, 16};
  int32_t i = -300;
  double d = 0.1;
  int64_t l = -5000000000;
  uint16_t h[2] = {0x3c00, 0xc500};
  concord_value v[] = {
      {CONCORD_VALUE_FLOAT, 4, 4, 0, f},      {CONCORD_VALUE_UNSIGNED, 4, 1, 0, u},
      {CONCORD_VALUE_SIGNED, 1, 4, 0, &i},    {CONCORD_VALUE_SIGNED, 1, 4, 0, &i},
      {CONCORD_VALUE_FLOAT, 1, 8, 0, &d},     {CONCORD_VALUE_SIGNED, 1, 8, 0, &l},
      {CONCORD_VALUE_STRING, 1, 8, 0, "abc"}, {CONCORD_VALUE_FLOAT, 2, 2, 0, h},
      {CONCORD_VALUE_SIGNED, 1, 4, 0, &i},    {CONCORD_VALUE_UNSIGNED, 4, 1, 0, u},
  };
  int rc =
      c->calls->print(c, "%5.2v4hlf|%#v4hhx|%d|%hhd|%.3g|%ld|%-5s|%v2hf|%u|%v4hhd|100%%\n", v, 10);
  CHECK(rc == 0, "%d", rc);
  CHECK(c->calls->print(c, "%d", v, 0) == -1, "missing argument");
  CHECK(c->calls->print(c, "%y", v, 1) == -1, "bad conversion");
}
static void print_bad(concord_ctx *c, void *const *a) {
  (void)a;
  concord_value v = {CONCORD_VALUE_STRING, 1, 8, 0, (void *)(uintptr_t)(zero + 16)};
  c->calls->print(c, "%s", &v, 1);
}

static concord_kernel kernels[] = {
    KERNEL(mark, 0, 1, 0),
    KERNEL(mark_fiber, FIBERS, 1, 0),
    KERNEL(reduce, FIBERS, 3, 4),
    KERNEL(diverge_return, FIBERS, 0, 0),
    KERNEL(diverge_site, FIBERS, 0, 0),
    KERNEL(diverge_count, FIBERS, 0, 0),
    KERNEL(no_mark, 0, 0, 0),
    KERNEL(divide, 0, 1, 0),
    KERNEL(null_write, FIBERS, 0, 0),
    KERNEL(illegal, 0, 0, 0),
    KERNEL(overflow, FIBERS, 1, 0),
    KERNEL(over_local, 0, 0, 128),
    KERNEL(stray, CONCORD_KERNEL_ROWS, 0, 0),
    KERNEL(hold, FIBERS, 1, 0),
    KERNEL(slow, 0, 1, 0),
    KERNEL(print, FIBERS, 0, 0),
    KERNEL(print_bad, 0, 0, 0),
};

static concord_kernel *kernel(const char *name) {
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
    if (strcmp(kernels[i].name, name) == 0)
      return &kernels[i];
  abort();
}

// run launches a 1-d grid with at most two pointer arguments.
static concord_error run(const char *name, uint64_t global, uint64_t local, void *a, void *b) {
  void *args[] = {&a, &b, NULL};
  concord_error e;
  concord_launch l = {
      .kernel = kernel(name), .dim = 1, .global = {global}, .local = {local}, .args = args};
  l.arg_count = l.kernel->param_count;
  int32_t rc = concord_host_launch(&l, &e);
  CHECK(rc == e.status, "%d %d", rc, e.status);
  return e;
}

static void test_grids(void) {
  static const uint64_t grids[][6] = {{1, 1, 1, 1, 1, 1},  {7, 5, 3, 7, 1, 1},
                                      {64, 9, 5, 8, 3, 5}, {1000, 1, 1, 10, 1, 1},
                                      {6, 6, 6, 2, 3, 1},  {3, 1, 77, 3, 1, 11}};
  for (size_t i = 0; i < sizeof grids / sizeof *grids; i++)
    for (int fibers = 0; fibers < 2; fibers++) {
      const uint64_t *g = grids[i];
      uint64_t n = g[0] * g[1] * g[2];
      uint32_t *out = calloc(n, 4);
      void *args[] = {&out};
      concord_error e;
      concord_launch l = {.kernel = kernel(fibers ? "mark_fiber" : "mark"),
                          .dim = 3,
                          .arg_count = 1,
                          .args = args,
                          .threads = i % 3};
      memcpy(l.global, g, 24);
      memcpy(l.local, g + 3, 24);
      if (!fibers)
        l.offset[0] = 5, l.offset[2] = (uint64_t)1 << 40;
      CHECK(concord_host_launch(&l, &e) == CONCORD_OK, "%s", e.message);
      for (uint64_t k = 0; k < n; k++)
        CHECK(out[k] == 1, "grid %zu item %llu: %u", i, (unsigned long long)k, out[k]);
      free(out);
    }
  CHECK(run("mark", 0, 64, NULL, NULL).status == CONCORD_OK, "empty grid");
  CHECK(run("mark", 10, 4, NULL, NULL).status == CONCORD_INVALID, "not a multiple");
  CHECK(run("mark_fiber", 8192, 8192, NULL, NULL).status == CONCORD_INVALID, "group too large");
}

static void test_reduce(void) {
  static const uint64_t sizes[] = {1, 2, 3, 31, 64, 100, 256, 1000, 1024};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    uint64_t n = sizes[s], groups = 13;
    float *x = malloc(n * groups * 4), out[13] = {0}, *o = out;
    for (uint64_t i = 0; i < n * groups; i++)
      x[i] = (float)(i % 17);
    void *args[] = {&x, &o, NULL};
    uint64_t loc[] = {0, 0, n * 4};
    concord_error e;
    concord_launch l = {.kernel = kernel("reduce"),
                        .dim = 1,
                        .arg_count = 3,
                        .args = args,
                        .global = {n * groups},
                        .local = {n},
                        .local_bytes = loc};
    CHECK(concord_host_launch(&l, &e) == CONCORD_OK, "%s", e.message);
    for (uint64_t g = 0; g < groups; g++) {
      float want = 0;
      for (uint64_t i = 0; i < n; i++)
        want += x[g * n + i];
      CHECK(out[g] == want, "size %llu group %llu: %g, want %g", (unsigned long long)n,
            (unsigned long long)g, out[g], want);
    }
    free(x);
  }
}

static void test_barriers(void) {
  concord_error e = run("diverge_return", 64, 16, NULL, NULL);
  CHECK(e.status == CONCORD_BARRIER && e.has_item && e.item[0] == 3, "%d %s", e.status, e.message);
  CHECK(e.site == 7 && e.site2 == 0xffffffff, "%u %u", e.site, e.site2);
  e = run("diverge_site", 64, 16, NULL, NULL);
  CHECK(e.status == CONCORD_BARRIER && e.site == 9 && e.site2 == 8, "%u %u", e.site, e.site2);
  e = run("diverge_count", 64, 16, NULL, NULL);
  CHECK(e.status == CONCORD_BARRIER && e.site == 5 && e.site2 == 0xffffffff, "%u %u", e.site,
        e.site2);
  CHECK(run("diverge_count", 64, 1, NULL, NULL).status == CONCORD_OK, "groups of one");
  CHECK(run("no_mark", 64, 16, NULL, NULL).status == CONCORD_BARRIER, "unmarked kernel");
  CHECK(run("no_mark", 64, 1, NULL, NULL).status == CONCORD_OK, "unmarked kernel, groups of one");
  test_reduce();
}

static void test_faults(void) {
  int out = 0;
  for (int i = 0; i < 3; i++) {
    concord_error e = run("divide", 64, 8, &out, NULL);
    CHECK(e.status == DIVIDE_STATUS &&
              (e.status == CONCORD_OK || (e.fault == CONCORD_FAULT_ARITHMETIC && e.group[0] == 5)),
          "%d %d %s", e.status, e.fault, e.message);
    e = run("null_write", 64, 8, NULL, NULL);
    CHECK(e.status == CONCORD_FAULT && e.fault == CONCORD_FAULT_ADDRESS && e.address == 0 &&
              e.group[0] == 2 && e.has_item && e.item[0] == 1,
          "%d %d %s", e.status, e.fault, e.message);
    e = run("stray", 1 << 20, 1, NULL, NULL);
    CHECK(e.status == CONCORD_FAULT && e.group[0] <= 5000 && 5000 <= e.group[0] + e.more[0],
          "%d groups %llu..+%llu", e.status, (unsigned long long)e.group[0],
          (unsigned long long)e.more);
    e = run("overflow", 8, 8, &out, NULL);
    CHECK(e.status == CONCORD_FAULT && e.fault == CONCORD_FAULT_STACK, "%d %d %s", e.status,
          e.fault, e.message);
    kernel("overflow")->flags = 0;
    e = run("overflow", 8, 8, &out, NULL);
    CHECK(e.status == CONCORD_FAULT && e.fault == CONCORD_FAULT_STACK, "main: %d %d %s", e.status,
          e.fault, e.message);
    kernel("overflow")->flags = FIBERS;
    e = run("illegal", 8, 8, NULL, NULL);
    CHECK(e.status == CONCORD_FAULT, "%d %d %s", e.status, e.fault, e.message);
    e = run("over_local", 8, 8, NULL, NULL);
    CHECK(e.status == CONCORD_FAULT && e.fault == CONCORD_FAULT_LOCAL, "%d %d %s", e.status,
          e.fault, e.message);
    e = run("print_bad", 8, 8, NULL, NULL);
    CHECK(e.status == CONCORD_FAULT && e.fault == CONCORD_FAULT_ADDRESS, "%d %d %s", e.status,
          e.fault, e.message);
    test_reduce(); // the pool works on
  }
}

static int32_t cancel_flag;
static void *cancel_soon(void *arg) {
  struct timespec t = {0, 30000000};
  (void)arg;
  nanosleep(&t, NULL);
  __atomic_store_n(&cancel_flag, 1, __ATOMIC_RELAXED);
  return NULL;
}

static void test_cancel(void) {
  _Atomic int done = 0;
  void *p = &done, *args[] = {&p};
  concord_error e;
  pthread_t t;
  concord_launch l = {.kernel = kernel("slow"),
                      .dim = 1,
                      .arg_count = 1,
                      .args = args,
                      .global = {1000},
                      .local = {1},
                      .cancel = &cancel_flag};
  pthread_create(&t, NULL, cancel_soon, NULL);
  CHECK(concord_host_launch(&l, &e) == CONCORD_CANCELLED, "%s", e.message);
  pthread_join(t, NULL);
  CHECK(done > 0 && done < 500, "%d groups ran", done);
  CHECK(concord_host_launch(&l, &e) == CONCORD_CANCELLED && done < 500, "cancelled before");
}

// Several threads launch at once; some of their launches fault.
static void *launcher(void *arg) {
  int n = (int)(intptr_t)arg;
  for (int i = 0; i < 30; i++) {
    uint32_t *out = calloc(5000, 4);
    concord_error e = run(n % 2 ? "mark" : "mark_fiber", 5000, 50, out, NULL);
    CHECK(e.status == CONCORD_OK, "%s", e.message);
    for (int k = 0; k < 5000; k++)
      CHECK(out[k] == 1, "thread %d item %d", n, k);
    free(out);
    int x;
    if (n % 3 == 0)
      CHECK(run("divide", 64, 8, &x, NULL).status == DIVIDE_STATUS, "thread %d", n);
  }
  return NULL;
}

static void *long_launch(void *arg) {
  void *args[] = {&arg};
  concord_error e;
  concord_launch l = {.kernel = kernel("slow"),
                      .dim = 1,
                      .arg_count = 1,
                      .args = args,
                      .global = {1000},
                      .local = {1},
                      .cancel = &cancel_flag};
  CHECK(concord_host_launch(&l, &e) == CONCORD_CANCELLED, "%s", e.message);
  return NULL;
}

static void test_concurrent(void) {
  pthread_t t[6];
  for (intptr_t i = 0; i < 6; i++)
    pthread_create(&t[i], NULL, launcher, (void *)i);
  for (int i = 0; i < 6; i++)
    pthread_join(t[i], NULL);
  // A short launch does not wait for a long one.
  _Atomic int done = 0;
  pthread_t c, d;
  cancel_flag = 0;
  pthread_create(&d, NULL, long_launch, &done);
  pthread_create(&c, NULL, cancel_soon, NULL);
  uint32_t out[64] = {0};
  CHECK(run("mark", 64, 1, out, NULL).status == CONCORD_OK && done < 1000,
        "waited for the long one");
  pthread_join(d, NULL);
  pthread_join(c, NULL);
}

static void *helper(void *job) {
  static const int32_t never = 0;
  while (concord_host_help(job, &never, &never, 0))
    ;
  return NULL;
}

// A thread without memory for its stacks leaves the launch to threads that have some.
static void test_share(void) {
  static const uint32_t pointer = sizeof(void *);
  _Atomic int state[2] = {0, 0};
  void *p = state, *args[] = {&p};
  concord_kernel k = *kernel("hold");
  k.param_bytes = &pointer;
  concord_launch l = {
      .kernel = &k, .dim = 1, .arg_count = 1, .args = args, .global = {640}, .local = {64}};
  for (struct worker *w = pool_guests; w != NULL; w = w->link)
    group_keep(w, 0);
  uint32_t taken = stacks_allowed() - atomic_load(&stacks_made) - 100; // enough for one thread
  atomic_fetch_add(&stacks_made, taken);
  uint64_t groups;
  concord_error e;
  concord_job *job = concord_host_begin(&l, &groups, &e);
  CHECK(job != NULL && groups == 10, "%s", e.message);
  pthread_t t;
  pthread_create(&t, NULL, helper, job);
  while (atomic_load(&state[0]) == 0)
    sched_yield();
  CHECK(concord_host_help(job, NULL, NULL, 1000) == 0, "no room, but work");
  atomic_store(&state[1], 1);
  pthread_join(t, NULL);
  CHECK(concord_host_end(job, &e) == CONCORD_OK, "%d %s", e.status, e.message);
  CHECK(state[0] == 10, "%d groups", state[0]);
  for (struct worker *w = pool_guests; w != NULL; w = w->link)
    CHECK(w->leave == NULL && w->cancel == NULL, "the caller's memory is kept");

  atomic_fetch_add(&stacks_made, 100);
  job = concord_host_begin(&l, &groups, &e);
  CHECK(concord_host_help(job, NULL, NULL, 1000) == 0, "no room at all");
  CHECK(concord_host_end(job, &e) == CONCORD_NOMEM, "%d %s", e.status, e.message);
  atomic_fetch_sub(&stacks_made, taken + 100);
}

static char printed[4096];
static void sink(void *user, const char *text, uint64_t n) { strncat((char *)user, text, n); }

static void test_print(void) {
  concord_error e;
  concord_launch l = {.kernel = kernel("print"),
                      .dim = 1,
                      .global = {2},
                      .local = {1},
                      .print = sink,
                      .print_user = printed};
  CHECK(concord_host_launch(&l, &e) == CONCORD_OK, "%s", e.message);
  const char *line = " 1.50,-2.00, 0.00,10000000000.00|0x1,0x2,0xff,0x10|-300|-44|0.1|-5000000000|"
                     "abc  |1.000000,-5.000000|4294966996|1,2,-1,16|100%\n";
  char want[1024];
  snprintf(want, sizeof want, "%s%s", line, line);
  CHECK(strcmp(printed, want) == 0, "got %s", printed);
}

// A fault outside kernel code goes to the handler that was installed before.
static _Atomic int chained;
static void old_handler(int sig, siginfo_t *info, void *context) {
  (void)sig, (void)info, (void)context;
  chained++;
}

// rescue_handler, the oldest one of SIGSEGV, makes the page accessible, so that the instruction succeeds.
enum { PAGE = 1 << 16 };
static volatile char *page;
static int rescued, idled;
static void rescue_handler(int sig, siginfo_t *info, void *context) {
  (void)sig, (void)info, (void)context;
  rescued++;
  mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE);
}
static void idle_handler(int sig, siginfo_t *info, void *context) {
  (void)sig, (void)info, (void)context;
  if (++idled > 100)
    _exit(3); // without end
}

static void test_chain(void) {
  CHECK(run("mark", 0, 1, NULL, NULL).status == CONCORD_OK, "init");
  raise(SIGFPE);
  CHECK(chained == 1, "%d", chained);
  // Another library replaces our handlers; the next launch installs them in front again.
  struct sigaction sa, ours;
  memset(&sa, 0, sizeof sa);
  sa.sa_sigaction = old_handler;
  sa.sa_flags = SA_SIGINFO;
  sigaction(SIGFPE, &sa, &ours);
  int out;
  CHECK(run("divide", 64, 8, &out, NULL).status == DIVIDE_STATUS, "in front again");
  raise(SIGFPE);
  CHECK(chained == 2, "%d", chained);
  // A handler that does nothing about a fault, in front of one that does: both get their turn.
  sa.sa_sigaction = idle_handler;
  sigaction(SIGSEGV, &sa, NULL);
  CHECK(run("divide", 64, 8, &out, NULL).status == DIVIDE_STATUS, "in front of the idle one");
  for (int i = 0; i < 3; i++) {
    CHECK(mprotect((void *)page, PAGE, PROT_NONE) == 0, "protect");
    page[8 * i] = 1;
    CHECK(page[8 * i] == 1 && rescued == i + 1 && idled > 0, "%d rescued, %d idle", rescued, idled);
  }
}

static void bench(void) {
  uint32_t *out = calloc(1 << 20, 4);
  struct timespec a, b;
#define TIME(label, per, expr)                                                                     \
  clock_gettime(CLOCK_MONOTONIC, &a);                                                              \
  expr;                                                                                            \
  clock_gettime(CLOCK_MONOTONIC, &b);                                                              \
  printf("bench %s: %.2f ns\n", label,                                                             \
         ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / (per))
  void *args[] = {&out};
  concord_error e;
  concord_launch l = {.kernel = kernel("mark"),
                      .dim = 1,
                      .arg_count = 1,
                      .args = args,
                      .global = {1},
                      .local = {1}};
  concord_host_launch(&l, &e);
  TIME("launch of one group", 10000, for (int i = 0; i < 10000; i++) concord_host_launch(&l, &e));
  l.global[0] = 1 << 20;
  TIME("group of one item, all threads", 1 << 20, concord_host_launch(&l, &e));
  l.threads = 1;
  TIME("group of one item, one thread", 1 << 20, concord_host_launch(&l, &e));
  l.kernel = kernel("mark_fiber");
  l.local[0] = 256;
  concord_host_launch(&l, &e);
  TIME("item on a fiber, one thread", 1 << 20, concord_host_launch(&l, &e));
  concord_launch r = {
      .kernel = kernel("no_mark"), .dim = 1, .global = {1 << 20}, .local = {256}, .threads = 1};
  static concord_kernel many;
  many = *r.kernel;
  many.flags = FIBERS;
  r.kernel = &many;
  TIME("item with one barrier, one thread", 1 << 20, concord_host_launch(&r, &e));
  free(out);
}

int main(int argc, char **argv) {
  struct sigaction sa;
  memset(&sa, 0, sizeof sa);
  sa.sa_sigaction = old_handler;
  sa.sa_flags = SA_SIGINFO;
  sigaction(SIGFPE, &sa, NULL);
  sa.sa_sigaction = rescue_handler;
  sigaction(SIGSEGV, &sa, NULL);
  page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  static const struct {
    const char *name;
    void (*fn)(void);
  } tests[] = {{"grids", test_grids},           {"barriers", test_barriers},
               {"faults", test_faults},         {"cancel", test_cancel},
               {"concurrent", test_concurrent}, {"print", test_print},
               {"share", test_share},           {"chain", test_chain},
               {"bench", bench}};
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
    if (argc < 2 ? tests[i].fn != bench : strcmp(argv[1], tests[i].name) == 0) {
      printf("%s\n", tests[i].name);
      fflush(stdout);
      tests[i].fn();
    }
  return failures > 0;
}
