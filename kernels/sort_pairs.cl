// A stable sort of the keys of each row of n, with a value for each key: equal keys keep their order. Keys have the
// type T, any of the twelve, and values, which are moved bit for bit, the type VALUE, u32 by default. The order is ascending, or with
// -D DESCENDING=1 descending. NaN counts as larger than every number, so that it comes last in ascending and
// first in descending order; -0 equals +0.
//
//   sort_blocks  sorts each block of 1024 elements of each row (the last one of a row may be shorter),
//                one group per block
//   sort_merge   merges neighbouring runs of width sorted elements to runs of 2·width; the last ones of a row may be
//                shorter. One item per element.
//
// A row of up to 1024 elements is sorted by sort_blocks alone. Longer ones need a sort_merge for each
// width of 1024, 2048, ... below n, which reads what the launch before has written. A launch must not
// write to the buffers that it reads.
#include "group.h"
#include "order.h"

#ifndef VALUE
#define VALUE u32
#endif
#define VALUE_TYPE JOIN(type_, VALUE)
#define VALUE_RAW JOIN(raw_, VALUE)

#ifndef DESCENDING
#define DESCENDING 0
#endif

KEY place_of(global const TYPE *keys, size_t at) {
#if DESCENDING
  return ~key_of(LOAD(keys, at));
#else
  return key_of(LOAD(keys, at));
#endif
}

void move_pair(global const TYPE *keys, global const VALUE_TYPE *values, size_t from, global TYPE *keysOut,
          global VALUE_TYPE *valuesOut, size_t to) {
  ((global RAW *)keysOut)[to] = ((global const RAW *)keys)[from];
  ((global VALUE_RAW *)valuesOut)[to] = ((global const VALUE_RAW *)values)[from];
}

#define BLOCK 1024

ROW_KERNEL void sort_blocks(global const TYPE *keys, global const VALUE_TYPE *values, global TYPE *keysOut,
                            global VALUE_TYPE *valuesOut, uint rows, uint n) {
  local KEY key[BLOCK];
  local ushort from[BLOCK];
  size_t parts = ((size_t)n + BLOCK - 1) / BLOCK, g = get_group_id(0);
  uint l = get_local_id(0);
  if (g >= rows * parts)
    return;
  size_t within = g % parts * BLOCK, first = g / parts * n + within;
  uint count = min(n - within, (size_t)BLOCK), all = 1;
  while (all < count)
    all *= 2;
  for (uint i = l; i < all; i += GROUP) {
    key[i] = i < count ? place_of(keys, first + i) : ~(KEY)0; // what is beyond the end stays there
    from[i] = i;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  // A bitonic sort. No two elements have the same key and place, so that it is stable.
  for (uint size = 2; size <= all; size *= 2)
    for (uint step = size / 2; step > 0; step /= 2) {
      for (uint i = l; i < all / 2; i += GROUP) {
        uint a = 2 * i - (i & (step - 1)), b = a + step;
        KEY x = key[a], y = key[b];
        ushort p = from[a], q = from[b];
        bool less = y < x || (y == x && q < p);
        if (less == ((a & size) == 0)) {
          key[a] = y;
          key[b] = x;
          from[a] = q;
          from[b] = p;
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  for (uint i = l; i < count; i += GROUP)
    move_pair(keys, values, first + from[i], keysOut, valuesOut, first + i);
}

kernel void sort_merge(global const TYPE *keys, global const VALUE_TYPE *values, global TYPE *keysOut,
                       global VALUE_TYPE *valuesOut, uint rows, uint n, uint width) {
  size_t at = get_global_id(0);
  if (at >= (size_t)rows * n || width == 0)
    return;
  size_t row = at / n * n, i = at % n, run = i / width;
  size_t mate = min((run ^ 1) * width, (size_t)n), end = min(mate + width, (size_t)n), lo = mate;
  KEY x = place_of(keys, at);
  while (lo < end) { // how many of the other run come before x: of the run before it, equal ones too
    size_t mid = lo + (end - lo) / 2;
    KEY y = place_of(keys, row + mid);
    if (y < x || (y == x && mate < i))
      lo = mid + 1;
    else
      end = mid;
  }
  size_t to = row + (run & ~(size_t)1) * width + (i - run * width) + (lo - mate);
  move_pair(keys, values, at, keysOut, valuesOut, to);
}
