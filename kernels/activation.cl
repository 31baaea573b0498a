// out[i] = f(in[i]) over n elements. out may be in.
//
// The forms are chosen so that no subtraction cancels: the error of each is a few
// units of its own size, also far out where the result is tiny.
#include "elem.h"

#define ACTIVATION(NAME, EXPRESSION)                                                               \
  kernel void NAME(global const TYPE *in, global TYPE *out, ulong n) {                             \
    size_t i = get_global_id(0);                                                                   \
    if (i < n) {                                                                                   \
      ARITH x = LOAD(in, i);                                                                       \
      STORE(out, i, (EXPRESSION));                                                                 \
    }                                                                                              \
  }

// max(x, 0); a NaN stays one.
ACTIVATION(relu, x < 0 ? 0 : x)

// 1 / (1 + e^-x)
ACTIVATION(sigmoid, 1 / (1 + exp(-x)))

// tanh x; a kernel cannot have the name of a built-in.
ACTIVATION(tanh_act, tanh(x))

// x·Φ(x) = x/2·(1 + erf(x/√2)) = x/2·erfc(-x/√2)
ACTIVATION(gelu, LIT(0.5) * x * erfc(-x * LIT(0.70710678118654752440)))

// x/2·(1 + tanh u) = x / (1 + e^-2u) with u = √(2/π)·(x + 0.044715·x³)
ACTIVATION(gelu_tanh, x / (1 + exp(LIT(-1.59576912160573071176) * (x + LIT(0.044715) * x * x * x))))

// x·sigmoid(x)
ACTIVATION(swish, x / (1 + exp(-x)))
