// metal_integer.h: for Metal, the integer and relational functions, select, shuffle, vectors in memory
// and atomics.

// The scalar form of each takes any integer type; vectors go lane by lane.
#define CC_LANE1(f) CC_T CC_FN CC_V cc_##f(CC_V x) { CC_V r; CC_LANES(cc_##f(x.v[i])); }
#define CC_LANE2(f) CC_T CC_FN CC_V cc_##f(CC_V x, CC_V y) { CC_V r; CC_LANES(cc_##f(x.v[i], y.v[i])); }
#define CC_LANE3(f) CC_T CC_FN CC_V cc_##f(CC_V x, CC_V y, CC_V z) { CC_V r; CC_LANES(cc_##f(x.v[i], y.v[i], z.v[i])); }
#define CC_I template <class T> CC_FN

CC_I cc_unsig<T> cc_abs(T x) { return x < T(0) ? cc_unsig<T>(-cc_unsig<T>(x)) : cc_unsig<T>(x); }
CC_T CC_FN cc_vec<cc_unsig<T>, N> cc_abs(CC_V x) { cc_vec<cc_unsig<T>, N> r; CC_LANES(cc_abs(x.v[i])); }
CC_I cc_unsig<T> cc_abs_diff(T x, T y) {
  return x > y ? cc_unsig<T>(cc_unsig<T>(x) - cc_unsig<T>(y)) : cc_unsig<T>(cc_unsig<T>(y) - cc_unsig<T>(x));
}
CC_T CC_FN cc_vec<cc_unsig<T>, N> cc_abs_diff(CC_V x, CC_V y) {
  cc_vec<cc_unsig<T>, N> r;
  CC_LANES(cc_abs_diff(x.v[i], y.v[i]));
}

// Sums wrap in the unsigned type; if the signs show an overflow, the result saturates.
CC_I T cc_add_sat(T x, T y) {
  T s = T(cc_unsig<T>(x) + cc_unsig<T>(y));
  if (!cc_is<T>::sign)
    return s < x ? cc_int_max<T>() : s;
  if (T((x ^ s) & (y ^ s)) < T(0))
    return x < T(0) ? cc_int_min<T>() : cc_int_max<T>();
  return s;
}
CC_I T cc_sub_sat(T x, T y) {
  T d = T(cc_unsig<T>(x) - cc_unsig<T>(y));
  if (!cc_is<T>::sign)
    return x < y ? T(0) : d;
  if (T((x ^ y) & (x ^ d)) < T(0))
    return x < T(0) ? cc_int_min<T>() : cc_int_max<T>();
  return d;
}
CC_I T cc_hadd(T x, T y) { return T((x & y) + ((x ^ y) >> 1)); }
CC_I T cc_rhadd(T x, T y) { return T((x | y) - ((x ^ y) >> 1)); }
CC_I T cc_rotate(T x, T n) {
  const cc_uint w = sizeof(T) * 8, k = cc_uint(n) & (w - 1);
  cc_unsig<T> u = cc_unsig<T>(x);
  return T(cc_unsig<T>(u << k) | cc_unsig<T>(u >> ((w - k) & (w - 1))));
}
// For 0 Metal's clz returns the number of bits, as OpenCL's does.
CC_I T cc_clz(T x) { return T(metal::clz(cc_unsig<T>(x))); }
CC_I T cc_popcount(T x) { return T(metal::popcount(cc_unsig<T>(x))); }

CC_FN cc_ulong cc_mul_hi(cc_ulong x, cc_ulong y) {
  cc_ulong a = x >> 32, b = x & 0xffffffffu, c = y >> 32, d = y & 0xffffffffu;
  cc_ulong ad = a * d, bc = b * c, mid = (b * d >> 32) + (ad & 0xffffffffu) + (bc & 0xffffffffu);
  return a * c + (ad >> 32) + (bc >> 32) + (mid >> 32);
}
CC_FN cc_long cc_mul_hi(cc_long x, cc_long y) {
  cc_ulong h = cc_mul_hi(cc_ulong(x), cc_ulong(y));
  return cc_long(h - (x < 0 ? cc_ulong(y) : 0) - (y < 0 ? cc_ulong(x) : 0));
}
CC_FN cc_uint cc_mul_hi(cc_uint x, cc_uint y) { return metal::mulhi(x, y); }
CC_FN cc_int cc_mul_hi(cc_int x, cc_int y) { return metal::mulhi(x, y); }
CC_I T cc_mul_hi(T x, T y) { return T(cc_int(x) * cc_int(y) >> (sizeof(T) * 8)); }
CC_I T cc_mad_hi(T x, T y, T z) { return T(cc_unsig<T>(cc_mul_hi(x, y)) + cc_unsig<T>(z)); }

// For up to 32 bits the sum is exact in 64 bits; for 64 bits the high half of the product is
// computed.
CC_FN cc_ulong cc_mad_sat(cc_ulong x, cc_ulong y, cc_ulong z) {
  if (cc_mul_hi(x, y) != 0)
    return ~cc_ulong(0);
  return cc_add_sat(cc_ulong(x * y), z);
}
CC_FN cc_long cc_mad_sat(cc_long x, cc_long y, cc_long z) {
  cc_long hi = cc_mul_hi(x, y);
  cc_ulong lo = cc_ulong(x) * cc_ulong(y), sum = lo + cc_ulong(z);
  hi += (z < 0 ? -1 : 0) + (sum < lo ? 1 : 0); // the 128-bit sum is hi:sum
  if (hi == (cc_long(sum) < 0 ? -1 : 0))
    return cc_long(sum);
  return hi < 0 ? cc_int_min<cc_long>() : cc_int_max<cc_long>();
}
CC_FN cc_uint cc_mad_sat(cc_uint x, cc_uint y, cc_uint z) {
  cc_ulong w = cc_ulong(x) * y + z;
  return w > 0xffffffffu ? 0xffffffffu : cc_uint(w);
}
CC_I T cc_mad_sat(T x, T y, T z) {
  return cc_convert_lane<T, CC_SAT, CC_RT_DEFAULT>(cc_long(cc_long(x) * cc_long(y) + cc_long(z)));
}
CC_I T cc_mul24(T x, T y) { return T(cc_uint(x) * cc_uint(y)); }
CC_I T cc_mad24(T x, T y, T z) { return T(cc_uint(x) * cc_uint(y) + cc_uint(z)); }
CC_LANE2(add_sat) CC_LANE2(sub_sat) CC_LANE2(hadd) CC_LANE2(rhadd) CC_LANE2(rotate) CC_LANE1(clz)
CC_LANE1(popcount) CC_LANE2(mul_hi) CC_LANE3(mad_hi) CC_LANE3(mad_sat) CC_LANE2(mul24)
CC_LANE3(mad24)

#define CC_UP(W, H, L) \
  CC_FN W cc_upsample(H h, L l) { return W(cc_unsig<W>(cc_unsig<W>(cc_unsig<H>(h)) << (sizeof(H) * 8)) | l); } \
  template <int N> CC_FN cc_vec<W, N> cc_upsample(cc_vec<H, N> h, cc_vec<L, N> l) { cc_vec<W, N> r; CC_LANES(cc_upsample(h.v[i], l.v[i])); }
CC_UP(cc_short, cc_char, cc_uchar) CC_UP(cc_ushort, cc_uchar, cc_uchar)
CC_UP(cc_int, cc_short, cc_ushort) CC_UP(cc_uint, cc_ushort, cc_ushort)
CC_UP(cc_long, cc_int, cc_uint) CC_UP(cc_ulong, cc_uint, cc_uint)
#undef CC_UP

// The smallest and the largest value of a type.
template <class T> struct cc_limit {
  static T least() { return cc_is<T>::fp ? T(-CC_INFINITY) : cc_int_min<T>(); }
  static T most() { return cc_is<T>::fp ? T(CC_INFINITY) : cc_int_max<T>(); }
};

// ---- relational: 0 and 1 for scalars, 0 and -1 in lanes ----

#define CC_REL2(f, expr) \
  template <class F> CC_FN cc_int cc_##f(F x, F y) { return (expr); } \
  CC_T CC_FN CC_B cc_##f(CC_V a, CC_V b) { CC_B r; CC_LANES(cc_sint<T>(-cc_##f(a.v[i], b.v[i]))); }
CC_REL2(isequal, x == y)
CC_REL2(isnotequal, x != y)
CC_REL2(isgreater, x > y)
CC_REL2(isgreaterequal, x >= y)
CC_REL2(isless, x < y)
CC_REL2(islessequal, x <= y)
CC_REL2(islessgreater, x < y || x > y)
CC_REL2(isordered, x == x && y == y)
CC_REL2(isunordered, !(x == x && y == y))
#undef CC_REL2

// Computed from the bits, so that fast-math options cannot remove the tests.
template <class F> struct cc_bits;
template <> struct cc_bits<cc_half> { enum : cc_ushort { exp = 0x7c00, abs = 0x7fff }; };
template <> struct cc_bits<float> { enum : cc_uint { exp = 0x7f800000, abs = 0x7fffffff }; };
#define CC_REL1(f, expr) \
  template <class F> CC_FN cc_int cc_##f(F x) { \
    const cc_unsig<F> all = cc_as_bits<cc_unsig<F>>(x), b = all & cc_bits<F>::abs, e = cc_bits<F>::exp; \
    (void)b, (void)e; \
    return (expr); \
  } \
  CC_T CC_FN CC_B cc_##f(CC_V a) { CC_B r; CC_LANES(cc_sint<T>(-cc_##f(a.v[i]))); }
CC_REL1(isfinite, b < e)
CC_REL1(isinf, b == e)
CC_REL1(isnan, b > e)
CC_REL1(isnormal, b < e && (b & e) != 0)
CC_REL1(signbit, b != all)
#undef CC_REL1

CC_I cc_int cc_any(T x) { return cc_sint<T>(x) < 0; }
CC_I cc_int cc_all(T x) { return cc_sint<T>(x) < 0; }
CC_T CC_FN cc_int cc_any(CC_V x) {
  T m = x.v[0];
  for (int i = 1; i < N; i++)
    m |= x.v[i];
  return cc_any(m);
}
CC_T CC_FN cc_int cc_all(CC_V x) {
  T m = x.v[0];
  for (int i = 1; i < N; i++)
    m &= x.v[i];
  return cc_all(m);
}
CC_I T cc_bitselect(T a, T b, T c) {
  typedef cc_unsig<T> U;
  U m = cc_as_bits<U>(c);
  return cc_as_bits<T>(U((cc_as_bits<U>(a) & ~m) | (cc_as_bits<U>(b) & m)));
}
CC_LANE3(bitselect)
template <class T, class C> CC_FN T cc_select(T a, T b, C c) { return c ? b : a; }
template <class T, int N, class C> CC_FN CC_V cc_select(CC_V a, CC_V b, cc_vec<C, N> c) {
  return cc_select_vec(c, b, a);
}

template <class T, int M, class U, int N> CC_FN cc_vec<T, N> cc_shuffle(cc_vec<T, M> a, cc_vec<U, N> m) {
  cc_vec<T, N> r;
  CC_LANES(a.v[m.v[i] & ((M == 3 ? 4 : M) - 1)]);
}
template <class T, int M, class U, int N>
CC_FN cc_vec<T, N> cc_shuffle2(cc_vec<T, M> a, cc_vec<T, M> b, cc_vec<U, N> m) {
  constexpr int W = M == 3 ? 4 : M;
  cc_vec<T, N> r;
  CC_LANES(m.v[i] & W ? b.v[m.v[i] & (W - 1)] : a.v[m.v[i] & (W - 1)]);
}

// ---- vectors in memory, aligned as their lanes are ----

// S is the distance in lanes: in the forms vloada and vstorea, three lanes take the space of four.
#define CC_LOADS(space) \
  template <int N, class T> CC_FN cc_vec<T, N> cc_vload_(cc_size k, const space T *p) { cc_vec<T, N> r; CC_LANES(p[k * N + i]); } \
  template <int N, int S> CC_FN cc_vec<float, N> cc_hload_(cc_size k, const space cc_half *p) { cc_vec<float, N> r; CC_LANES(float(p[k * S + i])); } \
  CC_FN float cc_vload_half(cc_size k, const space cc_half *p) { return float(p[k]); } \
  CC_FN float cc_vloada_half(cc_size k, const space cc_half *p) { return float(p[k]); } \
  CC_LOAD(2, 2, space) CC_LOAD(3, 4, space) CC_LOAD(4, 4, space) CC_LOAD(8, 8, space) CC_LOAD(16, 16, space)
#define CC_LOAD(n, s, space) \
  CC_I cc_vec<T, n> cc_vload##n(cc_size k, const space T *p) { return cc_vload_<n>(k, p); } \
  CC_FN cc_vec<float, n> cc_vload_half##n(cc_size k, const space cc_half *p) { return cc_hload_<n, n>(k, p); } \
  CC_FN cc_vec<float, n> cc_vloada_half##n(cc_size k, const space cc_half *p) { return cc_hload_<n, s>(k, p); }
#define CC_STORES(space) \
  CC_T CC_FN void cc_vstore_(CC_V x, cc_size k, space T *p) { \
    for (int i = 0; i < N; i++) \
      p[k * N + i] = x.v[i]; \
  } \
  template <int R, int S, class T, int N> CC_FN void cc_hstore_(CC_V x, cc_size k, space cc_half *p) { \
    for (int i = 0; i < N; i++) \
      p[k * S + i] = cc_convert_lane<cc_half, 0, R>(x.v[i]); \
  } \
  CC_STORE(2, 2, space) CC_STORE(3, 4, space) CC_STORE(4, 4, space) CC_STORE(8, 8, space) CC_STORE(16, 16, space) \
  CC_STORE_HALF(, CC_RT_DEFAULT, space) CC_STORE_HALF(_rte, CC_RTE, space) CC_STORE_HALF(_rtz, CC_RTZ, space) \
  CC_STORE_HALF(_rtp, CC_RTP, space) CC_STORE_HALF(_rtn, CC_RTN, space)
#define CC_STORE_HALF(mode, R, space) \
  CC_FN void cc_vstore_half##mode(float x, cc_size k, space cc_half *p) { p[k] = cc_convert_lane<cc_half, 0, R>(x); } \
  CC_FN void cc_vstorea_half##mode(float x, cc_size k, space cc_half *p) { p[k] = cc_convert_lane<cc_half, 0, R>(x); }
#define CC_STORE_HALFN(n, s, mode, R, space) \
  CC_FN void cc_vstore_half##n##mode(cc_vec<float, n> x, cc_size k, space cc_half *p) { cc_hstore_<R, n>(x, k, p); } \
  CC_FN void cc_vstorea_half##n##mode(cc_vec<float, n> x, cc_size k, space cc_half *p) { cc_hstore_<R, s>(x, k, p); }
#define CC_STORE(n, s, space) \
  CC_I void cc_vstore##n(cc_vec<T, n> x, cc_size k, space T *p) { cc_vstore_(x, k, p); } \
  CC_STORE_HALFN(n, s, , CC_RT_DEFAULT, space) CC_STORE_HALFN(n, s, _rte, CC_RTE, space) \
  CC_STORE_HALFN(n, s, _rtz, CC_RTZ, space) CC_STORE_HALFN(n, s, _rtp, CC_RTP, space) CC_STORE_HALFN(n, s, _rtn, CC_RTN, space)
CC_LOADS(thread) CC_LOADS(device) CC_LOADS(constant) CC_LOADS(threadgroup)
CC_STORES(thread) CC_STORES(device) CC_STORES(threadgroup)
#undef CC_LOADS
#undef CC_LOAD
#undef CC_STORES
#undef CC_STORE
#undef CC_STORE_HALF
#undef CC_STORE_HALFN

// ---- atomics of 32 bits, relaxed as OpenCL 1.2's are; each returns the old value ----

template <class T> struct cc_atomic_;
template <> struct cc_atomic_<cc_int> { typedef metal::atomic_int type; };
template <> struct cc_atomic_<cc_uint> { typedef metal::atomic_uint type; };
template <class T> using cc_atomic = typename cc_atomic_<T>::type;

#define CC_ATOMIC(space, name, how) \
  CC_I T cc_atomic_##name(volatile space T *p, cc_id<T> v) { \
    return metal::atomic_##how##_explicit((volatile space cc_atomic<T> *)p, v, metal::memory_order_relaxed); \
  } \
  CC_I T cc_atom_##name(volatile space T *p, cc_id<T> v) { return cc_atomic_##name(p, v); }
#define CC_ATOMICS(space) \
  CC_ATOMIC(space, add, fetch_add) CC_ATOMIC(space, sub, fetch_sub) CC_ATOMIC(space, min, fetch_min) \
  CC_ATOMIC(space, max, fetch_max) CC_ATOMIC(space, and, fetch_and) CC_ATOMIC(space, or, fetch_or) \
  CC_ATOMIC(space, xor, fetch_xor) CC_ATOMIC(space, xchg, exchange) \
  CC_FN float cc_atomic_xchg(volatile space float *p, float v) { \
    return as_type<float>(cc_atomic_xchg((volatile space cc_uint *)p, as_type<cc_uint>(v))); \
  } \
  CC_FN float cc_atom_xchg(volatile space float *p, float v) { return cc_atomic_xchg(p, v); } \
  CC_I T cc_atomic_inc(volatile space T *p) { return cc_atomic_add(p, T(1)); } \
  CC_I T cc_atomic_dec(volatile space T *p) { return cc_atomic_sub(p, T(1)); } \
  CC_I T cc_atom_inc(volatile space T *p) { return cc_atomic_add(p, T(1)); } \
  CC_I T cc_atom_dec(volatile space T *p) { return cc_atomic_sub(p, T(1)); } \
  /* Metal's exchange is weak: it may fail although the values are equal. */ \
  CC_I T cc_atomic_cmpxchg(volatile space T *p, cc_id<T> want, cc_id<T> v) { \
    T old = want; \
    while (!metal::atomic_compare_exchange_weak_explicit((volatile space cc_atomic<T> *)p, &old, v, \
                                                         metal::memory_order_relaxed, metal::memory_order_relaxed) && \
           old == want) \
      ; \
    return old; \
  } \
  CC_I T cc_atom_cmpxchg(volatile space T *p, cc_id<T> want, cc_id<T> v) { return cc_atomic_cmpxchg(p, want, v); }
CC_ATOMICS(device) CC_ATOMICS(threadgroup)
#undef CC_ATOMIC
#undef CC_ATOMICS
