// Normalization of rows, one group per row:
//
//   layer_norm  out[r][j] = (in[r][j] - m) / √(v + epsilon) · gamma[j] + beta[j], where m
//               is the mean of the row and v the mean of (in - m)²
//   rms_norm    out[r][j] = in[r][j] / √(q + epsilon) · gamma[j], q the mean of in²
//
// A NaN makes its row NaN. out and in may be the same buffer.
#include "elem.h"
#include "group.h"

#define SQUARE(x) ((x) * (x))

ROW_KERNEL void layer_norm(global const TYPE *in, global const TYPE *gamma,
                           global const TYPE *beta, global TYPE *out, uint rows, uint n,
                           SCALAR epsilon) {
  local ARITH scratch[GROUP];
  size_t row = get_group_id(0);
  size_t l = get_local_id(0);
  if (row >= rows) // no return here, for the reason given in softmax.cl
    row = n = 0;
  in += row * n;
  out += row * n;

  ARITH sum = 0;
  for (size_t j = l; j < n; j += GROUP)
    sum += LOAD(in, j);
  GROUP_TREE(scratch, l, sum, PLUS)
  ARITH mean = scratch[0] / (ARITH)n;
  barrier(CLK_LOCAL_MEM_FENCE);

  sum = 0;
  for (size_t j = l; j < n; j += GROUP)
    sum += SQUARE(LOAD(in, j) - mean);
  GROUP_TREE(scratch, l, sum, PLUS)
  ARITH width = sqrt(scratch[0] / (ARITH)n + epsilon);

  for (size_t j = l; j < n; j += GROUP) {
    ARITH x = (LOAD(in, j) - mean) / width;
    STORE(out, j, x * LOAD(gamma, j) + LOAD(beta, j));
  }
}

ROW_KERNEL void rms_norm(global const TYPE *in, global const TYPE *gamma, global TYPE *out,
                         uint rows, uint n, SCALAR epsilon) {
  local ARITH scratch[GROUP];
  size_t row = get_group_id(0);
  size_t l = get_local_id(0);
  if (row >= rows)
    row = n = 0;
  in += row * n;
  out += row * n;

  ARITH sum = 0;
  for (size_t j = l; j < n; j += GROUP)
    sum += SQUARE(LOAD(in, j));
  GROUP_TREE(scratch, l, sum, PLUS)
  ARITH width = sqrt(scratch[0] / (ARITH)n + epsilon);

  for (size_t j = l; j < n; j += GROUP)
    STORE(out, j, LOAD(in, j) / width * LOAD(gamma, j));
}
