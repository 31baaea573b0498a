// metal_math2.h: for Metal, mathematical functions that return a second result through a pointer,
// the half_ and native_ forms, the common and the geometric functions.

CC_FN float cc_t_fract(float x, thread float *p) {
  float f = metal::floor(x);
  *p = f;
  if (cc_t_inf(x))
    return metal::copysign(0.0f, x);
  float d = x - f, top = 0x1.fffffep-1f;
  return d < top || !(x == x) ? d : top;
}
CC_FN float cc_t_modf(float x, thread float *p) {
  float t = metal::trunc(x);
  *p = t;
  return metal::copysign(cc_t_inf(x) ? 0.0f : x - t, x);
}
CC_FN float cc_t_sincos(float x, thread float *p) {
  *p = metal::precise::cos(x);
  return metal::precise::sin(x);
}
CC_FN float cc_t_frexp(float x, thread cc_int *e) {
  *e = 0;
  if (!(x == x) || cc_t_inf(x) || x == 0)
    return x;
  const cc_int k = cc_ilogb(x) + 1;
  *e = k;
  return k > 0 ? metal::ldexp(x, -k) : metal::ldexp(metal::ldexp(x, 64), -k - 64);
}
CC_FN float cc_t_lgamma_r(float x, thread cc_int *s) {
  *s = cc_gamma_sign(x);
  return cc_t_lgamma(x);
}

// The remainder to the nearest multiple, and the low seven bits of the quotient. Every subtraction is
// exact.
CC_FN float cc_t_remquo(float x, float y, thread cc_int *quo) {
  float a = metal::fabs(x), b = metal::fabs(y);
  *quo = 0;
  if (!(x == x) || !(y == y) || cc_t_inf(x) || b == 0)
    return CC_NAN;
  if (cc_t_inf(y))
    return x;
  cc_uint q = 0;
  if (!cc_t_inf(b * 128.0f))
    a = metal::precise::fmod(a, b * 128.0f);
  for (cc_uint k = 64; k > 0; k >>= 1)
    if (a >= float(k) * b) {
      a -= float(k) * b;
      q += k;
    }
  float rest = b - a;
  if (a > rest || (a == rest && (q & 1))) {
    a -= b;
    q++;
  }
  q &= 127;
  *quo = (x < 0) != (y < 0) ? -cc_int(q) : cc_int(q);
  if (a == 0)
    return metal::copysign(a, x);
  return metal::copysign(1.0f, x) < 0 ? -a : a;
}
CC_FN float cc_t_remainder(float x, float y) {
  cc_int q;
  return cc_t_remquo(x, y, &q);
}
CC_FN float cc_t_fmod(float x, float y) {
  if (!(x == x) || !(y == y) || cc_t_inf(x) || y == 0)
    return CC_NAN;
  return cc_t_inf(y) ? x : metal::copysign(metal::precise::fmod(metal::fabs(x), metal::fabs(y)), x);
}
CC_F2(remainder, cc_t_remainder(x, y)) CC_F2(fmod, cc_t_fmod(x, y))

// P is the type of the second result.
#define CC_PTR(f, space, P) \
  CC_FN float cc_##f(float x, space P *p) { P q; float r = cc_t_##f(x, &q); *p = q; return r; } \
  template <int N> CC_FN cc_vec<float, N> cc_##f(cc_vec<float, N> x, space cc_vec<P, N> *p) { cc_vec<float, N> r; CC_LANES(cc_##f(x.v[i], &p->v[i])); } \
  template <int N> CC_FN cc_vec<cc_half, N> cc_##f(cc_vec<cc_half, N> x, space cc_vec<CC_HALF_OF_##P, N> *p) { cc_vec<cc_half, N> r; CC_LANES(cc_##f(x.v[i], &p->v[i])); }
#define CC_HALF_OF_float cc_half
#define CC_HALF_OF_cc_int cc_int
#define CC_PTRF(f, space) \
  CC_FN cc_half cc_##f(cc_half x, space cc_half *p) { float q, r = cc_t_##f(float(x), &q); *p = cc_half(q); return cc_half(r); } \
  CC_PTR(f, space, float)
#define CC_PTRI(f, space) \
  CC_FN cc_half cc_##f(cc_half x, space cc_int *p) { cc_int q; float r = cc_t_##f(float(x), &q); *p = q; return cc_half(r); } \
  CC_PTR(f, space, cc_int)
#define CC_SPACE(space) \
  CC_PTRF(fract, space) CC_PTRF(modf, space) CC_PTRF(sincos, space) CC_PTRI(frexp, space) CC_PTRI(lgamma_r, space) \
  CC_FN float cc_remquo(float x, float y, space cc_int *p) { cc_int q; float r = cc_t_remquo(x, y, &q); *p = q; return r; } \
  CC_FN cc_half cc_remquo(cc_half x, cc_half y, space cc_int *p) { return cc_half(cc_remquo(float(x), float(y), p)); } \
  CC_T CC_FN CC_V cc_remquo(CC_V x, CC_V y, space cc_vec<cc_int, N> *p) { CC_V r; CC_LANES(cc_remquo(x.v[i], y.v[i], &p->v[i])); }
CC_SPACE(thread) CC_SPACE(device) CC_SPACE(threadgroup)
#undef CC_SPACE
#undef CC_PTR
#undef CC_PTRF
#undef CC_PTRI

// half_ functions may be less accurate than the plain ones; here they are the same. native_
// functions are Metal's fast forms.
#define CC_FAST1(f, fast) \
  CC_FN float cc_half_##f(float x) { return cc_##f(x); } \
  CC_FN float cc_native_##f(float x) { return fast; } \
  template <int N> CC_FN cc_vec<float, N> cc_half_##f(cc_vec<float, N> x) { return cc_##f(x); } \
  template <int N> CC_FN cc_vec<float, N> cc_native_##f(cc_vec<float, N> x) { cc_vec<float, N> r; CC_LANES(cc_native_##f(x.v[i])); }
#define CC_FAST2(f, fast) \
  CC_FN float cc_half_##f(float x, float y) { return cc_##f(x, y); } \
  CC_FN float cc_native_##f(float x, float y) { return fast; } \
  template <int N> CC_FN cc_vec<float, N> cc_half_##f(cc_vec<float, N> x, cc_vec<float, N> y) { return cc_##f(x, y); } \
  template <int N> CC_FN cc_vec<float, N> cc_native_##f(cc_vec<float, N> x, cc_vec<float, N> y) { cc_vec<float, N> r; CC_LANES(cc_native_##f(x.v[i], y.v[i])); }
CC_F1(recip, 1.0f / x) CC_F2(divide, x / y)
CC_FAST1(cos, metal::fast::cos(x)) CC_FAST1(exp, metal::fast::exp(x)) CC_FAST1(exp2, metal::fast::exp2(x))
CC_FAST1(exp10, metal::fast::exp10(x)) CC_FAST1(log, metal::fast::log(x)) CC_FAST1(log2, metal::fast::log2(x))
CC_FAST1(log10, metal::fast::log10(x)) CC_FAST1(recip, 1.0f / x) CC_FAST1(rsqrt, metal::fast::rsqrt(x))
CC_FAST1(sin, metal::fast::sin(x)) CC_FAST1(sqrt, metal::fast::sqrt(x)) CC_FAST1(tan, metal::fast::tan(x))
CC_FAST2(divide, x / y) CC_FAST2(powr, metal::fast::powr(x, y))
#undef CC_FAST1
#undef CC_FAST2

// ---- common functions; max, min and clamp are for integers too ----

template <class F> CC_FN F cc_max(F x, F y) { return x < y ? y : x; }
template <class F> CC_FN F cc_min(F x, F y) { return y < x ? y : x; }
template <class F> CC_FN F cc_clamp(F x, F lo, F hi) { return cc_min(cc_max(x, lo), hi); }
CC_T CC_FN CC_V cc_max(CC_V x, CC_V y) { CC_V r; CC_LANES(cc_max(x.v[i], y.v[i])); }
CC_T CC_FN CC_V cc_min(CC_V x, CC_V y) { CC_V r; CC_LANES(cc_min(x.v[i], y.v[i])); }
CC_T CC_FN CC_V cc_clamp(CC_V x, CC_V l, CC_V h) { CC_V r; CC_LANES(cc_clamp(x.v[i], l.v[i], h.v[i])); }
CC_T CC_FN CC_V cc_max(CC_V x, cc_id<T> y) { return cc_max(x, cc_splat<T, N>(y)); }
CC_T CC_FN CC_V cc_min(CC_V x, cc_id<T> y) { return cc_min(x, cc_splat<T, N>(y)); }
CC_T CC_FN CC_V cc_clamp(CC_V x, cc_id<T> l, cc_id<T> h) { return cc_clamp(x, cc_splat<T, N>(l), cc_splat<T, N>(h)); }

CC_F1(degrees, x * 57.295779513082320877f) CC_F1(radians, x * 0.017453292519943295769f)
CC_F1(sign, x > 0 ? 1.0f : x < 0 ? -1.0f : x == 0 ? x : 0.0f)
CC_F2(step, y < x ? 0.0f : 1.0f)
CC_F3(mix, x + (y - x) * z)
CC_FN float cc_t_smoothstep(float l, float h, float x) {
  float t = cc_min(cc_max((x - l) / (h - l), 0.0f), 1.0f);
  return t * t * (3.0f - 2.0f * t);
}
CC_F3(smoothstep, cc_t_smoothstep(x, y, z))
CC_T CC_FN CC_V cc_step(cc_id<T> e, CC_V x) { return cc_step(cc_splat<T, N>(e), x); }
CC_T CC_FN CC_V cc_mix(CC_V x, CC_V y, cc_id<T> a) { return cc_mix(x, y, cc_splat<T, N>(a)); }
CC_T CC_FN CC_V cc_smoothstep(cc_id<T> l, cc_id<T> h, CC_V x) {
  return cc_smoothstep(cc_splat<T, N>(l), cc_splat<T, N>(h), x);
}

// ---- geometric functions ----

template <class F> CC_FN F cc_dot(F x, F y) { return F(x * y); }
CC_T CC_FN T cc_dot(CC_V x, CC_V y) {
  T s = x.v[0] * y.v[0];
  for (int i = 1; i < N; i++)
    s += x.v[i] * y.v[i];
  return s;
}
CC_T CC_FN CC_V cc_cross(CC_V a, CC_V b) {
  CC_V r;
  r.v[0] = a.v[1] * b.v[2] - a.v[2] * b.v[1];
  r.v[1] = a.v[2] * b.v[0] - a.v[0] * b.v[2];
  r.v[2] = a.v[0] * b.v[1] - a.v[1] * b.v[0];
  if (N == 4)
    r.v[3] = T(0);
  return r;
}
// The length of x times *scale, a power of two that keeps the squares of floats in range.
CC_T CC_FN float cc_norm(CC_V x, thread float *scale) {
  float m = 0, s = 0;
  for (int i = 0; i < N; i++)
    m = cc_fmax(m, metal::fabs(float(x.v[i])));
  const float k = m > 0x1p60f ? 0x1p-100f : m < 0x1p-40f ? 0x1p100f : 1.0f;
  for (int i = 0; i < N; i++)
    s = metal::fma(float(x.v[i]) * k, float(x.v[i]) * k, s);
  *scale = k;
  return metal::precise::sqrt(s);
}
CC_T CC_FN T cc_length(CC_V x) {
  float k, n = cc_norm(x, &k);
  return T(n / k);
}
CC_T CC_FN CC_V cc_normalize(CC_V x) {
  float k, n = cc_norm(x, &k);
  if (cc_t_inf(n)) { // only infinite lanes count
    for (int i = 0; i < N; i++)
      x.v[i] = T(metal::copysign(cc_t_inf(float(x.v[i])) ? 1.0f : 0.0f, float(x.v[i])));
    n = cc_norm(x, &k);
  }
  CC_V r;
  // Small lanes keep their precision if the scale is applied last.
  CC_LANES(n == 0 ? x.v[i] : k > 1 ? T(float(x.v[i]) * k / n) : T(float(x.v[i]) / n * k));
}
CC_T CC_FN T cc_distance(CC_V x, CC_V y) { return cc_length(x - y); }
CC_FN float cc_length(float x) { return metal::fabs(x); }
CC_FN float cc_distance(float x, float y) { return metal::fabs(x - y); }
CC_FN float cc_normalize(float x) { return cc_sign(x); }
CC_FN cc_half cc_length(cc_half x) { return cc_fabs(x); }
CC_FN cc_half cc_distance(cc_half x, cc_half y) { return cc_fabs(cc_half(x - y)); }
CC_FN cc_half cc_normalize(cc_half x) { return cc_sign(x); }
template <class V> CC_FN cc_lane_of<V> cc_fast_length(V x) { return cc_length(x); }
template <class V> CC_FN cc_lane_of<V> cc_fast_distance(V x, V y) { return cc_distance(x, y); }
template <class V> CC_FN V cc_fast_normalize(V x) { return cc_normalize(x); }

// ---- ids of the work item ----

struct cc_event { cc_uint none; };
template <class P> CC_FN void cc_prefetch(P, cc_size) {}

// A group's asynchronous copies: each item copies its share at once; waiting is a barrier. The stride
// is that of the global side.
#define CC_COPIES(to, from, name, dstep, sstep) \
  template <class T> \
  CC_FN cc_event name(to T *dst, const from cc_id<T> *src, cc_size n, cc_size stride, cc_uint place, cc_uint items) { \
    (void)stride; \
    for (cc_size i = place; i < n; i += items) \
      cc_put(dst[i * dstep], cc_get(src[i * sstep])); \
    return {0}; \
  }
CC_COPIES(threadgroup, device, cc_copy_, 1, stride) CC_COPIES(threadgroup, constant, cc_copy_, 1, stride)
CC_COPIES(device, threadgroup, cc_copy_, stride, 1)
#undef CC_COPIES
