// cpp.h: what Metal defines otherwise, for the C++ targets, the host, CUDA and HIP: double, the operators of
// numbers, and half, which is a class.

namespace {

static_assert(sizeof(void *) == 8, "concord needs an LP64 target");

constexpr double cc_pi = 3.14159265358979323846;
template <> struct cc_is<double> { enum { fp = 1, sign = 1 }; };
template <> struct cc_real_<double> { typedef double type; };

// cc_as_bits is the reinterpretation that everything below uses.
template <class R, class T> CC_FN R cc_as_bits(T x) {
  static_assert(sizeof(R) == sizeof(T), "as_type needs types of one size");
  R r;
  CC_COPY(&r, &x, sizeof(r));
  return r;
}

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
  return cc_is<T>::sign && y == T(-1) ? T(cc_ulong(0) - cc_ulong(x)) : T(x / y);
}
template <class T> CC_FN T cc_rem(T x, T y) {
  if (__builtin_expect(y == T(0), 0))
    CC_FAULT_DIVIDE;
  return cc_is<T>::sign && y == T(-1) ? T(0) : T(x % y);
}
#else
template <class T> CC_FN T cc_quo(T x, T y) { return T(x / y); }
template <class T> CC_FN T cc_rem(T x, T y) { return T(x % y); }
#endif
template <class T> CC_FN T cc_div(T x, T y) {
  if constexpr (cc_is<T>::fp)
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

//@ cc_a_min cc_a_max
template <class T> CC_FN T cc_a_least(volatile T *p, T v, bool most) {
  T old = *p;
  for (;;) {
    T seen = cc_a_cas(p, old, (v < old) != most ? v : old);
    if (seen == old)
      return old;
    old = seen;
  }
}
template <class T> CC_FN T cc_a_min(volatile T *p, T v) { return cc_a_least(p, v, false); }
template <class T> CC_FN T cc_a_max(volatile T *p, T v) { return cc_a_least(p, v, true); }
//@

// ---- half ----

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
template <> struct cc_is<cc_half> { enum { fp = 1, sign = 1 }; };
//@

} // namespace
