// Rows combined by segments. Entry k of count entries names row order[k] of in, which has rows rows of n elements, and
// its segment id[k]. The ids ascend; equal ones are a segment, whose rows are combined with row id[k] of out:
//
//   segment_add  out[s] = out[s] + the sum of the rows, which integers wrap
//   segment_max  out[s] = the maximum of out[s] and the rows, elementwise; a NaN stays
//   segment_min  likewise the minimum
//
// The order of additions is that of the entries, so that a result has the same bits at every launch, without atomic
// operations. With -D ORDER=0 entry k is row k, and order is not read. Entries of rows or
// segments that do not exist are ignored, and rows of out without an entry are not changed. Ids in no
// order are sorted first, with the places of their rows as values: by sort_pairs. in and out are different buffers. One item
// per element of out.
#include "elem.h"
#include "group.h"

#ifndef ORDER
#define ORDER 1
#endif
#if ORDER
#define ROW(k) order[k]
#else
#define ROW(k) (k)
#endif

#define SEGMENT(NAME, NUMBER, FIRST, COMBINE)                                                      \
  kernel void NAME(global const TYPE *in, global const uint *id, global const uint *order,         \
                   global TYPE *out, uint rows, uint count, uint segments, uint n) {               \
    size_t at = get_global_id(0);                                                                  \
    if (at >= (size_t)segments * n)                                                                \
      return;                                                                                      \
    uint s = at / n, k = 0;                                                                        \
    for (uint hi = count; k < hi;) {                                                               \
      uint mid = k + (hi - k) / 2;                                                                 \
      if (id[mid] < s)                                                                             \
        k = mid + 1;                                                                               \
      else                                                                                         \
        hi = mid;                                                                                  \
    }                                                                                              \
    bool some = false;                                                                             \
    NUMBER total = LOAD(out, at);                                                                  \
    while (k < count && id[k] == s) {                                                              \
      NUMBER x = FIRST; /* blocks of 128 keep the sums' rounding errors small */                   \
      for (uint e = 0; e < 128 && k < count && id[k] == s; e++, k++) {                             \
        uint row = ROW(k);                                                                         \
        if (row < rows) {                                                                          \
          NUMBER y = LOAD(in, (size_t)row * n + at % n);                                           \
          x = COMBINE(x, y);                                                                       \
          some = true;                                                                             \
        }                                                                                          \
      }                                                                                            \
      total = COMBINE(total, x);                                                                   \
    }                                                                                              \
    if (some)                                                                                      \
      STORE(out, at, total);                                                                       \
  }

SEGMENT(segment_add, ARITH, 0, PLUS)
SEGMENT(segment_max, SCALAR, total, LARGER)
SEGMENT(segment_min, SCALAR, total, SMALLER)
