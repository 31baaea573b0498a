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
// Whether a kernel has a form of its own for whole registers, without masks.
#define SPLIT 1

// Narrow tiles hold the row of the right operand and one element of the left one at a time, wide
// tiles the column of the left operand and one register of the right one.
#define LEFT(r) V x##r = CAT(T, set)(LEFT_##r);
#define ADD(r, v) c##r##_##v = CAT(T, STEP)(x##r, b##v, c##r##_##v);
#define ADD_1(r) { LEFT(r) ADD(r, 0) }
#define ADD_2(r) { LEFT(r) ADD(r, 0) ADD(r, 1) }
#define STEP_1(R) RIGHT_LAST(0) ROWS_##R(ADD_1)
#define STEP_2(R) RIGHT(0) RIGHT_LAST(1) ROWS_##R(ADD_2)
#define COLUMN_0(r) ADD(r, 0)
#define COLUMN_1(r) ADD(r, 1)
#define COLUMN_2(r) ADD(r, 2)
#define COLUMN_3(r) ADD(r, 3)
#define COLUMN_4(r) ADD(r, 4)
#define COLUMN_5(r) ADD(r, 5)
#define COLUMN_6(r) ADD(r, 6)
#define COLUMN_7(r) ADD(r, 7)
#define COLUMN(R, v) { RIGHT(v) ROWS_##R(COLUMN_##v) }
#define COLUMN_LAST(R, v) { RIGHT_LAST(v) ROWS_##R(COLUMN_##v) }
#define STEP_4(R) ROWS_##R(LEFT) COLUMN(R, 0) COLUMN(R, 1) COLUMN(R, 2) COLUMN_LAST(R, 3)
#define STEP_8(R)                                                                                  \
  ROWS_##R(LEFT) COLUMN(R, 0) COLUMN(R, 1) COLUMN(R, 2) COLUMN(R, 3) COLUMN(R, 4) COLUMN(R, 5) COLUMN(R, 6) COLUMN_LAST(R, 7)

// Keeps variables in memory where compilers would hold them in registers that the sums need.
#if GEMM_ROWS == 6
#define IN_MEMORY(x) __asm__("" : "+m"(x));
#else
#define IN_MEMORY(x)
#endif

// alpha times the sums; with beta 0, C is not read.
#define OUT(r, v) CAT(T, out)(c + r * ldc + v * W, c##r##_##v, va, vb, scales[1] != 0, W, mask, 1);
#define OUT_LAST(r, v) CAT(T, out)(c + r * ldc + v * W, c##r##_##v, va, vb, scales[1] != 0, last, mask, whole);
#define OUT_1(r) OUT_LAST(r, 0)
#define OUT_2(r) OUT(r, 0) OUT_LAST(r, 1)
#define OUT_4(r) OUT(r, 0) OUT(r, 1) OUT(r, 2) OUT_LAST(r, 3)
#define OUT_8(r) OUT(r, 0) OUT(r, 1) OUT(r, 2) OUT(r, 3) OUT(r, 4) OUT(r, 5) OUT(r, 6) OUT_LAST(r, 7)

// Fetches a line of a packed panel. On NEON that was not measured.
#if defined(__x86_64__)
#define FETCH_PANEL(at) __builtin_prefetch(at);
#else
#define FETCH_PANEL(at) (void)0;
#endif

// Fetches a row of C.
#define FETCH(r) __builtin_prefetch(c + r * ldc, 1), __builtin_prefetch(c + r * ldc + 2 * W - 1, 1);
