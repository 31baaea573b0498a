// Products of activations of 8 bits with ternary weights of 2 bits.
//
// Activations: a row has the scale s = 127 / max(the largest |x|, 1e-5) and the elements round(x·s), halves to even. Rows of q are
// k bytes long, those beyond cols are 0. A row with a NaN or an infinity has the scale NaN, and zeros.
//
// Weights: codes 0, 1 and 2 are -1, 0 and +1. A row has k/16 words, k being a multiple of 256. Element e of each 256 has the bits
// 2·(e/64) of byte e mod 64, so that a word has four neighbours of each of four 64, in the order of the words of activations.
//
// y[i][j] = (Σ code·q - Σ q) / s[i] · by[j]. The integer is exact; -D OUT=i32 stores it.
#include "activations.h"
#include "elem.h"
#include "group.h"

ROW_KERNEL void quantize_rows(global const float *x, global char *q, global float *scales, global int *sums, uint rows, uint cols, uint k) {
  local uint most[GROUP];
  local int total[GROUP];
  size_t row = get_group_id(0);
  size_t l = get_local_id(0);
  bool there = row < rows; // no return beyond the last row, for the reason given in group.h
  if (!there)
    row = cols = k = 0;
  x += row * cols;
  q += row * k;
  uint m = as_uint(1e-5f); // the bits of magnitudes have their order
  for (size_t j = l; j < cols; j += GROUP)
    m = max(m, as_uint(x[j]) & 0x7fffffffu);
  GROUP_TREE(most, l, m, max)
  m = most[0];
  float s = m < 0x7f800000u ? scale_of(as_float(m)) : NAN;
  int sum = 0;
  for (size_t j = l; j < k; j += GROUP) {
    int v = j < cols && m < 0x7f800000u ? (int)clamp(rint(x[j] * s), -128.0f, 127.0f) : 0;
    q[j] = (char)v;
    sum += v;
  }
  GROUP_TREE(total, l, sum, PLUS)
  if (there && l == 0) {
    scales[row] = s;
    sums[row] = total[0];
  }
}

// A group computes a tile of DOWN × ACROSS results: each row of weights is read by LANES items, 16 bytes each.
#define LANES 8
#define ACROSS (GROUP / LANES)
#define DOWN 4
#ifdef OUT
#define RESULT int
#else
#define RESULT float
#endif

ROW_KERNEL void w2a8(global const uint *q, global const float *scales, global const int *sums, global const uint *w, global const float *by,
                     global RESULT *y, uint m, uint n, uint k) {
  local int parts[DOWN][ACROSS][LANES + 1];
  size_t i0 = get_group_id(1) * DOWN, j0 = get_group_id(0) * ACROSS;
  uint l = get_local_id(0), lane = l % LANES, across = l / LANES;
  int sum[DOWN];
#pragma unroll
  for (uint r = 0; r < DOWN; r++)
    sum[r] = 0;
  size_t words = i0 < m && j0 < n ? k / 16 : 0;
  w += min(j0 + across, (size_t)n - 1) * words; // beyond the last row it is read again
  for (size_t at = lane * 4; at < words; at += LANES * 4) {
    uint4 bits = vload4(0, w + at);
#pragma unroll
    for (uint e = 0; e < 4; e++) {
      uint4 codes = bits >> (uint4)(2 * e) & (uint4)(0x03030303);
      size_t from = at / 16 * 64 + e * 16 + at % 16; // the words of activations that belong to them
#pragma unroll
      for (uint r = 0; r < DOWN; r++) {
        uint4 x = vload4(0, q + min(i0 + r, (size_t)m - 1) * (k / 4) + from);
        sum[r] += dot_4x8packed_ss_int(codes.x, x.x); // one by one: devices have an instruction for that
        sum[r] += dot_4x8packed_ss_int(codes.y, x.y);
        sum[r] += dot_4x8packed_ss_int(codes.z, x.z);
        sum[r] += dot_4x8packed_ss_int(codes.w, x.w);
      }
    }
  }
#pragma unroll
  for (uint r = 0; r < DOWN; r++)
    parts[r][across][lane] = sum[r];
  barrier(CLK_LOCAL_MEM_FENCE);
  size_t i = i0 + l / ACROSS, j = j0 + l % ACROSS;
  if (l < DOWN * ACROSS && i < m && j < n) {
    int all = -sums[i];
    for (uint e = 0; e < LANES; e++)
      all += parts[l / ACROSS][l % ACROSS][e];
#ifdef OUT
    y[i * n + j] = all;
#else
    y[i * n + j] = (float)all / scales[i] * by[j];
#endif
  }
}
