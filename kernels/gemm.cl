// C = alpha·op(A)·op(B) + beta·C; gemm_tile.h describes the arguments:
//
//   gemm(uint m, uint n, uint k, alpha, a, uint lda, b, uint ldb, beta, c, uint ldc)
#include "elem.h"

#define NAME gemm
#define MORE
#define COUNT 1
#define STRIDE(x) 0
#define FINISH(x, j) (x)
#include "gemm_tile.h"
