// gpu_math.h: the hooks of the shared part of the prelude that are the same for CUDA and HIP: the
// mathematical functions of their libraries, all within OpenCL's bounds without fast-math options,
// bit operations and atomics. CUDA's and HIP's atomics are relaxed, as OpenCL 1.2's are.

#define CC_COPY memcpy
#define CC_CLEAR memset
#define CC_INFINITY (cc_float_of(0x7f800000u))
#define CC_NAN (cc_float_of(0x7fc00000u))
#define CC_HUGE_VAL (double(cc_float_of(0x7f800000u)))

namespace {

CC_INLINE float cc_float_of(unsigned bits) {
  float f;
  memcpy(&f, &bits, sizeof(f));
  return f;
}

#define CC_M1(n) \
  CC_INLINE float cc_m_##n(float x) { return n##f(x); } \
  CC_INLINE double cc_m_##n(double x) { return n(x); }
#define CC_M2(n) \
  CC_INLINE float cc_m_##n(float x, float y) { return n##f(x, y); } \
  CC_INLINE double cc_m_##n(double x, double y) { return n(x, y); }
CC_M1(acos) CC_M1(acosh) CC_M1(asin) CC_M1(asinh) CC_M1(atan) CC_M1(atanh) CC_M1(cbrt) CC_M1(ceil)
CC_M1(cos) CC_M1(cosh) CC_M1(erf) CC_M1(erfc) CC_M1(exp) CC_M1(exp2) CC_M1(exp10) CC_M1(expm1)
CC_M1(fabs) CC_M1(floor) CC_M1(lgamma) CC_M1(log) CC_M1(log2) CC_M1(log10) CC_M1(log1p) CC_M1(logb)
CC_M1(rint) CC_M1(round) CC_M1(rsqrt) CC_M1(sin) CC_M1(sinh) CC_M1(tan) CC_M1(tanh) CC_M1(tgamma)
CC_M1(trunc)
CC_M2(atan2) CC_M2(copysign) CC_M2(fdim) CC_M2(fmod) CC_M2(hypot) CC_M2(pow) CC_M2(remainder)
#undef CC_M1
#undef CC_M2

// A float's result in double.
CC_INLINE double cc_w_acos(float x) { return acos(double(x)); }
CC_INLINE double cc_w_asin(float x) { return asin(double(x)); }
CC_INLINE double cc_w_atan(float x) { return atan(double(x)); }
CC_INLINE double cc_w_atan2(float y, float x) { return atan2(double(y), double(x)); }
CC_INLINE double cc_w_pow(double x, double y) { return pow(x, y); }
CC_INLINE float cc_m_sqrt(float x) { return CC_SQRTF(x); }
CC_INLINE double cc_m_sqrt(double x) { return sqrt(x); }
CC_INLINE float cc_m_fma(float x, float y, float z) { return fmaf(x, y, z); }
CC_INLINE double cc_m_fma(double x, double y, double z) { return fma(x, y, z); }
CC_INLINE float cc_m_mad(float x, float y, float z) { return fmaf(x, y, z); }
CC_INLINE double cc_m_mad(double x, double y, double z) { return fma(x, y, z); }
CC_INLINE float cc_m_ldexp(float x, int n) { return ldexpf(x, n); }
CC_INLINE double cc_m_ldexp(double x, int n) { return ldexp(x, n); }
CC_INLINE int cc_m_ilogb(float x) { return ilogbf(x); }
CC_INLINE int cc_m_ilogb(double x) { return ilogb(x); }
CC_INLINE float cc_m_frexp(float x, int *e) { return frexpf(x, e); }
CC_INLINE double cc_m_frexp(double x, int *e) { return frexp(x, e); }

// native_ functions use the GPU's fast, less accurate instructions.
#define CC_NATIVE
CC_INLINE float cc_n_cos(float x) { return __cosf(x); }
CC_INLINE float cc_n_exp(float x) { return __expf(x); }
CC_INLINE float cc_n_exp2(float x) { return exp2f(x); }
CC_INLINE float cc_n_exp10(float x) { return __exp10f(x); }
CC_INLINE float cc_n_log(float x) { return __logf(x); }
CC_INLINE float cc_n_log2(float x) { return __log2f(x); }
CC_INLINE float cc_n_log10(float x) { return __log10f(x); }
CC_INLINE float cc_n_recip(float x) { return __fdividef(1.0f, x); }
CC_INLINE float cc_n_rsqrt(float x) { return rsqrtf(x); }
CC_INLINE float cc_n_sin(float x) { return __sinf(x); }
CC_INLINE float cc_n_sqrt(float x) { return sqrtf(x); }
CC_INLINE float cc_n_tan(float x) { return __tanf(x); }
CC_INLINE float cc_n_divide(float x, float y) { return __fdividef(x, y); }
CC_INLINE float cc_n_powr(float x, float y) { return __powf(x, y); }

CC_INLINE int cc_m_clz32(unsigned x) { return __clz(int(x)); }
CC_INLINE int cc_m_clz64(unsigned long x) { return __clzll((long long)x); }
CC_INLINE int cc_m_popcount64(unsigned long x) { return __popcll(x); }
CC_INLINE long cc_m_mulhi64(long x, long y) { return __mul64hi(x, y); }
CC_INLINE unsigned long cc_m_umulhi64(unsigned long x, unsigned long y) { return __umul64hi(x, y); }

// Atomics use the unsigned integer of the same size.
template <int Bytes> struct cc_cell_;
template <> struct cc_cell_<4> { typedef unsigned type; };
template <> struct cc_cell_<8> { typedef unsigned long long type; };
template <class T> using cc_cell = typename cc_cell_<sizeof(T)>::type;

template <class T> CC_INLINE T cc_a_add(volatile T *p, T v) { return T(atomicAdd((cc_cell<T> *)p, cc_cell<T>(v))); }
template <class T> CC_INLINE T cc_a_and(volatile T *p, T v) { return T(atomicAnd((cc_cell<T> *)p, cc_cell<T>(v))); }
template <class T> CC_INLINE T cc_a_or(volatile T *p, T v) { return T(atomicOr((cc_cell<T> *)p, cc_cell<T>(v))); }
template <class T> CC_INLINE T cc_a_xor(volatile T *p, T v) { return T(atomicXor((cc_cell<T> *)p, cc_cell<T>(v))); }
template <class T> CC_INLINE T cc_a_xchg(volatile T *p, T v) {
  cc_cell<T> bits;
  memcpy(&bits, &v, sizeof(v));
  bits = atomicExch((cc_cell<T> *)p, bits);
  memcpy(&v, &bits, sizeof(v));
  return v;
}
template <class T> CC_INLINE T cc_a_cas(volatile T *p, T want, T v) {
  return T(atomicCAS((cc_cell<T> *)p, cc_cell<T>(want), cc_cell<T>(v)));
}
CC_INLINE int cc_a_min(volatile int *p, int v) { return atomicMin((int *)p, v); }
CC_INLINE int cc_a_max(volatile int *p, int v) { return atomicMax((int *)p, v); }
CC_INLINE unsigned cc_a_min(volatile unsigned *p, unsigned v) { return atomicMin((unsigned *)p, v); }
CC_INLINE unsigned cc_a_max(volatile unsigned *p, unsigned v) { return atomicMax((unsigned *)p, v); }

} // namespace
