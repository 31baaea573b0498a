// The body of gemm.cl, gemm_batch.cl and gemm_bias.cl. Before they include it, they define NAME,
// MORE (parameters after those of gemm), COUNT (the number of matrices), STRIDE(x) (x, or 0 if
// there is one matrix) and FINISH(x, j), the number to store for a result x in column j. They are
// separate programs, so that a program that needs one of them does not wait for the compilation of
// three.
//
// op(A) is m×k, op(B) k×n, C m×n, all row-major with leading dimensions lda, ldb, ldc
// (elements from one row to the next). -D TRANS_A=1: A is stored k×m and op transposes it;
// -D TRANS_B=1: B is stored n×k. With beta 0, C is not read; with alpha 0, A and B are not.
// f16 and bf16 are summed in float and rounded once; -D OUT=f32 makes C, and a bias, float. With T=f32, -D TYPE_A and
// -D TYPE_B are the types in which A and B are stored if those are f16 or bf16. Integers wrap.
//
// A group of 8×8 items computes a 64×64 tile of C, each item 8×8 elements of it in registers, unless ITEMS, EACH, WIDE
// and DEPTH say otherwise. DEPTH columns of op(A) and rows of op(B) at a time are kept in local memory. 8 elements of a
// row of C form one vector, which makes the kernel fast on a CPU and costs nothing on a GPU.
#include "gemm_shape.h"
#include "out.h"

#ifndef TYPE_A
#define TYPE_A T
#elif !JOIN(is_f32_, T)
#error TYPE_A is for T=f32
#endif
#ifndef TYPE_B
#define TYPE_B T
#elif !JOIN(is_f32_, T)
#error TYPE_B is for T=f32
#endif

#define VEC JOIN(ARITH, WIDE)

#if FLOATING
#define TIMES_PLUS(a, b, c) MAD(a, b, c)
#else
#define TIMES_PLUS(a, b, c) ((a) * (b) + (c))
#endif

// Matrices are read PART elements of a row at a time. COUNT_PARTS is how many of them an item reads of a tile of so many.
#define PART 16
#define COUNT_PARTS(total) (((total) + ITEMS * ITEMS - 1) / (ITEMS * ITEMS))

// Defines the function that reads elements col to col + PART - 1 of a row of a matrix of S into the array part;
// 0 beyond the matrix. The loop at the edge stays one, since 16 copies of it take registers that the tile needs.
#define READ_PART(NAME, S)                                                                         \
  void NAME(ARITH *part, global const JOIN(type_, S) *x, size_t ld, size_t row, size_t rows,       \
            size_t col, size_t cols) {                                                             \
    x += row * ld + col;                                                                           \
    if (row < rows && col + PART <= cols) {                                                       \
      vstore16(JOIN(load16_, S)(x, 0), 0, part);                                                   \
      return;                                                                                      \
    }                                                                                              \
    _Pragma("unroll 1") for (uint e = 0; e < PART; e++)                                           \
      part[e] = row < rows && col + e < cols ? JOIN(load_, S)(x, e) : (ARITH)0;                    \
  }
READ_PART(read_a, TYPE_A)
READ_PART(read_b, TYPE_B)

kernel __attribute__((reqd_work_group_size(ITEMS, ITEMS, 1))) void
NAME(uint m, uint n, uint k, SCALAR alpha, global const JOIN(type_, TYPE_A) *a, uint lda, global const JOIN(type_, TYPE_B) *b,
     uint ldb, SCALAR beta, global OUT_TYPE *c, uint ldc MORE) {
  local ARITH as[HIGH][DEPTH + 1]; // as[i][p] = op(A)[i0 + i][p0 + p]
  local ARITH bs[DEPTH][SPAN + PAD]; // bs[p][j] = op(B)[p0 + p][j0 + j]
  size_t lx = get_local_id(0), ly = get_local_id(1);
  size_t j0 = get_group_id(0) * SPAN, i0 = get_group_id(1) * HIGH;
  // Groups beyond the last matrix compute nothing.
  size_t z = get_group_id(2), rows = z < COUNT ? m : 0, depth = z < COUNT && alpha != 0 ? k : 0;
  global const JOIN(type_, TYPE_A) *left = a + z * STRIDE(strideA);
  global const JOIN(type_, TYPE_B) *right = b + z * STRIDE(strideB);
  global OUT_TYPE *out = c + z * STRIDE(strideC);
  size_t item = ly * ITEMS + lx;

  VEC acc[EACH];
  for (uint r = 0; r < EACH; r++)
    acc[r] = (VEC)(0);

  for (size_t p0 = 0; p0 < depth; p0 += DEPTH) {
    ARITH part[PART];
    // With the default tile each item reads one part of either matrix.
#pragma unroll
    for (uint r = 0; r < COUNT_PARTS(HIGH * DEPTH / PART); r++) {
      size_t q = item + r * (ITEMS * ITEMS);
      if (HIGH * DEPTH / PART % (ITEMS * ITEMS) != 0 && q >= HIGH * DEPTH / PART)
        break;
#if TRANS_A
      size_t p = q / (HIGH / PART), i = q % (HIGH / PART) * PART;
      read_a(part, left, lda, p0 + p, k, i0 + i, m);
      for (uint e = 0; e < PART; e++)
        as[i + e][p] = part[e];
#else
      size_t i = q / (DEPTH / PART), p = q % (DEPTH / PART) * PART;
      read_a(part, left, lda, i0 + i, m, p0 + p, k);
      for (uint e = 0; e < PART; e++)
        as[i][p + e] = part[e];
#endif
    }
#pragma unroll
    for (uint r = 0; r < COUNT_PARTS(SPAN * DEPTH / PART); r++) {
      size_t q = item + r * (ITEMS * ITEMS);
      if (SPAN * DEPTH / PART % (ITEMS * ITEMS) != 0 && q >= SPAN * DEPTH / PART)
        break;
#if TRANS_B
      size_t j = q / (DEPTH / PART), p = q % (DEPTH / PART) * PART;
      read_b(part, right, ldb, j0 + j, n, p0 + p, k);
      for (uint e = 0; e < PART; e++)
        bs[p + e][j] = part[e];
#else
      size_t p = q / (SPAN / PART), j = q % (SPAN / PART) * PART;
      read_b(part, right, ldb, p0 + p, k, j0 + j, n);
      for (uint e = 0; e < PART; e++)
        bs[p][j + e] = part[e];
#endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint e = 0; e < DEPTH; e++) {
      VEC y = JOIN(vload, WIDE)(lx, &bs[e][0]);
#pragma unroll
      for (uint r = 0; r < EACH; r++)
        acc[r] = TIMES_PLUS((VEC)(as[ly * EACH + r][e]), y, acc[r]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }

#pragma unroll
  for (uint r = 0; r < EACH; r++) {
    ARITH row[WIDE];
    JOIN(vstore, WIDE)(acc[r], 0, row);
    size_t i = i0 + ly * EACH + r;
    for (uint s = 0; s < WIDE; s++) {
      size_t j = j0 + lx * WIDE + s;
      if (i < rows && j < n) {
        ARITH x = alpha * row[s];
        if (beta != 0)
          x = TIMES_PLUS(beta, LOAD_OUT(out, i * ldc + j), x);
        STORE_OUT(out, i * ldc + j, FINISH(x, j));
      }
    }
  }
}
