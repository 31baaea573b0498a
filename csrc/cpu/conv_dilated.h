// Convolution with gaps between the elements of filters, and a stride of 1. A copy of a channel is divided into cells of as many rows and columns as the
// dilation has: with element (r, q) of a filter, an element of cell (i, j) of the output meets the element at the same place of cell (i + r, j + q), as without gaps. A cell's elements follow each other,
// and so do the cells of a row, which registers are filled from. Whatever is in a cell of the output meets the same elements of a filter, so that those in the padding are left out, with no product.
#define V CAT(T, v)
#define W CAT(T, W)

// A run of cells of the output that meet the same elements of a filter: its place in the sums of a filter, its elements, and its parts.
typedef struct {
  int64_t to, count, first, parts;
} CAT(T, dilated_run);

// Elements of a filter that follow each other: the first, their number, and the place in a copy that the first element of the run meets with the first.
typedef struct {
  int64_t place, places, from;
} CAT(T, dilated_part);

// Copies count pieces of n elements. Calls of memcpy would take longer than most pieces.
IN void CAT(T, dilated_pieces_of)(const int64_t n, int64_t count, const E *from, int64_t apart, E *to, int64_t step) {
  _Pragma("GCC unroll 4") for (; count > 0; count--, from += apart, to += step) {
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
      __builtin_memcpy(to + i, from + i, 4 * sizeof(E));
    if (n & 2)
      __builtin_memcpy(to + i, from + i, 2 * sizeof(E)), i += 2;
    if (n & 1)
      to[i] = from[i];
  }
}

IN void CAT(T, dilated_pieces)(int64_t n, int64_t count, const E *from, int64_t apart, E *to, int64_t step) {
  if (n == 1)
    CAT(T, dilated_pieces_of)(1, count, from, apart, to, step);
  else if (n == 2)
    CAT(T, dilated_pieces_of)(2, count, from, apart, to, step);
  else if (n == 4)
    CAT(T, dilated_pieces_of)(4, count, from, apart, to, step);
  else
    CAT(T, dilated_pieces_of)(n, count, from, apart, to, step);
}

// Copies a channel to cells, with zeros where these reach past the image.
static void CAT(T, dilated_cells)(const conv_shape *s, const E *image, E *to) {
  int64_t down = s->down.dilation, along = s->along.dilation, cell = down * along, size = s->along.size;
  int64_t top = s->down.pad % down, left = s->along.pad % along, begin = left > 0, end = (left + size) / along;
  for (int64_t i = 0, r = 0; i < s->lines * down; i++, r = r + 1 < down ? r + 1 : (to += s->pitch, 0)) {
    int64_t row = i - top, inside = (uint64_t)row < (uint64_t)s->down.size;
    E *line = to + r * along;
    if (inside)
      CAT(T, dilated_pieces)(along, end - begin, image + row * size + begin * along - left, along, line + begin * cell, cell);
    for (int64_t j = 0; j * cell < s->pitch; j++) {
      if (inside && j == begin && j < end)
        j = end;
      for (int64_t q = 0, col = j * along - left; j * cell < s->pitch && q < along; q++, col++)
        line[j * cell + q] = inside && (uint64_t)col < (uint64_t)size ? image[row * size + col] : 0;
    }
  }
}

// Copies the sums of a filter to its output.
static void CAT(T, dilated_out)(const conv_shape *s, const E *sums, E *y) {
  int64_t down = s->down.dilation, along = s->along.dilation, cell = down * along, cols = s->out_cols;
  int64_t pitch = (cols + along - 1) / along * cell, whole = cols / along;
  for (int64_t row = 0, r = 0; row < s->out_rows; row++, y += cols, r = r + 1 < down ? r + 1 : (sums += pitch, 0)) {
    const E *line = sums + r * along;
    CAT(T, dilated_pieces)(along, whole, line, cell, y, along);
    for (int64_t q = whole * along; q < cols; q++)
      y[q] = line[whole * cell + q - whole * along];
  }
}

// Multiplies rows filters, from filter f of a task on, with channels c0 to c1 for a run.
static void CAT(T, dilated_rows)(const conv_shape *s, const conv_task *t, int64_t f, int64_t rows, int64_t c0, int64_t c1, const CAT(T, dilated_run) *run,
                                 const CAT(T, dilated_part) *parts, E *c) {
  int64_t n = c1 - c0, high = s->together, tall = (s->filters + high - 1) / high * high;
  const E *left = (const E *)s->weights + (t->group * s->channels + c0) * tall * s->places + (t->filter + f) * n * s->places;
  const E *bias = s->bias && c0 == 0 ? (const E *)s->bias + t->group * s->filters + t->filter + f : NULL, *planes = s->room;
  const int64_t *steps = s->steps + (n < s->deep ? s->places * s->deep : 0);
  for (int64_t j = 0, cols; j < run->count; j += cols) {
    int64_t regs = (run->count - j + W - 1) / W, nv = 8;
    while (nv > regs || nv * rows > GEMM_REGS)
      nv /= 2;
    cols = conv_less(run->count - j, nv * W);
    E *to = c + run->to + j;
    if (bias)
      CAT(T, conv_bias)(bias, rows, cols, to, s->sums);
    for (int64_t p = 0; p < run->parts; p++) {
      const CAT(T, dilated_part) *m = parts + run->first + p;
      CAT(T, conv_kernels)[rows][nv](m->places * n, left + m->place * n * high, 1, high, planes + m->from + j, steps + m->place * n, to, s->sums,
                                     1, c0 > 0 || bias || p > 0, cols - (nv - 1) * W);
    }
  }
}

// Words: those of conv_shape, the number of runs, the runs, followed by their parts, and the first task and the one after the last. The planes of the shape are the copies, their lines
// rows of cells; steps are for as many channels as are copied at a time, and then, if fewer are left, for those. The weights are those of conv_dilated_pack, in panels of `together` filters,
// and a task has whole panels. Room has memory for the copies and for the sums of a panel, or, if channels are not copied at once, of a task, with a register after each.
EXPORT(CAT(T, conv_dilated)) {
  conv_shape s;
  __builtin_memcpy(&s, w, sizeof s);
  const simd_word *rest = w + sizeof s / sizeof *w;
  int64_t runs = rest[0].i, outs = s.out_rows * s.out_cols, size = s.down.size * s.along.size;
  const CAT(T, dilated_run) *list = rest[1].p;
  const CAT(T, dilated_part) *parts = (const void *)(list + runs);
  E *sums = (E *)s.room + s.deep * s.plane + W;
  for (int64_t task = rest[2].i; task < rest[3].i; task++) {
    conv_task t = conv_task_of(&s, task);
    const E *x = (const E *)s.x + (t.image * s.groups + t.group) * s.channels * size;
    E *y = (E *)s.y + ((t.image * s.groups + t.group) * s.filters + t.filter) * outs;
    for (int64_t c0 = 0, c1; c0 < s.channels; c0 = c1) {
      c1 = conv_less(s.channels, c0 + s.deep);
      for (int64_t c = c0; c < c1; c++)
        CAT(T, dilated_cells)(&s, x + c * size, (E *)s.room + (c - c0) * s.plane);
      for (int64_t f = 0; f < t.filters; f += s.together) {
        int64_t rows = conv_less(s.together, t.filters - f);
        E *own = sums + (s.deep < s.channels ? f * s.sums : 0);
        for (int64_t i = 0; i < runs; i++)
          CAT(T, dilated_rows)(&s, &t, f, rows, c0, c1, list + i, parts, own);
        for (int64_t i = 0; i < rows && c1 == s.channels; i++)
          CAT(T, dilated_out)(&s, own + i * s.sums, y + (f + i) * outs);
      }
    }
  }
}

// Packs filters into panels: for the channels that are copied at a time, panel after panel, and in each the filters' first elements in all these channels before their second. Words: filters, channels and
// elements of a filter in a channel, of a group; channels that are copied at a time; filters of a panel; the filters; the panels; and the first panel and the one after the last, counted over all groups.
EXPORT(CAT(T, conv_dilated_pack)) {
  enum { some = 64 };
  int64_t filters = w[0].i, channels = w[1].i, places = w[2].i, deep = w[3].i, high = w[4].i, panels = (filters + high - 1) / high, depth = channels * places;
  E packed[some * GEMM_ROWS + W];
  for (int64_t p = w[7].i; p < w[8].i; p++) {
    int64_t panel = p % panels, count = conv_less(high, filters - panel * high), c = 0, place = 0;
    const E *from = (const E *)w[5].p + (p / panels * filters + panel * high) * depth;
    E *to = (E *)w[6].p + p / panels * panels * high * depth;
    for (int64_t k = 0, n; k < depth; k += n) {
      n = conv_less(some, depth - k);
      CAT(T, pack_panel)(0, count, n, from + k, depth, packed, high);
      for (int64_t i = 0; i < n; i++) {
        int64_t c0 = c / deep * deep, part = conv_less(deep, channels - c0);
        CAT(T, conv_out)(packed + i * high, high, to + (c0 * panels * places + panel * part * places + place * part + c - c0) * high);
        if (++place == places)
          place = 0, c++;
      }
    }
  }
}

#undef V
#undef W
