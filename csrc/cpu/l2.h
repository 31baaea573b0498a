// Squared distances of rows: Σ (a - b)². Few queries: pairs of rows, along them. Many:
// a strip of vectors is packed so that one register holds one component of them all,
// and tiles of queries by vectors are computed as gemm's are.
#define T f32
#define E float
#define V f32_v
#define W f32_W
IN f32_v f32_square(f32_v a, f32_v b, f32_v sum) {
  f32_v d = f32_sub(a, b);
  return f32_fma(d, d, sum);
}
#define TILE l2
#define STEP square
#include "tile.h"
#undef TILE
#undef STEP

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

// Four vectors (or fewer: the last one stands in for those that are not there) with
// one query.
IN void l2_four(int half, const float *q, const char *const v[4], int64_t dim, float out[4]) {
  f32_v s0 = f32_zero(), s1 = s0, s2 = s0, s3 = s0;
  int64_t d = 0;
  for (; d + W <= dim; d += W) {
    f32_v x = f32_load(q + d);
    s0 = f32_square(x, l2_part(v[0], half, d), s0), s1 = f32_square(x, l2_part(v[1], half, d), s1);
    s2 = f32_square(x, l2_part(v[2], half, d), s2), s3 = f32_square(x, l2_part(v[3], half, d), s3);
  }
  if (d < dim) {
    f32_v x = f32_loadm(q + d, f32_first(dim - d));
    s0 = f32_square(x, l2_rest(v[0], half, d, dim - d), s0), s1 = f32_square(x, l2_rest(v[1], half, d, dim - d), s1);
    s2 = f32_square(x, l2_rest(v[2], half, d, dim - d), s2), s3 = f32_square(x, l2_rest(v[3], half, d, dim - d), s3);
  }
  out[0] = f32_sum(s0), out[1] = f32_sum(s1), out[2] = f32_sum(s2), out[3] = f32_sum(s3);
}

// Words: queries as floats, how many, vectors, how many, components, results, from one
// query's results to the next, 1 if vectors are halves, 1 if there are many queries,
// room for 2·W vectors (twice if halves). A vector that is half a register is 0 behind.
static void l2_float(const simd_word *w) {
  const float *queries = w[0].p;
  const char *vectors = w[2].p;
  int64_t nq = w[1].i, nv = w[3].i, dim = w[4].i, ld = w[6].i, half = w[7].i, size = half ? 2 : 4;
  float *out = w[5].p, *room = w[9].p;
  if (w[8].i) {
    for (int64_t v = 0; v < nv; v += 2 * W) {
      int64_t n = nv - v < 2 * W ? nv - v : 2 * W, across = n > W ? 2 : 1;
      const float *from = (const float *)(vectors + v * dim * size);
      if (half) {
        float *wide = room + 2 * W * dim;
        simd_word part[7] = {{.i = 0}, {.i = n}, {.i = dim}, {.p = (void *)from}, {.i = dim}, {.p = wide}, {.i = dim}};
        convert_widen(part);
        from = wide;
      }
      f32_pack_panel(0, n, dim, from, dim, room, 2 * W);
      for (int64_t q = 0; q < nq; q += GEMM_ROWS) {
        int64_t rows = nq - q < GEMM_ROWS ? nq - q : GEMM_ROWS;
        f32_l2_kernels[rows][across](dim, queries + q * dim, dim, 1, room, 2 * W, out + q * ld + v, ld, 1, 0, n - (across - 1) * W);
      }
    }
    return;
  }
  for (int64_t v = 0; v < nv; v += 4) {
    const char *row[4];
    int64_t n = nv - v < 4 ? nv - v : 4;
    for (int64_t i = 0; i < 4; i++)
      row[i] = vectors + (v + (i < n ? i : n - 1)) * dim * size;
    for (int64_t q = 0; q < nq; q++) {
      float d[4];
      if (half)
        l2_four(1, queries + q * dim, row, dim, d);
      else
        l2_four(0, queries + q * dim, row, dim, d);
      for (int64_t i = 0; i < n; i++)
        out[q * ld + v + i] = d[i];
    }
  }
}
#undef T
#undef E
#undef V
#undef W

// One vector with two queries: exact sums of integers. A lane gets at most 2·255² at a
// time, so that it holds 16,000 of them.
IN void l2_i8_two(const int8_t *q0, const int8_t *q1, const int8_t *v, int64_t dim, int64_t out[2]) {
  out[0] = out[1] = 0;
  for (int64_t start = 0; start < dim;) {
    int64_t end = dim - start > 8192 * i8_W ? start + 8192 * i8_W : dim, d = start;
    i8_sums a = i8_zero(), b = a, c = a, e = a;
    for (; d + 2 * i8_W <= end; d += 2 * i8_W) {
      i8_wide x = i8_load(v + d), y = i8_load(v + d + i8_W);
      a = i8_square(x, i8_load(q0 + d), a), b = i8_square(y, i8_load(q0 + d + i8_W), b);
      c = i8_square(x, i8_load(q1 + d), c), e = i8_square(y, i8_load(q1 + d + i8_W), e);
    }
    out[0] += i8_sum(a) + i8_sum(b), out[1] += i8_sum(c) + i8_sum(e);
    for (; d < end; d++) {
      int x = q0[d] - v[d], y = q1[d] - v[d];
      out[0] += x * x, out[1] += y * y;
    }
    start = end;
  }
}

// Four vectors with one query, where 255² per component fits 32 bits.
IN void l2_i8_four(const int8_t *q, const int8_t *v, int64_t dim, float *out) {
  const int8_t *v1 = v + dim, *v2 = v1 + dim, *v3 = v2 + dim;
  i8_sums a = i8_zero(), b = a, c = a, e = a;
  int64_t d = 0;
  for (; d + i8_W <= dim; d += i8_W) {
    i8_wide x = i8_load(q + d);
    a = i8_square(x, i8_load(v + d), a), b = i8_square(x, i8_load(v1 + d), b);
    c = i8_square(x, i8_load(v2 + d), c), e = i8_square(x, i8_load(v3 + d), e);
  }
  int32_t s[4] = {i8_short(a), i8_short(b), i8_short(c), i8_short(e)};
  for (; d < dim; d++) {
    int x = q[d] - v[d], y = q[d] - v1[d], z = q[d] - v2[d], t = q[d] - v3[d];
    s[0] += x * x, s[1] += y * y, s[2] += z * z, s[3] += t * t;
  }
  for (int i = 0; i < 4; i++)
    out[i] = (float)((double)s[i] / 16129);
}

// Words: queries, how many, vectors, how many, components, results, from one query's
// results to the next.
static void l2_i8(const simd_word *w) {
  const int8_t *queries = w[0].p, *vectors = w[2].p;
  int64_t nq = w[1].i, nv = w[3].i, dim = w[4].i, ld = w[6].i;
  float *out = w[5].p;
  int64_t v = 0;
  for (; dim <= 32768 && v + 4 <= nv; v += 4)
    for (int64_t q = 0; q < nq; q++)
      l2_i8_four(queries + q * dim, vectors + v * dim, dim, out + q * ld + v);
  for (; v < nv; v++)
    for (int64_t q = 0; q < nq; q += 2) {
      int64_t sum[2], n = nq - q < 2 ? 1 : 2;
      l2_i8_two(queries + q * dim, queries + (q + n - 1) * dim, vectors + v * dim, dim, sum);
      for (int64_t i = 0; i < n; i++)
        out[(q + i) * ld + v] = (float)((double)sum[i] / 16129);
    }
}
