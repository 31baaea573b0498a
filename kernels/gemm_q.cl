// Products of activations of 8 bits with weights of BITS bits, 8 (the usual ones), 4 or 6. A block of 32 weights has a scale of its own or, with K=1,
// which 6 bits imply, 256 weights have one, and their blocks have smaller ones: ggml's Q4_K and Q6_K.
//
// Activations: a block of 32 elements of a row has m, its largest |x| and 1e-5 at least, the bytes round(x·(127 / m)), halves to even, the scale
// m·(1/127) and the sums of the bytes of its halves. Rows of q are k bytes long, k being a multiple of 32; elements beyond cols are 0. A block with
// a NaN or an infinity has the scale NaN, and zeros.
//
// Weights: a weight is its code less 128, 8 or 32 for 8, 4 and 6 bits, and its code for 4 bits with K=1. Sixteen rows are a panel, the last of which
// is whole even if n is not. Of each of its blocks a panel has BITS · 16 words: word 16·i + r belongs to row r. For 8 bits its bytes are the codes of
// elements 4·i to 4·i + 3 of the block. For 4 bits the low halves of its bytes are those, and the high halves are those of elements 16 later. For 6
// bits words 0 to 3 have four low bits in that way, and bits 2·i and 2·i + 1 of byte e of word 4 + h the high ones of element 16·h + 4·i + e.
//
// by has 16 scales for each block of a panel, as the bits of halves. With K=1, when k is a multiple of 256, it has 160 numbers of 16 bits for each eight blocks: 16 scales, 16
// numbers for least ones (for 6 bits unused), and for each block 16 bytes and 16 bytes: factors of the scales and of the least ones or, for 6
// bits, factors of both halves, with a sign.
//
// y[i][j] is the sum, over the blocks, of float(s)·(by·scale), where s = Σ code·q - 128·Σ q is exact, with 8 for 128. For 6 bits s is the sum of both
// halves' Σ code·q - 32·Σ q times their factors. For 4 bits with K=1 it is the sum of (float(s)·(by·factor) - float(Σ q)·(least·factor))·scale.
// cpu:0 and the reference add floats in the order of the blocks and round each operation; here LANES items add up every LANES-th block.
#include "activations.h"
#include "elem.h"
#include "group.h"

#ifndef BITS
#define BITS 8
#endif
#if BITS == 6
#undef K
#define K 1
#endif
#ifndef K
#define K 0
#endif
#if K
#if BITS == 8
#error "K=1 needs BITS=4 or BITS=6"
#endif
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
#define LESS (BITS == 4 && !K ? 8 : 0) // for 8 bits, codes less 128 are bytes
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
      s[r] = BITS == 6 ? -32 * both[0] : -LESS * (both[0] + both[1]);
      high[r] = -32 * both[1];
    }
#pragma unroll
    for (uint e = 0; e < (BITS == 8 ? 8 : 4); e++) {
      uint codes = from[e * PANEL], far = codes >> 4 & 0x0f0f0f0f;
#if BITS == 6
      far |= (from[5 * PANEL] >> 2 * e & 0x03030303) << 4;
      codes = (codes & 0x0f0f0f0f) | (from[4 * PANEL] >> 2 * e & 0x03030303) << 4;
#elif BITS == 4
      codes &= 0x0f0f0f0f;
#else
      codes ^= 0x80808080;
#endif
#pragma unroll
      for (uint r = 0; r < DOWN; r++) {
        global const uint *x = q + ACTIVATIONS(r) * 8 + e;
        s[r] += dot_4x8packed_ss_int(codes, x[0]);
#if BITS == 6
        high[r] += dot_4x8packed_ss_int(far, x[4]);
#elif BITS == 4
        s[r] += dot_4x8packed_ss_int(far, x[4]);
#endif
      }
    }
#if K
    size_t whole = (panel * blocks + b / 8 * 8) / 8 * (10 * PANEL);
    float scale = vload_half(whole + row, (global const half *)by);
#if BITS == 6
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
