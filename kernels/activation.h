// The activations as functions of one number, for the kernels of activation.cl and for
// those that end with one: -D ACT=none (the default), relu, sigmoid, tanh, gelu or silu
// says which ACTIVATE is.
//
// The forms are chosen so that no subtraction cancels: the error of each is a few
// units of its own size, also far out where the result is tiny.
#ifndef CONCORD_ACTIVATION_H
#define CONCORD_ACTIVATION_H

#ifndef ACT
#define ACT none
#endif
#define ACTIVATE(x) JOIN(act_, ACT)(x)

ARITH act_none(ARITH x) { return x; }

// max(x, 0); a NaN stays one.
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
