// cuda_fake.c stands in for libcuda, NVRTC, the PTX compiler and cuBLAS in the test of csrc/cuda:
// all that the shim calls, done at once on host memory. Any call can be made to fail, and all that
// is alive is counted. -DOLD leaves out what the shim can do without, -DBROKEN one symbol that it
// cannot.

#include <stdlib.h>
#include <string.h>

#include "../cuda/api.h"

static long calls, fail_at, alive;
static int fail_code, stuck, retained;

// fake_control makes the nth call from now on fail with a code; 700 stays until the context is
// reset. fake_alive counts objects, fake_calls calls.
void fake_control(long nth, int code) {
  calls = 0;
  fail_at = nth;
  fail_code = code;
  stuck = 0;
}
long fake_alive(void) { return alive; }
long fake_calls(void) { return calls; }

static int next(void) {
  if (stuck)
    return stuck;
  if (++calls != fail_at)
    return 0;
  if (fail_code == 700)
    stuck = 700;
  return fail_code;
}

#define STEP                                                                                       \
  do {                                                                                             \
    int code = next();                                                                             \
    if (code != 0)                                                                                 \
      return code;                                                                                 \
  } while (0)

#define FN(name, params) int name params
#define UNUSED(x) (void)(x)

struct CUstream_st {
  int capturing;
  long recorded;
};
struct CUevent_st {
  int asked;
};
struct CUgraph_st {
  long nodes;
};
struct CUgraphExec_st {
  long nodes;
};
struct CUmod_st {
  char text[64];
};
static struct CUfunc_st { int dynamic; } function;
static struct CUctx_st { int unused; } context;

static void *born(size_t bytes) {
  alive++;
  return calloc(1, bytes);
}
static void died(void *p) {
  alive--;
  free(p);
}

const char *cuda_name = "CUDA_ERROR_OF_A_FAKE";
FN(cuGetErrorName, (int code, const char **text)) {
  *text = code == 999 ? NULL : cuda_name;
  return code == 999;
}
FN(cuGetErrorString, (int code, const char **text)) {
  *text = code == 999 ? NULL : "as asked for";
  return code == 999;
}
FN(cuInit, (unsigned flags)) {
  STEP;
  return flags != 0;
}
FN(cuDriverGetVersion, (int *version)) {
  STEP;
  *version = 12020;
  return 0;
}
FN(cuDeviceGetCount, (int *count)) {
  STEP;
  *count = 2;
  return 0;
}
FN(cuDeviceGet, (CUdevice * device, int ordinal)) {
  STEP;
  *device = ordinal;
  return ordinal < 0 || ordinal > 1 ? 101 : 0;
}
FN(cuDeviceGetName, (char *name, int bytes, CUdevice device)) {
  UNUSED(device);
  STEP;
  memset(name, 'N', (size_t)bytes - 1);
  name[bytes - 1] = '\0';
  return 0;
}
FN(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device)) {
  UNUSED(device);
  STEP;
  *bytes = (size_t)1 << 33;
  return 0;
}
FN(cuDeviceGetAttribute, (int *value, int attribute, CUdevice device)) {
  UNUSED(device);
  STEP;
  switch (attribute) {
  case ATTR_SHARED_PER_BLOCK:
    *value = 49152;
    return 0;
  case ATTR_SHARED_PER_BLOCK_OPTIN:
    *value = 101376;
    return 0;
  case ATTR_CAPABILITY_MAJOR:
    *value = 8;
    return 0;
  case ATTR_CAPABILITY_MINOR:
    *value = 6;
    return 0;
  case ATTR_INTEGRATED:
    *value = 0;
    return 0;
  }
  *value = attribute;
  return 0;
}
FN(cuDevicePrimaryCtxRetain, (CUcontext * c, CUdevice device)) {
  UNUSED(device);
  STEP;
  *c = &context;
  alive++;
  retained++;
  return 0;
}
FN(cuDevicePrimaryCtxRelease_v2, (CUdevice device)) {
  UNUSED(device);
  alive--;
  retained--;
  STEP;
  return 0;
}
FN(cuDevicePrimaryCtxReset_v2, (CUdevice device)) {
  UNUSED(device);
  stuck = 0;
  return 0;
}
FN(cuCtxSetCurrent, (CUcontext c)) {
  if (c == NULL)
    return 0;
  STEP;
  return 0;
}
FN(cuMemGetInfo_v2, (size_t * left, size_t *total)) {
  STEP;
  *left = 1;
  *total = 2;
  return 0;
}
static int take(void **p, size_t bytes) {
  *p = born(bytes);
  return *p == NULL ? 2 : 0;
}
FN(cuMemAlloc_v2_, (CUdeviceptr * address, size_t bytes)) {
  STEP;
  void *p;
  int code = take(&p, bytes);
  *address = (CUdeviceptr)(uintptr_t)p;
  return code;
}
#ifndef BROKEN
FN(cuMemAlloc_v2, (CUdeviceptr * address, size_t bytes)) { return cuMemAlloc_v2_(address, bytes); }
#endif
FN(cuMemFree_v2, (CUdeviceptr address)) {
  died((void *)(uintptr_t)address);
  STEP;
  return 0;
}
FN(cuMemHostAlloc, (void **host, size_t bytes, unsigned flags)) {
  UNUSED(flags);
  STEP;
  return take(host, bytes);
}
FN(cuMemHostGetDevicePointer_v2, (CUdeviceptr * address, void *host, unsigned flags)) {
  UNUSED(flags);
  STEP;
  *address = (CUdeviceptr)(uintptr_t)host;
  return 0;
}
FN(cuMemFreeHost, (void *host)) {
  died(host);
  STEP;
  return 0;
}

// -- streams --

FN(cuStreamCreateWithPriority, (CUstream * s, unsigned flags, int priority)) {
  if (flags != NON_BLOCKING || priority < -2 || priority > 0)
    return 1;
  STEP;
  *s = born(sizeof **s);
  return 0;
}
FN(cuStreamDestroy_v2, (CUstream s)) {
  died(s);
  STEP;
  return 0;
}
static int queries;
FN(cuStreamQuery, (CUstream s)) {
  if (s->capturing)
    return 900;
  STEP;
  return ++queries % 2 ? CU_NOT_READY : 0;
}
FN(cuStreamSynchronize, (CUstream s)) {
  if (s->capturing)
    return 900;
  STEP;
  return 0;
}
FN(cuStreamWaitEvent, (CUstream s, CUevent e, unsigned flags)) {
  UNUSED(e);
  if (s->capturing)
    return 905;
  STEP;
  return flags != 0;
}
FN(cuEventCreate, (CUevent * e, unsigned flags)) {
  UNUSED(flags);
  STEP;
  *e = born(sizeof **e);
  return 0;
}
FN(cuEventDestroy_v2, (CUevent e)) {
  died(e);
  STEP;
  return 0;
}
FN(cuEventRecord, (CUevent e, CUstream s)) {
  if (s->capturing)
    return 900;
  STEP;
  e->asked = 0;
  return 0;
}
FN(cuEventQuery, (CUevent e)) {
  STEP;
  return e->asked++ ? 0 : CU_NOT_READY;
}
FN(cuEventSynchronize, (CUevent e)) {
  UNUSED(e);
  STEP;
  return 0;
}
FN(cuEventElapsedTime, (float *ms, CUevent from, CUevent to)) {
  UNUSED(from);
  UNUSED(to);
  STEP;
  *ms = 1.5f;
  return 0;
}

// work is a call that a capturing stream records and does not do.
static int work(CUstream s, int *does) {
  STEP;
  *does = !s->capturing;
  s->recorded += s->capturing;
  return 0;
}

static int move(void *dst, const void *src, size_t bytes, CUstream s) {
  int does, code = work(s, &does);
  if (code == 0 && does)
    memmove(dst, src, bytes);
  return code;
}
#define AT(address) ((unsigned char *)(uintptr_t)(address))
FN(cuMemcpyHtoDAsync_v2, (CUdeviceptr dst, const void *src, size_t bytes, CUstream s)) {
  return move(AT(dst), src, bytes, s);
}
FN(cuMemcpyDtoHAsync_v2, (void *dst, CUdeviceptr src, size_t bytes, CUstream s)) {
  return move(dst, AT(src), bytes, s);
}
FN(cuMemcpyDtoDAsync_v2, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream s)) {
  if (dst < src + bytes && src < dst + bytes)
    return 1; // they overlap
  return move(AT(dst), AT(src), bytes, s);
}
static int spread(CUdeviceptr dst, size_t pitch, const void *unit, size_t n, size_t count,
                  CUstream s) {
  if (dst % n != 0 || pitch % n != 0)
    return 1;
  int does, code = work(s, &does);
  for (size_t i = 0; i < count && code == 0 && does; i++)
    memcpy(AT(dst) + i * pitch, unit, n);
  return code;
}
FN(cuMemsetD8Async, (CUdeviceptr dst, unsigned char v, size_t count, CUstream s)) {
  return spread(dst, 1, &v, 1, count, s);
}
FN(cuMemsetD16Async, (CUdeviceptr dst, unsigned short v, size_t count, CUstream s)) {
  return spread(dst, 2, &v, 2, count, s);
}
FN(cuMemsetD32Async, (CUdeviceptr dst, unsigned v, size_t count, CUstream s)) {
  return spread(dst, 4, &v, 4, count, s);
}

// -- programs --

FN(cuModuleLoadDataEx,
   (CUmodule * m, const void *image, unsigned count, int *options, void **values)) {
  STEP;
  for (unsigned i = 0; i < count; i++)
    if (options[i] == JIT_ERROR_LOG)
      strcpy(values[i], "said the assembler");
  if (memcmp(image, "bad", 3) == 0)
    return 218;
  *m = born(sizeof **m);
  strncpy((*m)->text, image, sizeof(*m)->text - 1); // reads up to a NUL, as for PTX
  return 0;
}
FN(cuModuleUnload, (CUmodule m)) {
  died(m);
  STEP;
  return 0;
}
FN(cuModuleGetFunction, (CUfunction * f, CUmodule m, const char *name)) {
  UNUSED(m);
  STEP;
  *f = &function;
  return strcmp(name, "kernel") == 0 ? 0 : 500;
}
FN(cuFuncGetAttribute, (int *value, int attribute, CUfunction f)) {
  UNUSED(f);
  STEP;
  *value = attribute == FUNC_SHARED_BYTES ? 1024 : 10 + attribute;
  return 0;
}
FN(cuLaunchKernel, (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                    unsigned bz, unsigned shared, CUstream s, void **params, void **extra)) {
  UNUSED(f);
  if (bx * by * bz > 1024 || extra != NULL)
    return 1;
  int does, code = work(s, &does);
  if (code != 0 || !does)
    return code;
  // kernel(out, value, local, local): tells what it was given
  uint64_t *out = *(uint64_t **)params[0];
  memcpy(&out[0], params[1], 4);
  memcpy(&out[1], params[2], 4);
  memcpy(&out[2], params[3], 4);
  out[3] = shared;
  out[4] = (uint64_t)gx * 10000 + gy * 100 + gz;
  return 0;
}

#ifndef OLD
FN(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device)) {
  UNUSED(device);
  for (int i = 0; i < 16; i++)
    uuid->bytes[i] = (unsigned char)(i * 17);
  return 0;
}
FN(cuDeviceGetPCIBusId, (char *id, int bytes, CUdevice device)) {
  UNUSED(bytes);
  UNUSED(device);
  strcpy(id, "0000:3B:00.0");
  return 0;
}
FN(cuCtxGetStreamPriorityRange, (int *lowest, int *highest)) {
  STEP;
  *lowest = 0;
  *highest = -2;
  return 0;
}
FN(cuMemAllocManaged, (CUdeviceptr * address, size_t bytes, unsigned flags)) {
  return flags != ATTACH_GLOBAL ? 1 : cuMemAlloc_v2_(address, bytes);
}
FN(cuMemAllocAsync, (CUdeviceptr * address, size_t bytes, CUstream s)) {
  UNUSED(s);
  return cuMemAlloc_v2_(address, bytes);
}
FN(cuMemFreeAsync, (CUdeviceptr address, CUstream s)) {
  UNUSED(s);
  died(AT(address));
  STEP;
  return 0;
}
FN(cuMemPrefetchAsync, (CUdeviceptr address, size_t bytes, CUdevice device, CUstream s)) {
  UNUSED(address);
  UNUSED(bytes);
  UNUSED(device);
  int does;
  return work(s, &does);
}
FN(cuMemcpyPeerAsync,
   (CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t bytes, CUstream s)) {
  UNUSED(to);
  UNUSED(from);
  return move(AT(dst), AT(src), bytes, s);
}
FN(cuDeviceCanAccessPeer, (int *can, CUdevice device, CUdevice peer)) {
  STEP;
  *can = device < peer;
  return 0;
}
static int enabled;
FN(cuCtxEnablePeerAccess, (CUcontext peer, unsigned flags)) {
  UNUSED(peer);
  UNUSED(flags);
  STEP;
  return enabled++ ? CU_PEER_ALREADY_ENABLED : 0;
}
FN(cuMemsetD2D8Async,
   (CUdeviceptr dst, size_t pitch, unsigned char v, size_t width, size_t height, CUstream s)) {
  return width != 1 ? 1 : spread(dst, pitch, &v, 1, height, s);
}
FN(cuMemsetD2D16Async,
   (CUdeviceptr dst, size_t pitch, unsigned short v, size_t width, size_t height, CUstream s)) {
  return width != 1 ? 1 : spread(dst, pitch, &v, 2, height, s);
}
FN(cuMemsetD2D32Async,
   (CUdeviceptr dst, size_t pitch, unsigned v, size_t width, size_t height, CUstream s)) {
  return width != 1 ? 1 : spread(dst, pitch, &v, 4, height, s);
}
FN(cuFuncSetAttribute, (CUfunction f, int attribute, int value)) {
  STEP;
  f->dynamic = value;
  return attribute != FUNC_MAX_DYNAMIC_SHARED;
}
FN(cuOccupancyMaxActiveBlocksPerMultiprocessor,
   (int *groups, CUfunction f, int group, size_t dynamic)) {
  UNUSED(f);
  STEP;
  *groups = 2048 / group - (int)(dynamic / 32768);
  return 0;
}
FN(cuOccupancyMaxPotentialBlockSize,
   (int *grid, int *group, CUfunction f, size_t (*of)(int), size_t dynamic, int limit)) {
  UNUSED(f);
  UNUSED(dynamic);
  STEP;
  *grid = 1;
  *group = 256;
  return of != NULL || limit != 0;
}
FN(cuStreamBeginCapture_v2, (CUstream s, int mode)) {
  STEP;
  s->capturing = mode == CAPTURE_RELAXED;
  s->recorded = 0;
  return mode != CAPTURE_RELAXED;
}
FN(cuStreamEndCapture, (CUstream s, CUgraph *g)) {
  if (!s->capturing)
    return 903;
  s->capturing = 0;
  *g = NULL;
  STEP;
  *g = born(sizeof **g);
  (*g)->nodes = s->recorded;
  return 0;
}
FN(cuGraphInstantiateWithFlags, (CUgraphExec * e, CUgraph g, unsigned long long flags)) {
  STEP;
  *e = born(sizeof **e);
  (*e)->nodes = g->nodes;
  return flags != 0;
}
FN(cuGraphExecUpdate_v2, (CUgraphExec e, CUgraph g, CUupdate *result)) {
  STEP;
  result->result = e->nodes == g->nodes ? 0 : 2;
  return e->nodes == g->nodes ? 0 : 910;
}
long fake_graph_nodes;
FN(cuGraphLaunch, (CUgraphExec e, CUstream s)) {
  int does, code = work(s, &does);
  fake_graph_nodes = e->nodes;
  return code;
}
FN(cuGraphExecDestroy, (CUgraphExec e)) {
  died(e);
  STEP;
  return 0;
}
FN(cuGraphDestroy, (CUgraph g)) {
  died(g);
  STEP;
  return 0;
}
#endif

// -- NVRTC --

struct nvrtc_program {
  char source[64];
  int cubin;
};

FN(nvrtcVersion, (int *major, int *minor)) {
  STEP;
  *major = 11;
  *minor = 0;
  return 0;
}
const char *nvrtcGetErrorString(int code) { return code == 6 ? "NVRTC_ERROR_COMPILATION" : NULL; }
FN(nvrtcCreateProgram, (nvrtcProgram * p, const char *source, const char *name, int count,
                        const char *const *headers, const char *const *names)) {
  if (name == NULL || count != 0 || headers != NULL || names != NULL)
    return 3;
  STEP;
  *p = born(sizeof **p);
  strncpy((*p)->source, source, sizeof(*p)->source - 1);
  return 0;
}
FN(nvrtcDestroyProgram, (nvrtcProgram * p)) {
  died(*p);
  *p = NULL;
  STEP;
  return 0;
}
FN(nvrtcCompileProgram, (nvrtcProgram p, int count, const char *const *options)) {
  STEP;
  for (int i = 0; i < count; i++) {
    if (strcmp(options[i], "--arch=sm") == 0)
      p->cubin = 1;
    if (strcmp(options[i], "--bad") == 0)
      return NVRTC_INVALID_OPTION;
  }
  return strcmp(p->source, "wrong") == 0 ? NVRTC_COMPILATION : 0;
}
FN(nvrtcGetPTXSize, (nvrtcProgram p, size_t *bytes)) {
  UNUSED(p);
  STEP;
  *bytes = 4;
  return 0;
}
FN(nvrtcGetPTX, (nvrtcProgram p, char *text)) {
  UNUSED(p);
  STEP;
  strcpy(text, "PTX");
  return 0;
}
FN(nvrtcGetProgramLogSize, (nvrtcProgram p, size_t *bytes)) {
  UNUSED(p);
  STEP;
  *bytes = 5;
  return 0;
}
FN(nvrtcGetProgramLog, (nvrtcProgram p, char *text)) {
  UNUSED(p);
  STEP;
  strcpy(text, "said");
  return 0;
}
#ifndef OLD
FN(nvrtcGetCUBINSize, (nvrtcProgram p, size_t *bytes)) {
  STEP;
  *bytes = p->cubin ? 6 : 0;
  return 0;
}
FN(nvrtcGetCUBIN, (nvrtcProgram p, char *code)) {
  UNUSED(p);
  STEP;
  memcpy(code, "cubin\n", 6);
  return 0;
}
FN(nvrtcGetNumSupportedArchs, (int *count)) {
  STEP;
  *count = 2;
  return 0;
}
FN(nvrtcGetSupportedArchs, (int *archs)) {
  STEP;
  archs[0] = 80;
  archs[1] = 90;
  return 0;
}
#endif

// -- cuBLAS: a plain product, by columns --

struct cublas_context {
  CUstream stream;
};

FN(cublasCreate_v2, (cublasHandle * h)) {
  STEP;
  *h = born(sizeof **h);
  return 0;
}
FN(cublasDestroy_v2, (cublasHandle h)) {
  died(h);
  return 0;
}
FN(cublasSetStream_v2, (cublasHandle h, CUstream s)) {
  STEP;
  h->stream = s;
  return 0;
}
FN(cublasSetPointerMode_v2, (cublasHandle h, int mode)) {
  UNUSED(h);
  STEP;
  return mode;
}
#define GEMM(name, T)                                                                              \
  FN(name, (cublasHandle h, int ta, int tb, int m, int n, int k, const T *alpha, const T *a,       \
            int lda, const T *b, int ldb, const T *beta, T *c, int ldc)) {                         \
    UNUSED(h);                                                                                     \
    STEP;                                                                                          \
    for (int i = 0; i < m; i++)                                                                    \
      for (int j = 0; j < n; j++) {                                                                \
        T sum = 0;                                                                                 \
        for (int l = 0; l < k; l++)                                                                \
          sum += (ta ? a[i * lda + l] : a[l * lda + i]) * (tb ? b[l * ldb + j] : b[j * ldb + l]);  \
        c[j * ldc + i] = *alpha * sum + *beta * c[j * ldc + i];                                    \
      }                                                                                            \
    return 0;                                                                                      \
  }
GEMM(cublasSgemm_v2, float)
GEMM(cublasDgemm_v2, double)
#ifndef OLD
FN(cublasSetMathMode, (cublasHandle h, int mode)) {
  UNUSED(h);
  return mode != CUBLAS_FULL_SUMS;
}
FN(cublasGemmEx, (cublasHandle h, int ta, int tb, int m, int n, int k, const void *alpha,
                  const void *a, int a_type, int lda, const void *b, int b_type, int ldb,
                  const void *beta, void *c, int c_type, int ldc, int compute, int algorithm)) {
  UNUSED(h), UNUSED(a), UNUSED(b), UNUSED(c), UNUSED(lda), UNUSED(ldb), UNUSED(ldc);
  UNUSED(ta), UNUSED(tb), UNUSED(m), UNUSED(n), UNUSED(k);
  STEP;
  return *(const float *)alpha != 1 || *(const float *)beta != 0 || a_type != CUDA_R_16F ||
         b_type != CUDA_R_16F || c_type != CUDA_R_16F || compute != CUBLAS_COMPUTE_32F ||
         algorithm != CUBLAS_DEFAULT_ALGORITHM;
}
#endif

// -- the PTX compiler --

struct nvptx_compiler {
  int verbose;
};

FN(nvPTXCompilerCreate, (nvptxCompiler * c, size_t bytes, const char *text)) {
  STEP;
  if (text[bytes - 1] != '\0')
    return 1;
  *c = born(sizeof **c);
  return 0;
}
FN(nvPTXCompilerDestroy, (nvptxCompiler * c)) {
  died(*c);
  return 0;
}
FN(nvPTXCompilerCompile, (nvptxCompiler c, int count, const char *const *options)) {
  STEP;
  c->verbose = count > 0 && strcmp(options[0], "--verbose") == 0;
  return count > 0 && strcmp(options[0], "--wrong") == 0;
}
FN(nvPTXCompilerGetCompiledProgramSize, (nvptxCompiler c, size_t *bytes)) {
  UNUSED(c);
  STEP;
  *bytes = 4;
  return 0;
}
FN(nvPTXCompilerGetCompiledProgram, (nvptxCompiler c, void *code)) {
  UNUSED(c);
  STEP;
  memcpy(code, "code", 4);
  return 0;
}
FN(nvPTXCompilerGetErrorLogSize, (nvptxCompiler c, size_t *bytes)) {
  UNUSED(c);
  STEP;
  *bytes = 6;
  return 0;
}
FN(nvPTXCompilerGetErrorLog, (nvptxCompiler c, char *text)) {
  UNUSED(c);
  STEP;
  strcpy(text, "wrong");
  return 0;
}
FN(nvPTXCompilerGetInfoLogSize, (nvptxCompiler c, size_t *bytes)) {
  STEP;
  *bytes = c->verbose ? 9 : 0;
  return 0;
}
FN(nvPTXCompilerGetInfoLog, (nvptxCompiler c, char *text)) {
  UNUSED(c);
  STEP;
  strcpy(text, "verbose.");
  return 0;
}
