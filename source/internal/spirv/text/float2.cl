// float2.cl: angles, roots, error and gamma functions, remainders and the handling of exponents of float.

// 2/pi by 32 bits, after 32 zeros.
constant uint cc_two_over_pi_f[8] = {
    0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};

// x less n * pi/2, for a finite x; the sum of value and other is right to 2^-46 of it. Of the product of x
// and 2/pi 64 bits are kept, two of them in front of the point: whole turns are left out.
struct cc_angle_f { float value; float other; uint n; };
struct cc_angle_f cc_angle_of_f(float x) {
  struct cc_angle_f r;
  const float a = fabs(x);
  r.value = x;
  r.other = 0.0f;
  r.n = 0u;
  if (a <= 0x1.921fb4p-1f)
    return r;
  const uint u = as_uint(a), m = (u & 0x7fffffu) | 0x800000u;
  const uint e = (u >> 23) - 120u; // the first bit of 2/pi that counts: those before give whole turns
  const uint w = e >> 5, k = e & 31u;
  const ulong w0 = cc_two_over_pi_f[w], w1 = cc_two_over_pi_f[w + 1u], w2 = cc_two_over_pi_f[w + 2u];
  const ulong w3 = cc_two_over_pi_f[w + 3u];
  const ulong b0 = (w0 << 32) | w1, b1 = (w1 << 32) | w2, b2 = (w2 << 32) | w3;
  const uint s = 32u - k;
  const uint h = (uint)(b0 >> s), i = (uint)(b1 >> s), l = (uint)(b2 >> s);
  const ulong lo = (((ulong)m * (ulong)l) >> 32) + (ulong)m * (ulong)i;
  const ulong p = lo + ((ulong)(m * h) << 32); // in units of 2^-(64 - 2) quarters
  const ulong q = (p >> 62) + ((p >> 61) & 1ul);
  const long f = (long)(p << 2); // of a quarter, from -1/2 to 1/2
  const ulong g = f < 0l ? 0ul - (ulong)f : (ulong)f;
  const uint z = g == 0ul ? 0u : (uint)clz(g);
  const ulong t = g << z; // 24 bits of it are one float, the next another one
  const float top = (float)(uint)(t >> 40), next = (float)(uint)((t >> 16) & 0xfffffful) * 0x1p-24f;
  const float scale = as_float((127u - 24u - z) << 23); // z < 64
  struct cc_two_f v = cc_pair_f(top, next);
  v = cc_times_f(0x1.921fb6p+0f, -0x1.777a5cp-25f, v.value, v.other);
  const bool minus = (f < 0l) != (x < 0.0f);
  r.value = minus ? -v.value * scale : v.value * scale;
  r.other = minus ? -v.other * scale : v.other * scale;
  r.n = x < 0.0f ? 0u - (uint)q : (uint)q;
  return r;
}
// sin (r + e) to 2^-32 and cos (r + e) to 2^-27, for |r| <= pi/4.
float cc_sin_near_f(float r, float e) {
  const float z = r * r;
  float p = 0x1.6db388p-19f;
  p = p * z - 0x1.a01388p-13f;
  p = p * z + 0x1.11110ep-7f;
  p = p * z - 0x1.555556p-3f;
  return r == 0.0f ? r : r + (z * r * p + e);
}
float cc_cos_near_f(float r, float e) {
  const float z = r * r, h = 0.5f * z, w = 1.0f - h;
  float p = 0x1.9bcdc6p-16f;
  p = p * z - 0x1.6c12bep-10f;
  p = p * z + 0x1.555554p-5f;
  return w + (((1.0f - w) - h) + (z * z * p - r * e));
}
float cc_wave_f(float r, float e, uint n) { // the sine of n quarters and r
  const float s = (n & 1u) != 0u ? cc_cos_near_f(r, e) : cc_sin_near_f(r, e);
  return (n & 2u) != 0u ? -s : s;
}
float cc_sin_f(float x) {
  if (!(fabs(x) < cc_inf_f()))
    return cc_nan_f();
  const struct cc_angle_f a = cc_angle_of_f(x);
  return cc_wave_f(a.value, a.other, a.n);
}
float cc_cos_f(float x) {
  if (!(fabs(x) < cc_inf_f()))
    return cc_nan_f();
  const struct cc_angle_f a = cc_angle_of_f(x);
  return cc_wave_f(a.value, a.other, a.n + 1u);
}
float cc_tan_f(float x) {
  if (!(fabs(x) < cc_inf_f()))
    return cc_nan_f();
  const struct cc_angle_f a = cc_angle_of_f(x);
  return cc_div_f(cc_wave_f(a.value, a.other, a.n), cc_wave_f(a.value, a.other, a.n + 1u));
}
struct cc_two_f cc_sincos_f(float x) {
  struct cc_two_f r;
  const bool finite = fabs(x) < cc_inf_f();
  const struct cc_angle_f a = cc_angle_of_f(finite ? x : 0.0f);
  r.value = finite ? cc_wave_f(a.value, a.other, a.n) : cc_nan_f();
  r.other = finite ? cc_wave_f(a.value, a.other, a.n + 1u) : cc_nan_f();
  return r;
}
// Of pi * x the argument is reduced exactly before it is multiplied by pi.
struct cc_angle_f cc_turn_f(float x) {
  struct cc_angle_f r;
  float a = fabs(x);
  a = a - 2.0f * floor(a * 0.5f);
  const float n = rint(a * 2.0f), f = a - n * 0.5f;
  const struct cc_two_f v = cc_times_f(0x1.921fb6p+1f, -0x1.777a5cp-24f, f, 0.0f);
  r.value = v.value;
  r.other = v.other;
  r.n = (uint)(int)n & 3u;
  return r;
}
float cc_sinpi_f(float x) {
  if (!(fabs(x) < cc_inf_f()))
    return cc_nan_f();
  const struct cc_angle_f a = cc_turn_f(x);
  const float s = cc_wave_f(a.value, a.other, a.n);
  return a.value == 0.0f && (a.n & 1u) == 0u ? copysign(0.0f, x) : x < 0.0f ? -s : s;
}
float cc_cospi_f(float x) {
  if (!(fabs(x) < cc_inf_f()))
    return cc_nan_f();
  const struct cc_angle_f a = cc_turn_f(x);
  return a.value == 0.0f && (a.n & 1u) != 0u ? 0.0f : cc_wave_f(a.value, a.other, a.n + 1u);
}
float cc_tanpi_f(float x) {
  if (!(fabs(x) < cc_inf_f()))
    return cc_nan_f();
  const struct cc_angle_f a = cc_turn_f(x);
  const bool odd = (a.n & 2u) != 0u;
  if (a.value == 0.0f) { // multiples of a half turn and the poles between them
    const float z = (a.n & 1u) != 0u ? cc_inf_f() : copysign(0.0f, x);
    return (a.n & 1u) != 0u ? ((x < 0.0f) != odd ? -z : z) : (odd ? -z : z);
  }
  const float t = cc_div_f(cc_wave_f(a.value, a.other, a.n), cc_wave_f(a.value, a.other, a.n + 1u));
  return x < 0.0f ? -t : t;
}

// The angle of the point (x, y) in the first quarter; atan t = t + t^3 * p(t^2) for t <= 1, to 2^-27. It is in two
// parts, with what the quotient lost.
struct cc_two_f cc_arc_f(float y, float x) {
  const bool steep = y > x;
  const float a = steep ? x : y, b = steep ? y : x, q = cc_div_f(a, b);
  const float t = a == b ? (b == 0.0f ? 0.0f : 1.0f) : q; // both zero, or infinite
  const float z = t * t;
  float p = 0x1.86406cp-10f;
  p = p * z - 0x1.2ba6b6p-7f;
  p = p * z + 0x1.aefb2cp-6f;
  p = p * z - 0x1.9115a4p-5f;
  p = p * z + 0x1.2006f8p-4f;
  p = p * z - 0x1.6dd8fep-4f;
  p = p * z + 0x1.c62cdap-4f;
  p = p * z - 0x1.248952p-3f;
  p = p * z + 0x1.999956p-3f;
  p = p * z - 0x1.555556p-2f;
  p = z * t * p;
  if (!steep)
    return cc_pair_f(t, p);
  const struct cc_two_f r = cc_pair_f(0x1.921fb6p+0f, -t);
  return cc_pair_f(r.value, r.other + (-0x1.777a5cp-25f - p));
}
struct cc_two_f cc_back_f(struct cc_two_f r) { // pi - r
  const struct cc_two_f s = cc_pair_f(0x1.921fb6p+1f, -r.value);
  return cc_pair_f(s.value, s.other + (-0x1.777a5cp-24f - r.other));
}
struct cc_two_f cc_asin_two_f(float a) { // of |x|; beyond 1 it is the angle of a NaN
  return cc_arc_f(a, cc_sqrt_f((1.0f - a) * (1.0f + a)));
}
struct cc_two_f cc_acos_two_f(float x) {
  const float a = fabs(x);
  const struct cc_two_f r = cc_arc_f(cc_sqrt_f((1.0f - a) * (1.0f + a)), a);
  return x < 0.0f ? cc_back_f(r) : r;
}
struct cc_two_f cc_atan2_two_f(float y, float x) {
  const struct cc_two_f r = cc_arc_f(fabs(y), fabs(x));
  return as_uint(x) >> 31 != 0u ? cc_back_f(r) : r;
}
float cc_over_pi_f(struct cc_two_f r) {
  const struct cc_two_f p = cc_times_f(0x1.45f306p-2f, 0x1.b9391p-27f, r.value, r.other);
  return p.value;
}
float cc_asin_f(float x) { return copysign(cc_asin_two_f(fabs(x)).value, x); }
float cc_acos_f(float x) { return cc_acos_two_f(x).value; }
float cc_atan_f(float x) { return copysign(cc_arc_f(fabs(x), 1.0f).value, x); }
float cc_atan2_f(float y, float x) { return x != x || y != y ? cc_nan_f() : copysign(cc_atan2_two_f(y, x).value, y); }
float cc_asinpi_f(float x) { return copysign(cc_over_pi_f(cc_asin_two_f(fabs(x))), x); }
float cc_acospi_f(float x) { return cc_over_pi_f(cc_acos_two_f(x)); }
float cc_atanpi_f(float x) { return copysign(cc_over_pi_f(cc_arc_f(fabs(x), 1.0f)), x); }
float cc_atan2pi_f(float y, float x) {
  return x != x || y != y ? cc_nan_f() : copysign(cc_over_pi_f(cc_atan2_two_f(y, x)), y);
}

float cc_rsqrt_f(float x) {
  const bool tiny = x < 0x1p-100f; // whose square root has an error that no float holds
  const float v = tiny ? x * 0x1p100f : x, r = cc_sqrt_f(v), y = cc_div_f(1.0f, r);
  if (!(r > 0.0f) || r == cc_inf_f())
    return y;
  const float p = r * r, d = (v - p) - cc_error_f(r, r, p); // v is r^2 + d
  return (y - 0.5f * y * (d * y * y)) * (tiny ? 0x1p50f : 1.0f);
}
// Two steps of Halley's method from a third of the exponent, and one of Newton's with an exact cube.
float cc_cbrt_f(float x) {
  const float b = fabs(x);
  const bool tiny = as_uint(b) < 0x0d800000u; // 2^-100
  const bool huge = b > 0x1p100f;
  const float a = b * (tiny ? 0x1p48f : huge ? 0x1p-48f : 1.0f);
  float y = as_float(as_uint(a) / 3u + 0x2a51349eu);
  for (int i = 0; i < 2; i++) {
    const float c = y * y * y;
    y = y * cc_raw_div_f(c + 2.0f * a, 2.0f * c + a);
  }
  const float q = y * y, c = q * y, e = cc_error_f(q, y, c) + cc_error_f(y, y, q) * y;
  y -= cc_raw_div_f((c - a) + e, 3.0f * q);
  return b > 0.0f && b < cc_inf_f() ? copysign(y * (tiny ? 0x1p-16f : huge ? 0x1p16f : 1.0f), x) : x;
}
// Both scaled to near 1 first.
float cc_hypot_f(float x, float y) {
  const float a = fabs(x), b = fabs(y), m = fmax(a, b);
  if (a == cc_inf_f() || b == cc_inf_f())
    return cc_inf_f();
  const float s = m > 0x1p60f ? 0x1p-100f : m < 0x1p-40f ? 0x1p100f : 1.0f, c = a * s, d = b * s, p = c * c, q = d * d;
  const struct cc_two_f t = cc_sum_f(p, q);
  const float v = t.value + (t.other + (cc_error_f(c, c, p) + cc_error_f(d, d, q)));
  return x != x || y != y ? cc_nan_f() : cc_sqrt_f(v) * (s == 1.0f ? 1.0f : s < 1.0f ? 0x1p100f : 0x1p-100f);
}

// 1 - erf a = 2^(-a * p(a)), to 2^-24.7 of erf a; from 4 on erf a is 1.
float cc_erf_f(float x) {
  float a = fabs(x), p = 0x1.ec9378p-15f;
  a = a > 4.0f ? 4.0f : a;
  p = p * a - 0x1.20279ep-11f;
  p = p * a + 0x1.d95f5ep-10f;
  p = p * a + 0x1.374d26p-12f;
  p = p * a - 0x1.c8b5bep-6f;
  p = p * a + 0x1.2fc78cp-3f;
  p = p * a + 0x1.d63e38p-1f;
  p = p * a + 0x1.a0be84p+0f;
  p = p * -a;
  const struct cc_nearest_f k = cc_near_f(p, 1.0f);
  const float s = cc_power_f(k.power), r = -s * cc_less1_f((p - k.n) * 0x1.62e43p-1f) + (1.0f - s);
  return x != x ? x : copysign(r, x);
}
// erfc a = e^(-a^2) * t * p(t), t = 1/(1 + 0.4 a), to 2^-23.9; from 10.1 on it is 0. a^2 is in two parts until
// n * ln 2, times two, is taken away.
float cc_erfc_f(float x) {
  float a = fabs(x);
  a = a > 11.0f ? 11.0f : a;
  const float t = cc_div_f(1.0f, 0.4f * a + 1.0f);
  float p = 0x1.53700ep-5f;
  p = p * t - 0x1.2133e2p-3f;
  p = p * t + 0x1.5fa1e6p-4f;
  p = p * t + 0x1.5f826p-4f;
  p = p * t + 0x1.4ccf86p-4f;
  p = p * t + 0x1.8ac09p-3f;
  p = p * t + 0x1.9dce4cp-3f;
  p = p * t + 0x1.cfb518p-3f;
  p = p * t + 0x1.ce1a0cp-3f;
  const float s = a * a, e = cc_error_f(a, a, s);
  const struct cc_nearest_f k = cc_near_f(s, -0x1.715476p-1f);
  const float rest = (k.n * -0x1.62e4p+0f - s) - e, r = cc_scaled_f(k.n * -0x1.7f7d1cp-19f + rest, t * p, k.power);
  return x != x ? x : x < 0.0f ? 2.0f - r : r;
}

// gamma is a polynomial on [1, 2], reached by steps of 1. The product of the steps is kept in two floats.
float cc_gamma_near_f(float x) {
  const float z = x - 1.5f;
  float p = 0.01586386546f;
  p = p * z - 0.02372913626f;
  p = p * z + 0.02468161931f;
  p = p * z - 0.03626931631f;
  p = p * z + 0.05874044932f;
  p = p * z - 0.07771812018f;
  p = p * z + 0.1446394649f;
  p = p * z - 0.1072859701f;
  p = p * z + 0.4148135278f;
  p = p * z + 0.0323382864f;
  return p * z + 0.8862269255f;
}
float cc_tgamma_f(float x) {
  if (x != x || x == cc_inf_f())
    return x;
  if (x == 0.0f)
    return copysign(cc_inf_f(), x);
  if (x < 0.0f && floor(x) == x)
    return cc_nan_f();
  if (x > 35.1f)
    return cc_inf_f();
  if (x < -45.0f)
    return cc_cospi_f(floor(x)) * 0.0f;
  float hi = 1.0f, lo = 0.0f, f = x, scale = 1.0f;
  const bool up = x < 1.0f;
  while (up ? f < 1.0f : f > 2.0f) {
    const float k = up ? f : f - 1.0f, h = hi * k;
    lo = lo * k + cc_error_f(hi, k, h);
    hi = h;
    if (fabs(hi) > 0x1p100f) { // where the result is denormal, or nearly infinite
      hi *= 0x1p-64f;
      lo *= 0x1p-64f;
      scale *= up ? 0x1p-64f : 0x1p64f;
    }
    f = up ? f + 1.0f : k;
  }
  const float g = cc_gamma_near_f(f);
  return up ? cc_div_f(g, hi + lo) * scale : (g * hi + g * lo) * scale;
}
float cc_lgamma_near_f(float x, float less) { // on [1, 2]; less is x - 1
  const float z = x - 1.5f;
  float p = 0.002388311336f;
  p = p * z - 0.00397213376f;
  p = p * z + 0.005355116558f;
  p = p * z - 0.009276536438f;
  p = p * z + 0.01680356703f;
  p = p * z - 0.0313190425f;
  p = p * z + 0.06291127891f;
  p = p * z - 0.1459596966f;
  p = p * z + 0.4831289505f;
  return less * (less - 1.0f) * p;
}
float cc_lgamma_above_f(float x) {
  if (x < 1.0f)
    return cc_lgamma_near_f(x + 1.0f, x) - cc_log_f(x);
  if (x >= 9.0f) {
    const float u = cc_raw_div_f(1.0f, x), v = u * u;
    const float s = 0.08333333333f - v * (0.002777777778f - v * 0.0007936507937f); // of Stirling's formula
    return (x - 0.5f) * (cc_log_f(x) - 1.0f) + (0.4189385332f + u * s);
  }
  float p = 1.0f;
  while (x > 2.0f) {
    x -= 1.0f;
    p *= x;
  }
  return cc_log_f(p) + cc_lgamma_near_f(x, x - 1.0f);
}
float cc_lgamma_f(float x) {
  if (x != x || fabs(x) == cc_inf_f())
    return fabs(x);
  if (x > 0.0f)
    return cc_lgamma_above_f(x);
  if (floor(x) == x)
    return cc_inf_f();
  if (x > -0x1p-20f) // Euler's constant
    return -cc_log_f(-x) - 0.5772156649f * x;
  return cc_log_f(cc_div_f(3.14159265358979f, fabs(cc_sinpi_f(x) * x))) - cc_lgamma_above_f(-x);
}
// The sign of gamma: at -0 it is that of the pole, and below 0 it changes at every integer.
struct cc_float_int cc_lgamma_r_f(float x) {
  struct cc_float_int r;
  const float n = floor(x);
  const bool changed = x == 0.0f ? as_uint(x) >> 31 != 0u : x < 0.0f && n != x && n - 2.0f * floor(n * 0.5f) != 0.0f;
  r.other = changed ? -1 : 1;
  r.value = cc_lgamma_f(x);
  return r;
}
