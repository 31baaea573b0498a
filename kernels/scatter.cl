// Rows of n elements stored or added at rows given by indices: row i of in goes to row index[i] of
// out. An index that is not below rows is ignored; rows of out that no index names are not changed.
// One item per element of in.
//
//   scatter_last  last[r] = the largest i + 1 with index[i] = r, so that the result for duplicate
//                 indices is defined. The caller fills last with 0 before. One item per index.
//   scatter       out[r] = in[last[r] - 1] where last[r] is not 0: the last duplicate is stored.
//   scatter_runs  likewise without last: equal indices are neighbours, and entry k, whose row is number order[k] of in,
//                 is the last duplicate if index[k + 1] is another one.
//   scatter_add   out[r] += all rows i of in with index[i] = r, in any order. For f32, i32, u32.
//                 in and out are different buffers. segment.cl has sums in a fixed order, maxima and
//                 minima, of every type.
#include "elem.h"

kernel void scatter_last(global const uint *index, global uint *last, uint rows, uint count) {
  size_t i = get_global_id(0);
  if (i >= count)
    return;
  uint row = index[i];
  if (row < rows)
    atomic_max(&last[row], (uint)i + 1);
}

kernel void scatter(global const TYPE *in, global const uint *index, global const uint *last,
                    global TYPE *out, uint rows, uint count, uint n) {
  size_t at = get_global_id(0);
  if (at >= (size_t)count * n)
    return;
  uint i = at / n;
  uint row = index[i];
  if (row < rows && last[row] == i + 1)
    ((global RAW *)out)[(size_t)row * n + at % n] = ((global const RAW *)in)[at];
}

kernel void scatter_runs(global const TYPE *in, global const uint *index, global const uint *order,
                         global TYPE *out, uint rows, uint count, uint n) {
  size_t at = get_global_id(0);
  if (at >= (size_t)count * n)
    return;
  uint k = at / n;
  uint row = index[k], from = order[k];
  if (row < rows && from < count && (k + 1 == count || index[k + 1] != row))
    ((global RAW *)out)[(size_t)row * n + at % n] = ((global const RAW *)in)[(size_t)from * n + at % n];
}

#define adds_f32 1
#define adds_i32 1
#define adds_u32 1

#if JOIN(adds_, T)
#if FLOATING
void add_to(volatile global uint *p, float x) {
  uint seen = *p, old;
  do {
    old = seen;
    seen = atomic_cmpxchg(p, old, as_uint(as_float(old) + x));
  } while (seen != old);
}
#else
void add_to(volatile global uint *p, uint x) { atomic_add(p, x); }
#endif

kernel void scatter_add(global const TYPE *in, global const uint *index, global TYPE *out,
                        uint rows, uint count, uint n) {
  size_t at = get_global_id(0);
  if (at >= (size_t)count * n)
    return;
  uint row = index[at / n];
  if (row < rows)
    add_to((volatile global uint *)out + ((size_t)row * n + at % n), LOAD(in, at));
}
#endif
