// bdriver.c runs the kernels of one program over binary files, for the differential test of the
// built-ins. The job file has a line per launch:
//
//   KERNEL ITEMS in:FILE ... out:FILE:BYTES ...
//
// With -DPOCL the program is OpenCL text for the first OpenCL device, with -DMETAL a Metal rendering for
// the simulated Metal, with -DVULKAN a path to which a dot and the kernel's name are appended: the file is what
// driver_vulkan.h reads; else a shared object of a host rendering.
#if !defined POCL && !defined METAL && !defined VULKAN
#include "../../../../csrc/host/host.c"
#endif
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  char path[512];
  int out, is_buf, is_local;
  size_t bytes;
  void *data;
} arg;

static arg parse(char *s) {
  arg a;
  memset(&a, 0, sizeof a);
  a.out = s[0] == 'o';
  s = strchr(s, ':') + 1;
  if (a.out) {
    char *size = strrchr(s, ':');
    a.bytes = strtoul(size + 1, NULL, 10);
    *size = 0;
  }
  snprintf(a.path, sizeof a.path, "%s", s);
  if (!a.out) {
    FILE *f = fopen(s, "rb");
    if (!f) exit(5);
    fseek(f, 0, SEEK_END);
    a.bytes = (size_t)ftell(f);
    rewind(f);
    a.data = aligned_alloc(128, (a.bytes + 255) / 128 * 128);
    if (fread(a.data, 1, a.bytes, f) != a.bytes) exit(5);
    fclose(f);
  } else {
    a.data = aligned_alloc(128, (a.bytes + 255) / 128 * 128);
    memset(a.data, 0, a.bytes);
  }
  return a;
}

#define CHECK(what, e) \
  if ((e) != 0) { fprintf(stderr, "%s: %d\n", what, (int)(e)); exit(3); }

#ifdef POCL
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#define EACH(X) X(clGetPlatformIDs) X(clGetDeviceIDs) X(clCreateContext) X(clCreateCommandQueue) X(clCreateProgramWithSource) \
  X(clBuildProgram) X(clGetProgramBuildInfo) X(clCreateKernel) X(clCreateBuffer) X(clSetKernelArg) X(clReleaseMemObject) \
  X(clEnqueueNDRangeKernel) X(clEnqueueReadBuffer) X(clReleaseKernel)
#define DECLARE(f) static __typeof__(&f) p_##f;
EACH(DECLARE)
static cl_context ctx;
static cl_command_queue queue;
static cl_program program;
static void load(const char *file) {
  void *h = dlopen("libOpenCL.so.1", RTLD_NOW);
  if (!h) exit(4);
#define LOAD(f) p_##f = (__typeof__(&f))dlsym(h, #f);
  EACH(LOAD)
  FILE *f = fopen(file, "rb");
  static char text[1 << 22], log[1 << 16];
  size_t len = fread(text, 1, sizeof text, f);
  fclose(f);
  const char *src = text;
  cl_platform_id plat;
  cl_device_id dev;
  cl_int e;
  if (p_clGetPlatformIDs(1, &plat, NULL) || p_clGetDeviceIDs(plat, CL_DEVICE_TYPE_ALL, 1, &dev, NULL)) exit(4);
  ctx = p_clCreateContext(NULL, 1, &dev, NULL, NULL, &e);
  queue = p_clCreateCommandQueue(ctx, dev, 0, &e);
  program = p_clCreateProgramWithSource(ctx, 1, &src, &len, &e);
  e = p_clBuildProgram(program, 1, &dev, "-cl-std=CL1.2", NULL, NULL);
  p_clGetProgramBuildInfo(program, dev, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
  if (e) fprintf(stderr, "%s\n", log);
  CHECK("build", e);
}
static void run(const char *name, size_t items, arg *args, int n) {
  cl_int e;
  cl_kernel k = p_clCreateKernel(program, name, &e);
  CHECK(name, e);
  cl_mem bufs[16];
  for (int i = 0; i < n; i++) {
    bufs[i] = p_clCreateBuffer(ctx, CL_MEM_COPY_HOST_PTR, args[i].bytes, args[i].data, &e);
    CHECK("buffer", e);
    CHECK("argument", p_clSetKernelArg(k, (cl_uint)i, sizeof(cl_mem), &bufs[i]));
  }
  size_t local = 1;
  CHECK("launch", p_clEnqueueNDRangeKernel(queue, k, 1, NULL, &items, &local, 0, NULL, NULL));
  for (int i = 0; i < n; i++) {
    CHECK("read", p_clEnqueueReadBuffer(queue, bufs[i], CL_TRUE, 0, args[i].bytes, args[i].data, 0, NULL, NULL));
    p_clReleaseMemObject(bufs[i]);
  }
  p_clReleaseKernel(k);
}
#elif defined METAL
#include "../../../../tests/sim/metal/compile.h"
static simmetal_library *library;
static void load(const char *file) {
  static char text[1 << 22], log[1 << 16];
  FILE *f = fopen(file, "rb");
  if (f) text[fread(text, 1, sizeof text - 1, f)] = 0;
  library = simmetal_compile(text, log, sizeof log);
  if (!library) fprintf(stderr, "%s\n", log);
  CHECK("build", !library);
}
static void run(const char *name, size_t items, arg *args, int n) {
  char entry[256], log[512];
  simmetal_args a = {0};
  snprintf(entry, sizeof entry, "cc_kernel_%s", name);
  for (int i = 0; i < n; i++) a.buffer[i] = args[i].data;
  const simmetal_kernel *k = simmetal_find(library, entry);
  CHECK(entry, !k);
  uint32_t groups[3] = {(uint32_t)items / 64, 1, 1}, group[3] = {64, 1, 1};
  int rc = simmetal_run(k, groups, group, &a, log, sizeof log);
  if (rc) fprintf(stderr, "%s\n", log);
  CHECK("launch", rc);
}
#elif defined VULKAN
#define run run_module
#include "driver_vulkan.h"
#undef run
static const char *program;
static void load(const char *file) { program = file; }
static void run(const char *name, size_t items, arg *args, int n) {
  static char path[1024];
  snprintf(path, sizeof path, "%s.%s", program, name);
  for (int i = 0; i < n; i++) args[i].is_buf = 1;
  CHECK(name, run_module(path, (char *)name, (size_t[]){items, 1, 1}, (size_t[]){64, 1, 1}, args, n));
}
#else
static const concord_module *module;
static void load(const char *file) {
  void *h = dlopen(file, RTLD_NOW);
  if (!h) { fprintf(stderr, "%s\n", dlerror()); exit(3); }
  module = dlsym(h, "concord_program");
}
static void run(const char *name, size_t items, arg *args, int n) {
  void *values[16];
  for (int i = 0; i < n; i++) values[i] = &args[i].data;
  concord_launch l = {.dim = 1, .global = {items}, .local = {1}, .arg_count = (uint32_t)n, .args = values};
  concord_error e;
  for (uint32_t i = 0; i < module->kernel_count; i++)
    if (!strcmp(module->kernels[i].name, name)) l.kernel = &module->kernels[i];
  concord_host_launch(&l, &e);
  if (e.status) fprintf(stderr, "%s: %s\n", name, e.message);
  CHECK("launch", e.status);
}
#endif

int main(int argc, char **argv) {
  static char line[1 << 14];
  if (argc < 3) return 2;
  load(argv[1]);
  FILE *f = fopen(argv[2], "rb");
  while (f && fgets(line, sizeof line, f)) {
    arg args[16];
    int n = 0;
    char *name = strtok(line, " \n");
    size_t items = strtoul(strtok(NULL, " \n"), NULL, 10);
    for (char *s = strtok(NULL, " \n"); s; s = strtok(NULL, " \n")) args[n++] = parse(s);
    run(name, items, args, n);
    for (int i = 0; i < n; i++) {
      if (args[i].out) {
        FILE *o = fopen(args[i].path, "wb");
        fwrite(args[i].data, 1, args[i].bytes, o);
        fclose(o);
      }
      free(args[i].data);
    }
  }
  fflush(stdout);
  _exit(0);
}
