// hip.h: what the shared part of the prelude asks of its target, on HIP. What it takes from the
// language is listed in cuda.h; of HIP alone: __shfl(int, lane), __all(int), __any(int). Types of the
// compiler that others may lack stand under __AMDGCN__.

#define CC_FN __device__ inline
#define CC_INLINE __device__ __forceinline__
#define CC_SQRTF cc_w_sqrt

#define CC_INFINITY_INIT (__builtin_inff())
#define CC_HUGE_VAL_INIT (__builtin_inf())
#define CC_NAN_INIT (__builtin_nanf(""))

// A portable program may do what looks odd in C++.
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

// The machine's root may be off by one in the last place: the neighbours are tried. Of y and what r
// misses it by, all digits are kept by fma.
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

// A wave runs in step: its items only have to be told to write first what the others read.
CC_FN int cc_w_shuffle(unsigned long, int x, int lane) { return __shfl(x, lane); }
CC_FN int cc_w_all(unsigned long, int x) { return __all(x); }
CC_FN int cc_w_any(unsigned long, int x) { return __any(x); }
CC_FN void cc_w_barrier(unsigned long) {
  __threadfence_block();
  (void)__any(1);
  __threadfence_block();
}

} // namespace
