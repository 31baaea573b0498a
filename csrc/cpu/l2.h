// Squared distances of rows: Σ (a - b)².
//
// With few queries every vector is read once, from its front to its end and one after
// the other: that is how memory is fastest. With many, queries are packed so that a
// register holds one component of several, and a tile of vectors by queries stays in
// registers; its results lie in the order of vectors and are turned round, as they
// belong in the rows of their queries.
#define W f32_W
IN f32_v l2_square(f32_v a, f32_v b, f32_v sum) {
  f32_v d = f32_sub(a, b);
  return f32_fma(d, d, sum);
}

// W components of a row of floats or halves.
IN f32_v l2_part(const void *row, int half, int64_t at) {
  return half ? f32_from_f16((const uint16_t *)row + at) : f32_load((const float *)row + at);
}

// The last n < W components; what is missing is 0.
IN f32_v l2_rest(const void *row, int half, int64_t at, int64_t n) {
  uint16_t part[f32_W] = {0};
  if (!half)
    return f32_loadm((const float *)row + at, f32_first(n));
  for (int64_t i = 0; i < n; i++)
    part[i] = ((const uint16_t *)row)[at + i];
  return f32_from_f16(part);
}

// A row as floats, a number every width of them.
IN void l2_widen(const void *row, int half, int64_t dim, float *to, int64_t width) {
  for (int64_t d = 0; d < dim; d += W) {
    float part[f32_W];
    int64_t n = dim - d < W ? dim - d : W;
    f32_v x = n == W ? l2_part(row, half, d) : l2_rest(row, half, d, n);
    if (width == 1 && n == W) {
      f32_store(to + d, x);
      continue;
    }
    f32_store(part, x);
    for (int64_t i = 0; i < n; i++)
      to[(d + i) * width] = part[i];
  }
}

// Words: queries, how many, components, 1 if they are halves, where to. Writes floats:
// component d of query i at ((i / 2W)·dim + d)·2W + i mod 2W, or, if word 5 is 0, as
// they were.
static void l2_pack(const simd_word *w) {
  int64_t n = w[1].i, dim = w[2].i, half = w[3].i, width = w[5].i ? 2 * W : 1;
  const char *from = w[0].p;
  float *to = w[4].p;
  for (int64_t i = 0; i < n; i++)
    l2_widen(from + i * dim * (half ? 2 : 4), (int)half, dim, to + i / width * width * dim + i % width, width);
  for (int64_t i = n; i % width != 0; i++) // queries that are not there
    for (int64_t d = 0; d < dim; d++)
      to[i / width * width * dim + d * width + i % width] = 0;
}

// One vector with one query: parts of the sum.
IN f32_v l2_row(const int half, int64_t dim, const void *v, const float *q) {
  f32_v s0 = f32_zero(), s1 = s0, s2 = s0, s3 = s0;
  int64_t d = 0;
  for (; d + 4 * W <= dim; d += 4 * W) {
    s0 = l2_square(f32_load(q + d), l2_part(v, half, d), s0);
    s1 = l2_square(f32_load(q + d + W), l2_part(v, half, d + W), s1);
    s2 = l2_square(f32_load(q + d + 2 * W), l2_part(v, half, d + 2 * W), s2);
    s3 = l2_square(f32_load(q + d + 3 * W), l2_part(v, half, d + 3 * W), s3);
  }
  for (; d + W <= dim; d += W)
    s0 = l2_square(f32_load(q + d), l2_part(v, half, d), s0);
  if (d < dim)
    s1 = l2_square(f32_loadm(q + d, f32_first(dim - d)), l2_rest(v, half, d, dim - d), s1);
  return f32_add(f32_add(s0, s1), f32_add(s2, s3));
}

// gcc keeps arrays of them in registers only where it unrolls the loops.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3")
#endif

// R vectors with NV registers of queries. Meanwhile the vectors at next are fetched,
// step bytes for each component.
#define L2_TILE(R, NV)                                                                             \
  static __attribute__((noinline)) void l2_tile_##R##_##NV(int64_t dim, const float *v, const float *q, float *to, \
                                                           const char *next, int64_t step) {       \
    const float *at[4] = {v, v + 3 * dim, v + 6 * dim, v + 9 * dim};                               \
    f32_v s[R][NV];                                                                                \
    for (int r = 0; r < R; r++)                                                                    \
      for (int j = 0; j < NV; j++)                                                                 \
        s[r][j] = f32_zero();                                                                      \
    for (int64_t d = 0; d < dim; d++, q += 2 * W, next += step) {                                  \
      f32_v y[NV];                                                                                 \
      for (int j = 0; j < NV; j++)                                                                 \
        y[j] = f32_load(q + j * W);                                                                \
      __builtin_prefetch(next);                                                                    \
      for (int r = 0; r < R; r++) {                                                                \
        f32_v x = f32_set(at[r / 3][r % 3 * dim]);                                                 \
        for (int j = 0; j < NV; j++)                                                               \
          s[r][j] = l2_square(y[j], x, s[r][j]);                                                   \
      }                                                                                            \
      at[0]++, at[1]++, at[2]++, at[3]++;                                                          \
    }                                                                                              \
    for (int r = 0; r < R; r++)                                                                    \
      for (int j = 0; j < NV; j++)                                                                 \
        f32_store(to + r * 2 * W + j * W, s[r][j]);                                                \
  }
#define L2_TILES(R) L2_TILE(R, 1) L2_TILE(R, 2)
L2_TILES(GEMM_ROWS) L2_TILES(1)
#undef L2_TILES
#undef L2_TILE
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

// Few queries: words as below. W vectors at a time, as their sums are added up together.
IN void l2_few(const simd_word *w, const int half) {
  const float *queries = w[0].p;
  int64_t nq = w[1].i, nv = w[3].i, dim = w[4].i, ld = w[6].i, size = (half ? 2 : 4) * dim;
  const char *vectors = w[2].p;
  float *out = w[5].p;
  for (int64_t v = 0; v < nv; v += W) {
    int64_t n = nv - v < W ? nv - v : W;
    for (int64_t q = 0; q < nq; q++) {
      f32_v s[W];
      for (int64_t i = 0; i < n; i++)
        s[i] = l2_row(half, dim, vectors + (v + i) * size, queries + q * dim);
      if (n == W)
        f32_store(out + q * ld + v, f32_fold(s));
      else
        for (int64_t i = 0; i < n; i++)
          out[q * ld + v + i] = f32_sum(s[i]);
    }
  }
}

// Results of n vectors with m queries, as rows of the queries.
IN void l2_turn(const float *from, int64_t n, int64_t m, float *out, int64_t ld) {
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    int64_t j = 0;
    for (; j + 4 <= m; j += 4)
      f32_turn4(from + i * 2 * W + j, 2 * W, out + j * ld + i, ld);
    for (; j < m; j++)
      for (int64_t k = i; k < i + 4; k++)
        out[j * ld + k] = from[k * 2 * W + j];
  }
  for (; i < n; i++)
    for (int64_t j = 0; j < m; j++)
      out[j * ld + i] = from[i * 2 * W + j];
}

// The vectors between two turns.
enum { l2_block = 4 * GEMM_ROWS };

// Many queries, packed. Halves are widened into room, a block at a time.
static void l2_many(const simd_word *w) {
  const float *queries = w[0].p;
  const char *vectors = w[2].p;
  int64_t nq = w[1].i, nv = w[3].i, dim = w[4].i, ld = w[6].i, half = w[7].i, size = half ? 2 : 4;
  float *out = w[5].p, *room = w[9].p, results[l2_block * 2 * W];
  for (int64_t v = 0; v < nv; v += l2_block) {
    int64_t n = nv - v < l2_block ? nv - v : l2_block;
    const char *first = vectors + v * dim * size;
    const float *block = half ? room : (const float *)first;
    for (int64_t i = 0; half && i < n; i++)
      l2_widen(first + i * dim * size, 1, dim, room + i * dim, 1);
    for (int64_t q = 0; q < nq; q += 2 * W, queries += 2 * W * dim) {
      int64_t m = nq - q < 2 * W ? nq - q : 2 * W, i = 0;
      int64_t step = q ? 0 : GEMM_ROWS * size; // bytes of a tile's vectors over their components
      for (; i + GEMM_ROWS <= n; i += GEMM_ROWS)
        (m > W ? CAT(l2_tile, CAT(GEMM_ROWS, 2)) : CAT(l2_tile, CAT(GEMM_ROWS, 1)))(
            dim, block + i * dim, queries, results + i * 2 * W, first + (half ? l2_block + i : i + GEMM_ROWS) * dim * size, step);
      for (; i < n; i++)
        (m > W ? l2_tile_1_2 : l2_tile_1_1)(dim, block + i * dim, queries, results + i * 2 * W, first, 0);
      l2_turn(results, n, m, out + q * ld + v, ld);
    }
    queries = w[0].p;
  }
}

// Words: queries as floats, how many, vectors, how many, components, results, from one
// query's results to the next, 1 if vectors are halves, 1 if queries are packed, and
// then room for l2_block vectors of floats.
static void l2_float(const simd_word *w) {
  if (w[8].i)
    l2_many(w);
  else if (w[7].i)
    l2_few(w, 1);
  else
    l2_few(w, 0);
}
#undef W

// Sums of integers are exact. In 32 bits there is room for 255² of 32768 components.
enum { l2_i8_short = 32768 };

// Lanes of the sum of one vector with one query, up to l2_i8_short components. What is
// behind whole registers is added to the first lane.
IN i8_sums l2_i8_row(int64_t dim, const int8_t *v, const int8_t *q) {
  i8_sums a = i8_zero(), b = a;
  int64_t d = 0;
  for (; d + 2 * i8_W <= dim; d += 2 * i8_W) {
    a = i8_square(i8_load(q + d), i8_load(v + d), a);
    b = i8_square(i8_load(q + d + i8_W), i8_load(v + d + i8_W), b);
  }
  for (; d < dim; d += i8_W) {
    int8_t x[i8_W] = {0}, y[i8_W] = {0};
    int64_t n = dim - d < i8_W ? dim - d : i8_W;
    for (int64_t i = 0; i < n; i++)
      x[i] = q[d + i], y[i] = v[d + i];
    a = i8_square(i8_load(x), i8_load(y), a);
  }
  return i8_add(a, b);
}

static int64_t l2_i8_long(int64_t dim, const int8_t *v, const int8_t *q) {
  int64_t sum = 0;
  for (int64_t d = 0; d < dim; d += l2_i8_short)
    sum += i8_sum(l2_i8_row(dim - d < l2_i8_short ? dim - d : l2_i8_short, v + d, q + d));
  return sum;
}

// Words: queries, how many, vectors, how many, components, results, from one query's
// results to the next.
static void l2_i8(const simd_word *w) {
  const int8_t *queries = w[0].p, *vectors = w[2].p;
  int64_t nq = w[1].i, nv = w[3].i, dim = w[4].i, ld = w[6].i;
  float *out = w[5].p;
  f32_v one = f32_set(16129);
  for (int64_t v = 0; v < nv; v += f32_W) {
    int64_t n = nv - v < f32_W ? nv - v : f32_W;
    for (int64_t q = 0; q < nq; q++) {
      const int8_t *query = queries + q * dim;
      if (n == f32_W && dim <= l2_i8_short) {
        i8_sums s[f32_W];
        for (int64_t i = 0; i < f32_W; i++)
          s[i] = l2_i8_row(dim, vectors + (v + i) * dim, query);
        f32_store(out + q * ld + v, f32_div(i8_fold(s), one));
        continue;
      }
      for (int64_t i = 0; i < n; i++)
        out[q * ld + v + i] = (float)((double)l2_i8_long(dim, vectors + (v + i) * dim, query) / 16129);
    }
  }
}
