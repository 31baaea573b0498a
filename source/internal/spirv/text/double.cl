// double.cl: exponentials, logarithms and powers of double. The polynomials are Taylor's or fitted, and right to
// 2^-56 and better; half a unit in the last place is up to 2^-53.

// 2^n for -1022 <= n <= 1023
double cc_power_d(int n) { return as_double((ulong)(n + 1023) << 52); }
// (e^(r + e) - 1 - r - e) for |r| <= ln(2)/2
double cc_curve_d(double r) {
  double p = 0x1.6124613a86d09p-33;
  p = p * r + 0x1.1eed8eff8d898p-29;
  p = p * r + 0x1.ae64567f544e4p-26;
  p = p * r + 0x1.27e4fb7789f5cp-22;
  p = p * r + 0x1.71de3a556c734p-19;
  p = p * r + 0x1.a01a01a01a01ap-16;
  p = p * r + 0x1.a01a01a01a01ap-13;
  p = p * r + 0x1.6c16c16c16c17p-10;
  p = p * r + 0x1.1111111111111p-7;
  p = p * r + 0x1.5555555555555p-5;
  p = p * r + 0x1.5555555555555p-3;
  p = p * r + 0x1.0p-1;
  return r * r * p;
}
// e^(x + rest), times f; |x| is at most 760. The power of two is in two factors, so that the result is rounded once.
double cc_scaled_d(double x, double rest, double f) {
  const double n = rint(x * 0x1.71547652b82fep+0), h = x - n * 0x1.62e42fefa2p-1, l = n * 0x1.9ef35793c7673p-41 - rest;
  const double r = h - l, e = (h - r) - l;
  const int k = (int)n, j = k / 2;
  const double p = 1.0 + (r + (e + cc_curve_d(r)));
  return p * f * cc_power_d(j) * cc_power_d(k - j);
}
double cc_clamp_d(double x, double m) { return x > m ? m : x < -m ? -m : x; }
double cc_exp_d(double x) {
  const double r = cc_scaled_d(cc_clamp_d(x == x ? x : 0.0, 760.0), 0.0, 1.0);
  return x == x ? r : x;
}
double cc_exp2_d(double x) {
  const double y = x == x ? cc_clamp_d(x, 1090.0) : 0.0, n = rint(y), f = y - n;
  const struct cc_two_d r = cc_times_d(0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56, f, 0.0);
  const int k = (int)n, j = k / 2;
  const double p = 1.0 + (r.value + (r.other + cc_curve_d(r.value)));
  return x == x ? p * cc_power_d(j) * cc_power_d(k - j) : x;
}
double cc_exp10_d(double x) {
  const double y = x == x ? cc_clamp_d(x, 330.0) : 0.0, n = rint(y * 0x1.a934f0979a371p+1);
  const double f = y - n * 0x1.34413509f6p-2, l = n * 0x1.9fef311f12b36p-42;
  const struct cc_two_d r = cc_times_d(0x1.26bb1bbb55516p+1, -0x1.f48ad494ea3e9p-53, f - l, (f - (f - l)) - l);
  const int k = (int)n, j = k / 2;
  const double p = 1.0 + (r.value + (r.other + cc_curve_d(r.value)));
  return x == x ? p * cc_power_d(j) * cc_power_d(k - j) : x;
}
double cc_expm1_d(double x) {
  const double y = x > 710.0 ? 710.0 : x > -40.0 ? x : -40.0; // infinite above, -1 below
  const double n = rint(y * 0x1.71547652b82fep+0), h = y - n * 0x1.62e42fefa2p-1, l = n * 0x1.9ef35793c7673p-41;
  const double r = h - l, e = (h - r) - l, m = r + (e + cc_curve_d(r));
  const double s = cc_power_d((int)n - 1); // half of 2^n, which may be no double
  return x == x ? copysign((s * m + (s - 0.5)) * 2.0, x) : x;
}
double cc_tanh_d(double x) {
  const double a = fabs(x), m = cc_expm1_d(2.0 * (a > 25.0 ? 25.0 : a));
  return copysign(cc_div_d(m, m + 2.0), x);
}
double cc_half_exp_d(double x) { return cc_scaled_d(fabs(x) > 760.0 ? 760.0 : fabs(x), 0.0, 0.5); }
double cc_cosh_d(double x) {
  const double e = cc_half_exp_d(x);
  return x == x ? e + cc_div_d(0.25, e) : x;
}
double cc_sinh_d(double x) {
  const double a = fabs(x);
  if (a > 1.0) {
    const double e = cc_half_exp_d(x);
    return copysign(e - cc_div_d(0.25, e), x);
  }
  const double e = cc_expm1_d(a);
  return copysign(0.5 * (e + cc_div_d(e, e + 1.0)), x);
}

// x > 0 as 2^exp * value, with the value from sqrt(1/2) to sqrt 2.
struct cc_double_int cc_split_d(double x) {
  struct cc_double_int r;
  const bool tiny = as_ulong(x) < 0x0010000000000000ul;
  const long b = as_long(tiny ? x * 0x1p54 : x), u = (b - 0x3fe6a09e667f3bcdl) >> 52;
  r.other = (int)u - (tiny ? 54 : 0);
  r.value = as_double(b - (u << 52));
  return r;
}
// The logarithm r of x where x is a positive number.
double cc_logs_d(double x, double r) {
  r = x < cc_inf_d() ? r : x;
  r = x > 0.0 ? r : -cc_inf_d();
  return x >= 0.0 ? r : cc_nan_d();
}
// f - log(1 + f) for 1 + f from sqrt(1/2) to sqrt 2, with s = f/(2 + f): log(1 + f) = 2 artanh s = f - s * (f - R),
// R = 2 s^2/3 + 2 s^4/5 ...; f^2/2 is the part of it that is not small.
double cc_log_less_d(double f, double more) {
  const double s = cc_div_d(f, f + 2.0), z = s * s, h = 0.5 * f * f;
  double p = 0x1.8618618618618p-4;
  p = p * z + 0x1.af286bca1af28p-4;
  p = p * z + 0x1.e1e1e1e1e1e1ep-4;
  p = p * z + 0x1.1111111111111p-3;
  p = p * z + 0x1.3b13b13b13b14p-3;
  p = p * z + 0x1.745d1745d1746p-3;
  p = p * z + 0x1.c71c71c71c71cp-3;
  p = p * z + 0x1.2492492492492p-2;
  p = p * z + 0x1.999999999999ap-2;
  p = p * z + 0x1.5555555555555p-1;
  return h - (s * (h + z * p) + more);
}
double cc_log_d(double x) {
  const struct cc_double_int s = cc_split_d(x);
  const double k = (double)s.other, f = s.value - 1.0;
  return cc_logs_d(x, k * 0x1.62e42fefa2p-1 - (cc_log_less_d(f, k * 0x1.9ef35793c7673p-41) - f));
}
double cc_log2_d(double x) {
  const struct cc_double_int s = cc_split_d(x);
  const double f = s.value - 1.0;
  const struct cc_two_d l = cc_pair_d(f, -cc_log_less_d(f, 0.0));
  const struct cc_two_d r = cc_times_d(0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56, l.value, l.other);
  return cc_logs_d(x, (double)s.other + r.value);
}
double cc_log10_d(double x) {
  const struct cc_double_int s = cc_split_d(x);
  const double k = (double)s.other, f = s.value - 1.0;
  const struct cc_two_d l = cc_pair_d(f, -cc_log_less_d(f, 0.0));
  const struct cc_two_d r = cc_times_d(0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57, l.value, l.other);
  return cc_logs_d(x, k * 0x1.34413509f6p-2 + (k * 0x1.9fef311f12b36p-42 + r.value));
}
double cc_log1p_d(double x) {
  const struct cc_two_d u = cc_sum_d(1.0, x);
  const struct cc_double_int s = cc_split_d(u.value);
  const double k = (double)s.other, f = s.other == 0 ? x : s.value - 1.0;
  const double lost = s.other == 0 ? 0.0 : cc_div_d(u.other, u.value);
  const double r = k * 0x1.62e42fefa2p-1 - (cc_log_less_d(f, k * 0x1.9ef35793c7673p-41 + lost) - f);
  return x == 0.0 ? x : cc_logs_d(u.value, r);
}
double cc_asinh_d(double x) {
  const double a = fabs(x), b = a > 0x1p60 ? 1.0 : a, z = b * b;
  const double r = cc_log1p_d(b + cc_div_d(z, cc_sqrt_d(z + 1.0) + 1.0));
  return copysign(a > 0x1p60 ? cc_log_d(a) + 0x1.62e42fefa39efp-1 : r, x);
}
double cc_acosh_d(double x) {
  const double b = x > 0x1p60 ? 1.0 : x, t = b - 1.0, r = cc_log1p_d(t + cc_sqrt_d(t * (b + 1.0)));
  return x > 0x1p60 ? cc_log_d(x) + 0x1.62e42fefa39efp-1 : x >= 1.0 ? r : cc_nan_d();
}
double cc_atanh_d(double x) {
  const double a = fabs(x);
  return copysign(0.5 * cc_log1p_d(cc_div_d(a + a, 1.0 - a)), x);
}

// log a of a > 0 in two parts, to 2^-64 and better: s = f/(f + 2) is in two parts, the logarithm 2 s + 2/3 s^3 + ...
struct cc_two_d cc_log_two_d(double a) {
  const struct cc_double_int c = cc_split_d(a);
  const double k = (double)c.other, f = c.value - 1.0, d = c.value + 1.0, dl = c.value - (d - 1.0);
  const double s = cc_div_d(f, d), t = s * d, sl = cc_div_d(((f - t) - cc_error_d(s, d, t)) - s * dl, d);
  const double z = s * s, zl = cc_error_d(s, s, z) + 2.0 * s * sl;
  double p = 0x1.8618618618618p-4;
  p = p * z + 0x1.af286bca1af28p-4;
  p = p * z + 0x1.e1e1e1e1e1e1ep-4;
  p = p * z + 0x1.1111111111111p-3;
  p = p * z + 0x1.3b13b13b13b14p-3;
  p = p * z + 0x1.745d1745d1746p-3;
  p = p * z + 0x1.c71c71c71c71cp-3;
  p = p * z + 0x1.2492492492492p-2;
  p = p * z + 0x1.999999999999ap-2;
  const struct cc_two_d q = cc_pair_d(0x1.5555555555555p-1, z * p), w = cc_times_d(z, zl, s, sl);
  const struct cc_two_d v = cc_times_d(w.value, w.other, q.value, q.other + 0x1.5555555555555p-55);
  const struct cc_two_d g = cc_pair_d(2.0 * s, v.value), r = cc_sum_d(k * 0x1.62e42fefa2p-1, g.value);
  return cc_pair_d(r.value, r.other + (g.other + (v.other + 2.0 * sl) + k * 0x1.9ef35793c7673p-41));
}
// a^(y + rest) of a positive number a
double cc_power_of_d(double a, double y, double rest) {
  const struct cc_two_d l = cc_log_two_d(a);
  y = cc_clamp_d(y, 0x1p66); // 0, 1 or infinite from there on
  const double p = y * l.value, e = cc_error_d(y, l.value, p) + (y * l.other + rest * l.value);
  const double q = cc_clamp_d(p, 760.0);
  return cc_scaled_d(q, p == q ? e : 0.0, 1.0);
}
// x^y, where 0, 1 and infinity have powers of their own.
double cc_magnitude_d(double a, double y, double rest) {
  const bool ends = a == 0.0 || a == cc_inf_d();
  const double r = cc_power_of_d(ends || a != a ? 1.0 : a, y == y ? y : 0.0, rest);
  const bool up = (a == 0.0) == (y < 0.0);
  return ends ? (up ? cc_inf_d() : 0.0) : r;
}
double cc_pow_d(double x, double y) {
  const double a = fabs(x);
  const bool whole = rint(y) == y, odd = whole && fabs(y) < 0x1p53 && rint(0.5 * y) != 0.5 * y;
  double r = cc_magnitude_d(a, y, 0.0);
  r = y != y || x != x || (x < 0.0 && a < cc_inf_d() && !whole) ? cc_nan_d() : r;
  r = (a == 1.0 && fabs(y) == cc_inf_d()) || x == 1.0 || y == 0.0 ? 1.0 : r;
  return odd ? copysign(r, x) : r;
}
double cc_powr_d(double x, double y) {
  const double a = fabs(x);
  const bool ends = x == 0.0 || x == cc_inf_d();
  double r = x == 1.0 || y == 0.0 ? 1.0 : cc_magnitude_d(a, y, 0.0);
  r = x < 0.0 || x != x || y != y || (x == 1.0 && fabs(y) == cc_inf_d()) || (y == 0.0 && ends) ? cc_nan_d() : r;
  return r;
}
double cc_pown_d(double x, int n) { return cc_pow_d(x, (double)n); }
double cc_rootn_d(double x, int n) { // 1/n in two parts
  if (n == 0 || (x < 0.0 && (n & 1) == 0) || x != x)
    return cc_nan_d();
  const double m = (double)n, y = cc_div_d(1.0, m), p = y * m, e = cc_div_d((1.0 - p) - cc_error_d(y, m, p), m);
  const double a = fabs(x), r = n == 1 ? a : cc_magnitude_d(a, y, e);
  return (n & 1) != 0 ? copysign(r, x) : r;
}
