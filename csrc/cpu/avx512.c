// AVX-512 (F, BW, DQ, VL). Of its 32 registers, 12×2 hold results of a product.
#include "simd.h"

#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")
#endif

#define IN static inline __attribute__((always_inline, unused))

typedef __m512 f32_v;
typedef __mmask16 f32_m;
typedef __m512d f64_v;
typedef __mmask8 f64_m;
enum { f32_W = 16, f64_W = 8 };

#include "page.h"
IN __m512i f32_lanes(void) { return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }
IN __m256i f64_lanes(void) { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }

IN f32_v f32_zero(void) { return _mm512_setzero_ps(); }
IN f32_v f32_set(float x) { return _mm512_set1_ps(x); }
IN f32_v f32_load(const float *p) { return _mm512_loadu_ps(p); }
IN void f32_store(float *p, f32_v v) { _mm512_storeu_ps(p, v); }
IN f32_m f32_first(int64_t n) { return (__mmask16)((1u << n) - 1); }
IN f32_v f32_loadm(const float *p, f32_m m) {
  return near_page_end(p, 64) ? _mm512_mask_i32gather_ps(_mm512_setzero_ps(), m, f32_lanes(), p, 4) : _mm512_maskz_loadu_ps(m, p);
}
// Loads lanes a to b - 1 of a register, with zeros in the others.
IN f32_v f32_loads(const float *p, int64_t a, int64_t b) { return f32_loadm(p, (f32_m)(f32_first(b) & ~f32_first(a))); }
IN void f32_storem(float *p, f32_m m, f32_v v) {
  if (near_page_end(p, 64))
    _mm512_mask_i32scatter_ps(p, m, f32_lanes(), v, 4);
  else
    _mm512_mask_storeu_ps(p, m, v);
}
IN f32_v f32_mul(f32_v a, f32_v b) { return _mm512_mul_ps(a, b); }
IN f32_v f32_fma(f32_v a, f32_v b, f32_v c) { return _mm512_fmadd_ps(a, b, c); }
IN f32_v f32_add(f32_v a, f32_v b) { return _mm512_add_ps(a, b); }
IN float f32_sum(f32_v v) { return _mm512_reduce_add_ps(v); }

IN f64_v f64_zero(void) { return _mm512_setzero_pd(); }
IN f64_v f64_set(double x) { return _mm512_set1_pd(x); }
IN f64_v f64_load(const double *p) { return _mm512_loadu_pd(p); }
IN void f64_store(double *p, f64_v v) { _mm512_storeu_pd(p, v); }
IN f64_m f64_first(int64_t n) { return (__mmask8)((1u << n) - 1); }
IN f64_v f64_loadm(const double *p, f64_m m) {
  return near_page_end(p, 64) ? _mm512_mask_i32gather_pd(_mm512_setzero_pd(), m, f64_lanes(), p, 8) : _mm512_maskz_loadu_pd(m, p);
}
IN void f64_storem(double *p, f64_m m, f64_v v) {
  if (near_page_end(p, 64))
    _mm512_mask_i32scatter_pd(p, m, f64_lanes(), v, 8);
  else
    _mm512_mask_storeu_pd(p, m, v);
}
IN f64_v f64_mul(f64_v a, f64_v b) { return _mm512_mul_pd(a, b); }
IN f64_v f64_fma(f64_v a, f64_v b, f64_v c) { return _mm512_fmadd_pd(a, b, c); }
IN f64_v f64_add(f64_v a, f64_v b) { return _mm512_add_pd(a, b); }
IN double f64_sum(f64_v v) { return _mm512_reduce_add_pd(v); }

// The elements of a pair of registers with even and with odd numbers.
IN f32_v f32_evens(f32_v a, f32_v b) {
  return _mm512_permutex2var_ps(a, _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30), b);
}
IN f32_v f32_odds(f32_v a, f32_v b) {
  return _mm512_permutex2var_ps(a, _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31), b);
}
IN f64_v f64_evens(f64_v a, f64_v b) { return _mm512_permutex2var_pd(a, _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), b); }
// The elements of two registers in turn: the first and the second register of these.
IN f32_v f32_zip0(f32_v a, f32_v b) {
  return _mm512_permutex2var_ps(a, _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23), b);
}
IN f32_v f32_zip1(f32_v a, f32_v b) {
  return _mm512_permutex2var_ps(a, _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31), b);
}
IN f64_v f64_zip0(f64_v a, f64_v b) { return _mm512_permutex2var_pd(a, _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), b); }
IN f64_v f64_zip1(f64_v a, f64_v b) { return _mm512_permutex2var_pd(a, _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15), b); }
IN f32_v f32_sub(f32_v a, f32_v b) { return _mm512_sub_ps(a, b); }
// minus subtracts the number at p from all lanes. The instruction itself reads the number, at no
// cost.
IN f32_v f32_minus(f32_v a, const float *p) {
  __asm__("vsubps %2%{1to16%}, %1, %0" : "=v"(a) : "v"(a), "m"(*p));
  return a;
}
IN f32_v f32_div(f32_v a, f32_v b) { return _mm512_div_ps(a, b); }
IN f32_v f32_roots(f32_v v) { return _mm512_sqrt_ps(v); }
IN f64_v f64_roots(f64_v v) { return _mm512_sqrt_pd(v); }
IN f64_v f64_sub(f64_v a, f64_v b) { return _mm512_sub_pd(a, b); }
IN f64_v f64_div(f64_v a, f64_v b) { return _mm512_div_pd(a, b); }
// past stores a register without reading its line into the caches; p is aligned.
IN void f32_past(float *p, f32_v v) { _mm512_stream_ps(p, v); }
IN void f64_past(double *p, f64_v v) { _mm512_stream_pd(p, v); }
IN void past_end(void) { _mm_sfence(); }
IN f32_v f32_max(f32_v a, f32_v b) { return _mm512_max_ps(a, b); }
IN float f32_largest(f32_v v) { return _mm512_reduce_max_ps(v); }
IN f32_v f32_near(f32_v v) { return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
// scale returns v·2^n, rounded once. n is a whole number.
IN f32_v f32_scale(f32_v v, f32_v n) { return _mm512_scalef_ps(v, n); }

// Operations on 64 differences of bytes, and on sums of the squares of four of them.
typedef __m512i i8_sums;
enum { i8_W = 64 };
IN i8_sums i8_zero(void) { return _mm512_setzero_si512(); }
IN __m512i i8_load(const int8_t *p) { return _mm512_loadu_si512(p); }
IN __m512i i8_far(__m512i a, __m512i b) { return _mm512_sub_epi8(_mm512_max_epi8(a, b), _mm512_min_epi8(a, b)); }
IN __m512i i8_both(__m512i a, __m512i b) { return _mm512_and_si512(a, b); }
IN i8_sums i8_square(__m512i far, i8_sums s) {
  __m512i even = _mm512_and_si512(far, _mm512_set1_epi16(255)), odd = _mm512_srli_epi16(far, 8);
  return _mm512_add_epi32(s, _mm512_add_epi32(_mm512_madd_epi16(even, even), _mm512_madd_epi16(odd, odd)));
}
IN i8_sums i8_product(__m512i a, __m512i b, i8_sums s) {
  __m512i even = _mm512_madd_epi16(_mm512_srai_epi16(_mm512_slli_epi16(a, 8), 8), _mm512_srai_epi16(_mm512_slli_epi16(b, 8), 8));
  return _mm512_add_epi32(s, _mm512_add_epi32(even, _mm512_madd_epi16(_mm512_srai_epi16(a, 8), _mm512_srai_epi16(b, 8))));
}
IN f32_v i8_floats(i8_sums s) { return _mm512_cvtepi32_ps(s); }
IN i8_sums i8_sub(i8_sums a, i8_sums b) { return _mm512_sub_epi32(a, b); }
IN i8_sums i8_add(i8_sums a, i8_sums b) { return _mm512_add_epi32(a, b); }
IN int64_t i8_sum(i8_sums s) {
  return _mm512_reduce_add_epi64(_mm512_add_epi64(_mm512_cvtepi32_epi64(_mm512_castsi512_si256(s)),
                                                  _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(s, 1))));
}

IN f32_v f32_from_f16(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
IN void f32_to_f16(uint16_t *p, f32_v v) { _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)); }
IN f32_v f32_from_bf16(const uint16_t *p) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}
IN void f32_to_bf16(uint16_t *p, f32_v v) {
  __m512i u = _mm512_castps_si512(v);
  __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  __m512i near = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  near = _mm512_mask_mov_epi32(near, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), _mm512_or_si512(u, _mm512_set1_epi32(0x400000)));
  _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(_mm512_srli_epi32(near, 16)));
}

// fold returns the sums of the lanes of each of W registers, in order. It adds the halves of two
// registers into one register, then the quarters, and so on.
#define FOLD(NAME, V, ADD, TO, FROM)                                                               \
  IN V NAME##_lanes(V a, V b, V c, V d) {                                                          \
    __m512 x0 = TO(a), x1 = TO(b), y0 = TO(c), y1 = TO(d);                                         \
    __m512 x = TO(ADD(FROM(_mm512_shuffle_f32x4(x0, x1, 0x44)), FROM(_mm512_shuffle_f32x4(x0, x1, 0xee)))); \
    __m512 y = TO(ADD(FROM(_mm512_shuffle_f32x4(y0, y1, 0x44)), FROM(_mm512_shuffle_f32x4(y0, y1, 0xee)))); \
    return ADD(FROM(_mm512_shuffle_f32x4(x, y, 0x88)), FROM(_mm512_shuffle_f32x4(x, y, 0xdd)));    \
  }                                                                                                \
  IN V NAME##_pair(V a, V b) { return ADD(FROM(_mm512_unpacklo_ps(TO(a), TO(b))), FROM(_mm512_unpackhi_ps(TO(a), TO(b)))); } \
  IN V NAME(const V *s) {                                                                          \
    __m512 x = TO(NAME##_pair(NAME##_lanes(s[0], s[4], s[8], s[12]), NAME##_lanes(s[1], s[5], s[9], s[13]))); \
    __m512 y = TO(NAME##_pair(NAME##_lanes(s[2], s[6], s[10], s[14]), NAME##_lanes(s[3], s[7], s[11], s[15]))); \
    return ADD(FROM(_mm512_shuffle_ps(x, y, 0x44)), FROM(_mm512_shuffle_ps(x, y, 0xee)));          \
  }
FOLD(f32_fold, __m512, _mm512_add_ps, , )
FOLD(i8_folded, __m512i, _mm512_add_epi32, _mm512_castsi512_ps, _mm512_castps_si512)
#undef FOLD

// The words of a product of bytes, 32 bits each: pairs of 16-bit numbers, or,
// if the processor has VNNI, four bytes. The file is not compiled for VNNI, so that
// instruction is inline assembly.
typedef __m512i i8pair_v;
typedef __mmask16 i8pair_m;
enum { i8pair_W = 16 };
IN i8pair_v i8pair_zero(void) { return _mm512_setzero_si512(); }
IN i8pair_v i8pair_set(int32_t x) { return _mm512_set1_epi32(x); }
IN i8pair_v i8pair_load(const int32_t *p) { return _mm512_loadu_si512(p); }
IN void i8pair_store(int32_t *p, i8pair_v v) { _mm512_storeu_si512(p, v); }
IN i8pair_m i8pair_first(int64_t n) { return f32_first(n); }
IN i8pair_v i8pair_mul(i8pair_v a, i8pair_v b) { return _mm512_mullo_epi32(a, b); }
IN i8pair_v i8pair_step(i8pair_v a, i8pair_v b, i8pair_v c) { return _mm512_add_epi32(c, _mm512_madd_epi16(a, b)); }
// For squared distances: loading W words, converting stored numbers to words, subtracting the
// squares of words from a sum, transposing W rows of W, and adding the product with a word of a
// query.
IN i8pair_v i8pair_l2_word(const int8_t *p) { return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)p)); }
IN i8pair_v i8pair_l2_offset(i8pair_v x) { return x; }
IN i8pair_v i8pair_l2_less(i8pair_v s, i8pair_v x) { return _mm512_sub_epi32(s, _mm512_madd_epi16(x, x)); }
IN i8pair_v i8pair_l2_step(i8pair_v v, const int32_t *q, i8pair_v s) { return i8pair_step(v, i8pair_set(*q), s); }
IN void i8pair_turn(i8pair_v *x) {
  __m512i t[16];
  _Pragma("GCC unroll 4") for (int i = 0; i < 16; i += 4) { // rows of 4 in each quarter of registers
    __m512i a = _mm512_unpacklo_epi32(x[i], x[i + 1]), b = _mm512_unpackhi_epi32(x[i], x[i + 1]);
    __m512i c = _mm512_unpacklo_epi32(x[i + 2], x[i + 3]), d = _mm512_unpackhi_epi32(x[i + 2], x[i + 3]);
    t[i] = _mm512_unpacklo_epi64(a, c), t[i + 1] = _mm512_unpackhi_epi64(a, c);
    t[i + 2] = _mm512_unpacklo_epi64(b, d), t[i + 3] = _mm512_unpackhi_epi64(b, d);
  }
  _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++) { // quarters
    __m512i a = _mm512_shuffle_i32x4(t[i], t[i + 4], 0x44), b = _mm512_shuffle_i32x4(t[i], t[i + 4], 0xee);
    __m512i c = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0x44), d = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0xee);
    x[i] = _mm512_shuffle_i32x4(a, c, 0x88), x[i + 4] = _mm512_shuffle_i32x4(a, c, 0xdd);
    x[i + 8] = _mm512_shuffle_i32x4(b, d, 0x88), x[i + 12] = _mm512_shuffle_i32x4(b, d, 0xdd);
  }
}

typedef __m512i i8four_v;
typedef __mmask16 i8four_m;
enum { i8four_W = 16 };
#define i8four_zero i8pair_zero
#define i8four_set i8pair_set
#define i8four_load i8pair_load
#define i8four_store i8pair_store
#define i8four_first i8pair_first
#define i8four_mul i8pair_mul
IN i8four_v i8four_step(i8four_v a, i8four_v b, i8four_v c) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
  return c;
}
#define i8four_turn i8pair_turn
IN i8four_v i8four_l2_word(const int8_t *p) { return _mm512_loadu_si512(p); }
IN i8four_v i8four_l2_offset(i8four_v x) { return _mm512_xor_si512(x, _mm512_set1_epi8(-128)); }
IN i8four_v i8four_l2_less(i8four_v s, i8four_v x) {
  x = _mm512_abs_epi8(x); // up to 128, which as a signed byte is -128
  return i8four_step(x, _mm512_sub_epi8(_mm512_setzero_si512(), x), s);
}
IN i8four_v i8four_l2_step(i8four_v v, const int32_t *q, i8four_v s) {
  __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(s) : "v"(v), "m"(*q));
  return s;
}
#define HAVE_I8FOUR

// Registers of bytes: the codes up to most of bits from a shift on, sums of pairs of products of codes and bytes in 16 bits, and of pairs of those in 32.
typedef __m512i b8_v;
enum { b8_BYTES = 64 };
IN b8_v b8_zero(void) { return _mm512_setzero_si512(); }
IN b8_v b8_load(const void *p) { return _mm512_loadu_si512(p); }
#define b8_codes(v, shift, most) _mm512_and_si512(_mm512_srli_epi16(v, shift), _mm512_set1_epi8(most))
IN b8_v b8_pairs(b8_v codes, b8_v x) { return _mm512_maddubs_epi16(codes, x); }
IN b8_v b8_add16(b8_v a, b8_v b) { return _mm512_add_epi16(a, b); }
// For codes: a table of 16 bytes in each 128 bits, the bytes of it that indices below 16 choose, sums of bytes, and numbers of 16 bits: the high bytes of each, the low ones
// as high ones, and whether one of x is at most its number of y.
IN b8_v b8_table(const uint8_t *p) { return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)p)); }
IN b8_v b8_look(b8_v table, b8_v at) { return _mm512_shuffle_epi8(table, at); }
IN b8_v b8_add8(b8_v a, b8_v b) { return _mm512_add_epi8(a, b); }
IN b8_v b8_high16(b8_v v) { return _mm512_srli_epi16(v, 8); }
IN b8_v b8_left16(b8_v v) { return _mm512_slli_epi16(v, 8); }
IN b8_v b8_sub16(b8_v a, b8_v b) { return _mm512_sub_epi16(a, b); }
IN b8_v b8_min16(b8_v a, b8_v b) { return _mm512_min_epi16(a, b); }
IN b8_v b8_set16(int16_t x) { return _mm512_set1_epi16(x); }
IN int b8_upto16(b8_v x, b8_v y) { return _mm512_cmple_epi16_mask(x, y) != 0; }
IN void b8_store(void *p, b8_v v) { _mm512_storeu_si512(p, v); }
IN b8_v b8_wide(b8_v v) { return _mm512_madd_epi16(v, _mm512_set1_epi16(1)); }
IN int32_t b8_sum(b8_v v) { return _mm512_reduce_add_epi32(v); }

#include "x86.h"

// Operations for the kernels whose speed is limited by memory.

#define LIKE_512(T, S, V)                                                                          \
  IN V T##_less(V a, V b, V x, V y) { return _mm512_mask_mov_##S(y, _mm512_cmp_##S##_mask(a, b, _CMP_LT_OQ), x); } \
  IN unsigned T##_lessbits(V a, V b) { return _mm512_cmp_##S##_mask(a, b, _CMP_LT_OQ); }          \
  IN V T##_beats(V y, V m, V p, V q) {                                                             \
    return _mm512_mask_mov_##S(q, _mm512_mask_cmp_##S##_mask(_mm512_cmp_##S##_mask(m, m, _CMP_ORD_Q), y, m, _CMP_NLE_UQ), p); \
  }                                                                                                \
  IN V T##_larger(V a, V b) { return _mm512_mask_mov_##S(_mm512_max_##S(a, b), _mm512_cmp_##S##_mask(a, a, _CMP_UNORD_Q), a); } \
  IN V T##_smaller(V a, V b) { return _mm512_mask_mov_##S(_mm512_min_##S(a, b), _mm512_cmp_##S##_mask(a, a, _CMP_UNORD_Q), a); } \
  IN V T##_min(V a, V b) { return _mm512_min_##S(a, b); }
LIKE_512(f32, ps, f32_v)
LIKE_512(f64, pd, f64_v)
#undef LIKE_512
// read loads a register from memory that is read in order: in two halves, which is faster then.
IN f32_v f32_read(const float *p) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(p)), _mm256_loadu_ps(p + 8), 1);
}
IN f64_v f64_read(const double *p) {
  return _mm512_insertf64x4(_mm512_castpd256_pd512(_mm256_loadu_pd(p)), _mm256_loadu_pd(p + 4), 1);
}
IN double f64_largest(f64_v v) { return _mm512_reduce_max_pd(v); }
// ratio returns a/b for |b| from 1 to 2^100 and |a| up to |b|: an estimate and a step of Newton's
// method.
IN f32_v f32_ratio(f32_v a, f32_v b) {
  f32_v y = _mm512_rcp14_ps(b), q = _mm512_mul_ps(a, y);
  return _mm512_fmadd_ps(_mm512_fnmadd_ps(q, b, a), y, q);
}
IN f64_v f64_max(f64_v a, f64_v b) { return _mm512_max_pd(a, b); }
IN f64_v f64_near(f64_v v) { return _mm512_roundscale_pd(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
IN f64_v f64_scale(f64_v v, f64_v n) { return _mm512_scalef_pd(v, n); }

// Conversions from and to other types; those of 32 bits are converted to double.
IN f32_v f32_from_i8(const int8_t *p) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)p))); }
IN f32_v f32_from_u8(const uint8_t *p) { return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)p))); }
// Stores the low bits of the integer part, which is from -128 to 255, -32768 to 65535, or -2^31 to
// 2^32 - 1.
IN void f32_put8(void *p, f32_v v) { _mm_storeu_si128(p, _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(v))); }
// past_line stores 64 bytes without reading the line into the caches; to is aligned.
IN void past_line(void *to, const void *from) { _mm512_stream_si512(to, _mm512_loadu_si512(from)); }
// past_full and past_half store that part of a register in the same way.
IN void past_full(void *to, const void *from) { _mm512_stream_si512(to, _mm512_loadu_si512(from)); }
IN void past_half(void *to, const void *from) { _mm256_stream_si256(to, _mm256_loadu_si256(from)); }

// pick uses a register as a table of HAVE_PICK floats and returns those whose indices are the low
// bits of `at`; shift returns v·2^n, where n is the low bits of `at`; below returns -|x|.
#define HAVE_PICK 16
IN f32_v f32_pick(const float *table, f32_v at) { return _mm512_permutexvar_ps(_mm512_castps_si512(at), _mm512_loadu_ps(table)); }
IN f32_v f32_shift(f32_v v, f32_v at) {
  return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(v), _mm512_slli_epi32(_mm512_castps_si512(at), 23)));
}
IN f32_v f32_below(f32_v x) { return _mm512_or_ps(x, f32_set(-0.0f)); }

// Rows and registers of results in a tile; columns in a tile of dot products.
#define GEMM_ROWS 12
#define GEMM_REGS 24
#define DOT_COLS 4
// Rows of the matrix at a time in products of few rows, and registers of eight of its rows.
#define FEW_ROWS 6
#define FEW_WIDE 2
// Filters and places of a tile of a convolution with long filters.
#define LONG_FILTERS 3
#define LONG_PLACES 9
#define LONG_ROWS(X) X(1) X(2) X(3)
#define LONG_EACH(X, F) X(F, 1) X(F, 2) X(F, 3) X(F, 4) X(F, 5) X(F, 6) X(F, 7) X(F, 8) X(F, 9)
// Keeps gcc from reading the same vector from memory once for each product.
#define IN_REGISTER(x) __asm__("" : "+v"(x))
#define SET concord_avx512
#include "all.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#ifdef PART_STREAM
simd_func *const concord_simd_avx512[SIMD_OPS] = SIMD_TABLE;
#endif
