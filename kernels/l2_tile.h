// The body of the L2 kernels, included once per element type with these defined: NAME, STORED (the
// type of the buffers' elements), READ(p, i) (element i), READ16(p, i) (16 elements from i on),
// NUMBER (the type for arithmetic), VEC (a vector of 8 of them), SQUARE_AND_ADD(x, sum), and EXACT
// for integers.
//
// A group of 8×8 items computes the distances of 64 queries × 64 vectors, each item 8×8 of them in
// registers. DEPTH components at a time are kept in local memory, transposed, so that the same
// component of 8 neighbouring vectors is one OpenCL vector. Components beyond dim
// are 0 on both sides and so add nothing.

kernel __attribute__((reqd_work_group_size(ITEMS, ITEMS, 1))) void
NAME(global const STORED *queries, global const STORED *vectors, global float *out, uint nQueries,
     uint nVectors, uint dim) {
  local NUMBER qs[SPAN][DEPTH + 1]; // qs[i][d] = queries[q0 + i][d0 + d]
  local NUMBER vs[DEPTH][SPAN + 4]; // vs[d][j] = vectors[v0 + j][d0 + d]
  size_t lx = get_local_id(0), ly = get_local_id(1);
  size_t v0 = get_group_id(0) * SPAN, q0 = get_group_id(1) * SPAN;
  size_t item = ly * ITEMS + lx;

  VEC acc[EACH];
  for (uint r = 0; r < EACH; r++)
    acc[r] = (VEC)(0);
#ifdef EXACT
  // The sum of 32768 squares of up to 255² fits in 32 bits; after so many components, it is
  // added to a sum of 64 bits.
  ulong8 total[EACH];
  for (uint r = 0; r < EACH; r++)
    total[r] = (ulong8)(0);
#endif

  for (size_t d0 = 0; d0 < dim; d0 += DEPTH) {
    // Item i loads row i of the queries and of the vectors.
    NUMBER part[DEPTH];
    READ_ROW(part, queries, q0 + item, nQueries)
    for (uint d = 0; d < DEPTH; d++)
      qs[item][d] = part[d];
    READ_ROW(part, vectors, v0 + item, nVectors)
    for (uint d = 0; d < DEPTH; d++)
      vs[d][item] = part[d];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint d = 0; d < DEPTH; d++) {
      VEC y = vload8(lx, &vs[d][0]);
#pragma unroll
      for (uint r = 0; r < EACH; r++) {
        VEC x = (VEC)(qs[ly * EACH + r][d]) - y;
        acc[r] = SQUARE_AND_ADD(x, acc[r]);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#ifdef EXACT
    if ((d0 + DEPTH) % 32768 == 0)
      for (uint r = 0; r < EACH; r++) {
        total[r] += convert_ulong8(acc[r]);
        acc[r] = (VEC)(0);
      }
#endif
  }

#pragma unroll
  for (uint r = 0; r < EACH; r++) {
    float row[EACH];
#ifdef EXACT
    vstore8(convert_float8(total[r] + convert_ulong8(acc[r])) / 16129.0f, 0, row);
#else
    vstore8(acc[r], 0, row);
#endif
    size_t q = q0 + ly * EACH + r;
    for (uint s = 0; s < EACH; s++) {
      size_t v = v0 + lx * EACH + s;
      if (q < nQueries && v < nVectors)
        out[q * nVectors + v] = row[s];
    }
  }
}
