// out[i] = f(in[i]) for n elements. out and in may be the same buffer. The formulas are in
// activation.h.
#include "elem.h"
#include "activation.h"

#define ACTIVATION(NAME, FUNCTION)                                                                 \
  kernel void NAME(global const TYPE *in, global TYPE *out, ulong n) {                             \
    size_t i = get_global_id(0);                                                                   \
    if (i < n)                                                                                     \
      STORE(out, i, FUNCTION(LOAD(in, i)));                                                        \
  }

ACTIVATION(relu, act_relu)
ACTIVATION(sigmoid, act_sigmoid)
ACTIVATION(tanh_act, act_tanh) // a kernel cannot have the name of a built-in
ACTIVATION(gelu, act_gelu)
ACTIVATION(gelu_tanh, act_gelu_tanh)
ACTIVATION(swish, act_silu)
