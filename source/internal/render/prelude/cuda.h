// cuda.h: the definitions for CUDA that the shared part of the prelude needs. NVRTC has no headers
// built in, and none is needed. The parts that CUDA and HIP share are gpu_math.h and gpu.h.
//
// The complete list of what CUDA and HIP renderings use of their languages, for compilers that
// imitate them:
//   __global__ __device__ __constant__ __shared__ (also extern, as `extern __shared__`),
//   __launch_bounds__(n), threadIdx blockIdx blockDim gridDim (x, y, z), warpSize, __syncthreads(),
//   __threadfence(), __threadfence_block(), memcpy, memset, printf;
//   atomicAdd atomicExch atomicCAS atomicAnd atomicOr atomicXor on unsigned and unsigned long long,
//   atomicMin atomicMax on int and unsigned; __clz(int) __clzll(long long)
//   __popcll(unsigned long long) __mul64hi(long long, long long) __umul64hi(unsigned long long, ...);
//   the functions of math.h in gpu_math.h, rsqrt, rsqrtf, exp10, exp10f, and of single precision
//   __sinf __cosf __tanf __expf __exp10f __logf __log2f __log10f __powf __fdividef.
// Of CUDA alone: __shfl_sync(mask, int, lane), __all_sync and __any_sync(mask, int), __syncwarp(mask).
// Inline PTX is inside of #ifdef __CUDA_ARCH__ and can be left out.

#define CC_FN __device__ inline
#define CC_INLINE __device__ __forceinline__
#define CC_SQRTF sqrtf

// Infinities and NaNs in the initializer of a constant: a division is the only form that NVRTC
// folds there.
#define CC_INFINITY_INIT (1.0f / 0.0f)
#define CC_HUGE_VAL_INIT (1.0 / 0.0)
#define CC_NAN_INIT (-(0.0f / 0.0f))

namespace {

#ifdef __CUDA_ARCH__
#define CC_HALF_CONVERTS
CC_FN float cc_m_half_to_float(unsigned short h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}
CC_FN unsigned short cc_m_float_to_half(float f) {
  unsigned short h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}
#endif

//@ CC_DOT4_UU CC_DOT4_SS CC_DOT4_SU
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 610
// __dp4a has no form for bytes of different signs, the instruction has.
#define CC_DOT4(f, T, instruction) \
  CC_FN T cc_m_dot4_##f(unsigned a, unsigned b, T c) { \
    T d; \
    asm(instruction : "=r"(d) : "r"(a), "r"(b), "r"(c)); \
    return d; \
  }
CC_DOT4(uu, unsigned, "dp4a.u32.u32 %0, %1, %2, %3;")
CC_DOT4(ss, int, "dp4a.s32.s32 %0, %1, %2, %3;")
CC_DOT4(su, int, "dp4a.s32.u32 %0, %1, %2, %3;")
#undef CC_DOT4
#define CC_DOT4_UU cc_m_dot4_uu
#define CC_DOT4_SS cc_m_dot4_ss
#define CC_DOT4_SU cc_m_dot4_su
#endif
//@

// Every item of the sub-group has to reach the call.
CC_FN int cc_w_shuffle(unsigned mask, int x, int lane) { return __shfl_sync(mask, x, lane); }
CC_FN int cc_w_all(unsigned mask, int x) { return __all_sync(mask, x); }
CC_FN int cc_w_any(unsigned mask, int x) { return __any_sync(mask, x); }
CC_FN void cc_w_barrier(unsigned mask) { __syncwarp(mask); }

} // namespace
