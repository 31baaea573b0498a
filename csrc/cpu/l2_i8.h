// Many queries of bytes: |q|² + |v|² - 2qv, exact in 32 bits. A word has GROUP components of a
// query or vector, in the form that one instruction multiplies and adds (gemm_i8.h): pairs
// of 16-bit numbers, or four bytes, where OFFSET is added to those of vectors. That
// adds OFFSET times the sum of a query to its products, which the query's initial value subtracts.
#define V CAT(T, v)
#define W CAT(T, W)

IN int64_t CAT(T, l2_words)(int64_t dim) { return (dim + GROUP - 1) / GROUP; }

// Packs queries in strips of L2_I8_ROWS: the initial values of their results, their first words,
// their second words, and so on. Queries and components that do not exist are 0.
static void CAT(T, l2_pack)(const int8_t *from, int64_t n, int64_t dim, int32_t *to) {
  const int64_t rows = L2_I8_ROWS, words = CAT(T, l2_words)(dim);
  for (int64_t i = 0; i < (n + rows - 1) / rows * rows; i++) {
    int32_t *at = to + i / rows * rows * (words + 1) + i % rows, base = 0;
    for (int64_t d = 0; d < dim && i < n; d++)
      base += from[i * dim + d] * (from[i * dim + d] + 2 * OFFSET);
    *at = base;
    for (int64_t p = 0; p < words; p++)
      at[(p + 1) * rows] = i < n ? CAT(T, word)(from + i * dim, 1, p * GROUP, dim, 0) : 0;
  }
}

// Copies components from d on of W vectors, of which n exist.
static __attribute__((noinline)) void CAT(T, l2_copy)(const int8_t *from, int64_t n, int64_t dim, int64_t d, int8_t *to) {
  memset(to, 0, W * GROUP * W);
  for (int64_t r = 0; r < W && r < n; r++)
    memcpy(to + r * GROUP * W, from + r * dim + d, (size_t)(dim - d < GROUP * W ? dim - d : GROUP * W));
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3")
#endif

// Transposes 2W vectors, of which n exist: first the first words of all, then the second, and so
// on, up to whole registers of a vector; and computes their negated squares. Bytes after the last
// components are read up to end, and do not affect the results.
static void CAT(T, l2_prepare)(const int8_t *from, int64_t n, int64_t dim, const int8_t *end, int32_t *to, int32_t *squares) {
  int32_t there[W];
  for (int64_t p = 0; p < W; p++)
    there[p] = CAT(T, word)(&(const int8_t){-1}, 0, p * GROUP, dim % (GROUP * W), 0);
  for (int64_t j = 0; j < 2 * W; j += W) {
    V sum = CAT(T, zero)();
    for (int64_t d = 0; d < dim; d += GROUP * W) {
      V x[W];
      int8_t copy[W * GROUP * W];
      const int8_t *v = copy;
      int64_t step = GROUP * W;
      if (n - j >= W && end - from >= (j + W - 1) * dim + d + GROUP * W)
        v = from + j * dim + d, step = dim;
      else
        CAT(T, l2_copy)(from + j * dim, n - j, dim, d, copy);
      UNROLL for (int r = 0; r < W; r++, v += step)
        x[r] = CAT(T, l2_word)(v);
      if (dim - d < GROUP * W)
        UNROLL for (int r = 0; r < W; r++)
          x[r] &= CAT(T, load)(there);
      CAT(T, turn)(x);
      UNROLL for (int r = 0; r < W; r++) {
        sum = CAT(T, l2_less)(sum, x[r]);
        CAT(T, store)(to + (d / GROUP + r) * 2 * W + j, CAT(T, l2_offset)(x[r]));
      }
    }
    CAT(T, store)(squares + j, sum);
  }
}

// Computes 2W vectors with the m queries of a strip, to rows of results ld apart, past the caches
// or not. Meanwhile the memory at next is prefetched, step bytes per word.
static __attribute__((noinline)) void CAT(T, l2_tile)(int64_t words, const int32_t *v, const int32_t *squares, const int32_t *q,
                                                      int64_t m, float *out, int64_t ld, int past, const char *next, int64_t step) {
  const int32_t *base = q;
  V s[L2_I8_ROWS][2];
  UNROLL for (int r = 0; r < L2_I8_ROWS; r++)
    s[r][0] = s[r][1] = CAT(T, zero)();
  for (int64_t d = 0; d < words; d++, v += 2 * W, next += step) {
    V a = CAT(T, load)(v), b = CAT(T, load)(v + W);
    q += L2_I8_ROWS;
    __builtin_prefetch(next);
    UNROLL for (int r = 0; r < L2_I8_ROWS; r++) {
      s[r][0] = CAT(T, l2_step)(a, q + r, s[r][0]);
      s[r][1] = CAT(T, l2_step)(b, q + r, s[r][1]);
    }
  }
  UNROLL for (int r = 0; r < L2_I8_ROWS; r++)
    UNROLL for (int j = 0; j < 2; j++)
      if (r < m) {
        V sum = i8_sub(i8_sub(CAT(T, set)(base[r]), CAT(T, load)(squares + j * W)), i8_add(s[r][j], s[r][j]));
        f32_v result = l2_unscale(i8_floats(sum));
        if (past)
          f32_past(out + r * ld + j * W, result);
        else
          f32_store(out + r * ld + j * W, result);
      }
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

// Words as for l2_i8, with packed queries; word 8 is the memory for transposed vectors.
static void CAT(T, l2_bytes)(const simd_word *w) {
  const int64_t nq = w[1].i, nv = w[3].i, dim = w[4].i, ld = w[6].i, words = CAT(T, l2_words)(dim), strip = (words + W - 1) / W * W * 2 * W;
  const int8_t *vectors = w[2].p, *end = vectors + nv * dim;
  float *out = w[5].p, part[L2_I8_ROWS * 2 * W];
  int32_t *room = w[8].p, squares[l2_i8_block];
  for (int64_t v = 0; v < nv; v += l2_i8_block) {
    int64_t n = nv - v < l2_i8_block ? nv - v : l2_i8_block, strips = (n + 2 * W - 1) / (2 * W);
    int64_t fetch = n * dim / (strips * ((nq + L2_I8_ROWS - 1) / L2_I8_ROWS)), step = words ? (fetch + words - 1) / words : 0;
    const char *next = (const char *)vectors + (v + n) * dim;
    const int32_t *queries = w[0].p;
    for (int64_t i = 0; i < strips; i++)
      CAT(T, l2_prepare)(vectors + (v + i * 2 * W) * dim, n - i * 2 * W, dim, end, room + i * strip, squares + i * 2 * W);
    for (int64_t q = 0; q < nq; q += L2_I8_ROWS, queries += L2_I8_ROWS * (words + 1))
      for (int64_t i = 0; i < strips; i++, next += fetch) {
        float *to = out + q * ld + v + i * 2 * W;
        int64_t m = nq - q < L2_I8_ROWS ? nq - q : L2_I8_ROWS, k = n - i * 2 * W;
        int whole = k >= 2 * W;
        CAT(T, l2_tile)(words, room + i * strip, squares + i * 2 * W, queries, m, whole ? to : part, whole ? ld : 2 * W,
                        whole && w[9].i, next, step);
        for (int64_t r = 0; !whole && r < m; r++)
          memcpy(to + r * ld, part + r * 2 * W, (size_t)k * sizeof *to);
      }
  }
  past_end();
}
#undef V
#undef W
#undef T
#undef GROUP
#undef OFFSET
