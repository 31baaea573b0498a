// transpose, which moves elements without computing.

// Copies bytes past the caches, except those before the first and after the last whole line.
static void past_copy(void *to, const void *from, int64_t n) {
  char *q = to;
  const char *p = from;
  int64_t head = (int64_t)(-(uintptr_t)q & 63);
  if (head > n)
    head = n;
  memcpy(q, p, (size_t)head);
  for (q += head, p += head, n -= head; n >= 64; q += 64, p += 64, n -= 64)
    past_line(q, p);
  memcpy(q, p, (size_t)n);
}

// Transposes a tile of rows that are ld apart: to[c·step + r]. Each row is read once, because their
// lines may all belong to the same set of the cache. Two lines of each row of the next tile
// are prefetched.
#define TURN(E, NAME, SIDE, PIECE)                                                                 \
  IN void NAME(const E *from, int64_t ld, int64_t rows, int64_t cols, E *to, int64_t step, const E *next) { \
    int64_t r = 0;                                                                                 \
    for (; r + SIDE <= rows; r += SIDE) {                                                          \
      int64_t c = 0;                                                                               \
      for (int k = 0; next && k < SIDE; k++)                                                       \
        __builtin_prefetch((char *)(next + (r + k) * ld) + 63, 0, 2), __builtin_prefetch((char *)(next + (r + k) * ld) + 127, 0, 2); \
      for (; c + SIDE <= cols; c += SIDE)                                                          \
        PIECE(from + r * ld + c, ld, to + c * step + r, step);                                     \
      for (; c < cols; c++)                                                                        \
        for (int64_t k = 0; k < SIDE; k++)                                                         \
          to[c * step + r + k] = from[(r + k) * ld + c];                                           \
    }                                                                                              \
    for (; r < rows; r++)                                                                          \
      for (int64_t c = 0; c < cols; c++)                                                           \
        to[c * step + r] = from[r * ld + c];                                                       \
  }
TURN(uint8_t, turn_1, 8, u8_turn8)
TURN(uint16_t, turn_2, 8, u16_turn8)
TURN(float, turn_4, 4, f32_turn4)
TURN(double, turn_8, 4, f64_turn4)
#undef TURN

// Stores the bytes of a column of a tile past the caches, in whole lines: those that begin
// within band bytes, and at the ends of the matrix the rest. left is the number of bytes up to the
// end.
IN void past_column(char *to, const char *column, int64_t band, int64_t left, int first) {
  int64_t i = (int64_t)(-(uintptr_t)to & 63), end = left <= band || i + band > left ? left : i + band;
  if (first)
    memcpy(to, column, (size_t)(i < end ? i : end) & 63); // the mask tells compilers that there are fewer than 64
  for (; i + 64 <= end; i += 64)
    past_line(to + i, column + i);
  if (i < end)
    memcpy(to + i, column + i, (size_t)(end - i));
}

// Transposes a range of rows and columns, in tiles in the first-level cache that are two lines wide
// and follow each other along the rows. The result is stored past the caches, or (with ahead) its
// lines are prefetched like those of the input. If columns of the result begin within cache lines,
// a tile has the rows of one more line, so that whole lines can be stored. Matrices of few rows
// have tiles along the rows of the result.
#define TRANSPOSE(E, NAME, TURNED)                                                                 \
  static void NAME(int64_t rows, int64_t cols, const E *in, E *out, const simd_word *w) {          \
    enum { LINE = 64 / sizeof(E), WIDE = 2 * LINE, HIGH = sizeof(E) == 1 ? 128 : 4 * LINE, STEP = HIGH + LINE, FEW = 2 * STEP }; \
    E tile[WIDE * STEP] __attribute__((aligned(64)));                                              \
    int64_t r0 = w[5].i, r1 = w[6].i, c0 = w[7].i, c1 = w[8].i, size = sizeof(E);                  \
    int past = w[9].i == 1, ahead = w[9].i == 2;                                                   \
    int64_t more = !past || (rows % LINE == 0 && ((uintptr_t)out & 63) == 0) ? 0 : LINE;           \
    for (int64_t c = c0, wide; c < c1 && rows <= FEW; c += wide) {                                 \
      wide = c1 - c < WIDE * STEP / rows ? c1 - c : WIDE * STEP / rows;                            \
      TURNED(in + c, cols, rows, wide, tile, rows, NULL);                                          \
      if (past)                                                                                    \
        past_copy(out + c * rows, tile, wide * rows * size);                                       \
      else                                                                                         \
        memcpy(out + c * rows, tile, (size_t)(wide * rows * size));                                \
    }                                                                                              \
    for (int64_t r = r0; r < r1 && rows > FEW; r += HIGH) {                                        \
      int64_t left = rows - r, high = left < HIGH + more ? left : HIGH + more;                     \
      for (int64_t c = c0; c < c1; c += WIDE) {                                                    \
        int64_t wide = c1 - c < WIDE ? c1 - c : WIDE;                                              \
        const E *from = in + r * cols + c;                                                         \
        E *to = out + c * rows + r;                                                                \
        for (int64_t k = 0; ahead && k < wide; k++)                                                \
          for (int64_t l = 0; l < high; l += LINE)                                                 \
            __builtin_prefetch(to + k * rows + l, 1, 2);                                           \
        TURNED(from, cols, high, wide, tile, STEP, c + WIDE < c1 ? from + WIDE : NULL);            \
        for (int64_t k = 0; k < wide; k++)                                                         \
          if (past)                                                                                \
            past_column((char *)(to + k * rows), (char *)(tile + k * STEP), HIGH * size, left * size, r == 0); \
          else                                                                                     \
            memcpy(to + k * rows, tile + k * STEP, (size_t)(high * size));                         \
      }                                                                                            \
    }                                                                                              \
  }
TRANSPOSE(uint8_t, transpose_1, turn_1)
TRANSPOSE(uint16_t, transpose_2, turn_2)
TRANSPOSE(float, transpose_4, turn_4)
TRANSPOSE(double, transpose_8, turn_8)
#undef TRANSPOSE

// Words: bytes of an element, rows, columns, in, out, first row and the one after the last, first
// column and the one after the last, 1 if the result is larger than the caches, 2 if it is larger
// than the second-level cache. Rows are whole bands of cpu/simd_move.go.
EXPORT(move_transpose) {
  int64_t rows = w[1].i, cols = w[2].i;
  switch (w[0].i) {
  case 1:
    transpose_1(rows, cols, w[3].p, w[4].p, w);
    break;
  case 2:
    transpose_2(rows, cols, w[3].p, w[4].p, w);
    break;
  case 4:
    transpose_4(rows, cols, w[3].p, w[4].p, w);
    break;
  default:
    transpose_8(rows, cols, w[3].p, w[4].p, w);
  }
  past_end();
}
