// vectors.h: vectors: objects in memory, literals, swizzles, casts and operators. All targets share it.

CC_BEGIN

//@ cc_load cc_store
// cc_load and cc_store copy a volatile vector or record, in words of its alignment.
#define CC_SPACE(space) \
  template <class T> CC_FN T cc_load(const volatile space T &x) { \
    T r; \
    for (cc_uint i = 0; i < sizeof(T) / sizeof(cc_word<T>); i++) \
      ((CC_PRIVATE cc_word<T> *)&r)[i] = ((const volatile space cc_word<T> *)&x)[i]; \
    return r; \
  } \
  template <class T> CC_FN T cc_store(volatile space T &x, cc_id<T> o) { \
    for (cc_uint i = 0; i < sizeof(T) / sizeof(cc_word<T>); i++) \
      ((volatile space cc_word<T> *)&x)[i] = ((CC_PRIVATE cc_word<T> *)&o)[i]; \
    return o; \
  }
CC_SPACES(CC_SPACE)
#undef CC_SPACE

//@ cc_vec CC_VECTORS
// cc_vec has OpenCL's size and alignment (three lanes take the room of four); lanes are an array, so
// that pointers into a vector work. It is an aggregate with no constructors: only those can be
// members of unions and of packed structs.
template <class T, int N> struct alignas(sizeof(T) * (N == 3 ? 4 : N)) cc_vec {
  T v[N == 3 ? 4 : N];
};

#define CC_VECTORS(T) \
  typedef cc_vec<cc_##T, 2> cc_##T##2; \
  typedef cc_vec<cc_##T, 3> cc_##T##3; \
  typedef cc_vec<cc_##T, 4> cc_##T##4; \
  typedef cc_vec<cc_##T, 8> cc_##T##8; \
  typedef cc_vec<cc_##T, 16> cc_##T##16;
//@ cc_char2 cc_char3 cc_char4 cc_char8 cc_char16
CC_VECTORS(char)
//@ cc_uchar2 cc_uchar3 cc_uchar4 cc_uchar8 cc_uchar16
CC_VECTORS(uchar)
//@ cc_short2 cc_short3 cc_short4 cc_short8 cc_short16
CC_VECTORS(short)
//@ cc_ushort2 cc_ushort3 cc_ushort4 cc_ushort8 cc_ushort16
CC_VECTORS(ushort)
//@ cc_int2 cc_int3 cc_int4 cc_int8 cc_int16
CC_VECTORS(int)
//@ cc_uint2 cc_uint3 cc_uint4 cc_uint8 cc_uint16
CC_VECTORS(uint)
//@ cc_long2 cc_long3 cc_long4 cc_long8 cc_long16
CC_VECTORS(long)
//@ cc_ulong2 cc_ulong3 cc_ulong4 cc_ulong8 cc_ulong16
CC_VECTORS(ulong)
//@ cc_half2 cc_half3 cc_half4 cc_half8 cc_half16
CC_VECTORS(half) // of cc_half
//@ cc_float2 cc_float3 cc_float4 cc_float8 cc_float16
CC_VECTORS(float)
//@ cc_double2 cc_double3 cc_double4 cc_double8 cc_double16
CC_VECTORS(double)

//@ cc_vec cc_lane_ cc_lane_of cc_splat cc_make cc_swz cc_ref cc_select_vec cc_vec_step
// cc_lane_of<V>: the scalar of a vector, a scalar itself; cc_lane_<V>::n: its lanes.
template <class V> struct cc_lane_ { typedef V type; enum { n = 1 }; };
template <class T, int N> struct cc_lane_<cc_vec<T, N>> { typedef T type; enum { n = N }; };
template <class V> using cc_lane_of = typename cc_lane_<V>::type;

CC_T CC_FN constexpr CC_V cc_splat(cc_id<T> s) {
  CC_V r{};
  CC_LANES(s);
}

// cc_make is the vector literal (float4)(a, b.xy, 1): one scalar fills all lanes. cc_fill writes the next lanes.
template <class T, int N, class S> CC_FN constexpr int cc_fill(CC_PRIVATE CC_V &r, CC_PRIVATE int &k, S s) {
  if (k < N)
    r.v[k++] = T(s);
  return k;
}
template <class T, int N, class S, int M>
CC_FN constexpr int cc_fill(CC_PRIVATE CC_V &r, CC_PRIVATE int &k, cc_vec<S, M> s) {
  for (int i = 0; i < M && k < N; i++)
    r.v[k++] = T(s.v[i]);
  return k;
}
template <class V, class... A> CC_FN constexpr V cc_make(A... a) {
  V r{};
  int k = 0;
  const int filled[] = {cc_fill(r, k, a)...}; // braces keep the order
  (void)filled;
  for (; k < cc_lane_<V>::n; k++)
    r.v[k] = r.v[0];
  return r;
}

// cc_swz reads a swizzle of two or more lanes: a value.
template <int... I, class T, int N> CC_FN constexpr cc_vec<T, int(sizeof...(I))> cc_swz(CC_V a) {
  return {{a.v[I]...}};
}

// cc_ref is a swizzle that is assigned to: a class for each space, volatile or not.
#define CC_OP(op) \
  template <class X> CC_FN value operator op##=(X x) const { return *this = value(*this) op x; }
#define CC_REF(name, space) \
  template <class T, int N, int... I> struct name { \
    typedef cc_vec<T, int(sizeof...(I))> value; \
    space CC_V &r; \
    CC_FN operator value() const { return {{r.v[I]...}}; } \
    CC_FN value operator=(value x) const { \
      int k = 0; \
      const int put[] = {(r.v[I] = x.v[k++], 0)...}; \
      (void)put; \
      return x; \
    } \
    CC_FN value operator=(T s) const { return *this = cc_splat<T, int(sizeof...(I))>(s); } \
    CC_FN value operator=(const CC_PRIVATE name &o) const { return *this = value(o); } \
    CC_OP(+) CC_OP(-) CC_OP(*) CC_OP(/) CC_OP(%) CC_OP(&) CC_OP(|) CC_OP(^) CC_OP(<<) CC_OP(>>) \
    CC_FN value operator++() const { return *this = value(*this) + T(1); } \
    CC_FN value operator--() const { return *this = value(*this) - T(1); } \
    CC_FN value operator++(int) const { value x = *this; *this = x + T(1); return x; } \
    CC_FN value operator--(int) const { value x = *this; *this = x - T(1); return x; } \
  }; \
  template <int... I, class T, int N> CC_FN name<T, N, I...> cc_ref(space CC_V &a) { return {a}; }
#define CC_SPACE(space) CC_REF(cc_lanes_##space, space) CC_REF(cc_vlanes_##space, volatile space)
CC_SPACES(CC_SPACE)
#undef CC_SPACE
#undef CC_REF
#undef CC_OP

//@ cc_cast cc_vec
// cc_cast is the C cast: a vector to itself, a scalar to all lanes. true becomes all bits set in
// integer lanes.
template <class V, class S> struct cc_cast_ {
  static CC_FN constexpr V to(S s) { return V(s); }
};
template <class T, int N, class S> struct cc_cast_<CC_V, S> {
  static CC_FN constexpr CC_V to(S s) {
    return cc_splat<T, N>(cc_same<S, bool>::yes && !cc_is<T>::fp ? T(-T(s)) : T(s));
  }
};
template <class T, int N> struct cc_cast_<CC_V, CC_V> {
  static CC_FN constexpr CC_V to(CC_V s) { return s; }
};
template <class V, class S> CC_FN constexpr V cc_cast(S s) { return cc_cast_<V, S>::to(s); }

template <class V> CC_FN constexpr cc_int cc_vec_step(V) { return cc_lane_<V>::n == 3 ? 4 : cc_lane_<V>::n; }

// ---- operators ----

#define CC_OP(op, expr) \
  CC_T CC_FN CC_V operator op(CC_V a, CC_V b) { CC_V r; CC_LANES(expr(a.v[i], b.v[i])); } \
  CC_T CC_FN CC_V operator op(CC_V a, cc_id<T> b) { CC_V r; CC_LANES(expr(a.v[i], b)); } \
  CC_T CC_FN CC_V operator op(cc_id<T> a, CC_V b) { CC_V r; CC_LANES(expr(a, b.v[i])); }
#define CC_ADD(x, y) T(x + y)
#define CC_AND(x, y) T(x & y)
#define CC_OR(x, y) T(x | y)
#define CC_XOR(x, y) T(x ^ y)
CC_OP(+, CC_ADD) CC_OP(-, cc_sub) CC_OP(*, cc_mul) CC_OP(/, cc_div) CC_OP(%, cc_rem) CC_OP(&, CC_AND) CC_OP(|, CC_OR)
CC_OP(^, CC_XOR)
#undef CC_OP
#undef CC_ADD
#undef CC_AND
#undef CC_OR
#undef CC_XOR

#define CC_OP(op) \
  CC_T CC_FN CC_B operator op(CC_V a, CC_V b) { CC_B r; CC_LANES(-(a.v[i] op b.v[i])); } \
  CC_T CC_FN CC_B operator op(CC_V a, cc_id<T> b) { CC_B r; CC_LANES(-(a.v[i] op b)); } \
  CC_T CC_FN CC_B operator op(cc_id<T> a, CC_V b) { CC_B r; CC_LANES(-(a op b.v[i])); }
CC_OP(==) CC_OP(!=) CC_OP(<) CC_OP(>) CC_OP(<=) CC_OP(>=)
#undef CC_OP

// Both sides are always evaluated, as in OpenCL for vectors.
#define CC_OP(op) \
  CC_T CC_FN CC_B operator op(CC_V a, CC_V b) { CC_B r; CC_LANES(-((a.v[i] != T(0)) op (b.v[i] != T(0)))); } \
  CC_T CC_FN CC_B operator op(CC_V a, cc_id<T> b) { return a op cc_splat<T, N>(b); } \
  CC_T CC_FN CC_B operator op(cc_id<T> a, CC_V b) { return cc_splat<T, N>(a) op b; }
CC_OP(&&) CC_OP(||)
#undef CC_OP

CC_T CC_FN CC_B operator!(CC_V a) { CC_B r; CC_LANES(-(a.v[i] == T(0))); }
CC_T CC_FN CC_V operator~(CC_V a) { CC_V r; CC_LANES(T(~a.v[i])); }
CC_T CC_FN CC_V operator-(CC_V a) { CC_V r; CC_LANES(cc_neg(a.v[i])); }
CC_T CC_FN CC_V operator+(CC_V a) { return a; }

//@ cc_shl cc_shr cc_shl_assign cc_shr_assign cc_shl_lane cc_shr_lane
// Shifts take the count modulo the width of the lane, or for scalars of the promoted type. Left
// shifts are done in the unsigned type, where every result is defined.
template <class T, class C> CC_FN T cc_shl_lane(T a, C n) {
  return T(cc_unsig<T>(a) << (cc_uint(n) & (sizeof(T) * 8 - 1)));
}
template <class T, class C> CC_FN T cc_shr_lane(T a, C n) {
  return T(a >> (cc_uint(n) & (sizeof(T) * 8 - 1)));
}
template <class T, class C> CC_FN auto cc_shl(T a, C n) { return cc_shl_lane(+a, n); }
template <class T, class C> CC_FN auto cc_shr(T a, C n) { return cc_shr_lane(+a, n); }
#define CC_SPACE(space) \
  template <class T, class C> CC_FN T cc_shl_assign(space T &a, C n) { return a = T(cc_shl(+a, n)); } \
  template <class T, class C> CC_FN T cc_shr_assign(space T &a, C n) { return a = T(cc_shr(+a, n)); } \
  template <class T, class C> CC_FN T cc_shl_assign(volatile space T &a, C n) { return a = T(cc_shl(+a, n)); } \
  template <class T, class C> CC_FN T cc_shr_assign(volatile space T &a, C n) { return a = T(cc_shr(+a, n)); }
CC_SPACES(CC_SPACE)
#undef CC_SPACE
//@ cc_vec
#define CC_OP(op, f) \
  template <class T, int N, class C> CC_FN CC_V operator op(CC_V a, cc_vec<C, N> n) { CC_V r; CC_LANES(f(a.v[i], n.v[i])); } \
  CC_T CC_FN CC_V operator op(CC_V a, cc_long n) { CC_V r; CC_LANES(f(a.v[i], n)); } \
  CC_T CC_FN CC_V operator op(cc_id<T> a, CC_V n) { CC_V r; CC_LANES(f(a, n.v[i])); }
CC_OP(<<, cc_shl_lane) CC_OP(>>, cc_shr_lane)
#undef CC_OP
template <class T, int N, class C> CC_FN CC_V cc_shl(CC_V a, C n) { return a << n; }
template <class T, int N, class C> CC_FN CC_V cc_shr(CC_V a, C n) { return a >> n; }

// Operators that change a vector, which is in any space.
#define CC_OP(space, op) \
  template <class T, int N, class X> CC_FN CC_V operator op##=(space CC_V & a, X b) { return CC_WRITE(a, CC_READ(a) op b); } \
  template <class T, int N, class X> CC_FN CC_V operator op##=(volatile space CC_V & a, X b) { return cc_store(a, cc_load(a) op b); }
#define CC_STEP(space, op) \
  CC_T CC_FN CC_V operator op##op(space CC_V &a) { return CC_WRITE(a, CC_READ(a) op T(1)); } \
  CC_T CC_FN CC_V operator op##op(space CC_V &a, int) { CC_V r = CC_READ(a); CC_WRITE(a, r op T(1)); return r; } \
  CC_T CC_FN CC_V operator op##op(volatile space CC_V &a) { return cc_store(a, cc_load(a) op T(1)); } \
  CC_T CC_FN CC_V operator op##op(volatile space CC_V &a, int) { CC_V r = cc_load(a); cc_store(a, r op T(1)); return r; }
#define CC_SPACE(space) \
  CC_OP(space, +) CC_OP(space, -) CC_OP(space, *) CC_OP(space, /) CC_OP(space, %) CC_OP(space, &) \
  CC_OP(space, |) CC_OP(space, ^) CC_OP(space, <<) CC_OP(space, >>) CC_STEP(space, +) CC_STEP(space, -)
CC_SPACES(CC_SPACE)
#undef CC_SPACE
#undef CC_OP
#undef CC_STEP

// cc_select_vec is c ? a : b with a vector condition: by the top bit of each lane.
template <class T, int N, class C> CC_FN CC_V cc_select_vec(cc_vec<C, N> c, CC_V a, CC_V b) {
  CC_V r;
  CC_LANES(cc_sint<C>(c.v[i]) < 0 ? a.v[i] : b.v[i]);
}
template <class T, int N, class C> CC_FN CC_V cc_select_vec(cc_vec<C, N> c, CC_V a, cc_id<T> b) {
  return cc_select_vec(c, a, cc_splat<T, N>(b));
}
template <class T, int N, class C> CC_FN CC_V cc_select_vec(cc_vec<C, N> c, cc_id<T> a, CC_V b) {
  return cc_select_vec(c, cc_splat<T, N>(a), b);
}

//@
CC_END
