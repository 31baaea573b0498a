// out[i] = in[index[i]], rows of n elements moved bit for bit: count of them from the rows
// of in. An index that is no row gives a row of zeros. One item per element of out.
#include "elem.h"

kernel void gather(global const TYPE *in, global const uint *index, global TYPE *out, uint rows,
                   uint count, uint n) {
  size_t at = get_global_id(0);
  if (at >= (size_t)count * n)
    return;
  uint row = index[at / n];
  RAW x = 0;
  if (row < rows)
    x = ((global const RAW *)in)[(size_t)row * n + at % n];
  ((global RAW *)out)[at] = x;
}
