// The running sums of each row of n elements: out[i] = in[0] + in[1] + … + in[i]. Integers wrap;
// half and bfloat16 are added in float and rounded when they are stored.
//
// One group per part of a row. Few long rows need more groups than there are rows: a row is divided
// into `parts` parts of equal length, of which the last ones may be shorter or empty, and totals
// has the sums of all parts but the last one, rows × (parts - 1). A result depends on the sizes, on totals and on parts
// alone, not on the order in which groups run.
#include "elem.h"
#include "group.h"

#if FLOATING
#define PARTIAL ARITH
#else
#define PARTIAL TYPE
#endif

#define EACH 8 // neighbouring elements that an item adds up at a time
#define TILE (EACH * GROUP)

ROW_KERNEL void scan_sum(global const TYPE *in, global const PARTIAL *totals, global TYPE *out,
                         uint rows, uint n, uint parts) {
  local ARITH x[TILE];
  local ARITH sums[GROUP];
  size_t g = get_group_id(0);
  uint l = get_local_id(0);
  if (g >= (size_t)rows * parts)
    return;
  size_t part = g % parts, span = ((size_t)n + parts - 1) / parts;
  size_t first = min((size_t)n, part * span), count = min(n - first, span);
  in += g / parts * n + first;
  out += g / parts * n + first;
  totals += g / parts * (parts - 1);
  ARITH before = 0; // the sum of the elements before the tile
  for (size_t i = l; i < part; i += GROUP)
    before += totals[i];
  GROUP_TREE(sums, l, before, PLUS)
  before = sums[0];
  for (size_t at = 0; at < count; at += TILE) {
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = l; i < TILE; i += GROUP)
      x[i] = at + i < count ? LOAD(in, at + i) : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    local ARITH *mine = x + l * EACH;
    for (uint i = 1; i < EACH; i++)
      mine[i] += mine[i - 1];
    sums[l] = mine[EACH - 1];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = 1; step < GROUP; step *= 2) { // the running sums of sums
      ARITH y = l >= step ? sums[l - step] : 0;
      barrier(CLK_LOCAL_MEM_FENCE);
      sums[l] += y;
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    ARITH start = l > 0 ? before + sums[l - 1] : before;
    before += sums[GROUP - 1];
    for (uint i = 0; i < EACH; i++)
      mine[i] += start;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = l; i < TILE && at + i < count; i += GROUP)
      STORE(out, at + i, x[i]);
  }
}
