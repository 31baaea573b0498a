// Many queries of bytes: |q|² + |v|² - 2qv, exact in 32 bits. A word is GROUP bytes of a
// vector, as what the product of bytes multiplies and adds up (gemm_i8.h): pairs of
// 16-bit numbers, or four bytes, of which those of queries are OFFSET more than they are.
// That adds OFFSET times a vector's sum to its products, which its own square gives back.
#include "l2_tile.h"
#define W CAT(T, W)

// Words of one query or vector.
IN int64_t CAT(T, l2_words)(int64_t dim) { return (dim + GROUP - 1) / GROUP; }

// Queries. A strip begins with their squares; 0 stands for components that are not there.
static void CAT(T, l2_pack)(const int8_t *from, int64_t n, int64_t dim, int32_t *to) {
  int64_t words = CAT(T, l2_words)(dim), strip = (words + 1) * 2 * W;
  for (int64_t i = 0; i < (n + 2 * W - 1) / (2 * W) * 2 * W; i++) {
    int32_t *at = to + i / (2 * W) * strip + i % (2 * W), square = 0;
    for (int64_t d = 0; d < dim && i < n; d++)
      square += from[i * dim + d] * from[i * dim + d];
    *at = square;
    for (int64_t p = 0; p < words; p++)
      at[(p + 1) * 2 * W] = i < n ? CAT(T, word)(from + i * dim, 1, p * GROUP, dim, OFFSET) : 0;
  }
}

// Vectors as words, ld apart, and their squares. What is behind their components meets
// zeros of the queries.
static void CAT(T, l2_prepare)(const int8_t *from, int64_t n, int64_t dim, int32_t *to, int64_t ld, int32_t *squares) {
  for (int64_t i = 0; i < n; i += W) {
    i8_sums s[W];
    for (int64_t r = 0; r < W; r++) {
      int64_t d = 0;
      const int8_t *v = from + (i + r < n ? i + r : n - 1) * dim;
      int32_t *row = to + (i + r < n ? i + r : n - 1) * ld;
      s[r] = i8_zero();
      for (; d + GROUP * W <= dim; d += GROUP * W)
        s[r] = CAT(T, l2_widen)(v + d, row + d / GROUP, s[r]);
      if (d < dim) {
        int8_t rest[GROUP * W] = {0};
        memcpy(rest, v + d, (size_t)(dim - d));
        s[r] = CAT(T, l2_widen)(rest, row + d / GROUP, s[r]);
      }
    }
    i8pair_store(squares + i, i8_folded(s));
  }
}

// Words as of l2_i8: those of queries packed, the room of words 8.
static void CAT(T, l2_bytes)(const simd_word *w) {
  const int8_t *vectors = w[2].p;
  int64_t nq = w[1].i, nv = w[3].i, dim = w[4].i, ld_out = w[6].i, words = CAT(T, l2_words)(dim), ld = (words + W - 1) / W * W, past = w[9].i;
  float *out = w[5].p;
  int32_t *room = w[8].p, sums[l2_block * 2 * W], squares[l2_block + W];
  float results[l2_block * 2 * W];
  for (int64_t v = 0; v < nv; v += l2_block) {
    int64_t n = nv - v < l2_block ? nv - v : l2_block, size = n * dim;
    const int8_t *first = vectors + v * dim;
    const int32_t *strip = w[0].p;
    CAT(T, l2_prepare)(first, n, dim, room, ld, squares);
    for (int64_t q = 0; q < nq; q += 2 * W, strip += (words + 1) * 2 * W, size = 0) {
      int64_t m = nq - q < 2 * W ? nq - q : 2 * W;
      float *rows = out + q * ld_out + v;
      CAT(T, l2_strip)(words, room, ld, n, strip + 2 * W, m, sums, past ? NULL : rows, ld_out, (const char *)first + n * dim, size);
      for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j += W) {
          i8_sums product = i8pair_load(sums + i * 2 * W + j), squared = i8_add(i8pair_set(squares[i]), i8pair_load(strip + j));
          f32_store(results + i * 2 * W + j, l2_unscale(i8_floats(i8_sub(squared, i8_add(product, product)))));
        }
      l2_turn(results, n, m, rows, ld_out, (int)past);
    }
  }
  past_end();
}
#undef W
#undef T
#undef GROUP
#undef OFFSET
