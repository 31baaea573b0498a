// The reductions of integers that reduce_int.h does not have: all and any, bit by bit.
#define FOLD(NAME, NUMBER, OP)                                                                     \
  TILES static void NAME(int64_t rows, int64_t n, int64_t step, int64_t columns, NUMBER *restrict into, const NUMBER *restrict from) { \
    for (int64_t r = 0; r < rows; r++, into += columns, from += n) {                               \
      if (columns == 1 && step == 1) {                                                             \
        NUMBER x = from[0];                                                                        \
        for (int64_t j = 1; j < n; j++)                                                            \
          x OP from[j];                                                                            \
        into[0] = x;                                                                               \
        continue;                                                                                  \
      }                                                                                            \
      memcpy(into, from, (size_t)columns * sizeof *into);                                          \
      for (int64_t j = 1; j < n; j++)                                                              \
        for (int64_t i = 0; i < columns; i++)                                                      \
          into[i] OP from[j * step + i];                                                           \
    }                                                                                              \
  }
FOLD(all_of_words, uint32_t, &=)
FOLD(any_of_words, uint32_t, |=)
FOLD(all_of_longs, uint64_t, &=)
FOLD(any_of_longs, uint64_t, |=)
#undef FOLD

// Words: 1 for any and 0 for all, bytes of a number, rows, the numbers n of each that are combined, their distance, columns, from, into. There
// are several rows of one column each, adjacent in memory, or one of several columns.
EXPORT(expr_fold) {
  if (w[1].i == 4)
    (w[0].i ? any_of_words : all_of_words)(w[2].i, w[3].i, w[4].i, w[5].i, w[7].p, w[6].p);
  else
    (w[0].i ? any_of_longs : all_of_longs)(w[2].i, w[3].i, w[4].i, w[5].i, w[7].p, w[6].p);
}
