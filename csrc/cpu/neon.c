// NEON of 64-bit ARM. Of its 32 registers, 8×2 hold results of a product; 8×3 would
// fit. It has no masks: parts of registers are accessed element by element.
#include "simd.h"

#include <arm_neon.h>

#define IN static inline __attribute__((always_inline, unused))

typedef float32x4_t f32_v;
typedef int64_t f32_m;
typedef float64x2_t f64_v;
typedef int64_t f64_m;
enum { f32_W = 4, f64_W = 2 };

IN f32_v f32_zero(void) { return vdupq_n_f32(0); }
IN f32_v f32_set(float x) { return vdupq_n_f32(x); }
IN f32_v f32_load(const float *p) { return vld1q_f32(p); }
IN void f32_store(float *p, f32_v v) { vst1q_f32(p, v); }
IN f32_m f32_first(int64_t n) { return n; }
IN f32_v f32_loadm(const float *p, f32_m n) {
  if (n == 4)
    return vld1q_f32(p);
  float x[4] = {0};
  for (int64_t i = 0; i < n; i++)
    x[i] = p[i];
  return vld1q_f32(x);
}
// Loads lanes a to b - 1 of a register, with zeros in the others.
IN f32_v f32_loads(const float *p, int64_t a, int64_t b) {
  float x[4] = {0};
  for (; a < b; a++)
    x[a] = p[a];
  return vld1q_f32(x);
}
IN void f32_storem(float *p, f32_m n, f32_v v) {
  float x[4];
  vst1q_f32(x, v);
  for (int64_t i = 0; i < n; i++)
    p[i] = x[i];
}
IN f32_v f32_mul(f32_v a, f32_v b) { return vmulq_f32(a, b); }
IN f32_v f32_fma(f32_v a, f32_v b, f32_v c) { return vfmaq_f32(c, a, b); }
IN f32_v f32_add(f32_v a, f32_v b) { return vaddq_f32(a, b); }
IN float f32_sum(f32_v v) { return vaddvq_f32(v); }

IN f64_v f64_zero(void) { return vdupq_n_f64(0); }
IN f64_v f64_set(double x) { return vdupq_n_f64(x); }
IN f64_v f64_load(const double *p) { return vld1q_f64(p); }
IN void f64_store(double *p, f64_v v) { vst1q_f64(p, v); }
IN f64_m f64_first(int64_t n) { return n; }
IN f64_v f64_loadm(const double *p, f64_m n) { return n == 2 ? vld1q_f64(p) : vsetq_lane_f64(n ? *p : 0, vdupq_n_f64(0), 0); }
IN void f64_storem(double *p, f64_m n, f64_v v) {
  if (n > 0)
    p[0] = vgetq_lane_f64(v, 0);
  if (n > 1)
    p[1] = vgetq_lane_f64(v, 1);
}
IN f64_v f64_mul(f64_v a, f64_v b) { return vmulq_f64(a, b); }
IN f64_v f64_fma(f64_v a, f64_v b, f64_v c) { return vfmaq_f64(c, a, b); }
IN f64_v f64_add(f64_v a, f64_v b) { return vaddq_f64(a, b); }
IN double f64_sum(f64_v v) { return vaddvq_f64(v); }

// The elements of a pair of registers with even and with odd numbers.
IN f32_v f32_evens(f32_v a, f32_v b) { return vuzp1q_f32(a, b); }
IN f32_v f32_odds(f32_v a, f32_v b) { return vuzp2q_f32(a, b); }
IN f64_v f64_evens(f64_v a, f64_v b) { return vuzp1q_f64(a, b); }
// The elements of two registers in turn: the first and the second register of these.
IN f32_v f32_zip0(f32_v a, f32_v b) { return vzip1q_f32(a, b); }
IN f32_v f32_zip1(f32_v a, f32_v b) { return vzip2q_f32(a, b); }
IN f64_v f64_zip0(f64_v a, f64_v b) { return vzip1q_f64(a, b); }
IN f64_v f64_zip1(f64_v a, f64_v b) { return vzip2q_f64(a, b); }
IN f32_v f32_sub(f32_v a, f32_v b) { return vsubq_f32(a, b); }
IN f32_v f32_minus(f32_v a, const float *p) { return vsubq_f32(a, vld1q_dup_f32(p)); }
IN f32_v f32_div(f32_v a, f32_v b) { return vdivq_f32(a, b); }
IN f32_v f32_roots(f32_v v) { return vsqrtq_f32(v); }
IN f64_v f64_roots(f64_v v) { return vsqrtq_f64(v); }
IN f64_v f64_sub(f64_v a, f64_v b) { return vsubq_f64(a, b); }
IN f64_v f64_div(f64_v a, f64_v b) { return vdivq_f64(a, b); }
IN void f32_past(float *p, f32_v v) { vst1q_f32(p, v); }
IN void f64_past(double *p, f64_v v) { vst1q_f64(p, v); }
IN void past_end(void) {}
IN f32_v f32_max(f32_v a, f32_v b) { return vmaxq_f32(a, b); }
IN float f32_largest(f32_v v) { return vmaxvq_f32(v); }
IN f32_v f32_near(f32_v v) { return vrndnq_f32(v); }
// scale returns v·2^n in two steps. n is a whole number from -252 to 254.
IN f32_v f32_scale(f32_v v, f32_v n) {
  int32x4_t i = vcvtnq_s32_f32(n), half = vshrq_n_s32(i, 1), rest = vsubq_s32(i, half), bias = vdupq_n_s32(127);
  v = vmulq_f32(v, vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(half, bias), 23)));
  return vmulq_f32(v, vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(rest, bias), 23)));
}

// Operations on 16 differences of bytes, and on sums of the squares of four of them.
typedef int32x4_t i8_sums;
enum { i8_W = 16 };
IN i8_sums i8_zero(void) { return vdupq_n_s32(0); }
IN int8x16_t i8_load(const int8_t *p) { return vld1q_s8(p); }
IN int8x16_t i8_far(int8x16_t a, int8x16_t b) { return vabdq_s8(a, b); }
IN int8x16_t i8_both(int8x16_t a, int8x16_t b) { return vandq_s8(a, b); }
IN i8_sums i8_square(int8x16_t far, i8_sums s) {
  uint8x16_t d = vreinterpretq_u8_s8(far);
  uint32x4_t sum = vpadalq_u16(vreinterpretq_u32_s32(s), vmull_u8(vget_low_u8(d), vget_low_u8(d)));
  return vreinterpretq_s32_u32(vpadalq_u16(sum, vmull_u8(vget_high_u8(d), vget_high_u8(d))));
}
IN i8_sums i8_product(int8x16_t a, int8x16_t b, i8_sums s) {
  return vpadalq_s16(vpadalq_s16(s, vmull_s8(vget_low_s8(a), vget_low_s8(b))), vmull_high_s8(a, b));
}
IN f32_v i8_floats(i8_sums s) { return vcvtq_f32_s32(s); }
IN i8_sums i8_sub(i8_sums a, i8_sums b) { return vsubq_s32(a, b); }
IN i8_sums i8_add(i8_sums a, i8_sums b) { return vaddq_s32(a, b); }
IN int64_t i8_sum(i8_sums s) { return vaddlvq_s32(s); }

IN f32_v f32_from_f16(const uint16_t *p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
IN void f32_to_f16(uint16_t *p, f32_v v) { vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(v))); }
IN f32_v f32_from_bf16(const uint16_t *p) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16)); }
IN void f32_to_bf16(uint16_t *p, f32_v v) {
  uint32x4_t u = vreinterpretq_u32_f32(v);
  uint32x4_t odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
  uint32x4_t near = vaddq_u32(u, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
  near = vbslq_u32(vceqq_f32(v, v), near, vorrq_u32(u, vdupq_n_u32(0x400000)));
  vst1_u16(p, vshrn_n_u32(near, 16));
}

IN void f32_turn4(const float *from, int64_t ld, float *to, int64_t step) {
  float32x4_t a = vld1q_f32(from), b = vld1q_f32(from + ld), c = vld1q_f32(from + 2 * ld), d = vld1q_f32(from + 3 * ld);
  float32x4x2_t ab = vtrnq_f32(a, b), cd = vtrnq_f32(c, d);
  vst1q_f32(to, vcombine_f32(vget_low_f32(ab.val[0]), vget_low_f32(cd.val[0])));
  vst1q_f32(to + step, vcombine_f32(vget_low_f32(ab.val[1]), vget_low_f32(cd.val[1])));
  vst1q_f32(to + 2 * step, vcombine_f32(vget_high_f32(ab.val[0]), vget_high_f32(cd.val[0])));
  vst1q_f32(to + 3 * step, vcombine_f32(vget_high_f32(ab.val[1]), vget_high_f32(cd.val[1])));
}
IN void f64_turn4(const double *from, int64_t ld, double *to, int64_t step) {
  for (int64_t i = 0; i < 4; i++)
    for (int64_t p = 0; p < 4; p++)
      to[p * step + i] = from[i * ld + p];
}

// Operations for the kernels whose speed is limited by memory.

#define LIKE_NEON(T, S, U, V)                                                                      \
  IN V T##_less(V a, V b, V x, V y) { return vbslq_##S(vcltq_##S(a, b), x, y); }                   \
  IN V T##_beats(V y, V m, V p, V q) { return vbslq_##S(vbicq_##U(vceqq_##S(m, m), vcleq_##S(y, m)), p, q); } \
  IN V T##_larger(V a, V b) { return vmaxq_##S(a, b); }                                            \
  IN V T##_smaller(V a, V b) { return vminq_##S(a, b); }                                           \
  IN V T##_min(V a, V b) { return vminq_##S(a, b); }
LIKE_NEON(f32, f32, u32, f32_v)
LIKE_NEON(f64, f64, u64, f64_v)
#undef LIKE_NEON
IN f32_v f32_read(const float *p) { return f32_load(p); }
IN f64_v f64_read(const double *p) { return f64_load(p); }
IN double f64_largest(f64_v v) { return vmaxvq_f64(v); }
IN f32_v f32_ratio(f32_v a, f32_v b) { return vdivq_f32(a, b); }
IN unsigned f32_lessbits(f32_v a, f32_v b) {
  const uint32_t bit[4] = {1, 2, 4, 8};
  return vaddvq_u32(vandq_u32(vcltq_f32(a, b), vld1q_u32(bit)));
}
IN unsigned f64_lessbits(f64_v a, f64_v b) {
  uint64x2_t less = vcltq_f64(a, b);
  return (unsigned)((vgetq_lane_u64(less, 0) & 1) | (vgetq_lane_u64(less, 1) & 2));
}
IN f64_v f64_max(f64_v a, f64_v b) { return vmaxq_f64(a, b); }
IN f64_v f64_near(f64_v v) { return vrndnq_f64(v); }
// scale returns v·2^n in two steps. n is a whole number from -2044 to 2046.
IN f64_v f64_scale(f64_v v, f64_v n) {
  int64x2_t i = vcvtnq_s64_f64(n), half = vshrq_n_s64(i, 1), rest = vsubq_s64(i, half), bias = vdupq_n_s64(1023);
  v = vmulq_f64(v, vreinterpretq_f64_s64(vshlq_n_s64(vaddq_s64(half, bias), 52)));
  return vmulq_f64(v, vreinterpretq_f64_s64(vshlq_n_s64(vaddq_s64(rest, bias), 52)));
}

// Conversions from and to other types; those of 32 bits are converted to double.
IN f32_v f32_from_i8(const int8_t *p) {
  const int32_t x[4] = {p[0], p[1], p[2], p[3]};
  return vcvtq_f32_s32(vld1q_s32(x));
}
IN f32_v f32_from_u8(const uint8_t *p) {
  const uint32_t x[4] = {p[0], p[1], p[2], p[3]};
  return vcvtq_f32_u32(vld1q_u32(x));
}
// Stores the low bits of the integer part, which is from -128 to 255, -32768 to 65535, or -2^31 to
// 2^32 - 1.
IN void f32_put8(void *p, f32_v v) {
  uint16x4_t x = vmovn_u32(vreinterpretq_u32_s32(vcvtq_s32_f32(v)));
  vst1_lane_u32(p, vreinterpret_u32_u8(vmovn_u16(vcombine_u16(x, x))), 0);
}
// Ordinary stores: these processors detect streams of stores and do not read the lines first.
IN void past_line(void *to, const void *from) {
  const uint8_t *p = from;
  uint8_t *q = to;
  uint8x16_t a = vld1q_u8(p), b = vld1q_u8(p + 16), c = vld1q_u8(p + 32), d = vld1q_u8(p + 48);
  vst1q_u8(q, a), vst1q_u8(q + 16, b), vst1q_u8(q + 32, c), vst1q_u8(q + 48, d);
}
IN void past_full(void *to, const void *from) { vst1q_u8(to, vld1q_u8(from)); }
IN void past_half(void *to, const void *from) { vst1_u8(to, vld1_u8(from)); }

IN float f32_root(float x) { return vget_lane_f32(vsqrt_f32(vdup_n_f32(x)), 0); }
IN double f64_root(double x) { return vget_lane_f64(vsqrt_f64(vdup_n_f64(x)), 0); }

// Transposes eight elements of each of eight rows that are ld apart: to[c·step + r].
IN void u16_turn8(const uint16_t *from, int64_t ld, uint16_t *to, int64_t step) {
  uint16x8_t x[8], y[8];
  for (int i = 0; i < 8; i++)
    x[i] = vld1q_u16(from + i * ld);
  for (int i = 0; i < 4; i++)
    y[i] = vzip1q_u16(x[2 * i], x[2 * i + 1]), y[i + 4] = vzip2q_u16(x[2 * i], x[2 * i + 1]);
  for (int i = 0; i < 8; i += 2) {
    uint32x4_t a = vreinterpretq_u32_u16(y[i]), b = vreinterpretq_u32_u16(y[i + 1]);
    x[i] = vreinterpretq_u16_u32(vzip1q_u32(a, b)), x[i + 1] = vreinterpretq_u16_u32(vzip2q_u32(a, b));
  }
  for (int i = 0; i < 8; i += 4)
    for (int k = 0; k < 2; k++) {
      vst1q_u16(to + (i + 2 * k) * step, vcombine_u16(vget_low_u16(x[i + k]), vget_low_u16(x[i + k + 2])));
      vst1q_u16(to + (i + 2 * k + 1) * step, vcombine_u16(vget_high_u16(x[i + k]), vget_high_u16(x[i + k + 2])));
    }
}
IN void u8_turn8(const uint8_t *from, int64_t ld, uint8_t *to, int64_t step) {
  for (int i = 0; i < 8; i++)
    for (int k = 0; k < 8; k++)
      to[k * step + i] = from[i * ld + k];
}

// fold returns the sums of the lanes of each of W registers, in order.
IN f32_v f32_fold(const f32_v *s) { return vpaddq_f32(vpaddq_f32(s[0], s[1]), vpaddq_f32(s[2], s[3])); }
IN i8_sums i8_folded(const i8_sums *s) { return vpaddq_s32(vpaddq_s32(s[0], s[1]), vpaddq_s32(s[2], s[3])); }

// Registers of bytes: the codes up to most of bits from a shift on, sums of pairs of products of codes and bytes in 16 bits, and of pairs of those in 32.
typedef int8x16_t b8_v;
enum { b8_BYTES = 16 };
IN b8_v b8_zero(void) { return vdupq_n_s8(0); }
IN b8_v b8_load(const void *p) { return vld1q_s8(p); }
#define b8_codes(v, shift, most) vandq_s8(vreinterpretq_s8_u8(vshlq_u8(vreinterpretq_u8_s8(v), vdupq_n_s8(-(shift)))), vdupq_n_s8(most))
IN b8_v b8_pairs(b8_v codes, b8_v x) { return vreinterpretq_s8_s16(vpaddq_s16(vmull_s8(vget_low_s8(codes), vget_low_s8(x)), vmull_high_s8(codes, x))); }
IN b8_v b8_add16(b8_v a, b8_v b) { return vreinterpretq_s8_s16(vaddq_s16(vreinterpretq_s16_s8(a), vreinterpretq_s16_s8(b))); }
// For codes: a table of 16 bytes in each 128 bits, the bytes of it that indices below 16 choose, sums of bytes, and numbers of 16 bits: the high bytes of each, the low ones
// as high ones, and whether one of x is at most its number of y.
#define b8_16 vreinterpretq_s16_s8
#define b8_of vreinterpretq_s8_s16
IN b8_v b8_table(const uint8_t *p) { return vreinterpretq_s8_u8(vld1q_u8(p)); }
IN b8_v b8_look(b8_v table, b8_v at) { return vqtbl1q_s8(table, vreinterpretq_u8_s8(at)); }
IN b8_v b8_add8(b8_v a, b8_v b) { return vaddq_s8(a, b); }
IN b8_v b8_high16(b8_v v) { return vreinterpretq_s8_u16(vshrq_n_u16(vreinterpretq_u16_s8(v), 8)); }
IN b8_v b8_left16(b8_v v) { return b8_of(vshlq_n_s16(b8_16(v), 8)); }
IN b8_v b8_sub16(b8_v a, b8_v b) { return b8_of(vsubq_s16(b8_16(a), b8_16(b))); }
IN b8_v b8_min16(b8_v a, b8_v b) { return b8_of(vminq_s16(b8_16(a), b8_16(b))); }
IN b8_v b8_set16(int16_t x) { return b8_of(vdupq_n_s16(x)); }
IN int b8_upto16(b8_v x, b8_v y) { return vmaxvq_u16(vcleq_s16(b8_16(x), b8_16(y))) != 0; }
IN void b8_store(void *p, b8_v v) { vst1q_s8(p, v); }
IN b8_v b8_wide(b8_v v) { return vreinterpretq_s8_s32(vpaddlq_s16(vreinterpretq_s16_s8(v))); }
IN int32_t b8_sum(b8_v v) { return vaddvq_s32(vreinterpretq_s32_s8(v)); }

// The words of a product of bytes: pairs of 16-bit numbers.
typedef int32x4_t i8pair_v;
typedef int64_t i8pair_m;
enum { i8pair_W = 4 };
IN i8pair_v i8pair_zero(void) { return vdupq_n_s32(0); }
IN i8pair_v i8pair_set(int32_t x) { return vdupq_n_s32(x); }
IN i8pair_v i8pair_load(const int32_t *p) { return vld1q_s32(p); }
IN void i8pair_store(int32_t *p, i8pair_v v) { vst1q_s32(p, v); }
IN i8pair_m i8pair_first(int64_t n) { return n; }
IN i8pair_v i8pair_mul(i8pair_v a, i8pair_v b) { return vmulq_s32(a, b); }
IN i8pair_v i8pair_step(i8pair_v a, i8pair_v b, i8pair_v c) {
  int16x8_t x = vreinterpretq_s16_s32(a), y = vreinterpretq_s16_s32(b);
  return vaddq_s32(c, vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_s16(vget_high_s16(x), vget_high_s16(y))));
}
// For squared distances: loading W words, converting stored numbers to words, subtracting the
// squares of words from a sum, transposing W rows of W, and adding the product with a word of a
// query.
IN i8pair_v i8pair_l2_word(const int8_t *p) { return vreinterpretq_s32_s16(vmovl_s8(vld1_s8(p))); }
IN i8pair_v i8pair_l2_offset(i8pair_v x) { return x; }
IN i8pair_v i8pair_l2_less(i8pair_v s, i8pair_v x) { return vsubq_s32(s, i8pair_step(x, x, vdupq_n_s32(0))); }
IN i8pair_v i8pair_l2_step(i8pair_v v, const int32_t *q, i8pair_v s) { return i8pair_step(v, i8pair_set(*q), s); }
IN void i8pair_turn(i8pair_v *x) {
  int32x4x2_t ab = vtrnq_s32(x[0], x[1]), cd = vtrnq_s32(x[2], x[3]);
  x[0] = vcombine_s32(vget_low_s32(ab.val[0]), vget_low_s32(cd.val[0]));
  x[1] = vcombine_s32(vget_low_s32(ab.val[1]), vget_low_s32(cd.val[1]));
  x[2] = vcombine_s32(vget_high_s32(ab.val[0]), vget_high_s32(cd.val[0]));
  x[3] = vcombine_s32(vget_high_s32(ab.val[1]), vget_high_s32(cd.val[1]));
}

#define GEMM_ROWS 8
#define GEMM_REGS 16
#define DOT_COLS 4
// Rows of the matrix at a time in products of few rows, and registers of eight of its rows.
#define FEW_ROWS 4
#define FEW_WIDE 1
// Filters and places of a tile of a convolution with long filters.
#define LONG_FILTERS 3
#define LONG_PLACES 9
#define LONG_ROWS(X) X(1) X(2) X(3)
#define LONG_EACH(X, F) X(F, 1) X(F, 2) X(F, 3) X(F, 4) X(F, 5) X(F, 6) X(F, 7) X(F, 8) X(F, 9)
// Keeps gcc from reading the same vector from memory once for each product.
#define IN_REGISTER(x) __asm__("" : "+w"(x))
#define SET concord_neon
#include "all.h"

#ifdef PART_STREAM
simd_func *const concord_simd_neon[SIMD_OPS] = SIMD_TABLE;
#endif
