// math.h: the mathematical functions, for all targets. They use the hooks cc_m_name(float) and, but on Metal,
// cc_m_name(double): the target's library, or functions of the prelude. Every function takes exactly its
// generic type: float, double, half (computed in float) or a vector; the renderer converts the arguments.

CC_BEGIN

// Forms of a function of one, two or three arguments from those for float and double.
#define CC_WRAP1(f) \
  CC_FOR_HALF(CC_FN cc_half cc_##f(cc_half x) { return cc_half(cc_##f(float(x))); }) \
  CC_T CC_FN CC_V cc_##f(CC_V x) { CC_V r; CC_LANES(cc_##f(x.v[i])); }
#define CC_WRAP2(f) \
  CC_FOR_HALF(CC_FN cc_half cc_##f(cc_half x, cc_half y) { return cc_half(cc_##f(float(x), float(y))); }) \
  CC_T CC_FN CC_V cc_##f(CC_V x, CC_V y) { CC_V r; CC_LANES(cc_##f(x.v[i], y.v[i])); }
#define CC_WRAP3(f) \
  CC_FOR_HALF(CC_FN cc_half cc_##f(cc_half x, cc_half y, cc_half z) { return cc_half(cc_##f(float(x), float(y), float(z))); }) \
  CC_T CC_FN CC_V cc_##f(CC_V x, CC_V y, CC_V z) { CC_V r; CC_LANES(cc_##f(x.v[i], y.v[i], z.v[i])); }

// All forms of a function, from its hooks.
#define CC_LIB1(f) \
  CC_FN float cc_##f(float x) { return cc_m_##f(x); } \
  CC_FOR_DOUBLE(CC_FN cc_double cc_##f(cc_double x) { return cc_m_##f(x); }) \
  CC_WRAP1(f)
#define CC_LIB2(f) \
  CC_FN float cc_##f(float x, float y) { return cc_m_##f(x, y); } \
  CC_FOR_DOUBLE(CC_FN cc_double cc_##f(cc_double x, cc_double y) { return cc_m_##f(x, y); }) \
  CC_WRAP2(f)
#define CC_LIB3(f) \
  CC_FN float cc_##f(float x, float y, float z) { return cc_m_##f(x, y, z); } \
  CC_FOR_DOUBLE(CC_FN cc_double cc_##f(cc_double x, cc_double y, cc_double z) { return cc_m_##f(x, y, z); }) \
  CC_WRAP3(f)
//@ cc_ceil cc_fabs cc_floor cc_rint cc_round cc_trunc cc_sqrt cc_rsqrt
CC_LIB1(ceil) CC_LIB1(fabs) CC_LIB1(floor) CC_LIB1(rint) CC_LIB1(round) CC_LIB1(trunc) CC_LIB1(sqrt) CC_LIB1(rsqrt)
//@ cc_exp cc_exp2 cc_exp10 cc_expm1 cc_log cc_log2 cc_log10 cc_log1p
CC_LIB1(exp) CC_LIB1(exp2) CC_LIB1(exp10) CC_LIB1(expm1) CC_LIB1(log) CC_LIB1(log2) CC_LIB1(log10) CC_LIB1(log1p)
//@ cc_cos cc_sin cc_tan
CC_LIB1(cos) CC_LIB1(sin) CC_LIB1(tan)
//@ cc_cosh cc_sinh cc_tanh
CC_LIB1(cosh) CC_LIB1(sinh) CC_LIB1(tanh)
//@ cc_erf cc_erfc
CC_LIB1(erf) CC_LIB1(erfc)
//@ cc_acos cc_asin cc_atan
CC_LIB1(acos) CC_LIB1(asin) CC_LIB1(atan)
//@ cc_acosh cc_asinh cc_atanh
CC_LIB1(acosh) CC_LIB1(asinh) CC_LIB1(atanh)
//@ cc_cbrt
CC_LIB1(cbrt)
//@ cc_lgamma cc_tgamma cc_logb
CC_LIB1(lgamma) CC_LIB1(tgamma) CC_LIB1(logb)
//@ cc_atan2
CC_LIB2(atan2)
//@ cc_copysign cc_fdim
CC_LIB2(copysign) CC_LIB2(fdim)
//@ cc_fmod cc_remainder
CC_LIB2(fmod) CC_LIB2(remainder)
//@ cc_hypot
CC_LIB2(hypot)
//@ cc_pow
CC_LIB2(pow)
//@ cc_acospi cc_asinpi cc_atanpi cc_atan2pi
CC_LIB1(acospi) CC_LIB1(asinpi) CC_LIB1(atanpi) CC_LIB2(atan2pi)
//@ cc_sinpi cc_cospi cc_tanpi
CC_LIB1(sinpi) CC_LIB1(cospi) CC_LIB1(tanpi)

//@ cc_nextafter cc_t_nextafter
// nextafter of half steps by half's own precision, so it cannot be computed in float.
template <class F> CC_FN F cc_t_nextafter(F x, F y) {
  if (!(x == x) || !(y == y))
    return F(x + y);
  return x == y ? y : cc_step_to(x, x < y);
}
CC_FN float cc_nextafter(float x, float y) { return cc_t_nextafter(x, y); }
CC_FOR_DOUBLE(CC_FN cc_double cc_nextafter(cc_double x, cc_double y) { return cc_t_nextafter(x, y); })
CC_FN cc_half cc_nextafter(cc_half x, cc_half y) { return cc_t_nextafter(x, y); }
CC_T CC_FN CC_V cc_nextafter(CC_V x, CC_V y) { CC_V r; CC_LANES(cc_nextafter(x.v[i], y.v[i])); }

//@ cc_fmin cc_fmax cc_m_fmin cc_m_fmax
// If one argument is a NaN, the result is the other one.
template <class F> CC_FN F cc_m_fmin(F x, F y) { return y < x || !(x == x) ? y : x; }
template <class F> CC_FN F cc_m_fmax(F x, F y) { return x < y || !(x == x) ? y : x; }
CC_LIB2(fmin) CC_LIB2(fmax)
CC_T CC_FN CC_V cc_fmin(CC_V x, cc_id<T> y) { CC_V r; CC_LANES(cc_fmin(x.v[i], y)); }
CC_T CC_FN CC_V cc_fmax(CC_V x, cc_id<T> y) { CC_V r; CC_LANES(cc_fmax(x.v[i], y)); }

//@ cc_maxmag cc_minmag
template <class F> CC_FN F cc_m_maxmag(F x, F y) {
  F a = cc_m_fabs(x), b = cc_m_fabs(y);
  return a > b ? x : b > a ? y : cc_m_fmax(x, y);
}
template <class F> CC_FN F cc_m_minmag(F x, F y) {
  F a = cc_m_fabs(x), b = cc_m_fabs(y);
  return a < b ? x : b < a ? y : cc_m_fmin(x, y);
}
CC_LIB2(maxmag) CC_LIB2(minmag)

//@ cc_powr
// pow for x >= 0 only, with its own rules at the edges.
template <class F> CC_FN F cc_m_powr(F x, F y) {
  if (x < F(0) || !(x == x) || !(y == y))
    return F(CC_NAN);
  if (x == F(1))
    return cc_t_isinf(y) ? F(CC_NAN) : F(1);
  if (y == F(0) && (x == F(0) || cc_t_isinf(x)))
    return F(CC_NAN);
  return cc_m_pow(cc_m_fabs(x), y);
}
CC_LIB2(powr)

//@ cc_half
// A float holds the product of two halves exactly, but not always the sum. The rounding error e of
// the sum is folded into the float's last bit (round to odd), so that the second rounding is
// correct.
CC_FN cc_half cc_fma(cc_half x, cc_half y, cc_half z) {
  float p = float(x) * float(y), c = z, s = p + c, b = s - p, e = (p - (s - b)) + (c - b);
  cc_uint u = cc_as_bits<cc_uint>(s);
  if ((e > 0 || e < 0) && !(u & 1))
    u += (e > 0) == (s > 0) ? 1 : -1;
  return cc_half(cc_as_bits<float>(u));
}
//@ cc_fma
CC_FN float cc_fma(float x, float y, float z) { return cc_m_fma(x, y, z); }
CC_FOR_DOUBLE(CC_FN cc_double cc_fma(cc_double x, cc_double y, cc_double z) { return cc_m_fma(x, y, z); })
CC_T CC_FN CC_V cc_fma(CC_V x, CC_V y, CC_V z) { CC_V r; CC_LANES(cc_fma(x.v[i], y.v[i], z.v[i])); }
//@ cc_mad
// mad is the faster of x * y + z and fma.
CC_LIB3(mad)

//@ cc_pown cc_rootn cc_ldexp
#define CC_INT2(f) \
  CC_FN float cc_##f(float x, cc_int n) { return cc_m_##f(x, n); } \
  CC_FOR_DOUBLE(CC_FN cc_double cc_##f(cc_double x, cc_int n) { return cc_m_##f(x, n); }) \
  CC_FOR_HALF(CC_FN cc_half cc_##f(cc_half x, cc_int n) { return cc_half(cc_##f(float(x), n)); }) \
  CC_T CC_FN CC_V cc_##f(CC_V x, cc_vec<cc_int, N> n) { CC_V r; CC_LANES(cc_##f(x.v[i], n.v[i])); }
CC_INT2(pown) CC_INT2(rootn) CC_INT2(ldexp)
CC_T CC_FN CC_V cc_ldexp(CC_V x, cc_int n) { CC_V r; CC_LANES(cc_ldexp(x.v[i], n)); }

//@ cc_ilogb cc_nan
// FP_ILOGB0 and FP_ILOGBNAN are those of constMacros in builtins_const.go.
template <class F> CC_FN cc_int cc_t_ilogb(F x) {
  if (x == F(0))
    return cc_int_min<cc_int>();
  return !(x == x) || cc_t_isinf(x) ? cc_int_max<cc_int>() : cc_m_ilogb(x);
}
CC_FN cc_int cc_ilogb(float x) { return cc_t_ilogb(x); }
CC_FOR_DOUBLE(CC_FN cc_int cc_ilogb(cc_double x) { return cc_t_ilogb(x); })
CC_FN cc_int cc_ilogb(cc_half x) { return cc_t_ilogb(float(x)); }
CC_T CC_FN cc_vec<cc_int, N> cc_ilogb(CC_V x) { cc_vec<cc_int, N> r; CC_LANES(cc_ilogb(x.v[i])); }

CC_FN cc_half cc_nan(cc_ushort c) { return cc_as_bits<cc_half>(cc_ushort(0x7e00 | (c & 0x1ff))); }
CC_FN float cc_nan(cc_uint c) { return cc_as_bits<float>(0x7fc00000u | (c & 0x3fffffu)); }
template <int N> CC_FN cc_vec<float, N> cc_nan(cc_vec<cc_uint, N> x) { cc_vec<float, N> r; CC_LANES(cc_nan(x.v[i])); }
CC_FOR_DOUBLE(
CC_FN cc_double cc_nan(cc_ulong c) { return cc_as_bits<cc_double>(0x7ff8000000000000ul | (c & 0x7fffffffffffful)); }
template <int N> CC_FN cc_vec<cc_double, N> cc_nan(cc_vec<cc_ulong, N> x) { cc_vec<cc_double, N> r; CC_LANES(cc_nan(x.v[i])); })
template <int N> CC_FN cc_vec<cc_half, N> cc_nan(cc_vec<cc_ushort, N> x) { cc_vec<cc_half, N> r; CC_LANES(cc_nan(x.v[i])); }

//@
CC_END
