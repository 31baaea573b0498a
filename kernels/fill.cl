// out[i] = value for n elements.
#include "elem.h"

kernel void fill(global TYPE *out, SCALAR value, ulong n) {
  size_t i = get_global_id(0);
  if (i < n)
    STORE(out, i, value);
}
