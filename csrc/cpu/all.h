// Every kernel, for the instruction set whose vocabulary has been defined.
#define CAT_(a, b) a##_##b
#define CAT(a, b) CAT_(a, b)

#include "list.h"
#include "storage.h"
#include "functions.h"
#include "gelu.h"

#define T f32
#define E float
#include "gemm.h"
#include "conv.h"
#undef T
#undef E
#define T f64
#define E double
#include "gemm.h"
#include "conv.h"
#undef T
#undef E
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
#else
#define i8four_pack i8pair_pack
#define i8four_rows i8pair_rows
#endif
#undef E
#include "convert.h"
#include "l2.h"
#include "stream.h"

#define SIMD_TABLE                                                                                 \
  {f32_gemm_direct, f32_gemm_dot, f32_gemm_pack, f32_gemm_block,                    \
   f64_gemm_direct, f64_gemm_dot, f64_gemm_pack, f64_gemm_block,                    \
   convert_widen, convert_narrow, f32_fma_peak, l2_float, l2_i8,                                 \
   arith, reduce_rows, softmax, reduce_columns, norm,                                              \
   activation, cast, move_fill, move_copy, move_transpose, topk, broadcast, l2_pack,                            \
   f32_conv, f64_conv, i8pair_pack, i8pair_rows, i8four_pack, i8four_rows, l2_i8_pack}
