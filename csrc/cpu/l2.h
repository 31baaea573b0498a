// Squared distances of rows: Σ (a - b)².
//
// With few queries, vectors are read once and in the order of memory, which is the fastest way to
// read it. With many, queries are packed so that a register holds one component of several
// queries, and the sums of a tile of vectors by queries stay in registers. The results
// of a tile are in the order of the vectors and are transposed into the rows of their
// queries. Bytes take a quarter of the memory, so for them the vectors are
// transposed instead, and the results need not be.
//
// l2_block is the number of vectors whose results are transposed together: whole tiles, and whole
// cache lines of results.
enum { l2_block = 48 };

#define W f32_W

// gcc keeps arrays of vectors in registers only if it unrolls the loops over them.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3")
#define UNROLL _Pragma("GCC unroll 16")
#else
#define UNROLL _Pragma("clang loop unroll(full)")
#endif

// The sums for R vectors, ld numbers apart, and NV registers of queries. Queries are packed in
// strips of 2W: first the first components of all of them, then the second ones, and so on.
// Meanwhile the vectors at next are prefetched, step bytes per component.
#define L2_TILE(R, NV)                                                                             \
  static __attribute__((noinline)) void l2_tile_##R##_##NV(int64_t dim, const float *v, int64_t ld, const float *q, float *to,\
                                                           const char *next, int64_t step) {       \
    const float *at[4] = {v, v + 3 * ld, v + 6 * ld, v + 9 * ld};                                  \
    f32_v s[R][NV];                                                                                \
    UNROLL for (int r = 0; r < R; r++)                                                             \
      UNROLL for (int j = 0; j < NV; j++)                                                          \
        s[r][j] = f32_zero();                                                                      \
    for (int64_t d = 0; d < dim; d++, q += 2 * W, next += step) {                                  \
      f32_v y[NV];                                                                                 \
      UNROLL for (int j = 0; j < NV; j++)                                                          \
        y[j] = f32_load(q + j * W);                                                                \
      __builtin_prefetch(next);                                                                    \
      UNROLL for (int r = 0; r < R; r++)                                                           \
        UNROLL for (int j = 0; j < NV; j++) {                                                      \
          f32_v far = f32_minus(y[j], at[r / 3] + r % 3 * ld);                                     \
          s[r][j] = f32_fma(far, far, s[r][j]);                                                    \
        }                                                                                          \
      at[0]++, at[1]++, at[2]++, at[3]++;                                                          \
    }                                                                                              \
    UNROLL for (int r = 0; r < R; r++)                                                             \
      UNROLL for (int j = 0; j < NV; j++)                                                          \
        f32_store(to + r * 2 * W + j * W, s[r][j]);                                                \
  }
#define L2_TILES(R) L2_TILE(R, 1) L2_TILE(R, 2)
L2_TILES(GEMM_ROWS) L2_TILES(1)
#undef L2_TILES
#undef L2_TILE
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

// Computes a row of 2W sums for each of n vectors with the m queries of a strip. It prefetches the
// memory out, to which the results will go in m rows ld_out apart (NULL if they go past the
// caches), and size bytes at next, which are needed next.
static void l2_strip(int64_t dim, const float *v, int64_t ld, int64_t n, const float *q, int64_t m, float *sums,
                     const float *out, int64_t ld_out, const char *next, int64_t size) {
  int64_t i = 0, tiles = (n + GEMM_ROWS - 1) / GEMM_ROWS, part = tiles ? size / tiles : 0, step = dim ? (part + dim - 1) / dim : 0;
  for (; i + GEMM_ROWS <= n; i += GEMM_ROWS, next += part) {
    for (int64_t j = i / GEMM_ROWS; out && j < m; j += tiles)
      for (int64_t k = 0; k < n; k += 64 / 4)
        __builtin_prefetch(out + j * ld_out + k, 1);
    (m > W ? CAT(l2_tile, CAT(GEMM_ROWS, 2)) : CAT(l2_tile, CAT(GEMM_ROWS, 1)))(dim, v + i * ld, ld, q, sums + i * 2 * W, next, step);
  }
  for (; i < n; i++)
    (m > W ? l2_tile_1_2 : l2_tile_1_1)(dim, v + i * ld, ld, q, sums + i * 2 * W, next, 0);
}

IN f32_v l2_square(f32_v a, f32_v b, f32_v sum) {
  f32_v d = f32_sub(a, b);
  return f32_fma(d, d, sum);
}

// Returns W components of a row of floats or halves.
IN f32_v l2_part(const void *row, int half, int64_t at) {
  return half ? f32_from_f16((const uint16_t *)row + at) : f32_load((const float *)row + at);
}

// Returns the last n < W components, followed by zeros.
IN f32_v l2_rest(const void *row, int half, int64_t at, int64_t n) {
  uint16_t part[f32_W] = {0};
  if (!half)
    return f32_loadm((const float *)row + at, f32_first(n));
  for (int64_t i = 0; i < n; i++)
    part[i] = ((const uint16_t *)row)[at + i];
  return f32_from_f16(part);
}

// Converts a row to floats that are width apart.
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

// Packs queries as floats. Words: queries, their number, components, 1 if they are halves,
// destination, 1 to pack: component d of query i is then at ((i / 2W)·dim + d)·2W + i mod 2W,
// otherwise at i·dim + d.
EXPORT(l2_pack) {
  int64_t n = w[1].i, dim = w[2].i, half = w[3].i, width = w[5].i ? 2 * W : 1;
  const char *from = w[0].p;
  float *to = w[4].p;
  for (int64_t i = 0; i < n; i++)
    l2_widen(from + i * dim * (half ? 2 : 4), (int)half, dim, to + i / width * width * dim + i % width, width);
  for (int64_t i = n; i % width != 0; i++) // queries that do not exist
    for (int64_t d = 0; d < dim; d++)
      to[i / width * width * dim + d * width + i % width] = 0;
}

// Returns the sum for one vector and one query in W parts.
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

// Few queries. The words are those of l2_float. It computes W vectors at a time, to add up the
// parts of W sums together.
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

// Transposes the results of n vectors with m queries to rows of the queries. With past, whole cache
// lines are stored past the caches.
IN void l2_turn(const float *from, int64_t n, int64_t m, float *out, int64_t ld, int past) {
  float lines[4 * l2_block];
  int64_t j = 0;
  past = past && n % (64 / 4) == 0;
  for (; j + 4 <= m; j += 4) {
    float *to = past ? lines : out + j * ld;
    int64_t step = past ? l2_block : ld, i = 0;
    for (; i + 4 <= n; i += 4)
      f32_turn4(from + i * 2 * W + j, 2 * W, to + i, step);
    for (; i < n; i++)
      for (int64_t k = 0; k < 4; k++)
        to[k * step + i] = from[i * 2 * W + j + k];
    for (int64_t k = 0; past && k < 4; k++)
      for (i = 0; i < n; i += 64 / 4)
        past_line(out + (j + k) * ld + i, lines + k * l2_block + i);
  }
  for (; j < m; j++)
    for (int64_t i = 0; i < n; i++)
      out[j * ld + i] = from[i * 2 * W + j];
}

// Many queries, packed. Vectors of halves are converted to floats in room: one tile of them before
// it is used, or a whole block if there are several strips of queries.
static void l2_many(const simd_word *w) {
  const char *vectors = w[2].p;
  int64_t nq = w[1].i, nv = w[3].i, dim = w[4].i, ld = w[6].i, half = w[7].i, past = w[10].i;
  int64_t row = dim * (half ? 2 : 4), part = nq > 2 * W ? l2_block : GEMM_ROWS;
  float *out = w[5].p, *room = w[9].p, results[l2_block * 2 * W];
  for (int64_t v = 0; v < nv; v += l2_block) {
    int64_t n = nv - v < l2_block ? nv - v : l2_block;
    const float *queries = w[0].p;
    for (int64_t q = 0; q < nq; q += 2 * W, queries += 2 * W * dim) {
      int64_t m = nq - q < 2 * W ? nq - q : 2 * W;
      float *rows = out + q * ld + v;
      for (int64_t i = 0; i < n; i += part) {
        int64_t k = n - i < part ? n - i : part;
        const char *first = vectors + (v + i) * row;
        for (int64_t r = 0; half && q == 0 && r < k; r++)
          l2_widen(first + r * row, 1, dim, room + r * dim, 1);
        l2_strip(dim, half ? room : (const float *)first, dim, k, queries, m, results + i * 2 * W,
                 past ? NULL : rows + i, ld, first + k * row, q ? 0 : k * row);
      }
      l2_turn(results, n, m, rows, ld, (int)past);
    }
  }
  past_end();
}

// Words: queries as floats, their number, vectors, their number, components, results, elements from
// one query's results to the next, 1 if vectors are halves, 1 if queries are packed, and if so
// memory for l2_block vectors of floats, and 1 if results are to be stored past the caches, which
// requires that their rows are aligned.
EXPORT(l2_float) {
  if (w[8].i)
    l2_many(w);
  else if (w[7].i)
    l2_few(w, 1);
  else
    l2_few(w, 0);
}

// Sums of integers are exact. The squares of 32768 components, up to 255² each, fit in 32 bits.
enum { l2_i8_short = 32768 };

// Components are stored multiplied by 127. A sum is rounded to a float and divided by 127²,
// correctly rounded: the error of the product with 1 / 127² is computed exactly and corrected.
IN f32_v l2_unscale(f32_v sum) {
  f32_v near = f32_mul(sum, f32_set(1 / 16129.f));
  return f32_fma(f32_fma(near, f32_set(-16129), sum), f32_set(1 / 16129.f), near);
}

// Adds the last components of a vector, fewer than a register has. Those of the query are in rest,
// followed by zeros. If the memory does not end there, the read includes components of the next
// row.
IN i8_sums l2_i8_rest(int64_t n, const int8_t *v, const int8_t *end, const int8_t *rest, i8_sums sum) {
  static const int8_t first[2 * i8_W] = {[0 ... i8_W - 1] = -1};
  int8_t x[i8_W] = {0};
  if (end - v >= i8_W)
    return i8_square(i8_both(i8_far(i8_load(rest), i8_load(v)), i8_load(first + i8_W - n)), sum);
  memcpy(x, v, (size_t)n);
  return i8_square(i8_far(i8_load(rest), i8_load(x)), sum);
}

// Returns the lanes of the sum for one vector and one query of up to l2_i8_short components.
IN i8_sums l2_i8_row(int64_t dim, const int8_t *v, const int8_t *end, const int8_t *q, const int8_t *rest) {
  i8_sums a = i8_zero(), b = a;
  int64_t d = 0;
  for (; d + 2 * i8_W <= dim; d += 2 * i8_W) {
    a = i8_square(i8_far(i8_load(q + d), i8_load(v + d)), a);
    b = i8_square(i8_far(i8_load(q + d + i8_W), i8_load(v + d + i8_W)), b);
  }
  if (d + i8_W <= dim) {
    a = i8_square(i8_far(i8_load(q + d), i8_load(v + d)), a);
    d += i8_W;
  }
  if (d < dim)
    b = l2_i8_rest(dim - d, v + d, end, rest, b);
  return i8_add(a, b);
}

static int64_t l2_i8_long(int64_t dim, const int8_t *v, const int8_t *end, const int8_t *q, const int8_t *rest) {
  int64_t sum = 0;
  for (int64_t d = 0; d < dim; d += l2_i8_short)
    sum += i8_sum(l2_i8_row(dim - d < l2_i8_short ? dim - d : l2_i8_short, v + d, end, q + d, rest));
  return sum;
}

static void l2_i8_few(const simd_word *w) {
  const int8_t *queries = w[0].p, *vectors = w[2].p;
  int64_t nq = w[1].i, nv = w[3].i, dim = w[4].i, ld = w[6].i;
  const int8_t *end = vectors + nv * dim;
  float *out = w[5].p;
  for (int64_t v = 0; v < nv; v += W) {
    int64_t n = nv - v < W ? nv - v : W;
    for (int64_t q = 0; q < nq; q++) {
      const int8_t *query = queries + q * dim;
      int8_t rest[i8_W] = {0};
      memcpy(rest, query + dim / i8_W * i8_W, (size_t)(dim % i8_W));
      if (n == W && dim <= l2_i8_short) {
        i8_sums s[W];
        for (int64_t i = 0; i < W; i++)
          s[i] = l2_i8_row(dim, vectors + (v + i) * dim, end, query, rest);
        f32_store(out + q * ld + v, l2_unscale(i8_floats(i8_folded(s))));
        continue;
      }
      for (int64_t i = 0; i < n; i++) { // the same operations as l2_unscale, so that results do not depend on the division among threads
        float sum = (float)l2_i8_long(dim, vectors + (v + i) * dim, end, query, rest), near = sum * (1 / 16129.f);
        out[q * ld + v + i] = fmaf(fmaf(near, -16129, sum), 1 / 16129.f, near);
      }
    }
  }
}

#undef W

// The number of queries in a tile of bytes, which has two registers of vectors, and the number of
// vectors that are combined with all queries before the next vectors.
#if GEMM_REGS < 16
#define L2_I8_ROWS 4
#else
#define L2_I8_ROWS 8
#endif
enum { l2_i8_block = 64 };

#define E int32_t
#define T i8pair
#define GROUP 2
#define OFFSET 0
#include "l2_i8.h"
#ifdef HAVE_I8FOUR
#define T i8four
#define GROUP 4
#define OFFSET 128
#include "l2_i8.h"
#else
#define i8four_l2_pack i8pair_l2_pack
#define i8four_l2_bytes i8pair_l2_bytes
#endif
#undef E
#undef UNROLL

// Words: queries, their number, vectors, their number, components, results, elements from one
// query's results to the next; bytes in a word of packed queries, or 0 if they are not packed; if
// they are, memory for l2_i8_block vectors of whole registers, and 1 if results are to be stored
// past the caches.
EXPORT(l2_i8) { (w[7].i == 0 ? l2_i8_few : w[7].i == 2 ? i8pair_l2_bytes : i8four_l2_bytes)(w); }

// Packs queries of bytes. Words: queries, their number, components, destination, bytes in a word.
EXPORT(l2_i8_pack) {
  (w[4].i == 2 ? i8pair_l2_pack : i8four_l2_pack)(w[0].p, w[1].i, w[2].i, w[3].p);
}
