// Conversion of the rows of a matrix from half and bfloat16 to float and back, rounded to nearest
// even.

// Converts to float. Words: type (0 half, 1 bfloat16), rows, cols, from, ld of from, to, ld of to.
EXPORT(convert_widen) {
  int64_t bf16 = w[0].i, rows = w[1].i, cols = w[2].i, ld_from = w[4].i, ld_to = w[6].i;
  const uint16_t *from = w[3].p;
  float *to = w[5].p;
  for (int64_t i = 0; i < rows; i++, from += ld_from, to += ld_to) {
    int64_t j = 0;
    for (; j + f32_W <= cols; j += f32_W)
      f32_store(to + j, bf16 ? f32_from_bf16(from + j) : f32_from_f16(from + j));
    if (j < cols) {
      uint16_t rest[f32_W] = {0};
      for (int64_t q = j; q < cols; q++)
        rest[q - j] = from[q];
      f32_storem(to + j, f32_first(cols - j), bf16 ? f32_from_bf16(rest) : f32_from_f16(rest));
    }
  }
}

// Returns the first n floats of from + beta·to; with beta 0, to is not read.
IN f32_v convert_sum(int64_t bf16, int64_t n, const float *from, const uint16_t *to, float beta) {
  f32_v x = f32_loadm(from, f32_first(n)), y;
  if (beta == 0)
    return x;
  if (n == f32_W)
    y = bf16 ? f32_from_bf16(to) : f32_from_f16(to);
  else
    y = bf16 ? bf16_loadn(to, n) : f16_loadn(to, n);
  return f32_fma(f32_set(beta), y, x);
}

// Rounds f(from + beta·to + bias) and writes it to to. Words: type, rows, cols, from, ld of from,
// to, ld of to, beta, the bias, the number of f. With f 0 there is no bias and no function;
// otherwise from is overwritten.
EXPORT(convert_narrow) {
  int64_t bf16 = w[0].i, rows = w[1].i, cols = w[2].i, ld_from = w[4].i, ld_to = w[6].i;
  float *from = w[3].p, beta = (float)w[7].f;
  uint16_t *to = w[5].p;
  f32_finish *finish = f32_finishes[w[9].i];
  for (int64_t i = 0; i < rows; i++, from += ld_from, to += ld_to) {
    float by = beta;
    if (finish) {
      for (int64_t j = 0; j < cols && by != 0; j += f32_W) {
        int64_t n = cols - j < f32_W ? cols - j : f32_W;
        f32_storem(from + j, f32_first(n), convert_sum(bf16, n, from + j, to + j, by));
      }
      finish(1, cols, from, 0, w[8].p);
      by = 0;
    }
    for (int64_t j = 0; j < cols; j += f32_W) {
      int64_t n = cols - j < f32_W ? cols - j : f32_W;
      f32_v x = convert_sum(bf16, n, from + j, to + j, by);
      if (n < f32_W && bf16)
        bf16_storen(to + j, n, x);
      else if (n < f32_W)
        f16_storen(to + j, n, x);
      else if (bf16)
        f32_to_bf16(to + j, x);
      else
        f32_to_f16(to + j, x);
    }
  }
}

// Measures the rate of multiply-adds of this thread: it does word 0 times 100 of them in each of
// ten registers. It stores the result at word 1, so that the compiler does not remove the loop.
EXPORT(f32_fma_peak) {
  f32_v a = f32_set(1.0f), b = f32_set(0.999f);
  f32_v c0 = f32_set(0), c1 = f32_set(1), c2 = f32_set(2), c3 = f32_set(3), c4 = f32_set(4);
  f32_v c5 = f32_set(5), c6 = f32_set(6), c7 = f32_set(7), c8 = f32_set(8), c9 = f32_set(9);
  for (int64_t i = 0; i < w[0].i * 100; i++) {
    c0 = f32_fma(c0, b, a), c1 = f32_fma(c1, b, a), c2 = f32_fma(c2, b, a), c3 = f32_fma(c3, b, a);
    c4 = f32_fma(c4, b, a), c5 = f32_fma(c5, b, a), c6 = f32_fma(c6, b, a), c7 = f32_fma(c7, b, a);
    c8 = f32_fma(c8, b, a), c9 = f32_fma(c9, b, a);
  }
  c0 = f32_add(f32_add(f32_add(c0, c1), f32_add(c2, c3)), f32_add(f32_add(c4, c5), f32_add(c6, c7)));
  *(float *)w[1].p = f32_sum(f32_add(c0, f32_add(c8, c9)));
}
