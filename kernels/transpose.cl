// out[c·rows + r] = in[r·cols + c] for each matrix of a batch, which is the third
// dimension of the grid. Values are moved bit for bit.
//
// A group moves one TILE×TILE tile through local memory, so that both reads and
// writes are of consecutive addresses. An extra column spreads each column of the tile
// over the banks of local memory.
#include "elem.h"

#ifndef TILE
#define TILE 16
#endif

kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void
transpose(global const TYPE *in, global TYPE *out, uint rows, uint cols) {
  local RAW tile[TILE][TILE + 1];
  size_t lx = get_local_id(0), ly = get_local_id(1);
  size_t c0 = get_group_id(0) * TILE, r0 = get_group_id(1) * TILE;
  size_t matrix = get_group_id(2) * rows * cols;
  global const RAW *from = (global const RAW *)in + matrix;
  global RAW *to = (global RAW *)out + matrix;

  if (r0 + ly < rows && c0 + lx < cols)
    tile[ly][lx] = from[(r0 + ly) * cols + c0 + lx];
  barrier(CLK_LOCAL_MEM_FENCE);
  if (c0 + ly < cols && r0 + lx < rows)
    to[(c0 + ly) * rows + r0 + lx] = tile[lx][ly];
}
