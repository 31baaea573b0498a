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
  VECTORIZED E NAME##_row(int64_t n, const E *p, E turn) {                                         \
    E x = NONE;                                                                                    \
    (void)turn;                                                                                    \
    for (int64_t i = 0; i < n; i++)                                                                \
      x = TERM(E, x, p[i]);                                                                        \
    return x;                                                                                      \
  }                                                                                                \
  VECTORIZED void NAME##_columns(int64_t rows, int64_t ld, int64_t n, const E *p, E turn, E *restrict to) { \
    (void)turn;                                                                                    \
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
// Numbers some of whose bits are turned. The largest of them are, as signed numbers, the largest signed ones if no bit is turned, the smallest if
// all are; the largest and the smallest unsigned ones if the first bit is turned as well.
#define TURNED(E, b) ((E)(b ^ turn))
#define LARGER(E, a, b) (TURNED(E, b) > a ? TURNED(E, b) : a)
#define LOWEST(E) ((E)(1ull << (8 * sizeof(E) - 1)))

// I and U are the signed and the unsigned type of a size; R is the type of results that are numbers, of at least 32 bits. The words are those of
// the functions in reduce.h; that of rows also gets the elements that are searched at a time. The axis has at least one element.
#define REDUCE_INTEGERS(I, U, R, NAME)                                                             \
  COMBINE_INTEGERS(U, NAME##_sum, 0, PLUS)                                                         \
  COMBINE_INTEGERS(U, NAME##_prod, 1, TIMES)                                                       \
  COMBINE_INTEGERS(U, NAME##_all, (U)-1, BOTH)                                                     \
  COMBINE_INTEGERS(U, NAME##_any, 0, EITHER)                                                       \
  COMBINE_INTEGERS(I, NAME##_top, LOWEST(I), LARGER)                                               \
  /* The first place of a maximum of turned numbers, for rows and for columns. */                  \
  static int64_t NAME##_place(int64_t n, const I *p, I turn, int64_t block) {                      \
    I best = LOWEST(I);                                                                            \
    int64_t at = 0;                                                                                \
    for (int64_t i = 0; i < n; i += block) {                                                       \
      I m = NAME##_top_row(n - i < block ? n - i : block, p + i, turn);                            \
      if (m > best)                                                                                \
        best = m, at = i;                                                                          \
    }                                                                                              \
    while (at < n && TURNED(I, p[at]) != best)                                                     \
      at++;                                                                                        \
    return at;                                                                                     \
  }                                                                                                \
  VECTORIZED void NAME##_places(int64_t rows, int64_t ld, int64_t n, const I *p, I turn, uint32_t *restrict to) { \
    I best[ACROSS(I)];                                                                             \
    for (int64_t i = 0; i < n; i++)                                                                \
      best[i] = TURNED(I, p[i]), to[i] = 0;                                                        \
    for (int64_t j = 1; j < rows; j++)                                                             \
      for (int64_t i = 0; i < n; i++) {                                                            \
        I x = TURNED(I, p[j * ld + i]);                                                            \
        to[i] = x > best[i] ? (uint32_t)j : to[i];                                                 \
        best[i] = x > best[i] ? x : best[i];                                                       \
      }                                                                                            \
  }                                                                                                \
  IN I NAME##_turn(const simd_word *w) {                                                           \
    int smallest = w[1].i == REDUCE_SMALLEST || w[1].i == REDUCE_ARG_SMALLEST;                     \
    return (I)((smallest ? -1 : 0) ^ (w[0].i < TYPE_U8 ? 0 : LOWEST(I)));                          \
  }                                                                                                \
  static void NAME##_reduce_rows(const simd_word *w) {                                             \
    int64_t n = w[3].i, *place = w[5].p;                                                           \
    const U *p = w[4].p;                                                                           \
    R *to = w[5].p;                                                                                \
    I turn = NAME##_turn(w);                                                                       \
    for (int64_t i = 0; i < w[2].i; i++, p += n) {                                                 \
      U x;                                                                                         \
      switch (w[1].i) {                                                                            \
      case REDUCE_SUM: x = NAME##_sum_row(n, p, 0); break;                                         \
      case REDUCE_PRODUCT: x = NAME##_prod_row(n, p, 0); break;                                    \
      case REDUCE_ALL: x = NAME##_all_row(n, p, 0); break;                                         \
      case REDUCE_ANY: x = NAME##_any_row(n, p, 0); break;                                         \
      case REDUCE_SMALLEST:                                                                        \
      case REDUCE_LARGEST: x = (U)TURNED(I, NAME##_top_row(n, (const I *)p, turn)); break;         \
      default: place[i] = NAME##_place(n, (const I *)p, turn, w[6].i); continue;                   \
      }                                                                                            \
      to[i] = w[0].i < TYPE_U8 ? (R)(I)x : (R)x;                                                   \
    }                                                                                              \
  }                                                                                                \
  static void NAME##_reduce_columns(const simd_word *w) {                                          \
    int64_t rows = w[2].i, ld = w[3].i;                                                            \
    U result[ACROSS(U)];                                                                           \
    uint32_t places[ACROSS(U)];                                                                    \
    I turn = NAME##_turn(w);                                                                       \
    for (int64_t i = 0; i < w[4].i; i += ACROSS(U)) {                                              \
      int64_t n = w[4].i - i < ACROSS(U) ? w[4].i - i : ACROSS(U), *place = (int64_t *)w[6].p + i; \
      const U *p = (const U *)w[5].p + i;                                                          \
      R *to = (R *)w[6].p + i;                                                                     \
      switch (w[1].i) {                                                                            \
      case REDUCE_SUM: NAME##_sum_columns(rows, ld, n, p, 0, result); break;                       \
      case REDUCE_PRODUCT: NAME##_prod_columns(rows, ld, n, p, 0, result); break;                  \
      case REDUCE_ALL: NAME##_all_columns(rows, ld, n, p, 0, result); break;                       \
      case REDUCE_ANY: NAME##_any_columns(rows, ld, n, p, 0, result); break;                       \
      case REDUCE_SMALLEST:                                                                        \
      case REDUCE_LARGEST:                                                                         \
        NAME##_top_columns(rows, ld, n, (const I *)p, turn, (I *)result);                          \
        for (int64_t k = 0; k < n; k++)                                                            \
          result[k] ^= (U)turn;                                                                    \
        break;                                                                                     \
      default:                                                                                     \
        NAME##_places(rows, ld, n, (const I *)p, turn, places);                                    \
        for (int64_t k = 0; k < n; k++)                                                            \
          place[k] = places[k];                                                                    \
        continue;                                                                                  \
      }                                                                                            \
      for (int64_t k = 0; k < n; k++)                                                              \
        to[k] = w[0].i < TYPE_U8 ? (R)(I)result[k] : (R)result[k];                                 \
    }                                                                                              \
  }
REDUCE_INTEGERS(int8_t, uint8_t, uint32_t, u8)
REDUCE_INTEGERS(int16_t, uint16_t, uint32_t, u16)
REDUCE_INTEGERS(int32_t, uint32_t, uint32_t, u32)
REDUCE_INTEGERS(int64_t, uint64_t, uint64_t, u64)

// Word 0 is the type of the elements.
#define BY_INTEGER(NAME)                                                                           \
  EXPORT(int_##NAME) {                                                                             \
    static simd_func *const by_size[] = {u8_##NAME, u16_##NAME, u32_##NAME, u64_##NAME};           \
    by_size[(w[0].i - TYPE_I8) % 4](w);                                                            \
  }
BY_INTEGER(reduce_rows)
BY_INTEGER(reduce_columns)
#undef BY_INTEGER
#undef REDUCE_INTEGERS
#undef COMBINE_INTEGERS
#undef LOWEST
#undef BOTH
#undef EITHER
#undef PLUS
#undef TIMES
#undef TURNED
#undef LARGER
#undef ACROSS
#undef VECTORIZED
