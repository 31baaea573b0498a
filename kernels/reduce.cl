// Reductions over the middle axis of an array of outer × axis × inner elements; out
// has outer × inner. Results have the type T: sums and products of integers wrap, and integers have no mean.
// If axis is 0, a sum is 0, a product 1, a mean NaN, a maximum -∞ or the smallest integer, a minimum +∞ or the
// largest, and the index of argmax and argmin 0. A NaN makes max and min NaN. argmax is the index of the first NaN
// if there is one, otherwise of the first of equal maxima; argmin likewise for minima. Indices have the
// integer type INDEX, u32 by default; one that is too large for it keeps its low bits.
//
// reduce_<op>          one group of GROUP items per result: for a long axis
// reduce_<op>_columns  one item per result: for a long inner, where neighbouring
//                      items read neighbouring addresses
//
// Few results of a long axis need two launches, or one group would do all the work. With -D STAGE=1
// the axis is divided into `parts` parts of equal length, of which the last ones may be shorter or empty, and the
// partial results, outer × parts × inner, go to out, or values and places. A partial result has the
// type T, or float for half and bfloat16; places are indices in the whole axis. With -D STAGE=2 these are reduced
// to the results. So a result depends on the sizes and on parts alone, not on the order in which groups run.
#include "group.h"
#include "index.h"

#ifndef STAGE
#define STAGE 0
#endif

#if FLOATING
#define PARTIAL ARITH
#else
#define PARTIAL TYPE
#endif

#define lowest_f32 -INFINITY
#define lowest_f64 -INFINITY
#define lowest_f16 -INFINITY
#define lowest_bf16 -INFINITY
#define lowest_i8 CHAR_MIN
#define lowest_i16 SHRT_MIN
#define lowest_i32 INT_MIN
#define lowest_i64 LONG_MIN
#define lowest_u8 0
#define lowest_u16 0
#define lowest_u32 0
#define lowest_u64 0
#define highest_f32 INFINITY
#define highest_f64 INFINITY
#define highest_f16 INFINITY
#define highest_bf16 INFINITY
#define highest_i8 CHAR_MAX
#define highest_i16 SHRT_MAX
#define highest_i32 INT_MAX
#define highest_i64 LONG_MAX
#define highest_u8 UCHAR_MAX
#define highest_u16 USHRT_MAX
#define highest_u32 UINT_MAX
#define highest_u64 ULONG_MAX
#define LOWEST JOIN(lowest_, T)
#define HIGHEST JOIN(highest_, T)

// BEGIN sets at to the index of the first element for result o, count to the number of elements, which are inner
// apart, and first to the place of the first one in the axis. An item without a result returns.
#if STAGE == 0
#define SIZES uint outer, uint axis, uint inner
#define BEGIN(o)                                                                                   \
  if ((o) >= (size_t)outer * inner)                                                                \
    return;                                                                                        \
  size_t at = (o) / inner * axis * inner + (o) % inner;                                            \
  uint first = 0, count = axis;
#elif STAGE == 1
#define SIZES uint outer, uint axis, uint inner, uint parts
#define BEGIN(o)                                                                                   \
  if ((o) >= (size_t)outer * parts * inner)                                                        \
    return;                                                                                        \
  size_t span = ((size_t)axis + parts - 1) / parts;                                                \
  uint first = min((size_t)axis, (o) / inner % parts * span);                                      \
  uint count = min((size_t)(axis - first), span);                                                  \
  size_t at = ((o) / inner / parts * axis + first) * inner + (o) % inner;
#else
#define SIZES uint outer, uint axis, uint inner, uint parts
#define BEGIN(o)                                                                                   \
  if ((o) >= (size_t)outer * inner)                                                                \
    return;                                                                                        \
  size_t at = (o) / inner * parts * inner + (o) % inner;                                           \
  uint first = 0, count = parts;
#endif

#if STAGE == 1
#define TO PARTIAL
#define WRITE(p, i, x) ((p)[i] = (PARTIAL)(x))
#define OVER_AXIS(x) (x)
#else
#define TO TYPE
#define WRITE(p, i, x) STORE(p, i, x)
#define OVER_AXIS(x) ((x) / (ARITH)axis)
#endif
#if STAGE == 2
#define FROM PARTIAL
#define READ(p, i) ((p)[i])
#else
#define FROM TYPE
#define READ(p, i) LOAD(p, i)
#endif
#define SAME(x) (x)
#define TIMES(a, b) ((a) * (b))

// NUMBER is the type to compute in: ARITH, or for comparisons SCALAR, which has the sign of T.
#define REDUCE(NAME, NUMBER, FIRST, COMBINE, FINISH)                                               \
  ROW_KERNEL void NAME(global const FROM *in, global TO *out, SIZES) {                             \
    local NUMBER scratch[GROUP];                                                                   \
    size_t o = get_group_id(0);                                                                    \
    size_t l = get_local_id(0);                                                                    \
    BEGIN(o)                                                                                       \
    (void)first;                                                                                   \
    NUMBER x = FIRST;                                                                              \
    for (size_t j = l; j < count; j += GROUP) {                                                    \
      NUMBER y = READ(in, at + j * inner);                                                         \
      x = COMBINE(x, y);                                                                           \
    }                                                                                              \
    GROUP_TREE(scratch, l, x, COMBINE)                                                             \
    if (l == 0)                                                                                    \
      WRITE(out, o, FINISH(scratch[0]));                                                           \
  }                                                                                                \
  kernel void NAME##_columns(global const FROM *in, global TO *out, SIZES) {                       \
    size_t o = get_global_id(0);                                                                   \
    BEGIN(o)                                                                                       \
    (void)first;                                                                                   \
    NUMBER total = FIRST;                                                                          \
    for (uint j = 0; j < count;) { /* blocks of 128 keep the sums' rounding errors small */        \
      NUMBER x = FIRST;                                                                            \
      for (uint end = count - j < 128 ? count : j + 128; j < end; j++) {                           \
        NUMBER y = READ(in, at + (size_t)j * inner);                                               \
        x = COMBINE(x, y);                                                                         \
      }                                                                                            \
      total = COMBINE(total, x);                                                                   \
    }                                                                                              \
    WRITE(out, o, FINISH(total));                                                                  \
  }

REDUCE(reduce_sum, ARITH, 0, PLUS, SAME)
REDUCE(reduce_prod, ARITH, 1, TIMES, SAME)
REDUCE(reduce_max, SCALAR, LOWEST, LARGER, SAME)
REDUCE(reduce_min, SCALAR, HIGHEST, SMALLER, SAME)
#if FLOATING
REDUCE(reduce_mean, ARITH, 0, PLUS, OVER_AXIS)
#endif

// Whether y at index j comes before x at index i: NaN first, then by value, then by index.
#define BEATS(NAME, OP)                                                                            \
  bool NAME(SCALAR y, uint j, SCALAR x, uint i) {                                                  \
    bool ynan = IS_NAN(y), xnan = IS_NAN(x);                                                       \
    if (ynan || xnan)                                                                              \
      return ynan && (!xnan || j < i);                                                             \
    return y OP x || (y == x && j < i);                                                            \
  }
BEATS(larger_first, >)
BEATS(smaller_first, <)

#if STAGE == 2
#define PLACE_IN global const PARTIAL *values, global const uint *places
#define PLACE_VALUE(i) values[i]
#define PLACE(i, j) places[i]
#else
#define PLACE_IN global const TYPE *in
#define PLACE_VALUE(i) LOAD(in, i)
#define PLACE(i, j) (first + (uint)(j))
#endif
#if STAGE == 1
#define PLACE_OUT global PARTIAL *values, global uint *places
#define WRITE_PLACE(o, x, i) (values[o] = (PARTIAL)(x), places[o] = (i))
#else
#define PLACE_OUT global INDEX_TYPE *out
#define WRITE_PLACE(o, x, i) (out[o] = (INDEX_TYPE)(axis == 0 ? 0 : (i)))
#endif

#define REDUCE_PLACE(NAME, FIRST, BEATS)                                                           \
  ROW_KERNEL void NAME(PLACE_IN, PLACE_OUT, SIZES) {                                               \
    local SCALAR best[GROUP];                                                                      \
    local uint where[GROUP];                                                                       \
    size_t o = get_group_id(0);                                                                    \
    size_t l = get_local_id(0);                                                                    \
    BEGIN(o)                                                                                       \
    (void)first;                                                                                   \
    SCALAR x = FIRST;                                                                              \
    uint i = 0xffffffffu;                                                                          \
    for (size_t j = l; j < count; j += GROUP) {                                                    \
      SCALAR y = PLACE_VALUE(at + j * inner);                                                      \
      uint k = PLACE(at + j * inner, j);                                                           \
      if (BEATS(y, k, x, i)) {                                                                     \
        x = y;                                                                                     \
        i = k;                                                                                     \
      }                                                                                            \
    }                                                                                              \
    best[l] = x;                                                                                   \
    where[l] = i;                                                                                  \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                  \
    for (uint width = GROUP / 2; width > 0; width /= 2) {                                          \
      if (l < width && BEATS(best[l + width], where[l + width], best[l], where[l])) {              \
        best[l] = best[l + width];                                                                 \
        where[l] = where[l + width];                                                               \
      }                                                                                            \
      barrier(CLK_LOCAL_MEM_FENCE);                                                                \
    }                                                                                              \
    if (l == 0)                                                                                    \
      WRITE_PLACE(o, best[0], where[0]);                                                           \
  }                                                                                                \
  kernel void NAME##_columns(PLACE_IN, PLACE_OUT, SIZES) {                                         \
    size_t o = get_global_id(0);                                                                   \
    BEGIN(o)                                                                                       \
    (void)first;                                                                                   \
    SCALAR x = FIRST;                                                                              \
    uint i = 0xffffffffu;                                                                          \
    for (uint j = 0; j < count; j++) {                                                             \
      SCALAR y = PLACE_VALUE(at + (size_t)j * inner);                                              \
      uint k = PLACE(at + (size_t)j * inner, j);                                                   \
      if (BEATS(y, k, x, i)) {                                                                     \
        x = y;                                                                                     \
        i = k;                                                                                     \
      }                                                                                            \
    }                                                                                              \
    WRITE_PLACE(o, x, i);                                                                          \
  }

REDUCE_PLACE(reduce_argmax, LOWEST, larger_first)
REDUCE_PLACE(reduce_argmin, HIGHEST, smaller_first)
