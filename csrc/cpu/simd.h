// The kernels of the catalog in vector instructions: what Go sees of them.
//
// One table of functions per instruction set (avx512.c, avx2.c, neon.c); Go picks
// the set and calls by number. A function does one part of a launch on one thread
// and gets its arguments as 64-bit words: whole numbers, the bits of doubles, and
// addresses of memory that is not Go's. It checks nothing: Go has made sure that
// every address that follows from the sizes lies in its buffer. None changes the
// floating-point modes of its thread, and none keeps anything.
#ifndef CONCORD_SIMD_H
#define CONCORD_SIMD_H

#include <stddef.h>
#include <stdint.h>

typedef union {
  int64_t i;
  double f;
  void *p;
} simd_word;

typedef void simd_func(const simd_word *w);

// The order is that of the constants in cpu/simd.go.
enum {
  SIMD_GEMM_F32_DIRECT,
  SIMD_GEMM_F32_DOT,
  SIMD_GEMM_F32_PACK,
  SIMD_GEMM_F32_BLOCK,
  SIMD_GEMM_F64_DIRECT,
  SIMD_GEMM_F64_DOT,
  SIMD_GEMM_F64_PACK,
  SIMD_GEMM_F64_BLOCK,
  SIMD_WIDEN,
  SIMD_NARROW,
  SIMD_FMA_PEAK,
  SIMD_L2_FLOAT,
  SIMD_L2_I8,
  SIMD_ARITH,
  SIMD_REDUCE_ROWS,
  SIMD_SOFTMAX,
  SIMD_REDUCE_COLUMNS,
  SIMD_NORM,
  SIMD_ACTIVATION,
  SIMD_CAST,
  SIMD_FILL,
  SIMD_COPY,
  SIMD_TRANSPOSE,
  SIMD_TOPK,
  SIMD_BROADCAST,
  SIMD_L2_PACK,
  SIMD_CONV_F32,
  SIMD_CONV_F64,
  SIMD_GEMM_I8_PACK,
  SIMD_GEMM_I8_ROWS,
  SIMD_GEMM_VNNI_PACK,
  SIMD_GEMM_VNNI_ROWS,
  SIMD_L2_I8_PACK,
  SIMD_OPS
};

extern simd_func *const concord_simd_avx512[SIMD_OPS];
extern simd_func *const concord_simd_avx2[SIMD_OPS];
extern simd_func *const concord_simd_neon[SIMD_OPS];

// Sets, in the order of the constants in cpu/simd.go.
enum { SIMD_AVX512, SIMD_AVX2, SIMD_NEON };

static inline void concord_simd(int32_t set, int32_t op, const simd_word *w) {
#if defined(__x86_64__)
  (set == SIMD_AVX512 ? concord_simd_avx512 : concord_simd_avx2)[op](w);
#elif defined(__aarch64__)
  (void)set;
  concord_simd_neon[op](w);
#else
  (void)set, (void)op, (void)w;
#endif
}

#endif
