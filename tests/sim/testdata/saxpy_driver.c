// saxpy_driver.c: an ordinary program for NVIDIA's driver API and NVRTC, compiled with their public
// headers. Nothing in it is specific to the simulation. It prints "ok" if y = a*x + y is right.

#include <cuda.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                \
  do {                                                                                             \
    CUresult r_ = (call);                                                                          \
    if (r_ != CUDA_SUCCESS) {                                                                      \
      const char *name_ = "?";                                                                     \
      cuGetErrorName(r_, &name_);                                                                  \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, name_);                        \
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
    "}\n";

static char *compile(char **lowered) {
  nvrtcProgram program;
  const char *options[] = {"--gpu-architecture=compute_70", "--fmad=false"};
  nvrtcCreateProgram(&program, source, "saxpy.cu", 0, NULL, NULL);
  nvrtcAddNameExpression(program, "scale<float>");
  nvrtcResult r = nvrtcCompileProgram(program, 2, options);
  size_t bytes;
  nvrtcGetProgramLogSize(program, &bytes);
  char *log = malloc(bytes);
  nvrtcGetProgramLog(program, log);
  if (r != NVRTC_SUCCESS) {
    fprintf(stderr, "%s\n%s", nvrtcGetErrorString(r), log);
    exit(1);
  }
  free(log);
  const char *name;
  nvrtcGetLoweredName(program, "scale<float>", &name);
  *lowered = malloc(256);
  snprintf(*lowered, 256, "%s", name);
  nvrtcGetPTXSize(program, &bytes);
  char *ptx = malloc(bytes);
  nvrtcGetPTX(program, ptx);
  nvrtcDestroyProgram(&program);
  return ptx;
}

int main(void) {
  enum { N = 100000 };
  size_t n = N;
  float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y), a = 2.5f, f = 2;
  for (int i = 0; i < N; i++)
    x[i] = (float)i, y[i] = (float)(2 * i);

  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction saxpy, scale;
  CUstream stream;
  CUdeviceptr dx, dy;
  char *lowered, *ptx = compile(&lowered);
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoadData(&module, ptx));
  CHECK(cuModuleGetFunction(&saxpy, module, "saxpy"));
  CHECK(cuModuleGetFunction(&scale, module, lowered));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuMemAlloc(&dx, N * sizeof *x));
  CHECK(cuMemAlloc(&dy, N * sizeof *y));
  CHECK(cuMemcpyHtoDAsync(dx, x, N * sizeof *x, stream));
  CHECK(cuMemcpyHtoDAsync(dy, y, N * sizeof *y, stream));
  void *args[] = {&a, &dx, &dy, &n}, *scaled[] = {&dy, &f, &n};
  CHECK(cuLaunchKernel(saxpy, (N + 255) / 256, 1, 1, 256, 1, 1, 0, stream, args, NULL));
  CHECK(cuLaunchKernel(scale, (N + 127) / 128, 1, 1, 128, 1, 1, 0, stream, scaled, NULL));
  CHECK(cuMemcpyDtoHAsync(y, dy, N * sizeof *y, stream));
  CHECK(cuStreamSynchronize(stream));

  int bad = 0;
  for (int i = 0; i < N; i++)
    bad += y[i] != 2 * (2.5f * (float)i + (float)(2 * i));
  CHECK(cuMemFree(dx));
  CHECK(cuMemFree(dy));
  CHECK(cuStreamDestroy(stream));
  CHECK(cuModuleUnload(module));
  CHECK(cuDevicePrimaryCtxRelease(device));
  free(x);
  free(y);
  free(ptx);
  free(lowered);
  puts(bad == 0 ? "ok" : "wrong");
  return bad != 0;
}
