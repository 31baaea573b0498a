// The activations as functions of one number, for kernels
// that apply one to their result: -D ACT=none (the default), relu, sigmoid, tanh, gelu,
// silu or gelu_tanh selects the function that ACTIVATE calls.
//
// The formulas have no subtraction that cancels: the error of each is a few units in the last place
// of the result, even if the result is tiny.
#ifndef CONCORD_ACTIVATION_H
#define CONCORD_ACTIVATION_H

#ifndef ACT
#define ACT none
#endif
#define ACTIVATE(x) JOIN(act_, ACT)(x)

ARITH act_none(ARITH x) { return x; }

// max(x, 0); a NaN stays NaN.
ARITH act_relu(ARITH x) { return x < 0 ? 0 : x; }

// 1 / (1 + e^-x)
ARITH act_sigmoid(ARITH x) { return 1 / (1 + exp(-x)); }

ARITH act_tanh(ARITH x) { return tanh(x); }

// x·Φ(x) = x/2·(1 + erf(x/√2)) = x/2·erfc(-x/√2)
ARITH act_gelu(ARITH x) { return LIT(0.5) * x * erfc(-x * LIT(0.70710678118654752440)); }

// x/2·(1 + tanh u) = x / (1 + e^-2u) with u = √(2/π)·(x + 0.044715·x³)
ARITH act_gelu_tanh(ARITH x) { return x / (1 + exp(LIT(-1.59576912160573071176) * (x + LIT(0.044715) * x * x * x))); }

// x·sigmoid(x)
ARITH act_silu(ARITH x) { return x / (1 + exp(-x)); }

#endif
