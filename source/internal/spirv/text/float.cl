// float.cl: exponentials, logarithms and powers of float, without double. Products and sums are rounded apart.
// The comments give the relative errors of the polynomials; half a unit in the last place is up to 2^-24.

// x * c as the nearest whole number n, and 2^n as bits of the exponent. The sum's low bits are those of n; nothing is
// known about the n of a NaN, or of what is 2^22 and more.
struct cc_nearest_f { float n; uint power; };
struct cc_nearest_f cc_near_f(float x, float c) {
  struct cc_nearest_f r;
  const uint u = as_uint(x * c + 0x1.8p23f);
  r.n = (float)(int)(u - 0x4b400000u);
  r.power = u << 23;
  return r;
}
float cc_power_f(uint power) { return as_float(power + 0x3f800000u); }
// x - n * ln 2, where |n| < 512: ln 2 is in two parts, and the product with the first one exact.
float cc_rest_f(float x, float n) { return n * -0x1.7f7d1cp-20f + (n * -0x1.62e4p-1f + x); }
// e^r for |r| <= ln 2, to 2^-26, times the factor f and twice the power of two: 2^n of all n that matter is no float,
// that of n/2 is. It is rounded once, as only the last step leaves the normal numbers.
float cc_scaled_f(float r, float f, uint power) {
  const float s = cc_power_f(power);
  float p = 0x1.9b45c8p-13f;
  p = p * r + 0x1.71bd5p-10f;
  p = p * r + 0x1.11285ap-7f;
  p = p * r + 0x1.554a04p-5f;
  p = p * r + 0x1.55550ep-3f;
  p = p * r + 0x1.00000cp-1f;
  p = p * r + 1.0f;
  p = p * (r * s) + s;
  return p * f * s;
}
// The power r of x, where that is a number between 0 and infinity.
float cc_within_f(float x, float least, float most, float r) {
  r = x > most ? cc_inf_f() : r;
  return x < least ? 0.0f : r;
}
float cc_exp_f(float x) {
  const struct cc_nearest_f k = cc_near_f(x, 0x1.715476p-1f);
  return cc_within_f(x, -110.0f, 100.0f, cc_scaled_f(cc_rest_f(x, k.n + k.n), 1.0f, k.power));
}
float cc_exp2_f(float x) {
  const struct cc_nearest_f k = cc_near_f(x, 0.5f);
  return cc_within_f(x, -160.0f, 140.0f, cc_scaled_f((x - (k.n + k.n)) * 0x1.62e43p-1f, 1.0f, k.power));
}
float cc_exp10_f(float x) { // log10 2 and ln 10 in two parts
  const struct cc_nearest_f k = cc_near_f(x, 0x1.a934fp+0f);
  const float r = k.n * -0x1.3509f8p-17f + (k.n * -0x1.344p-1f + x);
  return cc_within_f(x, -50.0f, 40.0f, cc_scaled_f(r * 0x1.26bb1cp+1f + r * -0x1.12aabap-25f, 1.0f, k.power));
}
// e^r - 1 for |r| <= ln(2)/2, to 2^-26.
float cc_less1_f(float r) {
  float q = 0x1.6bebf6p-10f;
  q = q * r + 0x1.1227bp-7f;
  q = q * r + 0x1.555674p-5f;
  q = q * r + 0x1.5554bp-3f;
  q = q * r + 0x1.fffffep-2f;
  return r * r * q + r;
}
float cc_expm1_f(float x) {
  const float y = x > 89.0f ? 89.0f : x < -20.0f ? -20.0f : x; // infinite above, -1 below
  const struct cc_nearest_f k = cc_near_f(y, 0x1.715476p+0f);
  const float s = cc_power_f(k.power - 0x800000u), r = s * cc_less1_f(cc_rest_f(y, k.n)) + (s - 0.5f); // of 2^n a half
  return x == x ? copysign(r * 2.0f, x) : x;
}
// m/(m + 2), m = e^2|x| - 1: near 0 nothing cancels.
float cc_tanh_f(float x) {
  float y = fabs(x) * 2.0f;
  y = y > 20.0f ? 20.0f : y; // 1 from there on
  const struct cc_nearest_f k = cc_near_f(y, 0x1.715476p+0f);
  const float s = cc_power_f(k.power), m = s * cc_less1_f(cc_rest_f(y, k.n)) + (s - 1.0f);
  return copysign(cc_div_f(m, m + 2.0f), x);
}
// e^|x| / 2, which has no power of two beyond the largest float's.
float cc_half_exp_f(float x) {
  const float a = fabs(x);
  const struct cc_nearest_f k = cc_near_f(a, 0x1.715476p-1f);
  return a > 100.0f ? cc_inf_f() : cc_scaled_f(cc_rest_f(a, k.n + k.n), 0.5f, k.power);
}
float cc_cosh_f(float x) {
  const float e = cc_half_exp_f(x);
  return e + cc_div_f(0.25f, e);
}
float cc_sinh_f(float x) {
  const float a = fabs(x);
  if (a > 1.0f) {
    const float e = cc_half_exp_f(x);
    return copysign(e - cc_div_f(0.25f, e), x);
  }
  const float e = cc_expm1_f(a);
  return copysign(0.5f * (e + cc_div_f(e, e + 1.0f)), x);
}

// log(1 + f), with 1 + f from sqrt(1/2) to sqrt 2: f - f^2/2 + f^3 * p(f), to 2^-27.
float cc_log_near_f(float f) {
  const float z = f * f;
  float p = -0x1.38bd94p-4f;
  p = p * f + 0x1.055d46p-3f;
  p = p * f - 0x1.0d8494p-3f;
  p = p * f + 0x1.22d9cep-3f;
  p = p * f - 0x1.54724ep-3f;
  p = p * f + 0x1.99a00cp-3f;
  p = p * f - 0x1.000226p-2f;
  p = p * f + 0x1.555554p-2f;
  return (f * z * p - 0.5f * z) + f;
}
// x > 0 as 2^exp * value, with the value from sqrt(1/2) to sqrt 2.
struct cc_float_int cc_split_f(float x) {
  struct cc_float_int r;
  const uint tiny = as_uint(x) < 0x00800000u ? 1u : 0u;
  const int b = as_int(tiny != 0u ? x * 0x1p23f : x), u = (b - 0x3f3504f3) >> 23;
  r.other = u - (tiny != 0u ? 23 : 0);
  r.value = as_float(b - (u << 23));
  return r;
}
// The logarithm r of x where x is a positive number.
float cc_logs_f(float x, float r) {
  r = x < cc_inf_f() ? r : x;
  r = x > 0.0f ? r : -cc_inf_f();
  return x >= 0.0f ? r : cc_nan_f();
}
float cc_log_f(float x) {
  const struct cc_float_int s = cc_split_f(x);
  const float k = (float)s.other, l = cc_log_near_f(s.value - 1.0f);
  return cc_logs_f(x, k * 0x1.62e4p-1f + (k * 0x1.7f7d1cp-20f + l));
}
float cc_log2_f(float x) {
  const struct cc_float_int s = cc_split_f(x);
  return cc_logs_f(x, cc_log_near_f(s.value - 1.0f) * 0x1.715476p+0f + (float)s.other);
}
float cc_log10_f(float x) {
  const struct cc_float_int s = cc_split_f(x);
  const float k = (float)s.other, l = cc_log_near_f(s.value - 1.0f);
  return cc_logs_f(x, k * 0x1.344p-2f + (k * 0x1.3509f8p-18f + l * 0x1.bcb7b2p-2f));
}
// What 1 + x lost is added to its logarithm; near 0 the polynomial has x itself.
float cc_log1p_f(float x) {
  const struct cc_two_f u = cc_sum_f(1.0f, x);
  const struct cc_float_int s = cc_split_f(u.value);
  const float k = (float)s.other, l = cc_log_near_f(s.other == 0 ? x : s.value - 1.0f);
  const float lost = s.other == 0 ? 0.0f : cc_raw_div_f(u.other, u.value);
  const float r = k * 0x1.62e4p-1f + ((k * 0x1.7f7d1cp-20f + lost) + l);
  return x == 0.0f ? x : cc_logs_f(u.value, r);
}
float cc_asinh_f(float x) {
  const float a = fabs(x), b = a > 0x1p30f ? 1.0f : a, z = b * b;
  const float r = a > 0x1p30f ? cc_log_f(a) + 0x1.62e43p-1f : cc_log1p_f(b + cc_div_f(z, cc_sqrt_f(z + 1.0f) + 1.0f));
  return copysign(r, x);
}
float cc_acosh_f(float x) {
  const float b = x > 0x1p30f ? 1.0f : x, t = b - 1.0f, r = cc_log1p_f(t + cc_sqrt_f(t * (b + 1.0f)));
  return x > 0x1p30f ? cc_log_f(x) + 0x1.62e43p-1f : x >= 1.0f ? r : cc_nan_f();
}
float cc_atanh_f(float x) {
  const float a = fabs(x);
  return copysign(0.5f * cc_log1p_f(cc_div_f(a + a, 1.0f - a)), x);
}

// log2 of a > 0 in two parts, to 2^-36: s = f/(f + 2) is in two parts, and the logarithm 2/ln(2) * (s + s^3/3 + ...).
struct cc_two_f cc_log2_two_f(float a) {
  const struct cc_float_int c = cc_split_f(a);
  const float f = c.value - 1.0f, d = c.value + 1.0f, dl = c.value - (d - 1.0f), s = cc_raw_div_f(f, d), p = s * d;
  const float sl = cc_raw_div_f(((f - p) - cc_error_f(s, d, p)) - s * dl, d), z = s * s;
  float q = 0x1.0c9a84p-2f; // 2/ln 2 times 1/11, 1/9, ...
  q = q * z + 0x1.484b14p-2f;
  q = q * z + 0x1.a61762p-2f;
  q = q * z + 0x1.2776c6p-1f;
  q = q * z + 0x1.ec709ep-1f;
  const struct cc_two_f l = cc_times_f(0x1.715476p+1f, 0x1.4ae0cp-25f, s, sl);
  const struct cc_two_f m = cc_sum_f((float)c.other, l.value);
  return cc_pair_f(m.value, m.other + (l.other + s * z * q));
}
// a^(y + rest) of a positive number a: 2 to the power of (y + rest) * log2 a.
float cc_power_of_f(float a, float y, float rest) {
  const struct cc_two_f l = cc_log2_two_f(a);
  y = y > 0x1p34f ? 0x1p34f : y < -0x1p34f ? -0x1p34f : y; // 0, 1 or infinite from there on
  const float p = y * l.value, e = cc_error_f(y, l.value, p) + (y * l.other + rest * l.value);
  const float q = p > 300.0f ? 300.0f : p < -300.0f ? -300.0f : p;
  const struct cc_nearest_f k = cc_near_f(q, 0.5f);
  const float r = ((q - (k.n + k.n)) + (p == q ? e : 0.0f)) * 0x1.62e43p-1f;
  return cc_within_f(q, -160.0f, 140.0f, cc_scaled_f(r, 1.0f, k.power));
}
// x^y, where 0, 1 and infinity have powers of their own.
float cc_magnitude_f(float a, float y, float rest) {
  const float r = cc_power_of_f(a == 0.0f || a == cc_inf_f() ? 1.0f : a, y, rest);
  const bool up = (a == 0.0f) == (y < 0.0f);
  return a == 0.0f || a == cc_inf_f() ? (up ? cc_inf_f() : 0.0f) : r;
}
float cc_pow_f(float x, float y) {
  const float a = fabs(x);
  const bool whole = rint(y) == y, odd = whole && fabs(y) < 0x1p24f && rint(0.5f * y) != 0.5f * y;
  float r = cc_magnitude_f(a, y, 0.0f);
  r = y != y || x != x || (x < 0.0f && a < cc_inf_f() && !whole) ? cc_nan_f() : r;
  r = (a == 1.0f && fabs(y) == cc_inf_f()) || x == 1.0f || y == 0.0f ? 1.0f : r;
  return as_float(as_uint(r) | (odd ? as_uint(x) & 0x80000000u : 0u));
}
float cc_powr_f(float x, float y) {
  const float a = fabs(x);
  const bool ends = x == 0.0f || x == cc_inf_f();
  float r = x == 1.0f || y == 0.0f ? 1.0f : cc_magnitude_f(a, y, 0.0f);
  r = x < 0.0f || x != x || y != y || (x == 1.0f && fabs(y) == cc_inf_f()) || (y == 0.0f && ends) ? cc_nan_f() : r;
  return r;
}
// An int is the sum of two floats, and so is the quotient of 1 and an int.
float cc_pown_f(float x, int n) {
  const int low = n < 0x1000000 && n > -0x1000000 ? 0 : n % 256;
  const float a = fabs(x), r = cc_magnitude_f(a, (float)(n - low), (float)low);
  const float s = n == 0 || x == 1.0f ? 1.0f : x != x ? x : r;
  return (n & 1) != 0 ? copysign(s, x) : s;
}
float cc_rootn_f(float x, int n) {
  if (n == 0 || (x < 0.0f && (n & 1) == 0) || x != x)
    return cc_nan_f();
  const int low = n % 256;
  const float high = (float)(n - low), rest = (float)low, m = high + rest, y = cc_raw_div_f(1.0f, m), p = y * m;
  const float e = cc_raw_div_f(((1.0f - p) - cc_error_f(y, m, p)) - y * (rest - (m - high)), m);
  const float a = fabs(x), r = n == 1 ? a : cc_magnitude_f(a, y, e);
  return (n & 1) != 0 ? copysign(r, x) : r;
}
