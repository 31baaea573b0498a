// All kernels, for the instruction set whose operations the including file has defined. A set is
// compiled in six parts, one file of package internal/simd each, so that the compiler needs
// less time on several cores and less memory: the including file defines PART_F32,
// PART_F64, PART_I8, PART_EXPR, PART_QUANT or PART_STREAM.
#define CAT_(a, b) a##_##b
#define CAT(a, b) CAT_(a, b)

// The functions in the table of a set have the set in their names, and are not exported.
#define EXPORT(f) __attribute__((visibility("hidden"))) void CAT(SET, f)(const simd_word *w)

// The most rows of a product of few.
#define FEW_MOST 16
#include "list.h"
#include "storage.h"
#include "functions.h"
#include "gelu.h"

#ifdef PART_F32
#define T f32
#define E float
#include "gemm.h"
#include "conv.h"
#include "conv_phases.h"
#include "conv_dilated.h"
#include "conv_long.h"
#include "conv_turned.h"
#undef T
#undef E
#include "winograd.h"
#include "convert.h"

#define A f32
#define F float
#define S f32
#define E float
#include "few.h"
#undef S
#undef E
#define E uint16_t
#define S f16
#include "few.h"
#undef S
#define S bf16
#include "few.h"
#undef S
#undef E
#undef A
#undef F

// Word 0 is the type of the matrix.
#define BY_FLOAT(NAME)                                                                             \
  EXPORT(f32_##NAME) {                                                                             \
    static simd_func *const by_type[] = {[TYPE_F32] = f32_##NAME, [TYPE_F16] = f16_##NAME, [TYPE_BF16] = bf16_##NAME}; \
    by_type[w[0].i](w);                                                                            \
  }
BY_FLOAT(few_rows)
BY_FLOAT(few_columns)
#undef BY_FLOAT
#endif

#ifdef PART_F64
#define T f64
#define E double
#include "gemm.h"
#include "conv.h"
#include "conv_phases.h"
#include "conv_dilated.h"
#include "conv_long.h"
#include "conv_turned.h"
#undef T
#undef E

#define A f64
#define F double
#define S f64
#define E double
#include "few.h"
#undef S
#undef E
#undef A
#undef F
EXPORT(f64_few_rows) { f64_few_rows(w); }
EXPORT(f64_few_columns) { f64_few_columns(w); }
#endif

#ifdef PART_I8
#define T i8pair
#define E int32_t
#define GROUP 2
#define OFFSET 0
#include "gemm_i8.h"
#undef T
#ifdef HAVE_I8FOUR
#define T i8four
#define GROUP 4
#define OFFSET 128
#include "gemm_i8.h"
#undef T
#endif
#undef E
#include "l2.h"
#include "nearest.h"
#include "reduce_int.h"
#include "gemm_int.h"
#endif

#ifndef HAVE_I8FOUR
#define i8four_pack i8pair_pack
#define i8four_rows i8pair_rows
#define w2a8_four w2a8
#define gemm_q_four gemm_q
#endif

#ifdef PART_EXPR
#include "expr.h"
#endif

#ifdef PART_QUANT
#include "quant.h"
#include "w2a8.h"
#include "gemm_q.h"
#include "codes.h"
#endif

#ifdef PART_STREAM
#include "stream.h"

#define DECLARE(N, f) EXPORT(f);
SIMD_LIST(DECLARE)
#undef DECLARE
#define ENTRY(N, f) [N] = CAT(SET, f),
#define SIMD_TABLE {SIMD_LIST(ENTRY)}
#endif
