// AVX2 with FMA and F16C. Of its 16 registers, 6×2 hold results of a product.
#include "simd.h"

#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif

#define IN static inline __attribute__((always_inline, unused))

typedef __m256 f32_v;
typedef __m256i f32_m;
typedef __m256d f64_v;
typedef __m256i f64_m;
enum { f32_W = 8, f64_W = 4 };

#include "page.h"

IN f32_v f32_zero(void) { return _mm256_setzero_ps(); }
IN f32_v f32_set(float x) { return _mm256_set1_ps(x); }
IN f32_v f32_load(const float *p) { return _mm256_loadu_ps(p); }
IN void f32_store(float *p, f32_v v) { _mm256_storeu_ps(p, v); }
IN f32_m f32_first(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
IN f32_v f32_loadm(const float *p, f32_m m) {
  if (near_page_end(p, 32))
    return _mm256_mask_i32gather_ps(_mm256_setzero_ps(), p, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_castsi256_ps(m), 4);
  return _mm256_maskload_ps(p, m);
}
// Loads lanes a to b - 1 of a register, with zeros in the others.
IN f32_v f32_loads(const float *p, int64_t a, int64_t b) { return f32_loadm(p, _mm256_andnot_si256(f32_first(a), f32_first(b))); }
IN void f32_storem(float *p, f32_m m, f32_v v) {
  float x[8];
  int n = __builtin_popcount((unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(m)));
  _mm256_storeu_ps(x, v);
  for (int i = 0; i < n; i++)
    p[i] = x[i];
}
IN f32_v f32_mul(f32_v a, f32_v b) { return _mm256_mul_ps(a, b); }
IN f32_v f32_fma(f32_v a, f32_v b, f32_v c) { return _mm256_fmadd_ps(a, b, c); }
IN f32_v f32_add(f32_v a, f32_v b) { return _mm256_add_ps(a, b); }
IN float f32_sum(f32_v v) {
  __m128 x = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  x = _mm_add_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}

IN f64_v f64_zero(void) { return _mm256_setzero_pd(); }
IN f64_v f64_set(double x) { return _mm256_set1_pd(x); }
IN f64_v f64_load(const double *p) { return _mm256_loadu_pd(p); }
IN void f64_store(double *p, f64_v v) { _mm256_storeu_pd(p, v); }
IN f64_m f64_first(int64_t n) { return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3)); }
IN f64_v f64_loadm(const double *p, f64_m m) {
  if (near_page_end(p, 32))
    return _mm256_mask_i32gather_pd(_mm256_setzero_pd(), p, _mm_setr_epi32(0, 1, 2, 3), _mm256_castsi256_pd(m), 8);
  return _mm256_maskload_pd(p, m);
}
IN void f64_storem(double *p, f64_m m, f64_v v) {
  double x[4];
  int n = __builtin_popcount((unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(m)));
  _mm256_storeu_pd(x, v);
  for (int i = 0; i < n; i++)
    p[i] = x[i];
}
IN f64_v f64_mul(f64_v a, f64_v b) { return _mm256_mul_pd(a, b); }
IN f64_v f64_fma(f64_v a, f64_v b, f64_v c) { return _mm256_fmadd_pd(a, b, c); }
IN f64_v f64_add(f64_v a, f64_v b) { return _mm256_add_pd(a, b); }
IN double f64_sum(f64_v v) {
  __m128d x = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
  return _mm_cvtsd_f64(_mm_add_sd(x, _mm_unpackhi_pd(x, x)));
}

// The elements of a pair of registers with even and with odd numbers.
IN f32_v f32_evens(f32_v a, f32_v b) {
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88)), 0xd8));
}
IN f32_v f32_odds(f32_v a, f32_v b) {
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xdd)), 0xd8));
}
IN f64_v f64_evens(f64_v a, f64_v b) { return _mm256_permute4x64_pd(_mm256_unpacklo_pd(a, b), 0xd8); }
// The elements of two registers in turn: the first and the second register of these.
IN f32_v f32_zip0(f32_v a, f32_v b) { return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x20); }
IN f32_v f32_zip1(f32_v a, f32_v b) { return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x31); }
IN f64_v f64_zip0(f64_v a, f64_v b) { return _mm256_permute2f128_pd(_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b), 0x20); }
IN f64_v f64_zip1(f64_v a, f64_v b) { return _mm256_permute2f128_pd(_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b), 0x31); }
IN f32_v f32_sub(f32_v a, f32_v b) { return _mm256_sub_ps(a, b); }
IN f32_v f32_minus(f32_v a, const float *p) { return _mm256_sub_ps(a, _mm256_broadcast_ss(p)); }
IN f32_v f32_div(f32_v a, f32_v b) { return _mm256_div_ps(a, b); }
IN f32_v f32_roots(f32_v v) { return _mm256_sqrt_ps(v); }
IN f64_v f64_roots(f64_v v) { return _mm256_sqrt_pd(v); }
IN f64_v f64_sub(f64_v a, f64_v b) { return _mm256_sub_pd(a, b); }
IN f64_v f64_div(f64_v a, f64_v b) { return _mm256_div_pd(a, b); }
// past stores a register without reading its line into the caches; p is aligned.
IN void f32_past(float *p, f32_v v) { _mm256_stream_ps(p, v); }
IN void f64_past(double *p, f64_v v) { _mm256_stream_pd(p, v); }
IN void past_end(void) { _mm_sfence(); }
IN f32_v f32_max(f32_v a, f32_v b) { return _mm256_max_ps(a, b); }
IN float f32_largest(f32_v v) {
  __m128 x = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  x = _mm_max_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}
IN f32_v f32_near(f32_v v) { return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
// scale returns v·2^n in two steps. n is a whole number from -252 to 254.
IN f32_v f32_scale(f32_v v, f32_v n) {
  __m256i i = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(i, 1), rest = _mm256_sub_epi32(i, half), bias = _mm256_set1_epi32(127);
  v = _mm256_mul_ps(v, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23)));
  return _mm256_mul_ps(v, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23)));
}

// Operations on 32 differences of bytes, and on sums of the squares of four of them.
typedef __m256i i8_sums;
enum { i8_W = 32 };
IN i8_sums i8_zero(void) { return _mm256_setzero_si256(); }
IN __m256i i8_load(const int8_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
IN __m256i i8_far(__m256i a, __m256i b) { return _mm256_sub_epi8(_mm256_max_epi8(a, b), _mm256_min_epi8(a, b)); }
IN __m256i i8_both(__m256i a, __m256i b) { return _mm256_and_si256(a, b); }
IN i8_sums i8_square(__m256i far, i8_sums s) {
  __m256i even = _mm256_and_si256(far, _mm256_set1_epi16(255)), odd = _mm256_srli_epi16(far, 8);
  return _mm256_add_epi32(s, _mm256_add_epi32(_mm256_madd_epi16(even, even), _mm256_madd_epi16(odd, odd)));
}
IN i8_sums i8_product(__m256i a, __m256i b, i8_sums s) {
  __m256i even = _mm256_madd_epi16(_mm256_srai_epi16(_mm256_slli_epi16(a, 8), 8), _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8));
  return _mm256_add_epi32(s, _mm256_add_epi32(even, _mm256_madd_epi16(_mm256_srai_epi16(a, 8), _mm256_srai_epi16(b, 8))));
}
IN f32_v i8_floats(i8_sums s) { return _mm256_cvtepi32_ps(s); }
IN i8_sums i8_sub(i8_sums a, i8_sums b) { return _mm256_sub_epi32(a, b); }
IN i8_sums i8_add(i8_sums a, i8_sums b) { return _mm256_add_epi32(a, b); }
IN int64_t i8_sum(i8_sums s) {
  int32_t x[8];
  int64_t sum = 0;
  _mm256_storeu_si256((__m256i *)x, s);
  for (int i = 0; i < 8; i++)
    sum += x[i];
  return sum;
}

IN f32_v f32_from_f16(const uint16_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
IN void f32_to_f16(uint16_t *p, f32_v v) { _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)); }
IN f32_v f32_from_bf16(const uint16_t *p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
}
IN void f32_to_bf16(uint16_t *p, f32_v v) {
  __m256i u = _mm256_castps_si256(v);
  __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
  __m256i near = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  near = _mm256_blendv_epi8(near, _mm256_or_si256(u, _mm256_set1_epi32(0x400000)), nan);
  near = _mm256_srli_epi32(near, 16);
  _mm_storeu_si128((__m128i *)p, _mm_packus_epi32(_mm256_castsi256_si128(near), _mm256_extracti128_si256(near, 1)));
}

// fold returns the sums of the lanes of each of W registers, in order. It adds the halves of two
// registers into one register, then the quarters, and so on.
#define FOLD(NAME, V, ADD, TO, FROM)                                                               \
  IN V NAME##_lanes(V a, V b) {                                                                    \
    return ADD(FROM(_mm256_permute2f128_ps(TO(a), TO(b), 0x20)), FROM(_mm256_permute2f128_ps(TO(a), TO(b), 0x31))); \
  }                                                                                                \
  IN V NAME##_pair(V a, V b) { return ADD(FROM(_mm256_unpacklo_ps(TO(a), TO(b))), FROM(_mm256_unpackhi_ps(TO(a), TO(b)))); } \
  IN V NAME(const V *s) {                                                                          \
    __m256 x = TO(NAME##_pair(NAME##_lanes(s[0], s[4]), NAME##_lanes(s[1], s[5])));                \
    __m256 y = TO(NAME##_pair(NAME##_lanes(s[2], s[6]), NAME##_lanes(s[3], s[7])));                \
    return ADD(FROM(_mm256_shuffle_ps(x, y, 0x44)), FROM(_mm256_shuffle_ps(x, y, 0xee)));          \
  }
FOLD(f32_fold, __m256, _mm256_add_ps, , )
FOLD(i8_folded, __m256i, _mm256_add_epi32, _mm256_castsi256_ps, _mm256_castps_si256)
#undef FOLD

// Registers of bytes: the codes up to most of bits from a shift on, sums of pairs of products of codes and bytes in 16 bits, and of pairs of those in 32.
typedef __m256i b8_v;
enum { b8_BYTES = 32 };
IN b8_v b8_zero(void) { return _mm256_setzero_si256(); }
IN b8_v b8_load(const void *p) { return _mm256_loadu_si256(p); }
#define b8_codes(v, shift, most) _mm256_and_si256(_mm256_srli_epi16(v, shift), _mm256_set1_epi8(most))
IN b8_v b8_pairs(b8_v codes, b8_v x) { return _mm256_maddubs_epi16(codes, x); }
IN b8_v b8_add16(b8_v a, b8_v b) { return _mm256_add_epi16(a, b); }
// For codes: a table of 16 bytes in each 128 bits, the bytes of it that indices below 16 choose, sums of bytes, and numbers of 16 bits: the high bytes of each, the low ones
// as high ones, and whether one of x is at most its number of y.
IN b8_v b8_table(const uint8_t *p) { return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p)); }
IN b8_v b8_look(b8_v table, b8_v at) { return _mm256_shuffle_epi8(table, at); }
IN b8_v b8_add8(b8_v a, b8_v b) { return _mm256_add_epi8(a, b); }
IN b8_v b8_high16(b8_v v) { return _mm256_srli_epi16(v, 8); }
IN b8_v b8_left16(b8_v v) { return _mm256_slli_epi16(v, 8); }
IN b8_v b8_sub16(b8_v a, b8_v b) { return _mm256_sub_epi16(a, b); }
IN b8_v b8_min16(b8_v a, b8_v b) { return _mm256_min_epi16(a, b); }
IN b8_v b8_set16(int16_t x) { return _mm256_set1_epi16(x); }
IN int b8_upto16(b8_v x, b8_v y) { return ~_mm256_movemask_epi8(_mm256_cmpgt_epi16(x, y)) != 0; }
IN void b8_store(void *p, b8_v v) { _mm256_storeu_si256(p, v); }
IN b8_v b8_wide(b8_v v) { return _mm256_madd_epi16(v, _mm256_set1_epi16(1)); }
IN int32_t b8_sum(b8_v v) {
  __m128i x = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  x = _mm_add_epi32(x, _mm_unpackhi_epi64(x, x));
  return _mm_cvtsi128_si32(_mm_add_epi32(x, _mm_shuffle_epi32(x, 1)));
}

// The words of a product of bytes: pairs of 16-bit numbers.
typedef __m256i i8pair_v;
typedef __m256i i8pair_m;
enum { i8pair_W = 8 };
IN i8pair_v i8pair_zero(void) { return _mm256_setzero_si256(); }
IN i8pair_v i8pair_set(int32_t x) { return _mm256_set1_epi32(x); }
IN i8pair_v i8pair_load(const int32_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
IN void i8pair_store(int32_t *p, i8pair_v v) { _mm256_storeu_si256((__m256i *)p, v); }
IN i8pair_m i8pair_first(int64_t n) { return f32_first(n); }
IN i8pair_v i8pair_mul(i8pair_v a, i8pair_v b) { return _mm256_mullo_epi32(a, b); }
IN i8pair_v i8pair_step(i8pair_v a, i8pair_v b, i8pair_v c) { return _mm256_add_epi32(c, _mm256_madd_epi16(a, b)); }
// For squared distances: loading W words, converting stored numbers to words, subtracting the
// squares of words from a sum, transposing W rows of W, and adding the product with a word of a
// query.
IN i8pair_v i8pair_l2_word(const int8_t *p) { return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p)); }
IN i8pair_v i8pair_l2_offset(i8pair_v x) { return x; }
IN i8pair_v i8pair_l2_less(i8pair_v s, i8pair_v x) { return _mm256_sub_epi32(s, _mm256_madd_epi16(x, x)); }
// The addition is inline assembly, because gcc would copy all sums of a tile between registers.
IN i8pair_v i8pair_l2_step(i8pair_v v, const int32_t *q, i8pair_v s) {
  __asm__("vpaddd %1, %0, %0" : "+x"(s) : "x"(_mm256_madd_epi16(v, i8pair_set(*q))));
  return s;
}
IN void i8pair_turn(i8pair_v *x) {
  __m256i t[8];
  _Pragma("GCC unroll 2") for (int i = 0; i < 8; i += 4) { // rows of 4 in each half of registers
    __m256i a = _mm256_unpacklo_epi32(x[i], x[i + 1]), b = _mm256_unpackhi_epi32(x[i], x[i + 1]);
    __m256i c = _mm256_unpacklo_epi32(x[i + 2], x[i + 3]), d = _mm256_unpackhi_epi32(x[i + 2], x[i + 3]);
    t[i] = _mm256_unpacklo_epi64(a, c), t[i + 1] = _mm256_unpackhi_epi64(a, c);
    t[i + 2] = _mm256_unpacklo_epi64(b, d), t[i + 3] = _mm256_unpackhi_epi64(b, d);
  }
  _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++)
    x[i] = _mm256_permute2x128_si256(t[i], t[i + 4], 0x20), x[i + 4] = _mm256_permute2x128_si256(t[i], t[i + 4], 0x31);
}

// The words of a product of bytes if the processor has AVX-VNNI: four bytes. The file is not compiled for it, so that the instruction is inline
// assembly. Its bytes are written from the numbers of the registers, as assemblers older than binutils 2.36 do not know it.
__asm__(".macro concord_vpdpbusd b, a, c\n"
        ".irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"
        ".ifc \\a, %ymm\\number\n.set .Lconcord_a, \\number\n.endif\n"
        ".ifc \\b, %ymm\\number\n.set .Lconcord_b, \\number\n.endif\n"
        ".ifc \\c, %ymm\\number\n.set .Lconcord_c, \\number\n.endif\n"
        ".endr\n"
        ".byte 0xc4, 0xe2 - .Lconcord_c / 8 * 128 - .Lconcord_b / 8 * 32, 0x7d - .Lconcord_a * 8, 0x50, 0xc0 + .Lconcord_c % 8 * 8 + .Lconcord_b % 8\n"
        ".endm");
typedef __m256i i8four_v;
typedef __m256i i8four_m;
enum { i8four_W = 8 };
#define i8four_zero i8pair_zero
#define i8four_set i8pair_set
#define i8four_load i8pair_load
#define i8four_store i8pair_store
#define i8four_first i8pair_first
#define i8four_mul i8pair_mul
IN i8four_v i8four_step(i8four_v a, i8four_v b, i8four_v c) {
  __asm__("concord_vpdpbusd %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));
  return c;
}
#define i8four_turn i8pair_turn
IN i8four_v i8four_l2_word(const int8_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
IN i8four_v i8four_l2_offset(i8four_v x) { return _mm256_xor_si256(x, _mm256_set1_epi8(-128)); }
IN i8four_v i8four_l2_less(i8four_v s, i8four_v x) {
  x = _mm256_abs_epi8(x); // up to 128, which as a signed byte is -128
  return i8four_step(x, _mm256_sub_epi8(_mm256_setzero_si256(), x), s);
}
IN i8four_v i8four_l2_step(i8four_v v, const int32_t *q, i8four_v s) { return i8four_step(v, i8pair_set(*q), s); }
#define HAVE_I8FOUR

#include "x86.h"

// Operations for the kernels whose speed is limited by memory.

#define LIKE_256(T, S, V)                                                                          \
  IN V T##_less(V a, V b, V x, V y) { return _mm256_blendv_##S(y, x, _mm256_cmp_##S(a, b, _CMP_LT_OQ)); } \
  IN unsigned T##_lessbits(V a, V b) { return (unsigned)_mm256_movemask_##S(_mm256_cmp_##S(a, b, _CMP_LT_OQ)); } \
  IN V T##_beats(V y, V m, V p, V q) {                                                             \
    return _mm256_blendv_##S(q, p, _mm256_and_##S(_mm256_cmp_##S(m, m, _CMP_ORD_Q), _mm256_cmp_##S(y, m, _CMP_NLE_UQ))); \
  }                                                                                                \
  IN V T##_larger(V a, V b) { return _mm256_blendv_##S(_mm256_max_##S(a, b), a, _mm256_cmp_##S(a, a, _CMP_UNORD_Q)); } \
  IN V T##_smaller(V a, V b) { return _mm256_blendv_##S(_mm256_min_##S(a, b), a, _mm256_cmp_##S(a, a, _CMP_UNORD_Q)); } \
  IN V T##_min(V a, V b) { return _mm256_min_##S(a, b); }
LIKE_256(f32, ps, f32_v)
LIKE_256(f64, pd, f64_v)
#undef LIKE_256
IN f32_v f32_read(const float *p) { return f32_load(p); }
IN f64_v f64_read(const double *p) { return f64_load(p); }
IN double f64_largest(f64_v v) {
  __m128d x = _mm_max_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
  return _mm_cvtsd_f64(_mm_max_sd(x, _mm_unpackhi_pd(x, x)));
}
IN f32_v f32_ratio(f32_v a, f32_v b) { return _mm256_div_ps(a, b); }
IN f64_v f64_max(f64_v a, f64_v b) { return _mm256_max_pd(a, b); }
IN f64_v f64_near(f64_v v) { return _mm256_round_pd(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
// scale returns v·2^n in two steps. n is a whole number from -2044 to 2046.
IN f64_v f64_scale(f64_v v, f64_v n) {
  __m128i i = _mm256_cvtpd_epi32(n), half = _mm_srai_epi32(i, 1), rest = _mm_sub_epi32(i, half);
  __m256i bias = _mm256_set1_epi64x(1023);
  v = _mm256_mul_pd(v, _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_add_epi64(_mm256_cvtepi32_epi64(half), bias), 52)));
  return _mm256_mul_pd(v, _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_add_epi64(_mm256_cvtepi32_epi64(rest), bias), 52)));
}

// Conversions from and to other types; those of 32 bits are converted to double.
IN f32_v f32_from_i8(const int8_t *p) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)p))); }
IN f32_v f32_from_u8(const uint8_t *p) { return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p))); }
// Stores the low bits of the integer part, which is from -128 to 255, -32768 to 65535, or -2^31 to
// 2^32 - 1.
IN void f32_put8(void *p, f32_v v) {
  __m256i x = _mm256_shuffle_epi8(_mm256_cvttps_epi32(v), _mm256_set1_epi64x(0x0c080400)); // the low bytes of each half
  _mm_storel_epi64(p, _mm_unpacklo_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1)));
}
// past_line stores 64 bytes without reading the line into the caches; to is aligned.
IN void past_line(void *to, const void *from) {
  const __m256i *p = from;
  __m256i a = _mm256_loadu_si256(p), b = _mm256_loadu_si256(p + 1);
  _mm256_stream_si256(to, a);
  _mm256_stream_si256((__m256i *)to + 1, b);
}
// past_full and past_half store that part of a register in the same way.
IN void past_full(void *to, const void *from) { _mm256_stream_si256(to, _mm256_loadu_si256(from)); }
IN void past_half(void *to, const void *from) { _mm_stream_si128(to, _mm_loadu_si128(from)); }

// pick uses a register as a table of HAVE_PICK floats and returns those whose indices are the low
// bits of `at`; shift returns v·2^n, where n is the low bits of `at`; below returns -|x|.
#define HAVE_PICK 8
IN f32_v f32_pick(const float *table, f32_v at) { return _mm256_permutevar8x32_ps(f32_load(table), _mm256_castps_si256(at)); }
IN f32_v f32_shift(f32_v v, f32_v at) {
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(v), _mm256_slli_epi32(_mm256_castps_si256(at), 23)));
}
IN f32_v f32_below(f32_v x) { return _mm256_or_ps(x, f32_set(-0.0f)); }

#define GEMM_ROWS 6
#define GEMM_REGS 12
#define DOT_COLS 3
// Rows of the matrix at a time in products of few rows, and registers of eight of its rows.
#define FEW_ROWS 3
#define FEW_WIDE 1
// Filters and places of a tile of a convolution with long filters.
#define LONG_FILTERS 2
#define LONG_PLACES 6
#define LONG_ROWS(X) X(1) X(2)
#define LONG_EACH(X, F) X(F, 1) X(F, 2) X(F, 3) X(F, 4) X(F, 5) X(F, 6)
// Keeps gcc from reading the same vector from memory once for each product.
#define IN_REGISTER(x) __asm__("" : "+x"(x))
#define SET concord_avx2
#include "all.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#ifdef PART_STREAM
simd_func *const concord_simd_avx2[SIMD_OPS] = SIMD_TABLE;
#endif
