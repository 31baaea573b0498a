// Cross-correlation of n images of c channels with k filters, in NCHW layout:
//
//   y[b][o][i][j] = bias[o] + Σ x[b][g·c/groups + q][i·strideH + r·dilationH - padH]
//                                [j·strideW + s·dilationW - padW] · weight[o][q][r][s]
//
// summed over q < c/groups, r < filterH, s < filterW. g is the group of filter o, and elements of x
// in the padding are 0. With -D BIAS=0, the default, bias is not read. Strides, dilations and
// groups are at least 1, groups divides c and k. padH is the number of rows of zeros above the image; how many are
// below it follows from outH, the number of rows of y, which is an argument. With as many below, outH = (h + 2·padH -
// dilationH·(filterH - 1) - 1) / strideH + 1, or 0 if the dilated filter is larger than the padded image
// (kernels.ConvOut). Columns likewise. f16 and bf16 are summed in float. padH and i·strideH + r·dilationH are below 2^31, since places
// are computed modulo 2^32; cpu:0 computes them exactly.
//
// With -D SPREAD_H=s, from 1 to 1024, the rows of the image stand s apart, with rows of zeros between them (input dilation, as in
// a transposed convolution): h is the number of rows without zeros. SPREAD_W likewise. h·SPREAD_H is below 2^31.
//
// With -D NHWC=1 the channels are innermost: x[b][row][column][channel], y[b][i][j][o], and
// weight[o][r][s][q].
//
// With -D CNHW=1 images and channels have changed places, as the gradient of filters has them: x[q][g][b][row][column], weight[q][o][r][s] and
// y[o][b][i][j], where q is the channel of group g. The columns of a tile are elements of the output of all images.
//
// The tiles are those of gemm: a group of 8×8 items computes 64 filters × 64 elements of the
// output of one image, and reads DEPTH elements of each filter at a time.
#include "elem.h"

#define ITEMS 8
#define EACH 8
#define SPAN 64
#define DEPTH 16

#ifndef BIAS
#define BIAS 0
#endif

#ifndef NHWC
#define NHWC 0
#endif
#ifndef CNHW
#define CNHW 0
#endif
#ifndef SPREAD_H
#define SPREAD_H 1
#endif
#ifndef SPREAD_W
#define SPREAD_W 1
#endif

// Whether there is an element at a place of an image with zeros between its elements.
#define THERE(place, size, SPREAD) ((place) % SPREAD == 0 && (place) / SPREAD < (size))

#define VEC JOIN(ARITH, 8)

kernel __attribute__((reqd_work_group_size(ITEMS, ITEMS, 1))) void
conv2d(uint n, uint c, uint h, uint w, uint k, uint filterH, uint filterW, uint strideH, uint strideW,
       uint padH, uint padW, uint dilationH, uint dilationW, uint groups, uint outH, uint outW,
       global const TYPE *x, global const TYPE *weight, global const TYPE *bias, global TYPE *y) {
  local ARITH as[SPAN][DEPTH + 1]; // as[i][p] = weight[o0 + i][p0 + p]
  local ARITH bs[DEPTH][SPAN + 4]; // bs[p][j] = factor of element p0 + p of the filters for output j0 + j
  size_t lx = get_local_id(0), ly = get_local_id(1), item = ly * ITEMS + lx;
  size_t j0 = get_group_id(0) * SPAN, o0 = get_group_id(1) * SPAN, z = get_group_id(2);
  size_t outs = (size_t)outH * outW, filters = k / groups, channels = c / groups;
  size_t depth = outs == 0 ? 0 : channels * filterH * filterW;
  size_t p = item / 4, quarter = item % 4 * DEPTH;
#if CNHW
  size_t image = 0, group = z, places = (size_t)filterH * filterW, columns = n * outs;
  bool there = group < groups;
#else
  size_t image = z / groups, group = z % groups, columns = outs;
  bool there = image < n;
#endif
#if CNHW
  global const TYPE *in = x + (there ? group * n * h * w : 0);
#elif NHWC
  global const TYPE *in = x + (there ? image * c * h * w + group * channels : 0);
#else
  global const TYPE *in = x + (there ? (image * c + group * channels) * h * w : 0);
#endif
#if CNHW
  global const TYPE *rows = weight + (there ? group * filters * places : 0);
#else
  global const TYPE *rows = weight + group * filters * depth;
#endif

  VEC acc[EACH];
  for (uint r = 0; r < EACH; r++)
    acc[r] = (VEC)(0);
  for (size_t p0 = 0; p0 < depth; p0 += DEPTH) {
    for (uint e = 0; e < DEPTH; e++) {
#if CNHW
      size_t at = ((p0 + e) / places * k + o0 + item) * places + (p0 + e) % places;
#else
      size_t at = (o0 + item) * depth + p0 + e;
#endif
      as[item][e] = there && o0 + item < filters && p0 + e < depth ? LOAD(rows, at) : (ARITH)0;
    }
#if NHWC
    size_t q = (p0 + p) / channels, channel = (p0 + p) % channels;
    uint dh = (uint)(q / filterW) * dilationH, dw = (uint)(q % filterW) * dilationW;
#else
    size_t q = (p0 + p) / filterW, channel = q / filterH;
    uint dh = (uint)(q % filterH) * dilationH, dw = (uint)((p0 + p) % filterW) * dilationW;
#endif
    size_t first = (j0 + quarter) / outs;
    uint i = (uint)((j0 + quarter) % outs / outW), j = (uint)((j0 + quarter) % outW);
    for (uint e = 0; e < DEPTH; e++) {
      // A negative index wraps to a number beyond the image.
      uint row = i * strideH + dh - padH, col = j * strideW + dw - padW;
      bool inside = there && p0 + p < depth && j0 + quarter + e < columns && THERE(row, h, SPREAD_H) && THERE(col, w, SPREAD_W);
      row /= SPREAD_H;
      col /= SPREAD_W;
#if CNHW
      bs[p][quarter + e] = inside ? LOAD(in, ((channel * groups * n + first) * h + row) * w + col) : (ARITH)0;
#elif NHWC
      bs[p][quarter + e] = inside ? LOAD(in, ((size_t)row * w + col) * c + channel) : (ARITH)0;
#else
      bs[p][quarter + e] = inside ? LOAD(in, (channel * h + row) * w + col) : (ARITH)0;
#endif
      if (++j == outW) {
        j = 0;
        if (++i == outH && CNHW) {
          i = 0;
          first++;
        }
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint e = 0; e < DEPTH; e++) {
      VEC v = vload8(lx, &bs[e][0]);
#pragma unroll
      for (uint r = 0; r < EACH; r++)
        acc[r] = MAD((VEC)(as[ly * EACH + r][e]), v, acc[r]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }

#pragma unroll
  for (uint r = 0; r < EACH; r++) {
    ARITH row[EACH];
    vstore8(acc[r], 0, row);
    size_t o = o0 + ly * EACH + r;
    for (uint s = 0; s < EACH; s++) {
      size_t j = j0 + lx * EACH + s;
      if (there && o < filters && j < columns) {
        size_t filter = group * filters + o;
        ARITH sum = row[s];
#if BIAS
        sum += LOAD(bias, filter);
#endif
#if CNHW
        STORE(y, filter * columns + j, sum);
#elif NHWC
        STORE(y, (image * outs + j) * k + filter, sum);
#else
        STORE(y, (image * k + filter) * outs + j, sum);
#endif
      }
    }
  }
}
