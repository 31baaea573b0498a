// Arithmetic by element and sums of rows, for one type.
#define V CAT(T, v)
#define W CAT(T, W)
#define LOAD CAT(T, load)
#define IS_ALIGNED(p) (((uintptr_t)(p) & (sizeof(V) - 1)) == 0)

// out = a OP b, either of which may be one number; large results pass the caches.
#define LOOP(NAME, EXPR, SCALAR)                                                                   \
  static void CAT(T, NAME)(int64_t n, E *out, const E *a, const E *b, E left, E right, int past) { \
    V la = CAT(T, set)(left), rb = CAT(T, set)(right);                                             \
    int64_t i = 0;                                                                                 \
    for (; i < n && !(past && IS_ALIGNED(out + i)) && (past || n - i < W); i++) {                  \
      E x = a ? a[i] : left, y = b ? b[i] : right;                                                 \
      out[i] = SCALAR;                                                                             \
    }                                                                                              \
    for (; i + W <= n; i += W) {                                                                   \
      V x = a ? LOAD(a + i) : la, y = b ? LOAD(b + i) : rb, z = EXPR;                              \
      if (past)                                                                                    \
        CAT(T, past)(out + i, z);                                                                  \
      else                                                                                         \
        CAT(T, store)(out + i, z);                                                                 \
    }                                                                                              \
    for (; i < n; i++) {                                                                           \
      E x = a ? a[i] : left, y = b ? b[i] : right;                                                 \
      out[i] = SCALAR;                                                                             \
    }                                                                                              \
    if (past)                                                                                      \
      past_end();                                                                                  \
  }
LOOP(loop_add, CAT(T, add)(x, y), x + y)
LOOP(loop_sub, CAT(T, sub)(x, y), x - y)
LOOP(loop_mul, CAT(T, mul)(x, y), x *y)
LOOP(loop_div, CAT(T, div)(x, y), x / y)
#undef LOOP

// y = left·a + y, rounded once.
static void CAT(T, loop_axpy)(int64_t n, E *y, const E *x, E by) {
  V v = CAT(T, set)(by);
  int64_t i = 0;
  for (; i + W <= n; i += W)
    CAT(T, store)(y + i, CAT(T, fma)(v, LOAD(x + i), LOAD(y + i)));
  if (i < n) {
    CAT(T, m) mask = CAT(T, first)(n - i);
    CAT(T, storem)(y + i, mask, CAT(T, fma)(v, CAT(T, loadm)(x + i, mask), CAT(T, loadm)(y + i, mask)));
  }
}

// Words: what (0 add, 1 sub, 2 mul, 3 div, 4 axpy), n, out, a or 0, b or 0, the number
// in place of a, of b, 1 if the result is larger than the caches.
static void CAT(T, arith)(const simd_word *w) {
  int64_t n = w[1].i;
  E *out = w[2].p, left = (E)w[5].f, right = (E)w[6].f;
  const E *a = w[3].p, *b = w[4].p;
  int past = w[7].i != 0;
  switch (w[0].i) {
  case 0:
    CAT(T, loop_add)(n, out, a, b, left, right, past);
    break;
  case 1:
    CAT(T, loop_sub)(n, out, a, b, left, right, past);
    break;
  case 2:
    CAT(T, loop_mul)(n, out, a, b, left, right, past);
    break;
  case 3:
    CAT(T, loop_div)(n, out, a, b, left, right, past);
    break;
  default:
    CAT(T, loop_axpy)(n, out, a, left);
  }
}

// The sum of up to 64·W numbers in four registers: no number goes through more than
// 16 + 2 + log2 W additions.
IN E CAT(T, sum_block)(const E *x, int64_t n) {
  V s0 = CAT(T, zero)(), s1 = s0, s2 = s0, s3 = s0;
  int64_t i = 0;
  for (; i + 4 * W <= n; i += 4 * W) {
    s0 = CAT(T, add)(s0, LOAD(x + i)), s1 = CAT(T, add)(s1, LOAD(x + i + W));
    s2 = CAT(T, add)(s2, LOAD(x + i + 2 * W)), s3 = CAT(T, add)(s3, LOAD(x + i + 3 * W));
  }
  for (; i + W <= n; i += W)
    s0 = CAT(T, add)(s0, LOAD(x + i));
  if (i < n)
    s1 = CAT(T, add)(s1, CAT(T, loadm)(x + i, CAT(T, first)(n - i)));
  return CAT(T, sum)(CAT(T, add)(CAT(T, add)(s0, s1), CAT(T, add)(s2, s3)));
}

// Sums of blocks are joined in pairs, as the digits of a counter carry.
static E CAT(T, sum_long)(const E *x, int64_t n) {
  E level[64];
  int64_t count = 0, block = 64 * W;
  if (n <= block)
    return CAT(T, sum_block)(x, n);
  int depth = 0;
  for (int64_t i = 0; i < n; i += block) {
    E s = CAT(T, sum_block)(x + i, n - i < block ? n - i : block);
    for (int64_t c = count++; c & 1; c >>= 1)
      s += level[--depth];
    level[depth++] = s;
  }
  E sum = level[--depth];
  while (depth > 0)
    sum += level[--depth];
  return sum;
}

// Words: rows, columns, from, to, what to divide by or 0.
static void CAT(T, sum_rows)(const simd_word *w) {
  int64_t rows = w[0].i, n = w[1].i;
  for (int64_t i = 0; i < rows; i++) {
    E s = CAT(T, sum_long)((const E *)w[2].p + i * n, n);
    ((E *)w[3].p)[i] = w[4].i ? s / (E)w[4].i : s;
  }
}

#undef V
#undef W
#undef LOAD
#undef IS_ALIGNED
