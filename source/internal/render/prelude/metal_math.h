// metal_math.h: the hooks of the shared part of the prelude for Metal, all in float: Metal's precise functions where
// they exist, otherwise approximations within OpenCL's bounds. The polynomials were fitted for this file.

CC_BEGIN

#define CC_M1(n, f) CC_FN float cc_m_##n(float x) { return f(x); }
#define CC_M2(n, f) CC_FN float cc_m_##n(float x, float y) { return f(x, y); }
#define CC_PRECISE(n) CC_M1(n, metal::precise::n)
CC_PRECISE(acos) CC_PRECISE(acosh) CC_PRECISE(asin) CC_PRECISE(asinh) CC_PRECISE(atan) CC_PRECISE(atanh)
CC_PRECISE(cos) CC_PRECISE(cosh) CC_PRECISE(cospi) CC_PRECISE(exp) CC_PRECISE(exp2) CC_PRECISE(exp10)
CC_PRECISE(log) CC_PRECISE(log2) CC_PRECISE(log10) CC_PRECISE(rsqrt) CC_PRECISE(sin) CC_PRECISE(sinh)
CC_PRECISE(sinpi) CC_PRECISE(sqrt) CC_PRECISE(tan) CC_PRECISE(tanh) CC_PRECISE(tanpi)
CC_M1(ceil, metal::ceil) CC_M1(fabs, metal::fabs) CC_M1(floor, metal::floor) CC_M1(rint, metal::rint)
CC_M1(round, metal::round) CC_M1(trunc, metal::trunc)
CC_M2(atan2, metal::precise::atan2) CC_M2(copysign, metal::copysign) CC_M2(fdim, metal::fdim) CC_M2(pow, metal::precise::pow)
#undef CC_PRECISE
#undef CC_M1
#undef CC_M2
CC_FN float cc_m_fma(float x, float y, float z) { return metal::fma(x, y, z); }
CC_FN float cc_m_mad(float x, float y, float z) { return metal::fma(x, y, z); }
CC_FN float cc_m_ldexp(float x, cc_int n) { return metal::ldexp(x, n); }
#define CC_1_PI 0.31830988618379067f
CC_FN float cc_m_acospi(float x) { return metal::precise::acos(x) * CC_1_PI; }
CC_FN float cc_m_asinpi(float x) { return metal::precise::asin(x) * CC_1_PI; }
CC_FN float cc_m_atanpi(float x) { return metal::precise::atan(x) * CC_1_PI; }
CC_FN float cc_m_atan2pi(float y, float x) { return metal::precise::atan2(y, x) * CC_1_PI; }
CC_FN bool cc_t_isinf(float x) { return metal::fabs(x) == CC_INFINITY; }

// For 0 Metal's clz returns the number of bits, as OpenCL's does.
CC_FN cc_int cc_m_clz32(cc_uint x) { return cc_int(metal::clz(x)); }
CC_FN cc_int cc_m_clz64(cc_ulong x) { return cc_int(metal::clz(x)); }
CC_FN cc_int cc_m_popcount64(cc_ulong x) { return cc_int(metal::popcount(x)); }
CC_FN cc_ulong cc_m_umulhi64(cc_ulong x, cc_ulong y) {
  cc_ulong a = x >> 32, b = x & 0xffffffffu, c = y >> 32, d = y & 0xffffffffu;
  cc_ulong ad = a * d, bc = b * c, mid = (b * d >> 32) + (ad & 0xffffffffu) + (bc & 0xffffffffu);
  return a * c + (ad >> 32) + (bc >> 32) + (mid >> 32);
}
CC_FN cc_long cc_m_mulhi64(cc_long x, cc_long y) {
  cc_ulong h = cc_m_umulhi64(cc_ulong(x), cc_ulong(y));
  return cc_long(h - (x < 0 ? cc_ulong(y) : 0) - (y < 0 ? cc_ulong(x) : 0));
}

// native_ functions are Metal's fast forms.
#define CC_NATIVE
#define CC_FAST(n) CC_FN float cc_n_##n(float x) { return metal::fast::n(x); }
CC_FAST(cos) CC_FAST(exp) CC_FAST(exp2) CC_FAST(exp10) CC_FAST(log) CC_FAST(log2) CC_FAST(log10) CC_FAST(rsqrt) CC_FAST(sin)
CC_FAST(sqrt) CC_FAST(tan)
#undef CC_FAST
CC_FN float cc_n_recip(float x) { return 1.0f / x; }
CC_FN float cc_n_divide(float x, float y) { return x / y; }
CC_FN float cc_n_powr(float x, float y) { return metal::fast::powr(x, y); }

//@ cc_m_ilogb cc_m_logb cc_m_frexp
// The exponent of x, which is a number and not 0; for a denormal it follows from the first bit that is set.
CC_FN cc_int cc_m_ilogb(float x) {
  cc_uint b = cc_as_bits<cc_uint>(x) & 0x7fffffffu;
  return b >= 0x00800000u ? cc_int(b >> 23) - 127 : -118 - cc_int(metal::clz(b));
}
CC_FN float cc_m_logb(float x) {
  return x == 0 ? -CC_INFINITY : !(x == x) ? x : cc_t_isinf(x) ? CC_INFINITY : float(cc_m_ilogb(x));
}
CC_FN float cc_m_frexp(float x, thread cc_int *e) {
  if (x == 0)
    return x;
  const cc_int k = cc_m_ilogb(x) + 1;
  *e = k;
  return k > 0 ? metal::ldexp(x, -k) : metal::ldexp(metal::ldexp(x, 64), -k - 64);
}

//@ cc_m_fmod cc_m_remainder
CC_FN float cc_m_fmod(float x, float y) {
  if (!(x == x) || !(y == y) || cc_t_isinf(x) || y == 0)
    return CC_NAN;
  return cc_t_isinf(y) ? x : metal::copysign(metal::precise::fmod(metal::fabs(x), metal::fabs(y)), x);
}
template <class F> CC_FN F cc_t_remquo(F x, F y, thread cc_int *quo);
CC_FN float cc_m_remainder(float x, float y) {
  cc_int q;
  return cc_t_remquo(x, y, &q);
}

//@ cc_m_pown cc_m_rootn
CC_FN float cc_m_pown(float x, cc_int n) {
  float a = metal::fabs(x), r;
  if (n > -16777216 && n < 16777216) {
    r = metal::precise::pow(a, float(n));
  } else { // n as a sum of two floats of one sign
    const cc_int low = n % 256;
    r = metal::precise::pow(a, float(n - low)) * metal::precise::pow(a, float(low));
  }
  return n & 1 ? metal::copysign(r, x) : r;
}
CC_FN float cc_m_rootn(float x, cc_int n) {
  if (n == 0 || (x < 0 && n % 2 == 0) || !(x == x))
    return CC_NAN;
  float a = metal::fabs(x), r = a;
  if (a == 0 || cc_t_isinf(a)) {
    r = (a == 0) == (n > 0) ? 0.0f : CC_INFINITY;
    return n % 2 ? metal::copysign(r, x) : r;
  }
  if (n != 1) { // 1/n was rounded, with the error e; r * e * log a is the resulting error of r
    float m = float(n), y = 1.0f / m, e = metal::fma(-m, y, 1.0f) / m;
    r = metal::precise::pow(a, y);
    if (e != 0 && !cc_t_isinf(r))
      r += r * (e * metal::precise::log(a));
  }
  return x < 0 ? -r : r;
}

//@ cc_m_hypot
// Square root of a^2 + b^2, with both scaled to near 1 first.
CC_FN float cc_m_hypot(float x, float y) {
  float a = metal::fabs(x), b = metal::fabs(y);
  if (cc_t_isinf(a) || cc_t_isinf(b))
    return CC_INFINITY;
  float m = a > b ? a : b, s = m > 0x1p60f ? 0x1p-100f : m < 0x1p-40f ? 0x1p100f : 1.0f;
  a *= s;
  b *= s;
  return metal::precise::sqrt(metal::fma(a, a, b * b)) * (s == 1.0f ? 1.0f : s < 1.0f ? 0x1p100f : 0x1p-100f);
}

//@ cc_m_cbrt
// One step of Newton's method, with the residue computed by fma.
CC_FN float cc_m_cbrt(float x) {
  if (x == 0 || !(x == x) || cc_t_isinf(x))
    return x;
  bool tiny = metal::fabs(x) < 0x1p-100f;
  float a = metal::fabs(x) * (tiny ? 0x1p48f : 1.0f), r = metal::precise::exp2(metal::precise::log2(a) / 3.0f);
  float q = r * r, qe = metal::fma(r, r, -q), c = q * r, ce = metal::fma(q, r, -c);
  r -= ((c - a) + (ce + qe * r)) / (3.0f * q);
  return metal::copysign(r * (tiny ? 0x1p-16f : 1.0f), x);
}

//@ cc_m_expm1
CC_FN float cc_m_expm1(float x) {
  if (metal::fabs(x) > 0.7f)
    return metal::precise::exp(x) - 1.0f;
  float p = 2.503899105e-5f;
  p = metal::fma(p, x, 0.0002007889419f);
  p = metal::fma(p, x, 0.001388830644f);
  p = metal::fma(p, x, 0.008332750182f);
  p = metal::fma(p, x, 0.04166667024f);
  p = metal::fma(p, x, 0.1666667024f);
  p = metal::fma(p, x, 0.5f);
  return metal::fma(x * x, p, x);
}

//@ cc_m_log1p
// Near 0 the series of 2 atanh s with s = x / (2 + x); elsewhere log(1 + x) with a first-order
// correction for the rounding of 1 + x.
CC_FN float cc_m_log1p(float x) {
  if (x < -0.3f || x > 0.45f) {
    float u = 1.0f + x;
    if (!(u > 0) || cc_t_isinf(u))
      return metal::precise::log(u);
    return metal::precise::log(u) + (u > 0x1p24f ? 0.0f : (x > u - 1.0f || x < u - 1.0f ? (x - (u - 1.0f)) / u : 0.0f));
  }
  float s = x / (2.0f + x), t = s * s, p = 2.0f / 13;
  p = metal::fma(p, t, 2.0f / 11);
  p = metal::fma(p, t, 2.0f / 9);
  p = metal::fma(p, t, 2.0f / 7);
  p = metal::fma(p, t, 2.0f / 5);
  p = metal::fma(p, t, 2.0f / 3);
  // 2 s is x - s x, exactly what x is without its second order.
  return x - s * (x - t * p);
}

//@ cc_m_erf cc_m_erfc
// erf is x times a polynomial in x^2 below 1; erfc is e^(-x^2) / x times one in 1 / x above.
CC_FN float cc_erf_small(float x) {
  float t = x * x, p = -9.667044571e-6f;
  p = metal::fma(p, t, 0.0001126595903f);
  p = metal::fma(p, t, -0.0008484080406f);
  p = metal::fma(p, t, 0.005221031808f);
  p = metal::fma(p, t, -0.02686543073f);
  p = metal::fma(p, t, 0.112837825f);
  p = metal::fma(p, t, -0.3761263847f);
  p = metal::fma(p, t, 1.128379167f);
  return x * p;
}
CC_FN float cc_erfc_large(float x) {
  if (x > 10.5f)
    return 0.0f;
  float u = 1.0f / x, p = -0.0488553775f;
  p = metal::fma(p, u, 0.2408503704f);
  p = metal::fma(p, u, -0.421542509f);
  p = metal::fma(p, u, 0.1327684537f);
  p = metal::fma(p, u, 0.6418653414f);
  p = metal::fma(p, u, -1.14025662f);
  p = metal::fma(p, u, 0.8100199558f);
  p = metal::fma(p, u, -0.07817557959f);
  p = metal::fma(p, u, -0.27267842f);
  p = metal::fma(p, u, -0.0006185186886f);
  p = metal::fma(p, u, 0.5642064683f);
  // The square is computed in two parts, and its exponential as two factors, since their product
  // may be denormal.
  float s = x * x, rest = metal::fma(x, x, -s), e = metal::precise::exp(-0.5f * s);
  return e * (1.0f - rest) * (p / x) * e;
}
CC_FN float cc_m_erf(float x) {
  float a = metal::fabs(x);
  return !(x == x) ? x : a < 1.0f ? cc_erf_small(x) : metal::copysign(1.0f - cc_erfc_large(a), x);
}
CC_FN float cc_m_erfc(float x) {
  if (!(x == x))
    return x;
  if (metal::fabs(x) < 1.0f)
    return 1.0f - cc_erf_small(x);
  return x < 0 ? 2.0f - cc_erfc_large(-x) : cc_erfc_large(x);
}

//@ cc_m_tgamma
// gamma is a polynomial on [1, 2], reached by steps of 1. The product of the steps is kept in two floats.
CC_FN float cc_gamma_base(float x) {
  float z = x - 1.5f, p = 0.01586386546f;
  p = metal::fma(p, z, -0.02372913626f);
  p = metal::fma(p, z, 0.02468161931f);
  p = metal::fma(p, z, -0.03626931631f);
  p = metal::fma(p, z, 0.05874044932f);
  p = metal::fma(p, z, -0.07771812018f);
  p = metal::fma(p, z, 0.1446394649f);
  p = metal::fma(p, z, -0.1072859701f);
  p = metal::fma(p, z, 0.4148135278f);
  p = metal::fma(p, z, 0.0323382864f);
  return metal::fma(p, z, 0.8862269255f);
}
CC_FN float cc_m_tgamma(float x) {
  if (!(x == x) || x == CC_INFINITY)
    return x;
  if (x == 0)
    return metal::copysign(CC_INFINITY, x);
  if (x < 0 && metal::floor(x) == x)
    return CC_NAN;
  if (x > 35.1f)
    return CC_INFINITY;
  if (x < -45.0f)
    return metal::precise::cospi(metal::floor(x)) * 0.0f;
  float hi = 1.0f, lo = 0.0f, f = x, scale = 1.0f;
  bool up = x < 1.0f;
  while (up ? f < 1.0f : f > 2.0f) {
    float k = up ? f : f - 1.0f, h = hi * k;
    lo = metal::fma(lo, k, metal::fma(hi, k, -h));
    hi = h;
    if (up && metal::fabs(hi) > 0x1p100f) { // where the result is denormal
      hi *= 0x1p-64f;
      lo *= 0x1p-64f;
      scale *= 0x1p-64f;
    }
    f = up ? f + 1.0f : f - 1.0f;
  }
  float g = cc_gamma_base(f);
  return up ? g / (hi + lo) * scale : metal::fma(g, hi, g * lo);
}

//@ cc_m_lgamma
CC_FN float cc_lgamma_base(float x, float x1) { // x1 is x - 1
  float z = x - 1.5f, p = 0.002388311336f;
  p = metal::fma(p, z, -0.00397213376f);
  p = metal::fma(p, z, 0.005355116558f);
  p = metal::fma(p, z, -0.009276536438f);
  p = metal::fma(p, z, 0.01680356703f);
  p = metal::fma(p, z, -0.0313190425f);
  p = metal::fma(p, z, 0.06291127891f);
  p = metal::fma(p, z, -0.1459596966f);
  p = metal::fma(p, z, 0.4831289505f);
  return x1 * (x1 - 1.0f) * p;
}
CC_FN float cc_lgamma_positive(float x) {
  if (x < 1.0f)
    return cc_lgamma_base(x + 1.0f, x) - metal::precise::log(x);
  if (x >= 9.0f) {
    float u = 1.0f / x, v = u * u;
    return (x - 0.5f) * (metal::precise::log(x) - 1.0f) + (0.4189385332f + u * (0.08333333333f - v * (0.002777777778f - v * 0.0007936507937f)));
  }
  float p = 1.0f;
  while (x > 2.0f) {
    x -= 1.0f;
    p *= x;
  }
  return metal::precise::log(p) + cc_lgamma_base(x, x - 1.0f);
}
CC_FN float cc_m_lgamma(float x) {
  if (!(x == x) || cc_t_isinf(x))
    return metal::fabs(x);
  if (x > 0)
    return cc_lgamma_positive(x);
  if (metal::floor(x) == x)
    return CC_INFINITY;
  if (x > -0x1p-20f) // Euler's constant
    return -metal::precise::log(-x) - 0.5772156649f * x;
  return metal::precise::log(3.14159265358979f / metal::fabs(metal::precise::sinpi(x) * x)) - cc_lgamma_positive(-x);
}

//@ cc_norm cc_measure
typedef float cc_measure;
// The length of x times *scale, a power of two that keeps the squares of floats in range.
CC_T CC_FN float cc_norm(CC_V x, thread float *scale) {
  float m = 0, s = 0;
  for (int i = 0; i < N; i++)
    m = metal::fabs(float(x.v[i])) > m ? metal::fabs(float(x.v[i])) : m;
  const float k = m > 0x1p60f ? 0x1p-100f : m < 0x1p-40f ? 0x1p100f : 1.0f;
  for (int i = 0; i < N; i++)
    s = metal::fma(float(x.v[i]) * k, float(x.v[i]) * k, s);
  *scale = k;
  return metal::precise::sqrt(s);
}

//@
CC_END
