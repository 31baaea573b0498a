// Convolution as products of filters with planes. A plane is a copy of one channel of the input for
// one element of the filter. It is laid out as the output: each pixel is at the position of the
// output element for which it is multiplied by that filter element, with zeros for the padding,
// and rows follow each other. So the kernels of gemm can read it as rows of their right
// operand. Elements of the filter whose distance is a multiple of the stride share a plane.
#ifndef CONCORD_CONV_H
#define CONCORD_CONV_H

// The arguments of a call, in the order of its words. First the axis down the columns, then the one
// along the rows.
typedef struct {
  int64_t size, stride, pad, dilation; // of the image, and of the filter on it
  int64_t planes, wrap;                // planes of a channel; plane q begins at q·dilation % wrap
} conv_axis;

typedef struct {
  conv_axis down, along;
  int64_t channels, groups, filters;     // channels and filters of a group
  int64_t places;                        // elements of a filter in one channel
  int64_t out_rows, out_cols;            // of the output
  int64_t images, batch;                 // images of the output and of a task; a task of several images has all their rows
  int64_t rows, some, deep;              // of a task: rows of the output, filters, channels at a time; 0 channels if the planes are the image itself
  int64_t lines, pitch, plane;           // rows of a plane, elements of a row and of a plane
  int64_t sums;                          // elements of a filter's sums; 0 if the output itself has them
  int64_t together;                      // filters that are multiplied with a strip of the planes before the next strip
  int64_t packed;                        // 1 if filters are packed into panels of GEMM_ROWS
  const void *x, *weights, *bias;        // bias may be NULL
  const int64_t *steps;                  // distances from each filter element to the next, channel after channel
  void *y, *room;                        // room has memory for planes and sums, with a register after each
} conv_shape;

// The part of the output of a task: the group; first image, row and filter, and the number of each.
typedef struct {
  int64_t group, image, images, row, rows, filter, filters;
} conv_task;

IN int64_t conv_less(int64_t a, int64_t b) { return a < b ? a : b; }

IN conv_task conv_task_of(const conv_shape *s, int64_t task) {
  int64_t parts = (s->out_rows + s->rows - 1) / s->rows, blocks = (s->filters + s->some - 1) / s->some;
  int64_t row = task / blocks % parts * s->rows, filter = task % blocks * s->some, z = task / blocks / parts;
  int64_t image = z / s->groups * s->batch;
  conv_task t = {z % s->groups, image, conv_less(s->images - image, s->batch),
                 row, conv_less(s->out_rows - row, s->rows), filter, conv_less(s->filters - filter, s->some)};
  return t;
}

// Returns the row or column of the image at which plane q begins, for row or column i of the
// output.
IN int64_t conv_first(const conv_axis *a, int64_t q, int64_t i) { return q * a->dilation % a->wrap + i * a->stride - a->pad; }

// Returns how many of n elements, stride apart from first on, lie before place: the beginning or
// the end of the image.
IN int64_t conv_before(int64_t place, int64_t first, int64_t stride, int64_t n) {
  int64_t count = first < place ? (place - first - 1) / stride + 1 : 0;
  return count < n ? count : n;
}

#endif

#define V CAT(T, v)
#define W CAT(T, W)

// The planes are followed by memory that may be read, so the right operand needs no mask.
#undef RIGHT_LAST
#define RIGHT_LAST(v) RIGHT(v)
#undef LDB
#define LDB const int64_t *
#undef NEXT
#define NEXT b += *ldb++;
#undef SPLIT
#define SPLIT 0
#define TILE conv
#define STEP fma
#include "tile.h"
#undef TILE
#undef STEP
#undef RIGHT_LAST
#define RIGHT_LAST(v) RIGHT_MASKED(v)
#undef LDB
#define LDB int64_t
#undef NEXT
#define NEXT b += ldb;
#undef SPLIT
#define SPLIT 1

// conv_zero and conv_line may write one register more than requested. Their rows are so short that calls of memset and memcpy, which gcc
// makes of such loops unless IN_REGISTER hides what they store, would take longer.
IN void CAT(T, conv_zero)(int64_t n, E *to) {
  V v = CAT(T, zero)();
  for (int64_t i = 0; i < n; i += W) {
    IN_REGISTER(v);
    CAT(T, store)(to + i, v);
  }
}

IN void CAT(T, conv_line)(const E *restrict from, int64_t stride, int64_t n, E *restrict to) {
  int64_t i = 0;
  if (stride == 1) {
    for (; i + W <= n; i += W) {
      V v = CAT(T, load)(from + i);
      IN_REGISTER(v);
      CAT(T, store)(to + i, v);
    }
    if (i < n)
      CAT(T, store)(to + i, CAT(T, loadm)(from + i, CAT(T, first)(n - i)));
  } else if (stride == 2) {
    for (; i + W < n; i += W)
      CAT(T, store)(to + i, CAT(T, evens)(CAT(T, load)(from + 2 * i), CAT(T, load)(from + 2 * i + W)));
    int64_t left = 2 * (n - i) - 1; // elements from the next to the last one
    if (left > W)
      CAT(T, store)(to + i, CAT(T, evens)(CAT(T, load)(from + 2 * i), CAT(T, loadm)(from + 2 * i + W, CAT(T, first)(left - W))));
    else if (left > 0)
      CAT(T, store)(to + i, CAT(T, evens)(CAT(T, loadm)(from + 2 * i, CAT(T, first)(left)), CAT(T, zero)()));
  } else
    for (; i < n; i++)
      to[i] = from[i * stride];
}

// Copies n elements and writes no more than these, but reads whole registers.
IN void CAT(T, conv_out)(const E *from, int64_t n, E *to) {
  int64_t i = 0;
  for (; i + W <= n; i += W)
    CAT(T, store)(to + i, CAT(T, load)(from + i));
  if (i < n)
    CAT(T, storem)(to + i, CAT(T, first)(n - i), CAT(T, load)(from + i));
}

// Makes one plane of lines rows of the image from (row, col) on.
static void CAT(T, conv_plane)(const conv_shape *s, const E *image, int64_t lines, int64_t row, int64_t col, E *to) {
  int64_t a = conv_before(0, col, s->along.stride, s->pitch), b = conv_before(s->along.size, col, s->along.stride, s->pitch);
  for (int64_t i = 0; i < lines; i++, row += s->down.stride, to += s->pitch) {
    if ((uint64_t)row >= (uint64_t)s->down.size || a == b) {
      CAT(T, conv_zero)(s->pitch, to);
      continue;
    }
    if (s->along.stride == 1 && s->pitch <= W) {
      CAT(T, store)(to, CAT(T, zero)());
      CAT(T, store)(to + a, CAT(T, loadm)(image + row * s->along.size + col + a, CAT(T, first)(b - a)));
      continue;
    }
    CAT(T, conv_zero)(a, to);
    CAT(T, conv_line)(image + row * s->along.size + col + a * s->along.stride, s->along.stride, b - a, to + a);
    CAT(T, conv_zero)(s->pitch - b, to + b);
  }
}

// Makes all planes of channels c0 to c1; the planes of several images follow each other. The image
// of the next channel is prefetched, because the processor does not predict the jump to it. A
// stride may be far larger than the image.
static void CAT(T, conv_planes)(const conv_shape *s, const conv_task *t, int64_t c0, int64_t c1) {
  int64_t size = s->down.size * s->along.size, next = s->groups * s->channels * size;
  int64_t span = s->lines * s->pitch, lines = s->lines - s->rows + t->rows;
  const E *image = (const E *)s->x + ((t->image * s->groups + t->group) * s->channels + c0) * size;
  E *to = s->room;
  for (int64_t c = c0; c < c1; c++, image += size)
    for (int64_t r = 0; r < s->down.planes; r++) {
      int64_t row = conv_first(&s->down, r, t->row);
      int64_t first = row > 0 ? row : 0, left = s->down.size - first, far = lines * s->down.stride;
      int64_t ahead = (far < left ? far : left) * s->along.size;
      for (int64_t n = 0; r == 0 && n < t->images; n++)
        for (int64_t i = 0; i < ahead; i += 64 / sizeof(E))
          __builtin_prefetch(image + n * next + size + first * s->along.size + i);
      for (int64_t q = 0; q < s->along.planes; q++, to += s->plane)
        for (int64_t n = 0; n < t->images; n++)
          CAT(T, conv_plane)(s, image + n * next, lines, row, conv_first(&s->along, q, 0), to + n * span);
    }
}

// Initializes the results with the bias.
static void CAT(T, conv_bias)(const E *bias, int64_t m, int64_t n, E *c, int64_t ldc) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j += W)
      CAT(T, out)(c + i * ldc + j, CAT(T, set)(bias[i]), CAT(T, set)(1), CAT(T, zero)(), 0, n - j < W ? n - j : W,
                  CAT(T, first)(n - j < W ? n - j : W), 0);
}

// Multiplies count filters of a task from filter f on with channels c0 to c1 of n elements of the
// planes: with one strip of the planes after the other.
static void CAT(T, conv_rows)(const conv_shape *s, const conv_task *t, int64_t f, int64_t count, int64_t c0, int64_t c1, int64_t n, E *c, int64_t ldc) {
  int64_t first = t->group * s->filters + t->filter + f, depth = s->channels * s->places, k = (c1 - c0) * s->places;
  int64_t tall = (s->filters + GEMM_ROWS - 1) / GEMM_ROWS * GEMM_ROWS, blocks = (count + GEMM_ROWS - 1) / GEMM_ROWS;
  int64_t part = s->packed ? GEMM_ROWS : count / blocks, larger = s->packed ? 0 : count % blocks; // the first blocks are larger by one
  int64_t most = conv_less(part + (larger > 0), count);
  const E *planes = s->room, *bias = s->bias ? (const E *)s->bias + first : NULL, *left = s->weights;
  left += s->packed ? (t->group * depth + c0 * s->places) * tall + (t->filter + f) * k : first * depth + c0 * s->places;
  for (int64_t j = 0, cols; j < n; j += cols) {
    int64_t regs = (n - j + W - 1) / W, nv = 8;
    while (nv > regs || nv * most > GEMM_REGS)
      nv /= 2;
    cols = n - j < nv * W ? n - j : nv * W;
    for (int64_t i = 0, q = 0, next; q < blocks; q++, i = next) {
      next = conv_less(i + part + (q < larger), count);
      const E *a = left + i * (s->packed ? k : depth);
      E *to = c + (f + i) * ldc + j;
      for (int64_t r = 0; r < next - i; r++)
        __builtin_prefetch(to + r * ldc, 1), __builtin_prefetch(to + r * ldc + cols - 1, 1);
      if (bias && c0 == 0)
        CAT(T, conv_bias)(bias + i, next - i, cols, to, ldc);
      CAT(T, conv_kernels)[next - i][nv](k, a, s->packed ? 1 : depth, s->packed ? GEMM_ROWS : 1, planes + j, s->steps, to, ldc,
                                         1, c0 > 0 || bias, cols - (nv - 1) * W);
    }
  }
}

// Copies the sums of a task to the output, if they were not computed there.
static void CAT(T, conv_place)(const conv_shape *s, const conv_task *t, const E *c, E *y) {
  int64_t outs = s->out_rows * s->out_cols, cols = s->out_cols, rows = t->rows;
  if (s->pitch == cols) // all rows are contiguous
    cols *= rows, rows = 1;
  for (int64_t n = 0; n < t->images; n++, y += s->groups * s->filters * outs)
    for (int64_t i = 0; i < t->filters; i++)
      for (int64_t r = 0; r < rows; r++)
        CAT(T, conv_out)(c + i * s->sums + (n * s->lines + r) * s->pitch, cols, y + i * outs + r * cols);
}

// Computes nv registers of a row of the output of a group with one channel and one filter, the last of which has
// n elements, from the planes.
IN void CAT(T, conv_alone)(const conv_shape *s, const E *weights, const E *from, V bias, const int nv, int64_t n, E *to) {
  V sum[4];
  TOGETHER(nv)
    sum[k] = bias;
  for (int64_t p = 0; p < s->places; from += s->steps[p++])
    TOGETHER(nv)
      sum[k] = CAT(T, fma)(CAT(T, set)(weights[p]), CAT(T, load)(from + k * W), sum[k]);
  TOGETHER(nv - 1)
    CAT(T, store)(to + k * W, sum[k]);
  if (n == W)
    CAT(T, store)(to + (nv - 1) * W, sum[nv - 1]);
  else
    CAT(T, storem)(to + (nv - 1) * W, CAT(T, first)(n), sum[nv - 1]);
}

// Rows that are computed together from filters of 3×3: each register of the image is read once for all of them.
enum { CAT(T, lone_rows) = W * sizeof(E) == 32 ? 2 : 4 };

// What so many rows of the output meet: rows of an image or of its planes, each from the element on that is first below the filter, even if that is beside the image.
typedef struct {
  const E *rows[CAT(T, lone_rows) + 2]; // NULL stands for zeros
  int64_t at[3];                        // how far the columns of the filter are apart
  V left, right;                        // 0 for lanes beside the image: of the first register of a row in the filter's first column, of the last one in its last
} CAT(T, conv_meet);

// Prefetches as many elements as the n from one on, those that come 4 KiB later: the processor itself does not read ahead into the next page.
IN void CAT(T, conv_ahead)(const E *from, int64_t n) {
  for (int64_t i = 0; i < n; i += 64 / (int64_t)sizeof(E))
    __builtin_prefetch((const char *)(from + i) + 4096);
}

// Sets what the rows of the output from one on meet in the image itself.
IN void CAT(T, conv_meet_image)(const conv_shape *s, const E *image, int64_t row, CAT(T, conv_meet) *m) {
  for (int64_t r = 0; r < CAT(T, lone_rows) + 2; r++) {
    int64_t from = row + r - s->down.pad;
    m->rows[r] = (uint64_t)from < (uint64_t)s->down.size ? image + from * s->along.size - s->along.pad : NULL;
  }
}

// Reports whether filters of 3×3 can read images themselves, of which at most one column is beside the image on each side.
IN int CAT(T, conv_near)(const conv_axis *down, const conv_axis *along, int64_t cols) {
  return down->stride == 1 && down->dilation == 1 && along->stride == 1 && along->dilation == 1 && along->pad >= 0 && along->pad <= 1 &&
         cols >= W && cols + 1 - along->pad <= along->size;
}

// Sets the columns of what is met: in the image itself, of cols places for the filter.
IN void CAT(T, conv_meet_columns)(const conv_axis *along, int64_t cols, CAT(T, conv_meet) *m) {
  E left[W], right[W];
  for (int64_t i = 0; i < W; i++)
    left[i] = i >= along->pad, right[i] = i < W - 1 || cols + 1 - along->pad < along->size;
  for (int64_t q = 0; q < 3; q++)
    m->at[q] = q;
  m->left = CAT(T, load)(left), m->right = CAT(T, load)(right);
}

// Reports whether the image is neither the first nor the last one of all, so that a register may reach past its ends.
IN int CAT(T, conv_inside)(const conv_shape *s, const E *image) {
  int64_t size = s->down.size * s->along.size, all = s->images * s->groups * s->channels;
  return image > (const E *)s->x && image < (const E *)s->x + (all - 1) * size;
}

// Returns the register of row r below column q of the filter, from element j on.
IN V CAT(T, conv_met)(const CAT(T, conv_meet) *m, const int r, const int q, int64_t j, const int first, const int last, V left, V right) {
  V x = CAT(T, load)(m->rows[r] + m->at[q] + j);
  if (q == 0 && first)
    x = CAT(T, less)(CAT(T, zero)(), left, x, CAT(T, zero)());
  if (q == 2 && last)
    x = CAT(T, less)(CAT(T, zero)(), right, x, CAT(T, zero)());
  IN_REGISTER(x);
  return x;
}

// Adds the products of row r to sums of nv registers from column j on, the last of which is at column end.
IN void CAT(T, conv_beside_from)(const int r, const V *w, const CAT(T, conv_meet) *m, int64_t j, int64_t end, V left, V right, const int nv, V (*sum)[4]) {
  enum { rows = CAT(T, lone_rows) };
  const int first = r < 2 ? 0 : r - 2, last = r < rows ? r : rows - 1;
  if (!m->rows[r])
    return;
  ALL_STEPS for (int q = 0; q < 3; q++)
    TOGETHER(nv) {
      V x = CAT(T, conv_met)(m, r, q, k == nv - 1 ? end : j + k * W, k == 0, k == nv - 1, left, right);
      ALL_STEPS for (int i = first; i <= last; i++)
        sum[i][k] = CAT(T, fma)(w[3 * (r - i) + q], x, sum[i][k]);
    }
}

// Computes nv registers of lone_rows rows of the output of a group with one channel and one filter of 3×3.
IN void CAT(T, conv_beside)(const conv_shape *s, const E *weights, const CAT(T, conv_meet) *m, V bias, int64_t j, int64_t end, V left, V right, const int nv, E *to) {
  enum { rows = CAT(T, lone_rows) };
  V sum[rows][4], w[9];
  ALL_STEPS for (int p = 0; p < 9; p++)
    w[p] = CAT(T, set)(weights[p]);
  ALL_STEPS for (int i = 0; i < rows; i++)
    TOGETHER(nv)
      sum[i][k] = bias;
  CAT(T, conv_beside_from)(0, w, m, j, end, left, right, nv, sum);
  CAT(T, conv_beside_from)(1, w, m, j, end, left, right, nv, sum);
  CAT(T, conv_beside_from)(2, w, m, j, end, left, right, nv, sum);
  CAT(T, conv_beside_from)(3, w, m, j, end, left, right, nv, sum);
  if (rows == 4) {
    CAT(T, conv_beside_from)(rows, w, m, j, end, left, right, nv, sum);
    CAT(T, conv_beside_from)(rows + 1, w, m, j, end, left, right, nv, sum);
  }
  ALL_STEPS for (int i = 0; i < rows; i++, to += s->out_cols)
    TOGETHER(nv)
      CAT(T, store)(to + (k == nv - 1 ? end : j + k * W), sum[i][k]);
}

// Computes lone_rows rows of the output. The last register of a row overlaps the one before.
static void CAT(T, conv_beside_row)(const conv_shape *s, const E *weights, const CAT(T, conv_meet) *m, V bias, E *to) {
  int64_t end = s->out_cols - W, j = 0;
  V left = m->left, right = m->right, one = CAT(T, set)(1);
  for (; end - j > 3 * W; j += 4 * W, left = one)
    CAT(T, conv_beside)(s, weights, m, bias, j, j + 3 * W, left, one, 4, to);
  if (end - j > 2 * W)
    CAT(T, conv_beside)(s, weights, m, bias, j, end, left, right, 4, to);
  else if (end - j > W)
    CAT(T, conv_beside)(s, weights, m, bias, j, end, left, right, 3, to);
  else if (end > j)
    CAT(T, conv_beside)(s, weights, m, bias, j, end, left, right, 2, to);
  else
    CAT(T, conv_beside)(s, weights, m, bias, j, end, left, right, 1, to);
}

// Computes a row of the output of such a group from the planes.
IN void CAT(T, conv_alone_row)(const conv_shape *s, const E *weights, const E *from, V bias, E *to) {
  for (int64_t left = s->out_cols; left > 0; left -= 4 * W, from += 4 * W, to += 4 * W)
    if (left > 3 * W)
      CAT(T, conv_alone)(s, weights, from, bias, 4, conv_less(left - 3 * W, W), to);
    else if (left > 2 * W)
      CAT(T, conv_alone)(s, weights, from, bias, 3, left - 2 * W, to);
    else if (left > W)
      CAT(T, conv_alone)(s, weights, from, bias, 2, left - W, to);
    else
      CAT(T, conv_alone)(s, weights, from, bias, 1, left, to);
}

// Computes the output of a task of such a group, a few rows at a time without sums that would have to be copied. Filters of 3×3 read the image itself.
static void CAT(T, conv_lone)(const conv_shape *s, const conv_task *t, E *y) {
  const E *weights = (const E *)s->weights + t->group * s->places;
  const int64_t *step = s->steps;
  int64_t size = s->down.size * s->along.size, some;
  V bias = s->bias ? CAT(T, set)(((const E *)s->bias)[t->group]) : CAT(T, zero)(), one = CAT(T, set)(1);
  int beside = s->places == 9 && step[0] == step[3] && step[0] == step[6] && step[1] == step[4] && step[1] == step[7] && step[2] == step[5] &&
               step[0] + step[1] + step[2] == s->pitch;
  beside = beside && t->rows >= CAT(T, lone_rows);
  int near = beside && step[0] == 1 && step[1] == 1 && CAT(T, conv_near)(&s->down, &s->along, s->out_cols), planes = 0;
  some = beside ? CAT(T, lone_rows) : 1;
  for (int64_t n = 0; n < t->images; n++, y += s->groups * s->out_rows * s->out_cols) {
    const E *image = (const E *)s->x + ((t->image + n) * s->groups + t->group) * size;
    CAT(T, conv_meet) m = {.left = one, .right = one};
    int here = near && CAT(T, conv_inside)(s, image);
    if (here)
      CAT(T, conv_meet_columns)(&s->along, s->out_cols, &m);
    else if (beside)
      m.at[1] = step[0], m.at[2] = step[0] + step[1];
    for (int64_t r = 0; r < t->rows; r += some) {
      r = conv_less(r, t->rows - some); // the last rows are computed twice if need be
      const E *from = (const E *)s->room + (n * s->lines + r) * s->pitch;
      E *to = y + r * s->out_cols;
      if (!here && !planes) {
        CAT(T, conv_planes)(s, t, 0, 1);
        planes = 1;
      }
      if (some == 1) {
        CAT(T, conv_alone_row)(s, weights, from, bias, to);
        continue;
      }
      if (here) {
        CAT(T, conv_meet_image)(s, image, t->row + r, &m);
        CAT(T, conv_ahead)(image + (t->row + r) * s->along.size, some * s->along.size);
        for (int64_t i = some * s->out_cols; i < 2 * some * s->out_cols; i += 64 / (int64_t)sizeof(E)) // the next rows
          __builtin_prefetch(to + i, 1);
      } else
        for (int64_t i = 0; i < CAT(T, lone_rows) + 2; i++)
          m.rows[i] = from + i * s->pitch;
      CAT(T, conv_beside_row)(s, weights, &m, bias, to);
    }
  }
}

// Computes the output of a task from the image itself, if filters have one element and meet each element of the image, row after row. What is read and written of the next
// columns is prefetched, a part for each block of filters: every line, as columns of so many channels are too many streams for the processor to foresee.
static void CAT(T, conv_bare)(const conv_shape *s, const conv_task *t, E *y) {
  int64_t size = s->down.size * s->along.size, outs = s->out_rows * s->out_cols, n = t->rows * s->out_cols, depth = s->channels;
  int64_t first = t->group * s->filters + t->filter, blocks = (t->filters + s->together - 1) / s->together, most = (t->filters + blocks - 1) / blocks;
  for (int64_t image = t->image; image < t->image + t->images; image++, y += s->groups * s->filters * outs) {
    const E *x = (const E *)s->x + (image * s->groups + t->group) * depth * size + t->row * s->along.size;
    for (int64_t j = 0, cols; j < n; j += cols) {
      int64_t regs = (n - j + W - 1) / W, nv = 8;
      while (nv > regs || nv * most > GEMM_REGS)
        nv /= 2;
      cols = conv_less(n - j, nv * W);
      for (int64_t q = 0; q < blocks; q++) {
        int64_t i = t->filters * q / blocks, rows = t->filters * (q + 1) / blocks - i;
        E *to = y + i * outs + j;
        int64_t ahead = conv_less(n - j - cols, cols);
        for (int64_t c = depth * q / blocks; c < depth * (q + 1) / blocks; c++)
          for (int64_t k = 0; k < ahead; k += 64 / (int64_t)sizeof(E))
            __builtin_prefetch(x + c * size + j + cols + k, 0, 2);
        for (int64_t r = 0; r < rows; r++)
          for (int64_t k = 0; k < ahead; k += 64 / (int64_t)sizeof(E))
            __builtin_prefetch(to + r * outs + cols + k, 1, 2);
        if (s->bias)
          CAT(T, conv_bias)((const E *)s->bias + first + i, rows, cols, to, outs);
        CAT(T, gemm_kernels)[rows][nv](depth, (const E *)s->weights + (first + i) * depth, depth, 1, x + j, size, to, outs, 1, s->bias != NULL, cols - (nv - 1) * W);
      }
    }
  }
}

static void CAT(T, conv_part)(const conv_shape *s, const conv_task *t) {
  int64_t outs = s->out_rows * s->out_cols, first = t->group * s->filters + t->filter;
  E *y = (E *)s->y + (t->image * s->groups * s->filters + first) * outs + t->row * s->out_cols;
  if (s->deep == 0) {
    CAT(T, conv_bare)(s, t, y);
    return;
  }
  if (s->channels == 1 && s->filters == 1 && s->out_cols > 2 * W) { // in shorter rows too few sums are computed at once
    CAT(T, conv_lone)(s, t, y);
    return;
  }
  E *c = s->sums ? (E *)s->room + s->deep * s->down.planes * s->along.planes * s->plane + W : y;
  int64_t ldc = s->sums ? s->sums : outs, c0 = 0;
  int64_t n = ((t->images - 1) * s->lines + t->rows - 1) * s->pitch + s->out_cols;
  if (s->sums) // whole registers
    n = (n + W - 1) / W * W;
  do {
    int64_t c1 = s->channels - c0 < s->deep ? s->channels : c0 + s->deep;
    CAT(T, conv_planes)(s, t, c0, c1);
    for (int64_t f = 0; f < t->filters; f += s->together)
      CAT(T, conv_rows)(s, t, f, conv_less(s->together, t->filters - f), c0, c1, n, c, ldc);
    c0 = c1;
  } while (c0 < s->channels);
  if (s->sums)
    CAT(T, conv_place)(s, t, c, y);
}

// Words: those of conv_shape, then the first task and the one after the last.
EXPORT(CAT(T, conv)) {
  conv_shape s;
  __builtin_memcpy(&s, w, sizeof s);
  for (int64_t i = w[sizeof s / sizeof *w].i; i < w[sizeof s / sizeof *w + 1].i; i++) {
    conv_task t = conv_task_of(&s, i);
    CAT(T, conv_part)(&s, &t);
  }
}
#undef V
#undef W
