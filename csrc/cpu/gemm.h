// Products of matrices of E: C = alpha·A·B + beta·C. A kernel computes R rows of NV
// registers of C; it reads a row of B at a time and multiplies it by single elements of A.
// There are three methods: directly from the matrices, from packed panels, and
// as dot products, if A and B are both stored in rows along the depth.
#define V CAT(T, v)
#define W CAT(T, W)

IN void CAT(T, out)(E *at, V sum, V alpha, V beta, int read, int64_t n, CAT(T, m) mask, int whole) {
  V x = CAT(T, mul)(alpha, sum);
  if (whole || n == W) {
    if (read)
      x = CAT(T, fma)(beta, CAT(T, load)(at), x);
    CAT(T, store)(at, x);
  } else {
    if (read)
      x = CAT(T, fma)(beta, CAT(T, loadm)(at, mask), x);
    CAT(T, storem)(at, mask, x);
  }
}

// An operation after a product, on a part of C that is still in the first-level cache:
// C = f(C + bias), with a bias for each column.
typedef void CAT(T, finish)(int64_t m, int64_t n, E *c, int64_t ldc, const E *bias);
#define SAME(x) x
#define FINISH(NAME, F)                                                                            \
  static void CAT(T, finish_##NAME)(int64_t m, int64_t n, E *c, int64_t ldc, const E *bias) {      \
    for (int64_t j = 0; j < n; j += W) {                                                           \
      CAT(T, m) mask = CAT(T, first)(n - j < W ? n - j : W);                                       \
      V b = CAT(T, loadm)(bias + j, mask);                                                         \
      E *at = c + j;                                                                               \
      if (n - j >= W)                                                                              \
        for (int64_t i = 0; i < m; i++, at += ldc)                                                 \
          CAT(T, store)(at, F(CAT(T, add)(CAT(T, load)(at), b)));                                  \
      else                                                                                         \
        for (int64_t i = 0; i < m; i++, at += ldc)                                                 \
          CAT(T, storem)(at, mask, F(CAT(T, add)(CAT(T, loadm)(at, mask), b)));                    \
    }                                                                                              \
  }
FINISH(none, SAME)
FINISH(relu, CAT(T, relu))
FINISH(sigmoid, CAT(T, sigmoid))
FINISH(tanh, CAT(T, tanh_act))
FINISH(gelu, CAT(T, gelu))
FINISH(silu, CAT(T, swish))
FINISH(gelu_tanh, CAT(T, gelu_tanh))
#undef FINISH
#undef SAME
// The operations by their number in a function's words; 0 means none.
static CAT(T, finish) *const CAT(T, finishes)[] = {
    NULL, CAT(T, finish_none), CAT(T, finish_relu), CAT(T, finish_sigmoid), CAT(T, finish_tanh), CAT(T, finish_gelu), CAT(T, finish_silu), CAT(T, finish_gelu_tanh)};

#define TILE gemm
#define STEP fma
#include "tile.h"

// The kernel of the largest tile, on whole panels. They are in the second-level cache, from which processors do not fetch early enough by
// themselves: each step fetches what the step ahead of it by so many multiplies. The left panel goes on into that of the next tile, while
// the right one begins again. C is fetched late, since the panels would evict it, and a row in four steps, since a processor waits for
// few lines at a time.
#define STEPS(R, NV, N, AHEAD)                                                                     \
  for (int64_t end = k - (N); k > end; k--, b += 2 * W) {                                          \
    AHEAD                                                                                          \
    STEP_##NV(R)                                                                                   \
    q0 += R, q1 += R, q2 += R, q3 += R;                                                            \
  }
#define AHEAD_LEFT                                                                                 \
  FETCH_PANEL(q0 + left)                                                                           \
  if (GEMM_ROWS * sizeof(E) > 64)                                                                  \
    FETCH_PANEL(q0 + left + 64 / sizeof(E))
#define AHEAD_BOTH                                                                                 \
  AHEAD_LEFT                                                                                       \
  FETCH_PANEL(b + right)                                                                           \
  if (2 * W * sizeof(E) > 64)                                                                      \
    FETCH_PANEL(b + right + 64 / sizeof(E))
#define BODY_OF(R, NV)                                                                             \
  ROWS_##R(ZERO_##NV)                                                                              \
  for (int64_t row = -1; row < R; row++) {                                                         \
    int64_t some = row < 0 ? k - 4 * R - ahead : k < 4 ? k : 4;                                    \
    if (row >= 0)                                                                                  \
      FETCH(row)                                                                                   \
    STEPS(R, NV, some, AHEAD_BOTH)                                                                 \
  }                                                                                                \
  STEPS(R, NV, k, AHEAD_LEFT)                                                                      \
  V va = CAT(T, set)(scales[0]), vb = CAT(T, set)(scales[1]);                                      \
  ROWS_##R(OUT_##NV)
static __attribute__((noinline)) void CAT(T, gemm_whole)(int64_t k, const E *a, const E *b, E *c, int64_t ldc, E alpha, E beta, int64_t ahead) {
  const int64_t rs = 1, last = W, left = ahead * GEMM_ROWS, right = ahead * 2 * W;
  const int whole = 1;
  const E *q0 = a, *q1 = a + 3, *q2 = a + 6, *q3 = a + 9;
  const CAT(T, m) mask = CAT(T, first)(W);
  E scales[2] = {alpha, beta};
  IN_MEMORY(scales)
  WHOLE(BODY_OF)
  (void)q1, (void)q2, (void)q3, (void)left, (void)right;
}
#undef BODY_OF
#undef AHEAD_BOTH
#undef AHEAD_LEFT
#undef STEPS
#undef TILE
#undef STEP

// gcc keeps arrays of vectors in registers only if it unrolls the loops over them.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3")
#endif

// Few rows by one register: four steps of the depth have separate sums, because the additions to
// a single sum per row would wait for each other.
#define THIN(R)                                                                                    \
  IN void CAT(T, thin_##R)(int64_t k, const E *a, int64_t rs, int64_t cs, const E *b, int64_t ldb,  \
                           E *c, int64_t ldc, E alpha, E beta, int64_t n) {                        \
    CAT(T, m) mask = CAT(T, first)(n);                                                             \
    V s[R][4];                                                                                     \
    for (int i = 0; i < R; i++)                                                                    \
      for (int q = 0; q < 4; q++)                                                                  \
        s[i][q] = CAT(T, zero)();                                                                  \
    for (; k >= 4; k -= 4, a += 4 * cs, b += 4 * ldb)                                              \
      for (int q = 0; q < 4; q++) {                                                                \
        V y = CAT(T, loadm)(b + q * ldb, mask);                                                    \
        for (int i = 0; i < R; i++)                                                                \
          s[i][q] = CAT(T, fma)(CAT(T, set)(a[i * rs + q * cs]), y, s[i][q]);                      \
      }                                                                                            \
    for (; k > 0; k--, a += cs, b += ldb) {                                                        \
      V y = CAT(T, loadm)(b, mask);                                                                \
      for (int i = 0; i < R; i++)                                                                  \
        s[i][0] = CAT(T, fma)(CAT(T, set)(a[i * rs]), y, s[i][0]);                                 \
    }                                                                                              \
    for (int i = 0; i < R; i++)                                                                    \
      CAT(T, out)(c + i * ldc, CAT(T, add)(CAT(T, add)(s[i][0], s[i][1]), CAT(T, add)(s[i][2], s[i][3])), \
                  CAT(T, set)(alpha), CAT(T, set)(beta), beta != 0, n, mask, 0);                   \
  }
THIN(1) THIN(2) THIN(3)
#undef THIN

// Words: m, n, k, A, its strides from row to row and from column to column, B, ldb,
// C, ldc, alpha, beta, the bias, the number of the operation after, the rows up to which a register of columns has four sums for each, at most 3, and the
// depth from which on. The rows of B are contiguous.
EXPORT(CAT(T, gemm_direct)) {
  int64_t m = w[0].i, n = w[1].i, k = w[2].i, rs = w[4].i, cs = w[5].i, ldb = w[7].i, ldc = w[9].i;
  const E *a = w[3].p, *b = w[6].p, *bias = w[12].p;
  E *c = w[8].p;
  CAT(T, finish) *finish = CAT(T, finishes)[w[13].i];
  int64_t blocks = (m + GEMM_ROWS - 1) / GEMM_ROWS;
  if (m <= 0)
    return;
  for (int64_t j = 0, cols; j < n; j += cols) {
    int64_t most = (n - j + W - 1) / W, nv = 8, rows = (m + blocks - 1) / blocks;
    while (nv > most || nv * rows > GEMM_REGS)
      nv /= 2;
    cols = n - j < nv * W ? n - j : nv * W;
    if (nv == 1 && m <= w[14].i && k >= w[15].i) {
#define CALL(R) CAT(T, thin_##R)(k, a, rs, cs, b + j, ldb, c + j, ldc, (E)w[10].f, (E)w[11].f, cols)
      if (m == 1)
        CALL(1);
      else if (m == 2)
        CALL(2);
      else
        CALL(3);
#undef CALL
      if (finish)
        finish(m, cols, c + j, ldc, bias + j);
      continue;
    }
    for (int64_t q = 0; q < blocks; q++) {
      int64_t i = m * q / blocks, next = m * (q + 1) / blocks;
      CAT(T, gemm_kernels)[next - i][nv](k, a + i * rs, rs, cs, b + j, ldb, c + i * ldc + j, ldc,
                                         (E)w[10].f, (E)w[11].f, cols - (nv - 1) * W);
      if (finish)
        finish(next - i, cols, c + i * ldc + j, ldc, bias + j);
    }
  }
}

// C = alpha·(the sum of parts) + beta·C, and the operation after. Words: m, n, the first part, its elements from row to row and from column to
// column, parts, the elements from one part to the next, C, ldc, alpha, beta, the bias, the number of the operation after.
EXPORT(CAT(T, gemm_store)) {
  int64_t m = w[0].i, n = w[1].i, rs = w[3].i, cs = w[4].i, parts = w[5].i, step = w[6].i, ldc = w[8].i;
  const E *from = w[2].p;
  E *c = w[7].p;
  V alpha = CAT(T, set)((E)w[9].f), beta = CAT(T, set)((E)w[10].f);
  CAT(T, finish) *finish = CAT(T, finishes)[w[12].i];
  for (int64_t i = 0; i < m; i++, from += rs, c += ldc) {
    for (int64_t j = 0; j < n; j += W) {
      int64_t some = n - j < W ? n - j : W;
      CAT(T, m) mask = CAT(T, first)(some);
      V sum = CAT(T, zero)();
      for (int64_t p = 0; p < parts; p++) {
        const E *at = from + p * step + j * cs;
        E turned[W];
        for (int64_t q = 0; cs != 1 && q < some; q++)
          turned[q] = at[q * cs];
        sum = CAT(T, add)(sum, CAT(T, loadm)(cs == 1 ? at : turned, mask));
      }
      CAT(T, out)(c + j, sum, alpha, beta, w[10].f != 0, some, mask, 0);
    }
    if (finish)
      finish(1, n, c, ldc, w[11].p);
  }
}

// Dot products of R rows of A with N rows of B, which are columns of op(B).
#define DOT(R, N)                                                                                  \
  IN void CAT(T, dot_##R##_##N)(int64_t k, const E *a, int64_t lda, const E *b, int64_t ldb, E *c,  \
                                int64_t ldc, E alpha, E beta) {                                    \
    V s[R][N];                                                                                     \
    for (int i = 0; i < R; i++)                                                                    \
      for (int j = 0; j < N; j++)                                                                  \
        s[i][j] = CAT(T, zero)();                                                                  \
    int64_t p = 0;                                                                                 \
    for (; p + W <= k; p += W)                                                                     \
      for (int i = 0; i < R; i++) {                                                                \
        V x = CAT(T, load)(a + i * lda + p);                                                       \
        for (int j = 0; j < N; j++)                                                                \
          s[i][j] = CAT(T, fma)(x, CAT(T, load)(b + j * ldb + p), s[i][j]);                        \
      }                                                                                            \
    if (p < k) {                                                                                   \
      CAT(T, m) mask = CAT(T, first)(k - p);                                                       \
      for (int i = 0; i < R; i++) {                                                                \
        V x = CAT(T, loadm)(a + i * lda + p, mask);                                                \
        for (int j = 0; j < N; j++)                                                                \
          s[i][j] = CAT(T, fma)(x, CAT(T, loadm)(b + j * ldb + p, mask), s[i][j]);                 \
      }                                                                                            \
    }                                                                                              \
    for (int i = 0; i < R; i++)                                                                    \
      for (int j = 0; j < N; j++) {                                                                \
        E x = alpha * CAT(T, sum)(s[i][j]), *at = c + i * ldc + j;                                 \
        *at = beta != 0 ? x + beta * *at : x;                                                      \
      }                                                                                            \
  }
DOT(4, 1) DOT(4, 2) DOT(4, 3) DOT(1, 1) DOT(1, 2) DOT(1, 3)
#if DOT_COLS == 4
DOT(4, 4) DOT(1, 4)
#endif
#undef DOT

// Words: m, n, k, A, lda, B as n rows of k, ldb, C, ldc, alpha, beta, the bias, the number of the
// operation after.
EXPORT(CAT(T, gemm_dot)) {
  int64_t m = w[0].i, n = w[1].i, k = w[2].i, lda = w[4].i, ldb = w[6].i, ldc = w[8].i;
  E alpha = (E)w[9].f, beta = (E)w[10].f;
  const E *bias = w[11].p;
  CAT(T, finish) *finish = CAT(T, finishes)[w[12].i];
  for (int64_t j = 0, cols; j < n; j += cols) {
    cols = n - j < DOT_COLS ? n - j : DOT_COLS;
    const E *b = (const E *)w[5].p + j * ldb;
    for (int64_t i = 0; i < m;) {
      const E *a = (const E *)w[3].p + i * lda;
      E *c = (E *)w[7].p + i * ldc + j;
#define CALL(N)                                                                                    \
  case N:                                                                                          \
    if (m - i >= 4)                                                                                \
      CAT(T, dot_4_##N)(k, a, lda, b, ldb, c, ldc, alpha, beta);                                   \
    else                                                                                           \
      CAT(T, dot_1_##N)(k, a, lda, b, ldb, c, ldc, alpha, beta);                                   \
    break;
      switch (cols) {
        CALL(1)
        CALL(2)
        CALL(3)
#if DOT_COLS == 4
        CALL(4)
#endif
      }
#undef CALL
      int64_t rows = m - i >= 4 ? 4 : 1;
      if (finish)
        finish(rows, cols, c, ldc, bias + j);
      i += rows;
    }
  }
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

// Packs one panel of width rows or columns of length depth: to[p·width + i], with zeros for i ≥ n.
// With across, element (i, p) is from[p·ld + i], otherwise from[i·ld + p].
static void CAT(T, pack_panel)(int across, int64_t n, int64_t depth, const E *from, int64_t ld, E *to, int64_t width) {
  if (across && n == 2 * W && width == n)
    for (int64_t p = 0; p < depth; p++, from += ld, to += 2 * W) {
      CAT(T, store)(to, CAT(T, load)(from));
      CAT(T, store)(to + W, CAT(T, load)(from + W));
    }
  else if (across && n == GEMM_ROWS && width == n)
    for (int64_t p = 0; p < depth; p++, from += ld, to += GEMM_ROWS)
      __builtin_memcpy(to, from, GEMM_ROWS * sizeof(E));
  else if (across)
    for (int64_t p = 0; p < depth; p++, from += ld, to += width)
      for (int64_t i = 0; i < width; i++)
        to[i] = i < n ? from[i] : 0;
  else
    for (int64_t p0 = 0; p0 < depth; p0 += 32) {
      int64_t p1 = p0 + 32 < depth ? p0 + 32 : depth, i = 0;
      for (; i + 4 <= n; i += 4) {
        int64_t p = p0;
        for (; p + 4 <= p1; p += 4)
          CAT(T, turn4)(from + i * ld + p, ld, to + p * width + i, width);
        for (; p < p1; p++)
          for (int64_t q = i; q < i + 4; q++)
            to[p * width + q] = from[q * ld + p];
      }
      for (; i < width; i++)
        for (int64_t p = p0; p < p1; p++)
          to[p * width + i] = i < n ? from[i * ld + p] : 0;
    }
}

static void CAT(T, pack)(int across, int64_t n, int64_t depth, const E *from, int64_t ld, E *to, int64_t width) {
  for (int64_t i = 0; i < n; i += width, to += width * depth)
    CAT(T, pack_panel)(across, n - i < width ? n - i : width, depth, from + (across ? i : i * ld), ld, to, width);
}

// Packs columns of op(B) into panels of width columns. Words: across, n, depth, from, ld, to,
// width.
EXPORT(CAT(T, gemm_pack)) {
  CAT(T, pack)(w[0].i != 0, w[1].i, w[2].i, w[3].p, w[4].i, w[5].p, w[6].i);
}

// A product of packed rows of A with packed columns of B, and the operation after it, if any.
static void CAT(T, multiply)(int64_t m, int64_t n, int64_t k, const E *left, const E *right, E *c, int64_t ldc, E alpha, E beta,
                             CAT(T, finish) *finish, const E *bias, int64_t ahead) {
  for (int64_t j = 0; j < n; j += 2 * W, right += 2 * W * k) {
    int64_t cols = n - j < 2 * W ? n - j : 2 * W, nv = cols > W ? 2 : 1;
    for (int64_t i = 0; i < m; i += GEMM_ROWS) {
      int64_t rows = m - i < GEMM_ROWS ? m - i : GEMM_ROWS;
      if (rows == GEMM_ROWS && cols == 2 * W)
        CAT(T, gemm_whole)(k, left + i * k, right, c + i * ldc + j, ldc, alpha, beta, ahead);
      else
        CAT(T, gemm_kernels)[rows][nv](k, left + i * k, 1, GEMM_ROWS, right, 2 * W, c + i * ldc + j, ldc,
                                       alpha, beta, cols - (nv - 1) * W);
      if (finish)
        finish(rows, cols, c + i * ldc + j, ldc, bias + j);
    }
  }
}

// Multiplies a block of rows of A with packed columns of B. Words: m, n, depth, A, lda, across,
// packed B, C, ldc, alpha, beta, memory for packed A, the bias, the number of the operation after, the steps of
// the depth by which panels are fetched ahead.
EXPORT(CAT(T, gemm_block)) {
  CAT(T, pack)(w[5].i != 0, w[0].i, w[2].i, w[3].p, w[4].i, w[11].p, GEMM_ROWS);
  CAT(T, multiply)(w[0].i, w[1].i, w[2].i, w[11].p, w[6].p, w[7].p, w[8].i, (E)w[9].f, (E)w[10].f,
                   CAT(T, finishes)[w[13].i], w[12].p, w[14].i);
}

#undef V
#undef W
