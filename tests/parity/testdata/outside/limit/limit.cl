// out[i] = in[i], limited to the range from lo to hi. NaN stays NaN.
#include "elem.h"

kernel void limit(global const TYPE *in, global TYPE *out, SCALAR lo, SCALAR hi, ulong n) {
  size_t i = get_global_id(0);
  if (i >= n)
    return;
  ARITH x = LOAD(in, i);
  STORE(out, i, x < lo ? lo : x > hi ? hi : x);
}
