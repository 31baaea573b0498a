// The body of the kernels of gemm.cl, included once for each with these defined: NAME,
// MORE (parameters behind gemm's), COUNT (how many matrices there are), STRIDE(x) (x, or 0
// where there is one) and FINISH(x, j), what is stored of a result in column j.
kernel __attribute__((reqd_work_group_size(ITEMS, ITEMS, 1))) void
NAME(uint m, uint n, uint k, SCALAR alpha, global const TYPE *a, uint lda, global const TYPE *b,
     uint ldb, SCALAR beta, global TYPE *c, uint ldc MORE) {
  local ARITH as[SPAN][DEPTH + 1]; // as[i][p] = op(A)[i0 + i][p0 + p]
  local ARITH bs[DEPTH][SPAN + 4]; // bs[p][j] = op(B)[p0 + p][j0 + j]
  size_t lx = get_local_id(0), ly = get_local_id(1);
  size_t j0 = get_group_id(0) * SPAN, i0 = get_group_id(1) * SPAN;
  // Groups behind the last matrix compute nothing.
  size_t z = get_group_id(2), rows = z < COUNT ? m : 0, depth = z < COUNT && alpha != 0 ? k : 0;
  global const TYPE *left = a + z * STRIDE(strideA), *right = b + z * STRIDE(strideB);
  global TYPE *out = c + z * STRIDE(strideC);
  // What an item brings: row `item` of 64 rows of DEPTH, or a quarter of one of DEPTH
  // rows of 64.
  size_t item = ly * ITEMS + lx;
  size_t p = item / 4, quarter = item % 4 * DEPTH;

  VEC acc[EACH];
  for (uint r = 0; r < EACH; r++)
    acc[r] = (VEC)(0);

  for (size_t p0 = 0; p0 < depth; p0 += DEPTH) {
    ARITH part[DEPTH];
#if TRANS_A
    read_part(part, left, lda, p0 + p, k, i0 + quarter, m);
    for (uint e = 0; e < DEPTH; e++)
      as[quarter + e][p] = part[e];
#else
    read_part(part, left, lda, i0 + item, m, p0, k);
    for (uint e = 0; e < DEPTH; e++)
      as[item][e] = part[e];
#endif
#if TRANS_B
    read_part(part, right, ldb, j0 + item, n, p0, k);
    for (uint e = 0; e < DEPTH; e++)
      bs[e][item] = part[e];
#else
    read_part(part, right, ldb, p0 + p, k, j0 + quarter, n);
    for (uint e = 0; e < DEPTH; e++)
      bs[p][quarter + e] = part[e];
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint e = 0; e < DEPTH; e++) {
      VEC y = vload8(lx, &bs[e][0]);
#pragma unroll
      for (uint r = 0; r < EACH; r++)
        acc[r] = MAD((VEC)(as[ly * EACH + r][e]), y, acc[r]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }

#pragma unroll
  for (uint r = 0; r < EACH; r++) {
    ARITH row[EACH];
    vstore8(acc[r], 0, row);
    size_t i = i0 + ly * EACH + r;
    for (uint s = 0; s < EACH; s++) {
      size_t j = j0 + lx * EACH + s;
      if (i < rows && j < n) {
        ARITH x = alpha * row[s];
        if (beta != 0)
          x = MAD(beta, LOAD(out, i * ldc + j), x);
        STORE(out, i * ldc + j, FINISH(x, j));
      }
    }
  }
}
