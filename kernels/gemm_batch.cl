// C = alpha·op(A)·op(B) + beta·C for batch triples of matrices. Matrix i of A begins i·strideA
// elements after the first, likewise for B and C; with a stride of 0 all products share one A or
// B. The third dimension of the grid is the batch. The matrices C have no element in common.
// Everything else is as in gemm:
//
//   gemm_batch(uint m, uint n, uint k, alpha, a, uint lda, b, uint ldb, beta, c, uint ldc,
//              uint batch, ulong strideA, ulong strideB, ulong strideC)
#include "elem.h"

#define NAME gemm_batch
#define MORE , uint batch, ulong strideA, ulong strideB, ulong strideC
#define COUNT batch
#define STRIDE(x) (x)
#define FINISH(x, j) (x)
#include "gemm_tile.h"
