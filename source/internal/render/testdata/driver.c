// driver.c runs one kernel of a stress program and prints its output buffers, for the tests of the
// front end. With -DPOCL it runs the OpenCL text on an OpenCL device (with a library opened by
// dlopen); without, it loads a shared object that was compiled from a host rendering, and
// implements barriers with ucontext.
//
//   driver PROGRAM KERNEL G0,G1,G2 L0,L1,L2 ARG...
//
// ARG is  TYPE:v,v,...        a value (several make a vector or struct)
//         buf:TYPE:N:FILL     a buffer; FILL is zero, iota, alt, rand or a list of values
//         out:TYPE:N[:FILL]   the same, printed afterwards
//         local:BYTES         local memory
// TYPE is i8 u8 i16 u16 i32 u32 i64 u64 f32 f64.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  char type[4];
  int is_buf, is_out, is_local;
  long count;
  size_t bytes;
  void *data;
} arg;

static size_t type_size(const char *t) { return (size_t)atoi(t + 1) / 8; }

static void put(const char *t, void *p, long i, double d, long long v) {
  switch (t[0] == 'f' ? 100 + atoi(t + 1) : atoi(t + 1)) {
  case 8: ((int8_t *)p)[i] = (int8_t)v; break;
  case 16: ((int16_t *)p)[i] = (int16_t)v; break;
  case 32: ((int32_t *)p)[i] = (int32_t)v; break;
  case 64: ((int64_t *)p)[i] = v; break;
  case 132: ((float *)p)[i] = (float)d; break;
  case 164: ((double *)p)[i] = d; break;
  }
}

static void fill(arg *a, char *how) {
  uint32_t seed = 12345;
  if (!how || !strcmp(how, "zero")) return;
  for (long i = 0; i < a->count; i++) {
    if (!strcmp(how, "iota")) put(a->type, a->data, i, (double)i, i);
    else if (!strcmp(how, "alt")) put(a->type, a->data, i, (i % 2 ? -0.5 : 0.5) * (double)i, i % 2 ? -i : i);
    else if (!strcmp(how, "rand")) {
      seed = seed * 1664525u + 1013904223u;
      put(a->type, a->data, i, (double)(seed >> 8) / 16777216.0, seed >> 4);
    }
  }
  if (strchr("0123456789-+.", how[0])) {
    long i = 0;
    for (char *s = strtok(how, ","); s && i < a->count; s = strtok(NULL, ","), i++)
      put(a->type, a->data, i, strtod(s, NULL), s[0] == '-' ? strtoll(s, NULL, 0) : (long long)strtoull(s, NULL, 0));
  }
}

static arg parse(char *text) {
  arg a;
  memset(&a, 0, sizeof a);
  char *head = strsep(&text, ":");
  a.is_local = !strcmp(head, "local");
  a.is_out = !strcmp(head, "out");
  a.is_buf = a.is_out || !strcmp(head, "buf");
  if (a.is_local) {
    a.bytes = (size_t)atol(text);
    return a;
  }
  if (a.is_buf) {
    head = strsep(&text, ":");
    a.count = atol(strsep(&text, ":"));
  } else {
    a.count = 1;
    for (char *c = text; *c; c++) a.count += *c == ',';
  }
  strncpy(a.type, head, 3);
  a.bytes = type_size(a.type) * (size_t)a.count;
  a.data = aligned_alloc(128, (a.bytes + 255) / 128 * 128);
  memset(a.data, 0, (a.bytes + 255) / 128 * 128);
  fill(&a, text);
  return a;
}

static void show(arg *a) {
  for (long i = 0; i < a->count; i++) {
    if (i) putchar(' ');
    switch (a->type[0] == 'f' ? 100 + atoi(a->type + 1) : a->type[0] == 'u' ? -atoi(a->type + 1) : atoi(a->type + 1)) {
    case 8: printf("%d", ((int8_t *)a->data)[i]); break;
    case 16: printf("%d", ((int16_t *)a->data)[i]); break;
    case 32: printf("%d", ((int32_t *)a->data)[i]); break;
    case 64: printf("%lld", (long long)((int64_t *)a->data)[i]); break;
    case -8: printf("%u", ((uint8_t *)a->data)[i]); break;
    case -16: printf("%u", ((uint16_t *)a->data)[i]); break;
    case -32: printf("%u", ((uint32_t *)a->data)[i]); break;
    case -64: printf("%llu", (unsigned long long)((uint64_t *)a->data)[i]); break;
    case 132: {
      float f = ((float *)a->data)[i];
      f != f ? printf("nan") : printf("%.9g", f);
      break;
    }
    case 164: {
      double f = ((double *)a->data)[i];
      f != f ? printf("nan") : printf("%.17g", f);
      break;
    }
    }
  }
  putchar('\n');
}

static void dims(const char *s, size_t *d) {
  d[0] = d[1] = d[2] = 1;
  for (int i = 0; i < 3 && *s; i++) {
    d[i] = strtoul(s, (char **)&s, 10);
    if (*s == ',') s++;
  }
}

#ifdef POCL
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#define LOAD(f) __typeof__(&f) p_##f = (__typeof__(&f))dlsym(h, #f)
#define CHECK(what, e) \
  if ((e) != 0) { fprintf(stderr, "%s: %d\n", what, (int)(e)); return 3; }

static int run(char *program, char *name, size_t *g, size_t *l, arg *args, int n) {
  void *h = dlopen("libOpenCL.so.1", RTLD_NOW);
  if (!h) { fprintf(stderr, "no libOpenCL\n"); return 4; }
  LOAD(clGetPlatformIDs); LOAD(clGetDeviceIDs); LOAD(clCreateContext); LOAD(clCreateCommandQueue);
  LOAD(clCreateProgramWithSource); LOAD(clBuildProgram); LOAD(clGetProgramBuildInfo); LOAD(clCreateKernel);
  LOAD(clCreateBuffer); LOAD(clSetKernelArg); LOAD(clEnqueueNDRangeKernel); LOAD(clEnqueueReadBuffer); LOAD(clFinish);
  FILE *f = fopen(program, "rb");
  if (!f) return 5;
  static char text[1 << 20];
  size_t len = fread(text, 1, sizeof text - 1, f);
  fclose(f);
  const char *src = text;
  cl_platform_id plat;
  cl_device_id dev;
  cl_int e;
  CHECK("platform", p_clGetPlatformIDs(1, &plat, NULL));
  CHECK("device", p_clGetDeviceIDs(plat, CL_DEVICE_TYPE_ALL, 1, &dev, NULL));
  cl_context ctx = p_clCreateContext(NULL, 1, &dev, NULL, NULL, &e);
  CHECK("context", e);
  cl_command_queue q = p_clCreateCommandQueue(ctx, dev, 0, &e);
  CHECK("queue", e);
  cl_program p = p_clCreateProgramWithSource(ctx, 1, &src, &len, &e);
  CHECK("program", e);
  e = p_clBuildProgram(p, 1, &dev, "-cl-std=CL1.2", NULL, NULL);
  static char log[1 << 16];
  p_clGetProgramBuildInfo(p, dev, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
  if (e) fprintf(stderr, "%s\n", log);
  CHECK("build", e);
  cl_kernel k = p_clCreateKernel(p, name, &e);
  CHECK("kernel", e);
  cl_mem bufs[64];
  for (int i = 0; i < n; i++) {
    arg *a = &args[i];
    if (a->is_local) e = p_clSetKernelArg(k, (cl_uint)i, a->bytes, NULL);
    else if (a->is_buf) {
      bufs[i] = p_clCreateBuffer(ctx, CL_MEM_COPY_HOST_PTR, a->bytes, a->data, &e);
      CHECK("buffer", e);
      e = p_clSetKernelArg(k, (cl_uint)i, sizeof(cl_mem), &bufs[i]);
    } else e = p_clSetKernelArg(k, (cl_uint)i, a->bytes, a->data);
    CHECK("argument", e);
  }
  e = p_clEnqueueNDRangeKernel(q, k, 3, NULL, g, l, 0, NULL, NULL);
  CHECK("launch", e);
  CHECK("finish", p_clFinish(q));
  for (int i = 0; i < n; i++)
    if (args[i].is_buf)
      CHECK("read", p_clEnqueueReadBuffer(q, bufs[i], CL_TRUE, 0, args[i].bytes, args[i].data, 0, NULL, NULL));
  return 0;
}
#elif defined VULKAN
#include "driver_vulkan.h"
#elif defined METAL
#include "driver_metal.h"
#else
#include "host.h"
#include <ucontext.h>

static ucontext_t sched, *items;
static int current, *finished;
static concord_run entry;
static void **values;
static concord_ctx *ctxs;

static void barrier(concord_ctx *ctx, uint32_t site) {
  (void)ctx, (void)site;
  swapcontext(&items[current], &sched);
}
static int32_t print(concord_ctx *ctx, const char *f, const concord_value *v, uint32_t n) {
  (void)ctx, (void)f, (void)v, (void)n;
  return 0;
}
static void fiber(int i) {
  entry(&ctxs[i], values);
  finished[i] = 1;
}

static void group(concord_ctx *base, const concord_kernel *k, size_t *l) {
  if (!(k->flags & CONCORD_KERNEL_FIBERS)) {
    k->run(base, values);
    return;
  }
  int n = (int)(l[0] * l[1] * l[2]), left = n;
  static char *stacks;
  if (!stacks) stacks = malloc((size_t)n << 17);
  entry = k->run;
  for (int i = 0; i < n; i++) {
    ctxs[i] = *base;
    ctxs[i].item[0] = (size_t)i % l[0];
    ctxs[i].item[1] = (size_t)i / l[0] % l[1];
    ctxs[i].item[2] = (size_t)i / l[0] / l[1];
    finished[i] = 0;
    getcontext(&items[i]);
    items[i].uc_stack.ss_sp = stacks + ((size_t)i << 17);
    items[i].uc_stack.ss_size = 1 << 17;
    items[i].uc_link = &sched;
    makecontext(&items[i], (void (*)(void))fiber, 1, i);
  }
  while (left > 0)
    for (current = 0; current < n; current++)
      if (!finished[current]) {
        swapcontext(&sched, &items[current]);
        left -= finished[current];
      }
}

static int run(char *program, char *name, size_t *g, size_t *l, arg *args, int n) {
  void *h = dlopen(program, RTLD_NOW);
  if (!h) { fprintf(stderr, "%s\n", dlerror()); return 3; }
  const concord_module *m = dlsym(h, "concord_program");
  const concord_kernel *k = NULL;
  for (uint32_t i = 0; m && i < m->kernel_count; i++)
    if (!strcmp(m->kernels[i].name, name)) k = &m->kernels[i];
  if (!k || k->param_count != (uint32_t)n) { fprintf(stderr, "no kernel %s with %d parameters\n", name, n); return 3; }
  concord_grid grid = {.dim = 3};
  size_t per = l[0] * l[1] * l[2];
  for (int d = 0; d < 3; d++) grid.global[d] = g[d], grid.local[d] = l[d], grid.groups[d] = g[d] / l[d];
  concord_calls calls = {barrier, print};
  concord_ctx base;
  memset(&base, 0, sizeof base);
  base.grid = &grid;
  base.calls = &calls;
  size_t at = (k->local_bytes + 127) / 128 * 128;
  base.local_bytes = at;
  for (int i = 0; i < n; i++) base.local_bytes += args[i].is_local ? (args[i].bytes + 127) / 128 * 128 : 0;
  base.local = aligned_alloc(128, base.local_bytes + 128);
  values = calloc(64, sizeof(void *));
  void *pointers[64];
  for (int i = 0; i < n; i++) {
    if (!args[i].is_local && !args[i].is_buf && args[i].bytes != k->param_bytes[i]) {
      fprintf(stderr, "argument %d has %zu bytes, the kernel takes %u\n", i, args[i].bytes, k->param_bytes[i]);
      return 3;
    }
    pointers[i] = args[i].data;
    if (args[i].is_local) {
      pointers[i] = (char *)base.local + at;
      at += (args[i].bytes + 127) / 128 * 128;
    }
    values[i] = args[i].is_buf || args[i].is_local ? (void *)&pointers[i] : args[i].data;
  }
  items = calloc(per, sizeof *items);
  finished = calloc(per, sizeof *finished);
  ctxs = calloc(per, sizeof *ctxs);
  for (size_t z = 0; z < grid.groups[2]; z++)
    for (size_t y = 0; y < grid.groups[1]; y++)
      for (size_t x = 0; x < grid.groups[0]; x++) {
        base.group[0] = x, base.group[1] = y, base.group[2] = z;
        group(&base, k, l);
      }
  return 0;
}
#endif

int main(int argc, char **argv) {
  arg args[64];
  size_t g[3], l[3];
  if (argc < 5 || argc > 5 + 64) return 2;
  dims(argv[3], g);
  dims(argv[4], l);
  for (int i = 5; i < argc; i++) args[i - 5] = parse(argv[i]);
  int rc = run(argv[1], argv[2], g, l, args, argc - 5);
  if (rc) return rc;
  for (int i = 0; i < argc - 5; i++)
    if (args[i].is_out) show(&args[i]);
  fflush(stdout);
  _exit(0);
}
