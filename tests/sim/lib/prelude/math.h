// math.h: the mathematical functions and conversions of CUDA and HIP, by the host's own library.

#define __SIM_F1(name)                                                                             \
  static inline double name(double x) { return __builtin_##name(x); }                              \
  static inline float name(float x) { return __builtin_##name##f(x); }                             \
  static inline float name##f(float x) { return __builtin_##name##f(x); }
#define __SIM_F2(name)                                                                             \
  static inline double name(double x, double y) { return __builtin_##name(x, y); }                 \
  static inline float name(float x, float y) { return __builtin_##name##f(x, y); }                 \
  static inline float name##f(float x, float y) { return __builtin_##name##f(x, y); }
__SIM_F1(acos)
__SIM_F1(acosh) __SIM_F1(asin) __SIM_F1(asinh) __SIM_F1(atan) __SIM_F1(atanh) __SIM_F1(cbrt)
    __SIM_F1(ceil) __SIM_F1(cos) __SIM_F1(cosh) __SIM_F1(erf) __SIM_F1(erfc) __SIM_F1(exp)
        __SIM_F1(exp2) __SIM_F1(exp10) __SIM_F1(expm1) __SIM_F1(fabs) __SIM_F1(floor)
            __SIM_F1(lgamma) __SIM_F1(log) __SIM_F1(log10) __SIM_F1(log1p) __SIM_F1(log2)
                __SIM_F1(logb) __SIM_F1(nearbyint) __SIM_F1(rint) __SIM_F1(round) __SIM_F1(sin)
                    __SIM_F1(sinh) __SIM_F1(sqrt) __SIM_F1(tan) __SIM_F1(tanh) __SIM_F1(tgamma)
                        __SIM_F1(trunc) __SIM_F1(j0) __SIM_F1(j1) __SIM_F1(y0) __SIM_F1(y1)
                            __SIM_F2(atan2) __SIM_F2(copysign) __SIM_F2(fdim) __SIM_F2(fmax)
                                __SIM_F2(fmin) __SIM_F2(fmod) __SIM_F2(hypot) __SIM_F2(nextafter)
                                    __SIM_F2(pow) __SIM_F2(remainder)
#undef __SIM_F1
#undef __SIM_F2

                                        static inline double fma(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}
static inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double ldexp(double x, int e) { return __builtin_ldexp(x, e); }
static inline float ldexp(float x, int e) { return __builtin_ldexpf(x, e); }
static inline float ldexpf(float x, int e) { return __builtin_ldexpf(x, e); }
static inline float scalbnf(float x, int e) { return __builtin_ldexpf(x, e); }
static inline double scalbn(double x, int e) { return __builtin_ldexp(x, e); }
static inline double frexp(double x, int *e) { return __builtin_frexp(x, e); }
static inline float frexp(float x, int *e) { return __builtin_frexpf(x, e); }
static inline float frexpf(float x, int *e) { return __builtin_frexpf(x, e); }
static inline double modf(double x, double *i) { return __builtin_modf(x, i); }
static inline float modf(float x, float *i) { return __builtin_modff(x, i); }
static inline float modff(float x, float *i) { return __builtin_modff(x, i); }
static inline double remquo(double x, double y, int *q) { return __builtin_remquo(x, y, q); }
static inline float remquo(float x, float y, int *q) { return __builtin_remquof(x, y, q); }
static inline float remquof(float x, float y, int *q) { return __builtin_remquof(x, y, q); }
static inline int ilogb(double x) { return __builtin_ilogb(x); }
static inline int ilogb(float x) { return __builtin_ilogbf(x); }
static inline int ilogbf(float x) { return __builtin_ilogbf(x); }
static inline long lrint(double x) { return __builtin_lrint(x); }
static inline long lrintf(float x) { return __builtin_lrintf(x); }
static inline long long llrint(double x) { return __builtin_llrint(x); }
static inline long long llrintf(float x) { return __builtin_llrintf(x); }
static inline long lround(double x) { return __builtin_lround(x); }
static inline long lroundf(float x) { return __builtin_lroundf(x); }
static inline void sincos(double x, double *s, double *c) { *s = sin(x), *c = cos(x); }
static inline void sincosf(float x, float *s, float *c) { *s = sinf(x), *c = cosf(x); }
static inline double rsqrt(double x) { return 1 / sqrt(x); }
static inline float rsqrt(float x) { return (float)(1 / sqrt((double)x)); }
static inline float rsqrtf(float x) { return (float)(1 / sqrt((double)x)); }
static inline double rcbrt(double x) { return 1 / cbrt(x); }
static inline float rcbrtf(float x) { return (float)(1 / cbrt((double)x)); }
static inline double sinpi(double x) { return sin(fmod(x, 2.0) * 3.14159265358979323846); }
static inline float sinpif(float x) { return (float)sinpi((double)x); }
static inline double cospi(double x) { return cos(fmod(x, 2.0) * 3.14159265358979323846); }
static inline float cospif(float x) { return (float)cospi((double)x); }
static inline float nanf(const char *) { return __builtin_nanf(""); }
static inline double nan(const char *) { return __builtin_nan(""); }
#define __SIM_CLASS(T)                                                                             \
  static inline bool isnan(T x) { return __builtin_isnan(x); }                                     \
  static inline bool isinf(T x) { return __builtin_isinf(x); }                                     \
  static inline bool isfinite(T x) { return __builtin_isfinite(x); }                               \
  static inline bool signbit(T x) { return __builtin_signbit(x); }                                 \
  static inline T abs(T x) { return fabs(x); }
__SIM_CLASS(float)
__SIM_CLASS(double)
#undef __SIM_CLASS
static inline int abs(int x) { return x < 0 ? -x : x; }
static inline long abs(long x) { return x < 0 ? -x : x; }
static inline long long abs(long long x) { return x < 0 ? -x : x; }
static inline long labs(long x) { return x < 0 ? -x : x; }
static inline long long llabs(long long x) { return x < 0 ? -x : x; }

#define __SIM_MINMAX(R, A, B)                                                                      \
  static inline R min(A a, B b) { return (R)a < (R)b ? (R)a : (R)b; }                              \
  static inline R max(A a, B b) { return (R)a > (R)b ? (R)a : (R)b; }
__SIM_MINMAX(int, int, int)
__SIM_MINMAX(unsigned, unsigned, unsigned)
__SIM_MINMAX(unsigned, int, unsigned)
__SIM_MINMAX(unsigned, unsigned, int)
__SIM_MINMAX(long, long, long)
__SIM_MINMAX(unsigned long, unsigned long, unsigned long)
__SIM_MINMAX(long long, long long, long long)
__SIM_MINMAX(unsigned long long, unsigned long long, unsigned long long)
__SIM_MINMAX(unsigned long long, long long, unsigned long long)
__SIM_MINMAX(unsigned long long, unsigned long long, long long)
#undef __SIM_MINMAX
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }
static inline double min(float a, double b) { return fmin((double)a, b); }
static inline double max(float a, double b) { return fmax((double)a, b); }
static inline double min(double a, float b) { return fmin(a, (double)b); }
static inline double max(double a, float b) { return fmax(a, (double)b); }
static inline unsigned umin(unsigned a, unsigned b) { return min(a, b); }
static inline unsigned umax(unsigned a, unsigned b) { return max(a, b); }

// The fast versions are as precise as the slow ones here.
static inline float __sinf(float x) { return sinf(x); }
static inline float __cosf(float x) { return cosf(x); }
static inline float __tanf(float x) { return tanf(x); }
static inline float __expf(float x) { return expf(x); }
static inline float __exp10f(float x) { return exp10f(x); }
static inline float __logf(float x) { return logf(x); }
static inline float __log2f(float x) { return log2f(x); }
static inline float __log10f(float x) { return log10f(x); }
static inline float __powf(float x, float y) { return powf(x, y); }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float fdividef(float x, float y) { return x / y; }
static inline float __saturatef(float x) { return x > 0 ? x < 1 ? x : 1 : 0; }
static inline void __sincosf(float x, float *s, float *c) { sincosf(x, s, c); }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __frsqrt_rn(float x) { return rsqrtf(x); }
static inline float __frcp_rn(float x) { return 1 / x; }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dsub_rn(double a, double b) { return a - b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline double __dsqrt_rn(double x) { return sqrt(x); }
static inline double __drcp_rn(double x) { return 1 / x; }
static inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }

template <class T, class F> static inline T __sim_as(F f) {
  static_assert(sizeof(T) == sizeof(F), "");
  T t;
  __builtin_memcpy(&t, &f, sizeof t);
  return t;
}
static inline int __float_as_int(float x) { return __sim_as<int>(x); }
static inline unsigned __float_as_uint(float x) { return __sim_as<unsigned>(x); }
static inline float __int_as_float(int x) { return __sim_as<float>(x); }
static inline float __uint_as_float(unsigned x) { return __sim_as<float>(x); }
static inline long long __double_as_longlong(double x) { return __sim_as<long long>(x); }
static inline double __longlong_as_double(long long x) { return __sim_as<double>(x); }
static inline int __double2hiint(double x) { return (int)(__sim_as<__sim_u64>(x) >> 32); }
static inline int __double2loint(double x) { return (int)__sim_as<__sim_u64>(x); }
static inline double __hiloint2double(int h, int l) {
  return __sim_as<double>((__sim_u64)(unsigned)h << 32 | (unsigned)l);
}

// __sim_to converts after rounding, with the ends of the range for what does not fit.
template <class T> static inline T __sim_to(double x) {
  const T low = (T)-1 < 0 ? (T)((T)1 << (sizeof(T) * 8 - 1)) : 0, high = (T)~low;
  if (x != x)
    return sizeof(T) == 8 ? (T)((T)1 << 63) : 0;
  return x <= (double)low ? low : x >= (double)high ? high : (T)x;
}
#define __SIM_TO(name, T, F)                                                                       \
  static inline T name##_rn(F x) { return __sim_to<T>(rint((double)x)); }                          \
  static inline T name##_rz(F x) { return __sim_to<T>(trunc((double)x)); }                         \
  static inline T name##_ru(F x) { return __sim_to<T>(ceil((double)x)); }                          \
  static inline T name##_rd(F x) { return __sim_to<T>(floor((double)x)); }
__SIM_TO(__float2int, int, float)
__SIM_TO(__float2uint, unsigned, float)
__SIM_TO(__float2ll, long long, float)
__SIM_TO(__float2ull, unsigned long long, float)
__SIM_TO(__double2int, int, double)
__SIM_TO(__double2uint, unsigned, double)
__SIM_TO(__double2ll, long long, double)
__SIM_TO(__double2ull, unsigned long long, double)
#undef __SIM_TO
static inline float __int2float_rn(int x) { return (float)x; }
static inline float __uint2float_rn(unsigned x) { return (float)x; }
static inline float __ll2float_rn(long long x) { return (float)x; }
static inline float __ull2float_rn(unsigned long long x) { return (float)x; }
static inline double __int2double_rn(int x) { return x; }
static inline double __uint2double_rn(unsigned x) { return x; }
static inline double __ll2double_rn(long long x) { return (double)x; }
static inline double __ull2double_rn(unsigned long long x) { return (double)x; }
static inline float __double2float_rn(double x) { return (float)x; }
