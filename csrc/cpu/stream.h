// The kernels whose speed is limited by memory, for each type, and their functions for simd.h.
#include "heap.h"

#define S f32
#define A f32
#define E float
#define F float
#include "reduce.h"
#include "rows.h"
#include "topk.h"
#include "gemv.h"
#undef S
#undef E

#define S f16
#define E uint16_t
#include "reduce.h"
#include "rows.h"
#include "topk.h"
#include "gemv.h"
#undef S

#define S bf16
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
#include "reduce.h"
#include "rows.h"
#include "topk.h"
#include "gemv.h"
#undef S
#undef A
#undef E
#undef F

#include "move.h"

// Word 0 is the type of the elements.
#define BY_FLOAT(NAME)                                                                             \
  EXPORT(NAME) {                                                                                   \
    static simd_func *const by_type[] = {f32_##NAME, f64_##NAME, f16_##NAME, bf16_##NAME};         \
    by_type[w[0].i](w);                                                                            \
    past_end();                                                                                    \
  }
BY_FLOAT(reduce_rows)
BY_FLOAT(reduce_columns)
BY_FLOAT(softmax)
BY_FLOAT(norm)
BY_FLOAT(topk)
BY_FLOAT(gemv_rows)
BY_FLOAT(gemv_columns)
BY_FLOAT(gemv_store)
#undef BY_FLOAT
