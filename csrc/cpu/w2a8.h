// Activations of 8 bits, and their products with ternary weights of 2 bits (kernels/w2a8.cl). A register of bytes of weights has codes of four
// registers of activations, in the pairs of bits of its bytes.

#if defined(__clang__)
#define UNROLL
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

// nr rows of weights times mr rows of activations, by STEP for the codes of a register and a register of activations. Registers take the sums of
// OFTEN groups of 256 weights; DONE makes them sums of 32 bits.
#define PRODUCTS(NAME, NR, MR, OFTEN, STEP, DONE)                                                  \
  IN __attribute__((always_inline)) void NAME##_tile(int nr, int mr, int64_t k, const uint8_t *w, const int8_t *q, int32_t *to) { \
    for (int i = 0; i < mr * nr; i++)                                                              \
      to[i] = 0;                                                                                   \
    for (int64_t g = 0, end; g < k;) {                                                             \
      b8_v s[NR][MR];                                                                              \
      UNROLL for (int r = 0; r < nr; r++)                                                          \
        UNROLL for (int c = 0; c < mr; c++)                                                        \
          s[r][c] = b8_zero();                                                                     \
      for (end = k - g < OFTEN * 256 ? k : g + OFTEN * 256; g < end; g += 256)                     \
        for (int64_t h = 0; h < 64; h += b8_BYTES) {                                               \
          b8_v bits[NR], codes[NR], x;                                                             \
          UNROLL for (int r = 0; r < nr; r++)                                                      \
            bits[r] = b8_load(w + (r * k + g) / 4 + h);                                            \
          QUARTER(STEP, 0) QUARTER(STEP, 1) QUARTER(STEP, 2) QUARTER(STEP, 3)                      \
        }                                                                                          \
      UNROLL for (int r = 0; r < nr; r++)                                                          \
        UNROLL for (int c = 0; c < mr; c++)                                                        \
          to[c * nr + r] = (int32_t)((uint32_t)to[c * nr + r] + (uint32_t)b8_sum(DONE(s[r][c])));  \
    }                                                                                              \
  }
#define QUARTER(STEP, I)                                                                           \
  UNROLL for (int r = 0; r < nr; r++)                                                              \
    codes[r] = b8_codes(bits[r], 2 * I, 3);                                                           \
  UNROLL for (int c = 0; c < mr; c++) {                                                            \
    x = b8_load(q + c * k + g + 64 * I + h);                                                       \
    UNROLL for (int r = 0; r < nr; r++)                                                            \
      s[r][c] = STEP(s[r][c], codes[r], x);                                                        \
  }

// Sums of pairs of products have 16 bits, of which a code of 3 and -128 use 768.
#define BY_PAIRS(s, codes, x) b8_add16(s, b8_pairs(codes, x))
PRODUCTS(pairs, 2, 4, (32767 / 768 * b8_BYTES / 256), BY_PAIRS, b8_wide)
#undef BY_PAIRS
#ifdef HAVE_I8FOUR
#define BY_FOUR(s, codes, x) i8four_step(codes, x, s)
enum { FOUR_ROWS = f32_W == 16 ? 4 : 2 }; // as many sums as registers
PRODUCTS(four, FOUR_ROWS, 6, (1 << 22), BY_FOUR, )
#undef BY_FOUR
#endif
#undef PRODUCTS
#undef QUARTER

// Words: m, n, k, activations, their scales, their sums, weights, their factors, results, results from one row to the next, 1 if the results are integers.
#define ROWS_OF(NAME, NR, MR)                                                                      \
  static __attribute__((noinline)) void NAME##_block(int64_t mr, int64_t k, const uint8_t *w, const int8_t *q, int32_t *to, int one) { \
    switch (one ? mr + 8 : mr) {                                                                   \
      NAME##_CASES(NR)                                                                             \
      NAME##_CASES(1)                                                                              \
    }                                                                                              \
  }                                                                                                \
  static void NAME##_products(const simd_word *word) {                                             \
    int64_t m = word[0].i, n = word[1].i, k = word[2].i, ldy = word[9].i, nr;                      \
    const int8_t *q = word[3].p;                                                                   \
    const float *scales = word[4].p, *by = word[7].p;                                              \
    const int32_t *sums = word[5].p;                                                               \
    const uint8_t *w = word[6].p;                                                                  \
    for (int64_t j = 0; j < n; j += nr) {                                                          \
      nr = n - j < NR ? 1 : NR;                                                                    \
      for (int64_t i = 0, mr; i < m; i += mr) {                                                    \
        int32_t to[NR * MR];                                                                       \
        mr = m - i < MR ? m - i : MR;                                                              \
        NAME##_block(mr, k, w + j * k / 4, q + i * k, to, nr == 1);                                \
        for (int64_t c = 0; c < mr; c++)                                                           \
          for (int64_t r = 0; r < nr; r++) {                                                       \
            int32_t sum = (int32_t)((uint32_t)to[c * nr + r] - (uint32_t)sums[i + c]);             \
            if (word[10].i)                                                                        \
              ((int32_t *)word[8].p)[(i + c) * ldy + j + r] = sum;                                 \
            else                                                                                   \
              ((float *)word[8].p)[(i + c) * ldy + j + r] = (float)sum / scales[i + c] * by[j + r]; \
          }                                                                                        \
      }                                                                                            \
    }                                                                                              \
  }
#define CASE(NAME, NR, MR)                                                                         \
  case (NR == 1 ? 8 : 0) + MR:                                                                     \
    NAME##_tile(NR, MR, k, w, q, to);                                                              \
    break;
#define pairs_CASES(NR) CASE(pairs, NR, 1) CASE(pairs, NR, 2) CASE(pairs, NR, 3) CASE(pairs, NR, 4)
ROWS_OF(pairs, 2, 4)
EXPORT(w2a8) { pairs_products(w); }
#ifdef HAVE_I8FOUR
#define four_CASES(NR) CASE(four, NR, 1) CASE(four, NR, 2) CASE(four, NR, 3) CASE(four, NR, 4) CASE(four, NR, 5) CASE(four, NR, 6)
ROWS_OF(four, FOUR_ROWS, 6)
EXPORT(w2a8_four) { four_products(w); }
#endif
#undef ROWS_OF
#undef CASE
#undef UNROLL

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3,no-math-errno,no-trapping-math")
#endif
// Words: rows, elements of a row, bytes of a row of results, elements, results, scales, sums.
EXPORT(w2a8_rows) {
  int64_t cols = w[1].i, k = w[2].i;
  const float *x = w[3].p;
  int8_t *q = w[4].p;
  for (int64_t i = 0; i < w[0].i; i++, x += cols, q += k) {
    const float least = 1e-5f;
    uint32_t most, infinite = 0x7f800000;
    int32_t sum = 0;
    memcpy(&most, &least, sizeof most); // the bits of magnitudes have their order
    for (int64_t j = 0; j < cols; j++) {
      uint32_t bits;
      memcpy(&bits, x + j, sizeof bits);
      bits &= 0x7fffffff;
      most = bits > most ? bits : most;
    }
    float largest, scale;
    memcpy(&largest, &most, sizeof largest);
    scale = 127 / largest;
    if (most >= infinite) {
      scale = __builtin_nanf("");
      memset(q, 0, (size_t)k);
    } else {
      for (int64_t j = 0; j < cols; j++) {
        int32_t v = (int32_t)rintf(x[j] * scale);
        q[j] = (int8_t)v;
        sum += v;
      }
      memset(q + cols, 0, (size_t)(k - cols));
    }
    ((float *)w[5].p)[i] = scale;
    ((int32_t *)w[6].p)[i] = sum;
  }
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
