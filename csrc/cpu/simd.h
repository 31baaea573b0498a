// The interface between Go and the kernels of the catalog in vector instructions.
//
// There is one table of functions per instruction set (avx512.c, avx2.c, neon.c, each compiled in
// parts, see all.h). Go selects the set and calls a function by its number. A function computes one
// part of a launch on the calling thread. Its arguments are 64-bit words: integers, the bits of
// doubles, and addresses of memory outside the Go heap, or pinned in it. It checks nothing: the caller ensures that
// every address that it computes from the sizes is in its buffer. No function changes the
// floating-point modes of its thread or keeps state.
#ifndef CONCORD_SIMD_H
#define CONCORD_SIMD_H

#include <stddef.h>
#include <stdint.h>

typedef union {
  int64_t i;
  double f;
  void *p;
} simd_word;

typedef void simd_func(const simd_word *w);

// Number and function. internal/simd takes the numbers from this list.
#define SIMD_LIST(F) \
  F(SIMD_GEMM_F32_DIRECT, f32_gemm_direct) \
  F(SIMD_GEMM_F32_DOT, f32_gemm_dot) \
  F(SIMD_GEMM_F32_PACK, f32_gemm_pack) \
  F(SIMD_GEMM_F32_BLOCK, f32_gemm_block) \
  F(SIMD_GEMM_F32_FEW_ROWS, f32_few_rows) \
  F(SIMD_GEMM_F32_FEW_COLUMNS, f32_few_columns) \
  F(SIMD_GEMM_F32_STORE, f32_gemm_store) \
  F(SIMD_GEMM_F64_DIRECT, f64_gemm_direct) \
  F(SIMD_GEMM_F64_DOT, f64_gemm_dot) \
  F(SIMD_GEMM_F64_PACK, f64_gemm_pack) \
  F(SIMD_GEMM_F64_BLOCK, f64_gemm_block) \
  F(SIMD_GEMM_F64_FEW_ROWS, f64_few_rows) \
  F(SIMD_GEMM_F64_FEW_COLUMNS, f64_few_columns) \
  F(SIMD_GEMM_F64_STORE, f64_gemm_store) \
  F(SIMD_WIDEN, convert_widen) \
  F(SIMD_NARROW, convert_narrow) \
  F(SIMD_FMA_PEAK, f32_fma_peak) \
  F(SIMD_L2_FLOAT, l2_float) \
  F(SIMD_L2_I8, l2_i8) \
  F(SIMD_REDUCE_ROWS, reduce_rows) \
  F(SIMD_SOFTMAX, softmax) \
  F(SIMD_REDUCE_COLUMNS, reduce_columns) \
  F(SIMD_NORM, norm) \
  F(SIMD_TRANSPOSE, move_transpose) \
  F(SIMD_TOPK, topk) \
  F(SIMD_L2_PACK, l2_pack) \
  F(SIMD_CONV_F32, f32_conv) \
  F(SIMD_CONV_F64, f64_conv) \
  F(SIMD_CONV_ZIP_F32, f32_conv_zip) \
  F(SIMD_CONV_ZIP_F64, f64_conv_zip) \
  F(SIMD_CONV_PHASES_F32, f32_conv_phases) \
  F(SIMD_CONV_PHASES_F64, f64_conv_phases) \
  F(SIMD_CONV_DILATED_F32, f32_conv_dilated) \
  F(SIMD_CONV_DILATED_F64, f64_conv_dilated) \
  F(SIMD_CONV_DILATED_PACK_F32, f32_conv_dilated_pack) \
  F(SIMD_CONV_DILATED_PACK_F64, f64_conv_dilated_pack) \
  F(SIMD_CONV_LONG_F32, f32_conv_long) \
  F(SIMD_CONV_LONG_F64, f64_conv_long) \
  F(SIMD_CONV_TURNED_F32, f32_conv_turned) \
  F(SIMD_CONV_TURNED_F64, f64_conv_turned) \
  F(SIMD_WINOGRAD, winograd) \
  F(SIMD_WINOGRAD_FILTERS, winograd_filters) \
  F(SIMD_GEMM_I8_PACK, i8pair_pack) \
  F(SIMD_GEMM_I8_ROWS, i8pair_rows) \
  F(SIMD_GEMM_VNNI_PACK, i8four_pack) \
  F(SIMD_GEMM_VNNI_ROWS, i8four_rows) \
  F(SIMD_L2_I8_PACK, l2_i8_pack) \
  F(SIMD_EXPR, expr) \
  F(SIMD_NEAREST, nearest) \
  F(SIMD_REDUCE_INT_ROWS, int_reduce_rows) \
  F(SIMD_REDUCE_INT_COLUMNS, int_reduce_columns) \
  F(SIMD_GEMV_ROWS, gemv_rows) \
  F(SIMD_GEMV_COLUMNS, gemv_columns) \
  F(SIMD_GEMV_STORE, gemv_store) \
  F(SIMD_GEMM_INT, gemm_int) \
  F(SIMD_NEAREST_PICK, nearest_pick) \
  F(SIMD_NEAREST_LIST, nearest_list) \
  F(SIMD_QUANT_LARGEST, quant_largest) \
  F(SIMD_QUANT_INTERLEAVED_ENCODE, quant_interleaved_encode) \
  F(SIMD_QUANT_INTERLEAVED_DECODE, quant_interleaved_decode) \
  F(SIMD_QUANT_TQ1_ENCODE, quant_tq1_encode) \
  F(SIMD_QUANT_TQ1_DECODE, quant_tq1_decode) \
  F(SIMD_QUANT_TQ2_ENCODE, quant_tq2_encode) \
  F(SIMD_QUANT_TOP_ENCODE, quant_top_encode) \
  F(SIMD_QUANT_MOST_ENCODE, quant_most_encode) \
  F(SIMD_QUANT_BLOCK_DECODE, quant_block_decode) \
  F(SIMD_QUANT_BYTES_ENCODE, quant_bytes_encode) \
  F(SIMD_QUANT_BYTES_DECODE, quant_bytes_decode) \
  F(SIMD_QUANT_QUARTER_ENCODE, quant_quarter_encode) \
  F(SIMD_QUANT_QUARTER_DECODE, quant_quarter_decode) \
  F(SIMD_W2A8, w2a8) \
  F(SIMD_W2A8_FOUR, w2a8_four) \
  F(SIMD_W2A8_ROWS, w2a8_rows) \
  F(SIMD_GEMM_Q, gemm_q) \
  F(SIMD_GEMM_Q_FOUR, gemm_q_four) \
  F(SIMD_GEMM_Q_BLOCKS, gemm_q_blocks) \
  F(SIMD_CODES_ENCODE, codes_encode) \
  F(SIMD_CODES_TABLE, codes_table) \
  F(SIMD_CODES_SCAN, codes_scan)

#define SIMD_NUMBER(N, f) N,
enum { SIMD_LIST(SIMD_NUMBER) SIMD_OPS };
#undef SIMD_NUMBER

// Go adds SIMD_F64 to the number of a function for floats to get that of the same function for
// doubles.
enum { SIMD_F64 = SIMD_GEMM_F64_DIRECT - SIMD_GEMM_F32_DIRECT };
_Static_assert(SIMD_GEMM_F64_DOT == SIMD_GEMM_F32_DOT + SIMD_F64 && SIMD_GEMM_F64_PACK == SIMD_GEMM_F32_PACK + SIMD_F64 &&
                   SIMD_GEMM_F64_BLOCK == SIMD_GEMM_F32_BLOCK + SIMD_F64 && SIMD_GEMM_F64_FEW_ROWS == SIMD_GEMM_F32_FEW_ROWS + SIMD_F64 &&
                   SIMD_GEMM_F64_FEW_COLUMNS == SIMD_GEMM_F32_FEW_COLUMNS + SIMD_F64 && SIMD_GEMM_F64_STORE == SIMD_GEMM_F32_STORE + SIMD_F64,
               "the functions of gemm.h are in the same order for floats and for doubles");

_Static_assert(SIMD_CONV_F64 == SIMD_CONV_F32 + 1 && SIMD_CONV_ZIP_F64 == SIMD_CONV_ZIP_F32 + 1 && SIMD_CONV_PHASES_F64 == SIMD_CONV_PHASES_F32 + 1 &&
                   SIMD_CONV_DILATED_F64 == SIMD_CONV_DILATED_F32 + 1 && SIMD_CONV_DILATED_PACK_F64 == SIMD_CONV_DILATED_PACK_F32 + 1 &&
                   SIMD_CONV_LONG_F64 == SIMD_CONV_LONG_F32 + 1 && SIMD_CONV_TURNED_F64 == SIMD_CONV_TURNED_F32 + 1,
               "the functions of convolutions are in pairs, for floats and for doubles");

// The sets.
enum { SIMD_SET_AVX512, SIMD_SET_AVX2, SIMD_SET_NEON };

extern simd_func *const concord_simd_avx512[SIMD_OPS];
extern simd_func *const concord_simd_avx2[SIMD_OPS];
extern simd_func *const concord_simd_neon[SIMD_OPS];

// Returns the table of a set by its number, or NULL if the set is not in this build.
static inline simd_func *const *concord_simd_table(int32_t set) {
#if defined(__x86_64__) && !defined(NO_AVX512)
  if (set == SIMD_SET_AVX512) return concord_simd_avx512;
#endif
#if defined(__x86_64__) && !defined(NO_AVX2)
  if (set == SIMD_SET_AVX2) return concord_simd_avx2;
#endif
#if defined(__aarch64__)
  if (set == SIMD_SET_NEON) return concord_simd_neon;
#endif
  (void)set;
  return NULL;
}

static inline int concord_simd_here(int32_t set) { return concord_simd_table(set) != NULL; }

// w is of integers, so that cgo looks for no pointers in the words of every call.
static inline void concord_simd(int32_t set, int32_t op, const uint64_t *w) {
  concord_simd_table(set)[op]((const simd_word *)w);
}

#endif
