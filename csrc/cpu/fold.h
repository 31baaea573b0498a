// Reductions of numbers that a program of expr.h has computed.

#define FOLD(EXPRESSION)                                                                           \
  for (int64_t j = 0; j < count; j++, from += lanes)                                               \
    for (int64_t i = 0; i < lanes; i++) {                                                          \
      NUMBER x = into[i], y = from[i];                                                             \
      into[i] = EXPRESSION;                                                                        \
    }                                                                                              \
  break;

// NAME(op, into, from, lanes, count) combines each lane of into with count numbers of from, in their order.
// NAME_rows(op, into, from, rows, n) sets each number of into to the combination of n numbers of from: lanes of them, and then
// the lanes in pairs.
#define FOLDS(NAME, ...)                                                                           \
  TILES static void NAME(int64_t op, NUMBER *restrict into, const NUMBER *restrict from, int64_t lanes, int64_t count) { \
    switch (op) {                                                                                  \
    case EXPR_SUM:                                                                                 \
      FOLD(x + y)                                                                                  \
    case EXPR_PRODUCT:                                                                             \
      FOLD(x *y)                                                                                   \
    case EXPR_SMALLEST:                                                                            \
      FOLD((y = x < y ? x : y, x != x ? x : y))                                                    \
    case EXPR_LARGEST:                                                                             \
      FOLD((y = x > y ? x : y, x != x ? x : y))                                                    \
      __VA_ARGS__                                                                                  \
    }                                                                                              \
  }                                                                                                \
  IN void NAME##_tree(int64_t op, NUMBER *into, int64_t lanes, int64_t keep) {                     \
    while (lanes > keep) {                                                                         \
      lanes /= 2;                                                                                  \
      NAME(op, into, into + lanes, lanes, 1);                                                      \
    }                                                                                              \
  }                                                                                                \
  static void NAME##_rows(int64_t op, NUMBER *into, const NUMBER *from, int64_t rows, int64_t n) { \
    NUMBER part[EXPR_TILE];                                                                        \
    int64_t lanes = 1;                                                                             \
    while (lanes < EXPR_TILE && 4 * lanes <= n)                                                    \
      lanes *= 2;                                                                                  \
    int64_t count = n / lanes, rest = n % lanes;                                                   \
    for (int64_t i = 0; i < rows && n > 0; i++, from += n) {                                       \
      memcpy(part, from, (size_t)lanes * sizeof *part);                                            \
      NAME(op, part, from + lanes, lanes, count - 1);                                              \
      NAME(op, part, from + n - rest, rest, 1);                                                    \
      NAME##_tree(op, part, lanes, 1);                                                             \
      NAME(op, into + i, part, 1, 1);                                                              \
    }                                                                                              \
  }
// clang-format off
#define BITWISE case EXPR_ALL: FOLD(x & y) case EXPR_ANY: FOLD(x | y)
// clang-format on
#define NUMBER float
FOLDS(f32_folded)
#undef NUMBER
#define NUMBER double
FOLDS(f64_folded)
#undef NUMBER
#define NUMBER int32_t
FOLDS(i32_folded, BITWISE)
#undef NUMBER
#define NUMBER int64_t
FOLDS(i64_folded, BITWISE)
#undef NUMBER
#define NUMBER uint32_t
FOLDS(u32_folded, BITWISE)
#undef NUMBER
#define NUMBER uint64_t
FOLDS(u64_folded, BITWISE)
#undef NUMBER
#undef BITWISE
#undef FOLDS
#undef FOLD

// Words: operation, class, into, from; then lanes, count, and how many lanes are kept at the end, which differ by a power of
// two; or, with 0 lanes, rows and n.
EXPORT(expr_fold) {
  int64_t op = w[0].i, lanes = w[4].i;
  void *into = w[2].p, *from = w[3].p;
  switch (w[1].i) {
#define CLASS(NUMBER, NAME, TYPE)                                                                  \
  case NUMBER:                                                                                     \
    if (lanes == 0) {                                                                              \
      NAME##_rows(op, (TYPE *)into, (const TYPE *)from, w[5].i, w[6].i);                           \
      break;                                                                                       \
    }                                                                                              \
    NAME(op, (TYPE *)into, (const TYPE *)from, lanes, w[5].i);                                     \
    NAME##_tree(op, (TYPE *)into, lanes, w[6].i);                                                  \
    break;
    CLASS(CLASS_F32, f32_folded, float)
    CLASS(CLASS_F64, f64_folded, double)
    CLASS(CLASS_I32, i32_folded, int32_t)
    CLASS(CLASS_I64, i64_folded, int64_t)
    CLASS(CLASS_U32, u32_folded, uint32_t)
    CLASS(CLASS_U64, u64_folded, uint64_t)
#undef CLASS
  }
}
