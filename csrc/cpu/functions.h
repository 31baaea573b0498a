// e^x and the activations that use it, for whole registers.
#include <math.h>

// e^x for x from -110 to 100, and for NaN, within 2 units in the last place: x = n·ln 2 + r with
// ln 2 in two parts, and a polynomial for e^r whose relative error is below 2^-27.9.
IN f32_v f32_exp_within(f32_v x) {
  f32_v n = f32_near(f32_mul(x, f32_set(0x1.715476p+0f)));
  f32_v r = f32_fma(n, f32_set(-0x1.62e400p-1f), x);
  r = f32_fma(n, f32_set(-0x1.7f7d1cp-20f), r);
  f32_v p = f32_set(0x1.6a2434p-10f);
  p = f32_fma(p, r, f32_set(0x1.1239e2p-7f));
  p = f32_fma(p, r, f32_set(0x1.5558f2p-5f));
  p = f32_fma(p, r, f32_set(0x1.555492p-3f));
  p = f32_fma(p, r, f32_set(0x1.fffffcp-2f));
  p = f32_fma(p, r, f32_set(1.0f));
  p = f32_fma(p, r, f32_set(1.0f));
  return f32_scale(p, n);
}

IN f64_v f64_exp_within(f64_v x) { // from -760 to 720
  static const double c[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
                             1.0 / 5040,       1.0 / 720,       1.0 / 120,      1.0 / 24,      1.0 / 6,      0.5,
                             1.0,              1.0};
  f64_v n = f64_near(f64_mul(x, f64_set(0x1.71547652b82fep+0)));
  f64_v r = f64_fma(n, f64_set(-0x1.62e42fefa0000p-1), x);
  r = f64_fma(n, f64_set(-0x1.cf79abc9e3b3ap-40), r);
  f64_v p = f64_set(c[0]);
  for (int i = 1; i < 14; i++)
    p = f64_fma(p, r, f64_set(c[i]));
  return f64_scale(p, n);
}

// e^x for all x: 0 below LEAST, ∞ above MOST. A NaN stays NaN, since the minimum and maximum of x86
// return their second argument if one is NaN. exp_down is for x that are not positive.
#define EXP(A, LEAST, MOST)                                                                        \
  IN A##_v A##_exp_down(A##_v x) { return A##_exp_within(A##_max(A##_set(LEAST), x)); }            \
  IN A##_v A##_exp(A##_v x) { return A##_exp_within(A##_min(A##_set(MOST), A##_max(A##_set(LEAST), x))); }
EXP(f32, -110.0f, 100.0f)
EXP(f64, -760.0, 720.0)
#undef EXP

#define ACTIVATIONS(A, F)                                                                          \
  IN A##_v A##_relu(A##_v x) { return A##_less(x, A##_zero(), A##_zero(), x); }                    \
  /* 1 + e^-x */                                                                                   \
  IN A##_v A##_logistic(A##_v x) { return A##_add(A##_set(1), A##_exp(A##_sub(A##_zero(), x))); }  \
  IN A##_v A##_sigmoid(A##_v x) { return A##_div(A##_set(1), A##_logistic(x)); }                   \
  IN A##_v A##_swish(A##_v x) { return A##_div(x, A##_logistic(x)); }                              \
  /* x / (1 + e^-2u), u = √(2/π)·(x + 0.044715·x³) */                                              \
  IN A##_v A##_gelu_tanh(A##_v x) {                                                                \
    A##_v cubic = A##_mul(A##_mul(A##_mul(A##_set((F)0.044715), x), x), x);                        \
    return A##_div(x, A##_logistic(A##_mul(A##_set((F)1.59576912160573071176), A##_add(x, cubic)))); \
  }
ACTIVATIONS(f32, float)
ACTIVATIONS(f64, double)
#undef ACTIVATIONS

// tanh x = m/(m + 2) with m = e^2x - 1 = 2^n·(e^r - 1) + (2^n - 1), where 2x = n·ln 2 + r:
// near 0, where n is 0, nothing cancels. e^r - 1 is r + r²·q.
IN f32_v f32_tanh_act(f32_v x) {
  f32_v y = f32_add(x, x);
  y = f32_min(f32_set(20.0f), f32_max(f32_set(-20.0f), y)); // the result is ±1 beyond
  f32_v n = f32_near(f32_mul(y, f32_set(0x1.715476p+0f)));
  f32_v r = f32_fma(n, f32_set(-0x1.62e400p-1f), y);
  r = f32_fma(n, f32_set(-0x1.7f7d1cp-20f), r);
  f32_v q = f32_set(0x1.6a2434p-10f);
  q = f32_fma(q, r, f32_set(0x1.1239e2p-7f));
  q = f32_fma(q, r, f32_set(0x1.5558f2p-5f));
  q = f32_fma(q, r, f32_set(0x1.555492p-3f));
  q = f32_fma(q, r, f32_set(0x1.fffffcp-2f));
  f32_v s = f32_scale(f32_set(1.0f), n), m = f32_fma(f32_mul(r, r), q, r);
  m = f32_fma(s, m, f32_sub(s, f32_set(1.0f)));
  return f32_ratio(m, f32_add(m, f32_set(2.0f)));
}

// For doubles the C library computes these functions, element by element.
#define EACH(NAME, EXPRESSION)                                                                     \
  IN f64_v f64_##NAME(f64_v v) {                                                                   \
    double x[f64_W];                                                                               \
    f64_store(x, v);                                                                               \
    for (int i = 0; i < f64_W; i++)                                                                \
      x[i] = EXPRESSION;                                                                           \
    return f64_load(x);                                                                            \
  }
EACH(tanh_act, tanh(x[i]))
EACH(gelu, 0.5 * x[i] * erfc(-x[i] * 0.70710678118654752440))
#undef EACH
