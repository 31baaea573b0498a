// convert.cl: conversions with a rounding mode, which is 1 to nearest, 2 towards zero, 3 up or 4 down. Halves are their
// bits.

float cc_step_f(float x, int up) {
  int b = as_int(x);
  if ((b & 0x7fffffff) == 0)
    return as_float(up != 0 ? 1 : (int)0x80000001u);
  return as_float((b >= 0) == (up != 0) ? b + 1 : b - 1);
}

double cc_step_d(double x, int up) {
  long b = as_long(x);
  if ((b & 0x7fffffffffffffffl) == 0l)
    return as_double(up != 0 ? 1l : (long)0x8000000000000001ul);
  return as_double((b >= 0l) == (up != 0) ? b + 1l : b - 1l);
}

float cc_directed_f(float r, int cmp, int negative, int mode) {
  if (mode == 2 && cmp != 0 && (cmp > 0) == (negative == 0))
    return cc_step_f(r, negative);
  if (mode == 3 && cmp < 0)
    return cc_step_f(r, 1);
  if (mode == 4 && cmp > 0)
    return cc_step_f(r, 0);
  return r;
}

double cc_directed_d(double r, int cmp, int negative, int mode) {
  if (mode == 2 && cmp != 0 && (cmp > 0) == (negative == 0))
    return cc_step_d(r, negative);
  if (mode == 3 && cmp < 0)
    return cc_step_d(r, 1);
  if (mode == 4 && cmp > 0)
    return cc_step_d(r, 0);
  return r;
}

float cc_long_to_float(long x, int mode) {
  const float r = (float)x;
  const long back = r < 0x1p63f ? (long)r : 0l;
  const int cmp = r >= 0x1p63f || back > x ? 1 : back < x ? -1 : 0;
  return cc_directed_f(r, cmp, x < 0l, mode);
}

float cc_ulong_to_float(ulong x, int mode) {
  const float r = (float)x;
  const ulong back = r < 0x1p64f ? (ulong)r : 0ul;
  const int cmp = r >= 0x1p64f || back > x ? 1 : back < x ? -1 : 0;
  return cc_directed_f(r, cmp, 0, mode);
}

double cc_long_to_double(long x, int mode) {
  const double r = (double)x;
  const long back = r < 0x1p63 ? (long)r : 0l;
  const int cmp = r >= 0x1p63 || back > x ? 1 : back < x ? -1 : 0;
  return cc_directed_d(r, cmp, x < 0l, mode);
}

double cc_ulong_to_double(ulong x, int mode) {
  const double r = (double)x;
  const ulong back = r < 0x1p64 ? (ulong)r : 0ul;
  const int cmp = r >= 0x1p64 || back > x ? 1 : back < x ? -1 : 0;
  return cc_directed_d(r, cmp, 0, mode);
}

float cc_double_to_float(double x, int mode) {
  const float r = (float)x;
  const double back = (double)r;
  return cc_directed_f(r, back > x ? 1 : back < x ? -1 : 0, x < 0.0, mode);
}

ushort cc_float_to_half(float x, int mode) {
  const uint u = as_uint(x), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
  if (a > 0x7f800000u)
    return (ushort)(sign | 0x7e00u | ((a >> 13) & 0x3ffu));
  if (a == 0x7f800000u)
    return (ushort)(sign | 0x7c00u);
  if (a >= 0x47800000u) // 65536
    return (ushort)(sign | (mode == 2 || mode == 3 && sign != 0u || mode == 4 && sign == 0u ? 0x7bffu : 0x7c00u));
  uint h, rest;
  if (a < 0x38800000u) { // in units of the least half
    const uint m = a < 0x00800000u ? a : (a & 0x7fffffu) | 0x800000u, e = a >> 23;
    const uint s = e < 95u ? 31u : 126u - e;
    h = s > 24u ? 0u : m >> s;
    rest = s > 24u ? (uint)(a != 0u) : m << (32u - s);
  } else {
    h = (a - 0x38000000u) >> 13;
    rest = a << 19;
  }
  bool up = rest > 0x80000000u || rest == 0x80000000u && (h & 1u) != 0u;
  if (mode > 1)
    up = rest != 0u && (mode == 3 && sign == 0u || mode == 4 && sign != 0u);
  return (ushort)(sign | (h + (up ? 1u : 0u)));
}

// What is between two floats becomes the one whose last bit is set, from which rounding again is exact.
ushort cc_double_to_half(double x, int mode) {
  float r = (float)x;
  const double back = (double)r;
  if (back != x && x == x) {
    uint b = as_uint(r);
    b = fabs(back) > fabs(x) ? b - 1u : b;
    r = as_float(b | 1u | (x < 0.0 ? 0x80000000u : 0u));
  }
  return cc_float_to_half(r, mode);
}
