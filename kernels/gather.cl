// out[i] = in[index[i]] for i < count, where in[r] and out[i] are rows of n elements that are
// copied bit for bit. An index without a row gives a row of zeros; with -D CLAMP=1 it names the first or the
// last row, as in index.h. One item per element of out.
#include "index.h"

kernel void gather(global const TYPE *in, global const INDEX_TYPE *index, global TYPE *out, uint rows,
                   uint count, uint n) {
  size_t at = get_global_id(0);
  if (at >= (size_t)count * n)
    return;
  ulong row = row_of(index[at / n], rows);
  RAW x = 0;
  if (row < rows)
    x = ((global const RAW *)in)[row * n + at % n];
  ((global RAW *)out)[at] = x;
}

// out[p][i] = the n elements from in[p * part + index[i] * step] on, for p < parts and i < count: the rows that the same
// indices name in each part of a table, whose rows may overlap or lie apart.
kernel void gather_parts(global const TYPE *in, global const INDEX_TYPE *index, global TYPE *out,
                         uint parts, uint rows, uint count, uint n, ulong part, ulong step) {
  size_t at = get_global_id(0), each = (size_t)count * n;
  if (at >= parts * each)
    return;
  ulong row = row_of(index[at % each / n], rows);
  RAW x = 0;
  if (row < rows)
    x = ((global const RAW *)in)[at / each * part + row * step + at % n];
  ((global RAW *)out)[at] = x;
}
