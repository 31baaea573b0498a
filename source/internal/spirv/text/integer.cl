// integer.cl: integers of 64 bits where that needs more bits, and halves.

long cc_mul_hi_l(long x, long y) {
  const ulong h = cc_mul_hi_ul((ulong)x, (ulong)y);
  return (long)(h - (x < 0l ? (ulong)y : 0ul) - (y < 0l ? (ulong)x : 0ul));
}
ulong cc_add_sat_ul(ulong x, ulong y) {
  const ulong s = x + y;
  return s < x ? 0xfffffffffffffffful : s;
}
ulong cc_sub_sat_ul(ulong x, ulong y) { return x < y ? 0ul : x - y; }
long cc_limit_l(long x) { return x < 0l ? (long)0x8000000000000000ul : 0x7fffffffffffffffl; }
long cc_add_sat_l(long x, long y) {
  const long s = (long)((ulong)x + (ulong)y);
  return ((x ^ s) & (y ^ s)) < 0l ? cc_limit_l(x) : s;
}
long cc_sub_sat_l(long x, long y) {
  const long d = (long)((ulong)x - (ulong)y);
  return ((x ^ y) & (x ^ d)) < 0l ? cc_limit_l(x) : d;
}
ulong cc_mad_sat_ul(ulong x, ulong y, ulong z) {
  return cc_mul_hi_ul(x, y) != 0ul ? 0xfffffffffffffffful : cc_add_sat_ul(x * y, z);
}
long cc_mad_sat_l(long x, long y, long z) {
  const ulong low = (ulong)x * (ulong)y, sum = low + (ulong)z;
  const long high = cc_mul_hi_l(x, y) + (z < 0l ? -1l : 0l) + (sum < low ? 1l : 0l); // the sum has 128 bits
  return high == ((long)sum < 0l ? -1l : 0l) ? (long)sum : cc_limit_l(high);
}
// A float holds the product of two halves exactly, but not always the sum. The rounding error e of the sum is folded
// into the float's last bit (round to odd), so that the second rounding is correct.
float cc_fma_h(float x, float y, float z) {
  const float p = x * y, s = p + z, b = s - p, e = (p - (s - b)) + (z - b);
  const uint u = as_uint(s);
  const bool odd = (u & 1u) != 0u || !(e > 0.0f || e < 0.0f);
  return as_float(odd ? u : (e > 0.0f) == (s > 0.0f) ? u + 1u : u - 1u);
}
ushort cc_nextafter_h(ushort x, ushort y) { // of the bits of halves
  const int a = (int)x & 0x7fff, b = (int)y & 0x7fff;
  if (a > 0x7c00 || b > 0x7c00)
    return (ushort)0x7e00;
  const int u = (x & 0x8000) != 0 ? -a : a, v = (y & 0x8000) != 0 ? -b : b; // in the order of the numbers
  if (u == v)
    return y;
  const int w = u < v ? u + 1 : u - 1;
  return (ushort)(w < 0 ? 0x8000 | -w : w == 0 ? (int)x & 0x8000 : w);
}
