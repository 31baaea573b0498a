// C = alpha·op(A)·op(B) + beta·C for each of batch matrices, strideA, strideB and strideC
// elements after one another, 0 for an A or B that all share. The third dimension of the
// grid is the batch. The matrices of C have no element in common. The rest is gemm's:
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
