// Codes of vectors, 4 bits for each of their parts (product quantization; Jégou, Douze and Schmid, 2011), and searches in them by tables that
// stay in registers (André, Kermarrec and Le Scouarnec, 2015).
//
// A code of b bytes has 2·b parts. Part p is the components from p·dim/(2·b) up to (p+1)·dim/(2·b), and its 4 bits choose one of 16 values for each
// of these; byte j has part 2·j in its low bits. A book has the 16 values of every component. A block has the codes of 64 vectors: the first bytes of all, then the second
// ones, and so on. The same calls give the same bits on all instruction sets.

enum { codes_BLOCK = 64, codes_MOST = 127, codes_R = codes_BLOCK / b8_BYTES, codes_F = 16 / f32_W };

#if defined(__clang__)
#define UNROLL
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

// The squared distances of n components from the 16 values of each. Products are not added in one step, which would round otherwise.
IN void codes_far(const float *x, const float *book, int64_t n, float *to) {
  f32_v s[codes_F];
  UNROLL for (int r = 0; r < codes_F; r++)
    s[r] = f32_zero();
  for (int64_t d = 0; d < n; d++) {
    f32_v v = f32_set(x[d]);
    UNROLL for (int r = 0; r < codes_F; r++) {
      f32_v far = f32_sub(v, f32_load(book + 16 * d + r * f32_W));
      far = f32_mul(far, far);
      IN_REGISTER(far);
      s[r] = f32_add(s[r], far);
    }
  }
  UNROLL for (int r = 0; r < codes_F; r++)
    f32_store(to + r * f32_W, s[r]);
}

// The codes of points: in each part the first of the values that are nearest. Words: points, their number, components, bytes of a code, the book, codes.
EXPORT(codes_encode) {
  const float *x = w[0].p, *book = w[4].p;
  int64_t dim = w[2].i, bytes = w[3].i;
  uint8_t *to = w[5].p;
  for (int64_t i = 0; i < w[1].i; i++, x += dim, to += bytes)
    for (int64_t p = 0; p < 2 * bytes; p++) {
      int64_t lo = p * dim / (2 * bytes), hi = (p + 1) * dim / (2 * bytes);
      float far[16], least;
      codes_far(x + lo, book + 16 * lo, hi - lo, far);
      int at = 0;
      least = far[0];
      for (int c = 1; c < 16; c++) {
        at = far[c] < least ? c : at;
        least = far[c] < least ? far[c] : least;
      }
      to[p / 2] = (uint8_t)(p % 2 ? to[p / 2] | at << 4 : at);
    }
}

// A table for a point: for each part the squared distances from its 16 values, in steps above the least of them, up to 127. After it are two floats: the sum of
// the least distances, and the step. Words: the point, components, bytes of a code, the book, the table.
EXPORT(codes_table) {
  const float *x = w[0].p, *book = w[3].p;
  int64_t dim = w[1].i, bytes = w[2].i;
  uint8_t *to = w[4].p;
  float far[4096], least[256], end[2] = {0, 0}, by;
  for (int64_t p = 0; p < 2 * bytes; p++) {
    int64_t lo = p * dim / (2 * bytes), hi = (p + 1) * dim / (2 * bytes);
    codes_far(x + lo, book + 16 * lo, hi - lo, far + 16 * p);
    f32_v most = f32_load(far + 16 * p), less = f32_sub(f32_zero(), most);
    UNROLL for (int r = 1; r < codes_F; r++) {
      f32_v v = f32_load(far + 16 * p + r * f32_W);
      most = f32_max(most, v);
      less = f32_max(less, f32_sub(f32_zero(), v));
    }
    least[p] = -f32_largest(less);
    float range = f32_largest(most) - least[p];
    end[0] += least[p];
    end[1] = range > end[1] ? range : end[1];
  }
  by = end[1] > 1e-30f ? codes_MOST / end[1] : 0;
  end[1] /= codes_MOST;
  for (int64_t p = 0; p < 2 * bytes; p++)
    UNROLL for (int r = 0; r < codes_F; r++)
      f32_put8(to + 16 * p + r * f32_W, f32_near(f32_mul(f32_sub(f32_load(far + 16 * p + r * f32_W), f32_set(least[p])), f32_set(by))));
  memcpy(to + 32 * bytes, end, sizeof end);
}

// Finds the vectors for which the sum of a table's numbers is at most a limit. Words: the table, bytes of a code, blocks, the number of vectors in them, up
// to 65,536, the limit, from 0 to 32,767, and the results: their number, then for each place·65536 + sum, in order.
EXPORT(codes_scan) {
  const uint8_t *table = w[0].p, *block = w[2].p;
  int64_t bytes = w[1].i, n = w[3].i, limit = w[4].i;
  uint32_t *to = w[5].p, *first = to++;
  b8_v most = b8_set16((int16_t)limit);
  for (int64_t at = 0; at < n; at += codes_BLOCK, block += codes_BLOCK * bytes) {
    b8_v all[codes_R], odd[codes_R]; // sums of vectors with even places plus 256 times those with odd ones, and the latter
    UNROLL for (int r = 0; r < codes_R; r++)
      all[r] = odd[r] = b8_zero();
    for (int64_t j = 0; j < bytes; j++) {
      b8_v low = b8_table(table + 32 * j), high = b8_table(table + 32 * j + 16);
      UNROLL for (int r = 0; r < codes_R; r++) {
        b8_v v = b8_load(block + codes_BLOCK * j + r * b8_BYTES);
        b8_v sum = b8_add8(b8_look(low, b8_codes(v, 0, 15)), b8_look(high, b8_codes(v, 4, 15)));
        all[r] = b8_add16(all[r], sum);
        odd[r] = b8_add16(odd[r], b8_high16(sum));
      }
    }
    b8_v least = b8_set16(INT16_MAX);
    UNROLL for (int r = 0; r < codes_R; r++) {
      all[r] = b8_sub16(all[r], b8_left16(odd[r]));
      least = b8_min16(least, b8_min16(all[r], odd[r]));
    }
    if (!b8_upto16(least, most))
      continue;
    uint16_t sums[2][codes_BLOCK / 2];
    UNROLL for (int r = 0; r < codes_R; r++) {
      b8_store(sums[0] + r * b8_BYTES / 2, all[r]);
      b8_store(sums[1] + r * b8_BYTES / 2, odd[r]);
    }
    int64_t here = n - at < codes_BLOCK ? n - at : codes_BLOCK;
    for (int64_t i = 0; i < here; i++)
      if (sums[i % 2][i / 2] <= limit)
        *to++ = (uint32_t)(at + i) << 16 | sums[i % 2][i / 2];
  }
  *first = (uint32_t)(to - first - 1);
}
#undef UNROLL
