// e^x and the activations made of it, of whole registers.

// e^x within 2 units in the last place: x = n·ln 2 + r with ln 2 in two parts, and a
// polynomial for e^r. 0 below -110 and ∞ above 100; a NaN stays one.
IN f32_v f32_exp(f32_v x) {
  x = f32_min(f32_set(100.0f), f32_max(f32_set(-110.0f), x)); // of a NaN, x86 takes the second
  f32_v n = f32_near(f32_mul(x, f32_set(0x1.715476p+0f)));
  f32_v r = f32_fma(n, f32_set(-0x1.62e400p-1f), x);
  r = f32_fma(n, f32_set(-0x1.7f7d1cp-20f), r);
  f32_v p = f32_set(1.0f / 5040);
  p = f32_fma(p, r, f32_set(1.0f / 720));
  p = f32_fma(p, r, f32_set(1.0f / 120));
  p = f32_fma(p, r, f32_set(1.0f / 24));
  p = f32_fma(p, r, f32_set(1.0f / 6));
  p = f32_fma(p, r, f32_set(0.5f));
  p = f32_fma(p, r, f32_set(1.0f));
  p = f32_fma(p, r, f32_set(1.0f));
  return f32_scale(p, n);
}

IN f64_v f64_exp(f64_v x) {
  static const double c[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
                             1.0 / 5040,       1.0 / 720,       1.0 / 120,      1.0 / 24,      1.0 / 6,      0.5,
                             1.0,              1.0};
  x = f64_min(f64_set(720.0), f64_max(f64_set(-760.0), x));
  f64_v n = f64_near(f64_mul(x, f64_set(0x1.71547652b82fep+0)));
  f64_v r = f64_fma(n, f64_set(-0x1.62e42fefa0000p-1), x);
  r = f64_fma(n, f64_set(-0x1.cf79abc9e3b3ap-40), r);
  f64_v p = f64_set(c[0]);
  for (int i = 1; i < 14; i++)
    p = f64_fma(p, r, f64_set(c[i]));
  return f64_scale(p, n);
}

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

// tanh x: 1 - 2/(e^2|x| + 1) with the sign of x; near 0 the odd polynomial of S. Moshier's
// Cephes library, as nothing may cancel.
IN f32_v f32_tanh_act(f32_v x) {
  f32_v size = f32_less(x, f32_zero(), f32_sub(f32_zero(), x), x), z = f32_mul(x, x);
  f32_v far = f32_div(f32_set(2), f32_add(f32_exp(f32_add(size, size)), f32_set(1)));
  far = f32_sub(f32_set(1), far);
  far = f32_less(x, f32_zero(), f32_sub(f32_zero(), far), far);
  f32_v p = f32_set(-5.70498872745e-3f);
  p = f32_fma(p, z, f32_set(2.06390887954e-2f));
  p = f32_fma(p, z, f32_set(-5.37397155531e-2f));
  p = f32_fma(p, z, f32_set(1.33314422036e-1f));
  p = f32_fma(p, z, f32_set(-3.33332819422e-1f));
  return f32_less(size, f32_set(0.625f), f32_fma(f32_mul(p, z), x, x), far);
}

// x·Φ(x), where Φ(-|x|) = erfc(z)/2 and erfc(z) = e^(-z²)·t·P(t), z = |x|/√2, t = 1/(1 + 0.4·z).
// P is a least-squares fit whose relative error was levelled to 2^-25.
IN f32_v f32_gelu(f32_v x) {
  f32_v size = f32_less(x, f32_zero(), f32_sub(f32_zero(), x), x);
  f32_v t = f32_div(f32_set(1), f32_fma(f32_set(0.28284271f), size, f32_set(1)));
  f32_v p = f32_set(-0.023106903f);
  p = f32_fma(p, t, f32_set(0.163433061f));
  p = f32_fma(p, t, f32_set(-0.419206754f));
  p = f32_fma(p, t, f32_set(0.443817328f));
  p = f32_fma(p, t, f32_set(-0.200538927f));
  p = f32_fma(p, t, f32_set(0.228470939f));
  p = f32_fma(p, t, f32_set(0.144216392f));
  p = f32_fma(p, t, f32_set(0.211929181f));
  p = f32_fma(p, t, f32_set(0.225295574f));
  p = f32_fma(p, t, f32_set(0.225690127f));
  f32_v below = f32_mul(f32_exp(f32_mul(f32_mul(f32_set(-0.5f), x), x)), f32_mul(f32_mul(f32_set(0.5f), t), p));
  return f32_mul(x, f32_less(x, f32_zero(), below, f32_sub(f32_set(1), below)));
}
