// saxpy_hip.c: an ordinary program for AMD's HIP and hipRTC, compiled with their public headers.
// Nothing in it is specific to the simulation. It prints "ok" if y = a*x + y is right.

#include <hip/hip_runtime_api.h>
#include <hip/hiprtc.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                \
  do {                                                                                             \
    hipError_t r_ = (call);                                                                        \
    if (r_ != hipSuccess) {                                                                        \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, hipGetErrorName(r_));          \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

static const char *source =
    "template <typename T>\n"
    "__global__ void scale(T *y, T f, size_t n) {\n"
    "  size_t i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) y[i] *= f;\n"
    "}\n"
    "extern \"C\" __global__ void saxpy(float a, const float *x, float *y, size_t n) {\n"
    "  size_t i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) y[i] = a * x[i] + y[i];\n"
    "}\n"
    "extern \"C\" __global__ void waves(unsigned long long *votes, int *sums) {\n"
    "  int lane = threadIdx.x % warpSize, sum = lane;\n"
    "  for (int d = warpSize / 2; d > 0; d /= 2) sum += __shfl_down(sum, d);\n"
    "  votes[threadIdx.x] = __ballot(lane % 2);\n"
    "  sums[threadIdx.x] = __shfl(sum, 0);\n"
    "}\n";

static char *compile(char **lowered, const char *arch) {
  hiprtcProgram program;
  char target[300];
  snprintf(target, sizeof target, "--offload-arch=%s", arch);
  const char *options[] = {target, "-ffp-contract=off"};
  hiprtcCreateProgram(&program, source, "saxpy.hip", 0, NULL, NULL);
  hiprtcAddNameExpression(program, "scale<float>");
  hiprtcResult r = hiprtcCompileProgram(program, 2, options);
  size_t bytes;
  hiprtcGetProgramLogSize(program, &bytes);
  char *log = malloc(bytes);
  hiprtcGetProgramLog(program, log);
  if (r != HIPRTC_SUCCESS) {
    fprintf(stderr, "%s\n%s", hiprtcGetErrorString(r), log);
    exit(1);
  }
  free(log);
  const char *name;
  hiprtcGetLoweredName(program, "scale<float>", &name);
  *lowered = malloc(256);
  snprintf(*lowered, 256, "%s", name);
  hiprtcGetCodeSize(program, &bytes);
  char *code = malloc(bytes);
  hiprtcGetCode(program, code);
  hiprtcDestroyProgram(&program);
  return code;
}

enum { N = 10000 };

static void saxpy(hipModule_t module, const char *lowered) {
  hipFunction_t saxpy, scale;
  CHECK(hipModuleGetFunction(&saxpy, module, "saxpy"));
  CHECK(hipModuleGetFunction(&scale, module, lowered));
  float *x, *y, *dx, *dy, a = 2, f = 10, ms;
  size_t n = N, bytes = N * sizeof(float);
  CHECK(hipHostMalloc((void **)&x, bytes, 0));
  CHECK(hipHostMalloc((void **)&y, bytes, 0));
  for (int i = 0; i < N; i++) {
    x[i] = (float)i;
    y[i] = 1;
  }
  CHECK(hipMalloc((void **)&dx, bytes));
  CHECK(hipMalloc((void **)&dy, bytes));
  hipStream_t stream;
  hipEvent_t begin, end;
  CHECK(hipStreamCreate(&stream));
  CHECK(hipEventCreate(&begin));
  CHECK(hipEventCreate(&end));
  CHECK(hipMemcpyAsync(dx, x, bytes, hipMemcpyHostToDevice, stream));
  CHECK(hipMemcpyAsync(dy, y, bytes, hipMemcpyHostToDevice, stream));
  CHECK(hipEventRecord(begin, stream));
  void *args[] = {&a, &dx, &dy, &n}, *more[] = {&dy, &f, &n};
  CHECK(hipModuleLaunchKernel(saxpy, (N + 255) / 256, 1, 1, 256, 1, 1, 0, stream, args, NULL));
  CHECK(hipModuleLaunchKernel(scale, (N + 255) / 256, 1, 1, 256, 1, 1, 0, stream, more, NULL));
  CHECK(hipEventRecord(end, stream));
  CHECK(hipMemcpyAsync(y, dy, bytes, hipMemcpyDeviceToHost, stream));
  CHECK(hipStreamSynchronize(stream));
  CHECK(hipEventElapsedTime(&ms, begin, end));
  for (int i = 0; i < N; i++)
    if (y[i] != 10 * (2 * (float)i + 1)) {
      fprintf(stderr, "y[%d] is %g\n", i, y[i]);
      exit(1);
    }
  CHECK(hipEventDestroy(begin));
  CHECK(hipEventDestroy(end));
  CHECK(hipStreamDestroy(stream));
  CHECK(hipFree(dx));
  CHECK(hipFree(dy));
  CHECK(hipHostFree(x));
  CHECK(hipHostFree(y));
}

static void waves(hipModule_t module, int wave) {
  enum { items = 128 };
  hipFunction_t f;
  unsigned long long *votes, got[items];
  int *sums, sum[items];
  CHECK(hipModuleGetFunction(&f, module, "waves"));
  CHECK(hipMalloc((void **)&votes, sizeof got));
  CHECK(hipMalloc((void **)&sums, sizeof sum));
  void *args[] = {&votes, &sums};
  CHECK(hipModuleLaunchKernel(f, 1, 1, 1, items, 1, 1, 0, NULL, args, NULL));
  CHECK(hipMemcpy(got, votes, sizeof got, hipMemcpyDeviceToHost));
  CHECK(hipMemcpy(sum, sums, sizeof sum, hipMemcpyDeviceToHost));
  unsigned long long want = wave == 64 ? 0xaaaaaaaaaaaaaaaaull : 0xaaaaaaaaull;
  for (int i = 0; i < items; i++)
    if (got[i] != want || sum[i] != wave * (wave - 1) / 2) {
      fprintf(stderr, "item %d: %llx %d\n", i, got[i], sum[i]);
      exit(1);
    }
  CHECK(hipFree(votes));
  CHECK(hipFree(sums));
}

int main(void) {
  int count = 0;
  CHECK(hipGetDeviceCount(&count));
  hipDeviceProp_t p;
  for (int d = 0; d < count; d++) {
    CHECK(hipSetDevice(d));
    CHECK(hipGetDeviceProperties(&p, d));
    char *lowered, *code = compile(&lowered, p.gcnArchName);
    hipModule_t module;
    CHECK(hipModuleLoadData(&module, code));
    saxpy(module, lowered);
    waves(module, p.warpSize);
    CHECK(hipModuleUnload(module));
    free(code);
    free(lowered);
  }
  if (hipMalloc(NULL, 1) != hipErrorInvalidValue || hipGetLastError() != hipErrorInvalidValue ||
      hipGetLastError() != hipSuccess) {
    fprintf(stderr, "errors are not kept\n");
    return 1;
  }
  printf("ok on %d x %s\n", count, p.gcnArchName);
  return 0;
}
