// e^x and the activations that use it, for whole registers.
#include <math.h>

// The steps of a function of one register depend on each other, and a processor cannot look ahead far enough to fill the time
// with the next registers. A function whose name is a plural takes n registers, up to AT_ONCE, and does each step for all of them.
// gcc keeps arrays of vectors in registers only if it unrolls the loops over them.
enum { AT_ONCE = 4 };
#if defined(__clang__)
#define TOGETHER(n) for (int k = 0; k < n; k++)
#define ALL_STEPS
#else
#define ALL_STEPS _Pragma("GCC unroll 13")
#define TOGETHER(n) _Pragma("GCC unroll 4") for (int k = 0; k < n; k++)
#endif

// e^x for x from -110 to 100, and for NaN, within 2 units in the last place: x = n·ln 2 + r with
// ln 2 in two parts, and a polynomial for e^r whose relative error is below 2^-27.9.
IN void f32_exps_within(f32_v *x, int count) {
  f32_v n[AT_ONCE], p[AT_ONCE];
  TOGETHER(count) n[k] = f32_mul(x[k], f32_set(0x1.715476p+0f));
  TOGETHER(count) n[k] = f32_near(n[k]);
  TOGETHER(count) x[k] = f32_fma(n[k], f32_set(-0x1.62e400p-1f), x[k]);
  TOGETHER(count) x[k] = f32_fma(n[k], f32_set(-0x1.7f7d1cp-20f), x[k]);
  TOGETHER(count) p[k] = f32_fma(f32_set(0x1.6a2434p-10f), x[k], f32_set(0x1.1239e2p-7f));
  TOGETHER(count) p[k] = f32_fma(p[k], x[k], f32_set(0x1.5558f2p-5f));
  TOGETHER(count) p[k] = f32_fma(p[k], x[k], f32_set(0x1.555492p-3f));
  TOGETHER(count) p[k] = f32_fma(p[k], x[k], f32_set(0x1.fffffcp-2f));
  TOGETHER(count) p[k] = f32_fma(p[k], x[k], f32_set(1.0f));
  TOGETHER(count) p[k] = f32_fma(p[k], x[k], f32_set(1.0f));
  TOGETHER(count) x[k] = f32_scale(p[k], n[k]);
}

IN void f64_exps_within(f64_v *x, int count) { // from -760 to 720
  static const double c[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
                             1.0 / 5040,       1.0 / 720,       1.0 / 120,      1.0 / 24,      1.0 / 6,      0.5,
                             1.0,              1.0};
  f64_v n[AT_ONCE], p[AT_ONCE];
  TOGETHER(count) n[k] = f64_mul(x[k], f64_set(0x1.71547652b82fep+0));
  TOGETHER(count) n[k] = f64_near(n[k]);
  TOGETHER(count) x[k] = f64_fma(n[k], f64_set(-0x1.62e42fefa0000p-1), x[k]);
  TOGETHER(count) x[k] = f64_fma(n[k], f64_set(-0x1.cf79abc9e3b3ap-40), x[k]);
  TOGETHER(count) p[k] = f64_set(c[0]);
  ALL_STEPS for (int i = 1; i < 14; i++)
    TOGETHER(count) p[k] = f64_fma(p[k], x[k], f64_set(c[i]));
  TOGETHER(count) x[k] = f64_scale(p[k], n[k]);
}

// e^x for all x: 0 below LEAST, ∞ above MOST. A NaN stays NaN, since the minimum and maximum of x86
// return their second argument if one is NaN. exp_down is for x that are not positive.
#define EXP(A, LEAST, MOST)                                                                        \
  IN void A##_exps(A##_v *x, int n) {                                                              \
    TOGETHER(n) x[k] = A##_max(A##_set(LEAST), x[k]);                                              \
    TOGETHER(n) x[k] = A##_min(A##_set(MOST), x[k]);                                               \
    A##_exps_within(x, n);                                                                         \
  }                                                                                                \
  IN A##_v A##_exp(A##_v x) { return A##_exps(&x, 1), x; }
EXP(f32, -110.0f, 100.0f)
EXP(f64, -760.0, 720.0)
#undef EXP

IN f64_v f64_exp_down(f64_v x) {
  x = f64_max(f64_set(-760.0), x);
  return f64_exps_within(&x, 1), x;
}
#if HAVE_PICK == 8
// Without an instruction for v·2^n, the polynomial is that for 2^64·e^r, whose product with 2^n is not denormal, so that n can be added to
// its exponent. n is the low bits of a sum with a number whose last bit has the value 1; it is 0 for a NaN, whose exponent has to stay as it is.
IN f32_v f32_exp_down(f32_v x) {
  f32_v least = f32_set(-110.0f), whole = f32_set(0x1.8p23f), n = f32_fma(f32_max(least, f32_min(x, f32_zero())), f32_set(0x1.715476p+0f), whole);
  f32_v near = f32_sub(n, whole);
  x = f32_fma(near, f32_set(-0x1.62e400p-1f), f32_max(least, x));
  x = f32_fma(near, f32_set(-0x1.7f7d1cp-20f), x);
  f32_v p = f32_fma(f32_set(0x1.6a2434p+54f), x, f32_set(0x1.1239e2p+57f));
  p = f32_fma(p, x, f32_set(0x1.5558f2p+59f));
  p = f32_fma(p, x, f32_set(0x1.555492p+61f));
  p = f32_fma(p, x, f32_set(0x1.fffffcp+62f));
  p = f32_fma(p, x, f32_set(0x1p64f));
  p = f32_fma(p, x, f32_set(0x1p64f));
  return f32_mul(f32_shift(p, n), f32_set(0x1p-64f));
}
#else
IN f32_v f32_exp_down(f32_v x) {
  x = f32_max(f32_set(-110.0f), x);
  return f32_exps_within(&x, 1), x;
}
#endif

#define ACTIVATIONS(A, F)                                                                          \
  IN A##_v A##_relu(A##_v x) { return A##_less(x, A##_zero(), A##_zero(), x); }                    \
  /* 1 + e^-x */                                                                                   \
  IN A##_v A##_logistic(A##_v x) { return A##_add(A##_set(1), A##_exp(A##_sub(A##_zero(), x))); }  \
  IN A##_v A##_sigmoid(A##_v x) { return A##_div(A##_set(1), A##_logistic(x)); }                   \
  IN void A##_sigmoids(A##_v *x, int n) {                                                          \
    TOGETHER(n) x[k] = A##_sub(A##_zero(), x[k]);                                                  \
    A##_exps(x, n);                                                                                \
    TOGETHER(n) x[k] = A##_div(A##_set(1), A##_add(A##_set(1), x[k]));                             \
  }                                                                                                \
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
IN void f32_tanh_acts(f32_v *x, int count) {
  f32_v n[AT_ONCE], r[AT_ONCE], q[AT_ONCE], s[AT_ONCE];
  TOGETHER(count) x[k] = f32_add(x[k], x[k]);
  TOGETHER(count) x[k] = f32_max(f32_set(-20.0f), x[k]); // the result is ±1 beyond
  TOGETHER(count) x[k] = f32_min(f32_set(20.0f), x[k]);
  TOGETHER(count) n[k] = f32_mul(x[k], f32_set(0x1.715476p+0f));
  TOGETHER(count) n[k] = f32_near(n[k]);
  TOGETHER(count) r[k] = f32_fma(n[k], f32_set(-0x1.62e400p-1f), x[k]);
  TOGETHER(count) s[k] = f32_scale(f32_set(1.0f), n[k]);
  TOGETHER(count) r[k] = f32_fma(n[k], f32_set(-0x1.7f7d1cp-20f), r[k]);
  TOGETHER(count) q[k] = f32_fma(f32_set(0x1.6a2434p-10f), r[k], f32_set(0x1.1239e2p-7f));
  TOGETHER(count) q[k] = f32_fma(q[k], r[k], f32_set(0x1.5558f2p-5f));
  TOGETHER(count) q[k] = f32_fma(q[k], r[k], f32_set(0x1.555492p-3f));
  TOGETHER(count) q[k] = f32_fma(q[k], r[k], f32_set(0x1.fffffcp-2f));
  TOGETHER(count) x[k] = f32_fma(f32_mul(r[k], r[k]), q[k], r[k]);
  TOGETHER(count) x[k] = f32_fma(s[k], x[k], f32_sub(s[k], f32_set(1.0f)));
  TOGETHER(count) x[k] = f32_ratio(x[k], f32_add(x[k], f32_set(2.0f)));
}
IN f32_v f32_tanh_act(f32_v x) { return f32_tanh_acts(&x, 1), x; }

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
