// Chains of operations in registers, for expr.h.

// v with the sign of x.
#define SIGNS(A, I)                                                                                \
  IN A##_v A##_signed(A##_v v, A##_v x) {                                                          \
    typedef I bits __attribute__((vector_size(sizeof(A##_v))));                                    \
    const I sign = (I)1 << (sizeof(I) * 8 - 1);                                                    \
    return (A##_v)(((bits)v & ~sign) | ((bits)x & sign));                                          \
  }
SIGNS(f32, uint32_t)
SIGNS(f64, uint64_t)
#undef SIGNS
IN void f32_tanhs(f32_v *x, int n) {
  f32_v v[AT_ONCE];
  TOGETHER(n) v[k] = x[k];
  f32_tanh_acts(v, n);
  TOGETHER(n) x[k] = f32_signed(v[k], x[k]); // tanh_act loses the sign of zero
}
// As f32_tanh_acts, with the series of (e^r - 1 - r)/r², which for |r| ≤ ln(2)/2 leaves a rest below 2^-54.
IN void f64_tanhs(f64_v *x, int count) {
  static const double c[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
                             1.0 / 5040,       1.0 / 720,       1.0 / 120,      1.0 / 24,      1.0 / 6,      0.5};
  f64_v n[AT_ONCE], r[AT_ONCE], q[AT_ONCE], s[AT_ONCE];
  TOGETHER(count) r[k] = f64_add(x[k], x[k]);
  TOGETHER(count) r[k] = f64_max(f64_set(-40), r[k]); // the result is ±1 beyond
  TOGETHER(count) r[k] = f64_min(f64_set(40), r[k]);
  TOGETHER(count) n[k] = f64_mul(r[k], f64_set(0x1.71547652b82fep+0));
  TOGETHER(count) n[k] = f64_near(n[k]);
  TOGETHER(count) r[k] = f64_fma(n[k], f64_set(-0x1.62e42fefa0000p-1), r[k]);
  TOGETHER(count) s[k] = f64_scale(f64_set(1), n[k]);
  TOGETHER(count) r[k] = f64_fma(n[k], f64_set(-0x1.cf79abc9e3b3ap-40), r[k]);
  TOGETHER(count) q[k] = f64_set(c[0]);
  ALL_STEPS for (int i = 1; i < 12; i++)
    TOGETHER(count) q[k] = f64_fma(q[k], r[k], f64_set(c[i]));
  TOGETHER(count) r[k] = f64_fma(f64_mul(r[k], r[k]), q[k], r[k]);
  TOGETHER(count) r[k] = f64_fma(s[k], r[k], f64_sub(s[k], f64_set(1)));
  TOGETHER(count) r[k] = f64_div(r[k], f64_add(r[k], f64_set(2)));
  TOGETHER(count) x[k] = f64_signed(r[k], x[k]);
}

// As many registers as the function computes together.
IN void f32_gelus_of(f32_v *x, int n) {
  ALL_STEPS for (int k = 0; k < n; k += f32_GELUS)
    f32_gelus(x + k, n - k < f32_GELUS ? n - k : f32_GELUS);
}
IN void f64_gelus_of(f64_v *x, int n) { TOGETHER(n) x[k] = f64_gelu(x[k]); }

// Operations in chains, each of which takes the result of the one before it. The numbers of eight registers go
// through the whole chain before the next eight, so that results of single operations are never stored. Several chains, of which later ones read the
// results of earlier ones, do so too: the eight registers of a result wait in the first-level cache for these. A chain of one operation
// has a loop of its own: it does not decode, and reads and writes memory in order rather than in bursts of eight registers.
typedef struct {
  int64_t code;      // an operation; with CHAIN_SECOND the result of the one before it is its second operand
  const char *other; // its other operand
  int64_t advance;   // all bits set, or 0 if the other operand is the same in each tile
  int64_t down;      // the bytes to the operand in the next row
  const char *third; // as other, of a fused product and sum
  int64_t third_advance, third_down;
} expr_link;
typedef struct {
  const char *from; // the first operand of the first operation
  int64_t advance;  // as in a link
  const expr_link *links;
  int64_t count; // of operations; without one, from is copied
  char *to;
  int64_t from_down, to_down; // as in a link
  int64_t step; // all bits set, or 0 if the next eight registers are written over these
  int past;
} expr_strip;
// Memory is fetched for several chains before it is read. Processors foresee the reads of an instruction only if it reads one array in order; here one
// instruction reads several operands in turn.
enum { CHAIN_SECOND = 256, CHAIN_SQUARE = EXPR_END }; // the result of the one before it times itself

// The result is that of the second operand for zeros of both signs, and a NaN if an operand is.
#if defined(__aarch64__)
#define EXTREME(A, NAME, I, OP)                                                                    \
  IN A##_v A##_expr_##NAME(A##_v a, A##_v b) {                                                     \
    typedef I bits __attribute__((vector_size(sizeof(A##_v))));                                    \
    bits first = (bits)(a OP b) | (bits)(a != a);                                                  \
    return (A##_v)((first & (bits)a) | (~first & (bits)b));                                        \
  }
#else
#define EXTREME(A, NAME, I, OP)                                                                    \
  IN A##_v A##_expr_##NAME(A##_v a, A##_v b) { return A##_##NAME(a, b); }
#endif
EXTREME(f32, smaller, int32_t, <)
EXTREME(f32, larger, int32_t, >)
EXTREME(f64, smaller, int64_t, <)
EXTREME(f64, larger, int64_t, >)
#undef EXTREME

// Registers of integers of the size of E, whose operations wrap.
#define INTEGERS(S, E)                                                                             \
  typedef E S##_v __attribute__((vector_size(sizeof(f32_v)), may_alias));                          \
  enum { S##_W = sizeof(f32_v) / sizeof(E) };                                                      \
  IN S##_v S##_load(const E *p) {                                                                  \
    S##_v v;                                                                                       \
    memcpy(&v, p, sizeof v);                                                                       \
    return v;                                                                                      \
  }                                                                                                \
  IN void S##_send(E *p, S##_v v, int past) {                                                      \
    if (past)                                                                                      \
      past_full(p, &v);                                                                            \
    else                                                                                           \
      memcpy(p, &v, sizeof v);                                                                     \
  }
INTEGERS(u8, uint8_t)
INTEGERS(u16, uint16_t)
INTEGERS(u32, uint32_t)
INTEGERS(u64, uint64_t)
#undef INTEGERS

// Register k from element i on of an operand, all of whose registers are the one at p if advance is 0. Numbers that are the same
// in each element are floats also beside elements of 16 bits.
#define OPERAND(S, E)                                                                              \
  IN S##_v S##_operand(const void *p, int64_t advance, int64_t i, int k) { return S##_load((const E *)p + (i & advance) + k * S##_W); }
OPERAND(f32, float)
OPERAND(f64, double)
OPERAND(u8, uint8_t)
OPERAND(u16, uint16_t)
OPERAND(u32, uint32_t)
OPERAND(u64, uint64_t)
#undef OPERAND
#define OPERAND(S)                                                                                 \
  IN f32_v S##_operand(const void *p, int64_t advance, int64_t i, int k) {                         \
    return advance ? S##_load((const uint16_t *)p + i + k * f32_W) : f32_load(p);                  \
  }
OPERAND(f16)
OPERAND(bf16)
#undef OPERAND

// The operations and the result of each for register r[k]: with V the other operand is the second, with W the first, and a
// FUNCTION computes AT_ONCE registers.
#define ON_FLOATS(S, A, V, W, FUNCTION, OTHER, THIRD)                                                     \
  V(S, A, EXPR_ADD, A##_add(r[k], OTHER(S, A)))                                                    \
  V(S, A, EXPR_SUB, A##_sub(r[k], OTHER(S, A)))                                                    \
  V(S, A, EXPR_MUL, A##_mul(r[k], OTHER(S, A)))                                                    \
  V(S, A, CHAIN_SQUARE, A##_mul(r[k], r[k]))                                                       \
  V(S, A, EXPR_DIV, A##_div(r[k], OTHER(S, A)))                                                    \
  V(S, A, EXPR_MIN, A##_expr_smaller(r[k], OTHER(S, A)))                                           \
  V(S, A, EXPR_MAX, A##_expr_larger(r[k], OTHER(S, A)))                                            \
  W(S, A, EXPR_SUB, A##_sub(OTHER(S, A), r[k]))                                                    \
  W(S, A, EXPR_DIV, A##_div(OTHER(S, A), r[k]))                                                    \
  W(S, A, EXPR_MIN, A##_expr_smaller(OTHER(S, A), r[k]))                                           \
  W(S, A, EXPR_MAX, A##_expr_larger(OTHER(S, A), r[k]))                                            \
  V(S, A, EXPR_FMA, A##_fma(r[k], OTHER(S, A), THIRD(S, A)))                                       \
  W(S, A, EXPR_FMA, A##_fma(OTHER(S, A), THIRD(S, A), r[k]))                                       \
  V(S, A, EXPR_NEG, -r[k])                                                                         \
  V(S, A, EXPR_ABS, A##_signed(r[k], A##_zero()))                                                  \
  V(S, A, EXPR_SQRT, A##_roots(r[k]))                                                               \
  V(S, A, EXPR_RSQRT, A##_div(A##_set(1), A##_roots(r[k])))                                         \
  FUNCTION(S, A, EXPR_EXP, A##_exps)                                                               \
  FUNCTION(S, A, EXPR_SIGMOID, A##_sigmoids)                                                       \
  FUNCTION(S, A, EXPR_TANH, A##_tanhs)                                                            \
  FUNCTION(S, A, EXPR_GELU, A##_gelus_of)
#define ON_INTEGERS(S, A, V, W, FUNCTION, OTHER, THIRD)                                                   \
  V(S, A, EXPR_ADD, r[k] + OTHER(S, A))                                                            \
  V(S, A, EXPR_SUB, r[k] - OTHER(S, A))                                                            \
  V(S, A, EXPR_MUL, r[k] *OTHER(S, A))                                                             \
  V(S, A, CHAIN_SQUARE, r[k] *r[k])                                                             \
  V(S, A, EXPR_AND, r[k] & OTHER(S, A))                                                            \
  V(S, A, EXPR_OR, r[k] | OTHER(S, A))                                                             \
  V(S, A, EXPR_XOR, r[k] ^ OTHER(S, A))                                                            \
  W(S, A, EXPR_SUB, OTHER(S, A) - r[k])                                                            \
  V(S, A, EXPR_NEG, -r[k])
#define LINK_OTHER(S, A) S##_operand(b, other, i, k)
#define ALONE_OTHER(S, A) (b ? S##_load(b + i) : number)
#define LINK_THIRD(S, A) S##_operand(x->third, x->third_advance, i, k)
#define ALONE_THIRD(S, A) S##_load(c + i)

#if defined(__clang__)
#define EIGHT for (int k = 0; k < 8; k++)
#define UNSWITCHED
#else
#define EIGHT _Pragma("GCC unroll 8") for (int k = 0; k < 8; k++)
#define UNSWITCHED __attribute__((optimize("unswitch-loops"))) // a loop for each kind of operand and of result
#endif
#define LINK(S, A, CODE, RESULT)                                                                   \
  case CODE:                                                                                       \
    EIGHT r[k] = RESULT;                                                                           \
    break;
#define LINK_SECOND(S, A, CODE, RESULT) LINK(S, A, CODE | CHAIN_SECOND, RESULT)
#define LINK_FUNCTION(S, A, CODE, NAME)                                                            \
  case CODE:                                                                                       \
    NAME(r, AT_ONCE);                                                                              \
    NAME(r + AT_ONCE, AT_ONCE);                                                                    \
    break;
#define ALONE(S, A, CODE, RESULT)                                                                  \
  case CODE:                                                                                       \
    for (int64_t i = 0; i < n; i += A##_W) {                                                       \
      enum { k = 0 };                                                                              \
      A##_v r[] = {S##_load(a + i)};                                                               \
      S##_send(q + i, RESULT, past);                                                               \
    }                                                                                              \
    return;
#define ALONE_SECOND(S, A, CODE, RESULT) ALONE(S, A, CODE | CHAIN_SECOND, RESULT)
#define ALONE_FUNCTION(S, A, CODE, NAME)                                                           \
  case CODE:                                                                                       \
    for (int64_t i = 0; i < n; i += AT_ONCE * A##_W) {                                             \
      A##_v r[AT_ONCE];                                                                            \
      TOGETHER(AT_ONCE) r[k] = S##_load(a + i + k * A##_W);                                        \
      NAME(r, AT_ONCE);                                                                            \
      TOGETHER(AT_ONCE) S##_send(q + i + k * A##_W, r[k], past);                                   \
    }                                                                                              \
    return;
#define CHAIN(S, A, E, OPERATIONS)                                                                 \
  UNSWITCHED static void S##_expr_alone(int64_t code, const E *a, const E *b, A##_v number, const E *c, E *q, int64_t n, int past) { \
    (void)c;                                                                                       \
    switch (code) { OPERATIONS(S, A, ALONE, ALONE_SECOND, ALONE_FUNCTION, ALONE_OTHER, ALONE_THIRD) } \
  }                                                                                                \
  static void S##_expr_chain(const expr_strip *strips, int64_t count, const expr_next *ahead, int64_t n) { \
    const expr_link *l = strips->links;                                                            \
    if (count == 1 && strips->count == 1 && strips->advance && (!l->third || l->third_advance)) {  \
      S##_expr_alone(l->code, (const void *)strips->from, l->advance ? (const void *)l->other : NULL, S##_operand(l->other, 0, 0, 0), (const void *)l->third, (void *)strips->to, n, strips->past); \
      return;                                                                                      \
    }                                                                                              \
    for (int64_t i = 0; i < n; i += 8 * A##_W) {                                                   \
      for (const expr_next *x = ahead; x->at; x++)                                                 \
        for (int64_t at = i * x->size; at < (i + 8 * A##_W) * x->size; at += 64)                   \
          __builtin_prefetch(x->at + at);                                                          \
      for (const expr_strip *s = strips; s < strips + count; s++) {                                \
        E *q = (E *)(void *)s->to + (i & s->step);                                                         \
        A##_v r[8];                                                                                \
        EIGHT r[k] = S##_operand(s->from, s->advance, i, k);                                       \
        for (const expr_link *x = s->links; x < s->links + s->count; x++) {                        \
          const void *b = x->other;                                                                \
          int64_t other = x->advance;                                                              \
          switch (x->code) { OPERATIONS(S, A, LINK, LINK_SECOND, LINK_FUNCTION, LINK_OTHER, LINK_THIRD) } \
        }                                                                                          \
        EIGHT S##_send(q + k * A##_W, r[k], s->past);                                              \
      }                                                                                            \
    }                                                                                              \
  }
CHAIN(f32, f32, float, ON_FLOATS)
CHAIN(f64, f64, double, ON_FLOATS)
CHAIN(f16, f32, uint16_t, ON_FLOATS)
CHAIN(bf16, f32, uint16_t, ON_FLOATS)
CHAIN(u8, u8, uint8_t, ON_INTEGERS)
CHAIN(u16, u16, uint16_t, ON_INTEGERS)
CHAIN(u32, u32, uint32_t, ON_INTEGERS)
CHAIN(u64, u64, uint64_t, ON_INTEGERS)
#undef ON_FLOATS
#undef ON_INTEGERS
#undef LINK_OTHER
#undef ALONE_OTHER
#undef LINK_THIRD
#undef ALONE_THIRD
#undef EIGHT
#undef LINK
#undef LINK_SECOND
#undef LINK_FUNCTION
#undef ALONE
#undef ALONE_SECOND
#undef ALONE_FUNCTION
#undef CHAIN
#undef UNSWITCHED
