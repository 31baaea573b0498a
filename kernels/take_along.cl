// Elements along the middle axis of an array of outer × axis × inner elements, each by an index of its own:
//
//   out[o][i][j] = in[o][index[o][i][j]][j]
//
// for o < outer, i < count, j < inner. Elements are copied bit for bit. An index without an element gives 0; with
// -D CLAMP=1 it names the first or the last element, as in index.h. One item per element of out.
#include "index.h"

kernel void take_along(global const TYPE *in, global const INDEX_TYPE *index, global TYPE *out,
                       uint outer, uint axis, uint count, uint inner) {
  size_t at = get_global_id(0), each = (size_t)count * inner;
  if (at >= outer * each)
    return;
  ulong i = row_of(index[at], axis);
  RAW x = 0;
  if (i < axis)
    x = ((global const RAW *)in)[(at / each * axis + i) * inner + at % inner];
  ((global RAW *)out)[at] = x;
}
