// The k smallest values of each row of n, in ascending order, with their indices in the row.
// Equal values are ordered by index, NaN comes after all numbers, -0 equals +0. If k is larger
// than n, there are n results; the rest of each row of results is not written.
//
// One group per row, any n and any k. A radix select finds the k-th smallest key
// byte by byte with a histogram in local memory; it ends when all elements of the selected bin are
// needed. Then the elements up to that key are collected in any order and sorted in place.
#include "elem.h"
#include "group.h"
#include "order.h"

#define KEY_BITS ((int)sizeof(KEY) * 8)
#define BINS 256

// Finds the bin that contains the need-th element, counted from 1. pick = {the bin, the number of
// its elements that are needed, the number of its elements}.
void pick_bin(local const uint *bins, uint need, local uint *pick) {
  uint b = 0, before = 0;
  while (before + bins[b] < need)
    before += bins[b++];
  pick[0] = b;
  pick[1] = need - before;
  pick[2] = bins[b];
}

void clear_bins(local uint *bins, uint l) {
  for (uint b = l; b < BINS; b += GROUP)
    bins[b] = 0;
}

ROW_KERNEL void topk(global const TYPE *in, global TYPE *values, global uint *indices, uint rows,
                     uint n, uint k) {
  local uint bins[BINS];
  local uint pick[3];
  local uint taken;
  size_t row = get_group_id(0);
  uint l = get_local_id(0);
  uint want = min(n, k);
  if (row >= rows || want == 0)
    return;
  in += row * n;
  values += row * k;
  indices += row * k;
  if (l == 0)
    taken = 0;

  // Find `limit`, the want-th smallest key. The search ends as soon as all elements of a bin are
  // needed; the lower bits of limit are then set to 1, so that all of the bin is below it.
  KEY limit = 0;
  uint need = want, have = n;
  int shift = KEY_BITS;
  while (shift > 0 && need < have) {
    shift -= 8;
    clear_bins(bins, l);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t i = l; i < n; i += GROUP) {
      KEY key = key_of(LOAD(in, i));
      if (shift == KEY_BITS - 8 || (key ^ limit) >> (shift + 8) == 0)
        atomic_inc(&bins[key >> shift & (BINS - 1)]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l == 0)
      pick_bin(bins, need, pick);
    barrier(CLK_LOCAL_MEM_FENCE);
    limit |= (KEY)pick[0] << shift;
    need = pick[1];
    have = pick[2];
  }
  if (shift == KEY_BITS)
    limit = ~(KEY)0;
  else
    limit |= ((KEY)1 << shift) - 1;

  // Of the elements that are equal to limit only the first `need` are taken: the same search
  // over their indices finds the last of them.
  uint last = 0;
  int bits = 32;
  while (bits > 0 && need < have) {
    bits -= 8;
    clear_bins(bins, l);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t i = l; i < n; i += GROUP) {
      bool here = bits == 24 || ((uint)i ^ last) >> (bits + 8) == 0;
      if (here && key_of(LOAD(in, i)) == limit)
        atomic_inc(&bins[(uint)i >> bits & (BINS - 1)]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l == 0)
      pick_bin(bins, need, pick);
    barrier(CLK_LOCAL_MEM_FENCE);
    last |= pick[0] << bits;
    need = pick[1];
    have = pick[2];
  }
  last |= bits == 32 ? ~0u : (1u << bits) - 1;

  barrier(CLK_LOCAL_MEM_FENCE); // all items see that taken is 0, and have read pick
  for (size_t i = l; i < n; i += GROUP) {
    KEY key = key_of(LOAD(in, i));
    if (key < limit || (key == limit && (uint)i <= last)) {
      uint at = atomic_inc(&taken);
      ((global RAW *)values)[at] = ((global const RAW *)in)[i];
      indices[at] = i;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);

  // Batcher's odd-even merge sort, in a form for any number of elements.
  for (uint p = 1; p < want; p *= 2)
    for (uint d = p; d > 0; d /= 2) {
      for (uint x = l; x + d < want; x += GROUP) {
        uint y = x + d, from = d % p;
        if (x < from || ((x - from) / d & 1) || x / (2 * p) != y / (2 * p))
          continue;
        KEY kx = key_of(LOAD(values, x)), ky = key_of(LOAD(values, y));
        uint ix = indices[x], iy = indices[y];
        if (kx > ky || (kx == ky && ix > iy)) {
          RAW v = ((global RAW *)values)[x];
          ((global RAW *)values)[x] = ((global RAW *)values)[y];
          ((global RAW *)values)[y] = v;
          indices[x] = iy;
          indices[y] = ix;
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}
