// host_math.h: the definitions for the host that the shared part of the prelude needs: the C
// library through the compiler's built-ins (no header is included, since reading headers takes
// longer than compiling the kernel), 128-bit products and atomics. Atomics are relaxed, as OpenCL
// 1.2's are.

#define CC_FN inline
// What finds an item's ids, kernels and mathematics are inlined before any other optimization, so that the
// item loop sees through them.
#define CC_ALWAYS inline __attribute__((always_inline))
#define CC_COPY __builtin_memcpy
#define CC_CLEAR __builtin_memset
#define CC_INFINITY (__builtin_inff())
#define CC_NAN (__builtin_nanf(""))
#define CC_HUGE_VAL (__builtin_inf())
#define CC_INFINITY_INIT CC_INFINITY // in the initializer of a constant
#define CC_NAN_INIT CC_NAN
#define CC_HUGE_VAL_INIT CC_HUGE_VAL

// A division of integers by zero ends the launch. The signal comes from an instruction that is written out, since
// compilers replace or remove divisions: 1 / z needs none.
#if defined(__x86_64__)
#define CC_FAULT_DIVIDE (__extension__({ asm volatile("divb %0" ::"r"((unsigned char)0) : "eax", "cc"); __builtin_unreachable(); }))
#else // division does not trap there; the launch takes a fault at this address, where nothing is mapped, for one
#define CC_FAULT_DIVIDE (__extension__({ (void)*(volatile const char *)0xd1d; __builtin_trap(); }))
#endif

#pragma GCC diagnostic ignored "-Woverflow"
#pragma GCC diagnostic ignored "-Wpsabi"
#ifdef __clang__
#pragma GCC diagnostic ignored "-Wconstant-conversion"
#pragma GCC diagnostic ignored "-Wunused-value"
#pragma GCC diagnostic ignored "-Wlogical-op-parentheses"
#else
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#endif

extern "C" {
float lgammaf_r(float, int *);
double lgamma_r(double, int *);
}

namespace {

#define CC_M1(n) \
  CC_FN float cc_m_##n(float x) { return __builtin_##n##f(x); } \
  CC_FN double cc_m_##n(double x) { return __builtin_##n(x); }
#define CC_M2(n) \
  CC_FN float cc_m_##n(float x, float y) { return __builtin_##n##f(x, y); } \
  CC_FN double cc_m_##n(double x, double y) { return __builtin_##n(x, y); }
CC_M1(ceil) CC_M1(fabs) CC_M1(floor) CC_M1(lgamma) CC_M1(logb) CC_M1(rint) CC_M1(round) CC_M1(sqrt)
CC_M1(tgamma) CC_M1(trunc)
CC_M2(copysign) CC_M2(fdim) CC_M2(fmod) CC_M2(remainder)
#undef CC_M1
#undef CC_M2
// Of these only the forms for double are the C library's: host_float.h has those for float.
#define CC_M1(n) CC_FN double cc_m_##n(double x) { return __builtin_##n(x); }
#define CC_M2(n) CC_FN double cc_m_##n(double x, double y) { return __builtin_##n(x, y); }
CC_M1(acos) CC_M1(acosh) CC_M1(asin) CC_M1(asinh) CC_M1(atan) CC_M1(atanh) CC_M1(cbrt) CC_M1(cos)
CC_M1(cosh) CC_M1(erf) CC_M1(erfc) CC_M1(exp) CC_M1(exp2) CC_M1(expm1) CC_M1(log) CC_M1(log2)
CC_M1(log10) CC_M1(log1p) CC_M1(sin) CC_M1(sinh) CC_M1(tan) CC_M1(tanh)
CC_M2(atan2) CC_M2(hypot) CC_M2(pow)
#undef CC_M1
#undef CC_M2

CC_FN double cc_m_exp10(double x) { return cc_m_pow(10.0, x); }
CC_FN double cc_m_rsqrt(double x) { return 1.0 / cc_m_sqrt(x); }
CC_FN float cc_m_rsqrt(float x) { return float(1.0 / cc_m_sqrt(double(x))); }
CC_FN float cc_m_fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
CC_FN double cc_m_fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
// Without the instruction fma is a slow function, and mad need not be exact.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
CC_FN float cc_m_mad(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
CC_FN double cc_m_mad(double x, double y, double z) { return __builtin_fma(x, y, z); }
#else
CC_FN float cc_m_mad(float x, float y, float z) { return x * y + z; }
CC_FN double cc_m_mad(double x, double y, double z) { return x * y + z; }
#endif
// GCC takes -fma(a, b, c) for fma(-a, b, -c), which is +0 where -0 is right. It does so with every
// negation of an fma that it finds, and x * -1, x / -1 and -0.0 - x become negations once constants are
// known; no option prevents it. So a program that calls fma (its rendering defines CC_FUSED) shows GCC
// none: types.h has other ways to the same results. Where the program's options
// give up signs of zeros (CC_RELAXED), products can be fused into sums instead. __FP_FAST_FMAF is what GCC
// says of every processor with the instruction: AVX-512 and FMA4 have it without __FMA__.
#if defined(CC_FUSED) && !defined(CC_RELAXED) && !defined(__clang__) && (defined(__FP_FAST_FMAF) || defined(__FP_FAST_FMA))
#define CC_NO_NEGATIONS
#endif
CC_FN float cc_m_ldexp(float x, int n) { return __builtin_ldexpf(x, n); }
CC_FN double cc_m_ldexp(double x, int n) { return __builtin_ldexp(x, n); }
CC_FN int cc_m_ilogb(float x) { return __builtin_ilogbf(x); }
CC_FN int cc_m_ilogb(double x) { return __builtin_ilogb(x); }
CC_FN float cc_m_frexp(float x, int *e) { return __builtin_frexpf(x, e); }
CC_FN double cc_m_frexp(double x, int *e) { return __builtin_frexp(x, e); }
#define CC_LGAMMA_R
CC_FN float cc_m_lgamma_r(float x, int *s) { return lgammaf_r(x, s); }
CC_FN double cc_m_lgamma_r(double x, int *s) { return lgamma_r(x, s); }

CC_FN int cc_m_clz32(unsigned x) { return __builtin_clz(x); } // x is not 0
CC_FN int cc_m_clz64(unsigned long x) { return __builtin_clzl(x); }
CC_FN int cc_m_popcount64(unsigned long x) { return __builtin_popcountl(x); }
CC_FN long cc_m_mulhi64(long x, long y) { return long((__int128)x * y >> 64); }
CC_FN unsigned long cc_m_umulhi64(unsigned long x, unsigned long y) {
  return (unsigned long)((unsigned __int128)x * y >> 64);
}

//@ cc_a_add cc_a_and cc_a_or cc_a_xor cc_a_xchg cc_a_cas
template <class T> CC_FN T cc_a_add(volatile T *p, T v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
template <class T> CC_FN T cc_a_and(volatile T *p, T v) { return __atomic_fetch_and(p, v, __ATOMIC_RELAXED); }
template <class T> CC_FN T cc_a_or(volatile T *p, T v) { return __atomic_fetch_or(p, v, __ATOMIC_RELAXED); }
template <class T> CC_FN T cc_a_xor(volatile T *p, T v) { return __atomic_fetch_xor(p, v, __ATOMIC_RELAXED); }
template <class T> CC_FN T cc_a_xchg(volatile T *p, T v) {
  T old;
  __atomic_exchange(p, &v, &old, __ATOMIC_RELAXED);
  return old;
}
template <class T> CC_FN T cc_a_cas(volatile T *p, T want, T v) {
  __atomic_compare_exchange(p, &want, &v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return want;
}

//@
} // namespace
