// y = alpha·op(A)·x + beta·y: gemm with one column. op(A) is m×k, A is row-major with a leading dimension
// lda (elements from one row to the next), x has k elements and y has m. -D TRANS_A=1: A is stored k×m and op
// transposes it. With beta 0, y is not read; with alpha 0, A and x are not. f16 and bf16 are summed in
// float and rounded once; -D OUT=f32 stores them as float.
//
// One group per SPAN elements of y. LANES items read 16 bytes each of a row of A, so that
// a group reads whole cache lines, and each item has AHEAD reads in flight. Without TRANS_A a group has ROWS rows, each
// for LANES items; with it, all items of a group read rows of the same LANES·UNIT columns.
#include "elem.h"
#include "out.h"
#include "unit.h"

#ifndef TRANS_A
#define TRANS_A 0
#endif

#define AHEAD 4
#define COLUMNS (LANES * UNIT)
#if TRANS_A
#define SPAN COLUMNS
#else
#define SPAN ROWS
#endif

ROW_KERNEL void gemv(uint m, uint k, SCALAR alpha, global const TYPE *a, uint lda, global const TYPE *x,
                     SCALAR beta, global OUT_TYPE *y) {
#if TRANS_A
  local ARITH sums[ROWS][COLUMNS + 1]; // sums[r][j] = sum of every ROWS-th row for column j
#else
  local ARITH sums[ROWS][LANES + 1]; // sums[r][j] = sum of lane j for row r
#endif
  size_t i0 = (size_t)get_group_id(0) * SPAN;
  uint l = get_local_id(0), lane = l % LANES, row = l / LANES;
  size_t depth = alpha != 0 && i0 < m ? k : 0; // no return beyond m, for the reason given in group.h
  bool aligned = ALIGNED(a) && lda % UNIT == 0;
#if TRANS_A
  ARITH s[UNIT];
#pragma unroll
  for (uint u = 0; u < UNIT; u++)
    s[u] = 0;
  if (aligned && i0 + COLUMNS <= m) {
    global const TYPE *own = a + i0 + lane * UNIT;
    for (size_t p = row; p < depth; p += AHEAD * ROWS) {
      uint4 w[AHEAD];
      ARITH by[AHEAD];
#pragma unroll
      for (uint e = 0; e < AHEAD; e++) { // beyond the last row it is read again, times 0
        size_t q = min(p + e * ROWS, depth - 1);
        w[e] = READ_UNIT(own + q * lda);
        by[e] = LOAD(x, q);
      }
#pragma unroll
      for (uint e = 0; e < AHEAD; e++) {
        ARITH z[UNIT];
        UNPACK(w[e], z);
        if (p + e * ROWS < depth)
#pragma unroll
          for (uint u = 0; u < UNIT; u++)
            s[u] = MAD(z[u], by[e], s[u]);
      }
    }
#pragma unroll
    for (uint u = 0; u < UNIT; u++)
      sums[row][lane * UNIT + u] = s[u];
  } else {
    for (size_t p = row; p < depth; p += ROWS) {
      ARITH by = LOAD(x, p);
#pragma unroll
      for (uint u = 0; u < UNIT; u++) {
        size_t j = i0 + u * LANES + lane;
        if (j < m)
          s[u] = MAD(LOAD(a, p * lda + j), by, s[u]);
      }
    }
#pragma unroll
    for (uint u = 0; u < UNIT; u++)
      sums[row][u * LANES + lane] = s[u];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint j = l; j < COLUMNS && i0 + j < m; j += GROUP) {
    ARITH sum = 0;
    for (uint r = 0; r < ROWS; r++)
      sum += sums[r][j];
    size_t i = i0 + j;
#else
  ARITH s[AHEAD];
#pragma unroll
  for (uint e = 0; e < AHEAD; e++)
    s[e] = 0;
  global const TYPE *own = a + min(i0 + row, (size_t)m - 1) * lda; // groups have rows beyond the last
  size_t whole = aligned && ALIGNED(x) ? depth / (AHEAD * COLUMNS) * (AHEAD * COLUMNS) : 0;
  for (size_t d = 0; d < whole; d += AHEAD * COLUMNS) {
    uint4 w[AHEAD];
#pragma unroll
    for (uint e = 0; e < AHEAD; e++)
      w[e] = READ_UNIT(own + d + e * COLUMNS + lane * UNIT);
#pragma unroll
    for (uint e = 0; e < AHEAD; e++) {
      uint4 v = READ_UNIT(x + d + e * COLUMNS + lane * UNIT);
      ARITH z[UNIT], by[UNIT];
      UNPACK(w[e], z);
      UNPACK(v, by);
#pragma unroll
      for (uint u = 0; u < UNIT; u++)
        s[e] = MAD(z[u], by[u], s[e]);
    }
  }
  for (size_t d = whole + lane; d < depth; d += LANES)
    s[0] = MAD(LOAD(own, d), LOAD(x, d), s[0]);
  sums[row][lane] = s[0] + s[1] + (s[2] + s[3]);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (l < ROWS && i0 + l < m) {
    ARITH sum = 0;
    for (uint j = 0; j < LANES; j++)
      sum += sums[l][j];
    size_t i = i0 + l;
#endif
    sum *= alpha;
    if (beta != 0)
      sum = MAD(beta, LOAD_OUT(y, i), sum);
    STORE_OUT(y, i, sum);
  }
}
