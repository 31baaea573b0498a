// The nearest vectors of a few queries. Each vector is read once, in the order of memory, for all queries;
// of W vectors at a time, those whose distances do not exceed the largest of a query's k best so
// far pass through its heap. A distance is computed in the same way wherever its vector is, so that equal
// vectors have equal distances.
#include "heap.h"

#define W f32_W

// The metrics, in the order of nearestMetrics in package kernels.
enum { NEAR_L2, NEAR_IP, NEAR_COSINE };

IN f32_v near_part(const int type, const void *row, int64_t at) {
  if (type == TYPE_F32)
    return f32_load((const float *)row + at);
  return type == TYPE_F16 ? f16_read((const uint16_t *)row + at) : bf16_read((const uint16_t *)row + at);
}

IN f32_v near_rest(const int type, const void *row, int64_t at, int64_t n) {
  if (type == TYPE_F32)
    return f32_loadn((const float *)row + at, n);
  return type == TYPE_F16 ? f16_loadn((const uint16_t *)row + at, n) : bf16_loadn((const uint16_t *)row + at, n);
}

// Adds components of a query and a vector to the sum of the metric and, for cosine, to that of
// the squares.
IN void near_add(const int metric, f32_v q, f32_v v, f32_v *sum, f32_v *square) {
  if (metric == NEAR_L2)
    *sum = l2_square(q, v, *sum);
  else
    *sum = f32_fma(q, v, *sum);
  if (metric == NEAR_COSINE)
    *square = f32_fma(v, v, *square);
}

// The number of components after which a squared distance is compared with its bound.
enum { near_piece = 256 };

// Computes the sums for one vector and one query in W parts. With a bound, the sum is infinite if that of the first components is larger.
IN void near_row(const int type, const int metric, int64_t dim, const void *v, const float *q, int bounded, float bound,
                 f32_v *sum, f32_v *square) {
  f32_v s0 = f32_zero(), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
  int64_t d = 0;
#define NEAR_STEP(i) near_add(metric, f32_load(q + d + i * W), near_part(type, v, d + i * W), &s##i, &t##i);
  for (; d + 4 * W <= dim; d += 4 * W) {
    if (bounded && d % near_piece == 0 && d > 0 && f32_sum(f32_add(f32_add(s0, s1), f32_add(s2, s3))) > bound) {
      *sum = f32_set(INFINITY);
      return;
    }
    NEAR_STEP(0) NEAR_STEP(1) NEAR_STEP(2) NEAR_STEP(3)
  }
  for (; d + W <= dim; d += W) {
    NEAR_STEP(0)
  }
#undef NEAR_STEP
  if (d < dim)
    near_add(metric, f32_loadn(q + d, dim - d), near_rest(type, v, d, dim - d), &s1, &t1);
  *sum = f32_add(f32_add(s0, s1), f32_add(s2, s3));
  if (metric == NEAR_COSINE)
    *square = f32_add(f32_add(t0, t1), f32_add(t2, t3));
}

// Returns the lanes of the sum of products of up to l2_i8_short bytes.
IN i8_sums near_i8_products(int64_t dim, const int8_t *a, const int8_t *b) {
  i8_sums s = i8_zero();
  int64_t d = 0;
  for (; d + i8_W <= dim; d += i8_W)
    s = i8_product(i8_load(a + d), i8_load(b + d), s);
  if (d < dim) {
    int8_t x[i8_W] = {0}, y[i8_W] = {0};
    memcpy(x, a + d, (size_t)(dim - d)), memcpy(y, b + d, (size_t)(dim - d));
    s = i8_product(i8_load(x), i8_load(y), s);
  }
  return s;
}

static int64_t near_i8_long(int64_t dim, const int8_t *a, const int8_t *b) {
  int64_t sum = 0;
  for (int64_t d = 0; d < dim; d += l2_i8_short)
    sum += i8_sum(near_i8_products(dim - d < l2_i8_short ? dim - d : l2_i8_short, a + d, b + d));
  return sum;
}

IN i8_sums near_i8_row(const int metric, int64_t dim, const int8_t *v, const int8_t *end, const int8_t *q, const int8_t *rest) {
  return metric == NEAR_L2 ? l2_i8_row(dim, v, end, q, rest) : near_i8_products(dim, v, q);
}

// Prefetches the beginning of a vector. Those of a list lie anywhere, so that nothing else does.
IN void near_fetch(const void *v, int64_t bytes, int64_t most) {
  for (int64_t b = 0; b < bytes && b < most; b += 64)
    __builtin_prefetch((const char *)v + b);
}

// Stores the sums for n of W vectors, which are at v, and one query; those of the others are 0. Unless fetch is 0, so many bytes of each vector are prefetched
// while the one before is computed.
IN void near_sums(const int type, const int metric, int64_t dim, const void *const *v, int64_t n, int64_t fetch, const void *end,
                  const void *q, const int8_t *rest, float bound, float *sum, float *square) {
  if (type == TYPE_I8 && dim > l2_i8_short) {
    for (int64_t i = 0; i < W; i++) {
      sum[i] = square[i] = 0;
      if (i < n && metric == NEAR_L2)
        sum[i] = (float)l2_i8_long(dim, v[i], end, q, rest);
      else if (i < n)
        sum[i] = (float)near_i8_long(dim, v[i], q);
      if (i < n && metric == NEAR_COSINE)
        square[i] = (float)near_i8_long(dim, v[i], v[i]);
    }
  } else if (type == TYPE_I8) {
    i8_sums s[W], t[W];
    for (int64_t i = 0; i < W; i++) {
      if (fetch && i + 1 < n)
        near_fetch(v[i + 1], dim, fetch);
      s[i] = i < n ? near_i8_row(metric, dim, v[i], end, q, rest) : i8_zero();
      if (metric == NEAR_COSINE)
        t[i] = i < n ? near_i8_products(dim, v[i], v[i]) : i8_zero();
    }
    f32_store(sum, i8_floats(i8_folded(s)));
    if (metric == NEAR_COSINE)
      f32_store(square, i8_floats(i8_folded(t)));
  } else {
    f32_v s[W], t[W];
    for (int64_t i = 0; i < W; i++) {
      if (fetch && i + 1 < n)
        near_fetch(v[i + 1], dim * type_size[type], fetch);
      s[i] = t[i] = f32_zero();
      if (i < n)
        near_row(type, metric, dim, v[i], q, fetch > 0 && metric == NEAR_L2, bound, s + i, t + i);
    }
    f32_store(sum, f32_fold(s));
    if (metric == NEAR_COSINE)
      f32_store(square, f32_fold(t));
  }
}

// The cosine above which 1 - cosine has lost too many of its digits, and the lengths between which no square leaves the range of float.
#define near_parallel (1 - 0x1p-10f)
#define near_short 0x1p-40f
#define near_long 0x1p60f

IN int near_usual(float norm) { return norm >= near_short && norm <= near_long; }

// The distance where float would lose it, of any components. Above a cosine of a half it is computed from the difference of the directions.
static __attribute__((noinline)) float near_precise(const int type, int64_t dim, const void *v, const void *query) {
  double product = 0, square = 0, other = 0, far = 0;
  for (int pass = 0; pass < 2; pass++) {
    double a = f64_root(square), b = f64_root(other);
    for (int64_t d = 0; d < dim; d += W) {
      float x[W], y[W];
      int64_t n = dim - d < W ? dim - d : W;
      for (int64_t i = 0; i < n && type == TYPE_I8; i++)
        x[i] = ((const int8_t *)query)[d + i], y[i] = ((const int8_t *)v)[d + i];
      if (type != TYPE_I8) {
        f32_store(x, n < W ? f32_loadn((const float *)query + d, n) : f32_load((const float *)query + d));
        f32_store(y, n < W ? near_rest(type, v, d, n) : near_part(type, v, d));
      }
      for (int64_t i = 0; i < n; i++) {
        if (pass == 0)
          product += (double)x[i] * y[i], square += (double)x[i] * x[i], other += (double)y[i] * y[i];
        else
          far += (x[i] / a - y[i] / b) * (x[i] / a - y[i] / b);
      }
    }
    if (square == 0 || other == 0)
      return 1;
    double x = product / f64_root(square) / f64_root(other);
    if (!(x > 0.5))
      return (float)(1 - (x < -1 ? -1 : x));
  }
  return (float)(far / 2);
}

IN float near_cosine(const int type, int64_t dim, const void *v, const void *query, float product, float square, float norm) {
  float root = f32_root(square), x = product / root / norm;
  if (!near_usual(root) || !near_usual(norm) || x > near_parallel)
    return near_precise(type, dim, v, query);
  return 1 - (x < -1 ? -1 : x);
}

// Puts those of W distances into a heap whose bits are set in some. The vectors are at places from `at` on.
static __attribute__((noinline)) void near_offer(topk_one *heap, int64_t k, const float *distance, unsigned some, int64_t at) {
  for (; some != 0; some &= some - 1) {
    int i = __builtin_ctz(some);
    topk_one one = {f32_key(distance[i]), at + i};
    if (topk_before(&one, &heap[0])) {
      heap[0] = one;
      topk_down(heap, k, 0);
    }
  }
}

// The number of a key.
IN float near_number(uint64_t key) {
  double x;
  key = key >> 63 ? key ^ 1ull << 63 : ~key;
  memcpy(&x, &key, 8);
  return (float)x;
}

// The last components of a query of bytes, which fill no register, followed by zeros.
IN void near_tail(int64_t type, int64_t metric, int64_t dim, const void *query, int8_t *rest) {
  if (type == TYPE_I8 && metric == NEAR_L2)
    memcpy(rest, (const int8_t *)query + dim / i8_W * i8_W, (size_t)(dim % i8_W));
}

static __attribute__((noinline)) float near_norm(int64_t type, int64_t dim, const char *query) {
  int8_t rest[i8_W] = {0};
  float sum[W], square[W];
  const void *own = query;
  if (type == TYPE_I8)
    near_sums(TYPE_I8, NEAR_COSINE, dim, &own, 1, 0, query + dim, query, rest, 0, sum, square);
  else
    near_sums(TYPE_F32, NEAR_COSINE, dim, &own, 1, 0, query + dim, query, rest, 0, sum, square);
  return f32_root(square[0]);
}

// Stores the distances of n of W vectors from a query.
typedef void near_distances(int64_t dim, const void *const *v, int64_t n, int64_t fetch, const void *end, const void *query, const int8_t *rest,
                            float norm, float bound, float *distance);
#define NEAR_CASES(F) F(F32, L2) F(F32, IP) F(F32, COSINE) F(F16, L2) F(F16, IP) F(F16, COSINE) F(BF16, L2) F(BF16, IP) F(BF16, COSINE) F(I8, L2) F(I8, IP) F(I8, COSINE)
#define NEAR_FUNCTION(TYPE, METRIC)                                                                \
  static void near_##TYPE##_##METRIC(int64_t dim, const void *const *v, int64_t n, int64_t fetch, const void *end, const void *query,  \
                                     const int8_t *rest, float norm, float bound, float *distance) { \
    float square[W];                                                                               \
    near_sums(TYPE_##TYPE, NEAR_##METRIC, dim, v, n, fetch, end, query, rest, bound, distance, square); \
    for (int64_t i = 0; NEAR_##METRIC == NEAR_COSINE && i < n; i++)                                \
      distance[i] = near_cosine(TYPE_##TYPE, dim, v[i], query, distance[i], square[i], norm);      \
    if (NEAR_##METRIC == NEAR_IP)                                                                  \
      f32_store(distance, f32_sub(f32_zero(), f32_load(distance)));                                \
  }
NEAR_CASES(NEAR_FUNCTION)
#define NEAR_ENTRY(TYPE, METRIC) [TYPE_##TYPE][NEAR_##METRIC] = near_##TYPE##_##METRIC,
static near_distances *const near_functions[][3] = {NEAR_CASES(NEAR_ENTRY)};
#undef NEAR_ENTRY
#undef NEAR_FUNCTION
#undef NEAR_CASES

// Words: queries (as floats, or bytes), their number, vectors, their number, components, the place of
// the first vector, k, for each query k + 1 pairs of words, the number of the vectors' type, that of the
// metric. The last k pairs are a heap of the best distances, as keys, and their places. The caller fills it
// with keys and places that come after all others.
EXPORT(nearest) {
  int64_t nq = w[1].i, nv = w[3].i, dim = w[4].i, k = w[6].i, type = w[8].i, metric = w[9].i;
  int64_t row = dim * type_size[type], query = dim * (type == TYPE_I8 ? 1 : 4);
  const char *queries = w[0].p, *vectors = w[2].p, *end = vectors + nv * row;
  near_distances *distances = near_functions[type][metric];
  float distance[W];
  const void *at[W];
  for (int64_t v = 0; v < nv; v += W) {
    int64_t n = nv - v < W ? nv - v : W;
    for (int64_t i = 0; i < n; i++)
      at[i] = vectors + (v + i) * row;
    for (int64_t q = 0; q < nq; q++) {
      const char *own = queries + q * query;
      topk_one *heap = (topk_one *)w[7].p + q * (k + 1);
      int8_t rest[i8_W] = {0};
      near_tail(type, metric, dim, own, rest);
      if (metric == NEAR_COSINE && v == 0) // the query's norm stands before its heap
        heap->key = f32_key(near_norm(type, dim, own));
      distances(dim, at, n, 0, end, own, rest, metric == NEAR_COSINE ? near_number(heap->key) : 0, 0, distance);
      // Equal distances pass, since another thread may have put a later vector into this heap.
      unsigned some = ~f32_lessbits(f32_set(near_number(heap[1].key)), f32_load(distance)) & ((1u << n) - 1);
      if (some)
        near_offer(heap + 1, k, distance, some, w[5].i + v);
    }
  }
}

// Puts vectors into the heaps of many queries by squared distances that were computed in another order of additions: those near enough are
// computed again as nearest does, so that results do not depend on the number of queries. Words: distances, of which each row is followed by W
// floats that may be read; elements from one query's distances to the next; queries as for nearest, their number; vectors, their number,
// components; for each query k + 1 pairs of words as for nearest; the number of the type; the place of the first vector; k; the largest
// quotient of such a distance and the one that nearest computes, as a double.
EXPORT(nearest_pick) {
  int64_t ld = w[1].i, nq = w[3].i, nv = w[5].i, dim = w[6].i, type = w[8].i, k = w[10].i;
  int64_t row = dim * type_size[type], query = dim * (type == TYPE_I8 ? 1 : 4);
  const char *vectors = w[4].p, *end = vectors + nv * row;
  near_distances *distances = near_functions[type][NEAR_L2];
  float unit = (float)w[11].f, distance[W];
  for (int64_t q = 0; q < nq; q++) {
    const float *near = (const float *)w[0].p + q * ld;
    const char *own = (const char *)w[2].p + q * query;
    topk_one *heap = (topk_one *)w[7].p + q * (k + 1) + 1;
    f32_v most = f32_set(near_number(heap->key) * unit + 0x1p-126f);
    for (int64_t v = 0; v < nv; v += W) {
      int64_t n = nv - v < W ? nv - v : W;
      unsigned some = ~f32_lessbits(most, f32_load(near + v)) & ((1u << n) - 1);
      if (!some)
        continue;
      int8_t rest[i8_W] = {0};
      near_tail(type, NEAR_L2, dim, own, rest);
      for (; some != 0; some &= some - 1) {
        int64_t i = v + __builtin_ctz(some);
        const void *at = vectors + i * row;
        distances(dim, &at, 1, 0, end, own, rest, 0, 0, distance);
        near_offer(heap, k, distance, 1, w[9].i + i);
      }
      most = f32_set(near_number(heap->key) * unit + 0x1p-126f);
    }
  }
}

// Computes the distances of listed vectors from one query. Words: the query (as floats, or bytes), all vectors, the list of their numbers
// (uint32), its length, components, the number of all vectors, the distances, a bound, the number of the vectors' type, that of the metric, the bytes of a vector
// that are prefetched, at least 1. Squared distances above the bound, a double, may be infinite.
EXPORT(nearest_list) {
  int64_t n = w[3].i, dim = w[4].i, type = w[8].i, metric = w[9].i, row = dim * type_size[type];
  const char *vectors = w[1].p, *end = vectors + w[5].i * row;
  const uint32_t *list = w[2].p;
  float *out = w[6].p, bound = (float)w[7].f, norm = metric == NEAR_COSINE ? near_norm(type, dim, w[0].p) : 0, some[W];
  int8_t rest[i8_W] = {0};
  near_tail(type, metric, dim, w[0].p, rest);
  for (int64_t i = 0; i < n; i += W) {
    int64_t m = n - i < W ? n - i : W;
    const void *at[W];
    for (int64_t j = 0; j < m; j++)
      at[j] = vectors + list[i + j] * row;
    float *to = m == W ? out + i : some;
    near_functions[type][metric](dim, at, m, w[10].i, end, w[0].p, rest, norm, bound, to);
    if (m < W)
      memcpy(out + i, some, (size_t)m * sizeof *some);
  }
}
#undef W
