// double3.cl: error and gamma functions of double.

// erf x for |x| <= 1: x times 2/sqrt(pi) and a polynomial of x^2.
double cc_erf_near_d(double x) {
  const double z = x * x;
  double p = 0x1.05ffd737fb32ep-34;
  p = p * z - 0x1.389d4f2641625p-30;
  p = p * z + 0x1.f7b4bf3b13964p-27;
  p = p * z - 0x1.5f1ecb6f0764cp-23;
  p = p * z + 0x1.b9df224ca4b97p-20;
  p = p * z - 0x1.f4d1e3183f7aep-17;
  p = p * z + 0x1.f9a321d5b8e1ep-14;
  p = p * z - 0x1.c02db3dac435fp-11;
  p = p * z + 0x1.565bcd0dbaa38p-8;
  p = p * z - 0x1.b82ce31284ep-6;
  p = p * z + 0x1.ce2f21a042b3p-4;
  p = p * z - 0x1.812746b0379e6p-2;
  p = p * z - 0x1.33d62c94107ddp-63;
  return copysign(x * 0x1.20dd750429b6dp+0 + x * p, x);
}
// erfc a for 1/2 <= a <= 28: e^(-a^2) * p(t)/(1 + 2 a), t = (a - 4)/(a + 4).
double cc_erfc_far_d(double a) {
  const double t = cc_div_d(a - 4.0, a + 4.0);
  double p = 0x1.0eff5654f9fdp-29;
  p = p * t - 0x1.4ba5c49bc26a7p-27;
  p = p * t - 0x1.3c396538d8d44p-26;
  p = p * t + 0x1.bb7be885c5a0bp-24;
  p = p * t + 0x1.43dc50b7baccdp-24;
  p = p * t - 0x1.b7f86449a0aa8p-21;
  p = p * t + 0x1.3abf792a3125dp-22;
  p = p * t + 0x1.7ef4d531cf83p-18;
  p = p * t - 0x1.788966f85ff88p-17;
  p = p * t - 0x1.9954dbbbdf343p-16;
  p = p * t + 0x1.3be055036ec36p-13;
  p = p * t - 0x1.a1df44d0d357ap-13;
  p = p * t - 0x1.8d4a9b1376eaep-11;
  p = p * t + 0x1.49c672aa08182p-8;
  p = p * t - 0x1.09623883f080cp-6;
  p = p * t + 0x1.3079edf61e7a1p-5;
  p = p * t - 0x1.0fb06dfe4e4f9p-4;
  p = p * t + 0x1.7fee004e14c37p-4;
  p = p * t - 0x1.9ddb23c3e8ep-4;
  p = p * t + 0x1.16ecefcfa52b5p-4;
  p = p * t + 0x1.f7f5df66fd76dp-7;
  p = p * t - 0x1.1df1ad154a28ep-3;
  p = p * t + 0x1.3ba5916e9fd7fp+0;
  const double s = a * a;
  return cc_scaled_d(s > 760.0 ? -760.0 : -s, -cc_error_d(a, a, s), cc_div_d(p, 1.0 + 2.0 * a));
}
double cc_erf_d(double x) {
  const double a = fabs(x);
  if (x != x)
    return x;
  return a < 1.0 ? cc_erf_near_d(x) : copysign(a > 6.5 ? 1.0 : 1.0 - cc_erfc_far_d(a), x);
}
double cc_erfc_d(double x) {
  const double a = fabs(x);
  if (x != x)
    return x;
  if (x < 0.5 && a < 1.0)
    return 1.0 - cc_erf_near_d(x);
  const double r = cc_erfc_far_d(a > 28.0 ? 28.0 : a);
  return x < 0.0 ? 2.0 - r : r;
}

double cc_gamma_near_d(double x) { // on [1, 2]
  const double z = x - 1.5;
  double p = 0x1.6c3032e6c6f69p-13;
  p = p * z - 0x1.1123e91f561a5p-12;
  p = p * z + 0x1.27e540fa0105ep-13;
  p = p * z - 0x1.bbd59618e79efp-13;
  p = p * z + 0x1.f076f989ef31p-12;
  p = p * z - 0x1.74558a9281aefp-11;
  p = p * z + 0x1.08a9773a0b118p-10;
  p = p * z - 0x1.8cf2aff0a8622p-10;
  p = p * z + 0x1.2b48ecb68cfadp-9;
  p = p * z - 0x1.c0c9137946e79p-9;
  p = p * z + 0x1.504d6f0e1fffep-8;
  p = p * z - 0x1.f7fa735e7333ep-8;
  p = p * z + 0x1.7991e760184a3p-7;
  p = p * z - 0x1.1a2c30f8def74p-6;
  p = p * z + 0x1.a752c67eb605dp-6;
  p = p * z - 0x1.374fd5a85a843p-5;
  p = p * z + 0x1.e022b743d0702p-5;
  p = p * z - 0x1.3d88cfe56716ep-4;
  p = p * z + 0x1.283bd374eadabp-3;
  p = p * z - 0x1.b77ac1ca2dcabp-4;
  p = p * z + 0x1.a8c4dba620d58p-2;
  p = p * z + 0x1.08ea88ee5619cp-5;
  p = p * z + 0x1.c5bf891b4ef6bp-1;
  return p;
}
// log gamma x from 16 on, by Stirling's formula, in two parts.
struct cc_two_d cc_stirling_d(double x) {
  const double u = cc_div_d(1.0, x), v = u * u;
  double p = -0x1.e4286cb0f5398p-6;
  p = p * v + 0x1.a41a41a41a41ap-8;
  p = p * v - 0x1.f6ab0d9993c7dp-10;
  p = p * v + 0x1.b951e2b18ff23p-11;
  p = p * v - 0x1.3813813813814p-11;
  p = p * v + 0x1.a01a01a01a01ap-11;
  p = p * v - 0x1.6c16c16c16c17p-9;
  p = p * v + 0x1.5555555555555p-4;
  const struct cc_two_d l = cc_log_two_d(x), m = cc_times_d(x - 0.5, 0.0, l.value, l.other), n = cc_sum_d(m.value, -x);
  const struct cc_two_d s = cc_sum_d(n.value, 0x1.d67f1c864beb5p-1);
  return cc_pair_d(s.value, s.other + (n.other + (m.other + p * u)));
}
// gamma from above 0 to 16: the factors of the steps down to [1, 2] are exact.
struct cc_two_d cc_gamma_middle_d(double x) {
  double hi = 1.0, lo = 0.0, f = x;
  if (x < 1.0) {
    struct cc_two_d r;
    r.value = cc_div_d(cc_gamma_near_d(x + 1.0), x);
    r.other = 0.0;
    return r;
  }
  while (f > 2.0) {
    f -= 1.0;
    const double h = hi * f;
    lo = lo * f + cc_error_d(hi, f, h);
    hi = h;
  }
  const double g = cc_gamma_near_d(f);
  return cc_times_d(g, 0.0, hi, lo);
}
double cc_exp_two_d(struct cc_two_d x, double f) { return cc_scaled_d(cc_clamp_d(x.value, 760.0), x.other, f); }
double cc_tgamma_d(double x) {
  const double a = fabs(x);
  if (x != x || x == cc_inf_d())
    return x;
  if (x == 0.0)
    return copysign(cc_inf_d(), x);
  if (x < 0.0 && floor(x) == x)
    return cc_nan_d();
  if (x > 172.0)
    return cc_inf_d();
  if (x < -190.0)
    return cc_cospi_d(floor(x)) * 0.0;
  if (x > 0.0)
    return a < 16.0 ? cc_gamma_middle_d(a).value : cc_exp_two_d(cc_stirling_d(a), 1.0);
  if (a < 0x1p-54)
    return cc_div_d(1.0, x);
  const double s = -cc_div_d(0x1.921fb54442d18p+1, cc_sinpi_d(a) * a); // reflected
  if (a < 16.0)
    return cc_div_d(s, cc_gamma_middle_d(a).value);
  struct cc_two_d l = cc_stirling_d(a);
  l.value = -l.value;
  l.other = -l.other;
  return cc_exp_two_d(l, s);
}
double cc_lgamma_near_d(double x, double less) { // on [1, 2]; less is x - 1
  const double z = x - 1.5;
  double p = -0x1.04679455f4066p-17;
  p = p * z + 0x1.9759e69e3c18p-17;
  p = p * z - 0x1.1859892e3f1a8p-17;
  p = p * z + 0x1.ba7302dc9f191p-17;
  p = p * z - 0x1.c85e4d084bc05p-16;
  p = p * z + 0x1.68f13f0853a58p-15;
  p = p * z - 0x1.156abe930482bp-14;
  p = p * z + 0x1.b9e434110e18bp-14;
  p = p * z - 0x1.623f109fc8879p-13;
  p = p * z + 0x1.1c7e3a278cdfdp-12;
  p = p * z - 0x1.cb44dee9e2717p-12;
  p = p * z + 0x1.750a7900dd7fdp-11;
  p = p * z - 0x1.313e8a3ddb37fp-10;
  p = p * z + 0x1.f814bab49d983p-10;
  p = p * z - 0x1.a5035232a7d09p-9;
  p = p * z + 0x1.64f0664c4f92dp-8;
  p = p * z - 0x1.34dbda14971e2p-7;
  p = p * z + 0x1.133423527f1f2p-6;
  p = p * z - 0x1.007aa83cee1acp-5;
  p = p * z + 0x1.01af62a2929cp-4;
  p = p * z - 0x1.2aed059bd608ap-3;
  p = p * z + 0x1.eeb95b094c191p-2;
  return less * (less - 1.0) * p;
}
double cc_lgamma_above_d(double x) {
  if (x < 1.0)
    return cc_lgamma_near_d(x + 1.0, x) - cc_log_d(x);
  if (x >= 16.0) {
    if (x > 0x1p60)
      return x * (cc_log_d(x) - 1.0);
    return cc_stirling_d(x).value;
  }
  double p = 1.0;
  while (x > 2.0) {
    x -= 1.0;
    p *= x;
  }
  return cc_log_d(p) + cc_lgamma_near_d(x, x - 1.0);
}
double cc_lgamma_d(double x) {
  if (x != x || fabs(x) == cc_inf_d())
    return fabs(x);
  if (x > 0.0)
    return cc_lgamma_above_d(x);
  if (floor(x) == x)
    return cc_inf_d();
  if (x > -0x1p-50) // Euler's constant
    return -cc_log_d(-x) - 0x1.2788cfc6fb619p-1 * x;
  return cc_log_d(cc_div_d(0x1.921fb54442d18p+1, fabs(cc_sinpi_d(x) * x))) - cc_lgamma_above_d(-x);
}
struct cc_double_int cc_lgamma_r_d(double x) {
  struct cc_double_int r;
  const double n = floor(x);
  const bool changed = x == 0.0 ? as_ulong(x) >> 63 != 0ul : x < 0.0 && n != x && n - 2.0 * floor(n * 0.5) != 0.0;
  r.other = changed ? -1 : 1;
  r.value = cc_lgamma_d(x);
  return r;
}
