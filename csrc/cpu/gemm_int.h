// Products of matrices of 32 or 64 bits, modulo 2^32 or 2^64. The compiler makes vector instructions of the loops
// over columns.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3")
#endif

// The most columns of a call.
enum { gemm_int_cols = 64 };

// Computes m rows of up to gemm_int_cols columns. It packs the columns of B first, and then multiplies four rows of A
// at a time with them.
#define GEMM_INT(U)                                                                                \
  static void U##_gemm_int(const simd_word *w) {                                                   \
    int64_t m = w[1].i, n = w[2].i, k = w[3].i, rs = w[5].i, cs = w[6].i, bs = w[8].i, bc = w[9].i, ldc = w[11].i; \
    const U##_t *a = w[4].p, *b = w[7].p;                                                          \
    U##_t *c = w[10].p, alpha = (U##_t)w[12].i, beta = (U##_t)w[13].i, *right = w[14].p;           \
    for (int64_t p = 0; p < k; p++)                                                                \
      for (int64_t j = 0; j < gemm_int_cols; j++)                                                  \
        right[p * gemm_int_cols + j] = j < n ? b[p * bs + j * bc] : 0;                             \
    for (int64_t i = 0; i < m; i += 4) {                                                           \
      U##_t sum[4][gemm_int_cols] = {{0}};                                                         \
      for (int64_t p = 0; p < k; p++)                                                              \
        for (int64_t r = 0; r < 4; r++) {                                                          \
          U##_t x = i + r < m ? a[(i + r) * rs + p * cs] : 0;                                      \
          for (int64_t j = 0; j < gemm_int_cols; j++)                                              \
            sum[r][j] += x * right[p * gemm_int_cols + j];                                         \
        }                                                                                          \
      for (int64_t r = 0; r < 4 && i + r < m; r++)                                                 \
        for (int64_t j = 0; j < n; j++) {                                                          \
          U##_t *at = c + (i + r) * ldc + j, x = alpha * sum[r][j];                                \
          *at = beta != 0 ? x + beta * *at : x;                                                    \
        }                                                                                          \
    }                                                                                              \
  }
GEMM_INT(uint32)
GEMM_INT(uint64)
#undef GEMM_INT
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

// Words: 1 for 64 bits, m, n, k, A, its strides from row to row and from column to column, B, likewise, C, ldc, alpha, beta, memory for
// gemm_int_cols·k elements.
EXPORT(gemm_int) { (w[0].i ? uint64_gemm_int : uint32_gemm_int)(w); }
