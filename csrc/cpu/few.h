// Products of a few rows of F with a matrix whose elements are stored as S. The time of reading the matrix limits them, so
// that it is read once, in the order of memory, and nothing is packed.

#define V CAT(A, v)
#define W CAT(A, W)
#define UNROLL _Pragma("GCC unroll 8")

// Adds to sums the products of k elements of R rows of the matrix with those of X of the few rows.
#define FEW_DOT(R, X)                                                                              \
  IN void CAT(S, few_dot_##R##_##X)(int64_t k, const E *a, int64_t ld, const F *x, int64_t ldx, V *sums) { \
    V s[R][X], by[X];                                                                              \
    UNROLL for (int r = 0; r < R; r++)                                                             \
      UNROLL for (int i = 0; i < X; i++) s[r][i] = sums[r * X + i];                                \
    int64_t p = 0;                                                                                 \
    for (; p + W <= k; p += W) {                                                                   \
      UNROLL for (int i = 0; i < X; i++) by[i] = CAT(A, load)(x + i * ldx + p);                    \
      UNROLL for (int r = 0; r < R; r++) {                                                         \
        V y = CAT(S, load)(a + r * ld + p);                                                        \
        __builtin_prefetch(a + r * ld + p + 1024 / sizeof(E));                                    \
        UNROLL for (int i = 0; i < X; i++) s[r][i] = CAT(A, fma)(y, by[i], s[r][i]);               \
      }                                                                                            \
    }                                                                                              \
    if (p < k) {                                                                                   \
      UNROLL for (int i = 0; i < X; i++) by[i] = CAT(A, loadn)(x + i * ldx + p, k - p);            \
      UNROLL for (int r = 0; r < R; r++) {                                                         \
        V y = CAT(S, loadn)(a + r * ld + p, k - p);                                                \
        UNROLL for (int i = 0; i < X; i++) s[r][i] = CAT(A, fma)(y, by[i], s[r][i]);               \
      }                                                                                            \
    }                                                                                              \
    UNROLL for (int r = 0; r < R; r++)                                                             \
      UNROLL for (int i = 0; i < X; i++) sums[r * X + i] = s[r][i];                                \
  }                                                                                                \
  static void CAT(S, few_dots_##R##_##X)(int64_t k, const E *a, int64_t ld, const F *x, int64_t ldx, V *sums) { \
    CAT(S, few_dot_##R##_##X)(k, a, ld, x, ldx, sums);                                             \
  }
#define FEW_DOTS(R) FEW_DOT(R, 1) FEW_DOT(R, 2) FEW_DOT(R, 3) FEW_DOT(R, 4)
#define FEW_ENTRIES(R) {CAT(S, few_dots_##R##_1), CAT(S, few_dots_##R##_2), CAT(S, few_dots_##R##_3), CAT(S, few_dots_##R##_4)}
#define FEW_MORE(R) FEW_DOTS(R)
FEW_DOTS(1)
FEW_MORE(FEW_ROWS)

// Dot products of rows of the matrix with the few rows. Words from 1 on: rows of the matrix, few rows, at most FEW_MOST, their
// length, the matrix, its elements from one row to the next, the few rows, likewise theirs, results, those from one row of
// the matrix to the next and from one of the few rows to the next, and the bytes of a part of a row of the matrix, whole
// registers, that is multiplied with all of them if they are more than four.
static void CAT(S, few_rows)(const simd_word *w) {
  typedef void dots(int64_t k, const E *a, int64_t ld, const F *x, int64_t ldx, V *sums);
#define ENTRIES(R) FEW_ENTRIES(R)
  static dots *const by_rows[2][4] = {FEW_ENTRIES(1), ENTRIES(FEW_ROWS)};
#undef ENTRIES
  int64_t n = w[1].i, m = w[2].i, k = w[3].i, ld = w[5].i, ldx = w[7].i, across = w[9].i, down = w[10].i;
  int64_t depth = m > 4 ? w[11].i / (int64_t)sizeof(E) : k; // parts of the rows stay in the first-level cache for all of the few
  const F *x = w[6].p;
  F *out = w[8].p;
  V sums[FEW_ROWS * FEW_MOST];
  for (int64_t j = 0, rows; j < n; j += rows) {
    const E *a = (const E *)w[4].p + j * ld;
    int many = n - j >= FEW_ROWS;
    rows = many ? FEW_ROWS : 1;
    for (int64_t i = 0; i < rows * m; i++)
      sums[i] = CAT(A, zero)();
    for (int64_t p = 0; p < k; p += depth)
      for (int64_t i = 0; i < m; i += 4)
        by_rows[many][m - i < 4 ? m - i - 1 : 3](k - p < depth ? k - p : depth, a + p, ld, x + i * ldx + p, ldx, sums + rows * i);
    for (int64_t i = 0; i < m; i++)
      for (int64_t r = 0, some = m - i / 4 * 4; r < rows; r++)
        out[(j + r) * across + i * down] = CAT(A, sum)(sums[rows * (i / 4 * 4) + r * (some < 4 ? some : 4) + i % 4]);
  }
}

// Adds the products of R rows of the matrix, J registers of each, with their elements of the few rows to sums. last is the
// number of elements in the last register.
#define FEW_ADD(R, J)                                                                              \
  IN void CAT(S, few_add_##R##_##J)(int64_t m, const E *a, int64_t ld, const F *x, int64_t ldx, F *out, int64_t ldo, int64_t last, \
                                    int first) {                                                   \
    V y[R][J], s[J];                                                                               \
    UNROLL for (int r = 0; r < R; r++)                                                             \
      UNROLL for (int j = 0; j < J; j++) y[r][j] = last < W ? CAT(S, loadn)(a + r * ld, last) : CAT(S, load)(a + r * ld + j * W); \
    if (last == W)                                                                               \
      UNROLL for (int r = 0; r < R; r++)                                                           \
        UNROLL for (int j = 0; j < J; j += 64 / sizeof(E) / W) __builtin_prefetch(a + (r + R) * ld + j * W); \
    for (int64_t i = 0; i < m; i++, x += ldx, out += ldo) {                                        \
      UNROLL for (int j = 0; j < J; j++) s[j] = first ? CAT(A, zero)() : last < W ? CAT(A, loadn)(out, last) : CAT(A, load)(out + j * W); \
      UNROLL for (int r = 0; r < R; r++) {                                                         \
        V by = CAT(A, set)(x[r]);                                                                  \
        UNROLL for (int j = 0; j < J; j++) s[j] = CAT(A, fma)(y[r][j], by, s[j]);                  \
      }                                                                                            \
      UNROLL for (int j = 0; j < J; j++) {                                                         \
        if (last < W)                                                                              \
          CAT(A, storen)(out, last, s[j]);                                                         \
        else                                                                                       \
          CAT(A, store)(out + j * W, s[j]);                                                        \
      }                                                                                            \
    }                                                                                              \
  }
#define FEW_WIDER(R, J) FEW_ADD(R, J)
FEW_WIDER(8, FEW_WIDE)
#if FEW_WIDE > 1
FEW_ADD(8, 1)
#endif
FEW_ADD(1, 1)
#undef FEW_ADD
#undef FEW_WIDER

// The sums of rows of the matrix, each times its elements of the few rows. Words from 1 on: columns, few rows, rows of the
// matrix, the matrix, its elements from one row to the next, the few rows, likewise theirs, results, likewise theirs.
static void CAT(S, few_columns)(const simd_word *w) {
  int64_t n = w[1].i, m = w[2].i, k = w[3].i, ld = w[5].i, ldx = w[7].i, ldo = w[9].i, p = 0, j;
  const E *a = w[4].p;
  const F *x = w[6].p;
  F *out = w[8].p;
  for (; p + 8 <= k; p += 8, a += 8 * ld, x += 8) {
    for (j = 0; j + FEW_WIDE * W <= n; j += FEW_WIDE * W)
      CAT(S, CAT(few_add_8, FEW_WIDE))(m, a + j, ld, x, ldx, out + j, ldo, W, p == 0);
    for (; j + W <= n; j += W)
      CAT(S, few_add_8_1)(m, a + j, ld, x, ldx, out + j, ldo, W, p == 0);
    if (j < n)
      CAT(S, few_add_8_1)(m, a + j, ld, x, ldx, out + j, ldo, n - j, p == 0);
  }
  for (; p < k; p++, a += ld, x++)
    for (j = 0; j < n; j += W)
      CAT(S, few_add_1_1)(m, a + j, ld, x, ldx, out + j, ldo, n - j < W ? n - j : W, p == 0);
}

#undef FEW_DOT
#undef FEW_DOTS
#undef FEW_MORE
#undef FEW_ENTRIES
#undef UNROLL
#undef V
#undef W
