// Products of matrices: op(A) is m×k, op(B) k×n, C m×n, all row-major with leading
// dimensions lda, ldb, ldc (elements from one row to the next). -D TRANS_A=1: A is
// stored k×m and op transposes it; -D TRANS_B=1: B is stored n×k.
//
// gemm(uint m, uint n, uint k, alpha, a, uint lda, b, uint ldb, beta, c, uint ldc), and at
// the end gemm_batch has uint batch, ulong strideA, strideB, strideC, and gemm_bias has bias:
//
//   gemm        C = alpha·op(A)·op(B) + beta·C
//   gemm_batch  the same for each of batch matrices, strideA, strideB and strideC elements
//               after one another, 0 for an A or B that all share; the third dimension of
//               the grid is the batch. The matrices of C have no element in common
//   gemm_bias   C = act(alpha·op(A)·op(B) + beta·C + bias), with a bias for each column
//               and -D ACT=relu (or sigmoid, tanh, gelu, silu; none when absent)
//
// With beta 0, C is not read; with alpha 0, A and B are not. f16 and bf16 are summed in
// float and rounded once.
//
// A group of 8×8 items computes a 64×64 tile of C, each item 8×8 of it in registers;
// DEPTH columns of A and rows of B at a time wait in local memory. 8 numbers of one row
// of C are one vector, which is what a CPU needs and a GPU does not mind.
#include "elem.h"
#include "activation.h"

#define ITEMS 8
#define EACH 8
#define SPAN 64
#define DEPTH 16

#ifndef TRANS_A
#define TRANS_A 0
#endif
#ifndef TRANS_B
#define TRANS_B 0
#endif

#define VEC JOIN(ARITH, 8)

// Elements col to col + DEPTH of a row, as the array part; 0 beyond the ends.
void read_part(ARITH *part, global const TYPE *x, size_t ld, size_t row, size_t rows, size_t col,
               size_t cols) {
  x += row * ld + col;
  if (row < rows && col + DEPTH <= cols) {
    vstore16(LOAD16(x, 0), 0, part);
    return;
  }
#pragma unroll 1
  for (uint e = 0; e < DEPTH; e++)
    part[e] = row < rows && col + e < cols ? LOAD(x, e) : (ARITH)0;
}

#define NAME gemm
#define MORE
#define COUNT 1
#define STRIDE(x) 0
#define FINISH(x, j) (x)
#include "gemm_tile.h"
#undef NAME
#undef MORE
#undef COUNT
#undef STRIDE

#define NAME gemm_batch
#define MORE , uint batch, ulong strideA, ulong strideB, ulong strideC
#define COUNT batch
#define STRIDE(x) (x)
#include "gemm_tile.h"
#undef NAME
#undef MORE
#undef COUNT
#undef STRIDE
#undef FINISH

#define NAME gemm_bias
#define MORE , global const TYPE *bias
#define COUNT 1
#define STRIDE(x) 0
#define FINISH(x, j) ACTIVATE((x) + LOAD(bias, j))
#include "gemm_tile.h"
