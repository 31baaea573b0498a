// Declarations of the parts of CUDA and HIP that renderings use (see prelude/cuda.h and hip.h), so
// that a C++ compiler can check a rendering on machines without the vendors' compilers. Nothing
// here runs.
#include <math.h>
#include <stdio.h>
#include <string.h>

#define __global__
#define __device__
#define __constant__
#define __shared__
#define __forceinline__ inline
#define __launch_bounds__(n)

struct standin_dim { unsigned x, y, z; };
extern const standin_dim threadIdx, blockIdx, blockDim, gridDim;
extern const int warpSize;
void __syncthreads();
void __threadfence();
void __threadfence_block();

#define STANDIN_ATOMIC(name) \
  unsigned name(unsigned *, unsigned); \
  unsigned long long name(unsigned long long *, unsigned long long);
STANDIN_ATOMIC(atomicAdd) STANDIN_ATOMIC(atomicExch) STANDIN_ATOMIC(atomicAnd)
STANDIN_ATOMIC(atomicOr) STANDIN_ATOMIC(atomicXor)
unsigned atomicCAS(unsigned *, unsigned, unsigned);
unsigned long long atomicCAS(unsigned long long *, unsigned long long, unsigned long long);
int atomicMin(int *, int), atomicMax(int *, int);
unsigned atomicMin(unsigned *, unsigned), atomicMax(unsigned *, unsigned);

int __clz(int), __clzll(long long), __popcll(unsigned long long);
long long __mul64hi(long long, long long);
unsigned long long __umul64hi(unsigned long long, unsigned long long);
float rsqrtf(float), __sinf(float), __cosf(float), __tanf(float), __expf(float), __exp10f(float),
    __logf(float), __log2f(float), __log10f(float), __powf(float, float), __fdividef(float, float);
double rsqrt(double);

// CUDA
int __shfl_sync(unsigned, int, int), __all_sync(unsigned, int), __any_sync(unsigned, int);
void __syncwarp(unsigned);
// HIP
int __shfl(int, int), __all(int), __any(int);
