// What the kernels at the speed of memory need of AVX2 beyond a product's words.

#define LIKE_256(T, S, V)                                                                          \
  IN V T##_less(V a, V b, V x, V y) { return _mm256_blendv_##S(y, x, _mm256_cmp_##S(a, b, _CMP_LT_OQ)); } \
  IN unsigned T##_lessbits(V a, V b) { return (unsigned)_mm256_movemask_##S(_mm256_cmp_##S(a, b, _CMP_LT_OQ)); } \
  IN V T##_beats(V y, V m, V p, V q) {                                                             \
    return _mm256_blendv_##S(q, p, _mm256_and_##S(_mm256_cmp_##S(m, m, _CMP_ORD_Q), _mm256_cmp_##S(y, m, _CMP_NLE_UQ))); \
  }                                                                                                \
  IN V T##_larger(V a, V b) { return _mm256_blendv_##S(_mm256_max_##S(a, b), a, _mm256_cmp_##S(a, a, _CMP_UNORD_Q)); } \
  IN V T##_smaller(V a, V b) { return _mm256_blendv_##S(_mm256_min_##S(a, b), a, _mm256_cmp_##S(a, a, _CMP_UNORD_Q)); } \
  IN V T##_number(V v) { return _mm256_and_##S(v, _mm256_cmp_##S(v, v, _CMP_ORD_Q)); }             \
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
// scale is v times 2 to the whole number n from -2044 to 2046, in two steps.
IN f64_v f64_scale(f64_v v, f64_v n) {
  __m128i i = _mm256_cvtpd_epi32(n), half = _mm_srai_epi32(i, 1), rest = _mm_sub_epi32(i, half);
  __m256i bias = _mm256_set1_epi64x(1023);
  v = _mm256_mul_pd(v, _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_add_epi64(_mm256_cvtepi32_epi64(half), bias), 52)));
  return _mm256_mul_pd(v, _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_add_epi64(_mm256_cvtepi32_epi64(rest), bias), 52)));
}

// Numbers of other types; 32-bit ones go by way of double.
IN f32_v f32_from_i8(const int8_t *p) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)p))); }
IN f32_v f32_from_u8(const uint8_t *p) { return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p))); }
IN f32_v f32_from_i16(const int16_t *p) { return _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(_mm_loadu_si128((const void *)p))); }
IN f32_v f32_from_u16(const uint16_t *p) { return _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)p))); }
IN f64_v f64_from_i32(const int32_t *p) { return _mm256_cvtepi32_pd(_mm_loadu_si128((const void *)p)); }
IN f64_v f64_from_u32(const uint32_t *p) {
  __m128i flipped = _mm_xor_si128(_mm_loadu_si128((const void *)p), _mm_set1_epi32(INT32_MIN));
  return _mm256_add_pd(_mm256_cvtepi32_pd(flipped), _mm256_set1_pd(0x1p31));
}
IN f64_v f64_from_f32(const float *p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }
IN void f64_to_f32(float *p, f64_v v) { _mm_storeu_ps(p, _mm256_cvtpd_ps(v)); }
IN f32_v f32_from_i32(const int32_t *p) { return _mm256_cvtepi32_ps(_mm256_loadu_si256((const void *)p)); }
// The nearest whole number toward zero; 0 of a NaN.
IN void f32_put32(void *p, f32_v v) {
  __m256i x = _mm256_cvttps_epi32(v); // INT32_MIN where it does not fit
  x = _mm256_xor_si256(x, _mm256_castps_si256(_mm256_cmp_ps(v, _mm256_set1_ps(0x1p31f), _CMP_GE_OQ)));
  _mm256_storeu_si256(p, _mm256_and_si256(x, _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_ORD_Q))));
}
// The low bits of whole parts that fit: -128 to 255, -32768 to 65535, -2^31 to 2^32 - 1.
IN void f32_put8(void *p, f32_v v) {
  __m256i x = _mm256_shuffle_epi8(_mm256_cvttps_epi32(v), _mm256_set1_epi64x(0x0c080400)); // the low bytes of each half
  _mm_storel_epi64(p, _mm_unpacklo_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1)));
}
IN void f32_put16(void *p, f32_v v) {
  __m256i x = _mm256_shuffle_epi8(_mm256_cvttps_epi32(v), _mm256_set1_epi64x(0x0d0c090805040100));
  _mm_storeu_si128(p, _mm_unpacklo_epi64(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1)));
}
IN void f64_put32(void *p, f64_v v) {
  // 2^52 + 2^51 is so large that the last digit of the sum has the value 1.
  v = _mm256_add_pd(_mm256_round_pd(v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC), _mm256_set1_pd(0x1.8p52));
  __m256i x = _mm256_permutevar8x32_epi32(_mm256_castpd_si256(v), _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
  _mm_storeu_si128(p, _mm256_castsi256_si128(x));
}
// sticky cuts a double down to 13 digits, of which the last is 1 if that loses any.
IN f64_v f64_sticky(f64_v v) {
  __m256i u = _mm256_castpd_si256(v), low = _mm256_set1_epi64x((1ll << 40) - 1);
  __m256i whole = _mm256_cmpeq_epi64(_mm256_and_si256(u, low), _mm256_setzero_si256());
  return _mm256_castsi256_pd(_mm256_or_si256(_mm256_andnot_si256(low, u), _mm256_andnot_si256(whole, _mm256_set1_epi64x(1ll << 40))));
}
// past_line stores 64 bytes without reading the line into the caches; to is aligned.
IN void past_line(void *to, const void *from) {
  const __m256i *p = from;
  __m256i a = _mm256_loadu_si256(p), b = _mm256_loadu_si256(p + 1);
  _mm256_stream_si256(to, a);
  _mm256_stream_si256((__m256i *)to + 1, b);
}
// past_full, past_half and past_quarter store so much of a register so.
IN void past_full(void *to, const void *from) { _mm256_stream_si256(to, _mm256_loadu_si256(from)); }
IN void past_quarter(void *to, const void *from) {
  long long x;
  __builtin_memcpy(&x, from, 8);
  _mm_stream_si64(to, x);
}
IN void past_half(void *to, const void *from) { _mm_stream_si128(to, _mm_loadu_si128(from)); }
IN void line_set(void *to, uint64_t bits) {
  __m256i v = _mm256_set1_epi64x((int64_t)bits);
  _mm256_storeu_si256(to, v);
  _mm256_storeu_si256((__m256i *)to + 1, v);
}
IN void past_set(void *to, uint64_t bits) {
  __m256i v = _mm256_set1_epi64x((int64_t)bits);
  _mm256_stream_si256(to, v);
  _mm256_stream_si256((__m256i *)to + 1, v);
}
