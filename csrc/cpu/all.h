// Every kernel, for the instruction set whose vocabulary has been defined.
#define CAT_(a, b) a##_##b
#define CAT(a, b) CAT_(a, b)

#include "list.h"

#define T f32
#define E float
#include "gemm.h"
#undef T
#undef E
#define T f64
#define E double
#include "gemm.h"
#undef T
#undef E
#include "convert.h"
#include "l2.h"
#include "stream.h"

#define SIMD_TABLE                                                                                 \
  {f32_gemm_direct, f32_gemm_dot, f32_gemm_pack, f32_gemm_block,                    \
   f64_gemm_direct, f64_gemm_dot, f64_gemm_pack, f64_gemm_block,                    \
   convert_widen, convert_narrow, f32_fma_peak, l2_float, l2_i8,                                 \
   f32_arith, f32_sum_rows, f32_softmax, f64_arith, f64_sum_rows}
