// Activations of 8 bits, and their products with blocks of weights of 8 and 4 to 6 bits (kernels/gemm_q.cl). A lane of a register has a row of
// weights, so that all sets add floats in the order of the blocks.

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#define UNROLL
#define NOT_UNROLLED
#else
#define UNROLL _Pragma("GCC unroll 16")
#define NOT_UNROLLED _Pragma("GCC unroll 1")
#pragma GCC push_options
#pragma GCC optimize("O3,no-math-errno,no-trapping-math,fp-contract=off")
#endif

// Q_NP panels of weights and Q_MR rows of activations are the largest tile. Up to Q_HELD sums of floats stay in registers beside those of a block.
enum { Q_PANEL = 16, Q_REGS = Q_PANEL / f32_W, Q_NP = f32_W == 16 ? 2 : 1, Q_MR = f32_W == 4 ? 4 : 6, Q_HELD = f32_W == 8 ? 4 : 16 };
// A form is the bits of a weight, and 16 times the rule of scales: one for each block, or for eight blocks one with factors for each block and for a least
// number, or for its halves.
enum { Q_ONE, Q_LEAST, Q_HALVES };
#define Q_FORM(BITS, RULE) (16 * RULE + BITS)
typedef uint32_t q_ints __attribute__((vector_size(4 * f32_W)));
typedef uint16_t q_shorts __attribute__((vector_size(4 * f32_W)));
typedef int16_t q_wide __attribute__((vector_size(32)));

#ifdef HAVE_I8FOUR
IN b8_v q_four(b8_v codes, const int8_t *x, b8_v s) { return (b8_v)i8four_l2_step((i8four_v)codes, (const int32_t *)x, (i8four_v)s); }
#else
IN b8_v q_four(b8_v codes, const int8_t *x, b8_v s) { return (void)codes, (void)x, s; } // is not called
#endif

IN b8_v q_word(const int8_t *x) {
  int32_t word;
  memcpy(&word, x, sizeof word);
  return (b8_v)i8pair_set(word);
}

// Adds the products of codes with a word of activations, in one of three ways. Narrow sums of pairs of products have 16 bits, of which codes of 4 bits
// use 16 · 15 · 128 in a block. Pairs of 16 bits are the codes of even places or of odd ones, and wide has the activations.
enum { Q_FOUR, Q_NARROW, Q_WIDE };
IN b8_v q_step(int way, b8_v codes, const int8_t *x, const int16_t *wide, b8_v s) {
  if (way == Q_FOUR)
    return q_four(codes, x, s);
  if (way == Q_NARROW)
    return b8_add16(s, b8_pairs(codes, q_word(x)));
  return (b8_v)i8pair_l2_step((i8pair_v)codes, (const int32_t *)wide, (i8pair_v)s);
}

// The high bits of codes, from a bit of the bytes of a word on.
IN b8_v q_high(b8_v v, int bit, int high) { return (b8_v)(((q_ints)v >> bit & 0x01010101 * ((1u << high) - 1)) << 4); }

// Adds the products of word e of a block of nr registers of rows with mr rows of activations. Each word of those is used while it is in a register.
IN __attribute__((always_inline)) void q_words(int way, int nr, int mr, int bits, int apart, int e, int64_t panel, const uint8_t *w, const int8_t *q, int64_t ld,
                                               int16_t (*wide)[32], b8_v (*low)[Q_MR], b8_v (*high)[Q_MR]) {
  int halves = bits == 8 ? 1 : 2, above = bits == 8 ? 0 : bits - 4, times = way == Q_WIDE ? 2 : 1;
  UNROLL for (int h = 0; h < halves; h++)
    UNROLL for (int t = 0; t < times; t++) {
      b8_v codes[Q_NP * Q_REGS];
      UNROLL for (int r = 0; r < nr; r++) {
        const uint8_t *at = w + (r / Q_REGS * panel * bits + r % Q_REGS * f32_W) * 4;
        codes[r] = b8_load(at + e * Q_PANEL * 4);
        if (bits != 8)
          codes[r] = h ? b8_codes(codes[r], 4, 15) : b8_codes(codes[r], 0, 15);
        if (above) {
          int bit = (e + 4 * h) * above; // of those that words from the fourth on have
          codes[r] = (b8_v)((q_ints)codes[r] | (q_ints)q_high(b8_load(at + (4 + bit / 8) * Q_PANEL * 4), bit % 8, above));
        }
        if (way == Q_WIDE)
          codes[r] = t ? (b8_v)((q_shorts)codes[r] >> 8) : (b8_v)((q_shorts)codes[r] & 255);
      }
      UNROLL for (int c = 0; c < mr; c++)
        UNROLL for (int r = 0; r < nr; r++) {
          b8_v *s = apart && h ? &high[r][c] : &low[r][c];
          *s = q_step(way, codes[r], q + c * ld + 4 * e + 16 * h, wide[c] + 16 * t + 2 * e + 8 * h, *s);
        }
    }
}

// np panels of weights times mr rows of activations, with four products of bytes in an instruction or without.
IN __attribute__((always_inline)) void q_tile(int four, int np, int mr, int form, int64_t blocks, const uint8_t *w, const uint16_t *by, const int8_t *q,
                                              const float *scales, const int32_t *sums, float *to) {
  int nr = np * Q_REGS, bits = form % 16, rule = form / 16, apart = rule == Q_HALVES, way = four ? Q_FOUR : bits == 4 ? Q_NARROW : Q_WIDE, held = nr * mr <= Q_HELD;
  int words = bits == 8 ? 8 : 4;
  int64_t panel = blocks * Q_PANEL;
  f32_v all[Q_NP * Q_REGS][Q_MR];
  UNROLL for (int r = 0; r < nr; r++)
    UNROLL for (int c = 0; c < mr; c++) {
      all[r][c] = f32_zero();
      if (!held)
        f32_store(to + (c * nr + r) * f32_W, all[r][c]);
    }
  for (int64_t b = 0; b < blocks; b++) {
    b8_v low[Q_NP * Q_REGS][Q_MR], high[Q_NP * Q_REGS][Q_MR]; // of the halves of the block, if they are apart
    int32_t less[Q_MR][2];
    int16_t wide[Q_MR][32];
    UNROLL for (int c = 0; c < mr; c++) {
      uint32_t first = (uint32_t)sums[2 * (c * blocks + b)], second = (uint32_t)sums[2 * (c * blocks + b) + 1];
      less[c][0] = (int32_t)(rule == Q_LEAST ? 0 : -(apart ? first : first + second) << (bits - 1));
      less[c][1] = (int32_t)(-second << (bits - 1));
      if (way == Q_WIDE) {
        q_wide x, even, odd;
        memcpy(&x, q + (c * blocks + b) * 32, sizeof x);
        even = (q_wide)((q_wide)((x & 255) << 8) >> 8), odd = x >> 8;
        memcpy(wide[c], &even, sizeof even);
        memcpy(wide[c] + 16, &odd, sizeof odd);
      }
      UNROLL for (int r = 0; r < nr; r++) {
        low[r][c] = way == Q_NARROW ? b8_zero() : (b8_v)i8pair_set(less[c][0]);
        high[r][c] = (b8_v)i8pair_set(less[c][1]);
      }
    }
    const uint8_t *at = w + b * bits * Q_PANEL * 4;
    const int8_t *x = q + b * 32;
    if (four)
      UNROLL for (int e = 0; e < words; e++)
        q_words(way, nr, mr, bits, apart, e, panel, at, x, blocks * 32, wide, low, high);
    else // sums of 16 registers would be kept in memory
      NOT_UNROLLED for (int e = 0; e < words; e++)
        q_words(way, nr, mr, bits, apart, e, panel, at, x, blocks * 32, wide, low, high);
    UNROLL for (int r = 0; r < nr; r++) {
      const uint16_t *at = by + r / Q_REGS * panel + b * Q_PANEL + r % Q_REGS * f32_W;
      f32_v one = f32_zero(), two = one, d;
      if (rule != Q_ONE) { // the scale and the least number of 256 weights, and bytes for each block
        at = by + (r / Q_REGS * panel + b / 8 * 8 * Q_PANEL) / 8 * 10 + r % Q_REGS * f32_W;
        const uint8_t *part = (const uint8_t *)(by + (r / Q_REGS * panel + b / 8 * 8 * Q_PANEL) / 8 * 10 + (2 + b % 8) * Q_PANEL) + r % Q_REGS * f32_W;
        if (rule == Q_LEAST)
          one = f32_mul(f32_from_f16(at), f32_from_u8(part)), two = f32_mul(f32_from_f16(at + Q_PANEL), f32_from_u8(part + Q_PANEL));
        else
          one = f32_from_i8((const int8_t *)part), two = f32_from_i8((const int8_t *)part + Q_PANEL);
      }
      d = f32_from_f16(at);
      UNROLL for (int c = 0; c < mr; c++) {
        f32_v x = i8_floats((i8_sums)(way == Q_NARROW ? (b8_v)((q_ints)b8_wide(low[r][c]) + (q_ints)i8pair_set(less[c][0])) : low[r][c])), scale = f32_set(scales[c * blocks + b]);
        if (apart) // exact: 2^24 at most
          x = f32_fma(i8_floats((i8_sums)high[r][c]), two, f32_mul(x, one));
        if (rule == Q_LEAST)
          x = f32_mul(f32_sub(f32_mul(x, one), f32_mul(f32_set((float)(sums[2 * (c * blocks + b)] + sums[2 * (c * blocks + b) + 1])), two)), scale);
        else
          x = f32_mul(x, f32_mul(d, scale));
        if (held)
          all[r][c] = f32_add(all[r][c], x);
        else
          f32_store(to + (c * nr + r) * f32_W, f32_add(f32_load(to + (c * nr + r) * f32_W), x));
      }
    }
  }
  if (held)
    UNROLL for (int c = 0; c < mr; c++)
      UNROLL for (int r = 0; r < nr; r++)
        f32_store(to + (c * nr + r) * f32_W, all[r][c]);
}

// Words: m, n, k, activations, their scales, their sums, weights, their scales, results, results from one row to the next, form.
#define ROWS_OF(NAME, FOUR)                                                                        \
  static __attribute__((noinline)) void NAME##_block(int64_t np, int64_t mr, int64_t form, int64_t blocks, const uint8_t *w, const uint16_t *by, \
                                                     const int8_t *q, const float *scales, const int32_t *sums, float *to) { \
    switch (np << 12 | mr << 8 | form) { FORMS(FOUR) }                                             \
  }                                                                                                \
  static void NAME##_products(const simd_word *word) {                                             \
    int64_t m = word[0].i, n = word[1].i, blocks = word[2].i / 32, ldy = word[9].i, form = word[10].i, np; \
    for (int64_t j = 0; j < n; j += np * Q_PANEL) {                                                \
      np = n - j > (Q_NP - 1) * Q_PANEL ? Q_NP : 1;                                                \
      int64_t cols = n - j < np * Q_PANEL ? n - j : np * Q_PANEL;                                  \
      for (int64_t i = 0, mr; i < m; i += mr) {                                                    \
        float to[Q_NP * Q_PANEL * Q_MR];                                                           \
        mr = m - i < Q_MR ? m - i : Q_MR;                                                          \
        NAME##_block(np, mr, form, blocks, (const uint8_t *)word[6].p + j * blocks * (form % 16) * 4, \
                     (const uint16_t *)word[7].p + (form / 16 == Q_ONE ? j * blocks : j * blocks / 8 * 10), \
                     (const int8_t *)word[3].p + i * blocks * 32, (const float *)word[4].p + i * blocks, (const int32_t *)word[5].p + i * blocks * 2, to); \
        for (int64_t c = 0; c < mr; c++)                                                           \
          memcpy((float *)word[8].p + (i + c) * ldy + j, to + c * np * Q_PANEL, (size_t)cols * sizeof(float)); \
      }                                                                                            \
    }                                                                                              \
  }
// The forms that exist, which are those of kernels/gemm_q.go.
#define FORMS(FOUR)                                                                                \
  TILES(FOUR, Q_FORM(8, Q_ONE)) TILES(FOUR, Q_FORM(4, Q_ONE)) TILES(FOUR, Q_FORM(4, Q_LEAST)) TILES(FOUR, Q_FORM(6, Q_HALVES)) \
  TILES(FOUR, Q_FORM(5, Q_ONE)) TILES(FOUR, Q_FORM(5, Q_LEAST))
#define CASE(FOUR, NP, MR, FORM)                                                                   \
  case NP << 12 | MR << 8 | (FORM):                                                                \
    q_tile(FOUR, NP, MR, FORM, blocks, w, by, q, scales, sums, to);                                \
    break;
#define UP_TO_4(FOUR, NP, FORM) CASE(FOUR, NP, 1, FORM) CASE(FOUR, NP, 2, FORM) CASE(FOUR, NP, 3, FORM) CASE(FOUR, NP, 4, FORM)
#define UP_TO_6(FOUR, NP, FORM) UP_TO_4(FOUR, NP, FORM) CASE(FOUR, NP, 5, FORM) CASE(FOUR, NP, 6, FORM)
#if GEMM_ROWS == 12
#define TILES(FOUR, FORM) UP_TO_6(FOUR, 1, FORM) UP_TO_6(FOUR, 2, FORM)
#elif GEMM_ROWS == 6
#define TILES(FOUR, FORM) UP_TO_6(FOUR, 1, FORM)
#else
#define TILES(FOUR, FORM) UP_TO_4(FOUR, 1, FORM)
#endif
ROWS_OF(q_pairs, 0)
EXPORT(gemm_q) { q_pairs_products(w); }
#ifdef HAVE_I8FOUR
ROWS_OF(q_four, 1)
EXPORT(gemm_q_four) { q_four_products(w); }
#endif
#undef ROWS_OF
#undef CASE
#undef UP_TO_4
#undef UP_TO_6
#undef TILES
#undef FORMS
#undef Q_FORM
#undef UNROLL

// Words: the first block, the block after the last one, elements of a row, blocks of a row, elements, results, scales, sums.
EXPORT(gemm_q_blocks) {
  int64_t cols = w[2].i, blocks = w[3].i;
  for (int64_t i = w[0].i; i < w[1].i; i++) {
    int64_t from = i % blocks * 32, n = cols - from < 0 ? 0 : cols - from < 32 ? cols - from : 32;
    float x[32] = {0};
    const float least = 1e-5f;
    uint32_t most, bits[32], infinite = 0x7f800000;
    int32_t sum[2] = {0, 0};
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
      for (int h = 0; h < 2; h++)
        for (int j = 16 * h; j < 16 * h + 16; j++) {
          int32_t v = (int32_t)rintf(x[j] * s);
          q[j] = (int8_t)v;
          sum[h] += v;
        }
    }
    ((float *)w[6].p)[i] = scale;
    memcpy((int32_t *)w[7].p + 2 * i, sum, sizeof sum);
  }
}
#if !defined(__clang__)
#pragma GCC pop_options
#endif
