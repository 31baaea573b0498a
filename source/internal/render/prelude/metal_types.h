// metal_types.h: the scalar and vector types of OpenCL C in the Metal Shading Language (C++14), for
// Metal 2.2 and newer. Metal has no double, its vectors have at most 4 lanes, comparisons of them
// return bool, and shifts by more than the width are undefined. So vectors are classes of the
// prelude here, too, of any width, with one overload for each address space in which an object can
// be changed. Functions of Metal are written with metal::.

#include <metal_stdlib>

// No contraction of products and sums to fma and no fast math, so that all devices round alike.
// These pragmas override the compiler's options; to compile with fast math, define CC_FAST_MATH.
#ifdef CC_FAST_MATH
#elif __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
#else
#pragma STDC FP_CONTRACT OFF
#endif
#pragma clang diagnostic ignored "-Wunused-function"
#pragma clang diagnostic ignored "-Wunused-value"
#pragma clang diagnostic ignored "-Wunused-variable"
#pragma clang diagnostic ignored "-Wparentheses"

#define CC_FN static inline

typedef bool cc_bool;
typedef char cc_char;
typedef uchar cc_uchar;
typedef short cc_short;
typedef ushort cc_ushort;
typedef int cc_int;
typedef uint cc_uint;
typedef long cc_long;
typedef ulong cc_ulong;
typedef half cc_half;
typedef float cc_float;
typedef ulong cc_size, cc_uintptr;
typedef long cc_ptrdiff, cc_intptr;
static_assert(sizeof(cc_long) == 8 && sizeof(cc_half) == 2, "concord needs Metal's types");

#define CC_INFINITY INFINITY
#define CC_NAN NAN
#define CC_INFINITY_INIT INFINITY
#define CC_NAN_INIT NAN
#define CC_MAXFLOAT 0x1.fffffep127f
#define CC_NULL nullptr
#define CC_LOCAL_MEM_FENCE 1u
#define CC_GLOBAL_MEM_FENCE 2u

// cc_id keeps a parameter out of template deduction, so that a scalar converts to the lanes' type.
template <class T> struct cc_id_ { typedef T type; };
template <class T> using cc_id = typename cc_id_<T>::type;

// Integers of the size of T, and traits of T.
template <int Bytes> struct cc_ints;
template <> struct cc_ints<1> { typedef cc_char s; typedef cc_uchar u; };
template <> struct cc_ints<2> { typedef cc_short s; typedef cc_ushort u; };
template <> struct cc_ints<4> { typedef cc_int s; typedef cc_uint u; };
template <> struct cc_ints<8> { typedef cc_long s; typedef cc_ulong u; };
template <class T> using cc_sint = typename cc_ints<sizeof(T)>::s;
template <class T> using cc_unsig = typename cc_ints<sizeof(T)>::u;
template <class T> struct cc_is { enum { fp = 0, sign = T(-1) < T(1) }; };
template <> struct cc_is<cc_half> { enum { fp = 1, sign = 1 }; };
template <> struct cc_is<float> { enum { fp = 1, sign = 1 }; };
template <class A, class B> struct cc_same { enum { yes = 0 }; };
template <class A> struct cc_same<A, A> { enum { yes = 1 }; };
template <class T> CC_FN constexpr T cc_int_max() {
  return cc_is<T>::sign ? T((cc_ulong(1) << (sizeof(T) * 8 - 1)) - 1) : T(~cc_ulong(0));
}
template <class T> CC_FN constexpr T cc_int_min() { return cc_is<T>::sign ? T(-cc_int_max<T>() - 1) : T(0); }

// cc_as_bits is as_T between types of one size.
template <class R, class T> CC_FN R cc_as_bits(T x) {
  static_assert(sizeof(R) == sizeof(T), "as_type needs types of one size");
  union { T x; R r; } u;
  u.x = x;
  return u.r;
}

// ---- vectors ----

// cc_vec has OpenCL's size and alignment (three lanes take the room of four); lanes are an array, so
// that pointers into a vector work.
template <class T, int N> struct alignas(sizeof(T) * (N == 3 ? 4 : N)) cc_vec {
  T v[N == 3 ? 4 : N];
};
#define CC_VECTORS(T) \
  typedef cc_vec<cc_##T, 2> cc_##T##2; \
  typedef cc_vec<cc_##T, 3> cc_##T##3; \
  typedef cc_vec<cc_##T, 4> cc_##T##4; \
  typedef cc_vec<cc_##T, 8> cc_##T##8; \
  typedef cc_vec<cc_##T, 16> cc_##T##16;
CC_VECTORS(char) CC_VECTORS(uchar) CC_VECTORS(short) CC_VECTORS(ushort) CC_VECTORS(int)
CC_VECTORS(uint) CC_VECTORS(long) CC_VECTORS(ulong) CC_VECTORS(half) CC_VECTORS(float)
#undef CC_VECTORS

template <class V> struct cc_lane_ { typedef V type; enum { n = 1 }; };
template <class T, int N> struct cc_lane_<cc_vec<T, N>> { typedef T type; enum { n = N }; };
template <class V> using cc_lane_of = typename cc_lane_<V>::type;

// cc_get and cc_put copy a vector or record out of and into another address space; cc_load and
// cc_store do so where it is volatile, in words of its alignment. CC_GET and CC_PUT are defined by
// compilers that cannot copy classes from one space to another.
#ifndef CC_GET
#define CC_GET(T, space, x) return x
#define CC_PUT(T, space, x, o) x = o
#endif
template <int Align> struct cc_word_ { typedef cc_ulong type; };
template <> struct cc_word_<1> { typedef cc_uchar type; };
template <> struct cc_word_<2> { typedef cc_ushort type; };
template <> struct cc_word_<4> { typedef cc_uint type; };
template <class T> using cc_word = typename cc_word_<alignof(T)>::type;
template <class T> CC_FN T cc_get(constant T &x) { CC_GET(T, constant, x); }
#define CC_SPACE(space) \
  template <class T> CC_FN T cc_load(const volatile space T &x) { \
    T r; \
    for (cc_uint i = 0; i < sizeof(T) / sizeof(cc_word<T>); i++) \
      ((thread cc_word<T> *)&r)[i] = ((const volatile space cc_word<T> *)&x)[i]; \
    return r; \
  } \
  template <class T> CC_FN T cc_store(volatile space T &x, cc_id<T> o) { \
    for (cc_uint i = 0; i < sizeof(T) / sizeof(cc_word<T>); i++) \
      ((volatile space cc_word<T> *)&x)[i] = ((thread cc_word<T> *)&o)[i]; \
    return o; \
  }
CC_SPACE(thread) CC_SPACE(device) CC_SPACE(threadgroup)
#undef CC_SPACE
#define CC_SPACE(space) \
  template <class T> CC_FN T cc_get(const space T &x) { CC_GET(T, space, x); } \
  template <class T> CC_FN T cc_put(space T &x, cc_id<T> o) { \
    CC_PUT(T, space, x, o); \
    return o; \
  }
CC_SPACE(device) CC_SPACE(threadgroup)
#undef CC_SPACE
// cc_unpack and cc_pack copy objects that may be unaligned.
#define CC_SPACE(space) \
  template <class T> CC_FN T cc_unpack(const space cc_uchar *p) { \
    T r; \
    for (cc_uint i = 0; i < sizeof(T); i++) \
      ((thread cc_uchar *)&r)[i] = p[i]; \
    return r; \
  }
CC_SPACE(thread) CC_SPACE(device) CC_SPACE(threadgroup) CC_SPACE(constant)
#undef CC_SPACE
#define CC_SPACE(space) \
  template <class T> CC_FN T cc_pack(space cc_uchar *p, T x) { \
    for (cc_uint i = 0; i < sizeof(T); i++) \
      p[i] = ((thread cc_uchar *)&x)[i]; \
    return x; \
  }
CC_SPACE(thread) CC_SPACE(device) CC_SPACE(threadgroup)
#undef CC_SPACE
// cc_clear sets all bytes of a variable to zero.
template <class T> CC_FN void cc_clear(thread T &x) {
  thread cc_uchar *p = (thread cc_uchar *)&x;
  for (cc_uint i = 0; i < sizeof(T); i++)
    p[i] = 0;
}

template <class T, int N> CC_FN cc_vec<T, N> cc_splat(cc_id<T> s) {
  cc_vec<T, N> r;
  for (int i = 0; i < N; i++)
    r.v[i] = s;
  return r;
}

// cc_make is the vector literal (float4)(a, b.xy, 1): one scalar fills all lanes.
template <class T, int N, class S> CC_FN int cc_fill(thread cc_vec<T, N> &r, thread int &k, S s) {
  if (k < N)
    r.v[k++] = T(s);
  return k;
}
template <class T, int N, class S, int M>
CC_FN int cc_fill(thread cc_vec<T, N> &r, thread int &k, cc_vec<S, M> s) {
  for (int i = 0; i < M && k < N; i++)
    r.v[k++] = T(s.v[i]);
  return k;
}
template <class V, class... A> CC_FN V cc_make(A... a) {
  V r;
  int k = 0;
  const int filled[] = {cc_fill(r, k, a)...}; // braces keep the order
  (void)filled;
  for (; k < cc_lane_<V>::n; k++)
    r.v[k] = r.v[0];
  return r;
}

// cc_swz reads a swizzle of two or more lanes: a value.
template <int... I, class T, int N> CC_FN cc_vec<T, int(sizeof...(I))> cc_swz(cc_vec<T, N> a) {
  return {{a.v[I]...}};
}

// cc_cast is the C cast of a scalar to all lanes. true becomes all bits set in integer lanes.
template <class V, class S> CC_FN V cc_cast(S s) {
  typedef cc_lane_of<V> T;
  return cc_splat<T, cc_lane_<V>::n>(cc_same<S, bool>::yes && !cc_is<T>::fp ? T(-T(s)) : T(s));
}
template <class V> CC_FN cc_int cc_vec_step(V) { return cc_lane_<V>::n == 3 ? 4 : cc_lane_<V>::n; }

// ---- operators ----

#define CC_LANES(expr) \
  for (int i = 0; i < N; i++) \
    r.v[i] = (expr); \
  return r
#define CC_T template <class T, int N>
#define CC_V cc_vec<T, N>
#define CC_B cc_vec<cc_sint<T>, N> // what comparisons give: lanes of 0 and -1

#define CC_OP(op) \
  CC_T CC_FN CC_V operator op(CC_V a, CC_V b) { CC_V r; CC_LANES(T(a.v[i] op b.v[i])); } \
  CC_T CC_FN CC_V operator op(CC_V a, cc_id<T> b) { CC_V r; CC_LANES(T(a.v[i] op b)); } \
  CC_T CC_FN CC_V operator op(cc_id<T> a, CC_V b) { CC_V r; CC_LANES(T(a op b.v[i])); }
CC_OP(+) CC_OP(-) CC_OP(*) CC_OP(/) CC_OP(%) CC_OP(&) CC_OP(|) CC_OP(^)
#undef CC_OP

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
CC_T CC_FN CC_V operator-(CC_V a) { CC_V r; CC_LANES(T(-a.v[i])); }
CC_T CC_FN CC_V operator+(CC_V a) { return a; }

// Shifts take the count modulo the width of the lane, or for scalars of the promoted type. Left
// shifts are done in the unsigned type, where every result is defined.
template <class T, class C> CC_FN T cc_shl_lane(T a, C n) {
  return T(cc_unsig<T>(a) << (cc_uint(n) & (sizeof(T) * 8 - 1)));
}
template <class T, class C> CC_FN T cc_shr_lane(T a, C n) { return T(a >> (cc_uint(n) & (sizeof(T) * 8 - 1))); }
template <class T, class C> CC_FN auto cc_shl(T a, C n) { return cc_shl_lane(+a, n); }
template <class T, class C> CC_FN auto cc_shr(T a, C n) { return cc_shr_lane(+a, n); }
#define CC_OP(op, f) \
  template <class T, int N, class C> CC_FN CC_V operator op(CC_V a, cc_vec<C, N> n) { CC_V r; CC_LANES(f(a.v[i], n.v[i])); } \
  CC_T CC_FN CC_V operator op(CC_V a, cc_long n) { CC_V r; CC_LANES(f(a.v[i], n)); } \
  CC_T CC_FN CC_V operator op(cc_id<T> a, CC_V n) { CC_V r; CC_LANES(f(a, n.v[i])); }
CC_OP(<<, cc_shl_lane) CC_OP(>>, cc_shr_lane)
#undef CC_OP
template <class T, int N, class C> CC_FN CC_V cc_shl(CC_V a, C n) { return a << n; }
template <class T, int N, class C> CC_FN CC_V cc_shr(CC_V a, C n) { return a >> n; }

// cc_read and cc_write read and write an object in any address space.
CC_T CC_FN CC_V cc_read(thread CC_V &a) { return a; }
CC_T CC_FN CC_V cc_read(const device CC_V &a) { return cc_get(a); }
CC_T CC_FN CC_V cc_read(const threadgroup CC_V &a) { return cc_get(a); }
CC_T CC_FN CC_V cc_write(thread CC_V &a, CC_V x) { return a = x; }
CC_T CC_FN CC_V cc_write(device CC_V &a, CC_V x) { return cc_put(a, x); }
CC_T CC_FN CC_V cc_write(threadgroup CC_V &a, CC_V x) { return cc_put(a, x); }

#define CC_OP(space, op) \
  template <class T, int N, class X> CC_FN CC_V operator op##=(space CC_V & a, X b) { return cc_write(a, cc_read(a) op b); } \
  template <class T, int N, class X> CC_FN CC_V operator op##=(volatile space CC_V & a, X b) { return cc_store(a, cc_load(a) op b); }
#define CC_STEP(space, op) \
  CC_T CC_FN CC_V operator op##op(space CC_V &a) { return cc_write(a, cc_read(a) op T(1)); } \
  CC_T CC_FN CC_V operator op##op(space CC_V &a, int) { CC_V r = cc_read(a); cc_write(a, r op T(1)); return r; } \
  CC_T CC_FN CC_V operator op##op(volatile space CC_V &a) { return cc_store(a, cc_load(a) op T(1)); } \
  CC_T CC_FN CC_V operator op##op(volatile space CC_V &a, int) { CC_V r = cc_load(a); cc_store(a, r op T(1)); return r; }

// cc_ref is a swizzle that is assigned to.
#define CC_LANES_OP(op) \
  template <class X> value operator op##=(X x) const { return *this = value(*this) op x; }
#define CC_REF(name, space) \
  template <class T, int N, int... I> struct name { \
    typedef cc_vec<T, int(sizeof...(I))> value; \
    space CC_V &r; \
    operator value() const { return {{r.v[I]...}}; } \
    value operator=(value x) const { \
      int k = 0; \
      const T put[] = {r.v[I] = x.v[k++]...}; \
      (void)put; \
      return x; \
    } \
    value operator=(T s) const { return *this = cc_splat<T, int(sizeof...(I))>(s); } \
    CC_LANES_OP(+) CC_LANES_OP(-) CC_LANES_OP(*) CC_LANES_OP(/) CC_LANES_OP(%) CC_LANES_OP(&) \
    CC_LANES_OP(|) CC_LANES_OP(^) CC_LANES_OP(<<) CC_LANES_OP(>>) \
    value operator++() const { return *this = value(*this) + T(1); } \
    value operator--() const { return *this = value(*this) - T(1); } \
    value operator++(int) const { value x = *this; *this = x + T(1); return x; } \
    value operator--(int) const { value x = *this; *this = x - T(1); return x; } \
  }; \
  template <int... I, class T, int N> CC_FN name<T, N, I...> cc_ref(space CC_V &a) { return {a}; }
CC_REF(cc_lanes_thread, thread) CC_REF(cc_lanes_device, device) CC_REF(cc_lanes_threadgroup, threadgroup)
CC_REF(cc_lanes_vthread, volatile thread) CC_REF(cc_lanes_vdevice, volatile device)
CC_REF(cc_lanes_vthreadgroup, volatile threadgroup)

#define CC_SPACE(space) \
  CC_OP(space, +) CC_OP(space, -) CC_OP(space, *) CC_OP(space, /) CC_OP(space, %) CC_OP(space, &) \
  CC_OP(space, |) CC_OP(space, ^) CC_OP(space, <<) CC_OP(space, >>) CC_STEP(space, +) CC_STEP(space, -) \
  template <class T, class C> CC_FN T cc_shl_assign(space T &a, C n) { return a = T(cc_shl(+a, n)); } \
  template <class T, class C> CC_FN T cc_shr_assign(space T &a, C n) { return a = T(cc_shr(+a, n)); } \
  template <class T, class C> CC_FN T cc_shl_assign(volatile space T &a, C n) { return a = T(cc_shl(+a, n)); } \
  template <class T, class C> CC_FN T cc_shr_assign(volatile space T &a, C n) { return a = T(cc_shr(+a, n)); }
CC_SPACE(thread) CC_SPACE(device) CC_SPACE(threadgroup)
#undef CC_SPACE
#undef CC_OP
#undef CC_STEP
#undef CC_REF
#undef CC_LANES_OP

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
