// number_f.cl: functions that take numbers apart, remainders, and the common functions of float.

float cc_ldexp_f(float x, int n) {
  const uint u = as_uint(x), e = u & 0x7f800000u;
  if (e == 0x7f800000u || (u & 0x7fffffffu) == 0u)
    return x;
  const struct cc_parts_f a = cc_parts_of_f(x);
  return cc_pack_f(u & 0x80000000u, a.mant, a.exp + (n > 5000 ? 5000 : n < -5000 ? -5000 : n));
}
int cc_ilogb_f(float x) {
  const uint u = as_uint(x) & 0x7fffffffu;
  return u == 0u ? -0x7fffffff - 1 : u >= 0x7f800000u ? 0x7fffffff : cc_parts_of_f(x).exp + 31;
}
float cc_logb_f(float x) {
  const uint u = as_uint(x) & 0x7fffffffu;
  return u == 0u ? -cc_inf_f() : u >= 0x7f800000u ? fabs(x) : (float)(cc_parts_of_f(x).exp + 31);
}
struct cc_float_int cc_frexp_f(float x) {
  struct cc_float_int r;
  const uint u = as_uint(x);
  const bool plain = (u & 0x7fffffffu) != 0u && (u & 0x7f800000u) != 0x7f800000u;
  const struct cc_parts_f a = cc_parts_of_f(x);
  r.value = plain ? cc_pack_f(u & 0x80000000u, a.mant, -32) : x;
  r.other = plain ? a.exp + 32 : 0;
  return r;
}
struct cc_two_f cc_modf_f(float x) {
  struct cc_two_f r;
  r.other = trunc(x);
  r.value = copysign(fabs(x) == cc_inf_f() ? 0.0f : x - r.other, x);
  return r;
}
struct cc_two_f cc_fract_f(float x) {
  struct cc_two_f r;
  r.other = floor(x);
  const float d = x - r.other;
  r.value = fabs(x) == cc_inf_f() ? copysign(0.0f, x) : d < 0x1.fffffep-1f || x != x ? d : 0x1.fffffep-1f;
  return r;
}
float cc_round_f(float x) {
  const float t = trunc(x);
  return copysign(fabs(x - t) >= 0.5f ? t + copysign(1.0f, x) : t, x);
}
float cc_nextafter_f(float x, float y) {
  const int b = as_int(x);
  if (x != x || y != y)
    return x + y;
  const bool up = x < y, zero = (as_uint(x) & 0x7fffffffu) == 0u;
  const int to = zero ? (up ? 1 : as_int(0x80000000u | 1u)) : (b >= 0) == up ? b + 1 : b - 1;
  return x == y ? y : as_float(to);
}
float cc_nan_of_f(uint c) { return as_float(0x7fc00000u | (c & 0x3fffffu)); }
float cc_fdim_f(float x, float y) { return x != x || y != y ? cc_nan_f() : x > y ? x - y : 0.0f; }
// If one argument is a NaN, the result is the other one.
float cc_fmin_f(float x, float y) { return y < x || x != x ? y : x; }
float cc_fmax_f(float x, float y) { return x < y || x != x ? y : x; }
float cc_maxmag_f(float x, float y) {
  const float a = fabs(x), b = fabs(y);
  return a > b ? x : b > a ? y : cc_fmax_f(x, y);
}
float cc_minmag_f(float x, float y) {
  const float a = fabs(x), b = fabs(y);
  return a < b ? x : b < a ? y : cc_fmin_f(x, y);
}

// The remainder of |x| by |y|, which are finite and not 0, and the last bits of the quotient, by integers.
struct cc_float_int cc_rest_of_f(float x, float y) {
  struct cc_float_int r;
  const struct cc_parts_f a = cc_parts_of_f(x), b = cc_parts_of_f(y);
  int d = a.exp - b.exp;
  r.value = fabs(x);
  r.other = 0;
  if (d < 0)
    return r;
  const uint m = b.mant >> 8;
  uint n = a.mant >> 8, q = n / m;
  n -= q * m;
  while (d > 0 && n != 0u) {
    const int k = d > 8 ? 8 : d;
    n = n << k;
    const uint t = n / m;
    n -= t * m;
    q = (q << k) + t;
    d -= k;
  }
  q = d > 31 ? 0u : q << d;
  const int z = (int)clz(n) & 31;
  r.value = n == 0u ? 0.0f : cc_pack_f(0u, n << z, b.exp + 8 - z);
  r.other = (int)q;
  return r;
}
float cc_fmod_f(float x, float y) {
  const uint u = as_uint(x) & 0x7fffffffu, v = as_uint(y) & 0x7fffffffu;
  if (u >= 0x7f800000u || v > 0x7f800000u || v == 0u)
    return cc_nan_f();
  return v == 0x7f800000u || u == 0u ? x : copysign(cc_rest_of_f(x, y).value, x);
}
// The remainder and the low seven bits of the quotient. Every subtraction is exact where it decides.
struct cc_float_int cc_remquo_f(float x, float y) {
  struct cc_float_int r;
  const uint u = as_uint(x) & 0x7fffffffu, v = as_uint(y) & 0x7fffffffu;
  r.value = cc_nan_f();
  r.other = 0;
  if (u >= 0x7f800000u || v > 0x7f800000u || v == 0u)
    return r;
  r.value = x;
  if (v == 0x7f800000u || u == 0u)
    return r;
  r = cc_rest_of_f(x, y);
  float a = r.value;
  const float b = fabs(y), rest = b - a;
  uint q = (uint)r.other;
  if (a > rest || (a == rest && (q & 1u) != 0u)) {
    a -= b;
    q++;
  }
  q = q & 127u;
  const bool minus = (as_uint(x) >> 31) != 0u;
  r.other = ((as_uint(x) ^ as_uint(y)) >> 31) != 0u ? -(int)q : (int)q;
  r.value = a == 0.0f ? copysign(a, x) : minus ? -a : a;
  return r;
}
float cc_remainder_f(float x, float y) { return cc_remquo_f(x, y).value; }

float cc_max_f(float x, float y) { return x < y ? y : x; }
float cc_min_f(float x, float y) { return y < x ? y : x; }
float cc_clamp_of_f(float x, float low, float high) { return cc_min_f(cc_max_f(x, low), high); }
float cc_degrees_f(float x) { return x * 57.295779513082320877f; }
float cc_radians_f(float x) { return x * 0.017453292519943295769f; }
float cc_sign_f(float x) { return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x == 0.0f ? x : 0.0f; }
float cc_step_of_f(float e, float x) { return x < e ? 0.0f : 1.0f; }
float cc_mix_f(float x, float y, float a) { return x + (y - x) * a; }
float cc_smoothstep_f(float low, float high, float x) {
  const float t = cc_clamp_of_f(cc_div_f(x - low, high - low), 0.0f, 1.0f);
  return t * t * (3.0f - 2.0f * t);
}
// The scale that keeps squares of a vector's lanes in range, from the largest of the lanes, and what a lane of the
// normalized vector is. n is the length times the scale k. Small lanes keep their precision if k comes last.
float cc_scale_f(float most) { return most > 0x1p60f ? 0x1p-100f : most < 0x1p-40f ? 0x1p100f : 1.0f; }
float cc_normal_f(float x, float n, float k) {
  return n == 0.0f ? x : k > 1.0f ? cc_div_f(x * k, n) : cc_div_f(x, n) * k;
}
float cc_unscale_f(float k) { return k == 1.0f ? 1.0f : k < 1.0f ? 0x1p100f : 0x1p-100f; }
float cc_unit_f(float x) { return x != x ? x : copysign(fabs(x) == cc_inf_f() ? 1.0f : 0.0f, x); }
