// out = a OP b, element by element: both are arrays of n elements, one of them is a
// scalar, or both are broadcast to a shape of four dimensions. Integers wrap; div exists
// for floating types only. out and a or b may be the same buffer.
#include "elem.h"

// Broadcasting: element (i0,i1,i2,i3) of an operand lies at Σ iⱼ·strideⱼ, and the
// stride of a dimension that the operand lacks is 0. out is dense.
size_t broadcast_at(size_t i, uint d1, uint d2, uint d3, uint s0, uint s1, uint s2, uint s3) {
  size_t i3 = i % d3;
  i /= d3;
  size_t i2 = i % d2;
  i /= d2;
  return i / d1 * s0 + i % d1 * s1 + i2 * s2 + i3 * s3;
}

#define ARITH_FAMILY(NAME, OP)                                                                     \
  kernel void NAME(global const TYPE *a, global const TYPE *b, global TYPE *out, ulong n) {        \
    size_t i = get_global_id(0);                                                                   \
    if (i < n)                                                                                     \
      STORE(out, i, (ARITH)LOAD(a, i) OP(ARITH) LOAD(b, i));                                       \
  }                                                                                                \
  kernel void NAME##_scalar(global const TYPE *a, SCALAR s, global TYPE *out, ulong n) {           \
    size_t i = get_global_id(0);                                                                   \
    if (i < n)                                                                                     \
      STORE(out, i, (ARITH)LOAD(a, i) OP(ARITH) s);                                                \
  }                                                                                                \
  kernel void NAME##_broadcast(global const TYPE *a, global const TYPE *b, global TYPE *out,       \
                               uint d0, uint d1, uint d2, uint d3, uint a0, uint a1, uint a2,      \
                               uint a3, uint b0, uint b1, uint b2, uint b3) {                      \
    size_t i = get_global_id(0);                                                                   \
    if (i >= (size_t)d0 * d1 * d2 * d3)                                                            \
      return;                                                                                      \
    size_t ia = broadcast_at(i, d1, d2, d3, a0, a1, a2, a3);                                       \
    size_t ib = broadcast_at(i, d1, d2, d3, b0, b1, b2, b3);                                       \
    STORE(out, i, (ARITH)LOAD(a, ia) OP(ARITH) LOAD(b, ib));                                       \
  }

// The scalar as the left operand, for operations that are not commutative.
#define SCALAR_FIRST(NAME, OP)                                                                     \
  kernel void scalar_##NAME(SCALAR s, global const TYPE *a, global TYPE *out, ulong n) {           \
    size_t i = get_global_id(0);                                                                   \
    if (i < n)                                                                                     \
      STORE(out, i, (ARITH)s OP(ARITH) LOAD(a, i));                                                \
  }

ARITH_FAMILY(add, +)
ARITH_FAMILY(sub, -)
ARITH_FAMILY(mul, *)
SCALAR_FIRST(sub, -)
#if FLOATING
ARITH_FAMILY(div, /)
SCALAR_FIRST(div, /)
#endif
