// Products of activations of 8 bits with weights of BITS bits: 8 (the usual ones), 4, 5 or 6. FACTORS says how weights are scaled: with 0 a block of 32
// has a scale of its own. Else 256 weights have one and each block has factors: with 1 a factor of the scale and one of a least number (ggml's Q4_K), with
// 2 a factor for each half (Q6_K).
//
// Activations: a block of 32 elements of a row has m, its largest |x| and 1e-5 at least, the bytes round(x·(127 / m)), halves to even, the scale
// m·(1/127) and the sums of the bytes of its halves. Rows of q are k bytes long, k being a multiple of 32; elements beyond cols are 0. A block with
// a NaN or an infinity has the scale NaN, and zeros.
//
// Weights: a weight is its code less 2^(BITS - 1), or its code with FACTORS=1. Sixteen rows are a panel, the last of which is whole even if n is not. Of
// each of its blocks a panel has BITS · 16 words: word 16·i + r belongs to row r. For 8 bits the bytes of word i are the codes of elements 4·i to 4·i + 3 of
// the block. For fewer bits the low halves of the bytes of words 0 to 3 are the low four bits of those, and the high halves are those of elements 16 later.
// The H = BITS - 4 high bits of elements 4·j to 4·j + 3 are in the bytes of word 4 + j·H / 8, from bit j·H mod 8 on.
//
// by has 16 scales for each block of a panel, as the bits of halves. With factors, when k is a multiple of 256, it has 160 numbers of 16 bits for each
// eight blocks: 16 scales, 16 numbers for least ones (unused with FACTORS=2), and for each block 16 bytes and 16 bytes: factors of the scales and of the
// least ones or, with FACTORS=2, factors of both halves, with a sign.
//
// y[i][j] is the sum, over the blocks, of float(s)·(by·scale), where s = Σ code·q - 2^(BITS - 1)·Σ q is exact. With FACTORS=2 s is the sum of that of both
// halves times their factors. With FACTORS=1 it is the sum of (float(s)·(by·factor) - float(Σ q)·(least·factor))·scale, where s = Σ code·q.
// cpu:0 and the reference add floats in the order of the blocks and round each operation; here LANES items add up every LANES-th block.
#include "activations.h"
#include "elem.h"
#include "group.h"

#ifndef BITS
#define BITS 8
#endif
#ifndef FACTORS
#define FACTORS 0
#endif
#if FACTORS && BITS == 8
#error "FACTORS needs 4 to 6 BITS"
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
  for (uint h = 0; h < 2; h++) {
    int sum = 0;
    for (size_t j = from + 16 * h; j < from + 16 * h + 16; j++) {
      int v = finite && j < end ? (int)rint(x[j] * s) : 0;
      q[j - from] = (char)v;
      sum += v;
    }
    sums[2 * i + h] = sum;
  }
  scales[i] = finite ? most * (1.0f / 127.0f) : NAN;
}

// A group computes DOWN results for each row of a panel.
#define PANEL 16
#define LANES (GROUP / PANEL)
#define DOWN 4
#define HALF (1 << (BITS - 1))
#define LESS (FACTORS == 1 || BITS == 8 ? 0 : HALF) // for 8 bits, codes less 128 are bytes
#define HIGH (BITS - 4)
// The high bits of codes whose low bits word e has, in the low halves of bytes (h = 0) or in the high ones.
#define ABOVE(e, h) ((from[(4 + ((e) + 4 * (h)) * HIGH / 8) * PANEL] >> ((e) + 4 * (h)) * HIGH % 8 & 0x01010101u * ((1 << HIGH) - 1)) << 4)
#define ACTIVATIONS(r) (min(i0 + r, (size_t)m - 1) * blocks + b) // beyond the last row it is read again

ROW_KERNEL void gemm_q(global const uint *q, global const float *scales, global const int *sums, global const uint *w, global const ushort *by,
                       global float *y, uint m, uint n, uint k) {
  local float parts[DOWN][LANES][PANEL];
  size_t i0 = get_group_id(1) * DOWN, panel = get_group_id(0);
  uint row = get_local_id(0) % PANEL, lane = get_local_id(0) / PANEL;
  size_t blocks = k / 32, end = i0 < m && panel * PANEL < n ? blocks : 0; // no return beyond the last row, for the reason given in group.h
  float sum[DOWN];
#pragma unroll
  for (uint r = 0; r < DOWN; r++)
    sum[r] = 0;
  for (size_t b = lane; b < end; b += LANES) {
    size_t place = (panel * blocks + b) * PANEL;
    global const uint *from = w + place * BITS + row;
    int s[DOWN], high[DOWN];
#pragma unroll
    for (uint r = 0; r < DOWN; r++) {
      global const int *both = sums + 2 * ACTIVATIONS(r);
      s[r] = -LESS * (FACTORS == 2 ? both[0] : both[0] + both[1]);
      high[r] = -LESS * both[1];
    }
#pragma unroll
    for (uint e = 0; e < (BITS == 8 ? 8 : 4); e++) {
      uint codes = from[e * PANEL], far = codes >> 4 & 0x0f0f0f0f;
#if BITS == 8
      codes ^= 0x80808080;
#else
      codes &= 0x0f0f0f0f;
#if HIGH
      codes |= ABOVE(e, 0);
      far |= ABOVE(e, 1);
#endif
#endif
#pragma unroll
      for (uint r = 0; r < DOWN; r++) {
        global const uint *x = q + ACTIVATIONS(r) * 8 + e;
        s[r] += dot_4x8packed_ss_int(codes, x[0]);
#if FACTORS == 2
        high[r] += dot_4x8packed_ss_int(far, x[4]);
#elif BITS != 8
        s[r] += dot_4x8packed_ss_int(far, x[4]);
#endif
      }
    }
#if FACTORS
    size_t whole = (panel * blocks + b / 8 * 8) / 8 * (10 * PANEL);
    float scale = vload_half(whole + row, (global const half *)by);
#if FACTORS == 2
    global const char *part = (global const char *)by + 2 * (whole + (2 + b % 8) * PANEL) + row;
#pragma unroll
    for (uint r = 0; r < DOWN; r++)
      sum[r] += (float)(s[r] * part[0] + high[r] * part[PANEL]) * (scale * scales[ACTIVATIONS(r)]);
#else
    global const uchar *part = (global const uchar *)by + 2 * (whole + (2 + b % 8) * PANEL) + row;
    float step = scale * part[0], least = vload_half(whole + PANEL + row, (global const half *)by) * part[PANEL];
#pragma unroll
    for (uint r = 0; r < DOWN; r++) {
      global const int *both = sums + 2 * ACTIVATIONS(r);
      sum[r] += ((float)s[r] * step - (float)(both[0] + both[1]) * least) * scales[ACTIVATIONS(r)];
    }
#endif
#else
    float scale = vload_half(place + row, (global const half *)by);
#pragma unroll
    for (uint r = 0; r < DOWN; r++)
      sum[r] += (float)s[r] * (scale * scales[ACTIVATIONS(r)]);
#endif
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
