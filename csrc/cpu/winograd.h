// Convolution by Winograd's method F(2×2, r×r), for filters of 3×3 with stride 1 or 2 and of 5×5 with stride 1, with dilation 1:
// 2×2 elements of the output, a tile, come from n×n elements of the input, with fewer products per channel than by
// definition: 16 instead of 36, 25 instead of 36, and 36 instead of 100. The input is transformed by B, a filter by G, and the
// sums of the products of their elements by A. Points of the interpolation: 0, ±1, ∞, and for r = 5 also ±2.
// With stride 2 the even rows of the input meet a filter of two rows, by the points 0, 1 and ∞, and the odd ones a filter
// of one row, whose two products per column are added to those of 0 and ∞; so, too, along a row.
//
// A. Lavin, S. Gray: Fast Algorithms for Convolutional Neural Networks, 2016.
//
// A register has the same element of adjacent tiles, which are picked from rows of a channel: a strip's elements are copied to lines, in each of which all tiles of the strip
// have the same element, so that registers are full where rows have few tiles.
#define V f32_v
#define W f32_W

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3")
#endif

// One axis of the transforms: n elements, step apart.
#define IN_4(d, step)                                                                              \
  {                                                                                                \
    V a = d[0], b = d[step], c = d[2 * step], e = d[3 * step];                                     \
    d[0] = f32_sub(a, c), d[step] = f32_add(b, c), d[2 * step] = f32_sub(c, b), d[3 * step] = f32_sub(b, e); \
  }
#define IN_6(d, step)                                                                              \
  {                                                                                                \
    V a = d[0], b = d[step], c = d[2 * step], e = d[3 * step], f = d[4 * step], g = d[5 * step];   \
    V two = f32_set(2), four = f32_set(4), five = f32_set(-5);                                     \
    V even = f32_sub(f, f32_mul(four, c)), odd = f32_sub(e, f32_mul(four, b));                     \
    V near = f32_sub(f, c), far = f32_mul(two, f32_sub(e, b));                                     \
    d[0] = f32_fma(five, c, f32_fma(four, a, f)), d[step] = f32_add(even, odd), d[2 * step] = f32_sub(even, odd); \
    d[3 * step] = f32_add(near, far), d[4 * step] = f32_sub(near, far);                            \
    d[5 * step] = f32_fma(five, e, f32_fma(four, b, g));                                           \
  }
#define IN_5(d, step)                                                                              \
  {                                                                                                \
    V a = d[0], c = d[2 * step], e = d[4 * step];                                                  \
    d[0] = f32_sub(a, c), d[4 * step] = f32_sub(e, c);                                             \
  }
#define OUT_PAIR_4(m, step, y0, y1)                                                                \
  {                                                                                                \
    y0 = f32_add(f32_add(m[0], m[step]), m[2 * step]);                                             \
    y1 = f32_sub(f32_sub(m[step], m[2 * step]), m[3 * step]);                                      \
  }
#define OUT_PAIR_6(m, step, y0, y1)                                                                \
  {                                                                                                \
    y0 = f32_add(m[0], f32_add(f32_add(m[step], m[2 * step]), f32_add(m[3 * step], m[4 * step]))); \
    y1 = f32_fma(f32_set(2), f32_sub(m[3 * step], m[4 * step]), f32_add(f32_sub(m[step], m[2 * step]), m[5 * step])); \
  }
#define OUT_PAIR_5(m, step, y0, y1)                                                                \
  {                                                                                                \
    y0 = f32_add(m[0], m[step]);                                                                   \
    y1 = f32_add(m[step], m[2 * step]);                                                            \
  }

// One axis of the transform of a filter.
IN void winograd_line_4(const V *g, int64_t step, V *to) {
  V half = f32_set(0.5f), even = f32_mul(half, f32_add(g[0], g[2 * step])), odd = f32_mul(half, g[step]);
  to[0] = g[0], to[1] = f32_add(even, odd), to[2] = f32_sub(even, odd), to[3] = g[2 * step];
}
IN void winograd_line_5(const V *g, int64_t step, V *to) {
  to[0] = g[0], to[1] = to[3] = g[step], to[2] = f32_add(g[0], g[2 * step]), to[4] = g[2 * step];
}
IN void winograd_line_6(const V *g, int64_t step, V *to) {
  V a = g[0], b = g[step], c = g[2 * step], d = g[3 * step], e = g[4 * step], sixth = f32_set(-1 / 6.0f), small = f32_set(1 / 24.0f);
  V even = f32_mul(sixth, f32_add(a, f32_add(c, e))), odd = f32_mul(sixth, f32_add(b, d));
  V wide = f32_mul(small, f32_fma(f32_set(16), e, f32_fma(f32_set(4), c, a))), far = f32_mul(small, f32_fma(f32_set(8), d, f32_add(b, b)));
  to[0] = f32_mul(f32_set(0.25f), a), to[1] = f32_add(even, odd), to[2] = f32_sub(even, odd);
  to[3] = f32_add(wide, far), to[4] = f32_sub(wide, far), to[5] = e;
}

// Channels whose filters are transformed at a time.
enum { winograd_some = 8 };

// Elements from one line of a strip to the next: those of its tiles, and where registers reach past the last one.
enum { winograd_line = 3 * W };

// Returns elements c to c + W - 1 of a row of n elements, with zeros for those that are beside it.
IN V winograd_load(const float *row, int64_t c, int64_t n, const int whole) {
  if (whole || (c >= 0 && c + W <= n))
    return f32_load(row + c);
  int64_t from = c < 0 ? -c : 0, to = conv_less(n - c, W);
  return from < to ? f32_loads(row + c, from, to) : f32_zero();
}

// winograd_2 picks elements 0 and 1 of adjacent tiles whose elements are 2 apart in a row, and winograd_4 elements 0 to 3 of those that are 4 apart.
IN void winograd_2(const float *row, int64_t c, int64_t n, const int whole, V *to) {
  V a = winograd_load(row, c, n, whole), b = winograd_load(row, c + W, n, whole);
  to[0] = f32_evens(a, b), to[1] = f32_odds(a, b);
}
IN void winograd_4(const float *row, int64_t c, int64_t n, const int whole, V *to) {
  V low[2], high[2];
  winograd_2(row, c, n, whole, low), winograd_2(row, c + 2 * W, n, whole, high);
  for (int i = 0; i < 2; i++)
    to[i] = f32_evens(low[i], high[i]), to[i + 2] = f32_odds(low[i], high[i]);
}

// The transforms for n = N and r = R, where elements of adjacent tiles are STEP apart, and M×M sums have all products.
#define WINOGRAD(N, R, STEP, M)                                                                    \
  /* Transforms GEMM_ROWS filters of a channel, whose elements follow each other in from. */       \
  IN void winograd_filter_##N(const float *from, float *to, int64_t next) {                        \
    for (int64_t v = 0; v < GEMM_ROWS; v += W) {                                                   \
      V g[R * R], half[R * N], line[N];                                                            \
      for (int i = 0; i < R * R; i++)                                                              \
        g[i] = f32_load(from + i * GEMM_ROWS + v);                                                 \
      for (int q = 0; q < R; q++)                                                                  \
        winograd_line_##N(g + q, R, half + q * N);                                                 \
      for (int r = 0; r < N; r++) {                                                                \
        winograd_line_##N(half + r, N, line);                                                      \
        for (int q = 0; q < N; q++)                                                                \
          f32_store(to + (r * N + q) * next + v, line[q]);                                         \
      }                                                                                            \
    }                                                                                              \
  }                                                                                                \
  /* Transforms count filters of all channels to a panel. */                                       \
  static void winograd_filters_##N(int64_t count, int64_t channels, const float *from, const int64_t *place, float *to) { \
    enum { size = R * R, next = winograd_some * GEMM_ROWS + W };                                   \
    float packed[winograd_some * size * GEMM_ROWS + W], wide[N * N * next];                        \
    __builtin_memset(packed, 0, sizeof packed);                                                    \
    for (int64_t c = 0; c < channels; c += winograd_some) {                                        \
      int64_t some = conv_less(channels - c, winograd_some);                                       \
      f32_pack_panel(0, count, some * size, from + c * size, channels * size, packed, GEMM_ROWS);  \
      for (int64_t i = 0; i < some; i++)                                                           \
        winograd_filter_##N(packed + i * size * GEMM_ROWS, wide + i * GEMM_ROWS, next);            \
      for (int64_t i = 0; i < N * N; i++)                                                          \
        __builtin_memcpy(to + (place[i] * channels + c) * GEMM_ROWS, wide + i * next, (size_t)(some * GEMM_ROWS) * sizeof *to); \
    }                                                                                              \
  }                                                                                                \
  /* Picks the elements of a register of tiles in a row of size elements, from column col on, to N lines. */ \
  IN void winograd_pick_##N(const float *row, int64_t col, int64_t size, const int whole, float *to) { \
    V d[N + STEP];                                                                                 \
    for (int q = 0; q < N; q += STEP)                                                              \
      winograd_##STEP(row, col + q, size, whole, d + q);                                           \
    for (int q = 0; q < N; q++)                                                                    \
      f32_store(to + q * winograd_line, d[q]);                                                     \
  }                                                                                                \
  /* Transforms the input of a register of tiles of one channel. Element i is at at[i] of to. */   \
  IN void winograd_in_##N(const float *from, float *to, const int64_t *at) {                       \
    V d[N * N];                                                                                    \
    for (int i = 0; i < N * N; i++)                                                                \
      d[i] = f32_load(from + i * winograd_line);                                                   \
    for (int q = 0; q < N; q++)                                                                    \
      IN_##N((d + q), N)                                                                           \
    for (int r = 0; r < N; r++) {                                                                  \
      IN_##N((d + r * N), 1)                                                                       \
      for (int q = 0; q < N; q++)                                                                  \
        f32_store(to + at[r * N + q], d[r * N + q]);                                               \
    }                                                                                              \
  }                                                                                                \
  /* Transforms the sums of a register of tiles, which are next apart, to y[row][column]. */       \
  IN void winograd_out_##N(const float *from, int64_t next, V y[2][2]) {                           \
    V m[M], t[2][M];                                                                               \
    for (int q = 0; q < M; q++) {                                                                  \
      for (int r = 0; r < M; r++)                                                                  \
        m[r] = f32_load(from + (r * M + q) * next);                                                \
      OUT_PAIR_##N(m, 1, t[0][q], t[1][q])                                                         \
    }                                                                                              \
    OUT_PAIR_##N(t[0], 1, y[0][0], y[0][1])                                                        \
    OUT_PAIR_##N(t[1], 1, y[1][0], y[1][1])                                                        \
  }
WINOGRAD(4, 3, 2, 4)
WINOGRAD(5, 3, 4, 3)
WINOGRAD(6, 5, 2, 6)
#undef WINOGRAD
#undef IN_4
#undef IN_5
#undef IN_6
#undef OUT_PAIR_4
#undef OUT_PAIR_5
#undef OUT_PAIR_6

// winograd_form has the sizes along an axis: elements of the transforms, elements of the input from one tile to the next, sums, and the sum that each
// element's products are added to.
typedef struct {
  int64_t n, step, sums;
  char sum[6];
} winograd_form;

static const winograd_form winograd_forms[] = {
    [4] = {4, 2, 4, {0, 1, 2, 3}},
    [5] = {5, 4, 3, {0, 0, 1, 2, 2}},
    [6] = {6, 2, 6, {0, 1, 2, 3, 4, 5}},
};

// Finds the places of the n² elements in memory, where those of a sum follow each other, the place of each of the sums² sums' first
// element, and, after the last of these, n².
static void winograd_places(const winograd_form *f, int64_t *place, int64_t *first) {
  int64_t found = 0;
  for (int64_t sum = 0; sum < f->sums * f->sums; sum++) {
    first[sum] = found;
    for (int64_t i = 0; i < f->n * f->n; i++)
      if (f->sum[i / f->n] * f->sums + f->sum[i % f->n] == sum)
        place[i] = found++;
  }
  first[f->sums * f->sums] = found;
}

// Words: n, filters and channels of a group, filters, the memory for the result, and the first panel
// of GEMM_ROWS filters and the one after the last, counted over all groups. The element at place i of n² of
// filter r of panel p and channel c is at ((p·n² + i)·channels + c)·GEMM_ROWS + r.
EXPORT(winograd_filters) {
  int64_t n = w[0].i, filters = w[1].i, channels = w[2].i, panels = (filters + GEMM_ROWS - 1) / GEMM_ROWS, place[36], begin[37];
  winograd_places(winograd_forms + n, place, begin);
  for (int64_t p = w[5].i; p < w[6].i; p++) {
    int64_t first = p % panels * GEMM_ROWS, count = conv_less(GEMM_ROWS, filters - first);
    const float *from = (const float *)w[3].p + (p / panels * filters + first) * channels * (n == 6 ? 25 : 9);
    float *to = (float *)w[4].p + p * n * n * channels * GEMM_ROWS;
    if (n == 4)
      winograd_filters_4(count, channels, from, place, to);
    else if (n == 5)
      winograd_filters_5(count, channels, from, place, to);
    else
      winograd_filters_6(count, channels, from, place, to);
  }
}

// A run of tiles of a strip that are side by side in an image.
typedef struct {
  int64_t tile, tiles;           // the first tile and the number of tiles
  int64_t image, row, col;       // where their input begins
  int64_t out_rows, out_cols, at; // rows and columns of their output, and its place in the output
} winograd_run;

// The tiles of all images of a group follow each other. Finds the runs among count tiles from tile j on, and returns their number.
static int64_t winograd_runs(const conv_shape *s, int64_t step, int64_t out_h, int64_t out_w, int64_t j, int64_t count, winograd_run *runs) {
  int64_t found = 0;
  for (int64_t i = 0, some; i < count; i += some) {
    int64_t line = (j + i) / s->out_cols, col = (j + i) % s->out_cols, image = line / s->out_rows, row = line % s->out_rows;
    some = conv_less(s->out_cols - col, count - i);
    runs[found++] = (winograd_run){i, some, image, step * row - s->down.pad, step * col - s->along.pad, conv_less(2, out_h - 2 * row),
                                   conv_less(2 * some, out_w - 2 * col), image * s->groups * s->filters * out_h * out_w + 2 * row * out_w + 2 * col};
  }
  return found;
}

// Picks what the runs of a strip meet of a channel, with zeros for the padding, and prefetches the same of the next channel. A register may reach past its run, where the next run writes.
IN void winograd_lines(const conv_shape *s, const int64_t n, const int64_t step, const winograd_run *runs, int64_t count, const float *channel, float *to) {
  int64_t size = s->down.size * s->along.size, cols = s->along.size;
  for (const winograd_run *r = runs; r < runs + count; r++) {
    const float *image = channel + r->image * s->groups * s->channels * size;
    int64_t first = r->row > 0 ? r->row : 0, ahead = conv_less(r->row + n, s->down.size) - first;
    for (int64_t i = 0; i < ahead * cols; i += 16)
      __builtin_prefetch(image + size + first * cols + i);
    for (int64_t i = 0; i < n; i++)
      for (int64_t v = 0; v < r->tiles; v += W) {
        float *line = to + i * n * winograd_line + r->tile + v;
        const float *row = image + (r->row + i) * cols;
        int64_t col = r->col + step * v, outside = (uint64_t)(r->row + i) >= (uint64_t)s->down.size;
        int whole = col >= 0 && col + step * W + 2 * step <= cols;
        for (int64_t q = 0; outside && q < n; q++)
          f32_store(line + q * winograd_line, f32_zero());
        if (outside)
          continue;
        if (n == 4)
          whole ? winograd_pick_4(row, col, cols, 1, line) : winograd_pick_4(row, col, cols, 0, line);
        else if (n == 5)
          whole ? winograd_pick_5(row, col, cols, 1, line) : winograd_pick_5(row, col, cols, 0, line);
        else
          whole ? winograd_pick_6(row, col, cols, 1, line) : winograd_pick_6(row, col, cols, 0, line);
      }
  }
}

// Transforms the input of the runs of a strip, whose first channel is at x: element i of the first channel is at at[i] of to, and those of the other channels follow.
// Lines of a channel are made before those of the one before are transformed, as a load that meets several stores waits until these are in the cache.
IN void winograd_strip_of(const conv_shape *s, const int64_t n, const int64_t step, const winograd_run *runs, int64_t count, const float *x, float *to, const int64_t *at) {
  float lines[2][36 * winograd_line] __attribute__((aligned(64)));
  int64_t size = s->down.size * s->along.size;
  __builtin_memset(lines, 0, sizeof lines); // tiles of a short strip that no run has stay finite
  winograd_lines(s, n, step, runs, count, x, lines[0]);
  for (int64_t c = 0; c < s->channels; c++, to += 2 * W) {
    const float *from = lines[c % 2];
    if (c + 1 < s->channels)
      winograd_lines(s, n, step, runs, count, x + (c + 1) * size, lines[(c + 1) % 2]);
    for (int64_t v = 0; v < 2 * W; v += W)
      if (n == 4)
        winograd_in_4(from + v, to + v, at);
      else if (n == 5)
        winograd_in_5(from + v, to + v, at);
      else
        winograd_in_6(from + v, to + v, at);
  }
}

static void winograd_strip(const conv_shape *s, int64_t n, const winograd_run *runs, int64_t count, const float *x, float *to, const int64_t *at) {
  if (n == 4)
    winograd_strip_of(s, 4, 2, runs, count, x, to, at);
  else if (n == 5)
    winograd_strip_of(s, 5, 4, runs, count, x, to, at);
  else
    winograd_strip_of(s, 6, 2, runs, count, x, to, at);
}

// Transforms the sums of a filter for a strip of 2·W tiles, rows apart for the elements of a tile, to the rows of its tiles.
// Returns a register whose elements are 0 unless a result is not finite.
IN V winograd_filter_out(const int64_t n, const float *sums, int64_t next, float bias, float (*rows)[5 * W]) {
  V odd = f32_zero(), add = f32_set(bias);
  for (int v = 0; v < 2; v++) {
    V out[2][2];
    if (n == 4)
      winograd_out_4(sums + v * W, next, out);
    else if (n == 5)
      winograd_out_5(sums + v * W, next, out);
    else
      winograd_out_6(sums + v * W, next, out);
    for (int a = 0; a < 2; a++) {
      V x = f32_add(out[a][0], add), y = f32_add(out[a][1], add);
      odd = f32_add(odd, f32_add(f32_sub(x, x), f32_sub(y, y)));
      f32_store(rows[a] + 2 * v * W, f32_zip0(x, y));
      f32_store(rows[a] + 2 * v * W + W, f32_zip1(x, y));
    }
  }
  return odd;
}

// Transforms the sums of filters for a strip, and stores the runs of the strip: those of a few filters at a time, as a load that meets several stores waits
// until these are in the cache.
IN V winograd_out_of(const int64_t n, const float *sums, int64_t next, int64_t filters, const float *bias, const winograd_run *runs, int64_t count, float *y, int64_t out_w,
                     int64_t outs) {
  enum { most = 4 };
  float rows[most][2][5 * W];
  V odd = f32_zero();
  for (int64_t f = 0; f < filters; f += most) {
    int64_t some = conv_less(most, filters - f);
    for (int64_t i = f; i < f + some; i++)
      odd = f32_add(odd, winograd_filter_out(n, sums + i * 2 * W, next, bias ? bias[i] : 0, rows[i - f]));
    for (int64_t i = 0; i < some; i++)
      for (const winograd_run *r = runs; r < runs + count; r++)
        for (int64_t a = 0; a < r->out_rows; a++)
          f32_conv_out(rows[i][a] + 2 * r->tile, r->out_cols, y + (f + i) * outs + r->at + a * out_w);
  }
  return odd;
}

static V winograd_out(int64_t n, const float *sums, int64_t next, int64_t filters, const float *bias, const winograd_run *runs, int64_t count, float *y, int64_t out_w,
                      int64_t outs) {
  if (n == 4)
    return winograd_out_of(4, sums, next, filters, bias, runs, count, y, out_w, outs);
  if (n == 5)
    return winograd_out_of(5, sums, next, filters, bias, runs, count, y, out_w, outs);
  return winograd_out_of(6, sums, next, filters, bias, runs, count, y, out_w, outs);
}

// Words: those of conv_shape, then n, the height and the width of the output, the parts into which the strips of all tiles of a group are divided, the most strips of
// a part, the first task and the one after the last, each a part and some filters, and the steps by which panels are fetched ahead. The output of the shape are the tiles, and its weights are those of
// winograd_filters. A strip has 2·W tiles. For each element of the transforms, the strips of a part are multiplied with `together` filters, before the next
// element: that many filters of one element and the strips should fit in the second-level cache. Room has memory, each at a multiple of 64 bytes, for the strips of
// transformed input and for the sums; its first element becomes other than 0 if a result is not finite, as transforms spread what is not.
EXPORT(winograd) {
  conv_shape s;
  __builtin_memcpy(&s, w, sizeof s);
  const simd_word *rest = w + sizeof s / sizeof *w;
  const winograd_form *form = winograd_forms + rest[0].i;
  int64_t n = form->n, kinds = form->sums * form->sums, out_h = rest[1].i, out_w = rest[2].i, outs = out_h * out_w, channels = s.channels, parts = rest[3].i;
  int64_t tiles = s.images * s.out_rows * s.out_cols, strips = (tiles + 2 * W - 1) / (2 * W), blocks = (s.filters + s.some - 1) / s.some;
  int64_t panels = (s.filters + GEMM_ROWS - 1) / GEMM_ROWS;
  int64_t place[36], begin[37], at[36], element = channels * 2 * W, strip = n * n * element + kinds * 16;
  int64_t tile = GEMM_ROWS * 2 * W, block = s.together / GEMM_ROWS * tile, all = block * rest[4].i + 16; // sums of a panel and a strip, of a strip, of an element
  float *room = s.room, *right = room + 16, *sums = right + rest[4].i * strip;
  winograd_run runs[2 * W];
  winograd_places(form, place, begin);
  for (int64_t sum = 0; sum < kinds; sum++) // sums begin at different offsets in a page
    for (int64_t i = 0; i < n * n; i++)
      if (place[i] >= begin[sum] && place[i] < begin[sum + 1])
        at[i] = place[i] * element + sum * 16;
  *room = 0;
  for (int64_t task = rest[5].i; task < rest[6].i; task++) {
    int64_t part = task / blocks % parts, group = task / blocks / parts, first = task % blocks * s.some, count = conv_less(s.some, s.filters - first);
    int64_t from = strips * part / parts * 2 * W, some = strips * (part + 1) / parts - strips * part / parts;
    const float *x = (const float *)s.x + group * channels * s.down.size * s.along.size;
    for (int64_t j = 0; j < some; j++) {
      int64_t one = from + j * 2 * W, left = conv_less(tiles - one, 2 * W), found = winograd_runs(&s, form->step, out_h, out_w, one, left, runs);
      if (left < 2 * W)
        __builtin_memset(right + j * strip, 0, (size_t)strip * sizeof *right);
      winograd_strip(&s, n, runs, found, x, right + j * strip, at);
    }
    const float *bias = s.bias ? (const float *)s.bias + group * s.filters + first : NULL;
    float *y = (float *)s.y + (group * s.filters + first) * outs;
    for (int64_t f = 0; f < count; f += s.together) {
      int64_t filters = conv_less(s.together, count - f);
      const float *left = (const float *)s.weights + (group * panels + (first + f) / GEMM_ROWS) * n * n * channels * GEMM_ROWS;
      for (int64_t sum = 0; sum < kinds; sum++)
        for (int64_t j = 0; j < some; j++)
          for (int64_t p = 0, depth = (begin[sum + 1] - begin[sum]) * channels, nv = tiles - (from + j * 2 * W) > W ? 2 : 1; p * GEMM_ROWS < filters; p++) {
            const float *a = left + (p * n * n + begin[sum]) * channels * GEMM_ROWS, *b = right + j * strip + begin[sum] * element + sum * 16;
            float *to = sums + sum * all + j * block + p * tile;
            if (filters >= (p + 1) * GEMM_ROWS && nv == 2)
              f32_gemm_whole(depth, a, b, to, 2 * W, 1, 0, rest[7].i);
            else
              f32_gemm_kernels[conv_less(filters - p * GEMM_ROWS, GEMM_ROWS)][nv](depth, a, 1, GEMM_ROWS, b, 2 * W, to, 2 * W, 1, 0, W);
          }
      V odd = f32_zero();
      for (int64_t j = 0; j < some; j++) {
        int64_t one = from + j * 2 * W, found = winograd_runs(&s, form->step, out_h, out_w, one, conv_less(tiles - one, 2 * W), runs);
        if (tiles - one <= W) // the second register has no tiles
          for (int64_t sum = 0; sum < kinds; sum++)
            for (int64_t i = 0; i < filters; i++)
              f32_store(sums + sum * all + j * block + i * 2 * W + W, f32_zero());
        odd = f32_add(odd, winograd_out(n, sums + j * block, all, filters, bias ? bias + f : NULL, runs, found, y + f * outs, out_w, outs));
      }
      if (f32_sum(odd) != 0)
        *room = 1;
    }
  }
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

#undef V
#undef W
