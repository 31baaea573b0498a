// double2.cl: angles, roots, error and gamma functions of double.

// 2/pi by 64 bits, after 64 zeros.
constant ulong cc_two_over_pi_d[21] = {
    0ul, 0xa2f9836e4e441529ul, 0xfc2757d1f534ddc0ul, 0xdb6295993c439041ul, 0xfe5163abdebbc561ul,
    0xb7246e3a424dd2e0ul, 0x06492eea09d1921cul, 0xfe1deb1cb129a73eul, 0xe88235f52ebb4484ul,
    0xe99c7026b45f7e41ul, 0x3991d639835339f4ul, 0x9c845f8bbdf9283bul, 0x1ff897ffde05980ful,
    0xef2f118b5a0a6d1ful, 0x6d367ecf27cb09b7ul, 0x4f463f669e5fea2dul, 0x7527bac7ebe5f17bul,
    0x3d0739f78a5292eaul, 0x6bfb5fb11f8d5d08ul, 0x56033046fc7b6babul, 0xf0cfbc209af4361dul};

// The 64 bits that begin k bits behind the first one of a.
ulong cc_window_d(ulong a, ulong b, uint k) { return k == 0u ? a : (a << k) | (b >> (64u - k)); }
// x less n * pi/2, in two parts, for a finite x. Of the product of x and 2/pi 128 bits are kept, two of them in front
// of the point: whole turns are left out.
struct cc_angle_d { double value; double other; uint n; };
struct cc_angle_d cc_angle_of_d(double x) {
  struct cc_angle_d r;
  const double a = fabs(x);
  r.value = x;
  r.other = 0.0;
  r.n = 0u;
  if (a <= 0x1.921fb54442d18p-1)
    return r;
  const ulong u = as_ulong(a), m = (u & 0xffffffffffffful) | 0x10000000000000ul;
  const uint e = (uint)(u >> 52) - 1013u, w = e >> 6, k = e & 63u;
  const ulong w1 = cc_two_over_pi_d[w + 1u], w2 = cc_two_over_pi_d[w + 2u];
  const ulong h = cc_window_d(cc_two_over_pi_d[w], w1, k), i = cc_window_d(w1, w2, k);
  const ulong l = cc_window_d(w2, cc_two_over_pi_d[w + 3u], k), mi = m * i;
  const ulong pl = mi + cc_mul_hi_ul(m, l), ph = m * h + cc_mul_hi_ul(m, i) + (pl < mi ? 1ul : 0ul);
  const ulong q = (ph >> 62) + ((ph >> 61) & 1ul);
  ulong gh = (ph << 2) | (pl >> 62), gl = pl << 2; // of a quarter, from -1/2 to 1/2
  const bool below = (gh >> 63) != 0ul;
  gh = below ? ~gh + (gl == 0ul ? 1ul : 0ul) : gh;
  gl = below ? 0ul - gl : gl;
  const uint z = gh == 0ul ? 63u : (uint)clz(gh);
  const ulong th = cc_window_d(gh, gl, z), tl = gl << z;
  struct cc_two_d v = cc_pair_d((double)(th >> 11), (double)((th << 53) | (tl >> 11)) * 0x1p-64);
  v = cc_times_d(0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, v.value, v.other);
  const double scale = cc_power_d(-53 - (int)z), s = below != (x < 0.0) ? -scale : scale;
  r.value = v.value * s;
  r.other = v.other * s;
  r.n = x < 0.0 ? 0u - (uint)q : (uint)q;
  return r;
}
// sin (r + e) and cos (r + e), for |r| <= pi/4
double cc_sin_near_d(double r, double e) {
  const double z = r * r;
  double p = 0x1.952c77030ad4ap-49;
  p = p * z - 0x1.ae7f3e733b81fp-41;
  p = p * z + 0x1.6124613a86d09p-33;
  p = p * z - 0x1.ae64567f544e4p-26;
  p = p * z + 0x1.71de3a556c734p-19;
  p = p * z - 0x1.a01a01a01a01ap-13;
  p = p * z + 0x1.1111111111111p-7;
  p = p * z - 0x1.5555555555555p-3;
  return r == 0.0 ? r : r + (z * r * p + e * (1.0 - 0.5 * z));
}
double cc_cos_near_d(double r, double e) {
  const double z = r * r, h = 0.5 * z, w = 1.0 - h;
  double p = -0x1.6827863b97d97p-53;
  p = p * z + 0x1.ae7f3e733b81fp-45;
  p = p * z - 0x1.93974a8c07c9dp-37;
  p = p * z + 0x1.1eed8eff8d898p-29;
  p = p * z - 0x1.27e4fb7789f5cp-22;
  p = p * z + 0x1.a01a01a01a01ap-16;
  p = p * z - 0x1.6c16c16c16c17p-10;
  p = p * z + 0x1.5555555555555p-5;
  return w + (((1.0 - w) - h) + (z * z * p - r * e));
}
double cc_wave_d(double r, double e, uint n) { // the sine of n quarters and r
  const double s = (n & 1u) != 0u ? cc_cos_near_d(r, e) : cc_sin_near_d(r, e);
  return (n & 2u) != 0u ? -s : s;
}
double cc_sin_d(double x) {
  if (!(fabs(x) < cc_inf_d()))
    return cc_nan_d();
  const struct cc_angle_d a = cc_angle_of_d(x);
  return cc_wave_d(a.value, a.other, a.n);
}
double cc_cos_d(double x) {
  if (!(fabs(x) < cc_inf_d()))
    return cc_nan_d();
  const struct cc_angle_d a = cc_angle_of_d(x);
  return cc_wave_d(a.value, a.other, a.n + 1u);
}
double cc_tan_d(double x) {
  if (!(fabs(x) < cc_inf_d()))
    return cc_nan_d();
  const struct cc_angle_d a = cc_angle_of_d(x);
  return cc_div_d(cc_wave_d(a.value, a.other, a.n), cc_wave_d(a.value, a.other, a.n + 1u));
}
struct cc_two_d cc_sincos_d(double x) {
  struct cc_two_d r;
  const bool finite = fabs(x) < cc_inf_d();
  const struct cc_angle_d a = cc_angle_of_d(finite ? x : 0.0);
  r.value = finite ? cc_wave_d(a.value, a.other, a.n) : cc_nan_d();
  r.other = finite ? cc_wave_d(a.value, a.other, a.n + 1u) : cc_nan_d();
  return r;
}
// Of pi * x the argument is reduced exactly before it is multiplied by pi.
struct cc_angle_d cc_turn_d(double x) {
  struct cc_angle_d r;
  double a = fabs(x);
  a = a - 2.0 * floor(a * 0.5);
  const double n = rint(a * 2.0), f = a - n * 0.5;
  const struct cc_two_d v = cc_times_d(0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53, f, 0.0);
  r.value = v.value;
  r.other = v.other;
  r.n = (uint)(int)n & 3u;
  return r;
}
double cc_sinpi_d(double x) {
  if (!(fabs(x) < cc_inf_d()))
    return cc_nan_d();
  const struct cc_angle_d a = cc_turn_d(x);
  const double s = cc_wave_d(a.value, a.other, a.n);
  return a.value == 0.0 && (a.n & 1u) == 0u ? copysign(0.0, x) : x < 0.0 ? -s : s;
}
double cc_cospi_d(double x) {
  if (!(fabs(x) < cc_inf_d()))
    return cc_nan_d();
  const struct cc_angle_d a = cc_turn_d(x);
  return a.value == 0.0 && (a.n & 1u) != 0u ? 0.0 : cc_wave_d(a.value, a.other, a.n + 1u);
}
double cc_tanpi_d(double x) {
  if (!(fabs(x) < cc_inf_d()))
    return cc_nan_d();
  const struct cc_angle_d a = cc_turn_d(x);
  const bool odd = (a.n & 2u) != 0u;
  if (a.value == 0.0) { // multiples of a half turn and the poles between them
    const double z = (a.n & 1u) != 0u ? cc_inf_d() : copysign(0.0, x);
    return (a.n & 1u) != 0u ? ((x < 0.0) != odd ? -z : z) : (odd ? -z : z);
  }
  const double t = cc_div_d(cc_wave_d(a.value, a.other, a.n), cc_wave_d(a.value, a.other, a.n + 1u));
  return x < 0.0 ? -t : t;
}

// The angle of the point (x, y) in the first quarter, in two parts: that of t = (y - x)/(y + x) is pi/4 less.
// atan t = t + t^3 * p(t^2) for t <= tan(pi/8).
struct cc_two_d cc_arc_d(double y, double x) {
  const bool steep = y > x;
  const double big = steep ? y : x, small = steep ? x : y, k = big > 0x1p1000 ? 0x1p-60 : 1.0;
  const double a = small * k, b = big * k;
  const bool near = a > 0x1.a827999fcef32p-2 * b;
  const double q = cc_div_d(near ? a - b : a, near ? a + b : b);
  const double t = small == big ? 0.0 : q, z = t * t; // both zero, or infinite
  double p = 0x1.0aa87c56e3eb5p-6;
  p = p * z - 0x1.1b2058fb5da3p-5;
  p = p * z + 0x1.74d64aa665b0ap-5;
  p = p * z - 0x1.ac78ec6b8cb98p-5;
  p = p * z + 0x1.e199da4156fd9p-5;
  p = p * z - 0x1.110e858a72e28p-4;
  p = p * z + 0x1.3b1392b641b06p-4;
  p = p * z - 0x1.745d165cb83aap-4;
  p = p * z + 0x1.c71c71c2fe5d9p-4;
  p = p * z - 0x1.249249248d768p-3;
  p = p * z + 0x1.9999999999953p-3;
  p = p * z - 0x1.5555555555555p-2;
  p = z * t * p;
  struct cc_two_d r = cc_pair_d(t, p);
  if (near || (small == big && big != 0.0)) {
    r = cc_pair_d(0x1.921fb54442d18p-1, t);
    r = cc_pair_d(r.value, r.other + (0x1.1a62633145c07p-55 + p));
  }
  if (!steep)
    return r;
  const struct cc_two_d s = cc_pair_d(0x1.921fb54442d18p+0, -r.value);
  return cc_pair_d(s.value, s.other + (0x1.1a62633145c07p-54 - r.other));
}
struct cc_two_d cc_back_d(struct cc_two_d r) { // pi - r
  const struct cc_two_d s = cc_pair_d(0x1.921fb54442d18p+1, -r.value);
  return cc_pair_d(s.value, s.other + (0x1.1a62633145c07p-53 - r.other));
}
struct cc_two_d cc_asin_two_d(double a) { // of |x|; beyond 1 it is the angle of a NaN
  return cc_arc_d(a, cc_sqrt_d((1.0 - a) * (1.0 + a)));
}
struct cc_two_d cc_acos_two_d(double x) {
  const double a = fabs(x);
  const struct cc_two_d r = cc_arc_d(cc_sqrt_d((1.0 - a) * (1.0 + a)), a);
  return x < 0.0 ? cc_back_d(r) : r;
}
struct cc_two_d cc_atan2_two_d(double y, double x) {
  const struct cc_two_d r = cc_arc_d(fabs(y), fabs(x));
  return as_ulong(x) >> 63 != 0ul ? cc_back_d(r) : r;
}
double cc_over_pi_d(struct cc_two_d r) {
  const struct cc_two_d p = cc_times_d(0x1.45f306dc9c883p-2, -0x1.6b01ec5417056p-56, r.value, r.other);
  return p.value;
}
double cc_asin_d(double x) { return copysign(cc_asin_two_d(fabs(x)).value, x); }
double cc_acos_d(double x) { return cc_acos_two_d(x).value; }
double cc_atan_d(double x) { return copysign(cc_arc_d(fabs(x), 1.0).value, x); }
double cc_atan2_d(double y, double x) {
  return x != x || y != y ? cc_nan_d() : copysign(cc_atan2_two_d(y, x).value, y);
}
double cc_asinpi_d(double x) { return copysign(cc_over_pi_d(cc_asin_two_d(fabs(x))), x); }
double cc_acospi_d(double x) { return cc_over_pi_d(cc_acos_two_d(x)); }
double cc_atanpi_d(double x) { return copysign(cc_over_pi_d(cc_arc_d(fabs(x), 1.0)), x); }
double cc_atan2pi_d(double y, double x) {
  return x != x || y != y ? cc_nan_d() : copysign(cc_over_pi_d(cc_atan2_two_d(y, x)), y);
}

double cc_rsqrt_d(double x) {
  const bool tiny = x < 0x1p-900; // whose square root has an error that no double holds
  const double v = tiny ? x * 0x1p200 : x, r = cc_sqrt_d(v), y = cc_div_d(1.0, r);
  if (!(r > 0.0) || r == cc_inf_d())
    return y;
  const double p = r * r, d = (v - p) - cc_error_d(r, r, p); // v is r^2 + d
  return (y - 0.5 * y * (d * y * y)) * (tiny ? 0x1p100 : 1.0);
}
// Three steps of Halley's method from a third of the exponent, and one of Newton's with an exact cube.
double cc_cbrt_d(double x) {
  const double b = fabs(x);
  const bool tiny = b < 0x1p-900;
  const double a = b * (tiny ? 0x1p120 : 1.0), d = a > 0.0 && a < cc_inf_d() ? a : 1.0;
  const double k = d > 0x1p900 ? 0x1p-300 : 1.0, v = d * k;
  double y = as_double(((as_ulong(v) >> 32) / 3ul + 0x2a9f7893ul) << 32);
  for (int i = 0; i < 3; i++) {
    const double c = y * y * y;
    y = y * cc_raw_div_d(c + 2.0 * v, 2.0 * c + v);
  }
  const double q = y * y, c = q * y, e = cc_error_d(q, y, c) + cc_error_d(y, y, q) * y;
  y -= cc_raw_div_d((c - v) + e, 3.0 * q);
  y = y * (tiny ? 0x1p-40 : d > 0x1p900 ? 0x1p100 : 1.0);
  return b > 0.0 && b < cc_inf_d() ? copysign(y, x) : x;
}
double cc_hypot_d(double x, double y) {
  const double a = fabs(x), b = fabs(y), m = fmax(a, b);
  if (a == cc_inf_d() || b == cc_inf_d())
    return cc_inf_d();
  const double s = m > 0x1p500 ? 0x1p-600 : m < 0x1p-400 ? 0x1p600 : 1.0, c = a * s, d = b * s, p = c * c, q = d * d;
  const struct cc_two_d t = cc_sum_d(p, q);
  const double v = t.value + (t.other + (cc_error_d(c, c, p) + cc_error_d(d, d, q)));
  return x != x || y != y ? cc_nan_d() : cc_sqrt_d(v) * (s == 1.0 ? 1.0 : s < 1.0 ? 0x1p600 : 0x1p-600);
}
