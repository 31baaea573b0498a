// The kernels whose speed is limited by memory, for each type, and their functions for simd.h.
#include "heap.h"

// Copies bytes past the caches, except those before the first and after the last whole line.
static void past_copy(void *to, const void *from, int64_t n) {
  char *q = to;
  const char *p = from;
  int64_t head = (int64_t)(-(uintptr_t)q & 63);
  if (head > n)
    head = n;
  memcpy(q, p, (size_t)head);
  for (q += head, p += head, n -= head; n >= 64; q += 64, p += 64, n -= 64)
    past_line(q, p);
  memcpy(q, p, (size_t)n);
}

#define S f32
#define A f32
#define E float
#define F float
#include "elements.h"
#include "reduce.h"
#include "rows.h"
#include "topk.h"
#include "gemv.h"
#undef S
#undef E

#define S f16
#define E uint16_t
#include "elements.h"
#include "reduce.h"
#include "rows.h"
#include "topk.h"
#include "gemv.h"
#undef S

#define S bf16
#include "elements.h"
#include "reduce.h"
#include "rows.h"
#include "topk.h"
#include "gemv.h"
#undef S
#undef A
#undef E
#undef F

#define S f64
#define A f64
#define E double
#define F double
#include "elements.h"
#include "reduce.h"
#include "rows.h"
#include "topk.h"
#include "gemv.h"
#undef S
#undef A
#undef E
#undef F

#include "cast.h"
#include "integers.h"
#include "move.h"

// Word 0 is the type of the elements.
#define BY_FLOAT(NAME)                                                                             \
  EXPORT(NAME) {                                                                                   \
    static simd_func *const by_type[] = {f32_##NAME, f64_##NAME, f16_##NAME, bf16_##NAME};         \
    by_type[w[0].i](w);                                                                            \
    past_end();                                                                                    \
  }
BY_FLOAT(activation)
BY_FLOAT(reduce_rows)
BY_FLOAT(reduce_columns)
BY_FLOAT(softmax)
BY_FLOAT(norm)
BY_FLOAT(topk)
BY_FLOAT(gemv_rows)
BY_FLOAT(gemv_columns)
BY_FLOAT(gemv_store)
#undef BY_FLOAT

static void arith_row(const simd_word *w) {
  static simd_func *const floats[] = {f32_arith, f64_arith, f16_arith, bf16_arith};
  if (w[0].i <= TYPE_BF16) {
    floats[w[0].i](w);
    return;
  }
  int size = type_size[w[0].i];
  part_func *part = size == 1 ? u8_arith_part : size == 2 ? u16_arith_part : size == 4 ? u32_arith_part : u64_arith_part;
  in_parts(part, w, w[2].i, w[3].p, size, w[8].i != 0);
}

EXPORT(arith) {
  arith_row(w);
  past_end();
}

// One row of a broadcast per call of arith_row. An operand with stride 0 along the row is one
// number, and one with a stride above 1 is gathered.
#include "broadcast.h"
