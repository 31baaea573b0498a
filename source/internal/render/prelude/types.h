// types.h: the scalar and vector types of OpenCL C for C++ targets, vector literals, swizzles and
// casts. The host, CUDA and HIP share it. It calls no library and includes nothing. A target's own
// part comes first and defines CC_FN (how functions are declared), CC_COPY and CC_CLEAR (memcpy,
// memset), CC_INFINITY and its like (with _INIT: in the initializer of a constant), and the cc_m_
// and cc_a_ hooks.

namespace {

// Fixed widths everywhere, char is signed, long has 64 bits; size_t is ulong, the same type.
typedef bool cc_bool;
typedef signed char cc_char;
typedef unsigned char cc_uchar;
typedef short cc_short;
typedef unsigned short cc_ushort;
typedef int cc_int;
typedef unsigned int cc_uint;
typedef long cc_long;
typedef unsigned long cc_ulong;
typedef float cc_float;
typedef double cc_double;
typedef unsigned long cc_size, cc_uintptr;
typedef long cc_ptrdiff, cc_intptr;
static_assert(sizeof(cc_long) == 8 && sizeof(void *) == 8, "concord needs an LP64 target");

constexpr double cc_pi = 3.14159265358979323846;
#define CC_MAXFLOAT 0x1.fffffep127f
#define CC_NULL nullptr
#define CC_LOCAL_MEM_FENCE 1u
#define CC_GLOBAL_MEM_FENCE 2u

// cc_id keeps a parameter out of template deduction, so that a scalar converts to the lanes' type.
template <class T> struct cc_id_ { typedef T type; };
template <class T> using cc_id = typename cc_id_<T>::type;

template <bool C, class A, class B> struct cc_if_ { typedef A type; };
template <class A, class B> struct cc_if_<false, A, B> { typedef B type; };
template <bool C, class A, class B> using cc_if = typename cc_if_<C, A, B>::type;

template <class A, class B> constexpr bool cc_same = false;
template <class A> constexpr bool cc_same<A, A> = true;

// Integers of a given size, and of the size of T.
template <int Bytes> struct cc_ints;
template <> struct cc_ints<1> { typedef cc_char s; typedef cc_uchar u; };
template <> struct cc_ints<2> { typedef cc_short s; typedef cc_ushort u; };
template <> struct cc_ints<4> { typedef cc_int s; typedef cc_uint u; };
template <> struct cc_ints<8> { typedef cc_long s; typedef cc_ulong u; };
template <class T> using cc_sint = typename cc_ints<sizeof(T)>::s;
template <class T> using cc_unsig = typename cc_ints<sizeof(T)>::u;

// cc_as_bits is the reinterpretation that everything below uses.
template <class R, class T> CC_FN R cc_as_bits(T x) {
  static_assert(sizeof(R) == sizeof(T), "as_type needs types of one size");
  R r;
  CC_COPY(&r, &x, sizeof(r));
  return r;
}

// Traits of scalars.
template <class T> constexpr bool cc_is_fp = false;
template <> constexpr bool cc_is_fp<float> = true;
template <> constexpr bool cc_is_fp<double> = true;
template <class T> constexpr bool cc_is_signed = T(-1) < T(1);
template <class T> constexpr T cc_int_max =
    cc_is_signed<T> ? T((cc_ulong(1) << (sizeof(T) * 8 - 1)) - 1) : T(-1);
template <class T> constexpr T cc_int_min = T(-cc_int_max<T> - 1) * T(cc_is_signed<T>);

// Operators on values and lanes. CC_NO_NEGATIONS says why some have another form; it rounds to the same
// result: a product as fma(x, y, -0.0) keeps the sign of its zero.
template <class T> CC_FN T cc_neg(T x) { return T(-x); }
template <class T> CC_FN T cc_sub(T x, T y) { return T(x - y); }
template <class T> CC_FN T cc_mul(T x, T y) { return T(x * y); }
// Integers by zero are what the target makes of them: the host fails. Elsewhere the least integer by -1 is, too.
#ifdef CC_FAULT_DIVIDE
template <class T> CC_FN T cc_quo(T x, T y) {
  if (__builtin_expect(y == T(0), 0))
    CC_FAULT_DIVIDE;
  return cc_is_signed<T> && y == T(-1) ? T(cc_ulong(0) - cc_ulong(x)) : T(x / y);
}
template <class T> CC_FN T cc_rem(T x, T y) {
  if (__builtin_expect(y == T(0), 0))
    CC_FAULT_DIVIDE;
  return cc_is_signed<T> && y == T(-1) ? T(0) : T(x % y);
}
#else
template <class T> CC_FN T cc_quo(T x, T y) { return T(x / y); }
template <class T> CC_FN T cc_rem(T x, T y) { return T(x % y); }
#endif
template <class T> CC_FN T cc_div(T x, T y) {
  if constexpr (cc_is_fp<T>)
    return T(x / y);
  else
    return cc_quo(x, y);
}
#ifdef CC_NO_NEGATIONS
#define CC_OP(F) \
  CC_FN F cc_neg(F x) { return cc_as_bits<F>(cc_as_bits<cc_unsig<F>>(x) ^ cc_unsig<F>(1) << (8 * sizeof(F) - 1)); } \
  CC_FN F cc_sub(F x, F y) { return cc_m_fma(y, F(-1), x); } \
  CC_FN F cc_mul(F x, F y) { return cc_m_fma(x, y, F(-0.0)); } \
  CC_FN F cc_div(F x, F y) { return cc_neg(cc_neg(x) / y); }
CC_OP(float) CC_OP(double)
#undef CC_OP
#endif
// The value is computed in F, which is the result of the usual arithmetic conversions.
#define CC_OP(f) \
  template <class F, class T> CC_FN T cc_##f##_assign(T &x, F y) { return x = T(cc_##f(F(x), y)); } \
  template <class F, class T> CC_FN T cc_##f##_assign(volatile T &x, F y) { return x = T(cc_##f(F(x), y)); }
CC_OP(sub) CC_OP(mul) CC_OP(div) CC_OP(quo) CC_OP(rem)
#undef CC_OP

// ---- half ----

struct cc_half;
// What math.h has for half, where the program does.
#define CC_FOR_HALF(...)
//@ cc_half cc_half_bits
#undef CC_FOR_HALF
#define CC_FOR_HALF(...) __VA_ARGS__
#ifdef CC_HALF_CONVERTS // the target has instructions for it
CC_FN float cc_half_to_float(cc_ushort h) { return cc_m_half_to_float(h); }
CC_FN cc_ushort cc_float_to_half(float f) { return cc_m_float_to_half(f); }
#else
// Branch-free, so that loops over halves vectorize: the product with 2^112 adjusts the exponent and
// normalizes denormals; for infinities and NaNs all bits of the exponent are set.
CC_FN float cc_half_expand(cc_ushort h) {
  cc_uint bits = cc_uint(h & 0x7fffu) << 13;
  cc_uint out = cc_as_bits<cc_uint>(cc_as_bits<float>(bits) * 0x1p112f);
  out |= bits >= 0x0f800000u ? 0x7f800000u : 0u;
  return cc_as_bits<float>(out | cc_uint(h & 0x8000u) << 16);
}

// To nearest, ties to even.
CC_FN cc_ushort cc_half_round(float f) {
  cc_uint u = cc_as_bits<cc_uint>(f), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
  // Denormal halves: adding 0.5 makes the addition round at the right bit.
  cc_uint small = cc_as_bits<cc_uint>(cc_as_bits<float>(a) + 0.5f) - 0x3f000000u;
  cc_uint normal = (a + 0xc8000fffu + ((a >> 13) & 1u)) >> 13; // rebias by -112, round to even
  cc_uint big = a > 0x7f800000u ? 0x7e00u | ((a >> 13) & 0x1ffu) : 0x7c00u;
  cc_uint h = a < 0x38800000u ? small : normal;
  return cc_ushort(sign | (a >= 0x47800000u ? big : h));
}

#if defined(__x86_64__) && defined(__AVX2__) && defined(__F16C__) && defined(__GNUC__) && !defined(__clang__)
// GCC 12 does not vectorize by the processor's instructions for half, and with AVX2 not the functions above. But in a loop it
// calls the vector forms of a function that is declared to have them, by names of the x86-64 vector ABI: b, c, d, e are
// SSE, AVX, AVX2, AVX-512, with so many lanes. AVX has 4 lanes of ints, and GCC calls that form of rounding before SSE's; it has
// 8 of floats, for which AVX2's form of expanding comes first. Bits are in ints, since GCC refuses shorter arguments.
extern "C" {
__attribute__((simd("notinbranch"), const, visibility("hidden"))) float cc_x86_expand(int h);
__attribute__((simd("notinbranch"), const, visibility("hidden"))) int cc_x86_round(float f);

typedef short cc_x86_h8 __attribute__((vector_size(16)));
typedef int cc_x86_i4 __attribute__((vector_size(16)));
typedef int cc_x86_i8 __attribute__((vector_size(32)));
typedef float cc_x86_f4 __attribute__((vector_size(16)));
typedef float cc_x86_f8 __attribute__((vector_size(32)));
#define CC_X86(name) asm(name) __attribute__((used, visibility("hidden")))
float cc_x86_expand_1(int h) CC_X86("cc_x86_expand");
float cc_x86_expand_1(int h) { return __builtin_ia32_vcvtph2ps(cc_x86_h8{short(h)})[0]; }
int cc_x86_round_1(float f) CC_X86("cc_x86_round");
int cc_x86_round_1(float f) { return (unsigned short)__builtin_ia32_vcvtps2ph(cc_x86_f4{f}, 0)[0]; }
cc_x86_f4 cc_x86_expand_4(cc_x86_i4 h) CC_X86("_ZGVbN4v_cc_x86_expand");
cc_x86_f4 cc_x86_expand_4(cc_x86_i4 h) { return __builtin_ia32_vcvtph2ps(__builtin_ia32_packusdw128(h, h)); }
cc_x86_i4 cc_x86_round_4(cc_x86_f4 f) CC_X86("_ZGVbN4v_cc_x86_round");
cc_x86_i4 cc_x86_round_4(cc_x86_f4 f) { return __builtin_ia32_pmovzxwd128(__builtin_ia32_vcvtps2ph(f, 0)); }
cc_x86_i4 cc_x86_round_c4(cc_x86_f4 f) CC_X86("_ZGVcN4v_cc_x86_round");
cc_x86_i4 cc_x86_round_c4(cc_x86_f4 f) { return cc_x86_round_4(f); }
cc_x86_f8 cc_x86_expand_8(cc_x86_i8 h) CC_X86("_ZGVdN8v_cc_x86_expand");
cc_x86_f8 cc_x86_expand_8(cc_x86_i8 h) { return __builtin_ia32_vcvtph2ps256(__builtin_convertvector(h, cc_x86_h8)); }
cc_x86_i8 cc_x86_round_8(cc_x86_f8 f) CC_X86("_ZGVdN8v_cc_x86_round");
cc_x86_i8 cc_x86_round_8(cc_x86_f8 f) { return __builtin_ia32_pmovzxwd256(__builtin_ia32_vcvtps2ph256(f, 0)); }
#ifdef __AVX512F__
typedef short cc_x86_h16 __attribute__((vector_size(32)));
typedef int cc_x86_i16 __attribute__((vector_size(64)));
typedef float cc_x86_f16 __attribute__((vector_size(64)));
cc_x86_f16 cc_x86_expand_16(cc_x86_i16 h) CC_X86("_ZGVeN16v_cc_x86_expand");
cc_x86_f16 cc_x86_expand_16(cc_x86_i16 h) {
  return __builtin_ia32_vcvtph2ps512_mask(__builtin_convertvector(h, cc_x86_h16), cc_x86_f16{}, -1, 4);
}
cc_x86_i16 cc_x86_round_16(cc_x86_f16 f) CC_X86("_ZGVeN16v_cc_x86_round");
cc_x86_i16 cc_x86_round_16(cc_x86_f16 f) {
  typedef unsigned short bits __attribute__((vector_size(32)));
  return __builtin_convertvector((bits)__builtin_ia32_vcvtps2ph512_mask(f, 0, cc_x86_h16{}, -1), cc_x86_i16);
}
#endif
#undef CC_X86
}
CC_FN float cc_half_to_float(cc_ushort h) { return __builtin_constant_p(h) ? cc_half_expand(h) : cc_x86_expand(h); }
CC_FN cc_ushort cc_float_to_half(float f) { return __builtin_constant_p(f) ? cc_half_round(f) : cc_ushort(cc_x86_round(f)); }
#else
CC_FN float cc_half_to_float(cc_ushort h) { return cc_half_expand(h); }
CC_FN cc_ushort cc_float_to_half(float f) { return cc_half_round(f); }
#endif
#endif

// A double is converted by way of float without rounding twice: the part that float cannot hold is
// folded into its last bit (round to odd), so that the second rounding is correct.
CC_FN float cc_double_to_odd(double d) {
  float f = float(d);
  cc_uint u = cc_as_bits<cc_uint>(f);
  double back = double(f);
  if (back == d || d != d)
    return f;
  double ad = d < 0 ? -d : d, ab = back < 0 ? -back : back;
  if (ab > ad)
    u--; // towards zero; an infinity becomes the largest float
  return cc_as_bits<float>(u | 1u);
}

// The bits of a half, for constants: they are known when the program is rendered.
struct cc_half_bits { cc_ushort bits; };
struct cc_half {
  cc_ushort bits;
  cc_half() = default;
  CC_FN constexpr cc_half(cc_half_bits b) : bits(b.bits) {}
  CC_FN cc_half(float f) : bits(cc_float_to_half(f)) {}
  CC_FN cc_half(double d) : bits(cc_float_to_half(cc_double_to_odd(d))) {}
  CC_FN cc_half(cc_int i) : cc_half(double(i)) {}
  CC_FN cc_half(cc_uint i) : cc_half(double(i)) {}
  CC_FN cc_half(cc_long i) : cc_half(double(i)) {} // beyond 2^53 it is infinite anyway
  CC_FN cc_half(cc_ulong i) : cc_half(double(i)) {}
  CC_FN operator float() const { return cc_half_to_float(bits); }
};
#define CC_OP(op) \
  CC_FN cc_half operator op(cc_half a, cc_half b) { return cc_half(float(a) op float(b)); } \
  CC_FN cc_half &operator op##=(cc_half &a, cc_half b) { return a = a op b; } \
  CC_FN cc_half operator op##=(volatile cc_half &a, cc_half b) { \
    cc_half r; \
    r.bits = a.bits; \
    r = r op b; \
    a.bits = r.bits; \
    return r; \
  }
CC_OP(+) CC_OP(-) CC_OP(*) CC_OP(/)
#undef CC_OP
CC_FN cc_half operator-(cc_half a) { a.bits ^= 0x8000; return a; }
template <> constexpr bool cc_is_fp<cc_half> = true;
template <> constexpr bool cc_is_signed<cc_half> = true;
//@

// ---- vectors ----

//@ cc_load cc_store
// cc_load and cc_store copy a volatile vector or record, in words of its alignment.
template <class T> using cc_word =
    cc_if<alignof(T) % 8 == 0, cc_ulong,
          cc_if<alignof(T) % 4 == 0, cc_uint, cc_if<alignof(T) % 2 == 0, cc_ushort, cc_uchar>>>;
template <class T> CC_FN T cc_load(const volatile T &x) {
  T r;
  for (cc_size i = 0; i < sizeof(T) / sizeof(cc_word<T>); i++)
    ((cc_word<T> *)&r)[i] = ((const volatile cc_word<T> *)&x)[i];
  return r;
}
template <class T> CC_FN T cc_store(volatile T &x, const cc_id<T> &o) {
  T r = o;
  for (cc_size i = 0; i < sizeof(T) / sizeof(cc_word<T>); i++)
    ((volatile cc_word<T> *)&x)[i] = ((const cc_word<T> *)&r)[i];
  return r;
}
//@

template <class T, int N> struct cc_vec;
#define CC_LANES(expr) \
  for (int i = 0; i < N; i++) \
    r.v[i] = (expr); \
  return r
#define CC_T template <class T, int N>
#define CC_V cc_vec<T, N>
#define CC_B cc_vec<cc_sint<T>, N> // what comparisons give: lanes of 0 and -1

//@ cc_vec CC_VECTORS
// cc_vec has OpenCL's size and alignment (three lanes take the room of four); lanes are an array, so
// that pointers into a vector work. It is an aggregate with no constructors: only those can be
// members of unions and of packed structs.
template <class T, int N> struct alignas(sizeof(T) * (N == 3 ? 4 : N)) cc_vec {
  T v[N == 3 ? 4 : N];
  typedef T lane;
  static constexpr int lanes = N;
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

//@ cc_vec cc_lane_of cc_width_of cc_splat cc_make cc_swz cc_ref cc_select_vec cc_vec_step
// cc_lane_of<V>: the scalar of a vector, a scalar itself; cc_width_of<V>: its lanes.
template <class V> struct cc_lane_ { typedef V type; static constexpr int n = 1; };
template <class T, int N> struct cc_lane_<cc_vec<T, N>> { typedef T type; static constexpr int n = N; };
template <class V> using cc_lane_of = typename cc_lane_<V>::type;
template <class V> constexpr int cc_width_of = cc_lane_<V>::n;

template <class T, int N> CC_FN constexpr cc_vec<T, N> cc_splat(cc_id<T> s) {
  cc_vec<T, N> r{};
  for (int i = 0; i < N; i++)
    r.v[i] = s;
  return r;
}

// cc_make is the vector literal (float4)(a, b.xy, 1): one scalar fills all lanes.
template <class T, int N, class S>
CC_FN constexpr void cc_put(cc_vec<T, N> &r, int &k, const S &s) {
  if (k < N)
    r.v[k++] = T(s);
}
template <class T, int N, int M>
CC_FN constexpr void cc_put(cc_vec<T, N> &r, int &k, const cc_vec<T, M> &s) {
  for (int i = 0; i < M && k < N; i++)
    r.v[k++] = s.v[i];
}
template <class V, class... A> CC_FN constexpr V cc_make(const A &...a) {
  V r{};
  int k = 0;
  (cc_put(r, k, a), ...);
  if (sizeof...(A) == 1)
    for (; k < V::lanes; k++)
      r.v[k] = r.v[0];
  return r;
}

// cc_swz reads a swizzle of two or more lanes: a value.
template <int... I, class T, int N>
CC_FN constexpr cc_vec<T, int(sizeof...(I))> cc_swz(cc_vec<T, N> a) {
  cc_vec<T, int(sizeof...(I))> r{};
  int k = 0;
  ((r.v[k++] = a.v[I]), ...);
  return r;
}

// cc_ref is a swizzle that is assigned to. V may be volatile.
template <class V, class T, int... I> struct cc_lanes {
  typedef cc_vec<T, int(sizeof...(I))> value;
  V &r;
  CC_FN operator value() const {
    value x{};
    int k = 0;
    ((x.v[k++] = r.v[I]), ...);
    return x;
  }
  CC_FN value operator=(value x) const {
    int k = 0;
    ((r.v[I] = x.v[k++]), ...);
    return x;
  }
  CC_FN value operator=(T s) const { return *this = cc_splat<T, int(sizeof...(I))>(s); }
  CC_FN value operator=(const cc_lanes &o) const { return *this = value(o); }
#define CC_OP(op) \
  template <class X> CC_FN value operator op##=(X x) const { return *this = value(*this) op x; }
  CC_OP(+) CC_OP(-) CC_OP(*) CC_OP(/) CC_OP(%) CC_OP(&) CC_OP(|) CC_OP(^) CC_OP(<<) CC_OP(>>)
#undef CC_OP
  CC_FN value operator++() const { return *this = value(*this) + T(1); }
  CC_FN value operator--() const { return *this = value(*this) - T(1); }
  CC_FN value operator++(int) const { value x = *this; *this = x + T(1); return x; }
  CC_FN value operator--(int) const { value x = *this; *this = x - T(1); return x; }
};
template <int... I, class T, int N>
CC_FN cc_lanes<cc_vec<T, N>, T, I...> cc_ref(cc_vec<T, N> &a) { return {a}; }
template <int... I, class T, int N>
CC_FN cc_lanes<volatile cc_vec<T, N>, T, I...> cc_ref(volatile cc_vec<T, N> &a) { return {a}; }

//@ cc_cast cc_vec
// cc_cast is the C cast: a vector to itself, a scalar to all lanes. true becomes all bits set in
// integer lanes.
template <class V, class S> struct cc_cast_ {
  static CC_FN constexpr V to(const S &s) { return V(s); }
};
template <class T, int N, class S> struct cc_cast_<cc_vec<T, N>, S> {
  static CC_FN constexpr cc_vec<T, N> to(const S &s) {
    return cc_splat<T, N>(cc_same<S, bool> && !cc_is_fp<T> ? T(-T(s)) : T(s));
  }
};
template <class T, int N> struct cc_cast_<cc_vec<T, N>, cc_vec<T, N>> {
  static CC_FN constexpr cc_vec<T, N> to(const cc_vec<T, N> &s) { return s; }
};
template <class V, class S> CC_FN constexpr V cc_cast(S s) { return cc_cast_<V, S>::to(s); }

template <class V> CC_FN constexpr cc_int cc_vec_step(const V &) {
  return cc_width_of<V> == 3 ? 4 : cc_width_of<V>;
}

// ---- operators ----

#define CC_ASSIGN(op) \
  CC_T CC_FN CC_V &operator op##=(CC_V & a, CC_V b) { return a = a op b; } \
  CC_T CC_FN CC_V &operator op##=(CC_V & a, cc_id<T> b) { return a = a op b; } \
  CC_T CC_FN CC_V operator op##=(volatile CC_V & a, CC_V b) { return cc_store(a, cc_load(a) op b); } \
  CC_T CC_FN CC_V operator op##=(volatile CC_V & a, cc_id<T> b) { return cc_store(a, cc_load(a) op b); }
#define CC_OP(op) \
  CC_T CC_FN CC_V operator op(CC_V a, CC_V b) { CC_V r; CC_LANES(T(a.v[i] op b.v[i])); } \
  CC_T CC_FN CC_V operator op(CC_V a, cc_id<T> b) { CC_V r; CC_LANES(T(a.v[i] op b)); } \
  CC_T CC_FN CC_V operator op(cc_id<T> a, CC_V b) { CC_V r; CC_LANES(T(a op b.v[i])); } \
  CC_ASSIGN(op)
CC_OP(+) CC_OP(&) CC_OP(|) CC_OP(^)
#undef CC_OP
#define CC_OP(op, f) \
  CC_T CC_FN CC_V operator op(CC_V a, CC_V b) { CC_V r; CC_LANES(f(a.v[i], b.v[i])); } \
  CC_T CC_FN CC_V operator op(CC_V a, cc_id<T> b) { CC_V r; CC_LANES(f(a.v[i], b)); } \
  CC_T CC_FN CC_V operator op(cc_id<T> a, CC_V b) { CC_V r; CC_LANES(f(a, b.v[i])); } \
  CC_ASSIGN(op)
CC_OP(-, cc_sub) CC_OP(*, cc_mul) CC_OP(/, cc_div) CC_OP(%, cc_rem)
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
CC_T CC_FN CC_V operator-(CC_V a) { CC_V r; CC_LANES(cc_neg(a.v[i])); }
CC_T CC_FN CC_V operator+(CC_V a) { return a; }
CC_T CC_FN CC_V &operator++(CC_V &a) { return a = a + T(1); }
CC_T CC_FN CC_V &operator--(CC_V &a) { return a = a - T(1); }
CC_T CC_FN CC_V operator++(CC_V &a, int) { CC_V r = a; a = a + T(1); return r; }
CC_T CC_FN CC_V operator--(CC_V &a, int) { CC_V r = a; a = a - T(1); return r; }
CC_T CC_FN CC_V operator++(volatile CC_V &a) { return cc_store(a, cc_load(a) + T(1)); }
CC_T CC_FN CC_V operator--(volatile CC_V &a) { return cc_store(a, cc_load(a) - T(1)); }
CC_T CC_FN CC_V operator++(volatile CC_V &a, int) { CC_V r = cc_load(a); cc_store(a, r + T(1)); return r; }
CC_T CC_FN CC_V operator--(volatile CC_V &a, int) { CC_V r = cc_load(a); cc_store(a, r - T(1)); return r; }

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
template <class T, class C> CC_FN T cc_shl_assign(T &a, C n) { return a = T(cc_shl(+a, n)); }
template <class T, class C> CC_FN T cc_shr_assign(T &a, C n) { return a = T(cc_shr(+a, n)); }
//@ cc_vec
#define CC_OP(op, f) \
  template <class T, int N, class C> CC_FN CC_V operator op(CC_V a, cc_vec<C, N> n) { CC_V r; CC_LANES(f(a.v[i], n.v[i])); } \
  CC_T CC_FN CC_V operator op(CC_V a, cc_long n) { CC_V r; CC_LANES(f(a.v[i], n)); } \
  CC_T CC_FN CC_V operator op(cc_id<T> a, CC_V n) { CC_V r; CC_LANES(f(a, n.v[i])); } \
  template <class T, int N, class C> CC_FN CC_V &operator op##=(CC_V &a, C n) { return a = a op n; } \
  template <class T, int N, class C> CC_FN CC_V operator op##=(volatile CC_V &a, C n) { return cc_store(a, cc_load(a) op n); }
CC_OP(<<, cc_shl_lane) CC_OP(>>, cc_shr_lane)
#undef CC_OP
template <class T, int N, class C> CC_FN CC_V cc_shl(CC_V a, C n) { return a << n; }
template <class T, int N, class C> CC_FN CC_V cc_shr(CC_V a, C n) { return a >> n; }

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
} // namespace
