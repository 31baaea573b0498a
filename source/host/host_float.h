// host_float.h: the mathematical functions of float on the host. They are written without branches,
// calls and tables, so that compilers vectorize the loops that they are in. Exponentials, error functions
// and logarithms, which networks are made of, are computed in float; the others in double, which needs
// no care with arguments and leaves one rounding that matters, at half the rate. A result does not depend
// on whether its loop was vectorized: nothing here is for the compiler to rearrange. The comments give the
// relative errors of the polynomials; a unit in the last place of a float is 2^-24 to 2^-23 of it.
// The expressions of the CPU backend compute with the same functions (csrc/cpu/expr_functions.h), so all of this is C, too.

#ifdef __cplusplus
namespace {
#endif

// ---- in float ----

//@ cc_f_bits cc_f_of
CC_ALWAYS cc_uint cc_f_bits(float x) {
  cc_uint u;
  CC_COPY(&u, &x, sizeof u);
  return u;
}
CC_ALWAYS float cc_f_of(cc_uint u) {
  float x;
  CC_COPY(&x, &u, sizeof x);
  return x;
}
//@ cc_f_near cc_f_power cc_f_rest
// x * c as the nearest whole number n, and 2^n as the bits of the exponent. The sum's low bits are those of
// n; nothing is known about the n of a NaN, or of what is 2^22 and more.
CC_ALWAYS float cc_f_near(float x, float c, cc_uint *power) {
  const cc_uint u = cc_f_bits(cc_m_mad(x, c, 0x1.8p23f));
  *power = u << 23;
  return (float)(cc_int)(u - 0x4b400000u);
}
CC_ALWAYS float cc_f_power(cc_uint power) { return cc_f_of(power + 0x3f800000u); }
// x - n * ln 2, where |n| < 512: ln 2 is in two parts, and the product with the first one exact.
CC_ALWAYS float cc_f_rest(float x, float n) {
  return cc_m_mad(n, -0x1.7f7d1cp-20f, cc_m_mad(n, -0x1.62e4p-1f, x));
}
//@ cc_f_exp cc_f_within cc_m_exp cc_m_exp2 cc_m_exp10
// e^r for |r| <= ln 2, to 2^-26, times the factor f and twice the power of two: 2^n of all n that matter is
// no float, that of n/2 is. It is rounded once, as only the last step leaves the normal numbers. The first
// power is in the polynomial, where no option lets compilers multiply it by the second.
CC_ALWAYS float cc_f_exp(float r, float f, cc_uint power) {
  const float s = cc_f_power(power);
  float p = 0x1.9b45c8p-13f;
  p = cc_m_mad(p, r, 0x1.71bd5p-10f);
  p = cc_m_mad(p, r, 0x1.11285ap-7f);
  p = cc_m_mad(p, r, 0x1.554a04p-5f);
  p = cc_m_mad(p, r, 0x1.55550ep-3f);
  p = cc_m_mad(p, r, 0x1.00000cp-1f);
  p = cc_m_mad(p, r, 1.0f);
  p = cc_m_mad(p, r * s, s);
  return p * f * s;
}
// The power r of x, where that is a number between 0 and infinity.
CC_ALWAYS float cc_f_within(float x, float least, float most, float r) {
  r = x > most ? CC_INFINITY : r;
  return x < least ? 0.0f : r;
}
CC_ALWAYS float cc_m_exp(float x) {
  cc_uint power;
  const float n = cc_f_near(x, 0x1.715476p-1f, &power);
  return cc_f_within(x, -110.0f, 100.0f, cc_f_exp(cc_f_rest(x, n + n), 1.0f, power));
}
CC_ALWAYS float cc_m_exp2(float x) {
  cc_uint power;
  const float n = cc_f_near(x, 0.5f, &power);
  return cc_f_within(x, -160.0f, 140.0f, cc_f_exp((x - (n + n)) * 0x1.62e43p-1f, 1.0f, power));
}
CC_ALWAYS float cc_m_exp10(float x) { // log10 2 and ln 10 in two parts
  cc_uint power;
  const float n = cc_f_near(x, 0x1.a934fp+0f, &power);
  const float r = cc_m_mad(n, -0x1.3509f8p-17f, cc_m_mad(n, -0x1.344p-1f, x));
  return cc_f_within(x, -50.0f, 40.0f, cc_f_exp(cc_m_mad(r, 0x1.26bb1cp+1f, r * -0x1.12aabap-25f), 1.0f, power));
}
//@ cc_f_expm1
// e^r - 1 for |r| <= ln(2)/2, to 2^-26.
CC_ALWAYS float cc_f_expm1(float r) {
  float q = 0x1.6bebf6p-10f;
  q = cc_m_mad(q, r, 0x1.1227bp-7f);
  q = cc_m_mad(q, r, 0x1.555674p-5f);
  q = cc_m_mad(q, r, 0x1.5554bp-3f);
  q = cc_m_mad(q, r, 0x1.fffffep-2f);
  return cc_m_mad(r * r, q, r);
}
//@ cc_m_tanh
// m/(m + 2), m = e^2|x| - 1: near 0 nothing cancels.
CC_ALWAYS float cc_m_tanh(float x) {
  float y = cc_m_fabs(x) * 2.0f;
  y = y > 20.0f ? 20.0f : y; // 1 from there on
  cc_uint power;
  const float n = cc_f_near(y, 0x1.715476p+0f, &power), s = cc_f_power(power);
  const float m = cc_m_mad(s, cc_f_expm1(cc_f_rest(y, n)), s - 1.0f);
  return cc_m_copysign(m / (m + 2.0f), x);
}
//@ cc_m_erf
// 1 - erf a = 2^(-a * p(a)), to 2^-24.7 of erf a; from 4 on erf a is 1.
CC_ALWAYS float cc_m_erf(float x) {
  float a = cc_m_fabs(x), p = 0x1.ec9378p-15f;
  a = a > 4.0f ? 4.0f : a;
  p = cc_m_mad(p, a, -0x1.20279ep-11f);
  p = cc_m_mad(p, a, 0x1.d95f5ep-10f);
  p = cc_m_mad(p, a, 0x1.374d26p-12f);
  p = cc_m_mad(p, a, -0x1.c8b5bep-6f);
  p = cc_m_mad(p, a, 0x1.2fc78cp-3f);
  p = cc_m_mad(p, a, 0x1.d63e38p-1f);
  p = cc_m_mad(p, a, 0x1.a0be84p+0f);
  p = p * -a;
  cc_uint power;
  const float n = cc_f_near(p, 1.0f, &power), s = cc_f_power(power);
  return cc_m_copysign(cc_m_mad(-s, cc_f_expm1((p - n) * 0x1.62e43p-1f), 1.0f - s), x);
}
//@ cc_m_erfc
// erfc a = e^(-a^2) * t * p(t), t = 1/(1 + 0.4 a), to 2^-23.9; from 10.1 on it is 0. a^2 is not rounded
// before n * ln 2, times two, is taken away.
CC_ALWAYS float cc_m_erfc(float x) {
  float a = cc_m_fabs(x);
  a = a > 11.0f ? 11.0f : a;
  const float t = 1.0f / cc_m_mad(0.4f, a, 1.0f);
  float p = 0x1.53700ep-5f;
  p = cc_m_mad(p, t, -0x1.2133e2p-3f);
  p = cc_m_mad(p, t, 0x1.5fa1e6p-4f);
  p = cc_m_mad(p, t, 0x1.5f826p-4f);
  p = cc_m_mad(p, t, 0x1.4ccf86p-4f);
  p = cc_m_mad(p, t, 0x1.8ac09p-3f);
  p = cc_m_mad(p, t, 0x1.9dce4cp-3f);
  p = cc_m_mad(p, t, 0x1.cfb518p-3f);
  p = cc_m_mad(p, t, 0x1.ce1a0cp-3f);
  cc_uint power;
  const float n = cc_f_near(a * a, -0x1.715476p-1f, &power), rest = cc_m_fma(a, -a, n * -0x1.62e4p+0f);
  const float r = cc_f_exp(cc_m_mad(n, -0x1.7f7d1cp-19f, rest), t * p, power);
  return x < 0.0f ? 2.0f - r : r;
}
//@ cc_m_log cc_m_log2 cc_m_log10
// log x for x > 0, less k * ln 2: x = 2^k * (1 + f), with 1 + f from sqrt(1/2) to sqrt 2, and log(1 + f) is
// f - f^2/2 + f^3 * p(f), to 2^-27.
CC_ALWAYS float cc_f_log(float x, float *k) {
  const bool small = x < 0x1p-126f;
  const cc_int b = (cc_int)cc_f_bits(small ? x * 0x1p23f : x), u = (b - 0x3f3504f3) >> 23;
  *k = (float)(u - (small ? 23 : 0));
  const float f = cc_f_of((cc_uint)(b - (u << 23))) - 1.0f, z = f * f;
  float p = -0x1.38bd94p-4f;
  p = cc_m_mad(p, f, 0x1.055d46p-3f);
  p = cc_m_mad(p, f, -0x1.0d8494p-3f);
  p = cc_m_mad(p, f, 0x1.22d9cep-3f);
  p = cc_m_mad(p, f, -0x1.54724ep-3f);
  p = cc_m_mad(p, f, 0x1.99a00cp-3f);
  p = cc_m_mad(p, f, -0x1.000226p-2f);
  p = cc_m_mad(p, f, 0x1.555554p-2f);
  return cc_m_mad(f * z, p, -0.5f * z) + f;
}
// The logarithm r of x where x is a positive number.
CC_ALWAYS float cc_f_logs(float x, float r) {
  r = x < CC_INFINITY ? r : x;
  r = x > 0.0f ? r : -CC_INFINITY;
  return x >= 0.0f ? r : CC_NAN;
}
CC_ALWAYS float cc_m_log(float x) {
  float k, l = cc_f_log(x, &k);
  return cc_f_logs(x, cc_m_mad(k, 0x1.62e4p-1f, cc_m_mad(k, 0x1.7f7d1cp-20f, l)));
}
CC_ALWAYS float cc_m_log2(float x) {
  float k, l = cc_f_log(x, &k);
  return cc_f_logs(x, cc_m_mad(l, 0x1.715476p+0f, k));
}
CC_ALWAYS float cc_m_log10(float x) {
  float k, l = cc_f_log(x, &k);
  return cc_f_logs(x, cc_m_mad(k, 0x1.344p-2f, cc_m_mad(k, 0x1.3509f8p-18f, l * 0x1.bcb7b2p-2f)));
}

//@
// ---- in double ----

//@ cc_d_bits cc_d_of cc_d_pick cc_d_flip
CC_ALWAYS cc_ulong cc_d_bits(double x) {
  cc_ulong u;
  CC_COPY(&u, &x, sizeof u);
  return u;
}
CC_ALWAYS double cc_d_of(cc_ulong u) {
  double x;
  CC_COPY(&x, &u, sizeof x);
  return x;
}
// c ? x : y. Of several conditional expressions in a row GCC makes a mask for every way through them.
CC_ALWAYS double cc_d_pick(bool c, double x, double y) {
  const cc_ulong m = 0 - (cc_ulong)(c);
  return cc_d_of((cc_d_bits(x) & m) | (cc_d_bits(y) & ~m));
}
// r, or -r where x is negative: by the bits, since compilers lose signs of zeros.
CC_ALWAYS double cc_d_flip(double r, double x) { return cc_d_of(cc_d_bits(r) ^ (cc_d_bits(x) & cc_d_bits(-0.0))); }

//@ cc_d_exp2 cc_d_exp2m1 cc_m_expm1 cc_m_sinh cc_m_cosh cc_log2_e
// 2^t - 1 = s * m + (s - 1), where s is a power of two: near 0 it is 1 and nothing cancels. A t beyond
// 300 is one that no float of the result is near. m = 2^f - 1 = f * p(f) for |f| <= 1/2, to 2^-32.
CC_ALWAYS double cc_d_exp2m(double t, double *s) {
  t = cc_d_pick(t < -300.0, -300.0, t);
  t = cc_d_pick(t > 300.0, 300.0, t);
  const double n = cc_m_rint(t), f = t - n;
  *s = cc_d_of((cc_d_bits(n + 0x1.8p52) << 52) + cc_d_bits(1.0)); // the sum's low bits are those of n
  double p = 0x1.ffcc02f880557p-17;
  p = cc_m_mad(p, f, 0x1.443f625aab938p-13);
  p = cc_m_mad(p, f, 0x1.5d88bd8d041c8p-10);
  p = cc_m_mad(p, f, 0x1.3b2a1c365d7afp-7);
  p = cc_m_mad(p, f, 0x1.c6b08cb18d129p-5);
  p = cc_m_mad(p, f, 0x1.ebfbe0452f198p-3);
  p = cc_m_mad(p, f, 0x1.62e42fefd325fp-1);
  return f * p;
}
CC_ALWAYS double cc_d_exp2(double t) {
  double s, m = cc_d_exp2m(t, &s);
  return cc_m_mad(s, m, s);
}
CC_ALWAYS double cc_d_exp2m1(double t) {
  double s, m = cc_d_exp2m(t, &s);
  return cc_m_mad(s, m, s - 1.0);
}
static const double cc_log2_e = 1.44269504088896340736;
CC_ALWAYS float cc_m_expm1(float x) { return (float)(cc_m_copysign(cc_d_exp2m1(x * cc_log2_e), (double)(x))); }
CC_ALWAYS float cc_m_cosh(float x) {
  const double e = cc_d_exp2(x * cc_log2_e);
  return (float)(0.5 * e + 0.5 / e);
}
CC_ALWAYS float cc_m_sinh(float x) {
  const double e = cc_d_exp2m1(cc_m_fabs(x) * cc_log2_e);
  return (float)(cc_m_copysign(0.5 * (e + e / (e + 1.0)), (double)(x)));
}
//@ cc_d_log2 cc_d_log1p cc_m_log1p
// log2 d for d > 0: d = 2^k * (1 + f) with 1 + f from sqrt(1/2) to sqrt 2, and log2(1 + f) = s * p(s^2),
// s = f/(2 + f), to 2^-37.8. near is d - 1, exactly, where k is 0: there nothing cancels either.
CC_ALWAYS double cc_d_log2(double d, double near) {
  // What d is above sqrt(1/2), as a number of which the high bits are k + 1024.
  const cc_ulong b = cc_d_bits(d), u = b - 0x3fe6a09e667f3bcdul + (1024ul << 52), high = u >> 52;
  const double k = cc_d_of(high | cc_d_bits(0x1p52)) - (0x1p52 + 1024.0);
  const double m = cc_d_of(b - (high << 52) + (1024ul << 52));
  const double f = cc_d_pick(k == 0.0, near, m - 1.0), s = f / (f + 2.0), z = s * s;
  double p = 0x1.5ce7cd8f69a61p-2;
  p = cc_m_mad(p, z, 0x1.a58d8fc49d905p-2);
  p = cc_m_mad(p, z, 0x1.27777fda50da3p-1);
  p = cc_m_mad(p, z, 0x1.ec709d12e192ap-1);
  p = cc_m_mad(p, z, 0x1.71547652bede5p+1);
  double r = cc_m_mad(s, p, k);
  r = cc_d_pick(d < CC_HUGE_VAL, r, d);
  r = cc_d_pick(d > 0.0, r, -CC_HUGE_VAL);
  return cc_d_pick(d >= 0.0, r, (double)(CC_NAN));
}
CC_ALWAYS double cc_d_log1p(double x) { return cc_d_log2(x + 1.0, x) * 0.69314718055994530942; }
CC_ALWAYS float cc_m_log1p(float x) { return (float)(cc_m_copysign(cc_d_log1p(x), (double)(x))); }
//@ cc_m_asinh cc_m_acosh cc_m_atanh
CC_ALWAYS float cc_m_asinh(float x) {
  const double a = cc_m_fabs(x), z = a * a, r = cc_d_log1p(a + z / (cc_m_sqrt(z + 1.0) + 1.0));
  return (float)(cc_m_copysign(cc_d_pick(a < CC_HUGE_VAL, r, a), (double)(x)));
}
CC_ALWAYS float cc_m_acosh(float x) {
  const double t = x - 1.0, r = cc_d_log1p(t + cc_m_sqrt(t * (x + 1.0)));
  return (float)(t >= 0.0 ? r : (double)(CC_NAN));
}
CC_ALWAYS float cc_m_atanh(float x) {
  const double a = cc_m_fabs(x);
  return (float)(cc_m_copysign(0.5 * cc_d_log1p((a + a) / (1.0 - a)), (double)(x)));
}

//@ cc_w_pow cc_m_pow
// x^y is 2^(y * log2|x|) with a sign, but for these: x^0 and 1^y are 1 whatever the other one is, (-1)^y
// is 1 for infinite y, and a negative x has no power that is not whole.
CC_ALWAYS double cc_w_pow(double x, double y) {
  const double a = cc_m_fabs(x);
  const bool whole = cc_m_rint(y) == y, odd = whole & (cc_m_rint(0.5 * y) != 0.5 * y);
  double r = cc_d_exp2(y * cc_d_log2(a, a - 1.0));
  r = cc_d_pick((x < 0.0) & (a < CC_HUGE_VAL) & !whole, (double)(CC_NAN), r);
  r = cc_d_pick(((a == 1.0) & (cc_m_fabs(y) == CC_HUGE_VAL)) | (x == 1.0) | (y == 0.0), 1.0, r);
  return cc_d_pick(odd, cc_m_copysign(r, x), r);
}
CC_ALWAYS float cc_m_pow(float x, float y) { return (float)(cc_w_pow(x, y)); }

//@ cc_m_sin cc_m_cos cc_m_tan
// Turns: x/2pi less a whole number of quarters, n. Each piece of 1/2pi has 29 bits, so that its product
// with a float is exact, and so is what is left of that without the whole turns; the last piece has what
// counts for the largest floats. Infinities become NaN.
CC_ALWAYS double cc_d_turns(double a, cc_ulong *n) {
  const double p0 = a * 0x1.45f306dp-3, p1 = a * 0x1.9391054p-32, p2 = a * 0x1.4fe13abp-61,
               p3 = a * 0x1.d1f534dp-90, p4 = a * 0x1.b81b6c5p-119;
  const double t0 = p0 - cc_m_rint(p0), t1 = p1 - cc_m_rint(p1), t2 = p2 - cc_m_rint(p2),
               t3 = p3 - cc_m_rint(p3), t4 = p4 - cc_m_rint(p4), t5 = a * 0x1.5993c439041fep-150;
  const double q = cc_m_rint(4.0 * (t0 + t1 + (t2 + t3) + t4));
  *n = cc_d_bits(q + 0x1.8p52); // its low bits
  return t0 - 0.25 * q + t1 + t2 + t3 + t4 + t5;
}
// sin 2pi f, to 2^-28, and cos 2pi f, to 2^-34, for |f| <= 1/8
CC_ALWAYS double cc_d_sin(double f) {
  const double z = f * f;
  double p = -0x1.2d931f0762d9ep+6;
  p = cc_m_mad(p, z, 0x1.465e929fafda4p+6);
  p = cc_m_mad(p, z, -0x1.4abbb90250e48p+5);
  p = cc_m_mad(p, z, 0x1.921fb52e9be04p+2);
  return f * p;
}
CC_ALWAYS double cc_d_cos(double f) {
  const double z = f * f;
  double p = 0x1.d99f528bdd571p+5;
  p = cc_m_mad(p, z, -0x1.55c4e9bda0e3fp+6);
  p = cc_m_mad(p, z, 0x1.03c1daacf47b6p+6);
  p = cc_m_mad(p, z, -0x1.3bd3cc6e7cc8ep+4);
  return cc_m_mad(p, z, 0x1.ffffffff84b9ap-1);
}
// The sine of n quarters and f turns.
CC_ALWAYS double cc_d_wave(double f, cc_ulong n) {
  const cc_ulong odd = 0 - (n & 1), sign = (n & 2) << 62;
  return cc_d_of(((cc_d_bits(cc_d_sin(f)) & ~odd) | (cc_d_bits(cc_d_cos(f)) & odd)) ^ sign);
}
CC_ALWAYS float cc_m_cos(float x) {
  cc_ulong n;
  const double f = cc_d_turns(cc_m_fabs(x), &n);
  return (float)(cc_d_wave(f, n + 1));
}
CC_ALWAYS float cc_m_sin(float x) {
  cc_ulong n;
  const double f = cc_d_turns(cc_m_fabs(x), &n);
  return (float)(cc_d_flip(cc_d_wave(f, n), x));
}
CC_ALWAYS float cc_m_tan(float x) {
  cc_ulong n;
  const double f = cc_d_turns(cc_m_fabs(x), &n), r = cc_d_wave(f, n) / cc_d_wave(f, n + 1);
  return (float)(cc_d_flip(r, x));
}

//@ cc_w_asin cc_w_acos cc_w_atan cc_w_atan2 cc_m_asin cc_m_acos cc_m_atan cc_m_atan2
// The angle of the point (x, y) in the first quarter; atan t = t * p(t^2) for t <= 1, to 2^-28.6.
CC_ALWAYS double cc_d_angle(double y, double x) {
  const bool steep = y > x;
  const double a = steep ? x : y, b = steep ? y : x;
  double t = a / b;
  t = a == b ? (b == 0.0 ? 0.0 : 1.0) : t; // both zero, or infinite
  const double z = t * t;
  double p = -0x1.cbc5f52550ed3p-10;
  p = cc_m_mad(p, z, 0x1.5f7ee8f9df281p-7);
  p = cc_m_mad(p, z, -0x1.f8b2cbffee199p-6);
  p = cc_m_mad(p, z, 0x1.d7770a50abec4p-5);
  p = cc_m_mad(p, z, -0x1.5722688b42320p-4);
  p = cc_m_mad(p, z, 0x1.c02f7b7daa632p-4);
  p = cc_m_mad(p, z, -0x1.24159a7c9e851p-3);
  p = cc_m_mad(p, z, 0x1.999082682046ap-3);
  p = cc_m_mad(p, z, -0x1.555533fdda1a7p-2);
  p = cc_m_mad(p, z, 0x1.ffffffeba7a0bp-1);
  p = t * p;
  return steep ? 1.57079632679489661923 - p : p;
}
CC_ALWAYS double cc_w_asin(float x) { // beyond 1 it is the angle of a NaN
  const double a = cc_m_fabs(x);
  return cc_m_copysign(cc_d_angle(a, cc_m_sqrt((1.0 - a) * (1.0 + a))), (double)(x));
}
CC_ALWAYS double cc_w_acos(float x) {
  const double a = cc_m_fabs(x), r = cc_d_angle(cc_m_sqrt((1.0 - a) * (1.0 + a)), a);
  return x < 0.0f ? cc_pi - r : r;
}
CC_ALWAYS double cc_w_atan2(float y, float x) {
  const double r = cc_d_angle(cc_m_fabs(y), cc_m_fabs(x));
  return cc_m_copysign(cc_m_copysign(1.0f, x) < 0.0f ? cc_pi - r : r, (double)(y));
}
CC_ALWAYS double cc_w_atan(float x) { return cc_m_copysign(cc_d_angle(cc_m_fabs(x), 1.0), (double)(x)); }
CC_ALWAYS float cc_m_asin(float x) { return (float)(cc_w_asin(x)); }
CC_ALWAYS float cc_m_acos(float x) { return (float)(cc_w_acos(x)); }
CC_ALWAYS float cc_m_atan(float x) { return (float)(cc_w_atan(x)); }
CC_ALWAYS float cc_m_atan2(float y, float x) { return (float)(cc_w_atan2(y, x)); }

//@ cc_m_cbrt
// Halley's method from a third of the exponent: each of two steps triples the digits. A zero starts as
// 2^-200, since processors are slow where a cube is denormal.
CC_ALWAYS float cc_m_cbrt(float x) {
  const double d = cc_m_fabs(x);
  double y = cc_d_of((cc_ulong)((cc_uint)(cc_d_bits(d + 0x1p-200) >> 32) / 3 + 0x2a9f7893u) << 32);
  double c = y * y * y;
  y = y * ((c + 2.0 * d) / (2.0 * c + d));
  c = y * y * y;
  y = y * ((c + 2.0 * d) / (2.0 * c + d));
  return (float)(cc_m_copysign(cc_d_pick((d > 0.0) & (d < CC_HUGE_VAL), y, d), (double)(x)));
}
//@ cc_m_hypot
CC_ALWAYS float cc_m_hypot(float x, float y) { // squares of floats fit double
  const double a = cc_m_fabs(x), b = cc_m_fabs(y), r = cc_m_sqrt(a * a + b * b);
  return (float)((a == CC_HUGE_VAL) | (b == CC_HUGE_VAL) ? CC_HUGE_VAL : r);
}

//@
#ifdef __cplusplus
} // namespace
#endif
