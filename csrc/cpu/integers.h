// Elementwise arithmetic of integers, which wraps: plain loops that compilers vectorize with a
// pragma. A result that is stored past the caches is first computed in a piece that stays in the
// first-level cache.
#if defined(__clang__)
#define VECTORIZED
#else
#define VECTORIZED __attribute__((optimize("O3")))
#endif

#define INTEGERS(E, NAME)                                                                          \
  VECTORIZED static void NAME(const simd_word *w, int64_t lo, int64_t n, void *to, int past) {     \
    const E *a = w[4].p, *b = w[5].p;                                                              \
    E x = (E)w[6].i, y = (E)w[7].i, *out = to;                                                     \
    E piece[4096 / sizeof(E)];                                                                     \
    const int64_t most = (int64_t)(sizeof piece / sizeof(E));                                      \
    for (int64_t m; past && n > 0; lo += m, n -= m, to = (E *)to + m) {                            \
      m = n < most ? n : most;                                                                     \
      NAME(w, lo, m, piece, 0);                                                                    \
      past_copy(to, piece, m * (int64_t)sizeof(E));                                                \
    }                                                                                              \
    a = a ? a + lo : a, b = b ? b + lo : b;                                                        \
    switch (w[1].i) {                                                                              \
    case 0:                                                                                        \
      LOOPS(E, +)                                                                                  \
      break;                                                                                       \
    case 1:                                                                                        \
      LOOPS(E, -)                                                                                  \
      break;                                                                                       \
    default:                                                                                       \
      LOOPS(E, *)                                                                                  \
    }                                                                                              \
  }
#define LOOPS(E, OP)                                                                               \
  if (a && b)                                                                                      \
    for (int64_t i = 0; i < n; i++)                                                                \
      out[i] = (E)((WIDE(E))a[i] OP(WIDE(E)) b[i]);                                                \
  else if (a)                                                                                      \
    for (int64_t i = 0; i < n; i++)                                                                \
      out[i] = (E)((WIDE(E))a[i] OP(WIDE(E)) y);                                                   \
  else                                                                                             \
    for (int64_t i = 0; i < n; i++)                                                                \
      out[i] = (E)((WIDE(E))x OP(WIDE(E)) b[i]);
// Types shorter than int would be promoted to int, whose overflow is undefined.
#define WIDE(E) __typeof__((E)0 + 0u)
INTEGERS(uint8_t, u8_arith_part)
INTEGERS(uint16_t, u16_arith_part)
INTEGERS(uint32_t, u32_arith_part)
INTEGERS(uint64_t, u64_arith_part)
#undef INTEGERS
#undef LOOPS
#undef WIDE
#undef VECTORIZED
