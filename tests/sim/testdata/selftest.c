// selftest.c tests that the simulated libcuda and NVRTC behave as the vendor documents, and their
// faults on demand. selftest DIRECTORY KERNELS prints every mistake, and fails if there is one.

#include "sim.h"

#include <unistd.h>

static void *context, *module;
static char *image; // binary, for sm_80
static char lowered[256];

static void *compile(const char *text, const char *arch, int *code, char **log) {
  void *p = NULL;
  size_t n;
  const char *names[] = {"offset.h"}, *headers[] = {"#define OFFSET 5\n"};
  char option[64];
  snprintf(option, sizeof option, "--gpu-architecture=%s", arch);
  const char *options[] = {option, "--std=c++17", "-DUNUSED=1", "--fmad=false"};
  WANT(nvrtcCreateProgram(&p, text, "selftest.cu", 1, headers, names), 0);
  WANT(nvrtcAddNameExpression(p, "fill<7>"), 0);
  *code = nvrtcCompileProgram(p, 4, options);
  nvrtcGetProgramLogSize(p, &n);
  *log = malloc(n);
  nvrtcGetProgramLog(p, *log);
  return p;
}

static char *binary(void *p) {
  size_t n = 0;
  WANT(nvrtcGetCUBINSize(p, &n), 0);
  char *b = malloc(n + 1);
  WANT(nvrtcGetCUBIN(p, b), 0);
  return b;
}

static void *kernel(const char *name) {
  void *f = NULL;
  WANT(cuModuleGetFunction(&f, module, name), 0);
  return f;
}

static dptr memory(size_t n) {
  dptr p = 0;
  WANT(cuMemAlloc_v2(&p, n), 0);
  WANT(p % 256, 0);
  WANT(cuMemsetD32_v2(p, 0, n / 4), 0);
  return p;
}

static int launch(const char *name, unsigned blocks, unsigned threads, unsigned shared,
                  void *stream, void **args) {
  return cuLaunchKernel(kernel(name), blocks, 1, 1, threads, 1, 1, shared, stream, args, NULL);
}

static void begin(void) {
  WANT(cuDevicePrimaryCtxRetain(&context, 0), 0);
  WANT(cuCtxSetCurrent(context), 0);
  WANT(cuModuleLoadData(&module, image), 0);
}

static void end(void) {
  WANT(cuDevicePrimaryCtxRelease_v2(0), 0);
  const char *const live[] = {"allocations", "bytes",   "pinned", "streams",
                              "events",      "modules", "graphs", "contexts"};
  for (size_t i = 0; i < sizeof live / sizeof *live; i++)
    if (count(live[i]) != 0) {
      printf("left behind: %ld %s\n", count(live[i]), live[i]);
      failures++;
    }
  for (int i = 0; i < 200 && count("threads") > 0; i++)
    usleep(10000);
  WANT(count("threads"), 0);
}

static void test_compiler(const char *text) {
  int code;
  char *log;
  void *p = compile("__global__ void f(int *p) {\n  *p = nonsense;\n}\n", "sm_80", &code, &log);
  WANT(code, 6);
  WANT(strstr(log, "selftest.cu(2): error: ") != NULL, 1);
  nvrtcDestroyProgram(&p);
  free(log);
  p = compile("#include <stdio.h>\n", "sm_80", &code, &log);
  WANT(code, 6);
  WANT(strstr(log, "selftest.cu(1): ") != NULL, 1);
  nvrtcDestroyProgram(&p);
  free(log);
  p = compile("", "sm_1", &code, &log);
  WANT(code, 5);
  nvrtcDestroyProgram(&p);
  free(log);
  compiler_control("compile:1");
  p = compile("", "sm_80", &code, &log);
  WANT(code, 6);
  nvrtcDestroyProgram(&p);
  free(log);
  compiler_control("");
  p = compile(text, "sm_80", &code, &log);
  if (code != 0) {
    printf("%s", log);
    exit(1);
  }
  const char *name = NULL;
  WANT(nvrtcGetLoweredName(p, "fill<7>", &name), 0);
  snprintf(lowered, sizeof lowered, "%s", name);
  image = binary(p);
  WANT(nvrtcDestroyProgram(&p), 0);
  free(log);
  WANT(compiler_count("programs"), 0);
}

static void test_images(void) {
  int code;
  char *log;
  size_t n;
  void *m, *f;
  begin();
  WANT(cuModuleLoadData(&m, "garbage"), 200);
  WANT(cuModuleGetFunction(&f, module, "none"), 500);
  void *p = compile("extern \"C\" __global__ void k(int *p) { *p = 1; }\ntemplate<int N> "
                    "__global__ void fill() {}\n",
                    "compute_90", &code, &log);
  WANT(code, 0);
  WANT(nvrtcGetCUBINSize(p, &n), 0);
  WANT(n, 0);
  WANT(nvrtcGetPTXSize(p, &n), 0);
  char *ptx = malloc(n);
  WANT(nvrtcGetPTX(p, ptx), 0);
  WANT(strlen(ptx) + 1, n);
  WANT(cuModuleLoadData(&m, ptx), 218); // newer than the device
  control("arch:90");
  WANT(cuModuleLoadData(&m, ptx), 0);
  WANT(cuModuleUnload(m), 0);
  WANT(cuModuleLoadData(&m, image), 209); // another generation
  control("");
  ptx[n / 2] ^= 1;
  WANT(cuModuleLoadData(&m, ptx), 218);
  nvrtcDestroyProgram(&p);
  free(ptx);
  free(log);
  end();
}

static void test_kernels(void) {
  enum { N = 256 };
  int h[N], by = 3;
  float f[2] = {65519.f, 0};
  begin();
  dptr p = memory(sizeof h);
  void *args[] = {&p, &by};
#define READ() WANT(cuMemcpyDtoH_v2(h, p, sizeof h), 0)
  WANT(launch("identity", 2, 128, 0, NULL, args), 0);
  WANT(launch("reverse", 1, N, 0, NULL, args), 0);
  READ();
  WANT(h[0] == 255 && h[200] == 55, 1);
  WANT(launch("rotate", 1, N, N * 4, NULL, args), 0);
  READ();
  WANT(h[0] == 252 && h[255] == 253, 1);
  WANT(launch("rotate_whole", 1, N, N * 4, NULL, args), 0);
  READ();
  WANT(h[0], 249);
  WANT(launch(lowered, 1, N, 0, NULL, args), 0);
  READ();
  WANT(h[255], 7);
  WANT(cuMemsetD32_v2(p, 0, N), 0);
  WANT(launch("sum", 3, N, 0, NULL, args), 0);
  READ();
  WANT(h[0], 3 * 255 * 128);
  WANT(launch("votes", 1, N, 0, NULL, args), 0);
  READ();
  for (int i = 0; i < N; i++)
    WANT(h[i],
         1 + 2 * (i / 32 == 1) + 4 * (i < 32) + 8 + 16 + 32 + (i % 32 < 5 ? 64 + 128 : 0) + 256);
  WANT(launch("constants", 1, N, 0, NULL, args), 0);
  READ();
  WANT(h[6], 35);
  dptr global;
  size_t bytes;
  WANT(cuModuleGetGlobal_v2(&global, &bytes, module, "counter"), 0);
  WANT(bytes, 4);
  WANT(cuMemcpyDtoH_v2(h, global, 4), 0);
  WANT(h[0], N);
  WANT(cuMemcpyHtoD_v2(p, f, sizeof f), 0);
  WANT(launch("half", 1, 1, 0, NULL, args), 0);
  WANT(cuMemcpyDtoH_v2(f, p, sizeof f), 0);
  WANT(f[1], 65504);
  struct {
    char a;
    double b;
  } s = {1, 20};
  uint64_t l = 300;
  char c = 4;
  void *more[] = {&p, &s, &l, &c};
  WANT(launch("structs", 1, 1, 0, NULL, more), 0);
  READ();
  WANT(h[0], 325);
  WANT(launch("say", 1, 32, 0, NULL, args), 0);
  WANT(cuMemFree_v2(p), 0);
  WANT(cuModuleUnload(module), 0);
  end();
}

static void test_limits(void) {
  int v = 0, by = 0;
  begin();
  dptr p = memory(1024);
  void *args[] = {&p, &by}, *f = kernel("rotate");
  WANT(launch("identity", 1, 1025, 0, NULL, args), 1);
  WANT(launch("identity", 0, 1, 0, NULL, args), 1);
  WANT(launch("identity", 1, 32, 0, NULL, NULL), 1);
  WANT(cuLaunchKernel(f, 1, 65536, 1, 1, 1, 1, 0, NULL, args, NULL), 1);
  WANT(launch("reverse", 1, 512, 0, NULL, args), 701);
  WANT(cuFuncGetAttribute(&v, 1, kernel("reverse")), 0);
  WANT(v, 1024);
  WANT(cuFuncGetAttribute(&v, 0, kernel("reverse")), 0);
  WANT(v, 256);
  WANT(launch("rotate", 1, 32, 60000, NULL, args), 1);
  WANT(cuFuncSetAttribute(f, 8, 60000), 0);
  WANT(launch("rotate", 1, 32, 60000, NULL, args), 0);
  WANT(cuFuncSetAttribute(f, 8, 1 << 20), 1);
  WANT(cuCtxSynchronize(), 0);
  end();
}

static void test_memory(void) {
  char h[64] = {0};
  size_t left, total, now;
  dptr p, q;
  begin();
  WANT(cuMemGetInfo_v2(&left, &total), 0);
  p = memory(1000);
  WANT(cuMemGetInfo_v2(&now, &total), 0);
  WANT(left - now, 1000);
  WANT(cuMemAlloc_v2(&q, total), 2);
  WANT(cuMemAlloc_v2(&q, 0), 1);
  WANT(cuMemcpyHtoD_v2(p + 990, h, 11), 1); // one byte too many
  WANT(cuMemcpyHtoD_v2(p + 990, h, 10), 0);
  WANT(cuMemcpyDtoH_v2(h, (dptr)(uintptr_t)h, 8), 1); // not a device pointer
  WANT(cuMemFree_v2(p + 4), 1);
  WANT(cuMemFree_v2(p), 0);
  WANT(cuMemFree_v2(p), 1);
  WANT(cuMemcpyHtoD_v2(p, h, 8), 1);
  WANT(cuMemAllocAsync(&p, 100, NULL), 0);
  WANT(cuMemFreeAsync(p, NULL), 0);
  WANT(cuMemFreeAsync(p, NULL), 1);
  WANT(cuMemAllocManaged(&p, 64, 1), 0);
  strcpy((char *)(uintptr_t)p, "managed");
  WANT(cuMemcpyDtoH_v2(h, p, 8), 0);
  WANT(strcmp(h, "managed"), 0);
  WANT(cuMemFree_v2(p), 0);
  WANT(cuMemHostRegister_v2(h, sizeof h, 0), 0);
  WANT(cuMemHostRegister_v2(h, sizeof h, 0), 712);
  WANT(cuMemHostUnregister(h), 0);
  WANT(cuMemHostUnregister(h), 713);
  end();
}

static void slow(void *flag) {
  usleep(30000);
  *(volatile int *)flag = 1;
}

static void test_streams(void) {
  void *a, *b, *e1, *e2;
  int flag = 0, one = 1, h[64];
  float ms = -1;
  begin();
  dptr p = memory(sizeof h);
  void *args[] = {&p, &one};
  WANT(cuStreamCreate(&a, 1), 0);
  WANT(cuStreamCreate(&b, 1), 0);
  WANT(cuEventCreate(&e1, 0), 0);
  WANT(cuEventCreate(&e2, 0), 0);
  WANT(cuEventQuery(e1), 0); // never recorded
  WANT(cuEventElapsedTime(&ms, e1, e2), 400);
  WANT(cuEventRecord(e1, a), 0);
  WANT(cuLaunchHostFunc(a, slow, &flag), 0);
  WANT(cuEventRecord(e2, a), 0);
  WANT(cuStreamQuery(a), 600);
  WANT(cuEventQuery(e2), 600);
  WANT(cuStreamQuery(b), 0);
  WANT(cuStreamWaitEvent(b, e2, 0), 0);
  WANT(launch("add", 1, 64, 0, b, args), 0);
  WANT(cuStreamSynchronize(b), 0);
  WANT(flag, 1);
  WANT(cuEventElapsedTime(&ms, e1, e2), 0);
  WANT(ms >= 30 && ms < 5000, 1);
  // The default stream waits for a blocking stream, not for the others.
  void *blocking;
  flag = 0;
  WANT(cuStreamCreate(&blocking, 0), 0);
  WANT(cuLaunchHostFunc(blocking, slow, &flag), 0);
  WANT(launch("add", 1, 64, 0, NULL, args), 0);
  WANT(cuStreamSynchronize(NULL), 0);
  WANT(flag, 1);
  WANT(cuMemcpyDtoH_v2(h, p, sizeof h), 0);
  WANT(h[63], 2);
  WANT(cuStreamDestroy_v2(blocking), 0);
  WANT(cuStreamDestroy_v2(blocking), 400);
  WANT(cuStreamDestroy_v2(a), 0);
  WANT(cuEventDestroy_v2(e1), 0);
  end(); // b and e2 go with the context
}

static void test_graphs(void) {
  void *a, *b, *e, *g = NULL, *x = NULL, *g2;
  int one = 1, two = 2, h[64], result = -1;
  begin();
  dptr p = memory(sizeof h), q;
  void *args[] = {&p, &one}, *others[] = {&p, &two};
  WANT(cuStreamCreate(&a, 1), 0);
  WANT(cuStreamCreate(&b, 1), 0);
  WANT(cuEventCreate(&e, 2), 0);
  WANT(cuStreamBeginCapture_v2(NULL, 0), 900);
  WANT(cuStreamBeginCapture_v2(a, 2), 0);
  WANT(launch("add", 1, 64, 0, a, args), 0);
  WANT(cuEventRecord(e, a), 0);
  WANT(cuStreamWaitEvent(b, e, 0), 0);
  WANT(launch("add", 1, 64, 0, b, args), 0);
  WANT(cuEventRecord(e, b), 0);
  WANT(cuEventQuery(e), 907);
  WANT(cuStreamWaitEvent(a, e, 0), 0);
  WANT(cuStreamEndCapture(a, &g), 0);
  WANT(cuGraphInstantiateWithFlags(&x, g, 0), 0);
  WANT(cuGraphDestroy(g), 0);
  WANT(cuMemcpyDtoH_v2(h, p, sizeof h), 0);
  WANT(h[0], 0); // recorded work does not run
  for (int i = 0; i < 3; i++)
    WANT(cuGraphLaunch(x, a), 0);
  WANT(cuStreamSynchronize(a), 0);
  WANT(cuMemcpyDtoH_v2(h, p, sizeof h), 0);
  WANT(h[63], 6);
  WANT(cuStreamBeginCapture_v2(a, 2), 0);
  WANT(launch("add", 1, 64, 0, a, others), 0);
  WANT(launch("add", 1, 64, 0, a, others), 0);
  WANT(cuStreamEndCapture(a, &g2), 0);
  WANT(cuGraphExecUpdate(x, g2, NULL, &result), 0);
  WANT(cuGraphDestroy(g2), 0);
  WANT(cuGraphLaunch(x, a), 0);
  WANT(cuStreamSynchronize(a), 0);
  WANT(cuMemcpyDtoH_v2(h, p, sizeof h), 0);
  WANT(h[63], 10);
  WANT(cuStreamBeginCapture_v2(a, 0), 0);
  WANT(cuMemAlloc_v2(&q, 16), 900); // invalidates the recording
  WANT(cuStreamEndCapture(a, &g), 901);
  WANT(cuStreamBeginCapture_v2(a, 0), 0);
  WANT(cuStreamSynchronize(a), 900);
  WANT(cuStreamEndCapture(a, &g), 901);
  WANT(cuGraphExecDestroy(x), 0);
  end();
}

static void test_peers(void) {
  void *other;
  int h[4] = {1, 2, 3, 4}, back[4] = {0};
  begin();
  dptr p = memory(sizeof h), q;
  WANT(cuMemcpyHtoD_v2(p, h, sizeof h), 0);
  WANT(cuDevicePrimaryCtxRetain(&other, 1), 0);
  WANT(cuCtxSetCurrent(other), 0);
  q = memory(sizeof h);
  WANT(cuCtxEnablePeerAccess(context, 0), 0);
  WANT(cuCtxEnablePeerAccess(context, 0), 704);
  WANT(cuMemcpyPeerAsync(q, other, p, context, sizeof h, NULL), 0);
  WANT(cuMemcpyDtoH_v2(back, q, sizeof back), 0);
  WANT(back[3], 4);
  WANT(cuMemFree_v2(q), 0);
  WANT(cuDevicePrimaryCtxRelease_v2(1), 0);
  WANT(cuMemAlloc_v2(&q, 4), 709);
  WANT(cuCtxSetCurrent(context), 0);
  end();
}

// wrong runs a kernel with a fault, and checks that every call returns the error until the context
// is reset.
static void wrong(const char *name, int code, dptr p, long i) {
  dptr q;
  void *args[] = {&p, &i};
  WANT(launch(name, 1, 64, 0, NULL, args), 0);
  int got = cuCtxSynchronize();
  if (got != code) {
    printf("%s(%ld): %d, not %d\n", name, i, got, code);
    failures++;
  }
  WANT(cuMemAlloc_v2(&q, 4), code);
  WANT(cuCtxSynchronize(), code);
  WANT(cuDevicePrimaryCtxReset_v2(0), 0);
  WANT(cuCtxSynchronize(), 0);
  WANT(cuModuleLoadData(&module, image), 0);
}

static void test_errors(void) {
  begin();
  wrong("diverge", 719, memory(256), 0);
  wrong("leave", 719, memory(256), 0);
  wrong("lonely", 719, memory(256), 0);
  wrong("after", 700, memory(256), 64); // first int after
  wrong("after", 700, memory(260), 65); // in the padding of the alignment
  wrong("after", 700, memory(256), -1); // before
  wrong("after", 700, memory(256), 1 << 20);
  wrong("nothing", 700, memory(256), 0);
  wrong("trap", 719, memory(256), 0);
  wrong("fail", 710, memory(256), 0);
  dptr p = memory(256);
  WANT(cuMemFree_v2(p), 0);
  wrong("after", 700, p, 0); // freed
  end();
}

static void test_faults(void) {
  dptr p, q;
  void *s, *m, *f;
  int one = 1, n = 0;
  begin();
  p = memory(256);
  void *args[] = {&p, &one};
  WANT(control("nonsense:1"), -1);
  WANT(control("alloc:2"), 0);
  WANT(cuMemAlloc_v2(&q, 16), 0);
  WANT(cuMemFree_v2(q), 0);
  WANT(cuMemAlloc_v2(&q, 16), 2);
  WANT(cuMemAlloc_v2(&q, 16), 0);
  WANT(count("calls:alloc"), 3);
  control("launch:2=719,copy:1+,stream:1,load:1,sync:1");
  WANT(launch("add", 1, 64, 0, NULL, args), 0);
  WANT(launch("add", 1, 64, 0, NULL, args), 719);
  WANT(cuMemcpyDtoH_v2(&n, p, 4), 999);
  WANT(cuMemcpyDtoH_v2(&n, p, 4), 999);
  WANT(cuStreamCreate(&s, 0), 2);
  WANT(cuModuleLoadData(&m, image), 200);
  WANT(cuStreamSynchronize(NULL), 999);
  control("launch-late:2");
  WANT(launch("add", 1, 64, 0, NULL, args), 0);
  WANT(cuStreamSynchronize(NULL), 0);
  WANT(launch("add", 1, 64, 0, NULL, args), 0);
  WANT(cuStreamSynchronize(NULL), 719);
  control("");
  WANT(cuDevicePrimaryCtxReset_v2(0), 0);
  control("lost:2");
  WANT(cuMemAlloc_v2(&p, 16), 0);
  WANT(cuMemAlloc_v2(&q, 16), 214);
  WANT(cuCtxSynchronize(), 214);
  control("symbol:cuMemAllocAsync,driver:11000,devices:1");
  WANT(cuDriverGetVersion(&n), 0);
  WANT(n, 11000);
  WANT(cuDeviceGetCount(&n), 0);
  WANT(n, 1);
  WANT(cuGetProcAddress("cuMemAllocAsync", &f, 11000, 0), 500);
  WANT(cuGetProcAddress("cuMemAlloc", &f, 11000, 0), 0);
  WANT(f == *(void **)&cuMemAlloc_v2, 1);
  control("devices:0");
  WANT(cuInit(0), 100);
  control("");
  end();
}

int main(int argc, char **argv) {
  static char text[1 << 16];
  FILE *file = argc == 3 ? fopen(argv[2], "r") : NULL;
  if (file == NULL || fread(text, 1, sizeof text - 1, file) == 0)
    return 2;
  fclose(file);
  open_libraries(argv[1]);
  dptr p;
  WANT(cuMemAlloc_v2(&p, 4), 3); // not initialized
  WANT(cuInit(0), 0);
  WANT(cuMemAlloc_v2(&p, 4), 201); // no context
  test_compiler(text);
  test_images();
  test_kernels();
  test_limits();
  test_memory();
  test_streams();
  test_graphs();
  test_peers();
  test_errors();
  test_faults();
  free(image);
  printf("%s\n", failures == 0 ? "ok" : "failed");
  return failures != 0;
}
