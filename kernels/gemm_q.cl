// Products of activations of 8 bits with weights of BITS bits, 8 (the usual ones) or 4, that have a scale for each block of 32.
//
// Activations: a block of 32 elements of a row has m, its largest |x| and 1e-5 at least, the bytes round(x·(127 / m)), halves to even, the scale
// m·(1/127) and the sum of its bytes. Rows of q are k bytes long, k being a multiple of 32; elements beyond cols are 0. A block with a NaN or
// an infinity has the scale NaN, and zeros.
//
// Weights: a weight is its code less 128, or less 8 for 4 bits. Sixteen rows are a panel, the last of which is whole even if n is not. Of each
// of its blocks a panel has BITS · 16 words: word 16·i + r belongs to row r. For 8 bits its bytes are the codes of elements 4·i to 4·i + 3 of
// the block, for 4 bits the low halves of its bytes are those, and the high halves are those of elements 16 later. by has 16 scales for each
// block of a panel.
//
// y[i][j] is the sum, over the blocks, of float(Σ code·q - 128·Σ q)·(by·scale), with 8 for 128. The integer is exact. cpu:0 and the
// reference add floats in the order of the blocks and round each operation; here LANES items add up every LANES-th block.
#include "activations.h"
#include "elem.h"
#include "group.h"

#ifndef BITS
#define BITS 8
#endif

// An item computes a block.
kernel void quantize_blocks(global const float *x, global char *q, global float *scales, global int *sums, uint rows, uint cols, uint k) {
  size_t i = get_global_id(0), blocks = k / 32;
  if (i >= rows * blocks)
    return;
  size_t from = i % blocks * 32, end = max(min(from + 32, (size_t)cols), from);
  x += i / blocks * cols;
  q += i * 32;
  uint m = as_uint(1e-5f); // the bits of magnitudes have their order
  for (size_t j = from; j < end; j++)
    m = max(m, as_uint(x[j]) & 0x7fffffffu);
  bool finite = m < 0x7f800000u;
  float most = as_float(m), s = finite ? scale_of(most) : 0;
  int sum = 0;
  for (size_t j = from; j < from + 32; j++) {
    int v = finite && j < end ? (int)rint(x[j] * s) : 0;
    q[j - from] = (char)v;
    sum += v;
  }
  scales[i] = finite ? most * (1.0f / 127.0f) : NAN;
  sums[i] = sum;
}

// A group computes DOWN results for each row of a panel.
#define PANEL 16
#define LANES (GROUP / PANEL)
#define DOWN 4
#define LESS (1 << (BITS - 1))

ROW_KERNEL void gemm_q(global const uint *q, global const float *scales, global const int *sums, global const uint *w, global const half *by,
                       global float *y, uint m, uint n, uint k) {
  local float parts[DOWN][LANES][PANEL];
  size_t i0 = get_group_id(1) * DOWN, panel = get_group_id(0);
  uint row = get_local_id(0) % PANEL, lane = get_local_id(0) / PANEL;
  size_t blocks = k / 32, end = i0 < m && panel * PANEL < n ? blocks : 0; // no return beyond the last row, for the reason given in softmax.cl
  float sum[DOWN];
#pragma unroll
  for (uint r = 0; r < DOWN; r++)
    sum[r] = 0;
  for (size_t b = lane; b < end; b += LANES) {
    size_t place = (panel * blocks + b) * PANEL;
    global const uint *from = w + place * BITS + row;
    int s[DOWN];
#pragma unroll
    for (uint r = 0; r < DOWN; r++)
      s[r] = -LESS * sums[min(i0 + r, (size_t)m - 1) * blocks + b];
#pragma unroll
    for (uint e = 0; e < BITS; e++) {
      uint codes = from[e * PANEL];
#pragma unroll
      for (uint r = 0; r < DOWN; r++) { // beyond the last row it is read again
        global const uint *x = q + min(i0 + r, (size_t)m - 1) * (k / 4) + b * 8 + e;
#if BITS == 8
        s[r] += dot_4x8packed_us_int(codes, x[0]);
#else
        s[r] += dot_4x8packed_us_int(codes & 0x0f0f0f0f, x[0]) + dot_4x8packed_us_int(codes >> 4 & 0x0f0f0f0f, x[4]);
#endif
      }
    }
    float scale = vload_half(place + row, by);
#pragma unroll
    for (uint r = 0; r < DOWN; r++)
      sum[r] += (float)s[r] * (scale * scales[min(i0 + r, (size_t)m - 1) * blocks + b]);
  }
#pragma unroll
  for (uint r = 0; r < DOWN; r++)
    parts[r][lane][row] = sum[r];
  barrier(CLK_LOCAL_MEM_FENCE);
  size_t j = panel * PANEL + row;
  for (size_t r = lane; r < DOWN && i0 + r < m && j < n; r += LANES) {
    float all = 0;
    for (uint e = 0; e < LANES; e++)
      all += parts[r][e][row];
    y[(i0 + r) * n + j] = all;
  }
}
