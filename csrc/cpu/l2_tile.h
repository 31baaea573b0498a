// Tiles of vectors by packed queries of the elements E, in the words of T.
//
// A word is what one step of the sum takes of a vector: a float, or a few bytes. Queries
// are packed in strips of 2W: their first words, side by side, then their second ones.
#define V CAT(T, v)
#define W CAT(T, W)

// gcc keeps arrays of them in registers only where it unrolls the loops.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3")
#define UNROLL _Pragma("GCC unroll 12")
#else
#define UNROLL
#endif

// R vectors, ld words apart, with NV registers of queries. Meanwhile the vectors at next
// are fetched, step bytes for each word.
#define L2_TILE(R, NV)                                                                             \
  static __attribute__((noinline)) void CAT(T, l2_tile_##R##_##NV)(int64_t words, const E *v, int64_t ld, const E *q, E *to,\
                                                                   const char *next, int64_t step) {\
    const E *at[4] = {v, v + 3 * ld, v + 6 * ld, v + 9 * ld};                                      \
    V s[R][NV];                                                                                    \
    UNROLL for (int r = 0; r < R; r++)                                                             \
      UNROLL for (int j = 0; j < NV; j++)                                                          \
        s[r][j] = CAT(T, zero)();                                                                  \
    for (int64_t d = 0; d < words; d++, q += 2 * W, next += step) {                                \
      V y[NV];                                                                                     \
      UNROLL for (int j = 0; j < NV; j++)                                                          \
        y[j] = CAT(T, load)(q + j * W);                                                            \
      __builtin_prefetch(next);                                                                    \
      UNROLL for (int r = 0; r < R; r++)                                                           \
        UNROLL for (int j = 0; j < NV; j++)                                                        \
          s[r][j] = CAT(T, l2_step)(y[j], at[r / 3] + r % 3 * ld, s[r][j]);                        \
      at[0]++, at[1]++, at[2]++, at[3]++;                                                          \
    }                                                                                              \
    UNROLL for (int r = 0; r < R; r++)                                                             \
      UNROLL for (int j = 0; j < NV; j++)                                                          \
        CAT(T, store)(to + r * 2 * W + j * W, s[r][j]);                                            \
  }
#define L2_TILES(R) L2_TILE(R, 1) L2_TILE(R, 2)
L2_TILES(GEMM_ROWS) L2_TILES(1)
#undef L2_TILES
#undef UNROLL
#undef L2_TILE
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

// n vectors with the m queries of a strip: a row of 2W sums for each vector. The results
// will go to out, in m rows ld_out apart (or NULL: past the caches), and size bytes at next
// are wanted after this.
static void CAT(T, l2_strip)(int64_t words, const E *v, int64_t ld, int64_t n, const E *q, int64_t m, E *sums,
                             const float *out, int64_t ld_out, const char *next, int64_t size) {
  int64_t i = 0, tiles = (n + GEMM_ROWS - 1) / GEMM_ROWS, part = tiles ? size / tiles : 0, step = words ? (part + words - 1) / words : 0;
  for (; i + GEMM_ROWS <= n; i += GEMM_ROWS, next += part) {
    for (int64_t j = i / GEMM_ROWS; out && j < m; j += tiles)
      for (int64_t k = 0; k < n; k += 64 / 4)
        __builtin_prefetch(out + j * ld_out + k, 1);
    (m > W ? CAT(T, CAT(l2_tile, CAT(GEMM_ROWS, 2))) : CAT(T, CAT(l2_tile, CAT(GEMM_ROWS, 1))))(
        words, v + i * ld, ld, q, sums + i * 2 * W, next, step);
  }
  for (; i < n; i++)
    (m > W ? CAT(T, l2_tile_1_2) : CAT(T, l2_tile_1_1))(words, v + i * ld, ld, q, sums + i * 2 * W, next, 0);
}

#undef V
#undef W
