// core.cl: what the other functions are built on: fma, quotient and root that are rounded once on every device,
// results packed from integers, sums and products in two parts. All of the text is portable OpenCL C of scalars.
// cc_fact(n) is the device's fact n (see the package's documentation); cc_raw_... are the device's own
// instructions, of unknown accuracy unless a fact says so.

float cc_of_f(uint u) { return as_float(u); }
double cc_of_d(ulong u) { return as_double(u); }
float cc_inf_f(void) { return as_float(0x7f800000u); }
float cc_nan_f(void) { return as_float(0x7fc00000u); }
double cc_inf_d(void) { return as_double(0x7ff0000000000000ul); }
double cc_nan_d(void) { return as_double(0x7ff8000000000000ul); }

struct cc_two_f { float value; float other; };
struct cc_two_d { double value; double other; };
struct cc_float_int { float value; int other; };
struct cc_double_int { double value; int other; };

// A magnitude as mant * 2^exp, where mant has its highest bit set, or is 0.
struct cc_parts_f { uint mant; int exp; };
struct cc_parts_d { ulong mant; int exp; };

// The parts of a finite float: 32 bits.
struct cc_parts_f cc_parts_of_f(float x) {
  struct cc_parts_f r;
  const uint u = as_uint(x) & 0x7fffffffu, e = u >> 23;
  const uint m = e != 0u ? (u << 8) | 0x80000000u : u << 8;
  const int n = clz(m) & 31;
  r.mant = m << n;
  r.exp = (int)(e != 0u ? e : 1u) - 158 - n;
  return r;
}
struct cc_parts_d cc_parts_of_d(double x) {
  struct cc_parts_d r;
  const ulong u = as_ulong(x) & 0x7ffffffffffffffful, e = u >> 52;
  const ulong m = e != 0ul ? (u << 11) | 0x8000000000000000ul : u << 11;
  const int n = (int)clz(m) & 63;
  r.mant = m << n;
  r.exp = (int)(e != 0ul ? e : 1ul) - 1086 - n;
  return r;
}
// mant * 2^exp, rounded to nearest even once, also where the result is denormal; mant has its highest bit set, and
// its lowest one stands for all that follow. sign has the sign's bit.
float cc_pack_f(uint sign, uint mant, int exp) {
  const int biased = exp + 158, below = biased < 1 ? 1 - biased : 0;
  const uint more = (uint)(below > 31 ? 31 : below);
  const uint lost = more == 0u ? 0u : mant << (32u - more);
  const uint m = (mant >> more) | (lost != 0u ? 1u : 0u);
  const uint rest = m << 24, keep = m >> 8;
  const uint up = rest > 0x80000000u || (rest == 0x80000000u && (keep & 1u) != 0u) ? 1u : 0u;
  const uint head = biased < 1 ? 0u : (uint)(biased > 254 ? 254 : biased - 1) << 23;
  const uint bits = biased > 254 ? 0x7f800000u : head + keep + up;
  return as_float(sign | bits);
}
double cc_pack_d(ulong sign, ulong mant, int exp) {
  const int biased = exp + 1086, below = biased < 1 ? 1 - biased : 0;
  const uint more = (uint)(below > 63 ? 63 : below);
  const ulong lost = more == 0u ? 0ul : mant << (64u - more);
  const ulong m = (mant >> more) | (lost != 0ul ? 1ul : 0ul);
  const ulong rest = m << 53, keep = m >> 11, half_way = 0x8000000000000000ul;
  const ulong up = rest > half_way || (rest == half_way && (keep & 1ul) != 0ul) ? 1ul : 0ul;
  const ulong head = biased < 1 ? 0ul : (ulong)(biased > 2046 ? 2046 : biased - 1) << 52;
  const ulong bits = biased > 2046 ? 0x7ff0000000000000ul : head + keep + up;
  return as_double(sign | bits);
}

// The product's error x * y - p, exactly where nothing underflows. Halves of 12 and of 26 bits have exact products.
float cc_error_f(float x, float y, float p) {
  if (cc_fact(0))
    return cc_raw_fma_f(x, y, -p);
  const float a = as_float(as_uint(x) & 0xfffff000u), b = as_float(as_uint(y) & 0xfffff000u), c = x - a, d = y - b;
  return ((a * b - p) + a * d + c * b) + c * d;
}
double cc_error_d(double x, double y, double p) {
  if (cc_fact(3))
    return cc_raw_fma_d(x, y, -p);
  const double a = as_double(as_ulong(x) & 0xfffffffff8000000ul), b = as_double(as_ulong(y) & 0xfffffffff8000000ul);
  const double c = x - a, d = y - b, e = as_double(as_ulong(d) & 0xfffffffff8000000ul), f = d - e;
  return ((a * b - p) + a * d + c * b) + c * e + c * f;
}
struct cc_two_f cc_pair_f(float a, float b) { // of a sum, where b is the smaller one
  struct cc_two_f r;
  r.value = a + b;
  r.other = b - (r.value - a);
  return r;
}
struct cc_two_d cc_pair_d(double a, double b) {
  struct cc_two_d r;
  r.value = a + b;
  r.other = b - (r.value - a);
  return r;
}
struct cc_two_f cc_sum_f(float a, float b) {
  struct cc_two_f r;
  const float s = a + b, t = s - a;
  r.value = s;
  r.other = (a - (s - t)) + (b - t);
  return r;
}
struct cc_two_d cc_sum_d(double a, double b) {
  struct cc_two_d r;
  const double s = a + b, t = s - a;
  r.value = s;
  r.other = (a - (s - t)) + (b - t);
  return r;
}
// (a + b) * (c + d), of numbers in two parts.
struct cc_two_f cc_times_f(float a, float b, float c, float d) {
  const float p = a * c;
  return cc_pair_f(p, cc_error_f(a, c, p) + (a * d + b * c));
}
struct cc_two_d cc_times_d(double a, double b, double c, double d) {
  const double p = a * c;
  return cc_pair_d(p, cc_error_d(a, c, p) + (a * d + b * c));
}

// fma by integers: the product has 48 bits, and is aligned with z in 64.
float cc_fma_f(float x, float y, float z) {
  if (cc_fact(0))
    return cc_raw_fma_f(x, y, z);
  const float p = x * y;
  const uint ex = as_uint(x) & 0x7f800000u, ey = as_uint(y) & 0x7f800000u, ez = as_uint(z) & 0x7f800000u;
  if (ex == 0x7f800000u || ey == 0x7f800000u)
    return p + z;
  if (ez == 0x7f800000u)
    return z;
  const struct cc_parts_f a = cc_parts_of_f(x), b = cc_parts_of_f(y), c = cc_parts_of_f(z);
  if (a.mant == 0u || b.mant == 0u)
    return p + z;
  const uint sp = (as_uint(x) ^ as_uint(y)) & 0x80000000u, sz = as_uint(z) & 0x80000000u;
  // Both have two bits above them: the sum one, and a comparison of exponents one.
  ulong u = ((ulong)(a.mant >> 8) * (ulong)(b.mant >> 8)) << 14, v = (ulong)c.mant << 30;
  const int eu = a.exp + b.exp + 2, ev = c.mant == 0u ? eu - 200 : c.exp - 30, d = eu - ev;
  const int down = d < 0 ? -d : d;
  const uint n = (uint)(down > 63 ? 63 : down);
  const ulong low = d < 0 ? u : v, moved = (low >> n) | ((low >> n) << n != low ? 1ul : 0ul);
  u = d < 0 ? moved : u;
  v = d < 0 ? v : moved;
  const int e = d < 0 ? ev : eu;
  const bool less = u < v, same = sp == sz;
  ulong s = same ? u + v : less ? v - u : u - v;
  if (s == 0ul)
    return 0.0f;
  const uint sign = !same && less ? sz : sp;
  const int k = (int)clz(s);
  s = s << k;
  return cc_pack_f(sign, (uint)(s >> 32) | ((uint)s != 0u ? 1u : 0u), e - k + 32);
}
ulong cc_mul_hi_ul(ulong x, ulong y) {
  const ulong a = x >> 32, b = x & 0xfffffffful, c = y >> 32, d = y & 0xfffffffful;
  const ulong ad = a * d, bc = b * c, mid = ((b * d) >> 32) + (ad & 0xfffffffful) + (bc & 0xfffffffful);
  return a * c + (ad >> 32) + (bc >> 32) + (mid >> 32);
}
// The same in 128 bits: the mantissas are the upper halves, less two bits.
double cc_fma_d(double x, double y, double z) {
  if (cc_fact(3))
    return cc_raw_fma_d(x, y, z);
  const ulong inf = 0x7ff0000000000000ul, top = 0x8000000000000000ul;
  const double p = x * y;
  if ((as_ulong(x) & inf) == inf || (as_ulong(y) & inf) == inf)
    return p + z;
  if ((as_ulong(z) & inf) == inf)
    return z;
  const struct cc_parts_d a = cc_parts_of_d(x), b = cc_parts_of_d(y), c = cc_parts_of_d(z);
  if (a.mant == 0ul || b.mant == 0ul)
    return p + z;
  const ulong sp = (as_ulong(x) ^ as_ulong(y)) & top, sz = as_ulong(z) & top;
  const ulong hi = cc_mul_hi_ul(a.mant, b.mant), lo = a.mant * b.mant;
  ulong uh = hi >> 2, ul = (lo >> 2) | (hi << 62), vh = c.mant >> 2, vl = c.mant << 62;
  const int eu = a.exp + b.exp + 2, ev = c.mant == 0ul ? eu - 200 : c.exp - 62, d = eu - ev;
  const int down = d < 0 ? -d : d;
  const uint n = (uint)(down > 127 ? 127 : down), k = n & 63u;
  const ulong lh = d < 0 ? uh : vh, ll = d < 0 ? ul : vl;
  const ulong near = k == 0u ? ll : (ll >> k) | (lh << (64u - k)), cut = k == 0u ? 0ul : ll << (64u - k);
  const ulong over = k == 0u ? 0ul : lh << (64u - k);
  const ulong mh = n < 64u ? lh >> k : 0ul;
  const ulong ml = n < 64u ? near | (cut != 0ul ? 1ul : 0ul) : (lh >> k) | ((over | ll) != 0ul ? 1ul : 0ul);
  uh = d < 0 ? mh : uh;
  ul = d < 0 ? ml : ul;
  vh = d < 0 ? vh : mh;
  vl = d < 0 ? vl : ml;
  const bool less = uh < vh || (uh == vh && ul < vl), same = sp == sz;
  const ulong bh = less ? vh : uh, bl = less ? vl : ul, th = less ? uh : vh, tl = less ? ul : vl;
  const ulong sl = same ? bl + tl : bl - tl;
  const ulong sh = same ? bh + th + (sl < bl ? 1ul : 0ul) : bh - th - (bl < tl ? 1ul : 0ul);
  if ((sh | sl) == 0ul)
    return 0.0;
  const int far = sh == 0ul ? 64 : 0;
  const ulong h = sh == 0ul ? sl : sh, l = sh == 0ul ? 0ul : sl;
  const uint q = (uint)clz(h);
  const ulong m = q == 0u ? h : (h << q) | (l >> (64u - q));
  return cc_pack_d(!same && less ? sz : sp, m | (l << q != 0ul ? 1ul : 0ul), (d < 0 ? ev : eu) + 64 - far - (int)q);
}

// The quotient: the device's own is corrected by the remainder, which integers of 32 bits have exactly. q has 26
// bits, of which 24 are rounded to.
float cc_div_f(float x, float y) {
  if (cc_fact(1))
    return cc_raw_div_f(x, y);
  const uint sign = (as_uint(x) ^ as_uint(y)) & 0x80000000u;
  const uint ux = as_uint(x) & 0x7fffffffu, uy = as_uint(y) & 0x7fffffffu;
  if (ux > 0x7f800000u || uy > 0x7f800000u)
    return x + y;
  if (ux == 0x7f800000u || uy == 0u)
    return uy == 0x7f800000u || ux == 0u ? cc_nan_f() : as_float(sign | 0x7f800000u);
  if (uy == 0x7f800000u || ux == 0u)
    return as_float(sign);
  const struct cc_parts_f a = cc_parts_of_f(x), b = cc_parts_of_f(y);
  const uint low = a.mant < b.mant ? 1u : 0u, n = (a.mant >> 8) << low, m = b.mant >> 8;
  const float fm = (float)m;
  uint q = (uint)(cc_raw_div_f((float)n, fm) * 0x1p25f);
  int r = (int)((n << 25) - q * m);
  const int k = (int)floor(cc_raw_div_f((float)r, fm));
  q += (uint)k;
  r -= k * (int)m;
  q = r < 0 ? q - 1u : r >= (int)m ? q + 1u : q;
  r = r < 0 ? r + (int)m : r >= (int)m ? r - (int)m : r;
  return cc_pack_f(sign, (q << 6) | (r != 0 ? 1u : 0u), a.exp - b.exp - (int)low - 31);
}
// Two steps of Newton's method before, since a double's quotient may be as good as a float's and no better.
double cc_div_d(double x, double y) {
  if (cc_fact(4))
    return cc_raw_div_d(x, y);
  const ulong inf = 0x7ff0000000000000ul, sign = (as_ulong(x) ^ as_ulong(y)) & 0x8000000000000000ul;
  const ulong ux = as_ulong(x) & 0x7ffffffffffffffful, uy = as_ulong(y) & 0x7ffffffffffffffful;
  if (ux > inf || uy > inf)
    return x + y;
  if (ux == inf || uy == 0ul)
    return uy == inf || ux == 0ul ? cc_nan_d() : as_double(sign | inf);
  if (uy == inf || ux == 0ul)
    return as_double(sign);
  const struct cc_parts_d a = cc_parts_of_d(x), b = cc_parts_of_d(y);
  const ulong low = a.mant < b.mant ? 1ul : 0ul, n = (a.mant >> 11) << low, m = b.mant >> 11;
  const double fn = (double)n, fm = (double)m;
  double f = cc_raw_div_d(fn, fm);
  for (int i = 0; i < 2; i++) {
    const double p = f * fm;
    f += cc_raw_div_d((fn - p) - cc_error_d(f, fm, p), fm);
  }
  ulong q = (ulong)(f * 0x1p54);
  long r = (long)((n << 54) - q * m);
  const long k = (long)floor(cc_raw_div_d((double)r, fm));
  q += (ulong)k;
  r -= k * (long)m;
  q = r < 0l ? q - 1ul : r >= (long)m ? q + 1ul : q;
  r = r < 0l ? r + (long)m : r >= (long)m ? r - (long)m : r;
  return cc_pack_d(sign, (q << 9) | (r != 0l ? 1ul : 0ul), a.exp - b.exp - (int)low - 63);
}

// The square root, likewise: q has one bit more than the result, and q^2 + r is the argument.
float cc_sqrt_f(float x) {
  if (cc_fact(2))
    return cc_raw_sqrt_f(x);
  const uint u = as_uint(x);
  if (u - 1u >= 0x7f7fffffu) // no positive number
    return u == 0u || (u >= 0x7f800000u && u <= 0x80000000u) ? x : x + cc_nan_f();
  const struct cc_parts_f a = cc_parts_of_f(x);
  const uint odd = (uint)(a.exp + 8 + 25) & 1u, m = a.mant >> 8; // x = m * 2^(exp + 8)
  uint q = (uint)cc_raw_sqrt_f((float)m * (odd != 0u ? 0x1p26f : 0x1p25f));
  q = q < 0x1000000u ? 0x1000000u : q;
  int r = (int)((m << (25u + odd)) - q * q);
  const int k = (int)floor(cc_raw_div_f((float)r, (float)(q << 1)));
  r -= k * (int)(2u * q + (uint)k);
  q += (uint)k;
  for (int i = 0; i < 2; i++) {
    const bool under = r < 0, above = r > (int)(2u * q);
    r = under ? r + (int)(2u * q - 1u) : above ? r - (int)(2u * q + 1u) : r;
    q = under ? q - 1u : above ? q + 1u : q;
  }
  return cc_pack_f(0u, (q << 7) | (r != 0 ? 1u : 0u), (a.exp + 8 - 25 - (int)odd) / 2 - 7);
}
double cc_sqrt_d(double x) {
  if (cc_fact(5))
    return cc_raw_sqrt_d(x);
  const ulong u = as_ulong(x);
  if (u - 1ul >= 0x7feffffffffffffful)
    return u == 0ul || (u >= 0x7ff0000000000000ul && u <= 0x8000000000000000ul) ? x : x + cc_nan_d();
  const struct cc_parts_d a = cc_parts_of_d(x);
  const uint odd = (uint)(a.exp + 11 + 54) & 1u;
  const ulong m = a.mant >> 11;
  const double v = (double)m * (odd != 0u ? 0x1p55 : 0x1p54);
  double f = cc_raw_sqrt_d(v);
  for (int i = 0; i < 2; i++) {
    const double p = f * f;
    f += cc_raw_div_d((v - p) - cc_error_d(f, f, p), 2.0 * f);
  }
  ulong q = (ulong)f;
  long r = (long)((m << (54u + odd)) - q * q);
  const long k = (long)floor(cc_raw_div_d((double)r, (double)(q << 1)));
  r -= k * (long)(2ul * q + (ulong)k);
  q += (ulong)k;
  for (int i = 0; i < 2; i++) {
    const bool under = r < 0l, above = r > (long)(2ul * q);
    r = under ? r + (long)(2ul * q - 1ul) : above ? r - (long)(2ul * q + 1ul) : r;
    q = under ? q - 1ul : above ? q + 1ul : q;
  }
  return cc_pack_d(0ul, (q << 10) | (r != 0l ? 1ul : 0ul), (a.exp + 11 - 54 - (int)odd) / 2 - 10);
}
