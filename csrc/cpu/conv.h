// Convolution as a product: weights, packed as rows of A are, with the columns of
// im2col, which are never stored whole. A column is one element of the output; its
// rows are (channel, row, column) of the filter, and one of ones for the bias. Some
// columns at a time are gathered straight into the panels that gemm's kernels read.
#ifndef CONCORD_CONV_H
#define CONCORD_CONV_H

// What a call is about, as its words have it.
typedef struct {
  int64_t channels, height, width, rows, cols;                             // of one group, and of the filter
  int64_t stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, across; // across: width of the output
} conv_shape;

// A run of neighbours in one row of the output, n of them from place at of a strip on.
typedef struct {
  int64_t at, n, row, col; // row and col: where the filter's first element falls
  const void *from;        // that row of the input, for the row of the filter at hand
  int where;
} conv_run;

// Where a run's row is: beside the image, at an end of memory (or not of neighbours),
// or where whole registers may be read.
enum { CONV_BESIDE, CONV_END, CONV_WHOLE };

// conv_runs cuts columns j to j + n into runs.
IN int conv_runs(const conv_shape *s, int64_t j, int64_t n, conv_run *run) {
  int count = 0;
  for (int64_t at = 0; at < n; count++) {
    int64_t oh = (j + at) / s->across, ow = (j + at) % s->across, most = s->across - ow;
    conv_run r = {at, n - at < most ? n - at : most, oh * s->stride_h - s->pad_h, ow * s->stride_w - s->pad_w, NULL, CONV_BESIDE};
    run[count] = r;
    at += r.n;
  }
  return count;
}

#endif

#define V CAT(T, v)
#define W CAT(T, W)

// conv_place looks up a run's row of the input for row r of the filter in channel c.
// Memory may be read from low to high.
IN void CAT(T, conv_place)(const conv_shape *s, const E *x, const E *low, const E *high, int64_t c, int64_t r, conv_run *run) {
  int64_t row = run->row + r * s->dilation_h, last = run->col + (s->cols - 1) * s->dilation_w;
  if ((uint64_t)row >= (uint64_t)s->height) {
    run->where = CONV_BESIDE;
    return;
  }
  const E *from = x + (c * s->height + row) * s->width;
  int64_t length = (run->n + W - 1) / W * W;
  int safe = run->col >= low - from && high - from - last >= length;
  run->from = from;
  run->where = s->stride_w == 1 && safe ? CONV_WHOLE : CONV_END;
}

// n elements from place col of a row on, 0 beside the row.
IN void CAT(T, conv_each)(const E *row, int64_t col, int64_t n, int64_t width, int64_t stride, E *to) {
  for (int64_t q = 0; q < n; q++, col += stride)
    to[q] = (uint64_t)col < (uint64_t)width ? row[col] : 0;
}

// The same of neighbours, in whole registers.
IN void CAT(T, conv_whole)(const E *row, int64_t col, int64_t n, int64_t width, E *to) {
  CAT(T, store)(to, CAT(T, load)(row + col));
  if (n > W)
    CAT(T, store)(to + W, CAT(T, load)(row + col + W));
  for (int64_t q = 0; q < -col && q < n; q++)
    to[q] = 0;
  for (int64_t q = col < width ? width - col : 0; q < n; q++)
    to[q] = 0;
}

// One strip: rows p0 to p0 + depth of n ≤ 2·W columns from j on, as a panel. Runs are
// stored in whole registers, from left to right: what is too much is written over by
// what follows, and behind the panel there is room.
static void CAT(T, conv_strip)(const conv_shape *s, const E *x, const E *low, const E *high, int64_t j, int64_t n,
                               int64_t p0, int64_t depth, E *to) {
  conv_run runs[2 * W], *end = runs + conv_runs(s, j, n, runs);
  int64_t c = p0 / (s->rows * s->cols), r = p0 / s->cols % s->rows, q = p0 % s->cols;
  for (int64_t p = 0; p < depth;) {
    if (c == s->channels) { // the row for the bias
      for (int64_t i = 0; i < 2 * W; i++)
        to[i] = i < n;
      return;
    }
    for (conv_run *run = runs; run < end; run++)
      CAT(T, conv_place)(s, x, low, high, c, r, run);
    for (; q < s->cols && p < depth; p++, q++, to += 2 * W) {
      for (conv_run *run = runs; run < end; run++) {
        E *at = to + run->at;
        if (run->where == CONV_WHOLE) {
          CAT(T, conv_whole)(run->from, run->col + q * s->dilation_w, run->n, s->width, at);
        } else if (run->where == CONV_BESIDE) {
          CAT(T, store)(at, CAT(T, zero)());
          if (run->n > W)
            CAT(T, store)(at + W, CAT(T, zero)());
        } else
          CAT(T, conv_each)(run->from, run->col + q * s->dilation_w, run->n, s->width, s->stride_w, at);
      }
      for (int64_t i = n; i < 2 * W; i++)
        to[i] = 0;
    }
    if (q == s->cols) {
      q = 0;
      if (++r == s->rows)
        r = 0, c++;
    }
  }
}

// Words: the 12 numbers of conv_shape; the input of one image and group, from where
// and to where memory may be read; packed weights, their rows, the depth of the
// product with the bias's row, the depth of a panel; columns from, to; the output, its
// elements per row of the weights; room for a panel of the columns and W elements.
static void CAT(T, conv)(const simd_word *w) {
  conv_shape s = {w[0].i, w[1].i, w[2].i, w[3].i, w[4].i, w[5].i, w[6].i, w[7].i, w[8].i, w[9].i, w[10].i, w[11].i};
  int64_t m = w[16].i, k = w[17].i, most = w[18].i, j0 = w[19].i, j1 = w[20].i, ldc = w[22].i;
  int64_t tall = (m + GEMM_ROWS - 1) / GEMM_ROWS * GEMM_ROWS;
  E *panel = w[23].p;
  for (int64_t p = 0; p < k; p += most) {
    int64_t depth = k - p < most ? k - p : most;
    E *to = panel;
    for (int64_t j = j0; j < j1; j += 2 * W, to += 2 * W * depth)
      CAT(T, conv_strip)(&s, w[12].p, w[13].p, w[14].p, j, j1 - j < 2 * W ? j1 - j : 2 * W, p, depth, to);
    CAT(T, multiply)(m, j1 - j0, depth, (const E *)w[15].p + p * tall, panel, (E *)w[21].p + j0, ldc, 1, p > 0);
  }
}

#undef V
#undef W
