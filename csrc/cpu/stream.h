// What runs at the speed of memory: arithmetic by element, sums and softmax of rows.
#define T f32
#define E float
#include "elements.h"
#undef T
#undef E
#define T f64
#define E double
#include "elements.h"
#undef T
#undef E

// e to the power of x ≤ 0 within 2 units in the last place: x = n·ln 2 + r with ln 2 in
// two parts, and a polynomial for e^r. Below -104 the result is 0; of -∞ too.
IN f32_v f32_exp(f32_v x) {
  x = f32_max(x, f32_set(-110.0f));
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

// y = e^(x - m).
IN void f32_exp_row(const float *x, float *y, int64_t n, float m) {
  f32_v by = f32_set(m);
  int64_t j = 0;
  for (; j + f32_W <= n; j += f32_W)
    f32_store(y + j, f32_exp(f32_sub(f32_load(x + j), by)));
  if (j < n) {
    f32_m mask = f32_first(n - j);
    f32_storem(y + j, mask, f32_exp(f32_sub(f32_loadm(x + j, mask), by)));
  }
}

// Words: rows, columns, from, to. A row with a NaN or an infinity is left to the
// caller: its number is written to the list at word 4, and how many to word 5.
static void f32_softmax(const simd_word *w) {
  int64_t rows = w[0].i, n = w[1].i, odd = 0;
  for (int64_t i = 0; i < rows; i++) {
    const float *x = (const float *)w[2].p + i * n;
    float *y = (float *)w[3].p + i * n;
    f32_v top = f32_set(-__builtin_inff()), nan = f32_zero();
    int64_t j = 0;
    for (; j + f32_W <= n; j += f32_W) {
      f32_v v = f32_load(x + j);
      top = f32_max(top, v), nan = f32_add(nan, f32_mul(v, f32_zero())); // ∞·0 is NaN as well
    }
    float m = f32_largest(top), bad = f32_sum(nan);
    for (int64_t q = j; q < n; q++)
      m = x[q] > m ? x[q] : m, bad += x[q] * 0;
    if (bad != bad) {
      ((int64_t *)w[4].p)[odd++] = i;
      continue;
    }
    f32_exp_row(x, y, n, m);
    float sum = f32_sum_long(y, n);
    f32_v by = f32_set(sum);
    for (j = 0; j + f32_W <= n; j += f32_W)
      f32_store(y + j, f32_div(f32_load(y + j), by));
    for (; j < n; j++)
      y[j] /= sum;
  }
  *(int64_t *)w[5].p = odd;
}
