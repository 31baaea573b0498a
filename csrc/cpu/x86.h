// Functions with 128-bit registers that both instruction sets of x86 use.

// Transposes four elements of each of four rows that are ld apart: to[p·step + i].
IN void f32_turn4(const float *from, int64_t ld, float *to, int64_t step) {
  __m128 a = _mm_loadu_ps(from), b = _mm_loadu_ps(from + ld), c = _mm_loadu_ps(from + 2 * ld), d = _mm_loadu_ps(from + 3 * ld);
  _MM_TRANSPOSE4_PS(a, b, c, d);
  _mm_storeu_ps(to, a);
  _mm_storeu_ps(to + step, b);
  _mm_storeu_ps(to + 2 * step, c);
  _mm_storeu_ps(to + 3 * step, d);
}

IN void f64_turn4(const double *from, int64_t ld, double *to, int64_t step) {
  for (int64_t i = 0; i < 4; i += 2)
    for (int64_t p = 0; p < 4; p += 2) {
      __m128d a = _mm_loadu_pd(from + i * ld + p), b = _mm_loadu_pd(from + (i + 1) * ld + p);
      _mm_storeu_pd(to + p * step + i, _mm_unpacklo_pd(a, b));
      _mm_storeu_pd(to + (p + 1) * step + i, _mm_unpackhi_pd(a, b));
    }
}

IN float f32_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }
IN double f64_root(double x) { return _mm_cvtsd_f64(_mm_sqrt_sd(_mm_setzero_pd(), _mm_set_sd(x))); }

// Transposes eight elements of each of eight rows that are ld apart: to[c·step + r].
IN void u16_turn8(const uint16_t *from, int64_t ld, uint16_t *to, int64_t step) {
  __m128i x[8], y[8];
  for (int i = 0; i < 8; i++)
    x[i] = _mm_loadu_si128((const __m128i *)(from + i * ld));
  for (int i = 0; i < 4; i++) { // rows 2i and 2i + 1 by pairs
    y[i] = _mm_unpacklo_epi16(x[2 * i], x[2 * i + 1]);
    y[i + 4] = _mm_unpackhi_epi16(x[2 * i], x[2 * i + 1]);
  }
  for (int i = 0; i < 8; i += 2) { // y[0], y[1]: columns 0-3 of rows 0-1, 2-3
    x[i] = _mm_unpacklo_epi32(y[i], y[i + 1]);
    x[i + 1] = _mm_unpackhi_epi32(y[i], y[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) // x[0], x[2]: columns 0-1 of rows 0-3, 4-7
    for (int k = 0; k < 2; k++) {
      _mm_storeu_si128((__m128i *)(to + (i + 2 * k) * step), _mm_unpacklo_epi64(x[i + k], x[i + k + 2]));
      _mm_storeu_si128((__m128i *)(to + (i + 2 * k + 1) * step), _mm_unpackhi_epi64(x[i + k], x[i + k + 2]));
    }
}

IN void u8_turn8(const uint8_t *from, int64_t ld, uint8_t *to, int64_t step) {
  __m128i x[8], y[4], z[4];
  for (int i = 0; i < 8; i++)
    x[i] = _mm_loadl_epi64((const __m128i *)(from + i * ld));
  for (int i = 0; i < 4; i++)
    y[i] = _mm_unpacklo_epi8(x[2 * i], x[2 * i + 1]);
  for (int i = 0; i < 4; i += 2) {
    z[i] = _mm_unpacklo_epi16(y[i], y[i + 1]);
    z[i + 1] = _mm_unpackhi_epi16(y[i], y[i + 1]);
  }
  for (int i = 0; i < 2; i++) { // columns 4i to 4i + 3
    __m128i lo = _mm_unpacklo_epi32(z[i], z[i + 2]), hi = _mm_unpackhi_epi32(z[i], z[i + 2]);
    _mm_storel_epi64((__m128i *)(to + 4 * i * step), lo);
    _mm_storel_epi64((__m128i *)(to + (4 * i + 1) * step), _mm_unpackhi_epi64(lo, lo));
    _mm_storel_epi64((__m128i *)(to + (4 * i + 2) * step), hi);
    _mm_storel_epi64((__m128i *)(to + (4 * i + 3) * step), _mm_unpackhi_epi64(hi, hi));
  }
}
