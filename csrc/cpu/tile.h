// The kernels that compute a tile of R rows by NV registers: for each row of the left operand and
// each column of the right one, STEP over a depth of k. Elements of the left operand are
// rs apart between rows and cs along the depth. Rows of the right operand are contiguous, and NEXT
// apart: ldb, or the number that it points to. last is the number of elements in the last
// register. The kernel stores alpha times the result plus beta times the contents before.
typedef void CAT(T, CAT(TILE, kernel))(int64_t k, const E *a, int64_t rs, int64_t cs, const E *b, LDB ldb,
                                 E *c, int64_t ldc, E alpha, E beta, int64_t last);

#define BODY(R, NV)                                                                                \
  IN void CAT(T, CAT(TILE, body_##R##_##NV))(int64_t k, const E *a, int64_t rs, int64_t cs, const E *b,   \
                                       LDB ldb, E *c, int64_t ldc, E alpha, E beta,                 \
                                       int64_t last, const int whole) {                            \
    const E *q0 = a, *q1 = a + 3 * rs, *q2 = a + 6 * rs, *q3 = a + 9 * rs;                         \
    CAT(T, m) mask = CAT(T, first)(last);                                                          \
    E scales[2] = {alpha, beta};                                                                   \
    IN_MEMORY(scales)                                                                              \
    ROWS_##R(ZERO_##NV)                                                                            \
    BEGIN                                                                                          \
    for (; k > 0; k--) {                                                                           \
      STEP_##NV(R)                                                                                 \
      q0 += cs, q1 += cs, q2 += cs, q3 += cs;                                                      \
      NEXT                                                                                         \
    }                                                                                              \
    (void)q1, (void)q2, (void)q3;                                                                  \
    V va = CAT(T, set)(scales[0]), vb = CAT(T, set)(scales[1]);                                    \
    ROWS_##R(OUT_##NV)                                                                             \
  }
SHAPES(BODY)
#undef BODY

#define KERNEL(R, NV)                                                                              \
  static void CAT(T, CAT(TILE, R##_##NV))(int64_t k, const E *a, int64_t rs, int64_t cs, const E *b,    \
                                      LDB ldb, E *c, int64_t ldc, E alpha, E beta,                  \
                                      int64_t last) {                                              \
    if (SPLIT && last == W)                                                                        \
      CAT(T, CAT(TILE, body_##R##_##NV))(k, a, rs, cs, b, ldb, c, ldc, alpha, beta, W, 1);                \
    else                                                                                           \
      CAT(T, CAT(TILE, body_##R##_##NV))(k, a, rs, cs, b, ldb, c, ldc, alpha, beta, last, 0);             \
  }
SHAPES(KERNEL)
#undef KERNEL

#define ENTRY(R, NV) [R][NV] = CAT(T, CAT(TILE, R##_##NV)),
static CAT(T, CAT(TILE, kernel)) *const CAT(T, CAT(TILE, kernels))[GEMM_ROWS + 1][9] = {SHAPES(ENTRY)};
#undef ENTRY

