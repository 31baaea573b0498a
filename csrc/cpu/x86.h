// What both instruction sets of x86 do with the short registers.

// Four rows of four from rows that are ld apart, as columns: to[p·step + i].
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
