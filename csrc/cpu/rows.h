// softmax and the norms of rows, for elements stored as S and computed with as A.
#define V CAT(A, v)
#define W CAT(A, W)
#define LOADX(p, n) ((n) >= W ? CAT(S, load)(p) : CAT(S, loadn)(p, n))
enum { CAT(S, BESIDE) = 2048 };

IN void CAT(S, put_some)(E *p, int64_t n, V v, int past) {
  if (n >= W)
    CAT(S, send)(p, v, past);
  else
    CAT(S, storen)(p, n, v);
}

// The sum of e^(x - m) over a row, which is left in e if it fits.
static F CAT(S, exp_sum)(const E *x, int64_t n, F m, F *e) {
  F level[64];
  int64_t count = 0;
  int depth = 0;
  V by = CAT(A, set)(m);
  for (int64_t j = 0; j < n; j += CAT(S, BESIDE)) {
    int64_t k = n - j < CAT(S, BESIDE) ? n - j : CAT(S, BESIDE), i = 0;
    for (; i + W <= k; i += W)
      CAT(A, store)(e + i, CAT(A, exp)(CAT(A, sub)(CAT(S, load)(x + j + i), by)));
    if (i < k)
      CAT(A, storen)(e + i, k - i, CAT(A, exp)(CAT(A, sub)(CAT(S, loadn)(x + j + i, k - i), by)));
    F s = CAT(A, sum_long)(e, k, 0);
    for (int64_t c = count++; c & 1; c >>= 1)
      s += level[--depth];
    level[depth++] = s;
  }
  F sum = level[--depth];
  while (depth > 0)
    sum += level[--depth];
  return sum;
}

// Words of the part: the row, m, 1/sum, and e where the whole row is in it, else 0.
static void CAT(S, softmax_part)(const simd_word *w, int64_t lo, int64_t n, void *to, int past) {
  const E *x = (const E *)w[0].p + lo;
  const F *e = w[3].p;
  E *y = to;
  V m = CAT(A, set)((F)w[1].f), by = CAT(A, set)((F)w[2].f);
  if (e) {
    int64_t j = 0;
    for (e += lo; j + W <= n; j += W)
      CAT(S, send)(y + j, CAT(A, mul)(CAT(A, load)(e + j), by), past);
    if (j < n)
      CAT(S, storen)(y + j, n - j, CAT(A, mul)(CAT(A, loadn)(e + j, n - j), by));
    return;
  }
  for (int64_t j = 0; j < n; j += W)
    CAT(S, put_some)(y + j, n - j, CAT(A, mul)(CAT(A, exp)(CAT(A, sub)(LOADX(x + j, n - j), m)), by), past);
}

// Words from 1 on: rows, columns, in, out, 1 if it is larger than the caches.
static void CAT(S, softmax)(const simd_word *w) {
  F e[CAT(S, BESIDE)];
  int64_t n = w[2].i;
  for (int64_t i = 0; i < w[1].i; i++) {
    const E *x = (const E *)w[3].p + i * n;
    F m = CAT(S, row_max)(x, n);
    simd_word part[4] = {{.p = (void *)x}, {.f = m}, {.f = m - m}, {.p = 0}}; // NaN of NaN and infinities
    if (m - m == 0) {
      part[2].f = 1 / CAT(S, exp_sum)(x, n, m, e);
      part[3].p = n <= CAT(S, BESIDE) ? e : 0;
    } // else e^(x - m)·NaN
    in_parts(CAT(S, softmax_part), part, n, (E *)w[4].p + i * n, sizeof(E), w[5].i != 0);
  }
}

// Words of the part: the row, its mean, what to multiply by, gamma, beta or 0.
static void CAT(S, norm_part)(const simd_word *w, int64_t lo, int64_t n, void *to, int past) {
  const E *x = (const E *)w[0].p + lo, *gamma = (const E *)w[3].p + lo, *beta = w[4].p;
  E *y = to;
  V mean = CAT(A, set)((F)w[1].f), by = CAT(A, set)((F)w[2].f);
  int64_t j = 0;
  if (beta)
    beta += lo;
  for (; j < n; j += W) {
    V z = CAT(A, mul)(CAT(A, mul)(CAT(A, sub)(LOADX(x + j, n - j), mean), by), LOADX(gamma + j, n - j));
    CAT(S, put_some)(y + j, n - j, beta ? CAT(A, add)(z, LOADX(beta + j, n - j)) : z, past);
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
