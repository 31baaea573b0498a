// Convolution with filters that are longer than the output, as gradients of filters are: each element of the output is a dot
// product of a filter with a plane. The planes are those of conv.h with output and filter in each other's place: a plane has an
// element of the image for each element of the filter, and places of the output whose distance is a multiple of the dilation share
// one. The rows of filters are copied with as many zeros at their ends as rows of planes are longer, so that a dot product
// is one loop over all rows, and over several channels if they are short.
#define V CAT(T, v)
#define W CAT(T, W)

// gcc keeps arrays of vectors in registers only if it unrolls the loops over them.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3")
#endif

// Adds to sums the dot products of F filters, ldf elements apart, with N parts of the planes, which begin at[i] elements from x. n is a
// number of whole registers.
#define LONG_TILE(F, N)                                                                                                       \
  static __attribute__((noinline)) void CAT(T, long_##F##_##N)(int64_t n, const E *filters, int64_t ldf, const E *x,          \
                                                               const int64_t *at, E *sums, int64_t lds) {                     \
    V s[F * N];                                                                                                               \
    const E *from[N];                                                                                                         \
    for (int i = 0; i < F * N; i++)                                                                                           \
      s[i] = CAT(T, zero)();                                                                                                  \
    for (int k = 0; k < N; k++)                                                                                               \
      from[k] = x + at[k];                                                                                                    \
    for (int64_t j = 0; j < n; j += W) {                                                                                      \
      V f[F];                                                                                                                 \
      for (int i = 0; i < F; i++)                                                                                             \
        f[i] = CAT(T, load)(filters + i * ldf + j);                                                                           \
      for (int k = 0; k < N; k++) {                                                                                           \
        V v = CAT(T, load)(from[k] + j);                                                                                      \
        IN_REGISTER(v);                                                                                                       \
        for (int i = 0; i < F; i++)                                                                                           \
          s[i * N + k] = CAT(T, fma)(f[i], v, s[i * N + k]);                                                                  \
      }                                                                                                                       \
    }                                                                                                                         \
    for (int i = 0; i < F; i++)                                                                                               \
      for (int k = 0; k < N; k++)                                                                                             \
        sums[i * lds + k] += CAT(T, sum)(s[i * N + k]);                                                                       \
  }
#define LONG_TILES(F) LONG_EACH(LONG_TILE, F)
LONG_ROWS(LONG_TILES)
#undef LONG_TILES
#undef LONG_TILE

typedef void CAT(T, long_tile)(int64_t n, const E *filters, int64_t ldf, const E *x, const int64_t *at, E *sums, int64_t lds);
#define LONG_NAME(F, N) [N] = CAT(T, long_##F##_##N),
#define LONG_NAMES(F) [F] = {LONG_EACH(LONG_NAME, F)},
static CAT(T, long_tile) *const CAT(T, long_tiles)[LONG_FILTERS + 1][LONG_PLACES + 1] = {LONG_ROWS(LONG_NAMES)};
#undef LONG_NAMES
#undef LONG_NAME

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

// Copies rows of n channels, step elements apart, to a plane, and writes zeros to its end.
static void CAT(T, long_plane)(const conv_shape *s, const E *from, int64_t step, int64_t n, int64_t lines, int64_t row, int64_t col, E *to) {
  int64_t span = lines * s->pitch;
  for (int64_t c = 0; c < n; c++)
    CAT(T, conv_plane)(s, from + c * step, lines, row, col, to + c * span);
  CAT(T, conv_zero)(s->plane - n * span, to + n * span);
}

// Adds to sums the products of lone_rows rows of a filter with row r of what they meet, for 3×3 places.
IN void CAT(T, long_beside_from)(const int r, const CAT(T, conv_meet) *m, int64_t j, V left, V right, const V *filter, V *sum) {
  enum { rows = CAT(T, lone_rows) };
  const int first = r < 2 ? 0 : r - 2, last = r < rows ? r : rows - 1;
  if (!m->rows[r])
    return;
  ALL_STEPS for (int q = 0; q < 3; q++) {
    V x = CAT(T, conv_met)(m, r, q, j, 1, 1, left, right);
    ALL_STEPS for (int i = first; i <= last; i++)
      sum[3 * (r - i) + q] = CAT(T, fma)(filter[i], x, sum[3 * (r - i) + q]);
  }
}

// Adds to sums the dot products of a filter with an image for 3×3 places. The last register of a row overlaps the one before, where its elements of the filter are zeros.
static void CAT(T, long_beside)(const conv_shape *s, const E *filter, const E *image, E *sums) {
  enum { rows = CAT(T, lone_rows) };
  CAT(T, conv_meet) m;
  E fresh[W];
  V sum[9], f[rows], one = CAT(T, set)(1);
  int64_t cols = s->out_cols, end = cols - W;
  CAT(T, conv_meet_columns)(&s->along, cols, &m);
  for (int64_t i = 0; i < W; i++)
    fresh[i] = end + i >= (cols - 1) / W * W;
  ALL_STEPS for (int i = 0; i < 9; i++)
    sum[i] = CAT(T, zero)();
  for (int64_t row = 0; row < s->out_rows; row += rows, filter += rows * cols) {
    CAT(T, conv_meet_image)(s, image, row, &m);
    CAT(T, conv_ahead)(image + row * s->along.size, rows * s->along.size);
    CAT(T, conv_ahead)(filter, rows * cols);
    for (int64_t j = 0; j < cols; j += W) {
      int64_t at = conv_less(j, end);
      V left = j == 0 ? m.left : one, right = j < end ? one : m.right;
      ALL_STEPS for (int i = 0; i < rows; i++) {
        f[i] = row + i < s->out_rows ? CAT(T, load)(filter + i * cols + at) : CAT(T, zero)();
        if (j > end)
          f[i] = CAT(T, less)(CAT(T, zero)(), CAT(T, load)(fresh), f[i], CAT(T, zero)());
      }
      CAT(T, long_beside_from)(0, &m, at, left, right, f, sum);
      CAT(T, long_beside_from)(1, &m, at, left, right, f, sum);
      CAT(T, long_beside_from)(2, &m, at, left, right, f, sum);
      CAT(T, long_beside_from)(3, &m, at, left, right, f, sum);
      if (rows == 4) {
        CAT(T, long_beside_from)(rows, &m, at, left, right, f, sum);
        CAT(T, long_beside_from)(rows + 1, &m, at, left, right, f, sum);
      }
    }
  }
  ALL_STEPS for (int i = 0; i < 9; i++)
    sums[i] += CAT(T, sum)(sum[i]);
}

// Reports whether a task is one filter with one image of each channel, whose places are 3×3 neighbours in the images themselves.
static int CAT(T, long_is_beside)(const conv_shape *s) {
  const int64_t *at = s->steps, pitch = s->pitch;
  return s->filters == 1 && s->batch == 1 && s->places == 9 && !s->packed && at[1] == 1 && at[2] == 2 && at[3] == pitch && at[5] == pitch + 2 && at[6] == 2 * pitch && at[8] == 2 * pitch + 2 &&
         CAT(T, conv_near)(&s->down, &s->along, s->out_cols);
}

// The distances of a tensor's neighbouring groups, images and channels, or filters and channels, or images and filters, in elements.
typedef struct {
  int64_t group, outer, inner;
} long_steps;

// Computes the output of a task. s->rows are the rows of a filter that are copied at a time, s->deep the channels, s->sums the images
// whose planes are made at a time. If s->packed is set, planes and filters are parts of the operands themselves, whole registers long.
static int CAT(T, long_part)(const conv_shape *s, const long_steps *in, const long_steps *by, const long_steps *out, int64_t task) {
  int64_t blocks = (s->filters + s->some - 1) / s->some, parts = (s->images + s->batch - 1) / s->batch;
  int64_t f0 = task % blocks * s->some, count = conv_less(s->filters - f0, s->some), group = task / blocks / parts;
  int64_t i0 = task / blocks % parts * s->batch, images = conv_less(s->images - i0, s->batch), lds = images * s->places;
  const E *x = (const E *)s->x + group * in->group + i0 * in->outer, *weights = (const E *)s->weights + group * by->group + f0 * by->outer;
  E *sums = (E *)s->room, *rows = sums + (s->batch * s->places * s->some + W - 1) / W * W, *planes = rows + s->some * s->plane + W;
  conv_shape filter = *s; // as an image that the planes are copies of
  conv_axis down = {s->out_rows, 1, 0, 1, 1, 1}, along = {s->out_cols, 1, 0, 1, 1, 1};
  filter.down = down, filter.along = along;
  for (int64_t i = 0; i < count * lds; i++)
    sums[i] = 0;
  int beside = CAT(T, long_is_beside)(s);
  for (int64_t c = 0, n; c < s->channels; c += n) {
    if (n = 1, beside && CAT(T, conv_inside)(s, x + c * in->inner)) {
      CAT(T, long_beside)(s, weights + c * by->inner, x + c * in->inner, sums);
      continue;
    }
    n = conv_less(s->channels - c, s->deep);
    for (int64_t row = 0, some; row < s->out_rows; row += some) {
      some = conv_less(s->out_rows - row, s->rows);
      int64_t lines = some + s->lines - s->rows, length = (((n - 1) * lines + some) * s->pitch + W - 1) / W * W;
      const E *left = weights + c * by->inner + row * s->pitch;
      int64_t ldf = by->outer;
      if (!s->packed) {
        for (int64_t f = 0; f < count; f++) // rows beyond those of this part of a filter are of no use, but only between channels
          if (n > 1)
            CAT(T, long_plane)(&filter, weights + f * by->outer + c * by->inner, by->inner, n, lines, row, 0, rows + f * s->plane);
          else
            CAT(T, long_plane)(&filter, weights + f * by->outer + c * by->inner, by->inner, 1, some, row, 0, rows + f * s->plane);
        left = rows, ldf = s->plane;
      }
      for (int64_t i = 0, few; i < images; i += few) {
        few = conv_less(images - i, s->sums);
        const E *right = s->packed ? x + i * in->outer + c * in->inner + row * s->pitch : planes;
        E *to = planes;
        for (int64_t k = 0; k < few && !s->packed; k++)
          for (int64_t r = 0; r < s->down.planes; r++)
            for (int64_t q = 0; q < s->along.planes; q++, to += s->plane)
              CAT(T, long_plane)(s, x + (i + k) * in->outer + c * in->inner, in->inner, n, lines, conv_first(&s->down, r, row), conv_first(&s->along, q, 0), to);
        int64_t places = few * s->places, tall = (count + LONG_FILTERS - 1) / LONG_FILTERS, wide = (places + LONG_PLACES - 1) / LONG_PLACES;
        for (int64_t p = 0; p < tall; p++)
          for (int64_t q = 0; q < wide; q++) {
            int64_t f = count * p / tall, k = places * q / wide;
            CAT(T, long_tiles)[count * (p + 1) / tall - f][places * (q + 1) / wide - k](length, left + f * ldf, ldf, right, s->steps + k,
                                                                                         sums + f * lds + i * s->places + k, lds);
          }
      }
    }
  }
  E *y = (E *)s->y + group * out->group + i0 * out->outer + f0 * out->inner;
  const E *bias = s->bias ? (const E *)s->bias + group * s->filters + f0 : NULL;
  int odd = 0;
  for (int64_t f = 0; f < count; f++)
    for (int64_t i = 0; i < images; i++)
      for (int64_t k = 0; k < s->places; k++) {
        E v = sums[f * lds + i * s->places + k] + (bias ? bias[f] : 0);
        y[i * out->outer + f * out->inner + k] = v;
        odd |= !(v - v == 0);
      }
  return odd;
}

typedef int CAT(T, long_task)(const conv_shape *s, const long_steps *in, const long_steps *by, const long_steps *out, int64_t task);

IN void CAT(T, long_tasks)(const simd_word *w, CAT(T, long_task) *part) {
  conv_shape s;
  long_steps steps[3];
  __builtin_memcpy(&s, w, sizeof s);
  w += sizeof s / sizeof *w;
  __builtin_memcpy(steps, w, sizeof steps);
  w += sizeof steps / (sizeof *w);
  for (int64_t i = w[0].i; i < w[1].i; i++)
    if (part(&s, &steps[0], &steps[1], &steps[2], i))
      __atomic_store_n((int64_t *)w[2].p, 1, __ATOMIC_RELAXED);
}

// Words: those of conv_shape, with distances in the planes from their beginning for steps; the distances in x, the weights and y; the
// first task and the one after the last; where to store a 1 if a result is not finite. What is infinite or NaN in an image has then spread to places of the output
// that do not meet it.
EXPORT(CAT(T, conv_long)) { CAT(T, long_tasks)(w, CAT(T, long_part)); }

#undef V
#undef W
