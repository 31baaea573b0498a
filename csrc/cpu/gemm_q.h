// Activations of 8 bits, and their products with blocks of weights of 8 and 4 bits (kernels/gemm_q.cl). A lane of a register has a row of
// weights, so that all sets add floats in the order of the blocks.

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#define UNROLL
#else
#define UNROLL _Pragma("GCC unroll 16")
#pragma GCC push_options
#pragma GCC optimize("O3,no-math-errno,no-trapping-math,fp-contract=off")
#endif

enum { Q_PANEL = 16, Q_REGS = Q_PANEL / f32_W };
typedef int32_t q_ints __attribute__((vector_size(4 * f32_W)));

// np panels of weights times mr rows of activations. A tile has the sums of its registers of rows, for each row of activations. FIRST begins the
// integers of a block, WORDS adds the products with a word of each row, and SUM returns the integers of 32 bits.
#define PRODUCTS(NAME, NP, MR, FIRST, WORDS, SUM)                                                  \
  IN __attribute__((always_inline)) void NAME##_tile(int np, int mr, int bits, int64_t blocks, const uint8_t *w, const uint16_t *by, const int8_t *q, \
                                                     const float *scales, const int32_t *sums, float *to) { \
    int nr = np * Q_REGS;                                                                          \
    int64_t panel = blocks * Q_PANEL;                                                              \
    f32_v all[NP * Q_REGS][MR];                                                                    \
    UNROLL for (int r = 0; r < nr; r++)                                                            \
      UNROLL for (int c = 0; c < mr; c++)                                                          \
        all[r][c] = f32_zero();                                                                    \
    for (int64_t b = 0; b < blocks; b++) {                                                         \
      b8_v low[NP * Q_REGS][MR], high[NP * Q_REGS][MR];                                            \
      UNROLL for (int c = 0; c < mr; c++) {                                                        \
        b8_v less = (b8_v)i8pair_set(-(int32_t)((uint32_t)sums[c * blocks + b] << (bits - 1)));    \
        UNROLL for (int r = 0; r < nr; r++)                                                        \
          FIRST(low[r][c], high[r][c], less);                                                      \
      }                                                                                            \
      UNROLL for (int e = 0; e < bits; e++)                                                        \
        UNROLL for (int r = 0; r < nr; r++) {                                                      \
          b8_v v = b8_load(w + (r / Q_REGS * panel * bits + (b * bits + e) * Q_PANEL + r % Q_REGS * f32_W) * 4); \
          const int8_t *x = q + b * 32 + 4 * e;                                                    \
          WORDS                                                                                    \
        }                                                                                          \
      UNROLL for (int r = 0; r < nr; r++) {                                                        \
        f32_v d = f32_from_f16(by + r / Q_REGS * panel + b * Q_PANEL + r % Q_REGS * f32_W);        \
        UNROLL for (int c = 0; c < mr; c++) {                                                      \
          b8_v s = SUM(low[r][c], high[r][c], sums[c * blocks + b]);                               \
          all[r][c] = f32_add(all[r][c], f32_mul(i8_floats((i8_sums)s), f32_mul(d, f32_set(scales[c * blocks + b])))); \
        }                                                                                          \
      }                                                                                            \
    }                                                                                              \
    UNROLL for (int c = 0; c < mr; c++)                                                            \
      UNROLL for (int r = 0; r < nr; r++)                                                          \
        f32_store(to + (c * nr + r) * f32_W, all[r][c]);                                           \
  }

// Codes of 8 bits are two of 4. The sums of pairs of products with a code of 4 bits have 16 bits, of which those of a block use 16 · 15 · 128.
#define FIRST(low, high, less) low = b8_zero(), high = b8_zero(), (void)less
#define WORDS                                                                                      \
  b8_v first = b8_codes(v, 0, 15), second = b8_codes(v, 4, 15);                                    \
  UNROLL for (int c = 0; c < mr; c++) {                                                            \
    b8_v near = q_word(x + c * blocks * 32);                                                       \
    low[r][c] = b8_add16(low[r][c], b8_pairs(first, near));                                        \
    if (bits == 4)                                                                                 \
      low[r][c] = b8_add16(low[r][c], b8_pairs(second, q_word(x + c * blocks * 32 + 16)));         \
    else                                                                                           \
      high[r][c] = b8_add16(high[r][c], b8_pairs(second, near));                                   \
  }
#define SUM(low, high, sum)                                                                        \
  (b8_v)((q_ints)b8_wide(low) + (bits == 4 ? (q_ints)b8_zero() : (q_ints)b8_wide(high) << 4) -     \
         (q_ints)i8pair_set((int32_t)((uint32_t)sum << (bits - 1))))
IN b8_v q_word(const int8_t *x) {
  int32_t word;
  memcpy(&word, x, sizeof word);
  return (b8_v)i8pair_set(word);
}
PRODUCTS(q_pairs, 1, 4, FIRST, WORDS, SUM)
#undef FIRST
#undef WORDS
#undef SUM

#ifdef HAVE_I8FOUR
#define FIRST(low, high, less) low = less, (void)high
#define WORDS                                                                                      \
  b8_v first = bits == 4 ? b8_codes(v, 0, 15) : v, second = bits == 4 ? b8_codes(v, 4, 15) : v;    \
  UNROLL for (int c = 0; c < mr; c++)                                                              \
    low[r][c] = i8four_l2_step(first, (const int32_t *)(x + c * blocks * 32), low[r][c]);          \
  if (bits == 4)                                                                                   \
    UNROLL for (int c = 0; c < mr; c++)                                                            \
      low[r][c] = i8four_l2_step(second, (const int32_t *)(x + c * blocks * 32 + 16), low[r][c]);
#define SUM(low, high, sum) low
PRODUCTS(q_four, 2, 6, FIRST, WORDS, SUM)
#undef FIRST
#undef WORDS
#undef SUM
#endif
#undef PRODUCTS

// Words: m, n, k, activations, their scales, their sums, weights, their scales, results, results from one row to the next, bits.
#define ROWS_OF(NAME, NP, MR)                                                                      \
  static __attribute__((noinline)) void NAME##_block(int64_t np, int64_t mr, int64_t bits, int64_t blocks, const uint8_t *w, const uint16_t *by, \
                                                     const int8_t *q, const float *scales, const int32_t *sums, float *to) { \
    switch (np << 8 | mr << 4 | bits) { NAME##_CASES }                                             \
  }                                                                                                \
  static void NAME##_products(const simd_word *word) {                                             \
    int64_t m = word[0].i, n = word[1].i, blocks = word[2].i / 32, ldy = word[9].i, bits = word[10].i, np; \
    for (int64_t j = 0; j < n; j += np * Q_PANEL) {                                                \
      np = n - j > (NP - 1) * Q_PANEL ? NP : 1;                                                    \
      int64_t cols = n - j < np * Q_PANEL ? n - j : np * Q_PANEL;                                  \
      for (int64_t i = 0, mr; i < m; i += mr) {                                                    \
        float to[NP * Q_PANEL * MR];                                                               \
        mr = m - i < MR ? m - i : MR;                                                              \
        NAME##_block(np, mr, bits, blocks, (const uint8_t *)word[6].p + j * blocks * bits * 4, (const uint16_t *)word[7].p + j * blocks, \
                     (const int8_t *)word[3].p + i * blocks * 32, (const float *)word[4].p + i * blocks, (const int32_t *)word[5].p + i * blocks, to); \
        for (int64_t c = 0; c < mr; c++)                                                           \
          memcpy((float *)word[8].p + (i + c) * ldy + j, to + c * np * Q_PANEL, (size_t)cols * sizeof(float)); \
      }                                                                                            \
    }                                                                                              \
  }
#define CASE(NAME, NP, MR, BITS)                                                                   \
  case NP << 8 | MR << 4 | BITS:                                                                   \
    NAME##_tile(NP, MR, BITS, blocks, w, by, q, scales, sums, to);                                 \
    break;
#define CASES(NAME, NP, MR) CASE(NAME, NP, MR, 8) CASE(NAME, NP, MR, 4)
#define q_pairs_CASES CASES(q_pairs, 1, 1) CASES(q_pairs, 1, 2) CASES(q_pairs, 1, 3) CASES(q_pairs, 1, 4)
ROWS_OF(q_pairs, 1, 4)
EXPORT(gemm_q) { q_pairs_products(w); }
#ifdef HAVE_I8FOUR
#define SIX(NP)                                                                                    \
  CASES(q_four, NP, 1) CASES(q_four, NP, 2) CASES(q_four, NP, 3) CASES(q_four, NP, 4) CASES(q_four, NP, 5) CASES(q_four, NP, 6)
#define q_four_CASES SIX(1) SIX(2)
ROWS_OF(q_four, 2, 6)
EXPORT(gemm_q_four) { q_four_products(w); }
#endif
#undef ROWS_OF
#undef CASE
#undef CASES
#undef UNROLL

// Words: the first block, the block after the last one, elements of a row, blocks of a row, elements, results, scales, sums.
EXPORT(gemm_q_blocks) {
  int64_t cols = w[2].i, blocks = w[3].i;
  for (int64_t i = w[0].i; i < w[1].i; i++) {
    int64_t from = i % blocks * 32, n = cols - from < 0 ? 0 : cols - from < 32 ? cols - from : 32;
    float x[32] = {0};
    const float least = 1e-5f;
    uint32_t most, bits[32], infinite = 0x7f800000;
    int32_t sum = 0;
    int8_t *q = (int8_t *)w[5].p + i * 32;
    if (n == 32)
      memcpy(x, (const float *)w[4].p + i / blocks * cols + from, sizeof x);
    else if (n > 0)
      memcpy(x, (const float *)w[4].p + i / blocks * cols + from, (size_t)n * sizeof(float));
    memcpy(bits, x, sizeof x);
    memcpy(&most, &least, sizeof most); // the bits of magnitudes have their order
    for (int j = 0; j < 32; j++)
      most = (bits[j] & 0x7fffffff) > most ? bits[j] & 0x7fffffff : most;
    float largest, scale;
    memcpy(&largest, &most, sizeof largest);
    scale = largest * (1.0f / 127);
    if (most >= infinite) {
      scale = __builtin_nanf("");
      memset(q, 0, 32);
    } else {
      float s = 127 / largest;
      for (int j = 0; j < 32; j++) {
        int32_t v = (int32_t)rintf(x[j] * s);
        q[j] = (int8_t)v;
        sum += v;
      }
    }
    ((float *)w[6].p)[i] = scale;
    ((int32_t *)w[7].p)[i] = sum;
  }
}
#if !defined(__clang__)
#pragma GCC pop_options
#endif
