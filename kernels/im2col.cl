// The matrix of patches with which a convolution becomes a matrix product, for n images of c
// channels in NCHW layout: for each image a matrix of c·filterH·filterW rows and outH·outW columns,
//
//   columns[b][(q·filterH + r)·filterW + s][i·outW + j] =
//       x[b][q][i·strideH + r·dilationH - padH][j·strideW + s·dilationW - padW]
//
// with 0 for elements of x in the padding. Sizes are as in conv2d. Values are copied bit for bit.
#include "elem.h"

kernel void im2col(uint n, uint c, uint h, uint w, uint filterH, uint filterW, uint strideH, uint strideW,
                   uint padH, uint padW, uint dilationH, uint dilationW, uint outH, uint outW,
                   global const TYPE *x, global TYPE *columns) {
  size_t at = get_global_id(0), outs = (size_t)outH * outW, depth = (size_t)c * filterH * filterW;
  if (at >= n * depth * outs)
    return;
  uint i = (uint)(at % outs / outW), j = (uint)(at % outs % outW);
  size_t p = at / outs % depth, image = at / outs / depth, q = p / filterW;
  // A negative index wraps to a number beyond the image.
  uint row = i * strideH + (uint)(q % filterH) * dilationH - padH;
  uint col = j * strideW + (uint)(p % filterW) * dilationW - padW;
  bool inside = row < h && col < w;
  RAW v = 0;
  if (inside)
    v = ((global const RAW *)x)[((image * c + q / filterH) * h + row) * w + col];
  ((global RAW *)columns)[at] = v;
}
