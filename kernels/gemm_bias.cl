// C = act(alpha·op(A)·op(B) + beta·C + bias), with a bias for each column. -D ACT selects the
// activation: none (the default), relu, sigmoid, tanh, gelu, silu or gelu_tanh. Everything else is as in gemm:
//
//   gemm_bias(uint m, uint n, uint k, alpha, a, uint lda, b, uint ldb, beta, c, uint ldc, bias)
#include "elem.h"
#include "activation.h"

#define NAME gemm_bias
#define MORE , global const OUT_TYPE *bias
#define COUNT 1
#define STRIDE(x) 0
#define FINISH(x, j) ACTIVATE((x) + LOAD_OUT(bias, j))
#include "gemm_tile.h"
