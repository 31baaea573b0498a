// hip.h: the definitions for HIP that the shared part of the prelude needs. cuda.h lists what it
// uses of the language; HIP only: __shfl(int, lane), __all(int), __any(int). Types that only AMD's
// compiler has are inside of #ifdef __AMDGCN__.

#define CC_FN __device__ inline
#define CC_INLINE __device__ __forceinline__
#define CC_SQRTF cc_w_sqrt

#define CC_INFINITY_INIT (__builtin_inff())
#define CC_HUGE_VAL_INIT (__builtin_inf())
#define CC_NAN_INIT (__builtin_nanf(""))

// Portable programs may contain code that is valid but that clang warns about.
#pragma clang diagnostic ignored "-Wparentheses"
#pragma clang diagnostic ignored "-Wunused-value"
#pragma clang diagnostic ignored "-Wconstant-conversion"
#pragma clang diagnostic ignored "-Wpass-failed"

namespace {

#ifdef __AMDGCN__
#define CC_HALF_CONVERTS
CC_FN float cc_m_half_to_float(unsigned short h) {
  _Float16 x;
  memcpy(&x, &h, sizeof(x));
  return float(x);
}
CC_FN unsigned short cc_m_float_to_half(float f) {
  _Float16 x = _Float16(f);
  unsigned short h;
  memcpy(&h, &x, sizeof(h));
  return h;
}
#endif

//@ CC_DOT4_UU CC_DOT4_SS CC_DOT4_SU
// The architectures that have the instructions; others fail to compile the functions.
#if defined(__gfx906__) || defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx940__) || defined(__gfx942__) || \
    defined(__gfx1011__) || defined(__gfx1012__) || defined(__gfx1030__) || defined(__gfx1031__) || defined(__gfx1032__) || \
    defined(__gfx1033__) || defined(__gfx1034__) || defined(__gfx1035__) || defined(__gfx1036__)
#define CC_DOT4_UU(a, b, c) __builtin_amdgcn_udot4(a, b, c, false)
#define CC_DOT4_SS(a, b, c) __builtin_amdgcn_sdot4(int(a), int(b), c, false)
// b - 128 has a sign, and 128 times the sum of a is a product with -128, subtracted.
#define CC_DOT4_SU(a, b, c) CC_DOT4_SS(a, b ^ 0x80808080u, c - CC_DOT4_SS(a, 0x80808080u, 0))
#elif defined(__gfx1100__) || defined(__gfx1101__) || defined(__gfx1102__) || defined(__gfx1103__) || defined(__gfx1150__) || \
    defined(__gfx1151__) || defined(__gfx1200__) || defined(__gfx1201__)
#define CC_DOT4_UU(a, b, c) __builtin_amdgcn_udot4(a, b, c, false)
#define CC_DOT4_SS(a, b, c) __builtin_amdgcn_sudot4(true, int(a), true, int(b), c, false)
#define CC_DOT4_SU(a, b, c) __builtin_amdgcn_sudot4(true, int(a), false, int(b), c, false)
#endif
//@

// The GPU's square root may be wrong by one unit in the last place, so its neighbours are tried,
// too. fma computes the residue without rounding.
CC_FN float cc_w_sqrt(float x) {
  const bool small = x < 0x1p-96f;
  const float y = small ? x * 0x1p32f : x;
  float r = sqrtf(y), down, up;
  unsigned bits;
  memcpy(&bits, &r, sizeof(r));
  const unsigned below = bits - 1, above = bits + 1;
  memcpy(&down, &below, sizeof(down));
  memcpy(&up, &above, sizeof(up));
  float best = fmaf(-down, r, y) <= 0 ? down : r;
  best = fmaf(-up, r, y) > 0 ? up : best;
  best = small ? best * 0x1p-16f : best;
  return x == 0 || y == __builtin_inff() ? x : best;
}

// The items of a wave run in lockstep, so only the order of their memory accesses has to be
// ensured.
CC_FN int cc_w_shuffle(unsigned long, int x, int lane) { return __shfl(x, lane); }
CC_FN int cc_w_all(unsigned long, int x) { return __all(x); }
CC_FN int cc_w_any(unsigned long, int x) { return __any(x); }
CC_FN void cc_w_barrier(unsigned long) {
  __threadfence_block();
  (void)__any(1);
  __threadfence_block();
}

} // namespace
