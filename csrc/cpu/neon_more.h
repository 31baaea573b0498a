// What the kernels at the speed of memory need of NEON beyond a product's words.

#define LIKE_NEON(T, S, U, V)                                                                      \
  IN V T##_less(V a, V b, V x, V y) { return vbslq_##S(vcltq_##S(a, b), x, y); }                   \
  IN V T##_beats(V y, V m, V p, V q) { return vbslq_##S(vbicq_##U(vceqq_##S(m, m), vcleq_##S(y, m)), p, q); } \
  IN V T##_larger(V a, V b) { return vmaxq_##S(a, b); }                                            \
  IN V T##_smaller(V a, V b) { return vminq_##S(a, b); }                                           \
  IN V T##_number(V v) { return vreinterpretq_##S##_##U(vandq_##U(vreinterpretq_##U##_##S(v), vceqq_##S(v, v))); } \
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
// scale is v times 2 to the whole number n from -2044 to 2046, in two steps.
IN f64_v f64_scale(f64_v v, f64_v n) {
  int64x2_t i = vcvtnq_s64_f64(n), half = vshrq_n_s64(i, 1), rest = vsubq_s64(i, half), bias = vdupq_n_s64(1023);
  v = vmulq_f64(v, vreinterpretq_f64_s64(vshlq_n_s64(vaddq_s64(half, bias), 52)));
  return vmulq_f64(v, vreinterpretq_f64_s64(vshlq_n_s64(vaddq_s64(rest, bias), 52)));
}

// Numbers of other types; 32-bit ones go by way of double.
IN f32_v f32_from_i8(const int8_t *p) {
  const int32_t x[4] = {p[0], p[1], p[2], p[3]};
  return vcvtq_f32_s32(vld1q_s32(x));
}
IN f32_v f32_from_u8(const uint8_t *p) {
  const uint32_t x[4] = {p[0], p[1], p[2], p[3]};
  return vcvtq_f32_u32(vld1q_u32(x));
}
IN f32_v f32_from_i16(const int16_t *p) { return vcvtq_f32_s32(vmovl_s16(vld1_s16(p))); }
IN f32_v f32_from_u16(const uint16_t *p) { return vcvtq_f32_u32(vmovl_u16(vld1_u16(p))); }
IN f64_v f64_from_i32(const int32_t *p) { return vcvtq_f64_s64(vmovl_s32(vld1_s32(p))); }
IN f64_v f64_from_u32(const uint32_t *p) { return vcvtq_f64_u64(vmovl_u32(vld1_u32(p))); }
IN f64_v f64_from_f32(const float *p) { return vcvt_f64_f32(vld1_f32(p)); }
IN void f64_to_f32(float *p, f64_v v) { vst1_f32(p, vcvt_f32_f64(v)); }
IN f32_v f32_from_i32(const int32_t *p) { return vcvtq_f32_s32(vld1q_s32(p)); }
// The nearest whole number toward zero; 0 of a NaN.
IN void f32_put32(void *p, f32_v v) { vst1q_s32(p, vcvtq_s32_f32(v)); }
// The low bits of whole parts that fit: -128 to 255, -32768 to 65535, -2^31 to 2^32 - 1.
IN void f32_put8(void *p, f32_v v) {
  uint16x4_t x = vmovn_u32(vreinterpretq_u32_s32(vcvtq_s32_f32(v)));
  vst1_lane_u32(p, vreinterpret_u32_u8(vmovn_u16(vcombine_u16(x, x))), 0);
}
IN void f32_put16(void *p, f32_v v) { vst1_u16(p, vmovn_u32(vreinterpretq_u32_s32(vcvtq_s32_f32(v)))); }
IN void f64_put32(void *p, f64_v v) { vst1_s32(p, vmovn_s64(vcvtq_s64_f64(v))); }
// sticky cuts a double down to 13 digits, of which the last is 1 if that loses any.
IN f64_v f64_sticky(f64_v v) {
  uint64x2_t u = vreinterpretq_u64_f64(v), low = vdupq_n_u64((1ull << 40) - 1);
  uint64x2_t last = vandq_u64(vtstq_u64(u, low), vdupq_n_u64(1ull << 40));
  return vreinterpretq_f64_u64(vorrq_u64(vbicq_u64(u, low), last));
}
// There is no use in passing the caches: the processors see such streams themselves.
IN void past_line(void *to, const void *from) {
  const uint8_t *p = from;
  uint8_t *q = to;
  uint8x16_t a = vld1q_u8(p), b = vld1q_u8(p + 16), c = vld1q_u8(p + 32), d = vld1q_u8(p + 48);
  vst1q_u8(q, a), vst1q_u8(q + 16, b), vst1q_u8(q + 32, c), vst1q_u8(q + 48, d);
}
IN void past_full(void *to, const void *from) { vst1q_u8(to, vld1q_u8(from)); }
IN void past_quarter(void *to, const void *from) { __builtin_memcpy(to, from, 4); }
IN void past_half(void *to, const void *from) { vst1_u8(to, vld1_u8(from)); }
IN void line_set(void *to, uint64_t bits) {
  uint8x16_t v = vreinterpretq_u8_u64(vdupq_n_u64(bits));
  uint8_t *q = to;
  vst1q_u8(q, v), vst1q_u8(q + 16, v), vst1q_u8(q + 32, v), vst1q_u8(q + 48, v);
}
IN void past_set(void *to, uint64_t bits) { line_set(to, bits); }

IN float f32_root(float x) { return vget_lane_f32(vsqrt_f32(vdup_n_f32(x)), 0); }
IN double f64_root(double x) { return vget_lane_f64(vsqrt_f64(vdup_n_f64(x)), 0); }

// Eight rows of eight from rows that are ld apart, as columns: to[c·step + r].
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
