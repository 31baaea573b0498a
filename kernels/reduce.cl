// Reductions over the middle axis of an array of outer × axis × inner elements; out
// has outer × inner. If axis is 0, a sum is 0, a mean NaN, a maximum -∞, a minimum +∞, and the
// index of argmax and argmin 0. A NaN makes max and min NaN. argmax is the index of the first NaN
// if there is one, otherwise of the first of equal maxima; argmin likewise for minima.
//
// reduce_<op>          one group of GROUP items per result: for a long axis
// reduce_<op>_columns  one item per result: for a long inner, where neighbouring
//                      items read neighbouring addresses
#include "elem.h"
#include "group.h"

// Sets at to the index of the first element of result o, whose elements are inner apart. An item
// without a result returns.
#define BEGIN(o)                                                                                   \
  if ((o) >= (size_t)outer * inner)                                                                \
    return;                                                                                        \
  size_t at = (o) / inner * axis * inner + (o) % inner;

#define SAME(x) (x)
#define OVER_AXIS(x) ((x) / (ARITH)axis)

#define REDUCE(NAME, FIRST, COMBINE, FINISH)                                                       \
  ROW_KERNEL void NAME(global const TYPE *in, global TYPE *out, uint outer, uint axis,             \
                       uint inner) {                                                               \
    local ARITH scratch[GROUP];                                                                    \
    size_t o = get_group_id(0);                                                                    \
    size_t l = get_local_id(0);                                                                    \
    BEGIN(o)                                                                                       \
    ARITH x = FIRST;                                                                               \
    for (size_t j = l; j < axis; j += GROUP) {                                                     \
      ARITH y = LOAD(in, at + j * inner);                                                          \
      x = COMBINE(x, y);                                                                           \
    }                                                                                              \
    GROUP_TREE(scratch, l, x, COMBINE)                                                             \
    if (l == 0)                                                                                    \
      STORE(out, o, FINISH(scratch[0]));                                                           \
  }                                                                                                \
  kernel void NAME##_columns(global const TYPE *in, global TYPE *out, uint outer, uint axis,       \
                             uint inner) {                                                         \
    size_t o = get_global_id(0);                                                                   \
    BEGIN(o)                                                                                       \
    ARITH total = FIRST;                                                                           \
    for (uint j = 0; j < axis;) { /* blocks of 128 keep the sums' rounding errors small */         \
      ARITH x = FIRST;                                                                             \
      for (uint end = axis - j < 128 ? axis : j + 128; j < end; j++) {                             \
        ARITH y = LOAD(in, at + (size_t)j * inner);                                                \
        x = COMBINE(x, y);                                                                         \
      }                                                                                            \
      total = COMBINE(total, x);                                                                   \
    }                                                                                              \
    STORE(out, o, FINISH(total));                                                                  \
  }

REDUCE(reduce_sum, 0, PLUS, SAME)
REDUCE(reduce_mean, 0, PLUS, OVER_AXIS)
REDUCE(reduce_max, -INFINITY, LARGER, SAME)
REDUCE(reduce_min, INFINITY, SMALLER, SAME)

// Whether y at index j comes before x at index i: NaN first, then by value, then by index.
#define BEATS(NAME, OP)                                                                            \
  bool NAME(ARITH y, uint j, ARITH x, uint i) {                                                    \
    bool ynan = isnan(y), xnan = isnan(x);                                                         \
    if (ynan || xnan)                                                                              \
      return ynan && (!xnan || j < i);                                                             \
    return y OP x || (y == x && j < i);                                                            \
  }
BEATS(larger_first, >)
BEATS(smaller_first, <)

#define REDUCE_PLACE(NAME, FIRST, BEATS)                                                           \
  ROW_KERNEL void NAME(global const TYPE *in, global uint *out, uint outer, uint axis,             \
                       uint inner) {                                                               \
    local ARITH values[GROUP];                                                                     \
    local uint places[GROUP];                                                                      \
    size_t o = get_group_id(0);                                                                    \
    uint l = get_local_id(0);                                                                      \
    BEGIN(o)                                                                                       \
    ARITH x = FIRST;                                                                               \
    uint i = 0xffffffffu;                                                                          \
    for (size_t j = l; j < axis; j += GROUP) {                                                     \
      ARITH y = LOAD(in, at + j * inner);                                                          \
      if (BEATS(y, j, x, i)) {                                                                     \
        x = y;                                                                                     \
        i = j;                                                                                     \
      }                                                                                            \
    }                                                                                              \
    values[l] = x;                                                                                 \
    places[l] = i;                                                                                 \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                  \
    for (uint width = GROUP / 2; width > 0; width /= 2) {                                          \
      if (l < width && BEATS(values[l + width], places[l + width], values[l], places[l])) {        \
        values[l] = values[l + width];                                                             \
        places[l] = places[l + width];                                                             \
      }                                                                                            \
      barrier(CLK_LOCAL_MEM_FENCE);                                                                \
    }                                                                                              \
    if (l == 0)                                                                                    \
      out[o] = axis == 0 ? 0 : places[0];                                                          \
  }                                                                                                \
  kernel void NAME##_columns(global const TYPE *in, global uint *out, uint outer, uint axis,       \
                             uint inner) {                                                         \
    size_t o = get_global_id(0);                                                                   \
    BEGIN(o)                                                                                       \
    ARITH x = FIRST;                                                                               \
    uint i = 0xffffffffu;                                                                          \
    for (uint j = 0; j < axis; j++) {                                                              \
      ARITH y = LOAD(in, at + (size_t)j * inner);                                                  \
      if (BEATS(y, j, x, i)) {                                                                     \
        x = y;                                                                                     \
        i = j;                                                                                     \
      }                                                                                            \
    }                                                                                              \
    out[o] = axis == 0 ? 0 : i;                                                                    \
  }

REDUCE_PLACE(reduce_argmax, -INFINITY, larger_first)
REDUCE_PLACE(reduce_argmin, INFINITY, smaller_first)
