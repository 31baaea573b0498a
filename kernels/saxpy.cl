// y = a·x + y for n elements.
#include "elem.h"

kernel void saxpy(SCALAR a, global const TYPE *x, global TYPE *y, ulong n) {
  size_t i = get_global_id(0);
  if (i < n)
    STORE(y, i, MAD(a, LOAD(x, i), LOAD(y, i)));
}
