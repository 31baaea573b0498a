// integer.h: the integer and relational functions, select, shuffle, vectors in memory and atomics. All targets share it.

CC_BEGIN

// The scalar form of each takes any integer type; vectors go lane by lane.
#define CC_LANE1(f) CC_T CC_FN CC_V cc_##f(CC_V x) { CC_V r; CC_LANES(cc_##f(x.v[i])); }
#define CC_LANE2(f) CC_T CC_FN CC_V cc_##f(CC_V x, CC_V y) { CC_V r; CC_LANES(cc_##f(x.v[i], y.v[i])); }
#define CC_LANE3(f) CC_T CC_FN CC_V cc_##f(CC_V x, CC_V y, CC_V z) { CC_V r; CC_LANES(cc_##f(x.v[i], y.v[i], z.v[i])); }
#define CC_I template <class T> CC_FN

//@ cc_abs cc_abs_diff
CC_I cc_unsig<T> cc_abs(T x) { return x < T(0) ? cc_unsig<T>(-cc_unsig<T>(x)) : cc_unsig<T>(x); }
CC_T CC_FN cc_vec<cc_unsig<T>, N> cc_abs(CC_V x) { cc_vec<cc_unsig<T>, N> r; CC_LANES(cc_abs(x.v[i])); }
CC_I cc_unsig<T> cc_abs_diff(T x, T y) {
  return x > y ? cc_unsig<T>(cc_unsig<T>(x) - cc_unsig<T>(y)) : cc_unsig<T>(cc_unsig<T>(y) - cc_unsig<T>(x));
}
CC_T CC_FN cc_vec<cc_unsig<T>, N> cc_abs_diff(CC_V x, CC_V y) {
  cc_vec<cc_unsig<T>, N> r;
  CC_LANES(cc_abs_diff(x.v[i], y.v[i]));
}

//@ cc_add_sat cc_sub_sat cc_hadd cc_rhadd cc_rotate cc_clz cc_popcount cc_mul_hi cc_mad_hi cc_mad_sat cc_mul24 cc_mad24
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
CC_I T cc_clz(T x) {
  if (x == T(0))
    return T(sizeof(T) * 8);
  return sizeof(T) == 8 ? T(cc_m_clz64(cc_ulong(x)))
                        : T(cc_m_clz32(cc_uint(cc_unsig<T>(x))) - int(32 - (sizeof(T) * 8) % 64));
}
CC_I T cc_popcount(T x) { return T(cc_m_popcount64(cc_ulong(cc_unsig<T>(x)))); }

CC_FN cc_long cc_mul_hi(cc_long x, cc_long y) { return cc_m_mulhi64(x, y); }
CC_FN cc_ulong cc_mul_hi(cc_ulong x, cc_ulong y) { return cc_m_umulhi64(x, y); }
CC_FN cc_uint cc_mul_hi(cc_uint x, cc_uint y) { return cc_uint(cc_ulong(x) * cc_ulong(y) >> 32); }
CC_I T cc_mul_hi(T x, T y) { return T(cc_long(x) * cc_long(y) >> (sizeof(T) * 8)); }
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

//@ cc_upsample
#define CC_UP(W, H, L) \
  CC_FN W cc_upsample(H h, L l) { return W(cc_unsig<W>(cc_unsig<W>(cc_unsig<H>(h)) << (sizeof(H) * 8)) | l); } \
  template <int N> CC_FN cc_vec<W, N> cc_upsample(cc_vec<H, N> h, cc_vec<L, N> l) { cc_vec<W, N> r; CC_LANES(cc_upsample(h.v[i], l.v[i])); }
CC_UP(cc_short, cc_char, cc_uchar) CC_UP(cc_ushort, cc_uchar, cc_uchar)
CC_UP(cc_int, cc_short, cc_ushort) CC_UP(cc_uint, cc_ushort, cc_ushort)
CC_UP(cc_long, cc_int, cc_uint) CC_UP(cc_ulong, cc_uint, cc_uint)
#undef CC_UP

//@
// ---- relational: 0 and 1 for scalars, 0 and -1 in lanes ----

//@ cc_isequal cc_isnotequal cc_isgreater cc_isgreaterequal cc_isless cc_islessequal
//@ cc_islessgreater cc_isordered cc_isunordered
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

//@
// Computed from the bits, so that fast-math options cannot remove the tests. E is the exponent
// mask.
template <class F> struct cc_bits;
//@ cc_half
template <> struct cc_bits<cc_half> { enum : cc_ushort { exp = 0x7c00, abs = 0x7fff }; };
//@ cc_isfinite cc_isinf cc_isnan cc_isnormal cc_signbit
// By the bits, so that no fast-math option of a target takes them away. E is the exponent mask.
template <> struct cc_bits<float> { enum : cc_uint { exp = 0x7f800000, abs = 0x7fffffff }; };
CC_FOR_DOUBLE(template <> struct cc_bits<cc_double> { enum : cc_ulong { exp = 0x7ff0000000000000, abs = 0x7fffffffffffffff }; };)
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

//@ cc_any cc_all cc_bitselect cc_select
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
//@ cc_vec
template <class T, int N, class C> CC_FN CC_V cc_select(CC_V a, CC_V b, cc_vec<C, N> c) {
  return cc_select_vec(c, b, a);
}

//@ cc_shuffle cc_shuffle2
template <class T, int M, class U, int N> CC_FN CC_V cc_shuffle(cc_vec<T, M> a, cc_vec<U, N> m) {
  cc_vec<T, N> r;
  CC_LANES(a.v[m.v[i] & ((M == 3 ? 4 : M) - 1)]);
}
template <class T, int M, class U, int N>
CC_FN cc_vec<T, N> cc_shuffle2(cc_vec<T, M> a, cc_vec<T, M> b, cc_vec<U, N> m) {
  constexpr int W = M == 3 ? 4 : M;
  cc_vec<T, N> r;
  CC_LANES(m.v[i] & W ? b.v[m.v[i] & (W - 1)] : a.v[m.v[i] & (W - 1)]);
}

//@
// ---- vectors in memory, aligned as their lanes are ----

//@ cc_vload2 cc_vstore2 cc_vload3 cc_vstore3 cc_vload4 cc_vstore4 cc_vload8 cc_vstore8 cc_vload16 cc_vstore16
#define CC_MEM(n, space) CC_I cc_vec<T, n> cc_vload##n(cc_size k, const space T *p) { return cc_vload_<n>(k, p); }
#define CC_SPACE(space) \
  template <int N, class T> CC_FN CC_V cc_vload_(cc_size k, const space T *p) { CC_V r; CC_LANES(p[k * N + i]); } \
  CC_MEM(2, space) CC_MEM(3, space) CC_MEM(4, space) CC_MEM(8, space) CC_MEM(16, space)
CC_READ_SPACES(CC_SPACE)
#undef CC_MEM
#undef CC_SPACE
#define CC_MEM(n, space) CC_I void cc_vstore##n(cc_vec<T, n> x, cc_size k, space T *p) { cc_vstore_(x, k, p); }
#define CC_SPACE(space) \
  CC_T CC_FN void cc_vstore_(CC_V x, cc_size k, space T *p) { \
    for (int i = 0; i < N; i++) \
      p[k * N + i] = x.v[i]; \
  } \
  CC_MEM(2, space) CC_MEM(3, space) CC_MEM(4, space) CC_MEM(8, space) CC_MEM(16, space)
CC_SPACES(CC_SPACE)
#undef CC_MEM
#undef CC_SPACE
//@ cc_vload_half cc_vloada_half cc_vstore_half cc_vstore_half_rte cc_vstore_half_rtz cc_vstore_half_rtp
//@ cc_vstore_half_rtn cc_vstorea_half cc_vstorea_half_rte cc_vstorea_half_rtz cc_vstorea_half_rtp
//@ cc_vstorea_half_rtn cc_vload_half2 cc_vloada_half2 cc_vstore_half2 cc_vstore_half2_rte cc_vstore_half2_rtz
//@ cc_vstore_half2_rtp cc_vstore_half2_rtn cc_vstorea_half2 cc_vstorea_half2_rte cc_vstorea_half2_rtz
//@ cc_vstorea_half2_rtp cc_vstorea_half2_rtn cc_vload_half3 cc_vloada_half3 cc_vstore_half3 cc_vstore_half3_rte
//@ cc_vstore_half3_rtz cc_vstore_half3_rtp cc_vstore_half3_rtn cc_vstorea_half3 cc_vstorea_half3_rte
//@ cc_vstorea_half3_rtz cc_vstorea_half3_rtp cc_vstorea_half3_rtn cc_vload_half4 cc_vloada_half4 cc_vstore_half4
//@ cc_vstore_half4_rte cc_vstore_half4_rtz cc_vstore_half4_rtp cc_vstore_half4_rtn cc_vstorea_half4
//@ cc_vstorea_half4_rte cc_vstorea_half4_rtz cc_vstorea_half4_rtp cc_vstorea_half4_rtn cc_vload_half8
//@ cc_vloada_half8 cc_vstore_half8 cc_vstore_half8_rte cc_vstore_half8_rtz cc_vstore_half8_rtp
//@ cc_vstore_half8_rtn cc_vstorea_half8 cc_vstorea_half8_rte cc_vstorea_half8_rtz cc_vstorea_half8_rtp
//@ cc_vstorea_half8_rtn cc_vload_half16 cc_vloada_half16 cc_vstore_half16 cc_vstore_half16_rte
//@ cc_vstore_half16_rtz cc_vstore_half16_rtp cc_vstore_half16_rtn cc_vstorea_half16 cc_vstorea_half16_rte
//@ cc_vstorea_half16_rtz cc_vstorea_half16_rtp cc_vstorea_half16_rtn
// S is the distance in lanes: in the forms vloada and vstorea, three lanes take the space of four.
#define CC_MEM(n, s, space) \
  CC_FN cc_vec<float, n> cc_vload_half##n(cc_size k, const space cc_half *p) { return cc_hload_<n, n>(k, p); } \
  CC_FN cc_vec<float, n> cc_vloada_half##n(cc_size k, const space cc_half *p) { return cc_hload_<n, s>(k, p); }
#define CC_SPACE(space) \
  template <int N, int S> CC_FN cc_vec<float, N> cc_hload_(cc_size k, const space cc_half *p) { cc_vec<float, N> r; CC_LANES(float(p[k * S + i])); } \
  CC_FN float cc_vload_half(cc_size k, const space cc_half *p) { return float(p[k]); } \
  CC_FN float cc_vloada_half(cc_size k, const space cc_half *p) { return float(p[k]); } \
  CC_MEM(2, 2, space) CC_MEM(3, 4, space) CC_MEM(4, 4, space) CC_MEM(8, 8, space) CC_MEM(16, 16, space)
CC_READ_SPACES(CC_SPACE)
#undef CC_MEM
#undef CC_SPACE
#define CC_STORE_HALF(mode, R, space) \
  template <class F> CC_FN void cc_vstore_half##mode(F x, cc_size k, space cc_half *p) { p[k] = cc_convert_lane<cc_half, 0, R>(x); } \
  template <class F> CC_FN void cc_vstorea_half##mode(F x, cc_size k, space cc_half *p) { p[k] = cc_convert_lane<cc_half, 0, R>(x); }
#define CC_STORE_HALFN(n, s, mode, R, space) \
  CC_I void cc_vstore_half##n##mode(cc_vec<T, n> x, cc_size k, space cc_half *p) { cc_hstore_<R, n>(x, k, p); } \
  CC_I void cc_vstorea_half##n##mode(cc_vec<T, n> x, cc_size k, space cc_half *p) { cc_hstore_<R, s>(x, k, p); }
#define CC_MODES(mode, R, space) \
  CC_STORE_HALF(mode, R, space) CC_STORE_HALFN(2, 2, mode, R, space) CC_STORE_HALFN(3, 4, mode, R, space) \
  CC_STORE_HALFN(4, 4, mode, R, space) CC_STORE_HALFN(8, 8, mode, R, space) CC_STORE_HALFN(16, 16, mode, R, space)
#define CC_SPACE(space) \
  template <int R, int S, class T, int N> CC_FN void cc_hstore_(CC_V x, cc_size k, space cc_half *p) { \
    for (int i = 0; i < N; i++) \
      p[k * S + i] = cc_convert_lane<cc_half, 0, R>(x.v[i]); \
  } \
  CC_MODES(, CC_RT_DEFAULT, space) CC_MODES(_rte, CC_RTE, space) CC_MODES(_rtz, CC_RTZ, space) \
  CC_MODES(_rtp, CC_RTP, space) CC_MODES(_rtn, CC_RTN, space)
CC_SPACES(CC_SPACE)
#undef CC_STORE_HALF
#undef CC_STORE_HALFN
#undef CC_MODES
#undef CC_SPACE
//@

// ---- atomics over the hooks cc_a_add, cc_a_min, cc_a_cas and so on, which return the old value ----

//@ cc_atomic_min cc_atomic_max cc_atomic_and cc_atomic_or cc_atomic_xor cc_atomic_add cc_atomic_sub
//@ cc_atomic_inc cc_atomic_dec cc_atomic_cmpxchg cc_atomic_xchg cc_atom_min cc_atom_max cc_atom_and cc_atom_or
//@ cc_atom_xor cc_atom_add cc_atom_sub cc_atom_inc cc_atom_dec cc_atom_cmpxchg cc_atom_xchg
#define CC_ATOMIC(name, params, expr) \
  CC_I T cc_atomic_##name params { return (expr); } \
  CC_I T cc_atom_##name params { return (expr); }
#define CC_SPACE(space) \
  CC_ATOMIC(min, (volatile space T *p, cc_id<T> v), cc_a_min(p, v)) \
  CC_ATOMIC(max, (volatile space T *p, cc_id<T> v), cc_a_max(p, v)) \
  CC_ATOMIC(and, (volatile space T *p, cc_id<T> v), cc_a_and(p, v)) \
  CC_ATOMIC(or, (volatile space T *p, cc_id<T> v), cc_a_or(p, v)) \
  CC_ATOMIC(xor, (volatile space T *p, cc_id<T> v), cc_a_xor(p, v)) \
  CC_ATOMIC(add, (volatile space T *p, cc_id<T> v), cc_a_add(p, v)) \
  CC_ATOMIC(sub, (volatile space T *p, cc_id<T> v), cc_a_add(p, T(-cc_unsig<T>(v)))) \
  CC_ATOMIC(inc, (volatile space T *p), cc_a_add(p, T(1))) \
  CC_ATOMIC(dec, (volatile space T *p), cc_a_add(p, T(-1))) \
  CC_ATOMIC(cmpxchg, (volatile space T *p, cc_id<T> c, cc_id<T> v), cc_a_cas(p, c, v)) \
  CC_ATOMIC(xchg, (volatile space T *p, cc_id<T> v), cc_a_xchg(p, v))
CC_ATOMIC_SPACES(CC_SPACE)
#undef CC_SPACE
#undef CC_ATOMIC

//@
CC_END
