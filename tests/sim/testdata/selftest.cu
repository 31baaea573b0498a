// selftest.cu: the kernels of selftest.c.

#include "offset.h"

extern __shared__ int whole[];
__constant__ int table[4] = {10, 20, 30, 40};
__device__ int counter;

template <int N> __global__ void fill(int *p) { p[blockIdx.x * blockDim.x + threadIdx.x] = N; }

extern "C" {
__global__ void identity(int *p) { p[blockIdx.x * blockDim.x + threadIdx.x] = blockIdx.x * blockDim.x + threadIdx.x; }

__global__ void add(int *p, int v) { p[blockIdx.x * blockDim.x + threadIdx.x] += v; }

__global__ void __launch_bounds__(256) reverse(int *p) {
  __shared__ int tile[256];
  tile[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}

__global__ void rotate(int *p, int by) {
  extern __shared__ __align__(16) unsigned char raw[];
  int *t = (int *)raw;
  t[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = t[(threadIdx.x + by) % blockDim.x];
}

__global__ void rotate_whole(int *p, int by) {
  whole[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = whole[(threadIdx.x + by) % blockDim.x];
}

// sum adds up a block the usual way: the last step is for one warp only.
__global__ void sum(int *out) {
  __shared__ int part[32];
  int v = threadIdx.x, lane = v % 32, warp = v / 32;
  for (int d = 16; d > 0; d /= 2)
    v += __shfl_down_sync(0xffffffffu, v, d);
  if (lane == 0)
    part[warp] = v;
  __syncthreads();
  if (warp == 0) {
    v = lane < blockDim.x / 32 ? part[lane] : 0;
    for (int d = 16; d > 0; d /= 2)
      v += __shfl_xor_sync(0xffffffffu, v, d);
    if (lane == 0)
      atomicAdd(out, v);
  }
}

// votes puts what a warp agreed on into one number.
__global__ void votes(int *p) {
  int i = threadIdx.x;
  int ok = __ballot_sync(~0u, i & 1) == 0xaaaaaaaau;
  ok += 2 * __any_sync(~0u, i == 40) + 4 * __all_sync(~0u, i < 32);
  ok += 8 * (__shfl_up_sync(~0u, i, 1) == (i % 32 ? i - 1 : i));
  ok += 16 * (__match_any_sync(~0u, i % 4) == 0x11111111u << i % 4);
  ok += 32 * (__reduce_add_sync(~0u, (unsigned)i % 32) == 496);
  if (i % 32 < 5)
    ok += 64 * (__shfl_sync(0x1fu, i, 4) == i - i % 32 + 4) + 128 * (__popc(__activemask()) == 5);
  p[i] = ok + 256 * (__syncthreads_count(i < 7) == 7);
}

__global__ void constants(int *p) {
  p[threadIdx.x] = table[threadIdx.x % 4] + OFFSET;
  atomicAdd(&counter, 1);
}

__global__ void half(float *p) {
  unsigned short h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(p[0]));
  asm("cvt.f32.f16 %0, %1;" : "=f"(p[1]) : "h"(h));
}

struct pair {
  char a;
  double b;
};
__global__ void structs(int *p, pair s, unsigned long long l, char c) { p[0] = s.a + (int)s.b + (int)l + c; }

__global__ void diverge(int *p) {
  if (threadIdx.x < 3)
    __syncthreads();
  p[threadIdx.x] = 1;
}
__global__ void leave(int *p) {
  if (threadIdx.x == 9)
    return;
  __syncthreads();
  p[threadIdx.x] = 1;
}
__global__ void lonely(int *p) {
  if (threadIdx.x == 0)
    p[0] = __shfl_sync(3, 1, 1);
  __syncthreads();
}
__global__ void after(int *p, long i) { p[i] = 1; }
__global__ void nothing(int *p) { *(volatile int *)0 = *p; }
__global__ void trap(int *p) { __trap(); }
__global__ void fail(int *p) { assert(p == 0); }
__global__ void say(int *p) {
  if (threadIdx.x == 0)
    printf("said %d %.1f %s\n", blockIdx.x, 0.5, "x");
}
}
