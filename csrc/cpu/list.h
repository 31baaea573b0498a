// The shapes of tiles, rows × registers, for which all results stay in registers, and the
// statements for each row of a tile. Panels are at most two registers
// wide, so files with kernels for panels only set SHAPES to PANEL_SHAPES.
#define ROWS_1(F) F(0)
#define ROWS_2(F) ROWS_1(F) F(1)
#define ROWS_3(F) ROWS_2(F) F(2)
#define ROWS_4(F) ROWS_3(F) F(3)
#define ROWS_5(F) ROWS_4(F) F(4)
#define ROWS_6(F) ROWS_5(F) F(5)
#define ROWS_7(F) ROWS_6(F) F(6)
#define ROWS_8(F) ROWS_7(F) F(7)
#define ROWS_9(F) ROWS_8(F) F(8)
#define ROWS_10(F) ROWS_9(F) F(9)
#define ROWS_11(F) ROWS_10(F) F(10)
#define ROWS_12(F) ROWS_11(F) F(11)

#if GEMM_ROWS == 12 && GEMM_REGS == 24
#define PANEL_SHAPES(F)                                                                            \
  F(1, 1) F(2, 1) F(3, 1) F(4, 1) F(5, 1) F(6, 1) F(7, 1) F(8, 1) F(9, 1) F(10, 1) F(11, 1) F(12, 1) \
  F(1, 2) F(2, 2) F(3, 2) F(4, 2) F(5, 2) F(6, 2) F(7, 2) F(8, 2) F(9, 2) F(10, 2) F(11, 2) F(12, 2)
#define WIDE_SHAPES(F) F(1, 4) F(2, 4) F(3, 4) F(4, 4) F(5, 4) F(6, 4) F(1, 8) F(2, 8) F(3, 8)
#define WHOLE(F) F(12, 2)
#elif GEMM_ROWS == 8 && GEMM_REGS == 16
#define PANEL_SHAPES(F)                                                                            \
  F(1, 1) F(2, 1) F(3, 1) F(4, 1) F(5, 1) F(6, 1) F(7, 1) F(8, 1)                                  \
  F(1, 2) F(2, 2) F(3, 2) F(4, 2) F(5, 2) F(6, 2) F(7, 2) F(8, 2)
#define WIDE_SHAPES(F) F(1, 4) F(2, 4) F(3, 4) F(4, 4) F(1, 8) F(2, 8)
#define WHOLE(F) F(8, 2)
#elif GEMM_ROWS == 6 && GEMM_REGS == 12
#define PANEL_SHAPES(F)                                                                            \
  F(1, 1) F(2, 1) F(3, 1) F(4, 1) F(5, 1) F(6, 1) F(1, 2) F(2, 2) F(3, 2) F(4, 2) F(5, 2) F(6, 2)
#define WIDE_SHAPES(F) F(1, 4) F(2, 4) F(3, 4) F(1, 8)
#define WHOLE(F) F(6, 2)
#endif

#define ALL_SHAPES(F) PANEL_SHAPES(F) WIDE_SHAPES(F)
#define SHAPES ALL_SHAPES

// Elements of the left operand. One pointer serves three rows, which saves registers for addresses.
#define LEFT_0 q0[0]
#define LEFT_1 q0[rs]
#define LEFT_2 q0[2 * rs]
#define LEFT_3 q1[0]
#define LEFT_4 q1[rs]
#define LEFT_5 q1[2 * rs]
#define LEFT_6 q2[0]
#define LEFT_7 q2[rs]
#define LEFT_8 q2[2 * rs]
#define LEFT_9 q3[0]
#define LEFT_10 q3[rs]
#define LEFT_11 q3[2 * rs]

// Sums begin with START(v), and BEGIN is executed before the first step.
#define START(v) CAT(T, zero)()
#define BEGIN
#define ZERO_1(r) V c##r##_0 = START(0);
#define ZERO_2(r) ZERO_1(r) V c##r##_1 = START(1);
#define ZERO_4(r) ZERO_2(r) V c##r##_2 = START(2), c##r##_3 = START(3);
#define ZERO_8(r) ZERO_4(r) V c##r##_4 = START(4), c##r##_5 = START(5), c##r##_6 = START(6), c##r##_7 = START(7);

// One step of the depth: a row of the right operand, whose last register is masked, and the step to
// the next row, for kernels with an LDB.
#define RIGHT(v) V b##v = CAT(T, load)(b + v * W);
#define RIGHT_MASKED(v) V b##v = whole ? CAT(T, load)(b + v * W) : CAT(T, loadm)(b + v * W, mask);
#define RIGHT_LAST(v) RIGHT_MASKED(v)
#define LDB int64_t
#define NEXT b += ldb;
#define RIGHT_1 RIGHT_LAST(0)
#define RIGHT_2 RIGHT(0) RIGHT_LAST(1)
#define RIGHT_4 RIGHT(0) RIGHT(1) RIGHT(2) RIGHT_LAST(3)
#define RIGHT_8 RIGHT(0) RIGHT(1) RIGHT(2) RIGHT(3) RIGHT(4) RIGHT(5) RIGHT(6) RIGHT_LAST(7)

#define ADD(r, v) c##r##_##v = CAT(T, STEP)(x, b##v, c##r##_##v);
#define ADD_1(r) { V x = CAT(T, set)(LEFT_##r); ADD(r, 0) }
#define ADD_2(r) { V x = CAT(T, set)(LEFT_##r); ADD(r, 0) ADD(r, 1) }
#define ADD_4(r) { V x = CAT(T, set)(LEFT_##r); ADD(r, 0) ADD(r, 1) ADD(r, 2) ADD(r, 3) }
#define ADD_8(r) { V x = CAT(T, set)(LEFT_##r); ADD(r, 0) ADD(r, 1) ADD(r, 2) ADD(r, 3) ADD(r, 4) ADD(r, 5) ADD(r, 6) ADD(r, 7) }

// alpha times the sums; with beta 0, C is not read.
#define OUT(r, v) CAT(T, out)(c + r * ldc + v * W, c##r##_##v, va, vb, beta != 0, W, mask, 1);
#define OUT_LAST(r, v) CAT(T, out)(c + r * ldc + v * W, c##r##_##v, va, vb, beta != 0, last, mask, whole);
#define OUT_1(r) OUT_LAST(r, 0)
#define OUT_2(r) OUT(r, 0) OUT_LAST(r, 1)
#define OUT_4(r) OUT(r, 0) OUT(r, 1) OUT(r, 2) OUT_LAST(r, 3)
#define OUT_8(r) OUT(r, 0) OUT(r, 1) OUT(r, 2) OUT(r, 3) OUT(r, 4) OUT(r, 5) OUT(r, 6) OUT_LAST(r, 7)

#define FETCH(r) __builtin_prefetch(c + r * ldc, 1), __builtin_prefetch(c + r * ldc + 2 * W - 1, 1);
