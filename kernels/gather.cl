// out[i] = in[index[i]] for i < count, where in[r] and out[i] are rows of n elements that are
// copied bit for bit. An index that is not below rows gives a row of zeros. One item per element
// of out.
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
