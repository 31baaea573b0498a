// convert.cl: conversions with a rounding mode, which is 1 to nearest, 2 towards zero, 3 up or 4 down. Halves are their
// bits.

// All is computed with integers, since drivers believe that an integer converted to a float and back is the same.

// 1 if a magnitude is rounded up whose lost bits are rest, from the highest on.
uint cc_rounds_up(ulong rest, uint odd, uint sign, int mode) {
  const ulong tie = 0x8000000000000000ul;
  if (mode == 1)
    return rest > tie || rest == tie && odd != 0u ? 1u : 0u;
  return rest != 0ul && (mode == 3 && sign == 0u || mode == 4 && sign != 0u) ? 1u : 0u;
}

// 1 if a magnitude that is too large becomes the largest number and not infinite.
uint cc_stays_finite(uint sign, int mode) {
  return mode == 2 || mode == 3 && sign != 0u || mode == 4 && sign == 0u ? 1u : 0u;
}

float cc_sized_float(ulong a, uint sign, int mode) {
  if (a == 0ul)
    return 0.0f;
  const int n = (int)clz(a);
  const ulong m = a << n;
  const uint keep = (uint)(m >> 40);
  return as_float(sign | ((uint)(63 - n + 126) << 23) + keep + cc_rounds_up(m << 24, keep & 1u, sign, mode));
}

double cc_sized_double(ulong a, uint sign, int mode) {
  if (a == 0ul)
    return 0.0;
  const int n = (int)clz(a);
  const ulong m = a << n, keep = m >> 11;
  const ulong up = cc_rounds_up(m << 53, (uint)keep & 1u, sign, mode);
  return as_double((ulong)sign << 32 | ((ulong)(63 - n + 1022) << 52) + keep + up);
}

float cc_long_to_float(long x, int mode) {
  return cc_sized_float(x < 0l ? 0ul - (ulong)x : (ulong)x, x < 0l ? 0x80000000u : 0u, mode);
}
float cc_ulong_to_float(ulong x, int mode) { return cc_sized_float(x, 0u, mode); }
double cc_long_to_double(long x, int mode) {
  return cc_sized_double(x < 0l ? 0ul - (ulong)x : (ulong)x, x < 0l ? 0x80000000u : 0u, mode);
}
double cc_ulong_to_double(ulong x, int mode) { return cc_sized_double(x, 0u, mode); }

// The fraction of a finite double, from the highest bit on, shifted right by n; the last bit stands for those that are lost.
ulong cc_shifted_fraction(ulong a, int n) {
  const ulong m = (a & 0xffffffffffffful | (a >> 52 != 0ul ? 0x10000000000000ul : 0ul)) << 11;
  const int s = n > 63 ? 63 : n;
  return s <= 0 ? m : m >> s | (m << (64 - s) != 0ul ? 1ul : 0ul);
}

float cc_double_to_float(double x, int mode) {
  const ulong u = as_ulong(x), a = u & 0x7ffffffffffffffful;
  const uint sign = (uint)(u >> 32) & 0x80000000u;
  const int e = (int)(a >> 52) - 1023;
  if (a > 0x7ff0000000000000ul)
    return as_float(sign | 0x7fc00000u | (uint)(a >> 29) & 0x3fffffu);
  if (e > 127)
    return as_float(sign | 0x7f800000u - (e < 1024 ? cc_stays_finite(sign, mode) : 0u));
  const ulong t = cc_shifted_fraction(a, -126 - e);
  const uint keep = (uint)(t >> 40);
  return as_float(sign | (e < -126 ? 0u : (uint)(e + 126) << 23) + keep + cc_rounds_up(t << 24, keep & 1u, sign, mode));
}

ushort cc_double_to_half(double x, int mode) {
  const ulong u = as_ulong(x), a = u & 0x7ffffffffffffffful;
  const uint sign = (uint)(u >> 48) & 0x8000u;
  const int e = (int)(a >> 52) - 1023;
  if (a > 0x7ff0000000000000ul)
    return (ushort)(sign | 0x7e00u | (uint)(a >> 42) & 0x1ffu);
  if (e > 15)
    return (ushort)(sign | 0x7c00u - (e < 1024 ? cc_stays_finite(sign, mode) : 0u));
  const ulong t = cc_shifted_fraction(a, -14 - e);
  const uint keep = (uint)(t >> 53);
  return (ushort)(sign | (e < -14 ? 0u : (uint)(e + 14) << 10) + keep + cc_rounds_up(t << 11, keep & 1u, sign, mode));
}

ushort cc_float_to_half(float x, int mode) {
  const uint u = as_uint(x), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
  if (a > 0x7f800000u)
    return (ushort)(sign | 0x7e00u | ((a >> 13) & 0x3ffu));
  if (a == 0x7f800000u)
    return (ushort)(sign | 0x7c00u);
  if (a >= 0x47800000u) // 65536
    return (ushort)(sign | 0x7c00u - cc_stays_finite(sign, mode));
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
  return (ushort)(sign | h + cc_rounds_up((ulong)rest << 32, h & 1u, sign, mode));
}
