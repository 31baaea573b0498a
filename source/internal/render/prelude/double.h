// double.h: functions of which the C++ targets compute those of float, too, in double.

namespace {

template <class F> CC_FN bool cc_t_isnan(F x) { return !(x == x); }
template <class F> CC_FN bool cc_t_isinf(F x) { return cc_m_fabs(x) == F(CC_INFINITY); }

//@ cc_m_acospi cc_m_asinpi cc_m_atanpi cc_m_atan2pi
// A float's result is computed in double, by the hooks cc_w_name, and rounded once.
CC_FN float cc_m_acospi(float x) { return float(cc_w_acos(x) / cc_pi); }
CC_FN double cc_m_acospi(double x) { return cc_m_acos(x) / cc_pi; }
CC_FN float cc_m_asinpi(float x) { return float(cc_w_asin(x) / cc_pi); }
CC_FN double cc_m_asinpi(double x) { return cc_m_asin(x) / cc_pi; }
CC_FN float cc_m_atanpi(float x) { return float(cc_w_atan(x) / cc_pi); }
CC_FN double cc_m_atanpi(double x) { return cc_m_atan(x) / cc_pi; }
CC_FN float cc_m_atan2pi(float y, float x) { return float(cc_w_atan2(y, x) / cc_pi); }
CC_FN double cc_m_atan2pi(double y, double x) { return cc_m_atan2(y, x) / cc_pi; }

//@ cc_m_sinpi cc_m_cospi cc_m_tanpi
// sin and cos of pi x: the argument is reduced exactly before it is multiplied by pi. q is the
// quadrant.
template <class F> CC_FN F cc_quarter(F x, int *q) {
  F a = cc_m_fabs(x);
  a = a - F(2) * cc_m_floor(a * F(0.5)); // in [0, 2), exact
  F n = cc_m_rint(a * F(2));
  *q = int(n);
  return a - n * F(0.5); // in [-1/4, 1/4], exact
}
template <class F> CC_FN F cc_m_sinpi(F x) {
  int q;
  double r = double(cc_quarter(x, &q)) * cc_pi;
  if (cc_t_isnan(x) || cc_t_isinf(x))
    return F(CC_NAN);
  double s = q & 1 ? cc_m_cos(r) : cc_m_sin(r);
  s = q == 2 || q == 3 ? -s : s;
  return q % 2 == 0 && r == 0 ? cc_m_copysign(F(0), x) : F(x < F(0) ? -s : s);
}
template <class F> CC_FN F cc_m_cospi(F x) {
  int q;
  double r = double(cc_quarter(x, &q)) * cc_pi;
  if (cc_t_isnan(x) || cc_t_isinf(x))
    return F(CC_NAN);
  if (q % 2 == 1 && r == 0)
    return F(0);
  double c = q & 1 ? -cc_m_sin(r) : cc_m_cos(r);
  return F(q == 2 || q == 3 ? -c : c);
}
template <class F> CC_FN F cc_m_tanpi(F x) {
  int q;
  double r = double(cc_quarter(x, &q)) * cc_pi;
  if (cc_t_isnan(x) || cc_t_isinf(x))
    return F(CC_NAN);
  if (r == 0) { // multiples of a half turn and the poles between them
    bool odd = q == 2 || q == 3;
    F z = q & 1 ? F(CC_INFINITY) : F(0);
    if (q & 1)
      return x < F(0) ? (odd ? z : -z) : (odd ? -z : z);
    return odd ? -cc_m_copysign(z, x) : cc_m_copysign(z, x);
  }
  double t = q & 1 ? -cc_m_cos(r) / cc_m_sin(r) : cc_m_tan(r);
  return F(x < F(0) ? -t : t);
}

//@ cc_m_pown cc_m_rootn
// x to an integer power; double holds every int.
CC_FN float cc_m_pown(float x, cc_int n) { return float(cc_w_pow(double(x), double(n))); }
CC_FN double cc_m_pown(double x, cc_int n) { return cc_m_pow(x, double(n)); }
CC_FN double cc_m_rootn(double x, cc_int n) {
  if (n == 0 || (x < 0 && n % 2 == 0) || !(x == x))
    return double(CC_NAN);
  double a = cc_m_fabs(x), r = a;
  if (a == 0 || cc_t_isinf(a)) {
    r = (a == 0) == (n > 0) ? 0.0 : CC_HUGE_VAL;
    return n % 2 ? cc_m_copysign(r, x) : r;
  }
  if (n != 1) { // 1/n was rounded, with the error e; r * e * log a is the resulting error of r
    double y = 1.0 / n, e = cc_m_fma(-double(n), y, 1.0) / n;
    r = cc_m_pow(a, y);
    if (e != 0 && !cc_t_isinf(r))
      r += r * (e * cc_m_log(a));
  }
  return x < 0 ? -r : r;
}
CC_FN float cc_m_rootn(float x, cc_int n) { return float(cc_m_rootn(double(x), n)); }

//@ cc_norm cc_measure
typedef double cc_measure;
// Squares of floats and halves do not overflow in double. A double is scaled by a power of two if
// its square might.
CC_T CC_FN double cc_norm(CC_V x, double *scale) {
  double m = 0, s = 0, k = 1;
  if (cc_same<T, double>::yes) {
    for (int i = 0; i < N; i++)
      m = cc_m_fabs(double(x.v[i])) > m ? cc_m_fabs(double(x.v[i])) : m;
    k = m > 0x1p500 ? 0x1p-520 : m < 0x1p-450 ? 0x1p520 : 1;
  }
  for (int i = 0; i < N; i++)
    s += double(x.v[i]) * k * (double(x.v[i]) * k);
  *scale = k;
  return cc_m_sqrt(s);
}

//@
} // namespace
