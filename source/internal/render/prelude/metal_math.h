// metal_math.h: the mathematical functions for Metal, in float: Metal's precise functions where
// they exist, otherwise approximations within OpenCL's bounds. The polynomials were fitted for this
// file. Every function takes exactly float, half (computed in float and rounded) or a vector.

#define CC_WRAP1(f) \
  CC_FN cc_half cc_##f(cc_half x) { return cc_half(cc_##f(float(x))); } \
  CC_T CC_FN CC_V cc_##f(CC_V x) { CC_V r; CC_LANES(cc_##f(x.v[i])); }
#define CC_WRAP2(f) \
  CC_FN cc_half cc_##f(cc_half x, cc_half y) { return cc_half(cc_##f(float(x), float(y))); } \
  CC_T CC_FN CC_V cc_##f(CC_V x, CC_V y) { CC_V r; CC_LANES(cc_##f(x.v[i], y.v[i])); }
#define CC_WRAP3(f) \
  CC_FN cc_half cc_##f(cc_half x, cc_half y, cc_half z) { return cc_half(cc_##f(float(x), float(y), float(z))); } \
  CC_T CC_FN CC_V cc_##f(CC_V x, CC_V y, CC_V z) { CC_V r; CC_LANES(cc_##f(x.v[i], y.v[i], z.v[i])); }
#define CC_F1(f, expr) CC_FN float cc_##f(float x) { return expr; } CC_WRAP1(f)
#define CC_F2(f, expr) CC_FN float cc_##f(float x, float y) { return expr; } CC_WRAP2(f)
#define CC_F3(f, expr) CC_FN float cc_##f(float x, float y, float z) { return expr; } CC_WRAP3(f)

#define CC_PRECISE(f) CC_F1(f, metal::precise::f(x))
CC_PRECISE(acos) CC_PRECISE(acosh) CC_PRECISE(asin) CC_PRECISE(asinh) CC_PRECISE(atan) CC_PRECISE(atanh)
CC_PRECISE(cos) CC_PRECISE(cosh) CC_PRECISE(cospi) CC_PRECISE(exp) CC_PRECISE(exp2) CC_PRECISE(exp10)
CC_PRECISE(log) CC_PRECISE(log2) CC_PRECISE(log10) CC_PRECISE(rsqrt) CC_PRECISE(sin) CC_PRECISE(sinh)
CC_PRECISE(sinpi) CC_PRECISE(sqrt) CC_PRECISE(tan) CC_PRECISE(tanh) CC_PRECISE(tanpi)
#undef CC_PRECISE
CC_F1(ceil, metal::ceil(x)) CC_F1(fabs, metal::fabs(x)) CC_F1(floor, metal::floor(x)) CC_F1(rint, metal::rint(x))
CC_F1(round, metal::round(x)) CC_F1(trunc, metal::trunc(x))
CC_F2(atan2, metal::precise::atan2(x, y)) CC_F2(copysign, metal::copysign(x, y)) CC_F2(fdim, metal::fdim(x, y))
CC_F2(pow, metal::precise::pow(x, y))
CC_F3(fma, metal::fma(x, y, z)) CC_F3(mad, metal::fma(x, y, z))

#define CC_1_PI 0.31830988618379067f
CC_F1(acospi, metal::precise::acos(x) * CC_1_PI) CC_F1(asinpi, metal::precise::asin(x) * CC_1_PI)
CC_F1(atanpi, metal::precise::atan(x) * CC_1_PI) CC_F2(atan2pi, metal::precise::atan2(x, y) * CC_1_PI)

CC_FN bool cc_t_inf(float x) { return metal::fabs(x) == CC_INFINITY; }

// nextafter of half steps by half's own precision, so it cannot be computed in float.
template <class F> CC_FN F cc_t_nextafter(F x, F y) {
  if (!(x == x) || !(y == y))
    return F(x + y);
  return x == y ? y : cc_step_to(x, x < y);
}
CC_FN float cc_nextafter(float x, float y) { return cc_t_nextafter(x, y); }
CC_FN cc_half cc_nextafter(cc_half x, cc_half y) { return cc_t_nextafter(x, y); }
CC_T CC_FN CC_V cc_nextafter(CC_V x, CC_V y) { CC_V r; CC_LANES(cc_nextafter(x.v[i], y.v[i])); }

// If one argument is a NaN, the result is the other one.
CC_F2(fmin, y < x || !(x == x) ? y : x) CC_F2(fmax, x < y || !(x == x) ? y : x)
CC_T CC_FN CC_V cc_fmin(CC_V x, cc_id<T> y) { CC_V r; CC_LANES(cc_fmin(x.v[i], y)); }
CC_T CC_FN CC_V cc_fmax(CC_V x, cc_id<T> y) { CC_V r; CC_LANES(cc_fmax(x.v[i], y)); }
CC_FN float cc_t_maxmag(float x, float y) {
  float a = metal::fabs(x), b = metal::fabs(y);
  return a > b ? x : b > a ? y : cc_fmax(x, y);
}
CC_FN float cc_t_minmag(float x, float y) {
  float a = metal::fabs(x), b = metal::fabs(y);
  return a < b ? x : b < a ? y : cc_fmin(x, y);
}
CC_F2(maxmag, cc_t_maxmag(x, y)) CC_F2(minmag, cc_t_minmag(x, y))

// The exponent of x; for a denormal it follows from the first bit that is set. FP_ILOGB0 and
// FP_ILOGBNAN are those of constMacros in builtins_const.go.
CC_FN cc_int cc_ilogb(float x) {
  cc_uint b = cc_as_bits<cc_uint>(x) & 0x7fffffffu;
  if (b == 0)
    return cc_int_min<cc_int>();
  if (b >= 0x7f800000u)
    return cc_int_max<cc_int>();
  return b >= 0x00800000u ? cc_int(b >> 23) - 127 : -118 - cc_int(metal::clz(b));
}
CC_FN cc_int cc_ilogb(cc_half x) { return cc_ilogb(float(x)); }
CC_T CC_FN cc_vec<cc_int, N> cc_ilogb(CC_V x) { cc_vec<cc_int, N> r; CC_LANES(cc_ilogb(x.v[i])); }
CC_F1(logb, x == 0 ? -CC_INFINITY : !(x == x) ? x : cc_t_inf(x) ? CC_INFINITY : float(cc_ilogb(x)))

CC_FN float cc_ldexp(float x, cc_int n) { return metal::ldexp(x, n); }

// A power for x >= 0 only, with its own rules at the edges.
CC_FN float cc_t_powr(float x, float y) {
  if (x < 0 || !(x == x) || !(y == y))
    return CC_NAN;
  if (x == 1)
    return cc_t_inf(y) ? CC_NAN : 1.0f;
  if (y == 0 && (x == 0 || cc_t_inf(x)))
    return CC_NAN;
  return metal::precise::pow(metal::fabs(x), y);
}
CC_F2(powr, cc_t_powr(x, y))
CC_FN float cc_pown(float x, cc_int n) {
  float a = metal::fabs(x), r;
  if (n > -16777216 && n < 16777216) {
    r = metal::precise::pow(a, float(n));
  } else { // n as a sum of two floats of one sign
    const cc_int low = n % 256;
    r = metal::precise::pow(a, float(n - low)) * metal::precise::pow(a, float(low));
  }
  return n & 1 ? metal::copysign(r, x) : r;
}
CC_FN float cc_rootn(float x, cc_int n) {
  if (n == 0 || (x < 0 && n % 2 == 0) || !(x == x))
    return CC_NAN;
  float a = metal::fabs(x), r = a;
  if (a == 0 || cc_t_inf(a)) {
    r = (a == 0) == (n > 0) ? 0.0f : CC_INFINITY;
    return n % 2 ? metal::copysign(r, x) : r;
  }
  if (n != 1) { // 1/n was rounded, with the error e; r * e * log a is the resulting error of r
    float m = float(n), y = 1.0f / m, e = metal::fma(-m, y, 1.0f) / m;
    r = metal::precise::pow(a, y);
    if (e != 0 && !cc_t_inf(r))
      r += r * (e * metal::precise::log(a));
  }
  return x < 0 ? -r : r;
}
#define CC_INT2(f) \
  CC_FN cc_half cc_##f(cc_half x, cc_int n) { return cc_half(cc_##f(float(x), n)); } \
  CC_T CC_FN CC_V cc_##f(CC_V x, cc_vec<cc_int, N> n) { CC_V r; CC_LANES(cc_##f(x.v[i], n.v[i])); }
CC_INT2(pown) CC_INT2(rootn) CC_INT2(ldexp)
#undef CC_INT2
CC_T CC_FN CC_V cc_ldexp(CC_V x, cc_int n) { CC_V r; CC_LANES(cc_ldexp(x.v[i], n)); }

// Square root of a^2 + b^2, with both scaled to near 1 first.
CC_FN float cc_t_hypot(float x, float y) {
  float a = metal::fabs(x), b = metal::fabs(y);
  if (cc_t_inf(a) || cc_t_inf(b))
    return CC_INFINITY;
  float m = a > b ? a : b, s = m > 0x1p60f ? 0x1p-100f : m < 0x1p-40f ? 0x1p100f : 1.0f;
  a *= s;
  b *= s;
  return metal::precise::sqrt(metal::fma(a, a, b * b)) * (s == 1.0f ? 1.0f : s < 1.0f ? 0x1p100f : 0x1p-100f);
}
CC_F2(hypot, cc_t_hypot(x, y))

// One step of Newton's method, with the residue computed by fma.
CC_FN float cc_t_cbrt(float x) {
  if (x == 0 || !(x == x) || cc_t_inf(x))
    return x;
  bool tiny = metal::fabs(x) < 0x1p-100f;
  float a = metal::fabs(x) * (tiny ? 0x1p48f : 1.0f), r = metal::precise::exp2(metal::precise::log2(a) / 3.0f);
  float q = r * r, qe = metal::fma(r, r, -q), c = q * r, ce = metal::fma(q, r, -c);
  r -= ((c - a) + (ce + qe * r)) / (3.0f * q);
  return metal::copysign(r * (tiny ? 0x1p-16f : 1.0f), x);
}
CC_F1(cbrt, cc_t_cbrt(x))

CC_FN float cc_t_expm1(float x) {
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
CC_F1(expm1, cc_t_expm1(x))

// Near 0 the series of 2 atanh s with s = x / (2 + x); elsewhere log(1 + x) with a first-order
// correction for the rounding of 1 + x.
CC_FN float cc_t_log1p(float x) {
  if (x < -0.3f || x > 0.45f) {
    float u = 1.0f + x;
    if (!(u > 0) || cc_t_inf(u))
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
CC_F1(log1p, cc_t_log1p(x))

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
CC_FN float cc_t_erf(float x) {
  float a = metal::fabs(x);
  return !(x == x) ? x : a < 1.0f ? cc_erf_small(x) : metal::copysign(1.0f - cc_erfc_large(a), x);
}
CC_FN float cc_t_erfc(float x) {
  if (!(x == x))
    return x;
  if (metal::fabs(x) < 1.0f)
    return 1.0f - cc_erf_small(x);
  return x < 0 ? 2.0f - cc_erfc_large(-x) : cc_erfc_large(x);
}
CC_F1(erf, cc_t_erf(x)) CC_F1(erfc, cc_t_erfc(x))

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
CC_FN float cc_t_tgamma(float x) {
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
CC_F1(tgamma, cc_t_tgamma(x))

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
CC_FN float cc_t_lgamma(float x) {
  if (!(x == x) || cc_t_inf(x))
    return metal::fabs(x);
  if (x > 0)
    return cc_lgamma_positive(x);
  if (metal::floor(x) == x)
    return CC_INFINITY;
  if (x > -0x1p-20f) // Euler's constant
    return -metal::precise::log(-x) - 0.5772156649f * x;
  return metal::precise::log(3.14159265358979f / metal::fabs(metal::precise::sinpi(x) * x)) - cc_lgamma_positive(-x);
}
CC_F1(lgamma, cc_t_lgamma(x))
// The sign of gamma: at -0 it is that of the pole, and below 0 it changes at every integer.
CC_FN cc_int cc_gamma_sign(float x) {
  if (x == 0)
    return metal::copysign(1.0f, x) < 0 ? -1 : 1;
  float n = metal::floor(x);
  return x < 0 && n != x && n - 2.0f * metal::floor(n / 2.0f) != 0 ? -1 : 1;
}

CC_FN cc_half cc_nan(cc_ushort c) { return cc_as_bits<cc_half>(cc_ushort(0x7e00 | (c & 0x1ff))); }
CC_FN float cc_nan(cc_uint c) { return cc_as_bits<float>(0x7fc00000u | (c & 0x3fffffu)); }
template <int N> CC_FN cc_vec<float, N> cc_nan(cc_vec<cc_uint, N> x) { cc_vec<float, N> r; CC_LANES(cc_nan(x.v[i])); }
template <int N> CC_FN cc_vec<cc_half, N> cc_nan(cc_vec<cc_ushort, N> x) { cc_vec<cc_half, N> r; CC_LANES(cc_nan(x.v[i])); }
