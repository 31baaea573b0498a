// number_d.cl: functions that take numbers apart, remainders, and the common functions of double.

double cc_ldexp_d(double x, int n) {
  const ulong u = as_ulong(x), e = u & 0x7ff0000000000000ul;
  if (e == 0x7ff0000000000000ul || (u & 0x7ffffffffffffffful) == 0ul)
    return x;
  const struct cc_parts_d a = cc_parts_of_d(x);
  return cc_pack_d(u & 0x8000000000000000ul, a.mant, a.exp + (n > 5000 ? 5000 : n < -5000 ? -5000 : n));
}
int cc_ilogb_d(double x) {
  const ulong u = as_ulong(x) & 0x7ffffffffffffffful;
  return u == 0ul ? -0x7fffffff - 1 : u >= 0x7ff0000000000000ul ? 0x7fffffff : cc_parts_of_d(x).exp + 63;
}
double cc_logb_d(double x) {
  const ulong u = as_ulong(x) & 0x7ffffffffffffffful;
  return u == 0ul ? -cc_inf_d() : u >= 0x7ff0000000000000ul ? fabs(x) : (double)(cc_parts_of_d(x).exp + 63);
}
struct cc_double_int cc_frexp_d(double x) {
  struct cc_double_int r;
  const ulong u = as_ulong(x);
  const bool plain = (u & 0x7ffffffffffffffful) != 0ul && (u & 0x7ff0000000000000ul) != 0x7ff0000000000000ul;
  const struct cc_parts_d a = cc_parts_of_d(x);
  r.value = plain ? cc_pack_d(u & 0x8000000000000000ul, a.mant, -64) : x;
  r.other = plain ? a.exp + 64 : 0;
  return r;
}
struct cc_two_d cc_modf_d(double x) {
  struct cc_two_d r;
  r.other = trunc(x);
  r.value = copysign(fabs(x) == cc_inf_d() ? 0.0 : x - r.other, x);
  return r;
}
struct cc_two_d cc_fract_d(double x) {
  struct cc_two_d r;
  r.other = floor(x);
  const double d = x - r.other;
  r.value = fabs(x) == cc_inf_d() ? copysign(0.0, x) : d < 0x1.fffffffffffffp-1 || x != x ? d : 0x1.fffffffffffffp-1;
  return r;
}
double cc_round_d(double x) {
  const double t = trunc(x);
  return copysign(fabs(x - t) >= 0.5 ? t + copysign(1.0, x) : t, x);
}
double cc_nextafter_d(double x, double y) {
  const long b = as_long(x);
  if (x != x || y != y)
    return x + y;
  const bool up = x < y, zero = (as_ulong(x) & 0x7ffffffffffffffful) == 0ul;
  const long to = zero ? (up ? 1l : as_long(0x8000000000000000ul | 1ul)) : (b >= 0l) == up ? b + 1l : b - 1l;
  return x == y ? y : as_double(to);
}
double cc_nan_of_d(ulong c) { return as_double(0x7ff8000000000000ul | (c & 0x7fffffffffffful)); }
double cc_fdim_d(double x, double y) { return x != x || y != y ? cc_nan_d() : x > y ? x - y : 0.0; }
// If one argument is a NaN, the result is the other one.
double cc_fmin_d(double x, double y) { return y < x || x != x ? y : x; }
double cc_fmax_d(double x, double y) { return x < y || x != x ? y : x; }
double cc_maxmag_d(double x, double y) {
  const double a = fabs(x), b = fabs(y);
  return a > b ? x : b > a ? y : cc_fmax_d(x, y);
}
double cc_minmag_d(double x, double y) {
  const double a = fabs(x), b = fabs(y);
  return a < b ? x : b < a ? y : cc_fmin_d(x, y);
}

// The remainder of |x| by |y|, which are finite and not 0, and the last bits of the quotient, by integers.
struct cc_double_int cc_rest_of_d(double x, double y) {
  struct cc_double_int r;
  const struct cc_parts_d a = cc_parts_of_d(x), b = cc_parts_of_d(y);
  int d = a.exp - b.exp;
  r.value = fabs(x);
  r.other = 0;
  if (d < 0)
    return r;
  const ulong m = b.mant >> 11;
  ulong n = a.mant >> 11, q = n / m;
  n -= q * m;
  while (d > 0 && n != 0ul) {
    const int k = d > 11 ? 11 : d;
    n = n << k;
    const ulong t = n / m;
    n -= t * m;
    q = (q << k) + t;
    d -= k;
  }
  q = d > 63 ? 0ul : q << d;
  const int z = (int)clz(n) & 63;
  r.value = n == 0ul ? 0.0 : cc_pack_d(0ul, n << z, b.exp + 11 - z);
  r.other = (int)q;
  return r;
}
double cc_fmod_d(double x, double y) {
  const ulong u = as_ulong(x) & 0x7ffffffffffffffful, v = as_ulong(y) & 0x7ffffffffffffffful;
  if (u >= 0x7ff0000000000000ul || v > 0x7ff0000000000000ul || v == 0ul)
    return cc_nan_d();
  return v == 0x7ff0000000000000ul || u == 0ul ? x : copysign(cc_rest_of_d(x, y).value, x);
}
// The remainder and the low seven bits of the quotient. Every subtraction is exact where it decides.
struct cc_double_int cc_remquo_d(double x, double y) {
  struct cc_double_int r;
  const ulong u = as_ulong(x) & 0x7ffffffffffffffful, v = as_ulong(y) & 0x7ffffffffffffffful;
  r.value = cc_nan_d();
  r.other = 0;
  if (u >= 0x7ff0000000000000ul || v > 0x7ff0000000000000ul || v == 0ul)
    return r;
  r.value = x;
  if (v == 0x7ff0000000000000ul || u == 0ul)
    return r;
  r = cc_rest_of_d(x, y);
  double a = r.value;
  const double b = fabs(y), rest = b - a;
  uint q = (uint)r.other;
  if (a > rest || (a == rest && (q & 1u) != 0u)) {
    a -= b;
    q++;
  }
  q = q & 127u;
  const bool minus = (as_ulong(x) >> 63) != 0ul;
  r.other = ((as_ulong(x) ^ as_ulong(y)) >> 63) != 0ul ? -(int)q : (int)q;
  r.value = a == 0.0 ? copysign(a, x) : minus ? -a : a;
  return r;
}
double cc_remainder_d(double x, double y) { return cc_remquo_d(x, y).value; }

double cc_max_d(double x, double y) { return x < y ? y : x; }
double cc_min_d(double x, double y) { return y < x ? y : x; }
double cc_clamp_of_d(double x, double low, double high) { return cc_min_d(cc_max_d(x, low), high); }
double cc_degrees_d(double x) { return x * 57.295779513082320877; }
double cc_radians_d(double x) { return x * 0.017453292519943295769; }
double cc_sign_d(double x) { return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x == 0.0 ? x : 0.0; }
double cc_step_of_d(double e, double x) { return x < e ? 0.0 : 1.0; }
double cc_mix_d(double x, double y, double a) { return x + (y - x) * a; }
double cc_smoothstep_d(double low, double high, double x) {
  const double t = cc_clamp_of_d(cc_div_d(x - low, high - low), 0.0, 1.0);
  return t * t * (3.0 - 2.0 * t);
}
// The scale that keeps squares of a vector's lanes in range, from the largest of the lanes, and what a lane of the
// normalized vector is. n is the length times the scale k. Small lanes keep their precision if k comes last.
double cc_scale_d(double most) { return most > 0x1p500 ? 0x1p-520 : most < 0x1p-450 ? 0x1p520 : 1.0; }
double cc_normal_d(double x, double n, double k) {
  return n == 0.0 ? x : k > 1.0 ? cc_div_d(x * k, n) : cc_div_d(x, n) * k;
}
double cc_unscale_d(double k) { return k == 1.0 ? 1.0 : k < 1.0 ? 0x1p520 : 0x1p-520; }
double cc_unit_d(double x) { return x != x ? x : copysign(fabs(x) == cc_inf_d() ? 1.0 : 0.0, x); }
