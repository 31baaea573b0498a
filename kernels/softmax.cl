// out[r][j] = e^(in[r][j] - m) / Σ e^(in[r][·] - m), where m is the maximum of the row, so that
// nothing overflows. One group per row. A row with a NaN or +∞ becomes NaN, and so does a
// row of only -∞. out and in may be the same buffer.
#include "elem.h"
#include "group.h"

ROW_KERNEL void softmax(global const TYPE *in, global TYPE *out, uint rows, uint n) {
  local ARITH scratch[GROUP];
  size_t row = get_group_id(0);
  size_t l = get_local_id(0);
  // A group beyond the last row gets a row of no elements. It must not return here, because
  // PoCL 3.1 would then let items beyond n of other groups store in the last loop.
  if (row >= rows)
    row = n = 0;
  in += row * n;
  out += row * n;

  ARITH m = -INFINITY;
  for (size_t j = l; j < n; j += GROUP) {
    ARITH x = LOAD(in, j);
    m = LARGER(m, x);
  }
  GROUP_TREE(scratch, l, m, LARGER)
  m = scratch[0];
  barrier(CLK_LOCAL_MEM_FENCE);

  ARITH sum = 0;
  for (size_t j = l; j < n; j += GROUP)
    sum += exp(LOAD(in, j) - m);
  GROUP_TREE(scratch, l, sum, PLUS)
  sum = scratch[0];

  for (size_t j = l; j < n; j += GROUP)
    STORE(out, j, exp(LOAD(in, j) - m) / sum);
}
