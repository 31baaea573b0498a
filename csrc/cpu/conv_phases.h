// Convolution of images with gaps between their elements, as in transposed ones. The rows of the output, and likewise its columns, are in as many phases as there
// are remainders by the distance of the elements: each phase meets other elements of the filter, and is a convolution without gaps.
#define V CAT(T, v)
#define W CAT(T, W)

// A phase of rows and columns: the elements of the filter that it meets, how far the planes reach before its first one, the distances in
// the planes from each of these to the next, channel after channel, and its filters in panels of GEMM_ROWS.
typedef struct {
  int64_t places, first;
  const int64_t *steps;
  const E *weights;
} CAT(T, phase);

// Stores n elements of a and of b in turn.
IN void CAT(T, conv_pairs)(const E *a, const E *b, int64_t n, E *to) {
  int64_t i = 0;
  for (; i + W <= n; i += W) {
    V x = CAT(T, load)(a + i), y = CAT(T, load)(b + i);
    CAT(T, store)(to + 2 * i, CAT(T, zip0)(x, y));
    CAT(T, store)(to + 2 * i + W, CAT(T, zip1)(x, y));
  }
  if (i == n)
    return;
  int64_t left = 2 * (n - i);
  V x = CAT(T, loadm)(a + i, CAT(T, first)(n - i)), y = CAT(T, loadm)(b + i, CAT(T, first)(n - i));
  CAT(T, storem)(to + 2 * i, CAT(T, first)(left < W ? left : W), CAT(T, zip0)(x, y));
  if (left > W)
    CAT(T, storem)(to + 2 * i + W, CAT(T, first)(left - W), CAT(T, zip1)(x, y));
}

// Makes a row of cols elements, of which element j is element j / count of part j % count, or of the next part of those that are apart.
IN void CAT(T, conv_zip_row)(int64_t count, int64_t cols, const E *parts, int64_t apart, E *to) {
  if (count == 1)
    CAT(T, conv_out)(parts, cols, to);
  else if (count == 2) {
    CAT(T, conv_pairs)(parts, parts + apart, cols / 2, to);
    if (cols % 2)
      to[cols - 1] = parts[cols / 2];
  } else
    for (int64_t p = 0; p < count; p++)
      for (int64_t j = p; j < cols; j += count)
        to[j] = parts[p * apart + j / count];
}

// Makes rows of which column j comes from part j % count. Words: count, the number of columns, that of lines of a part, the rows of a plane, the parts, each after the
// other, where the first row goes, the distances there of rows and of planes in elements, the first line and the one after the last.
EXPORT(CAT(T, conv_zip)) {
  int64_t count = w[0].i, cols = w[1].i, lines = w[2].i, rows = w[3].i, most = (cols + count - 1) / count;
  for (int64_t line = w[8].i; line < w[9].i; line++) {
    E *to = (E *)w[5].p + line % rows * w[6].i + line / rows * w[7].i;
    const E *from = w[4].p;
    if (count == 2) {
      CAT(T, conv_pairs)(from + line * most, from + lines * most + line * (cols / 2), cols / 2, to);
      if (cols % 2)
        to[cols - 1] = from[line * most + most - 1];
      continue;
    }
    for (int64_t p = 0; p < count; p++) {
      int64_t n = (cols - p + count - 1) / count;
      for (int64_t j = 0; j < n; j++)
        to[j * count + p] = from[line * n + j];
      from += lines * n;
    }
  }
}

// Computes phases whose elements are neighbours in the image, all from the same planes, one for each channel. Words: those of conv_shape, whose output is the
// largest phase, and whose memory has the planes of all channels and the sums of `together` filters in all phases; the number of phases of rows and of columns, the height and the width
// of the output, the phases, and the first task and the one after the last.
EXPORT(CAT(T, conv_phases)) {
  conv_shape s;
  __builtin_memcpy(&s, w, sizeof s);
  const simd_word *rest = w + sizeof s / sizeof *w;
  int64_t down = rest[0].i, along = rest[1].i, out_h = rest[2].i, out_w = rest[3].i, apart = s.together * s.sums;
  const CAT(T, phase) *phases = rest[4].p;
  E *sums = (E *)s.room + s.channels * s.plane + W;
  for (int64_t task = rest[5].i; task < rest[6].i; task++) {
    conv_task t = conv_task_of(&s, task);
    CAT(T, conv_planes)(&s, &t, 0, s.channels);
    int64_t n = ((t.rows - 1) * s.pitch + s.out_cols + W - 1) / W * W;
    E *y = (E *)s.y + (t.image * s.groups + t.group) * s.filters * out_h * out_w;
    for (; t.filter < s.filters; t.filter += s.together) {
      t.filters = conv_less(s.together, s.filters - t.filter);
      for (int64_t i = 0; i < down * along; i++) {
        conv_shape q = s;
        q.places = phases[i].places, q.steps = phases[i].steps, q.weights = phases[i].weights, q.room = (E *)s.room + phases[i].first;
        CAT(T, conv_rows)(&q, &t, 0, t.filters, 0, s.channels, n, sums + i * apart, s.sums);
      }
      for (int64_t f = 0; f < t.filters; f++)
        for (int64_t row = t.row * down; row < conv_less((t.row + t.rows) * down, out_h); row++)
          CAT(T, conv_zip_row)(along, out_w, sums + row % down * along * apart + f * s.sums + (row / down - t.row) * s.pitch, apart,
                               y + ((t.filter + f) * out_h + row) * out_w);
    }
  }
}
#undef V
#undef W
