// Products of bytes with sums of 32 bits, exact modulo 2^32. Rows of A and columns of B are packed
// in words of GROUP elements, which STEP multiplies and adds: four bytes, of which those of
// A have 128 added (OFFSET), or two numbers of 16 bits. A panel of B begins with a row of initial
// sums, which subtract the effect of the 128.
#define V CAT(T, v)
#define W CAT(T, W)

// Tiles are stored whole. Those at the right edge of C are computed in memory of their own, whose elements beyond those of C are not used.
IN void CAT(T, out)(E *at, V sum, V alpha, V beta, int read, int64_t n, CAT(T, m) mask, int whole) {
  typedef uint32_t words __attribute__((vector_size(sizeof(V))));
  V x = CAT(T, mul)(alpha, sum);
  (void)n, (void)mask, (void)whole;
  if (read)
    x = (V)((words)x + (words)CAT(T, mul)(beta, CAT(T, load)(at)));
  CAT(T, store)(at, x);
}

#define TILE gemm
#define STEP step
#undef SHAPES
#define SHAPES PANEL_SHAPES
#undef SPLIT
#define SPLIT 0
#undef RIGHT_LAST
#define RIGHT_LAST(v) RIGHT(v)
#undef START
#define START(v) CAT(T, load)(b + v * W)
#undef BEGIN
#define BEGIN b += ldb;
#include "tile.h"
#undef TILE
#undef STEP
#undef SHAPES
#define SHAPES ALL_SHAPES
#undef SPLIT
#define SPLIT 1
#undef RIGHT_LAST
#define RIGHT_LAST(v) RIGHT_MASKED(v)
#undef START
#define START(v) CAT(T, zero)()
#undef BEGIN
#define BEGIN

// Returns the word of the elements from p on of a row or column. They are step apart and end before
// k.
IN E CAT(T, word)(const int8_t *from, int64_t step, int64_t p, int64_t k, int offset) {
  uint32_t x = 0;
  for (int64_t i = 0; i < GROUP; i++) {
    int32_t v = p + i < k ? from[(p + i) * step] + offset : 0;
    x |= ((uint32_t)v & (0xffffffffu >> (32 - 32 / GROUP))) << (32 / GROUP * i);
  }
  return (E)x;
}

// Packs one panel of B. Words: columns, k, the first element of B, the stride within a column,
// the stride between columns, to.
EXPORT(CAT(T, pack)) {
  int64_t n = w[0].i, k = w[1].i, step = w[3].i, next = w[4].i;
  const int8_t *b = w[2].p;
  E *to = w[5].p;
  for (int64_t j = 0; j < 2 * W; j++) {
    uint32_t sum = 0;
    for (int64_t p = 0; OFFSET && j < n && p < k; p++)
      sum += (uint32_t)b[j * next + p * step];
    to[j] = (E)(0u - OFFSET * sum);
  }
  to += 2 * W;
  for (int64_t p = 0; p < k; p += GROUP, to += 2 * W)
    for (int64_t j = 0; j < 2 * W; j++)
      to[j] = j < n ? CAT(T, word)(b + j * next, step, p, k, 0) : 0;
}

// Multiplies rows of A with all panels of B. Words: m, n, k, A, the stride between rows, the stride
// within a row, panels, C, ldc, alpha, beta, memory for GEMM_ROWS packed rows.
EXPORT(CAT(T, rows)) {
  int64_t m = w[0].i, n = w[1].i, k = w[2].i, rs = w[4].i, cs = w[5].i, ldc = w[8].i, words = (k + GROUP - 1) / GROUP;
  E *left = w[11].p;
  for (int64_t i = 0; i < m; i += GEMM_ROWS) {
    int64_t rows = m - i < GEMM_ROWS ? m - i : GEMM_ROWS;
    for (int64_t q = 0; q < words; q++)
      for (int64_t r = 0; r < GEMM_ROWS; r++)
        left[q * GEMM_ROWS + r] = r < rows ? CAT(T, word)((const int8_t *)w[3].p + (i + r) * rs, cs, q * GROUP, k, OFFSET) : 0;
    const E *right = w[6].p;
    for (int64_t j = 0; j < n; j += 2 * W, right += 2 * W * (words + 1)) {
      int64_t cols = n - j < 2 * W ? n - j : 2 * W, nv = cols > W ? 2 : 1, whole = cols == nv * W, ld = whole ? ldc : 2 * W;
      E *c = (E *)w[7].p + i * ldc + j, edge[GEMM_ROWS * 2 * W], *to = whole ? c : edge;
      for (int64_t r = 0; !whole && w[10].i != 0 && r < rows; r++)
        __builtin_memcpy(edge + r * ld, c + r * ldc, (size_t)cols * sizeof *c);
      CAT(T, gemm_kernels)[rows][nv](words, left, 1, GEMM_ROWS, right, 2 * W, to, ld, (E)w[9].i, (E)w[10].i, W);
      for (int64_t r = 0; !whole && r < rows; r++)
        __builtin_memcpy(c + r * ldc, edge + r * ld, (size_t)cols * sizeof *c);
    }
  }
}

#undef V
#undef W
#undef GROUP
#undef OFFSET
