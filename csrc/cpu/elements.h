// Elementwise arithmetic and the activations, for elements that are stored as S and computed
// as A.
#define V CAT(A, v)
#define W CAT(A, W)
#define LOAD CAT(S, load)
#define LOADN CAT(S, loadn)
#define STORE CAT(S, store)
#define STOREN CAT(S, storen)
#define SEND CAT(S, send)

// out[i] = EXPR, in which x and y are registers of a and b.
#define EACH(GET_X, GET_Y, EXPR)                                                                   \
  for (; i + W <= n; i += W) {                                                                     \
    V x = GET_X(a), y = GET_Y(b);                                                                  \
    SEND(out + i, EXPR, past);                                                                     \
  }
#define FROM_MEMORY(p) LOAD(p + i)
#define LEFT_NUMBER(p) left
#define RIGHT_NUMBER(p) right

// out = a OP b. An operand whose pointer is 0 is a number.
#define LOOP(NAME)                                                                                 \
  static void CAT(S, loop_##NAME)(int64_t n, E *out, const E *a, const E *b, V left, V right, int past) { \
    int64_t i = 0;                                                                                 \
    if (a && b)                                                                                    \
      EACH(FROM_MEMORY, FROM_MEMORY, CAT(A, NAME)(x, y))                                           \
    else if (a)                                                                                    \
      EACH(FROM_MEMORY, RIGHT_NUMBER, CAT(A, NAME)(x, y))                                          \
    else                                                                                           \
      EACH(LEFT_NUMBER, FROM_MEMORY, CAT(A, NAME)(x, y))                                           \
    if (i < n) {                                                                                   \
      V x = a ? LOADN(a + i, n - i) : left, y = b ? LOADN(b + i, n - i) : right;                   \
      STOREN(out + i, n - i, CAT(A, NAME)(x, y));                                                  \
    }                                                                                              \
  }
LOOP(add)
LOOP(sub)
LOOP(mul)
LOOP(div)
#undef LOOP
#undef EACH
#undef FROM_MEMORY
#undef LEFT_NUMBER
#undef RIGHT_NUMBER

// y = by·x + y, rounded once.
static void CAT(S, loop_axpy)(int64_t n, E *y, const E *x, V by) {
  int64_t i = 0;
  for (; i + 2 * W <= n; i += 2 * W) {
    V p = CAT(A, fma)(by, LOAD(x + i), LOAD(y + i)), q = CAT(A, fma)(by, LOAD(x + i + W), LOAD(y + i + W));
    STORE(y + i, p);
    STORE(y + i + W, q);
  }
  for (; i < n; i += W) {
    int64_t m = n - i < W ? n - i : W;
    STOREN(y + i, m, CAT(A, fma)(by, LOADN(x + i, m), LOADN(y + i, m)));
  }
}

// Words of arith from 1 on: operation, n, out, a or 0, b or 0, the number in place of a, the one in
// place of b, 1 if the result is larger than the caches.
static void CAT(S, arith_part)(const simd_word *w, int64_t lo, int64_t n, void *to, int past) {
  const E *a = w[4].p, *b = w[5].p;
  V left = CAT(A, set)((F)w[6].f), right = CAT(A, set)((F)w[7].f);
  a = a ? a + lo : a, b = b ? b + lo : b;
  switch (w[1].i) {
  case 0:
    CAT(S, loop_add)(n, to, a, b, left, right, past);
    break;
  case 1:
    CAT(S, loop_sub)(n, to, a, b, left, right, past);
    break;
  case 2:
    CAT(S, loop_mul)(n, to, a, b, left, right, past);
    break;
  case 3:
    CAT(S, loop_div)(n, to, a, b, left, right, past);
    break;
  default:
    CAT(S, loop_axpy)(n, to, a, left);
  }
}

static void CAT(S, arith)(const simd_word *w) {
  in_parts(CAT(S, arith_part), w, w[2].i, w[3].p, sizeof(E), w[8].i && w[1].i < 4);
}

#define ACTIVATION(NAME)                                                                           \
  static void CAT(S, each_##NAME)(const simd_word *w, int64_t lo, int64_t n, void *to, int past) { \
    const E *x = (const E *)w[3].p + lo;                                                           \
    E *y = to;                                                                                     \
    int64_t i = 0;                                                                                 \
    for (; i + W <= n; i += W)                                                                     \
      SEND(y + i, CAT(A, NAME)(LOAD(x + i)), past);                                                \
    if (i < n)                                                                                     \
      STOREN(y + i, n - i, CAT(A, NAME)(LOADN(x + i, n - i)));                                     \
  }
ACTIVATION(relu)
ACTIVATION(sigmoid)
ACTIVATION(swish)
ACTIVATION(gelu_tanh)
ACTIVATION(tanh_act)
#undef ACTIVATION

// gelu of several registers at a time.
static void CAT(S, each_gelu)(const simd_word *w, int64_t lo, int64_t n, void *to, int past) {
  enum { ONCE = CAT(A, GELUS) };
  const E *x = (const E *)w[3].p + lo;
  E *y = to;
  int64_t i = 0;
  for (; i + ONCE * W <= n; i += ONCE * W) {
    V v[ONCE];
    TOGETHER(ONCE)
      v[k] = LOAD(x + i + k * W);
    CAT(A, gelus)(v, ONCE);
    TOGETHER(ONCE)
      SEND(y + i + k * W, v[k], past);
  }
  for (; i + W <= n; i += W)
    SEND(y + i, CAT(A, gelu)(LOAD(x + i)), past);
  if (i < n)
    STOREN(y + i, n - i, CAT(A, gelu)(LOADN(x + i, n - i)));
}

// Words from 1 on: activation, n, in, out, 1 if out is larger than the caches.
static void CAT(S, activation)(const simd_word *w) {
  static part_func *const which[] = {
      CAT(S, each_relu), CAT(S, each_sigmoid), CAT(S, each_swish), CAT(S, each_gelu_tanh), CAT(S, each_tanh_act), CAT(S, each_gelu),
  };
  in_parts(which[w[1].i], w, w[2].i, w[4].p, sizeof(E), w[5].i != 0);
}
#undef V
#undef W
#undef LOAD
#undef LOADN
#undef STORE
#undef STOREN
#undef SEND
