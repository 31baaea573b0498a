// Convolution with filters that are longer than the output, as in conv_long.h, of many images: gradients of filters of networks. Copies of the images have the
// images innermost, with zeros for the padding, so that the elements of all images that a filter's element meets at one place of the output are
// a row of the right operand of the kernels of gemm, and all places share one copy. The filters are the left operand as they are.
#define V CAT(T, v)
#define W CAT(T, W)

// Copies lines of one channel, the first of which is line row of each image. The images are step elements apart, and element (line, column, image) of the copy is at
// (line·pitch + column)·sums + image.
static void CAT(T, turned_lines)(const conv_shape *s, const E *from, int64_t images, int64_t step, int64_t row, int64_t lines, E *to) {
  int64_t left = conv_less(s->along.pad > 0 ? s->along.pad : 0, s->pitch), first = left - s->along.pad;
  int64_t cols = first < s->along.size ? conv_less(s->pitch - left, s->along.size - first) : 0;
  for (int64_t end = row + lines; row < end; row++, to += s->pitch * s->sums) {
    if ((uint64_t)row >= (uint64_t)s->down.size || cols == 0) {
      CAT(T, conv_zero)(s->pitch * s->sums, to);
      continue;
    }
    CAT(T, conv_zero)(left * s->sums, to);
    CAT(T, pack_panel)(0, images, cols, from + row * s->along.size + first, step, to + left * s->sums, s->sums);
    CAT(T, conv_zero)((s->pitch - left - cols) * s->sums, to + (left + cols) * s->sums);
  }
}

// Adds to the sums of count filters, or sets them to, the products of rows of the filters, which are ld elements apart, with wide elements of the copies from one place on.
// The sums of a filter are s->sums elements apart.
static void CAT(T, turned_place)(const conv_shape *s, const E *filters, int64_t ld, int64_t count, int64_t rows, const E *x, int64_t wide, int add, E *sums) {
  int64_t blocks = (count + GEMM_ROWS - 1) / GEMM_ROWS, most = (count + blocks - 1) / blocks, k = rows * s->out_cols;
  for (int64_t j = 0, cols; j < wide; j += cols) {
    int64_t nv = 8;
    while (nv > (wide - j) / W || nv * most > GEMM_REGS)
      nv /= 2;
    cols = nv * W;
    for (int64_t q = 0; q < blocks; q++) {
      int64_t f = count * q / blocks, tall = count * (q + 1) / blocks - f;
      const E *left = s->packed ? filters + f * k : filters + f * ld;
      CAT(T, conv_kernels)[tall][nv](k, left, s->packed ? 1 : ld, s->packed ? tall : 1, x + j, s->steps, sums + f * s->sums + j, s->sums, 1, add, W);
    }
  }
}

// Copies rows of filters, k elements each, to panels of the blocks of turned_place.
static void CAT(T, turned_pack)(const E *filters, int64_t ld, int64_t count, int64_t k, E *to) {
  int64_t blocks = (count + GEMM_ROWS - 1) / GEMM_ROWS;
  for (int64_t q = 0; q < blocks; q++) {
    int64_t f = count * q / blocks, tall = count * (q + 1) / blocks - f;
    CAT(T, pack_panel)(0, tall, k, filters + f * ld, ld, to + f * k, tall);
  }
}

// Computes the output of a task. s->rows are the rows of a filter for which lines are copied at a time, s->deep those that are multiplied at a time; s->sums is the number of images in
// the copies, in whole registers, and s->plane the elements of the copies.
static int CAT(T, turned_part)(const conv_shape *s, const long_steps *in, const long_steps *by, const long_steps *out, int64_t task) {
  int64_t blocks = (s->filters + s->some - 1) / s->some, parts = (s->images + s->batch - 1) / s->batch;
  int64_t f0 = task % blocks * s->some, count = conv_less(s->filters - f0, s->some), group = task / blocks / parts;
  int64_t i0 = task / blocks % parts * s->batch, images = conv_less(s->images - i0, s->batch), wide = (images + W - 1) / W * W;
  const E *x = (const E *)s->x + group * in->group + i0 * in->outer, *weights = (const E *)s->weights + group * by->group + f0 * by->outer;
  E *sums = s->room, *copies = sums + s->places * s->some * s->sums, *panels = copies + s->plane + W;
  for (int64_t c = 0; c < s->channels; c++)
    for (int64_t row = 0, some; row < s->out_rows; row += some) {
      some = conv_less(s->out_rows - row, s->rows);
      int64_t above = s->down.stride; // from one row of a filter to the next
      CAT(T, turned_lines)(s, x + c * in->inner, images, in->outer, row * above - s->down.pad, s->lines - (s->rows - some) * above, copies);
      for (int64_t r = 0, few; r < some; r += few) {
        few = conv_less(some - r, s->deep);
        const E *left = weights + c * by->inner + (row + r) * s->out_cols;
        if (s->packed)
          CAT(T, turned_pack)(left, by->outer, count, few * s->out_cols, panels), left = panels;
        for (int64_t p = 0; p < s->places; p++)
          CAT(T, turned_place)(s, left, by->outer, count, few, copies + (r * above + p / s->along.planes * s->down.dilation) * s->pitch * s->sums + p % s->along.planes * s->along.dilation * s->sums,
                               wide, c + row + r > 0, sums + p * s->some * s->sums);
      }
    }
  E *y = (E *)s->y + group * out->group + i0 * out->outer + f0 * out->inner;
  const E *bias = s->bias ? (const E *)s->bias + group * s->filters + f0 : NULL;
  V odd = CAT(T, zero)(); // 0, or NaN after a sum that is not finite
  for (int64_t f = 0; f < count; f++, sums += s->sums, y += out->inner) {
    for (int64_t p = 0; p < s->places; p++)
      for (int64_t i = 0; i < wide; i += W) {
        E *at = sums + p * s->some * s->sums + i;
        V v = CAT(T, load)(at);
        if (bias)
          CAT(T, store)(at, v = CAT(T, add)(v, CAT(T, set)(bias[f])));
        odd = CAT(T, add)(odd, CAT(T, sub)(v, v));
      }
    if (out->outer == s->places) // images follow each other
      CAT(T, pack_panel)(0, s->places, images, sums, s->some * s->sums, y, s->places);
    else
      for (int64_t i = 0; i < images; i++)
        for (int64_t p = 0; p < s->places; p++)
          y[i * out->outer + p] = sums[p * s->some * s->sums + i];
  }
  return !(CAT(T, sum)(odd) == 0);
}

// As conv_long. The steps are distances in the copies from each element of a filter to the next.
EXPORT(CAT(T, conv_turned)) { CAT(T, long_tasks)(w, CAT(T, turned_part)); }
#undef V
#undef W
