// Reductions, for elements that are stored as S and computed as A: of rows, whose elements are
// contiguous, and of columns, whose elements are a row apart.
#define V CAT(A, v)
#define W CAT(A, W)
#define LOAD CAT(S, load)
#define LOADN CAT(S, loadn)
#define READ CAT(S, read)

// Sums of TERM of a register x. Blocks of 128·W are added in eight registers, and their sums in
// pairs, in the order in which a binary counter carries. No number takes part in more than 16 + 3 +
// log2(n) additions. Of more than one block, what comes 8 KiB later is prefetched: processors do not read ahead
// far enough, least of all into the next page.
#define SUM(NAME, TERM)                                                                            \
  IN V CAT(S, NAME##_block)(const E *p, int64_t n, V by, const int more) {                         \
    V s0 = CAT(A, zero)(), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0, x;       \
    (void)by;                                                                                      \
    int64_t i = 0;                                                                                 \
    for (; i + 8 * W <= n; i += 8 * W) {                                                           \
      for (int64_t k = 0; more && k < 8 * W * (int64_t)sizeof(E); k += 64)                         \
        __builtin_prefetch((const char *)(p + i) + 8192 + k);                                      \
      x = READ(p + i), s0 = TERM(x, s0), x = READ(p + i + W), s1 = TERM(x, s1);                    \
      x = READ(p + i + 2 * W), s2 = TERM(x, s2), x = READ(p + i + 3 * W), s3 = TERM(x, s3);        \
      x = READ(p + i + 4 * W), s4 = TERM(x, s4), x = READ(p + i + 5 * W), s5 = TERM(x, s5);        \
      x = READ(p + i + 6 * W), s6 = TERM(x, s6), x = READ(p + i + 7 * W), s7 = TERM(x, s7);        \
    }                                                                                              \
    s0 = CAT(A, add)(s0, s4), s1 = CAT(A, add)(s1, s5), s2 = CAT(A, add)(s2, s6), s3 = CAT(A, add)(s3, s7); \
    for (; i + 2 * W <= n; i += 2 * W)                                                             \
      x = READ(p + i), s0 = TERM(x, s0), x = READ(p + i + W), s1 = TERM(x, s1);                    \
    if (i + W <= n)                                                                                \
      x = READ(p + i), s2 = TERM(x, s2), i += W;                                                   \
    if (i < n) /* missing elements are replaced by `by`, whose term is 0 */                             \
      x = CAT(A, part)(LOADN(p + i, n - i), n - i, by), s3 = TERM(x, s3);                          \
    return CAT(A, add)(CAT(A, add)(s0, s1), CAT(A, add)(s2, s3));                                  \
  }                                                                                                \
  static F CAT(S, NAME)(const E *p, int64_t n, F number) {                                         \
    V level[64], by = CAT(A, set)(number);                                                         \
    int64_t count = 0, block = 128 * W;                                                            \
    int depth = 0;                                                                                 \
    if (n <= block)                                                                                \
      return CAT(A, sum)(CAT(S, NAME##_block)(p, n, by, 0));                                        \
    for (int64_t i = 0; i < n; i += block) {                                                       \
      V s = CAT(S, NAME##_block)(p + i, n - i < block ? n - i : block, by, 1);                     \
      for (int64_t c = count++; c & 1; c >>= 1)                                                    \
        s = CAT(A, add)(s, level[--depth]);                                                        \
      level[depth++] = s;                                                                          \
    }                                                                                              \
    V sum = level[--depth];                                                                        \
    while (depth > 0)                                                                              \
      sum = CAT(A, add)(sum, level[--depth]);                                                      \
    return CAT(A, sum)(sum);                                                                       \
  }
#define PLAIN(x, s) CAT(A, add)(s, x)
#define SQUARE(x, s) CAT(A, fma)(CAT(A, sub)(x, by), CAT(A, sub)(x, by), s)
SUM(sum_long, PLAIN)
SUM(sum_squares, SQUARE) // squares of the differences from `by`
#undef SUM
#undef PLAIN
#undef SQUARE

// The maximum and the minimum; NaN if an element is NaN.
#define EXTREME(NAME, COMBINE, NONE, BEFORE)                                                       \
  static F CAT(S, row_##NAME)(const E *p, int64_t n) {                                             \
    V m0 = CAT(A, set)(NONE), m1 = m0, m2 = m0, m3 = m0;                                           \
    F x[W], m;                                                                                     \
    int64_t i = 0;                                                                                 \
    for (; i + 4 * W <= n; i += 4 * W) {                                                           \
      m0 = CAT(A, COMBINE)(m0, READ(p + i)), m1 = CAT(A, COMBINE)(m1, READ(p + i + W));            \
      m2 = CAT(A, COMBINE)(m2, READ(p + i + 2 * W)), m3 = CAT(A, COMBINE)(m3, READ(p + i + 3 * W)); \
    }                                                                                              \
    for (; i + W <= n; i += W)                                                                     \
      m0 = CAT(A, COMBINE)(m0, READ(p + i));                                                       \
    m0 = CAT(A, COMBINE)(CAT(A, COMBINE)(m0, m1), CAT(A, COMBINE)(m2, m3));                        \
    if (i < n)                                                                                     \
      m0 = CAT(A, COMBINE)(m0, CAT(A, part)(LOADN(p + i, n - i), n - i, CAT(A, set)(NONE)));       \
    CAT(A, store)(x, m0);                                                                          \
    m = x[0];                                                                                      \
    for (int k = 1; k < W; k++)                                                                    \
      m = x[k] BEFORE m || x[k] != x[k] ? x[k] : m;                                                \
    return m;                                                                                      \
  }                                                                                                \
  /* Its first index: finds the block that has it, and then the index in that block. */            \
  static int64_t CAT(S, place_##NAME)(const E *p, int64_t n) {                                    \
    enum { BLOCK = 1024 };                                                                         \
    F best = NONE;                                                                                 \
    int64_t at = 0;                                                                                \
    for (int64_t i = 0; i < n; i += BLOCK) {                                                       \
      F m = CAT(S, row_##NAME)(p + i, n - i < BLOCK ? n - i : BLOCK);                              \
      if (m BEFORE best || m != m)                                                                 \
        best = m, at = i;                                                                          \
      if (m != m)                                                                                  \
        break;                                                                                     \
    }                                                                                              \
    for (; at < n && best != best; at++)                                                           \
      if (CAT(S, get)(p + at) != CAT(S, get)(p + at))                                              \
        return at;                                                                                 \
    V by = CAT(A, set)(best);                                                                      \
    for (; at < n; at += W) { /* no element is better, so one that is not worse is the one */    \
      V x = n - at < W ? CAT(A, part)(LOADN(p + at, n - at), n - at, by) : LOAD(p + at);           \
      unsigned behind = COMBINE##_behind(x, by);                                                   \
      if (behind != (1u << W) - 1)                                                                 \
        return at + __builtin_ctz(~behind);                                                        \
    }                                                                                              \
    return 0;                                                                                      \
  }
#define larger_behind(x, by) CAT(A, lessbits)(x, by)
#define smaller_behind(x, by) CAT(A, lessbits)(by, x)
EXTREME(max, larger, (F)-__builtin_inf(), >)
EXTREME(min, smaller, (F)__builtin_inf(), <)
#undef EXTREME
#undef larger_behind
#undef smaller_behind

static F CAT(S, row_prod)(const E *p, int64_t n) {
  V one = CAT(A, set)(1), m0 = one, m1 = one, m2 = one, m3 = one;
  F x[W], m = 1;
  int64_t i = 0;
  for (; i + 4 * W <= n; i += 4 * W) {
    m0 = CAT(A, mul)(m0, READ(p + i)), m1 = CAT(A, mul)(m1, READ(p + i + W));
    m2 = CAT(A, mul)(m2, READ(p + i + 2 * W)), m3 = CAT(A, mul)(m3, READ(p + i + 3 * W));
  }
  for (; i + W <= n; i += W)
    m0 = CAT(A, mul)(m0, READ(p + i));
  if (i < n)
    m1 = CAT(A, mul)(m1, CAT(A, part)(LOADN(p + i, n - i), n - i, one));
  CAT(A, store)(x, CAT(A, mul)(CAT(A, mul)(m0, m1), CAT(A, mul)(m2, m3)));
  for (int k = 0; k < W; k++)
    m *= x[k];
  return m;
}

// Words from 1 on: reduction, rows, columns, from, to. Results are numbers of the type of the computation, or places.
static void CAT(S, reduce_rows)(const simd_word *w) {
  int64_t n = w[3].i, *place = w[5].p;
  const E *p = w[4].p;
  F *to = w[5].p;
  for (int64_t i = 0; i < w[2].i; i++, p += n)
    switch (w[1].i) {
    case REDUCE_SUM:
      to[i] = CAT(S, sum_long)(p, n, 0);
      break;
    case REDUCE_PRODUCT:
      to[i] = CAT(S, row_prod)(p, n);
      break;
    case REDUCE_SMALLEST:
      to[i] = CAT(S, row_min)(p, n);
      break;
    case REDUCE_LARGEST:
      to[i] = CAT(S, row_max)(p, n);
      break;
    case REDUCE_ARG_LARGEST:
      place[i] = CAT(S, place_max)(p, n);
      break;
    default:
      place[i] = CAT(S, place_min)(p, n);
    }
}

// ACROSS columns are processed at a time, so that the sums of all of them stay in the first-level
// cache.
#define ACROSS (4096 / (int64_t)sizeof(F))
IN V CAT(S, load_some)(const E *p, int64_t n) { return n >= W ? READ(p) : LOADN(p, n); }

// Returns the sums of n, at most W, elements of four rows.
IN V CAT(S, four_rows)(const E *p, int64_t ld, int64_t n) {
  V s = CAT(A, add)(CAT(S, load_some)(p, n), CAT(S, load_some)(p + ld, n));
  return CAT(A, add)(s, CAT(A, add)(CAT(S, load_some)(p + 2 * ld, n), CAT(S, load_some)(p + 3 * ld, n)));
}

// into = the sum of eight rows, added to its contents if more. Meanwhile the eight rows that are
// `ahead` are prefetched into the second-level cache: the processor does not predict accesses to so
// many rows.
static void CAT(S, add_rows)(int64_t n, const E *p, int64_t ld, F *into, int more, int64_t ahead) {
  int64_t i = 0;
  for (; i + W <= n; i += W) {
    for (int k = 0; k < 8; k++)
      __builtin_prefetch(p + ahead + k * ld + i, 0, 2);
    V s = CAT(A, add)(CAT(S, four_rows)(p + i, ld, W), CAT(S, four_rows)(p + 4 * ld + i, ld, W));
    CAT(A, store)(into + i, more ? CAT(A, add)(CAT(A, load)(into + i), s) : s);
  }
  if (i < n) {
    V s = CAT(A, add)(CAT(S, four_rows)(p + i, ld, n - i), CAT(S, four_rows)(p + 4 * ld + i, ld, n - i));
    CAT(A, store)(into + i, more ? CAT(A, add)(CAT(A, load)(into + i), s) : s);
  }
}

// into = a row, added to its contents if more.
static void CAT(S, add_row)(int64_t n, const E *p, F *into, int more) {
  int64_t i = 0;
  for (; i + W <= n; i += W)
    CAT(A, store)(into + i, more ? CAT(A, add)(CAT(A, load)(into + i), LOAD(p + i)) : LOAD(p + i));
  if (i < n)
    CAT(A, store)(into + i, more ? CAT(A, add)(CAT(A, load)(into + i), LOADN(p + i, n - i)) : LOADN(p + i, n - i));
}

// Sums of rows ld apart: 16 at a time, whose sums are added in pairs like those of one row for up
// to 2^17 rows, and one after the other beyond that.
static void CAT(S, sum_columns)(int64_t rows, int64_t ld, int64_t n, const E *p, F *to) {
  enum { LEVELS = 14 };
  F level[LEVELS][ACROSS];
  int64_t count = 0;
  int depth = 0;
  for (int64_t j = 0; j < rows; j += 16) {
    int64_t r = j;
    for (; r < j + 16 && r + 8 <= rows; r += 8)
      CAT(S, add_rows)(n, p + r * ld, ld, level[depth], r > j, r + 16 <= rows ? 8 * ld : 0);
    for (; r < j + 16 && r < rows; r++)
      CAT(S, add_row)(n, p + r * ld, level[depth], r > j);
    depth++;
    for (int64_t c = count++; depth > 1 && (c & 1 || depth == LEVELS); c >>= 1, depth--)
      for (int64_t i = 0; i < n; i += W)
        CAT(A, store)(level[depth - 2] + i, CAT(A, add)(CAT(A, load)(level[depth - 2] + i), CAT(A, load)(level[depth - 1] + i)));
  }
  for (int64_t i = 0; i < n; i += W) {
    V s = depth > 0 ? CAT(A, load)(level[depth - 1] + i) : CAT(A, zero)();
    for (int d = depth - 2; d >= 0; d--)
      s = CAT(A, add)(s, CAT(A, load)(level[d] + i));
    CAT(A, store)(to + i, s);
  }
}

#define COLUMNS(NAME, COMBINE, NONE)                                                               \
  static void CAT(S, NAME##_columns)(int64_t rows, int64_t ld, int64_t n, const E *p, F *to) {     \
    for (int64_t i = 0; i < n; i += W)                                                             \
      CAT(A, store)(to + i, CAT(A, set)(NONE));                                                    \
    int64_t j = 0;                                                                                 \
    for (; j + 4 <= rows; j += 4, p += 4 * ld)                                                     \
      for (int64_t i = 0; i < n; i += W) {                                                         \
        V a = CAT(S, load_some)(p + i, n - i), b = CAT(S, load_some)(p + ld + i, n - i);           \
        V c = CAT(S, load_some)(p + 2 * ld + i, n - i), d = CAT(S, load_some)(p + 3 * ld + i, n - i);\
        a = CAT(A, COMBINE)(CAT(A, COMBINE)(a, b), CAT(A, COMBINE)(c, d));                         \
        CAT(A, store)(to + i, CAT(A, COMBINE)(CAT(A, load)(to + i), a));                           \
      }                                                                                            \
    for (; j < rows; j++, p += ld)                                                                 \
      for (int64_t i = 0; i < n; i += W)                                                           \
        CAT(A, store)(to + i, CAT(A, COMBINE)(CAT(A, load)(to + i), CAT(S, load_some)(p + i, n - i)));\
  }
COLUMNS(max, larger, (F)-__builtin_inf())
COLUMNS(min, smaller, (F)__builtin_inf())
COLUMNS(prod, mul, 1)
#undef COLUMNS

#define EXTREME(NAME, NONE, NEGATED)                                                               \
  /* Indices are numbers of type A, so rows are processed in parts whose indices are exact. */     \
  static void CAT(S, place_##NAME##_columns)(int64_t rows, int64_t ld, int64_t n, const E *p, int64_t *to) { \
    enum { BLOCK = 1 << 20 };                                                                      \
    F top[ACROSS], value[ACROSS], place[ACROSS];                                                   \
    for (int64_t i = 0; i < n; i++)                                                                \
      top[i] = NONE, to[i] = 0;                                                                    \
    for (int64_t begin = 0; begin < rows; begin += BLOCK) {                                        \
      for (int64_t i = 0; i < n; i += W)                                                           \
        CAT(A, store)(value + i, CAT(A, set)(NONE)), CAT(A, store)(place + i, CAT(A, zero)());     \
      for (int64_t j = begin; j < rows && j < begin + BLOCK; j += 8)                               \
        for (int64_t i = 0; i < n; i += W) {                                                       \
          V m = CAT(A, load)(value + i), at = CAT(A, load)(place + i);                             \
          for (int64_t r = 0; r < 8 && r < rows - j; r++) {                                        \
            V x = CAT(S, load_some)(p + (j + r) * ld + i, n - i), y = NEGATED(x);                  \
            V old = NEGATED(m);                                                                    \
            at = CAT(A, beats)(y, old, CAT(A, set)((F)(j + r - begin)), at);                       \
            m = CAT(A, beats)(y, old, x, m);                                                       \
          }                                                                                        \
          CAT(A, store)(value + i, m), CAT(A, store)(place + i, at);                               \
        }                                                                                          \
      for (int64_t i = 0; i < n; i++)                                                              \
        if (begin == 0 || NEGATED##_1(value[i]) > NEGATED##_1(top[i]) || (value[i] != value[i] && top[i] == top[i])) \
          top[i] = value[i], to[i] = begin + (int64_t)place[i];                        \
    }                                                                                              \
  }
#define SAME(x) (x)
#define SAME_1(x) (x)
#define MINUS(x) CAT(A, sub)(CAT(A, zero)(), x)
#define MINUS_1(x) (-(x))
EXTREME(max, (F)-__builtin_inf(), SAME)
EXTREME(min, (F)__builtin_inf(), MINUS)
#undef EXTREME

// Words from 1 on: reduction, rows, their distance in elements, columns, from, to.
static void CAT(S, reduce_columns)(const simd_word *w) {
  int64_t rows = w[2].i, ld = w[3].i;
  F result[ACROSS];
  for (int64_t i = 0; i < w[4].i; i += ACROSS) {
    int64_t n = w[4].i - i < ACROSS ? w[4].i - i : ACROSS;
    const E *p = (const E *)w[5].p + i;
    switch (w[1].i) {
    case REDUCE_SUM:
      CAT(S, sum_columns)(rows, ld, n, p, result);
      break;
    case REDUCE_PRODUCT:
      CAT(S, prod_columns)(rows, ld, n, p, result);
      break;
    case REDUCE_SMALLEST:
      CAT(S, min_columns)(rows, ld, n, p, result);
      break;
    case REDUCE_LARGEST:
      CAT(S, max_columns)(rows, ld, n, p, result);
      break;
    case REDUCE_ARG_LARGEST:
      CAT(S, place_max_columns)(rows, ld, n, p, (int64_t *)w[6].p + i);
      continue;
    default:
      CAT(S, place_min_columns)(rows, ld, n, p, (int64_t *)w[6].p + i);
      continue;
    }
    memcpy((F *)w[6].p + i, result, (size_t)n * sizeof(F));
  }
}
#undef ACROSS
#undef SAME
#undef SAME_1
#undef MINUS
#undef MINUS_1
#undef V
#undef W
#undef LOAD
#undef LOADN
#undef READ
