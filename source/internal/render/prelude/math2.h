// math2.h: mathematical functions that return a second result through a pointer, the half_ and
// native_ forms, the common and the geometric functions. All targets share it.

CC_BEGIN

//@ cc_fract cc_modf cc_sincos
template <class F> CC_FN F cc_t_fract(F x, CC_PRIVATE F *p) {
  F f = cc_m_floor(x);
  *p = f;
  if (cc_t_isinf(x))
    return cc_m_copysign(F(0), x);
  F d = x - f, top = cc_step_to(F(1), false);
  return d < top || !(x == x) ? d : top;
}
template <class F> CC_FN F cc_t_modf(F x, CC_PRIVATE F *p) {
  F t = cc_m_trunc(x);
  *p = t;
  return cc_m_copysign(cc_t_isinf(x) ? F(0) : x - t, x);
}
template <class F> CC_FN F cc_t_sincos(F x, CC_PRIVATE F *p) {
  *p = cc_m_cos(x);
  return cc_m_sin(x);
}
#define CC_PTR1(f, space, F) CC_FN F cc_##f(F x, space F *p) { F q, r = cc_t_##f(x, &q); *p = q; return r; }
#define CC_PTR(f, space) \
  CC_PTR1(f, space, float) CC_FOR_DOUBLE(CC_PTR1(f, space, cc_double)) \
  CC_FN cc_half cc_##f(cc_half x, space cc_half *p) { float q, r = cc_t_##f(float(x), &q); *p = cc_half(q); return cc_half(r); } \
  CC_T CC_FN CC_V cc_##f(CC_V x, space CC_V *p) { CC_V r; CC_LANES(cc_##f(x.v[i], &p->v[i])); }
#define CC_SPACE(space) CC_PTR(fract, space) CC_PTR(modf, space) CC_PTR(sincos, space)
CC_SPACES(CC_SPACE)
#undef CC_SPACE
#undef CC_PTR
#undef CC_PTR1

//@ cc_frexp cc_lgamma_r
template <class F> CC_FN F cc_t_frexp(F x, CC_PRIVATE cc_int *e) {
  *e = 0;
  return !(x == x) || cc_t_isinf(x) ? x : cc_m_frexp(x, e);
}
#ifdef CC_LGAMMA_R
template <class F> CC_FN F cc_t_lgamma_r(F x, CC_PRIVATE cc_int *s) { return cc_m_lgamma_r(x, s); }
#else
// The sign of gamma: at -0 it is that of the pole, and below 0 it changes at every integer.
template <class F> CC_FN F cc_t_lgamma_r(F x, CC_PRIVATE cc_int *s) {
  const F n = cc_m_floor(x);
  const bool changed = x == F(0) ? cc_m_copysign(F(1), x) < F(0) : x < F(0) && n != x && n - F(2) * cc_m_floor(n / F(2)) != F(0);
  *s = changed ? -1 : 1;
  return cc_m_lgamma(x);
}
#endif
#define CC_PTR1(f, space, F) CC_FN F cc_##f(F x, space cc_int *p) { cc_int q; F r = F(cc_t_##f(cc_real<F>(x), &q)); *p = q; return r; }
#define CC_PTR(f, space) \
  CC_PTR1(f, space, float) CC_FOR_DOUBLE(CC_PTR1(f, space, cc_double)) CC_PTR1(f, space, cc_half) \
  CC_T CC_FN CC_V cc_##f(CC_V x, space cc_vec<cc_int, N> *p) { CC_V r; CC_LANES(cc_##f(x.v[i], &p->v[i])); }
#define CC_SPACE(space) CC_PTR(frexp, space) CC_PTR(lgamma_r, space)
CC_SPACES(CC_SPACE)
#undef CC_SPACE
#undef CC_PTR
#undef CC_PTR1

//@ cc_remquo cc_t_remquo
// The remainder and the low seven bits of the quotient (the C library gives three). Every
// subtraction is exact.
template <class F> CC_FN F cc_t_remquo(F x, F y, CC_PRIVATE cc_int *quo) {
  F a = cc_m_fabs(x), b = cc_m_fabs(y);
  *quo = 0;
  if (!(x == x) || !(y == y) || cc_t_isinf(x) || b == F(0))
    return F(CC_NAN);
  if (cc_t_isinf(y))
    return x;
  cc_uint q = 0;
  if (!cc_t_isinf(b * F(128)))
    a = cc_m_fmod(a, b * F(128));
  for (cc_uint k = 64; k > 0; k >>= 1)
    if (a >= F(k) * b) {
      a -= F(k) * b;
      q += k;
    }
  F rest = b - a;
  if (a > rest || (a == rest && (q & 1))) {
    a -= b;
    q++;
  }
  q &= 127;
  *quo = (x < F(0)) != (y < F(0)) ? -cc_int(q) : cc_int(q);
  if (a == F(0))
    return cc_m_copysign(a, x);
  return cc_m_copysign(F(1), x) < F(0) ? -a : a;
}
#define CC_PTR(F, space) \
  CC_FN F cc_remquo(F x, F y, space cc_int *p) { cc_int q; F r = F(cc_t_remquo(cc_real<F>(x), cc_real<F>(y), &q)); *p = q; return r; }
#define CC_SPACE(space) \
  CC_PTR(float, space) CC_FOR_DOUBLE(CC_PTR(cc_double, space)) CC_PTR(cc_half, space) \
  CC_T CC_FN CC_V cc_remquo(CC_V x, CC_V y, space cc_vec<cc_int, N> *p) { CC_V r; CC_LANES(cc_remquo(x.v[i], y.v[i], &p->v[i])); }
CC_SPACES(CC_SPACE)
#undef CC_SPACE
#undef CC_PTR

//@
// half_ functions may be less accurate than the plain ones; here they are the same. So are native_
// functions unless the target has a faster form, as a hook cc_n_name.
#ifdef CC_NATIVE
#define CC_NATIVE1(f) cc_n_##f(x)
#define CC_NATIVE2(f) cc_n_##f(x, y)
#else
#define CC_NATIVE1(f) cc_##f(x)
#define CC_NATIVE2(f) cc_##f(x, y)
#endif
#define CC_FAST1(f) \
  CC_FN float cc_half_##f(float x) { return cc_##f(x); } \
  CC_FN float cc_native_##f(float x) { return CC_NATIVE1(f); } \
  template <int N> CC_FN cc_vec<float, N> cc_half_##f(cc_vec<float, N> x) { return cc_##f(x); } \
  template <class T, int N> CC_FN CC_V cc_native_##f(CC_V x) { CC_V r; CC_LANES(cc_native_##f(x.v[i])); }
#define CC_FAST2(f) \
  CC_FN float cc_half_##f(float x, float y) { return cc_##f(x, y); } \
  CC_FN float cc_native_##f(float x, float y) { return CC_NATIVE2(f); } \
  template <int N> CC_FN cc_vec<float, N> cc_half_##f(cc_vec<float, N> x, cc_vec<float, N> y) { return cc_##f(x, y); } \
  template <class T, int N> CC_FN CC_V cc_native_##f(CC_V x, CC_V y) { CC_V r; CC_LANES(cc_native_##f(x.v[i], y.v[i])); }
//@ cc_half_recip cc_native_recip
CC_FN float cc_recip(float x) { return 1.0f / x; }
template <int N> CC_FN cc_vec<float, N> cc_recip(cc_vec<float, N> x) { return 1.0f / x; }
CC_FAST1(recip)
//@ cc_half_divide cc_native_divide
CC_FN float cc_divide(float x, float y) { return cc_div(x, y); }
template <int N> CC_FN cc_vec<float, N> cc_divide(cc_vec<float, N> x, cc_vec<float, N> y) { return x / y; }
CC_FAST2(divide)
//@ cc_half_cos cc_native_cos
CC_FAST1(cos) // of cc_cos
//@ cc_half_exp cc_native_exp
CC_FAST1(exp) // of cc_exp
//@ cc_half_exp2 cc_native_exp2
CC_FAST1(exp2) // of cc_exp2
//@ cc_half_exp10 cc_native_exp10
CC_FAST1(exp10) // of cc_exp10
//@ cc_half_log cc_native_log
CC_FAST1(log) // of cc_log
//@ cc_half_log2 cc_native_log2
CC_FAST1(log2) // of cc_log2
//@ cc_half_log10 cc_native_log10
CC_FAST1(log10) // of cc_log10
//@ cc_half_rsqrt cc_native_rsqrt
CC_FAST1(rsqrt) // of cc_rsqrt
//@ cc_half_sin cc_native_sin
CC_FAST1(sin) // of cc_sin
//@ cc_half_sqrt cc_native_sqrt
CC_FAST1(sqrt) // of cc_sqrt
//@ cc_half_tan cc_native_tan
CC_FAST1(tan) // of cc_tan
//@ cc_half_powr cc_native_powr
CC_FAST2(powr) // of cc_powr
//@
#undef CC_FAST1
#undef CC_FAST2

// ---- common functions; max, min and clamp are for integers too ----

//@ cc_max cc_min cc_clamp
template <class F> CC_FN F cc_max(F x, F y) { return x < y ? y : x; }
template <class F> CC_FN F cc_min(F x, F y) { return y < x ? y : x; }
template <class F> CC_FN F cc_clamp(F x, F lo, F hi) { return cc_min(cc_max(x, lo), hi); }
CC_T CC_FN CC_V cc_max(CC_V x, CC_V y) { CC_V r; CC_LANES(cc_max(x.v[i], y.v[i])); }
CC_T CC_FN CC_V cc_min(CC_V x, CC_V y) { CC_V r; CC_LANES(cc_min(x.v[i], y.v[i])); }
CC_T CC_FN CC_V cc_clamp(CC_V x, CC_V l, CC_V h) { CC_V r; CC_LANES(cc_clamp(x.v[i], l.v[i], h.v[i])); }
CC_T CC_FN CC_V cc_max(CC_V x, cc_id<T> y) { CC_V r; CC_LANES(cc_max(x.v[i], y)); }
CC_T CC_FN CC_V cc_min(CC_V x, cc_id<T> y) { CC_V r; CC_LANES(cc_min(x.v[i], y)); }
CC_T CC_FN CC_V cc_clamp(CC_V x, cc_id<T> l, cc_id<T> h) { CC_V r; CC_LANES(cc_clamp(x.v[i], l, h)); }

//@ cc_degrees cc_radians cc_sign cc_step cc_mix cc_smoothstep
template <class F> CC_FN F cc_m_degrees(F x) { return x * F(57.295779513082320877); }
template <class F> CC_FN F cc_m_radians(F x) { return x * F(0.017453292519943295769); }
template <class F> CC_FN F cc_m_sign(F x) { return x > F(0) ? F(1) : x < F(0) ? F(-1) : x == F(0) ? x : F(0); }
template <class F> CC_FN F cc_m_step(F e, F x) { return x < e ? F(0) : F(1); }
template <class F> CC_FN F cc_m_mix(F x, F y, F a) { return x + cc_mul(y - x, a); }
template <class F> CC_FN F cc_m_smoothstep(F l, F h, F x) {
  F t = cc_min(cc_max((x - l) / (h - l), F(0)), F(1));
  return t * t * (F(3) - F(2) * t);
}
CC_LIB1(degrees) CC_LIB1(radians) CC_LIB1(sign) CC_LIB2(step) CC_LIB3(mix) CC_LIB3(smoothstep)
CC_T CC_FN CC_V cc_step(cc_id<T> e, CC_V x) { CC_V r; CC_LANES(cc_step(e, x.v[i])); }
CC_T CC_FN CC_V cc_mix(CC_V x, CC_V y, cc_id<T> a) { CC_V r; CC_LANES(cc_mix(x.v[i], y.v[i], a)); }
CC_T CC_FN CC_V cc_smoothstep(cc_id<T> l, cc_id<T> h, CC_V x) { CC_V r; CC_LANES(cc_smoothstep(l, h, x.v[i])); }

//@
// ---- geometric functions ----

//@ cc_dot cc_cross cc_length cc_distance cc_normalize cc_fast_length cc_fast_distance cc_fast_normalize
template <class F> CC_FN F cc_dot(F x, F y) { return cc_mul(x, y); }
CC_T CC_FN T cc_dot(CC_V x, CC_V y) {
  T s = cc_mul(x.v[0], y.v[0]);
  for (int i = 1; i < N; i++)
    s += cc_mul(x.v[i], y.v[i]);
  return s;
}
CC_T CC_FN CC_V cc_cross(CC_V a, CC_V b) {
  CC_V r;
  r.v[0] = cc_sub(cc_mul(a.v[1], b.v[2]), cc_mul(a.v[2], b.v[1]));
  r.v[1] = cc_sub(cc_mul(a.v[2], b.v[0]), cc_mul(a.v[0], b.v[2]));
  r.v[2] = cc_sub(cc_mul(a.v[0], b.v[1]), cc_mul(a.v[1], b.v[0]));
  if (N == 4)
    r.v[3] = T(0);
  return r;
}
// cc_norm, of the target's part, is the length of a vector times a power of two that keeps squares in range.
CC_T CC_FN T cc_length(CC_V x) {
  cc_measure k, n = cc_norm(x, &k);
  return T(n / k);
}
CC_T CC_FN CC_V cc_normalize(CC_V x) {
  cc_measure k, n = cc_norm(x, &k);
  if (cc_t_isinf(n)) { // only infinite lanes count
    for (int i = 0; i < N; i++)
      x.v[i] = T(cc_m_copysign(cc_measure(cc_t_isinf(cc_measure(x.v[i])) ? 1 : 0), cc_measure(x.v[i])));
    n = cc_norm(x, &k);
  }
  CC_V r;
  // Small lanes keep their precision if the scale is applied last.
  CC_LANES(n == 0 ? x.v[i] : k > 1 ? T(cc_measure(x.v[i]) * k / n) : T(cc_measure(x.v[i]) / n * k));
}
CC_T CC_FN T cc_distance(CC_V x, CC_V y) { return cc_length(x - y); }
#define CC_SCALAR(F) \
  CC_FN F cc_length(F x) { return cc_fabs(x); } \
  CC_FN F cc_distance(F x, F y) { return cc_fabs(F(x - y)); } \
  CC_FN F cc_normalize(F x) { return cc_sign(x); }
CC_SCALAR(float) CC_FOR_DOUBLE(CC_SCALAR(cc_double)) CC_SCALAR(cc_half)
#undef CC_SCALAR
template <class V> CC_FN cc_lane_of<V> cc_fast_length(V x) { return cc_length(x); }
template <class V> CC_FN cc_lane_of<V> cc_fast_distance(V x, V y) { return cc_distance(x, y); }
template <class V> CC_FN V cc_fast_normalize(V x) { return cc_normalize(x); }

//@
CC_END
