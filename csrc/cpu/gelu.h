// gelu(x) = x·Φ(x), where Φ is the distribution function of the normal distribution: by a table if
// the instruction set can read one from a register, otherwise by a quotient.

// f32_GELUS registers are computed together, because the steps of a single one depend on each
// other.
#ifdef HAVE_PICK
#if HAVE_PICK == 16
enum { f32_GELUS = 3, GELU_TERMS = 5 };
#define GELU_STEP 1
static const float gelu_table[6][16] = {
    {0x1p+39f, 0x1.44ed0cp+37f, 0x1.74bcf8p+34f, 0x1.61de2p+30f, 0x1.09ad7ap+25f, 0x1.33ca3p+18f, 0x1.0f30fp+10f,
     0x1.683c36p+0f, 0x1.669d2cp-11f, 0x1.0a7afcp-23f, 0x1.26c75ep-37f, 0x1.e468e6p-53f, 0x1.272b32p-69f,
     0x1.0a70aap-87f, 0x1.63f222p-107f},
    {0x1.26aec6p+0f, 0x1.19a398p+1f, 0x1.b63ffp+1f, 0x1.2f22fcp+2f, 0x1.86292ap+2f, 0x1.dee1fep+2f, 0x1.1c5062p+3f,
     0x1.49837ep+3f, 0x1.76eedcp+3f, 0x1.a4819cp+3f, 0x1.d230e6p+3f, 0x1.fff57cp+3f, 0x1.16e52cp+4f, 0x1.2dd5f6p+4f,
     0x1.44cbccp+4f},
    {-0x1.d63d88p-2f, -0x1.27cc26p-1f, -0x1.471fbcp-1f, -0x1.57454cp-1f, -0x1.6017aap-1f, -0x1.654116p-1f,
     -0x1.68787ap-1f, -0x1.6a95d4p-1f, -0x1.6c0a12p-1f, -0x1.6d13c2p-1f, -0x1.6dd76ap-1f, -0x1.6e6b5cp-1f,
     -0x1.6eddc2p-1f, -0x1.6f37f2p-1f, -0x1.6f803ep-1f},
    {0x1.adcc38p-5f, 0x1.ccac08p-6f, 0x1.d3a942p-7f, 0x1.efe7dap-8f, 0x1.19604ap-8f, 0x1.552e8cp-9f, 0x1.b64b22p-10f,
     0x1.278714p-10f, 0x1.9efcc6p-11f, 0x1.2d6344p-11f, 0x1.c2671ep-12f, 0x1.58c57cp-12f, 0x1.0d6cf8p-12f,
     0x1.acad7ep-13f, 0x1.5a5fcap-13f},
    {0x1.d0005cp-8f, 0x1.3849cp-8f, 0x1.38a0eep-9f, 0x1.2c6a7cp-10f, 0x1.2d7b34p-11f, 0x1.425db4p-12f,
     0x1.6f0bfap-13f, 0x1.ba154ap-14f, 0x1.177c26p-14f, 0x1.706158p-15f, 0x1.f71f74p-16f, 0x1.6239d2p-16f,
     0x1.000f18p-16f, 0x1.7ac85p-17f, 0x1.1dd838p-17f},
    {0x1.3d3746p-12f, 0x1.2f3eccp-11f, 0x1.7021dap-12f, 0x1.58dcdep-13f, 0x1.3da5p-14f, 0x1.3238d4p-15f,
     0x1.397feep-16f, 0x1.54924ep-17f, 0x1.8676dcp-18f, 0x1.d56e22p-19f, 0x1.261b8ap-19f, 0x1.7e0c2ep-20f,
     0x1.001086p-20f, 0x1.60d5dep-21f, 0x1.f21cfap-22f},
};
#else
enum { f32_GELUS = 1, GELU_TERMS = 6 };
#define GELU_STEP 2
static const float gelu_table[7][8] = {
    {0x1p+39f, 0x1.74bcf8p+34f, 0x1.09ad7ap+25f, 0x1.0f30eep+10f, 0x1.669d2cp-11f, 0x1.26c75ep-37f, 0x1.272b32p-69f,
     0x1.63f222p-107f},
    {0x1.26aeccp+0f, 0x1.b63ff2p+1f, 0x1.86292ap+2f, 0x1.1c5062p+3f, 0x1.76eedcp+3f, 0x1.d230e6p+3f, 0x1.16e52cp+4f,
     0x1.44cbccp+4f},
    {-0x1.d63c68p-2f, -0x1.471f94p-1f, -0x1.60179cp-1f, -0x1.687878p-1f, -0x1.6c0a1p-1f, -0x1.6dd76ap-1f,
     -0x1.6eddc2p-1f, -0x1.6f803ep-1f},
    {0x1.ade802p-5f, 0x1.d39af6p-7f, 0x1.195118p-8f, 0x1.b63fd4p-10f, 0x1.9ef7d2p-11f, 0x1.c2647p-12f,
     0x1.0d6c1cp-12f, 0x1.5a5f24p-13f},
    {0x1.cf6146p-8f, 0x1.36b77cp-9f, 0x1.2b82bcp-11f, 0x1.6d6a2p-13f, 0x1.16a61ap-14f, 0x1.f6117cp-16f,
     0x1.ff5542p-17f, 0x1.1d8324p-17f},
    {0x1.bfe084p-13f, 0x1.72fdbcp-12f, 0x1.43914ep-14f, 0x1.3de76ap-16f, 0x1.8a52dp-18f, 0x1.2831c4p-19f,
     0x1.0169aap-20f, 0x1.f41f24p-22f},
    {-0x1.803a9cp-14f, 0x1.50b722p-15f, 0x1.46f374p-17f, 0x1.0fc02p-19f, 0x1.183958p-21f, 0x1.6323a6p-23f,
     0x1.09343cp-24f, 0x1.c234dcp-26f},
};
#endif

// With m = -|x|, gelu(x) is m·Φ(m), plus x if x is positive. c is the multiple of GELU_STEP that is
// nearest to m, and Φ(m) = Φ(c)·2^(d·Q(d)) with d = m - c. The table has Φ(c)·2^40, which is not
// denormal, and the coefficients of Q, whose relative error in Φ(m) is less than 2^-25; that of the
// polynomial for 2^r is 2^-23.1. The result is within 3 units in the last place for x above -1, and
// within 16 below.
IN void f32_gelus(f32_v *x, int n) {
  f32_v m[f32_GELUS], at[f32_GELUS], d[f32_GELUS], q[f32_GELUS], e[f32_GELUS], p[f32_GELUS];
  f32_v whole = f32_set(0x1.8p23f), whole_step = f32_set(GELU_STEP * 0x1.8p23f); // so large that the last bit of a sum has the value 1, or GELU_STEP
  TOGETHER(n) m[k] = f32_max(f32_set(-14.45f), f32_below(x[k])); // below, m·Φ(m) is 0
  TOGETHER(n) at[k] = f32_sub(whole_step, m[k]);
  TOGETHER(n) d[k] = f32_sub(at[k], whole_step);
  TOGETHER(n) d[k] = f32_add(m[k], d[k]);
  TOGETHER(n) q[k] = f32_fma(d[k], f32_pick(gelu_table[GELU_TERMS], at[k]), f32_pick(gelu_table[GELU_TERMS - 1], at[k]));
#if GELU_STEP > 1
  TOGETHER(n) q[k] = f32_fma(q[k], d[k], f32_pick(gelu_table[4], at[k]));
#endif
  TOGETHER(n) q[k] = f32_fma(q[k], d[k], f32_pick(gelu_table[3], at[k]));
  TOGETHER(n) q[k] = f32_fma(q[k], d[k], f32_pick(gelu_table[2], at[k]));
  TOGETHER(n) q[k] = f32_fma(q[k], d[k], f32_pick(gelu_table[1], at[k]));
  TOGETHER(n) m[k] = f32_mul(m[k], f32_pick(gelu_table[0], at[k]));
  TOGETHER(n) e[k] = f32_fma(q[k], d[k], whole);
  TOGETHER(n) at[k] = f32_sub(whole, e[k]);
  TOGETHER(n) d[k] = f32_fma(q[k], d[k], at[k]);
  TOGETHER(n) p[k] = f32_fma(d[k], f32_set(0x1.5bba14p-50f), f32_set(0x1.3cea88p-47f));
  TOGETHER(n) p[k] = f32_fma(p[k], d[k], f32_set(0x1.c6b752p-45f));
  TOGETHER(n) p[k] = f32_fma(p[k], d[k], f32_set(0x1.ebf9bcp-43f));
  TOGETHER(n) p[k] = f32_fma(p[k], d[k], f32_set(0x1.62e42ap-41f));
  TOGETHER(n) p[k] = f32_fma(p[k], d[k], f32_set(0x1p-40f));
  TOGETHER(n) x[k] = f32_sub(x[k], f32_min(x[k], f32_zero())); // NaN for -∞
  TOGETHER(n) x[k] = f32_fma(f32_shift(p[k], e[k]), m[k], x[k]);
}
#undef GELU_STEP
IN f32_v f32_gelu(f32_v x) { return f32_gelus(&x, 1), x; }
#else
// Φ(-|x|) = erfc(z)/2, erfc(z) = e^(-z²)·t·P(t), z = |x|/√2, t = 1/(1 + 0.4·z).
// P is a least-squares fit whose relative error is below 2^-23.6 with constants in float.
IN f32_v f32_gelu(f32_v x) {
  f32_v size = f32_min(f32_set(100.0f), f32_max(x, f32_sub(f32_zero(), x)));
  f32_v t = f32_ratio(f32_set(1), f32_fma(f32_set(0.28284271f), size, f32_set(1)));
  f32_v p = f32_set(-0.0115534515f); // half of the polynomial
  p = f32_fma(p, t, f32_set(0.0817165305f));
  p = f32_fma(p, t, f32_set(-0.2096033615f));
  p = f32_fma(p, t, f32_set(0.2219086635f));
  p = f32_fma(p, t, f32_set(-0.1002694635f));
  p = f32_fma(p, t, f32_set(0.1142354695f));
  p = f32_fma(p, t, f32_set(0.072108196f));
  p = f32_fma(p, t, f32_set(0.1059645905f));
  p = f32_fma(p, t, f32_set(0.112647787f));
  p = f32_fma(p, t, f32_set(0.1128450635f));
  f32_v below = f32_mul(f32_exp_down(f32_mul(f32_mul(f32_set(-0.5f), x), x)), f32_mul(t, p));
  return f32_mul(x, f32_less(x, f32_zero(), below, f32_sub(f32_set(1), below)));
}
enum { f32_GELUS = 1 };
IN void f32_gelus(f32_v *x, int n) { (void)n, *x = f32_gelu(*x); }
#endif

