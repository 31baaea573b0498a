// Products of a matrix whose elements are stored as S with a vector of F, in the order of memory:
// the time of reading the matrix limits them.

// Dot products of R rows. Several rows together need fewer loads of the vector, which may be larger than the first-level
// cache.
#define GEMV_DOT(R)                                                                                \
  IN void CAT(S, gemv_dot_##R)(int64_t k, const E *a, int64_t ld, const F *x, F *out) {             \
    CAT(A, v) s[R];                                                                                \
    _Pragma("GCC unroll 8") for (int r = 0; r < R; r++) s[r] = CAT(A, zero)();                     \
    int64_t p = 0;                                                                                 \
    for (; p + CAT(A, W) <= k; p += CAT(A, W)) {                                                   \
      CAT(A, v) by = CAT(A, load)(x + p);                                                          \
      _Pragma("GCC unroll 8") for (int r = 0; r < R; r++) s[r] = CAT(A, fma)(CAT(S, load)(a + r * ld + p), by, s[r]); \
    }                                                                                              \
    if (p < k) {                                                                                   \
      CAT(A, v) by = CAT(A, loadn)(x + p, k - p);                                                  \
      for (int r = 0; r < R; r++)                                                                  \
        s[r] = CAT(A, fma)(CAT(S, loadn)(a + r * ld + p, k - p), by, s[r]);                        \
    }                                                                                              \
    for (int r = 0; r < R; r++)                                                                    \
      out[r] = CAT(A, sum)(s[r]);                                                                  \
  }
GEMV_DOT(8)
GEMV_DOT(1)
#undef GEMV_DOT

// Dot products of rows. Words from 1 on: rows, their length, A, the elements from one row to the next, the
// vector, results.
static void CAT(S, gemv_rows)(const simd_word *w) {
  int64_t rows = w[1].i, k = w[2].i, ld = w[4].i, i = 0;
  const E *a = w[3].p;
  const F *x = w[5].p;
  F *out = w[6].p;
  for (; i + 8 <= rows; i += 8)
    CAT(S, gemv_dot_8)(k, a + i * ld, ld, x, out + i);
  for (; i < rows; i++)
    CAT(S, gemv_dot_1)(k, a + i * ld, ld, x, out + i);
}

// Adds the products of R rows with their elements of the vector to the sums of n columns.
#define GEMV_ADD(R)                                                                                \
  IN void CAT(S, gemv_add_##R)(int64_t n, const E *a, int64_t ld, const F *x, F *out) {             \
    CAT(A, v) by[R];                                                                               \
    for (int r = 0; r < R; r++)                                                                    \
      by[r] = CAT(A, set)(x[r]);                                                                   \
    int64_t j = 0;                                                                                 \
    for (; j + CAT(A, W) <= n; j += CAT(A, W)) {                                                   \
      CAT(A, v) sum = CAT(A, load)(out + j);                                                       \
      _Pragma("GCC unroll 8") for (int r = 0; r < R; r++) sum = CAT(A, fma)(CAT(S, load)(a + r * ld + j), by[r], sum); \
      CAT(A, store)(out + j, sum);                                                                 \
    }                                                                                              \
    if (j < n) {                                                                                   \
      CAT(A, v) sum = CAT(A, loadn)(out + j, n - j);                                               \
      for (int r = 0; r < R; r++)                                                                  \
        sum = CAT(A, fma)(CAT(S, loadn)(a + r * ld + j, n - j), by[r], sum);                       \
      CAT(A, storen)(out + j, n - j, sum);                                                         \
    }                                                                                              \
  }
GEMV_ADD(8)
GEMV_ADD(1)
#undef GEMV_ADD

// The sum of rows, each times its element of the vector. Words from 1 on: rows, columns, A, the elements from one row to
// the next, the vector, results.
static void CAT(S, gemv_columns)(const simd_word *w) {
  int64_t rows = w[1].i, n = w[2].i, ld = w[4].i, i = 0;
  const E *a = w[3].p;
  const F *x = w[5].p;
  F *out = w[6].p;
  memset(out, 0, (size_t)n * sizeof *out);
  for (; i + 8 <= rows; i += 8)
    CAT(S, gemv_add_8)(n, a + i * ld, ld, x + i, out);
  for (; i < rows; i++)
    CAT(S, gemv_add_1)(n, a + i * ld, ld, x + i, out);
}

// y = alpha·(the sum of parts) + beta·y for n elements. With beta 0, y is not read. Words from 1 on: n, parts, the first part, the
// elements from one part to the next, alpha, beta, y.
static void CAT(S, gemv_store)(const simd_word *w) {
  int64_t n = w[1].i, parts = w[2].i, ld = w[4].i;
  const F *from = w[3].p;
  CAT(A, v) alpha = CAT(A, set)((F)w[5].f), beta = CAT(A, set)((F)w[6].f);
  E *y = w[7].p;
  for (int64_t j = 0; j < n; j += CAT(A, W)) {
    int64_t some = n - j < CAT(A, W) ? n - j : CAT(A, W);
    CAT(A, v) sum = CAT(A, zero)();
    for (int64_t p = 0; p < parts; p++)
      sum = CAT(A, add)(sum, CAT(A, loadn)(from + p * ld + j, some));
    sum = CAT(A, mul)(alpha, sum);
    if (w[6].f != 0)
      sum = CAT(A, fma)(beta, CAT(S, loadn)(y + j, some), sum);
    CAT(S, storen)(y + j, some, sum);
  }
}
