// What is moved and not computed: fill, copy, transpose.

// Words: out, bytes, the pattern of 8 bytes, 1 if it is larger than the caches. out is
// aligned to the size of the elements, of which the pattern has several.
static void move_fill(const simd_word *w) {
  char *q = w[0].p;
  int64_t n = w[1].i, i = 0;
  uint64_t bits = (uint64_t)w[2].i;
  if (w[3].i) {
    uint64_t head = -(uintptr_t)q & 63;
    for (; i < n && (uint64_t)i < head; i++)
      q[i] = (char)(bits >> 8 * (i & 7));
    int turn = 8 * (int)(head & 7); // what a line begins with
    bits = turn ? bits >> turn | bits << (64 - turn) : bits;
    for (; i + 64 <= n; i += 64)
      past_set(q + i, bits);
    past_end();
    for (int64_t k = 0; i < n; i++, k++)
      q[i] = (char)(bits >> 8 * (k & 7));
    return;
  }
  for (; i + 64 <= n; i += 64)
    line_set(q + i, bits);
  for (; i + 8 <= n; i += 8)
    memcpy(q + i, &bits, 8);
  memcpy(q + i, &bits, (size_t)(n - i));
}

// Words: out, in, bytes, 1 if that is more than the caches hold.
static void move_copy(const simd_word *w) {
  if (w[3].i) {
    past_copy(w[0].p, w[1].p, w[2].i);
    past_end();
  } else
    memcpy(w[0].p, w[1].p, (size_t)w[2].i);
}

// A tile of rows, ld apart, as columns: to[c·step + r]. Rows are gone through once, as
// their lines may all want the same place in the cache.
#define TURN(E, NAME, SIDE, PIECE)                                                                 \
  IN void NAME(const E *from, int64_t ld, int64_t rows, int64_t cols, E *to, int64_t step) {       \
    int64_t r = 0;                                                                                 \
    for (; r + SIDE <= rows; r += SIDE) {                                                          \
      int64_t c = 0;                                                                               \
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

// A band of columns becomes rows of the result by way of tiles in the first cache, some
// lines by some lines large; where the lines of the result are whole, they pass the caches.
#define TRANSPOSE(E, NAME, TURNED)                                                                 \
  static void NAME(int64_t rows, int64_t cols, const E *in, E *out, int64_t c0, int64_t c1, int past) { \
    enum { LINE = 64 / sizeof(E), SIDE = sizeof(E) < 4 ? 128 : 256 / sizeof(E) };                  \
    E tile[SIDE * SIDE] __attribute__((aligned(64)));                                              \
    past = past && rows % LINE == 0 && ((uintptr_t)out & 63) == 0;                                 \
    for (int64_t c = c0; c < c1; c += SIDE) {                                                      \
      int64_t wide = c1 - c < SIDE ? c1 - c : SIDE;                                                \
      for (int64_t r = 0; r < rows; r += SIDE) {                                                   \
        int64_t high = rows - r < SIDE ? rows - r : SIDE;                                          \
        TURNED(in + r * cols + c, cols, high, wide, tile, SIDE);                                   \
        for (int64_t k = 0; k < wide; k++)                                                         \
          if (past)                                                                                \
            for (int64_t l = 0; l < high; l += LINE)                                               \
              past_line(out + (c + k) * rows + r + l, tile + k * SIDE + l);                        \
          else                                                                                     \
            memcpy(out + (c + k) * rows + r, tile + k * SIDE, (size_t)high * sizeof(E));           \
      }                                                                                            \
    }                                                                                              \
    if (past)                                                                                      \
      past_end();                                                                                  \
  }
TRANSPOSE(uint8_t, transpose_1, turn_1)
TRANSPOSE(uint16_t, transpose_2, turn_2)
TRANSPOSE(float, transpose_4, turn_4)
TRANSPOSE(double, transpose_8, turn_8)
#undef TRANSPOSE

// Words: bytes of an element, rows, columns, in, out, first and last column but one, 1 if
// the result is larger than the caches.
static void move_transpose(const simd_word *w) {
  int64_t rows = w[1].i, cols = w[2].i, c0 = w[5].i, c1 = w[6].i;
  int past = w[7].i != 0;
  switch (w[0].i) {
  case 1:
    transpose_1(rows, cols, w[3].p, w[4].p, c0, c1, past);
    break;
  case 2:
    transpose_2(rows, cols, w[3].p, w[4].p, c0, c1, past);
    break;
  case 4:
    transpose_4(rows, cols, w[3].p, w[4].p, c0, c1, past);
    break;
  default:
    transpose_8(rows, cols, w[3].p, w[4].p, c0, c1, past);
  }
}
