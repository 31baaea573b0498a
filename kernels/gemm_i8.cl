// C = alpha·op(A)·op(B) + beta·C for matrices of 8-bit integers and a result of 32 bits,
// exactly: products and sums wrap modulo 2^32. Shapes, leading dimensions and the
// definitions TRANS_A and TRANS_B are those of gemm. With beta 0, C is not read.
//
// A group of 8×8 items computes a 64×64 tile of C, each item 8×8 elements of it in registers.
// DEPTH columns of op(A) and rows of op(B) at a time are kept in local memory.
#include "elem.h"
#include "gemm_shape.h"

// An element of a stored matrix, sign-extended, as an unsigned number; 0 beyond the matrix.
uint read_one(global const char *x, size_t ld, size_t row, size_t rows, size_t col, size_t cols) {
  return row < rows && col < cols ? (uint)(int)x[row * ld + col] : 0u;
}

kernel __attribute__((reqd_work_group_size(ITEMS, ITEMS, 1))) void
gemm_i8(uint m, uint n, uint k, int alpha, global const char *a, uint lda, global const char *b, uint ldb,
        int beta, global int *c, uint ldc) {
  local uint as[SPAN][DEPTH + 1]; // as[i][p] = op(A)[i0 + i][p0 + p]
  local uint bs[DEPTH][SPAN + 4]; // bs[p][j] = op(B)[p0 + p][j0 + j]
  size_t lx = get_local_id(0), ly = get_local_id(1), item = ly * ITEMS + lx;
  size_t j0 = get_group_id(0) * SPAN, i0 = get_group_id(1) * SPAN;

  uint8 acc[EACH];
  for (uint r = 0; r < EACH; r++)
    acc[r] = (uint8)(0);
  for (size_t p0 = 0; p0 < k; p0 += DEPTH) {
#pragma unroll 4 // unrolled completely, the addresses need too many registers
    for (uint e = 0; e < DEPTH; e++) {
#if TRANS_A
      as[item][e] = read_one(a, lda, p0 + e, k, i0 + item, m);
#else
      as[item][e] = read_one(a, lda, i0 + item, m, p0 + e, k);
#endif
#if TRANS_B
      bs[e][item] = read_one(b, ldb, j0 + item, n, p0 + e, k);
#else
      bs[e][item] = read_one(b, ldb, p0 + e, k, j0 + item, n);
#endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint e = 0; e < DEPTH; e++) {
      uint8 y = vload8(lx, &bs[e][0]);
#pragma unroll
      for (uint r = 0; r < EACH; r++)
        acc[r] += (uint8)(as[ly * EACH + r][e]) * y;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }

#pragma unroll
  for (uint r = 0; r < EACH; r++) {
    uint row[EACH];
    vstore8(acc[r], 0, row);
    size_t i = i0 + ly * EACH + r;
    for (uint s = 0; s < EACH; s++) {
      size_t j = j0 + lx * EACH + s;
      if (i < m && j < n) {
        uint x = (uint)alpha * row[s];
        if (beta != 0)
          x += (uint)beta * (uint)c[i * ldc + j];
        c[i * ldc + j] = (int)x;
      }
    }
  }
}
