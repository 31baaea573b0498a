// softmax and the norms of rows, for elements that are stored as S and computed as A.
#define V CAT(A, v)
#define W CAT(A, W)
#define LOADX(p, n) ((n) >= W ? CAT(S, load)(p) : CAT(S, loadn)(p, n))
enum { CAT(S, BESIDE) = 4096 };

// Returns the maximum of a row. If an element is NaN, the result on x86 may be any number.
static F CAT(S, row_peak)(const E *x, int64_t n) {
  V m0 = CAT(A, set)((F)-__builtin_inf()), m1 = m0, m2 = m0, m3 = m0;
  int64_t i = 0;
  for (; i + 4 * W <= n; i += 4 * W) { // if one is NaN, x86 returns the second
    m0 = CAT(A, max)(CAT(S, read)(x + i), m0), m1 = CAT(A, max)(CAT(S, read)(x + i + W), m1);
    m2 = CAT(A, max)(CAT(S, read)(x + i + 2 * W), m2), m3 = CAT(A, max)(CAT(S, read)(x + i + 3 * W), m3);
  }
  for (; i + W <= n; i += W)
    m0 = CAT(A, max)(CAT(S, read)(x + i), m0);
  m0 = CAT(A, max)(CAT(A, max)(m0, m1), CAT(A, max)(m2, m3));
  if (i < n)
    m0 = CAT(A, max)(CAT(A, part)(CAT(S, loadn)(x + i, n - i), n - i, m0), m0);
  return CAT(A, largest)(m0);
}

// Returns the sum of e^(x - m) over a block of a row, and stores the terms at e unless that is 0.
// Meanwhile it prefetches the data that is needed next: the same block of the next row, and of the
// result if that goes to the caches; or only this row again.
IN V CAT(S, exp_block)(const E *x, int64_t n, V m, F *e, const E *next, const E *result) {
  V s[4] = {CAT(A, zero)(), CAT(A, zero)(), CAT(A, zero)(), CAT(A, zero)()};
  int64_t i = 0;
  for (; i + 4 * W <= n; i += 4 * W)
    TOGETHER(4) {
      V y = CAT(A, exp_down)(CAT(A, sub)(CAT(S, load)(x + i + k * W), m));
      s[k] = CAT(A, add)(s[k], y);
      if (k * W * sizeof(E) % 64 == 0)
        __builtin_prefetch(next + i + k * W), __builtin_prefetch(result + i + k * W, 1);
      if (e)
        CAT(A, store)(e + i + k * W, y);
    }
  for (; i < n; i += W) {
    int64_t some = n - i < W ? n - i : W;
    V y = CAT(A, part)(CAT(A, exp_down)(CAT(A, sub)(LOADX(x + i, some), m)), some, CAT(A, zero)());
    s[0] = CAT(A, add)(s[0], y);
    if (e)
      CAT(A, storen)(e + i, some, y);
  }
  return CAT(A, add)(CAT(A, add)(s[0], s[1]), CAT(A, add)(s[2], s[3]));
}

// Returns the sum of e^(x - m) over a row: the sums of blocks are added in pairs, as in reduce.h.
static F CAT(S, exp_sum)(const E *x, int64_t n, V m, F *e, const E *next, const E *result) {
  enum { BLOCK = 64 * W };
  V level[64];
  int64_t count = 0;
  int depth = 0;
  for (int64_t i = 0; i < n; i += BLOCK) {
    V s = CAT(S, exp_block)(x + i, n - i < BLOCK ? n - i : BLOCK, m, e ? e + i : 0, next + i, result + i);
    for (int64_t c = count++; c & 1; c >>= 1)
      s = CAT(A, add)(s, level[--depth]);
    level[depth++] = s;
  }
  V sum = level[--depth];
  while (depth > 0)
    sum = CAT(A, add)(sum, level[--depth]);
  return CAT(A, sum)(sum);
}

// Words of the part: the row, m, 1/sum, and e if it has the whole row, else 0.
static void CAT(S, softmax_part)(const simd_word *w, int64_t lo, int64_t n, void *to, int past) {
  const E *x = (const E *)w[0].p + lo;
  const F *e = w[3].p;
  E *y = to;
  V m = CAT(A, set)((F)w[1].f), by = CAT(A, set)((F)w[2].f);
  int64_t j = 0;
  if (e)
    for (e += lo; j + W <= n; j += W)
      CAT(S, send)(y + j, CAT(A, mul)(CAT(A, load)(e + j), by), past);
  else
    for (; j + W <= n; j += W)
      CAT(S, send)(y + j, CAT(A, mul)(CAT(A, exp_down)(CAT(A, sub)(CAT(S, load)(x + j), m)), by), past);
  if (j < n) {
    V last = e ? CAT(A, loadn)(e + j, n - j) : CAT(A, exp_down)(CAT(A, sub)(CAT(S, loadn)(x + j, n - j), m));
    CAT(S, storen)(y + j, n - j, CAT(A, mul)(last, by));
  }
}

// Words from 1 on: rows, columns, in, out, 1 if out is larger than the caches. If the row has a NaN
// or +∞, or only -∞, some e^(x - m) is NaN, and so is the sum.
static void CAT(S, softmax)(const simd_word *w) {
  F e[CAT(S, BESIDE)];
  int64_t n = w[2].i;
  for (int64_t i = 0; i < w[1].i; i++) {
    const E *x = (const E *)w[3].p + i * n;
    E *y = (E *)w[4].p + i * n;
    F m = CAT(S, row_peak)(x, n), *whole = n <= CAT(S, BESIDE) ? e : 0;
    F sum = CAT(S, exp_sum)(x, n, CAT(A, set)(m), whole, whole && i + 1 < w[1].i ? x + n : x, whole && !w[5].i ? y : x);
    simd_word part[4] = {{.p = (void *)x}, {.f = m}, {.f = 1 / sum}, {.p = whole}};
    in_parts(CAT(S, softmax_part), part, n, y, sizeof(E), w[5].i != 0);
  }
}

// Words of the part: the row, its mean, the factor, gamma, beta or 0.
static void CAT(S, norm_part)(const simd_word *w, int64_t lo, int64_t n, void *to, int past) {
  const E *x = (const E *)w[0].p + lo, *gamma = (const E *)w[3].p + lo, *beta = w[4].p;
  E *y = to;
  V mean = CAT(A, set)((F)w[1].f), by = CAT(A, set)((F)w[2].f);
  int64_t j = 0;
  if (beta) {
    for (beta += lo; j + W <= n; j += W) {
      V z = CAT(A, mul)(CAT(A, sub)(CAT(S, load)(x + j), mean), by);
      CAT(S, send)(y + j, CAT(A, fma)(z, CAT(S, load)(gamma + j), CAT(S, load)(beta + j)), past);
    }
  } else
    for (; j + W <= n; j += W)
      CAT(S, send)(y + j, CAT(A, mul)(CAT(A, mul)(CAT(S, load)(x + j), by), CAT(S, load)(gamma + j)), past);
  if (j < n) {
    V z = CAT(A, mul)(CAT(A, sub)(CAT(S, loadn)(x + j, n - j), mean), by), g = CAT(S, loadn)(gamma + j, n - j);
    CAT(S, storen)(y + j, n - j, beta ? CAT(A, fma)(z, g, CAT(S, loadn)(beta + j, n - j)) : CAT(A, mul)(z, g));
  }
}

// Words from 1 on: rows, columns, in, gamma, beta or 0 for the norm without a mean, out,
// epsilon, 1 if out is larger than the caches.
static void CAT(S, norm)(const simd_word *w) {
  int64_t n = w[2].i;
  for (int64_t i = 0; i < w[1].i; i++) {
    const E *x = (const E *)w[3].p + i * n;
    F mean = w[5].p ? CAT(S, sum_long)(x, n, 0) / (F)n : 0;
    F spread = CAT(S, sum_squares)(x, n, mean) / (F)n + (F)w[7].f;
    simd_word part[5] = {{.p = (void *)x}, {.f = mean}, {.f = 1 / CAT(A, root)(spread)}, w[4], w[5]};
    in_parts(CAT(S, norm_part), part, n, (E *)w[6].p + i * n, sizeof(E), w[8].i != 0);
  }
}
#undef V
#undef W
#undef LOADX
