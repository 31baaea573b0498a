// Reductions of integers, which wrap: plain loops that compilers vectorize with a pragma. Sums and products are
// the same for signed and unsigned types.
#if defined(__clang__)
#define VECTORIZED static
#else
#define VECTORIZED __attribute__((optimize("O3"))) static
#endif
#define ACROSS(E) (4096 / (int64_t)sizeof(E)) // columns at a time, whose results stay in the first-level cache

// A combination of the elements of a row, and of rows that are ld apart, to results.
#define COMBINE_INTEGERS(E, NAME, NONE, TERM)                                                      \
  VECTORIZED E NAME##_row(const E *p, int64_t n) {                                                 \
    E x = NONE;                                                                                    \
    for (int64_t i = 0; i < n; i++)                                                                \
      x = TERM(E, x, p[i]);                                                                        \
    return x;                                                                                      \
  }                                                                                                \
  VECTORIZED void NAME##_columns(int64_t rows, int64_t ld, int64_t n, const E *p, E *restrict to) { \
    for (int64_t i = 0; i < n; i++)                                                                \
      to[i] = NONE;                                                                                \
    for (int64_t j = 0; j < rows; j++, p += ld)                                                    \
      for (int64_t i = 0; i < n; i++)                                                              \
        to[i] = TERM(E, to[i], p[i]);                                                              \
  }
#define BOTH(E, a, b) ((E)(a & b))
#define EITHER(E, a, b) ((E)(a | b))
// Types shorter than int would be promoted to int, whose overflow is undefined.
#define PLUS(E, a, b) ((E)(a + b + 0u))
#define TIMES(E, a, b) ((E)((a + 0u) * b))
#define LARGER(E, a, b) (b > a ? b : a)
#define SMALLER(E, a, b) (b < a ? b : a)

// The first place of a maximum or minimum, for rows and for columns.
#define PLACE_INTEGERS(E, NAME, NONE, BEFORE)                                                      \
  static int64_t NAME##_place(const E *p, int64_t n) {                                            \
    enum { BLOCK = 4096 };                                                                         \
    E best = NONE;                                                                                 \
    int64_t at = 0;                                                                                \
    for (int64_t i = 0; i < n; i += BLOCK) {                                                       \
      E m = NAME##_row(p + i, n - i < BLOCK ? n - i : BLOCK);                                      \
      if (m BEFORE best)                                                                           \
        best = m, at = i;                                                                          \
    }                                                                                              \
    while (at < n && p[at] != best)                                                                \
      at++;                                                                                        \
    return at;                                                                                     \
  }                                                                                                \
  VECTORIZED void NAME##_places(int64_t rows, int64_t ld, int64_t n, const E *p, uint32_t *restrict to) { \
    E best[ACROSS(E)];                                                                             \
    for (int64_t i = 0; i < n; i++)                                                                \
      best[i] = p[i], to[i] = 0;                                                                   \
    for (int64_t j = 1; j < rows; j++)                                                             \
      for (int64_t i = 0; i < n; i++) {                                                            \
        E x = p[j * ld + i];                                                                       \
        to[i] = x BEFORE best[i] ? (uint32_t)j : to[i];                                            \
        best[i] = x BEFORE best[i] ? x : best[i];                                                  \
      }                                                                                            \
  }

// The words are those of the functions in reduce.h. The axis has at least one element. R is the type of results that are
// numbers: at least 32 bits of the sign of E.
#define REDUCE_INTEGERS(E, NAME, U, UNSIGNED, R)                                                   \
  COMBINE_INTEGERS(E, NAME##_max, LOWEST(E), LARGER)                                               \
  COMBINE_INTEGERS(E, NAME##_min, HIGHEST(E), SMALLER)                                             \
  PLACE_INTEGERS(E, NAME##_max, LOWEST(E), >)                                                      \
  PLACE_INTEGERS(E, NAME##_min, HIGHEST(E), <)                                                     \
  static void NAME##_reduce_rows(const simd_word *w) {                                             \
    int64_t n = w[3].i, *place = w[5].p;                                                           \
    const E *p = w[4].p;                                                                           \
    R *to = w[5].p;                                                                                \
    for (int64_t i = 0; i < w[2].i; i++, p += n)                                                   \
      switch (w[1].i) {                                                                            \
      case REDUCE_SUM:                                                                             \
        to[i] = (E)UNSIGNED##_sum_row((const U *)p, n);                                            \
        break;                                                                                     \
      case REDUCE_PRODUCT:                                                                         \
        to[i] = (E)UNSIGNED##_prod_row((const U *)p, n);                                           \
        break;                                                                                     \
      case REDUCE_SMALLEST:                                                                        \
        to[i] = NAME##_min_row(p, n);                                                              \
        break;                                                                                     \
      case REDUCE_LARGEST:                                                                         \
        to[i] = NAME##_max_row(p, n);                                                              \
        break;                                                                                     \
      case REDUCE_ALL:                                                                             \
        to[i] = (E)UNSIGNED##_all_row((const U *)p, n);                                            \
        break;                                                                                     \
      case REDUCE_ANY:                                                                             \
        to[i] = (E)UNSIGNED##_any_row((const U *)p, n);                                            \
        break;                                                                                     \
      case REDUCE_ARG_LARGEST:                                                                     \
        place[i] = NAME##_max_place(p, n);                                                         \
        break;                                                                                     \
      default:                                                                                     \
        place[i] = NAME##_min_place(p, n);                                                         \
      }                                                                                            \
  }                                                                                                \
  static void NAME##_reduce_columns(const simd_word *w) {                                          \
    int64_t rows = w[2].i, ld = w[3].i;                                                            \
    E result[ACROSS(E)];                                                                           \
    uint32_t places[ACROSS(E)];                                                                    \
    for (int64_t i = 0; i < w[4].i; i += ACROSS(E)) {                                              \
      int64_t n = w[4].i - i < ACROSS(E) ? w[4].i - i : ACROSS(E), *place = (int64_t *)w[6].p + i; \
      const E *p = (const E *)w[5].p + i;                                                          \
      R *to = (R *)w[6].p + i;                                                                     \
      switch (w[1].i) {                                                                            \
      case REDUCE_SUM:                                                                             \
        UNSIGNED##_sum_columns(rows, ld, n, (const U *)p, (U *)result);                            \
        break;                                                                                     \
      case REDUCE_PRODUCT:                                                                         \
        UNSIGNED##_prod_columns(rows, ld, n, (const U *)p, (U *)result);                           \
        break;                                                                                     \
      case REDUCE_SMALLEST:                                                                        \
        NAME##_min_columns(rows, ld, n, p, result);                                                \
        break;                                                                                     \
      case REDUCE_LARGEST:                                                                         \
        NAME##_max_columns(rows, ld, n, p, result);                                                \
        break;                                                                                     \
      case REDUCE_ALL:                                                                             \
        UNSIGNED##_all_columns(rows, ld, n, (const U *)p, (U *)result);                            \
        break;                                                                                     \
      case REDUCE_ANY:                                                                             \
        UNSIGNED##_any_columns(rows, ld, n, (const U *)p, (U *)result);                            \
        break;                                                                                     \
      case REDUCE_ARG_LARGEST:                                                                     \
        NAME##_max_places(rows, ld, n, p, places);                                                 \
        break;                                                                                     \
      default:                                                                                     \
        NAME##_min_places(rows, ld, n, p, places);                                                 \
      }                                                                                            \
      for (int64_t k = 0; w[1].i < REDUCE_ARG_LARGEST && k < n; k++)                               \
        to[k] = result[k];                                                                         \
      for (int64_t k = 0; w[1].i >= REDUCE_ARG_LARGEST && k < n; k++)                              \
        place[k] = places[k];                                                                      \
    }                                                                                              \
  }
#define LOWEST(E) ((E)-1 > 0 ? (E)0 : (E)(1ull << (8 * sizeof(E) - 1)))
#define HIGHEST(E) ((E)-1 > 0 ? (E)-1 : (E)~(1ull << (8 * sizeof(E) - 1)))
#define SUMS(U, NAME)                                                                              \
  COMBINE_INTEGERS(U, NAME##_sum, 0, PLUS)                                                         \
  COMBINE_INTEGERS(U, NAME##_prod, 1, TIMES)                                                       \
  COMBINE_INTEGERS(U, NAME##_all, (U)-1, BOTH)                                                     \
  COMBINE_INTEGERS(U, NAME##_any, 0, EITHER)
SUMS(uint8_t, u8)
SUMS(uint16_t, u16)
SUMS(uint32_t, u32)
SUMS(uint64_t, u64)
REDUCE_INTEGERS(int8_t, i8, uint8_t, u8, int32_t)
REDUCE_INTEGERS(int16_t, i16, uint16_t, u16, int32_t)
REDUCE_INTEGERS(int32_t, i32, uint32_t, u32, int32_t)
REDUCE_INTEGERS(int64_t, i64, uint64_t, u64, int64_t)
REDUCE_INTEGERS(uint8_t, u8, uint8_t, u8, uint32_t)
REDUCE_INTEGERS(uint16_t, u16, uint16_t, u16, uint32_t)
REDUCE_INTEGERS(uint32_t, u32, uint32_t, u32, uint32_t)
REDUCE_INTEGERS(uint64_t, u64, uint64_t, u64, uint64_t)

// Word 0 is the type of the elements.
#define BY_INTEGER(NAME)                                                                           \
  EXPORT(int_##NAME) {                                                                             \
    static simd_func *const by_type[] = {i8_##NAME, i16_##NAME, i32_##NAME, i64_##NAME, u8_##NAME, u16_##NAME, u32_##NAME, u64_##NAME}; \
    by_type[w[0].i - TYPE_I8](w);                                                                  \
  }
BY_INTEGER(reduce_rows)
BY_INTEGER(reduce_columns)
#undef BY_INTEGER
#undef SUMS
#undef REDUCE_INTEGERS
#undef PLACE_INTEGERS
#undef COMBINE_INTEGERS
#undef LOWEST
#undef HIGHEST
#undef BOTH
#undef EITHER
#undef PLUS
#undef TIMES
#undef LARGER
#undef SMALLER
#undef ACROSS
#undef VECTORIZED
