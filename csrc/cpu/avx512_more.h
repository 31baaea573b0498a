// What the kernels at the speed of memory need of AVX-512 beyond a product's words.

#define LIKE_512(T, S, V)                                                                          \
  IN V T##_less(V a, V b, V x, V y) { return _mm512_mask_mov_##S(y, _mm512_cmp_##S##_mask(a, b, _CMP_LT_OQ), x); } \
  IN unsigned T##_lessbits(V a, V b) { return _mm512_cmp_##S##_mask(a, b, _CMP_LT_OQ); }          \
  IN V T##_beats(V y, V m, V p, V q) {                                                             \
    return _mm512_mask_mov_##S(q, _mm512_mask_cmp_##S##_mask(_mm512_cmp_##S##_mask(m, m, _CMP_ORD_Q), y, m, _CMP_NLE_UQ), p); \
  }                                                                                                \
  IN V T##_larger(V a, V b) { return _mm512_mask_mov_##S(_mm512_max_##S(a, b), _mm512_cmp_##S##_mask(a, a, _CMP_UNORD_Q), a); } \
  IN V T##_smaller(V a, V b) { return _mm512_mask_mov_##S(_mm512_min_##S(a, b), _mm512_cmp_##S##_mask(a, a, _CMP_UNORD_Q), a); } \
  IN V T##_number(V v) { return _mm512_maskz_mov_##S(_mm512_cmp_##S##_mask(v, v, _CMP_ORD_Q), v); } \
  IN V T##_min(V a, V b) { return _mm512_min_##S(a, b); }
LIKE_512(f32, ps, f32_v)
LIKE_512(f64, pd, f64_v)
#undef LIKE_512
// read is a load of what comes from memory in a stream: by halves, which is faster there.
IN f32_v f32_read(const float *p) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(p)), _mm256_loadu_ps(p + 8), 1);
}
IN f64_v f64_read(const double *p) {
  return _mm512_insertf64x4(_mm512_castpd256_pd512(_mm256_loadu_pd(p)), _mm256_loadu_pd(p + 4), 1);
}
IN double f64_largest(f64_v v) { return _mm512_reduce_max_pd(v); }
// a/b, of sizes from 1 to 2^100 for b and up to b for a: a guess and a step of Newton's.
IN f32_v f32_ratio(f32_v a, f32_v b) {
  f32_v y = _mm512_rcp14_ps(b), q = _mm512_mul_ps(a, y);
  return _mm512_fmadd_ps(_mm512_fnmadd_ps(q, b, a), y, q);
}
IN f64_v f64_max(f64_v a, f64_v b) { return _mm512_max_pd(a, b); }
IN f64_v f64_near(f64_v v) { return _mm512_roundscale_pd(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
IN f64_v f64_scale(f64_v v, f64_v n) { return _mm512_scalef_pd(v, n); }

// Numbers of other types; 32-bit ones go by way of double.
IN f32_v f32_from_i8(const int8_t *p) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)p))); }
IN f32_v f32_from_u8(const uint8_t *p) { return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)p))); }
IN f32_v f32_from_i16(const int16_t *p) { return _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(_mm256_loadu_si256((const void *)p))); }
IN f32_v f32_from_u16(const uint16_t *p) { return _mm512_cvtepi32_ps(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)p))); }
IN f64_v f64_from_i32(const int32_t *p) { return _mm512_cvtepi32_pd(_mm256_loadu_si256((const void *)p)); }
IN f64_v f64_from_u32(const uint32_t *p) { return _mm512_cvtepu32_pd(_mm256_loadu_si256((const void *)p)); }
IN f64_v f64_from_f32(const float *p) { return _mm512_cvtps_pd(_mm256_loadu_ps(p)); }
IN void f64_to_f32(float *p, f64_v v) { _mm256_storeu_ps(p, _mm512_cvtpd_ps(v)); }
IN f32_v f32_from_i32(const int32_t *p) { return _mm512_cvtepi32_ps(_mm512_loadu_si512(p)); }
// The nearest whole number toward zero; 0 of a NaN.
IN void f32_put32(void *p, f32_v v) {
  __m512i x = _mm512_maskz_cvttps_epi32(_mm512_cmp_ps_mask(v, v, _CMP_ORD_Q), v);
  __mmask16 above = _mm512_cmp_ps_mask(v, _mm512_set1_ps(0x1p31f), _CMP_GE_OQ);
  _mm512_storeu_si512(p, _mm512_mask_set1_epi32(x, above, INT32_MAX));
}
// The low bits of whole parts that fit: -128 to 255, -32768 to 65535, -2^31 to 2^32 - 1.
IN void f32_put8(void *p, f32_v v) { _mm_storeu_si128(p, _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(v))); }
IN void f32_put16(void *p, f32_v v) { _mm256_storeu_si256(p, _mm512_cvtepi32_epi16(_mm512_cvttps_epi32(v))); }
IN void f64_put32(void *p, f64_v v) { _mm256_storeu_si256(p, _mm512_cvtepi64_epi32(_mm512_cvttpd_epi64(v))); }
// sticky cuts a double down to 13 digits, of which the last is 1 if that loses any.
IN f64_v f64_sticky(f64_v v) {
  __m512i u = _mm512_castpd_si512(v), low = _mm512_set1_epi64((1ll << 40) - 1);
  __mmask8 lost = _mm512_test_epi64_mask(u, low);
  u = _mm512_andnot_si512(low, u);
  return _mm512_castsi512_pd(_mm512_mask_or_epi64(u, lost, u, _mm512_set1_epi64(1ll << 40)));
}
// past_line stores 64 bytes without reading the line into the caches; to is aligned.
IN void past_line(void *to, const void *from) { _mm512_stream_si512(to, _mm512_loadu_si512(from)); }
// past_full, past_half and past_quarter store so much of a register so.
IN void past_full(void *to, const void *from) { _mm512_stream_si512(to, _mm512_loadu_si512(from)); }
IN void past_quarter(void *to, const void *from) { _mm_stream_si128(to, _mm_loadu_si128(from)); }
IN void past_half(void *to, const void *from) { _mm256_stream_si256(to, _mm256_loadu_si256(from)); }
IN void line_set(void *to, uint64_t bits) { _mm512_storeu_si512(to, _mm512_set1_epi64((int64_t)bits)); }
IN void past_set(void *to, uint64_t bits) { _mm512_stream_si512(to, _mm512_set1_epi64((int64_t)bits)); }
