// Codes of package quant: blocks and groups of numbers of few bits. Go has the same functions, whose bytes these have to equal:
// each product and sum is rounded, and Go decides what is an error. An encoder that finds something odd only says so.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC push_options
#pragma GCC optimize("O3,no-math-errno,no-trapping-math,fp-contract=off")
#endif

#if defined(__clang__)
#define quant_UNROLL
#else
#define quant_UNROLL _Pragma("GCC unroll 8")
#endif
#define W f32_W
#define V f32_v

IN V quant_size(V x) { return f32_max(x, f32_sub(f32_zero(), x)); }

// The largest magnitude of numbers so far, and a sum that is not 0 if one is not finite.
typedef struct {
  V most[4], odd[4];
} quant_seen;

IN quant_seen quant_start(void) {
  V z = f32_zero();
  return (quant_seen){{z, z, z, z}, {z, z, z, z}};
}
IN void quant_see(quant_seen *s, int k, V x) {
  s->most[k] = f32_max(s->most[k], quant_size(x));
  s->odd[k] = f32_fma(x, f32_zero(), s->odd[k]);
}
IN float quant_most(const quant_seen *s) {
  return f32_largest(f32_max(f32_max(s->most[0], s->most[1]), f32_max(s->most[2], s->most[3])));
}
IN int quant_odd(const quant_seen *s) { return f32_sum(f32_add(f32_add(s->odd[0], s->odd[1]), f32_add(s->odd[2], s->odd[3]))) != 0; }

// Looks at n numbers, a multiple of 4·W, and returns their largest magnitude.
IN float quant_look(const float *x, int64_t n, int *odd) {
  quant_seen s = quant_start();
  for (int64_t i = 0; i < n; i += 4 * W)
    for (int k = 0; k < 4; k++)
      quant_see(&s, k, f32_load(x + i + k * W));
  *odd |= quant_odd(&s);
  return quant_most(&s);
}

// Returns the largest magnitude of a block of n numbers, a multiple of W. Whether a number is not finite stays in s.
IN float quant_block(const float *x, int64_t n, quant_seen *s) {
  for (int k = 0; k < 4; k++)
    s->most[k] = f32_zero();
  for (int64_t i = 0; i < n; i += W)
    quant_see(s, i / W % 4, f32_load(x + i));
  return quant_most(s);
}

IN float quant_reciprocal(float d) {
  float r = 1 / d;
  return r - r == 0 ? r : 0;
}

IN void quant_put_half(uint8_t *to, float d) {
  uint16_t h[W];
  f32_to_f16(h, f32_set(d));
  memcpy(to, h, 2);
}
IN float quant_half(const uint8_t *p) {
  uint32_t u = (uint32_t)p[0] | (uint32_t)p[1] << 8, sign = (u & 0x8000) << 16, size = u & 0x7fff;
  float x;
  if (size < 0x400) {
    x = (float)size * 0x1p-24f;
    return sign ? -x : x;
  }
  u = sign | ((size << 13) + (size < 0x7c00 ? 112u << 23 : 224u << 23));
  memcpy(&x, &u, 4);
  return x;
}

// 0, 1 or 2 for numbers up to -limit, between, and from limit on.
IN V quant_trits(V x, V limit, V minus) { return f32_less(minus, x, f32_less(x, limit, f32_set(1), f32_set(2)), f32_zero()); }
IN V quant_next(V q, float base, V t) { return f32_fma(q, f32_set(base), t); } // whole numbers: exact

// Sixteen bytes. What is stored whole is read back without a wait.
typedef uint8_t quant_u8 __attribute__((vector_size(16)));
IN quant_u8 quant_bytes(const uint8_t *p) {
  quant_u8 v;
  memcpy(&v, p, 16);
  return v;
}

// Fields of two bits as numbers -1, 0 and 1; a 3 becomes 0.
IN quant_u8 quant_field(quant_u8 v, int shift) {
  v = v >> shift & 3;
  return v - ((v & v >> 1) << 1) - 1;
}

// Returns the largest magnitude of n numbers.
IN float quant_any(const float *x, int64_t n, int *odd) {
  int64_t i = n / (4 * W) * (4 * W);
  float most = quant_look(x, i, odd);
  for (; i < n; i++) {
    float a = x[i] < 0 ? -x[i] : x[i];
    *odd |= !(a - a == 0);
    most = a > most ? a : most;
  }
  return most;
}

// Stores sixteen signed bytes times d.
IN void quant_scaled(quant_u8 v, V d, float *x) {
  int8_t q[16];
  memcpy(q, &v, 16);
  for (int i = 0; i < 16; i += W)
    f32_store(x + i, f32_mul(f32_from_i8(q + i), d));
}

// The words of all functions: numbers, bytes, how many groups or blocks, two doubles for results. Encoders set the first to 1 if something
// is odd.

// The largest magnitude of single numbers, and 1 if one is not finite.
EXPORT(quant_largest) {
  const float *x = w[0].p;
  double *to = w[3].p;
  int odd = 0;
  to[0] = quant_any(x, w[2].i, &odd), to[1] = odd;
}

// Groups of 4n numbers in n bytes, the first n in the top bits. More words: the bytes of a group, which the encoder needs as a multiple of 16, the scale, the magnitudes from
// which a number is not zero and up to which it is odd.
EXPORT(quant_interleaved_encode) {
  const float *x = w[0].p;
  uint8_t *data = w[1].p;
  int64_t n = w[4].i;
  V limit = f32_set((float)w[6].f), minus = f32_set(-(float)w[6].f), high = f32_set(-0x1p127f);
  for (int64_t g = 0; g < w[2].i; g++, x += 4 * n, data += n)
    for (int64_t b = 0; b < n; b += W) {
      V q = f32_zero();
      for (int k = 0; k < 4; k++) {
        V v = f32_load(x + k * n + b), a = quant_size(v);
        high = f32_max(high, f32_less(a, limit, f32_set(-0x1p127f), f32_sub(f32_zero(), a)));
        q = quant_next(q, 4, quant_trits(v, limit, minus));
      }
      f32_put8(data + b, q);
    }
  *(double *)w[3].p = f32_largest(high) > -(float)w[7].f;
}

EXPORT(quant_interleaved_decode) {
  float *x = w[0].p;
  const uint8_t *data = w[1].p;
  int64_t n = w[4].i;
  float scale = (float)w[5].f;
  V d = f32_set(scale);
  for (int64_t g = 0; g < w[2].i; g++, x += 4 * n, data += n) {
    int64_t b = 0;
    for (; b + 16 <= n; b += 16)
      for (int k = 0; k < 4; k++)
        quant_scaled(quant_field(quant_bytes(data + b), 6 - 2 * k), d, x + k * n + b);
    for (; b < n; b++)
      for (int k = 0; k < 4; k++) {
        int c = data[b] >> (6 - 2 * k) & 3;
        x[k * n + b] = (float)(c == 3 ? 0 : c - 1) * scale;
      }
  }
}

// TQ2_0.
EXPORT(quant_tq2_encode) {
  const float *x = w[0].p;
  uint8_t *data = w[1].p;
  V limit = f32_set(0.5f), minus = f32_set(-0.5f);
  int odd = 0;
  for (int64_t g = 0; g < w[2].i; g++, x += 256, data += 66) {
    float most = quant_look(x, 256, &odd);
    V r = f32_set(quant_reciprocal(most));
    odd |= !(most < 65520);
    for (int b = 0; b < 64; b += W) {
      const float *first = x + b / 32 * 128 + b % 32;
      V q = f32_zero();
      for (int k = 3; k >= 0; k--)
        q = quant_next(q, 4, quant_trits(f32_mul(f32_load(first + 32 * k), r), limit, minus));
      f32_put8(data + b, q);
    }
    quant_put_half(data + 64, most);
  }
  *(double *)w[3].p = odd;
}

// TQ1_0: a byte is the next whole number above 256/243 times five ternary digits; half a unit of the numerator keeps the quotient away from
// whole numbers.
EXPORT(quant_tq1_encode) {
  const float *x = w[0].p;
  uint8_t *data = w[1].p;
  V limit = f32_set(0.5f), minus = f32_set(-0.5f), ratio = f32_set(256.0f / 243), up = f32_set(242.5f / 243);
  int odd = 0;
  for (int64_t g = 0; g < w[2].i; g++, x += 256, data += 54) {
    float most = quant_look(x, 256, &odd), r = quant_reciprocal(most);
    V by = f32_set(r);
    odd |= !(most < 65520);
    for (int b = 0; b < 48; b += W) {
      const float *first = b < 32 ? x + b : x + 128 + b;
      int step = b < 32 ? 32 : 16;
      V q = f32_zero();
      for (int k = 0; k < 5; k++)
        q = quant_next(q, 3, quant_trits(f32_mul(f32_load(first + step * k), by), limit, minus));
      f32_put8(data + b, f32_fma(q, ratio, up));
    }
    for (int m = 0; m < 4; m++) {
      int q = 0;
      for (int k = 0; k < 4; k++) {
        float y = x[240 + m + 4 * k] * r;
        q = 3 * q + (y >= 0.5f ? 2 : y <= -0.5f ? 0 : 1);
      }
      data[48 + m] = (uint8_t)((3 * q * 256 + 242) / 243);
    }
    quant_put_half(data + 52, most);
  }
  *(double *)w[3].p = odd;
}

// The first digit of bytes, less one: three times a byte reaches 256 at 86 and 512 at 171. The next digits are those of three times the byte.
IN quant_u8 quant_digit(quant_u8 v) { return (quant_u8)(v < 86) - (quant_u8)(v >= 171); }

EXPORT(quant_tq1_decode) {
  float *x = w[0].p;
  const uint8_t *data = w[1].p;
  for (int64_t g = 0; g < w[2].i; g++, x += 256, data += 54) {
    V d = f32_set(quant_half(data + 52));
    for (int b = 0; b < 48; b += 16) {
      quant_u8 v = quant_bytes(data + b);
      float *to = b < 32 ? x + b : x + 160;
      for (int k = 0; k < 5; k++, v = v + v + v, to += b < 32 ? 32 : 16)
        quant_scaled(quant_digit(v), d, to);
    }
    uint32_t last[4];
    memcpy(last, data + 48, 4);
    for (int k = 1; k < 4; k++) { // bytes of three times the bytes before
      quant_u8 v = {0};
      memcpy(&v, last + k - 1, 4);
      v = v + v + v;
      memcpy(last + k, &v, 4);
    }
    quant_scaled(quant_digit(quant_bytes((const uint8_t *)last)), d, x + 240);
  }
}

// A description of blocks, as quant/block.go has it: codes in planes of bits, less a number, times a scale. A run of codes is in consecutive bytes at one
// shift; the next run is above it and, where the bytes are full, in the bytes behind them. Bytes with a sign are codes less 128 already. Of ternary codes a 3
// reads as 1.
enum { quant_ONE, quant_LEAST, quant_HALVES_APART }; // the rules of scales
typedef struct {
  int32_t at, bits, run;
} quant_plane;
typedef struct {
  int32_t numbers, bytes, less, is_signed, ternary, scale, rule, factors;
  quant_plane plane[2]; // the second of no bits if there is one
} quant_form;

// The descriptions for which functions are compiled. Others take one function that reads its description, which is slower.
#define QUANT_TOP_FORMS(F, f, run)                                                                 \
  F(((quant_form){32, 18, 8, 0, 0, 0, quant_ONE, 0, {{2, 4, 16}, {0, 0, 16}}}), f, run)            /* Q4_0 */ \
  F(((quant_form){32, 22, 16, 0, 0, 0, quant_ONE, 0, {{6, 4, 16}, {2, 1, 1}}}), f, run)            /* Q5_0 */
#define QUANT_FORMS(F, f, run)                                                                     \
  QUANT_TOP_FORMS(F, f, run)                                                                       \
  F(((quant_form){256, 66, 1, 0, 1, 64, quant_ONE, 0, {{0, 2, 32}, {0, 0, 16}}}), f, run)     /* TQ2_0 */ \
  F(((quant_form){32, 34, 128, 1, 0, 0, quant_ONE, 0, {{2, 8, 32}, {0, 0, 16}}}), f, run)     /* Q8_0 */ \
  F(((quant_form){256, 144, 0, 0, 0, 0, quant_LEAST, 4, {{16, 4, 32}, {0, 0, 16}}}), f, run)  /* Q4_K */ \
  F(((quant_form){256, 176, 0, 0, 0, 0, quant_LEAST, 4, {{48, 4, 32}, {16, 1, 32}}}), f, run)      /* Q5_K */ \
  F(((quant_form){256, 210, 32, 0, 0, 208, quant_HALVES_APART, 192, {{0, 4, 64}, {128, 2, 32}}}), f, run) /* Q6_K */
#define QUANT_FORM(FORM, f, run)                                                                   \
  {                                                                                                \
    const quant_form known = FORM;                                                                 \
    if (!memcmp(&known, f, sizeof known)) {                                                        \
      run(w, FORM);                                                                                \
      return;                                                                                      \
    }                                                                                              \
  }

// The bits of a plane of sixteen codes from number i on. A run has 16 numbers or a multiple of that, or a byte has the bits of eight numbers in their order.
IN quant_u8 quant_bits(const uint8_t *data, quant_plane p, int i) {
  int per = 8 / p.bits, at = i / p.run;
  if (p.run == 1) {
    const quant_u8 bit = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint64_t twice[2] = {data[p.at + i / 8] * 0x0101010101010101u, data[p.at + i / 8 + 1] * 0x0101010101010101u};
    quant_u8 v;
    memcpy(&v, twice, 16);
    return (quant_u8)((v & bit) != 0) & 1;
  }
  return quant_bytes(data + p.at + at / per * p.run + i % p.run) >> at % per * p.bits & (uint8_t)((1 << p.bits) - 1);
}

IN void quant_block_numbers(const simd_word *w, const quant_form f) {
  float *x = w[0].p;
  const uint8_t *data = w[1].p;
  for (int64_t g = 0; g < w[2].i; g++, x += f.numbers, data += f.bytes) {
    float scale = quant_half(data + f.scale), low = f.rule == quant_LEAST ? quant_half(data + f.scale + 2) : 0;
    const uint8_t *at = data + f.factors;
    V d = f32_set(scale), m = f32_zero();
    quant_UNROLL for (int j = 0; j < f.numbers / 32; j++) {
      if (f.rule == quant_LEAST) {
        d = f32_set(scale * (float)(j < 4 ? at[j] & 63 : (at[j + 4] & 15) | at[j - 4] >> 6 << 4));
        m = f32_set(low * (float)(j < 4 ? at[j + 4] & 63 : at[j + 4] >> 4 | at[j] >> 6 << 4));
      }
      quant_UNROLL for (int i = 32 * j; i < 32 * j + 32; i += 16) {
        int8_t q[16];
        if (f.rule == quant_HALVES_APART)
          d = f32_set(scale * (float)(int8_t)at[i / 16]);
        if (f.is_signed) {
          memcpy(q, data + f.plane[0].at + i, 16);
        } else {
          quant_u8 v = quant_bits(data, f.plane[0], i);
          if (f.plane[1].bits)
            v |= quant_bits(data, f.plane[1], i) << f.plane[0].bits;
          if (f.ternary)
            v -= (v & v >> 1) << 1;
          v -= (uint8_t)f.less;
          memcpy(q, &v, 16);
        }
        for (int k = 0; k < 16; k += W) {
          V y = f32_mul(f32_from_i8(q + k), d);
          f32_store(x + i + k, f.rule == quant_LEAST ? f32_sub(y, m) : y);
        }
      }
    }
  }
}

// More words: the description.
EXPORT(quant_block_decode) {
  const quant_form *f = w[4].p;
  QUANT_FORMS(QUANT_FORM, f, quant_block_numbers)
  quant_block_numbers(w, *f);
}

// Stores the bits of a plane of codes, from bit up on, a run having 8 numbers or a multiple of that, or one.
IN void quant_put_bits(uint8_t *data, quant_plane p, int numbers, int up, const uint8_t *q) {
  int per = 8 / p.bits;
  uint64_t mask = 0x0101010101010101u * ((1u << p.bits) - 1);
  if (p.run == 1) { // the lowest bits of eight bytes meet in the top byte of a product
    for (int i = 0; i < numbers; i += 8) {
      uint64_t v;
      memcpy(&v, q + i, 8);
      data[p.at + i / 8] = (uint8_t)((v >> up & mask) * 0x0102040810204080u >> 56);
    }
    return;
  }
  for (int at = 0; at < numbers / per; at += 8) {
    uint64_t v, all = 0;
    for (int k = 0; k < per; k++) {
      memcpy(&v, q + (at / p.run * per + k) * p.run + at % p.run, 8);
      all |= (v >> up & mask) << k * p.bits;
    }
    memcpy(data + p.at + at, &all, 8);
  }
}

// The first number of the largest magnitude becomes the least code. It is the largest or the least number; only where both have that magnitude, the first is
// searched.
IN void quant_top(const simd_word *w, const quant_form f) {
  const float *x = w[0].p;
  uint8_t *data = w[1].p, q[32];
  float size = (float)f.less;
  V last = f32_set(2 * size - 1);
  int odd = 0;
  quant_seen s = quant_start();
  for (int64_t g = 0; g < w[2].i; g++, x += 32, data += f.bytes) {
    V high = f32_load(x), low = f32_sub(f32_zero(), high);
    s.odd[0] = f32_fma(high, f32_zero(), s.odd[0]);
    for (int i = W; i < 32; i += W) {
      V v = f32_load(x + i);
      high = f32_max(high, v);
      low = f32_max(low, f32_sub(f32_zero(), v));
      s.odd[i / W % 4] = f32_fma(v, f32_zero(), s.odd[i / W % 4]);
    }
    float most = f32_largest(high), least = -f32_largest(low), top = most > -least ? most : least;
    odd |= !(-65520.0f * size < top && top < 65520.0f * size);
    if (most == -least)
      for (int i = 0; i < 32; i += W) {
        unsigned below = f32_lessbits(quant_size(f32_load(x + i)), f32_set(most)), all = (1u << W) - 1;
        if (most == 0 || below != all) {
          top = most == 0 ? 0 : x[i + __builtin_ctz(~below)];
          break;
        }
      }
    float d = top / -size, one = quant_reciprocal(d);
    V r = f32_set(one), half = f32_set(one == 0 && d != 0 ? 0 : size + 0.5f); // without a reciprocal all codes are 0, as ggml's
    for (int i = 0; i < 32; i += W)
      f32_put8(q + i, f32_min(f32_add(f32_mul(f32_load(x + i), r), half), last));
    quant_put_half(data + f.scale, d);
    quant_put_bits(data, f.plane[0], 32, 0, q);
    if (f.plane[1].bits)
      quant_put_bits(data, f.plane[1], 32, f.plane[0].bits, q);
  }
  *(double *)w[3].p = odd | quant_odd(&s);
}

// Blocks of 32 numbers. More words: the description.
EXPORT(quant_top_encode) {
  const quant_form *f = w[4].p;
  QUANT_TOP_FORMS(QUANT_FORM, f, quant_top)
  quant_top(w, *f);
}

// Q8_0: the largest magnitude becomes 127. Adding the number before a half and dropping the fraction rounds halves away from zero.
EXPORT(quant_most_encode) {
  const float *x = w[0].p;
  uint8_t *data = w[1].p;
  V up = f32_set(0x1.fffffep-2f), down = f32_set(-0x1.fffffep-2f);
  int odd = 0;
  quant_seen s = quant_start();
  for (int64_t g = 0; g < w[2].i; g++, x += 32, data += 34) {
    float d = quant_block(x, 32, &s) / 127;
    odd |= !(d < 65520);
    V r = f32_set(quant_reciprocal(d));
    for (int i = 0; i < 32; i += W) {
      V y = f32_mul(f32_load(x + i), r);
      f32_put8(data + 2 + i, f32_add(y, f32_less(y, f32_zero(), down, up)));
    }
    quant_put_half(data, d);
  }
  *(double *)w[3].p = odd | quant_odd(&s);
}

// Bytes: groups of n numbers, and a scale for each. More words: n, the scales.
EXPORT(quant_bytes_encode) {
  const float *x = w[0].p;
  uint8_t *data = w[1].p;
  int64_t n = w[4].i;
  float *scales = w[5].p;
  V up = f32_set(0x1.fffffep-2f), down = f32_set(-0x1.fffffep-2f);
  int odd = 0;
  for (int64_t g = 0; g < w[2].i; g++, x += n, data += n) {
    float d = quant_any(x, n, &odd) / 127, one = quant_reciprocal(d);
    V r = f32_set(one);
    int64_t i = 0;
    for (; i + W <= n; i += W) {
      V y = f32_mul(f32_load(x + i), r);
      f32_put8(data + i, f32_add(y, f32_less(y, f32_zero(), down, up)));
    }
    for (; i < n; i++) {
      float y = x[i] * one;
      data[i] = (uint8_t)(int8_t)(y + (y < 0 ? -0x1.fffffep-2f : 0x1.fffffep-2f));
    }
    scales[g] = d;
  }
  *(double *)w[3].p = odd;
}

EXPORT(quant_bytes_decode) {
  float *x = w[0].p;
  const int8_t *data = w[1].p;
  int64_t n = w[4].i;
  const float *scales = w[5].p;
  for (int64_t g = 0; g < w[2].i; g++, x += n, data += n) {
    V d = f32_set(scales[g]);
    int64_t i = 0;
    for (; i + W <= n; i += W)
      f32_store(x + i, f32_mul(f32_from_i8(data + i), d));
    for (; i < n; i++)
      x[i] = (float)data[i] * scales[g];
  }
}

// Blocks of n numbers with two bits each, four in a byte, the first in the low bits, and scales apart. More words: n, the scales, the four levels and the
// edges between them, the kind, 1 if a block has the code of zero behind its scale, too.
enum { quant_TRITS, quant_FROM_TWO, quant_HALVES, quant_LEVELS, quant_EVEN };

// The code of zero for levels that are whole numbers, and a size of codes up to which sums of them are exact.
enum { quant_ZERO = 2, quant_LARGE = 1 << 20 };

// The nearest whole number, halves away from zero. far has the largest magnitude so far.
IN V quant_away(V x, V *far) {
  V a = quant_size(x), r = f32_near(a);
  *far = f32_max(*far, a);
  r = f32_add(r, f32_less(f32_sub(a, r), f32_set(0.5f), f32_zero(), f32_set(1)));
  return f32_less(x, f32_zero(), f32_sub(f32_zero(), r), r);
}

// The least number that is not below x, which is not near zero.
IN float quant_least(double x) {
  float f = (float)x;
  int32_t bits;
  memcpy(&bits, &f, sizeof bits);
  bits += f >= x ? 0 : f > 0 ? 1 : -1;
  memcpy(&f, &bits, sizeof bits);
  return f;
}

// The codes of W numbers. Of kind quant_LEVELS, edge has the least numbers with the codes 1 to 3.
IN V quant_quarters(V x, int kind, float scale, float zero, const float *edge, V *far) {
  V one = f32_set(1), half = f32_set(0.5f);
  if (kind <= quant_FROM_TWO) {
    V q = quant_trits(f32_add(x, x), f32_set(scale), f32_set(-scale));
    return kind == quant_TRITS ? q : f32_add(q, one);
  }
  if (kind == quant_LEVELS)
    return f32_less(x, f32_set(edge[1]), f32_less(x, f32_set(edge[0]), f32_zero(), one), f32_less(x, f32_set(edge[2]), f32_set(2), f32_set(3)));
  V y = f32_div(x, f32_set(scale));
  if (kind == quant_HALVES)
    return f32_less(half, y, one, f32_less(y, f32_set(-0.5f), f32_set(3), f32_zero()));
  return f32_min(f32_max(f32_add(quant_away(y, far), f32_set(zero)), f32_zero()), f32_set(3));
}

IN void quant_quarter(const simd_word *w, int kind, int64_t n, int64_t range) {
  const float *x = w[0].p;
  const double *between = (const double *)((const float *)w[6].p + 4);
  uint8_t *data = w[1].p;
  float *scales = w[5].p, edge[3] = {0};
  V far = f32_zero();
  quant_seen s = quant_start();
  int odd = 0;
  for (int64_t g = 0; g < w[2].i; g++, x += n, data += n / 4, scales += 1 + range) {
    float most = quant_block(x, n, &s), scale = most == 0 ? 1 : most, zero = quant_ZERO;
    if (kind == quant_HALVES || kind == quant_LEVELS)
      scale = most <= 1e-8f ? 1 : most / 1.5f;
    if (range) {
      V high = f32_load(x), low = f32_sub(f32_zero(), high);
      for (int64_t i = W; i < n; i += W) {
        high = f32_max(high, f32_load(x + i));
        low = f32_max(low, f32_sub(f32_zero(), f32_load(x + i)));
      }
      float least = -f32_largest(low);
      if (least == 0) { // which zero it is matters
        least = 0;
        for (int64_t i = 0; i < n; i++)
          least = x[i] == 0 && __builtin_signbit(x[i]) ? x[i] : least;
      }
      scale = (f32_largest(high) - least) / 3;
      scale = scale == 0 ? 1 : scale;
      zero = -least / scale;
      int exact = -quant_LARGE < zero && zero < quant_LARGE;
      float whole = (float)(int32_t)(exact ? zero : 0), rest = zero - whole; // halves away from zero, with its sign
      odd |= !exact;
      scales[1] = zero = __builtin_copysignf(whole + (float)((rest >= 0.5f) - (rest <= -0.5f)), zero);
    }
    odd |= !(scale - scale == 0);
    scales[0] = scale;
    if (kind == quant_LEVELS) // a product has 25 bits and 24 and is exact, and no float is equal to it
      for (int c = 0; c < 3; c++)
        edge[c] = quant_least(between[c] * scale);
    for (int64_t i = 0; i < n; i += 4 * W) {
      V q[4];
      for (int k = 0; k < 4; k++)
        q[k] = i + k * W < n ? quant_quarters(f32_load(x + i + k * W), kind, scale, zero, edge, &far) : f32_zero();
      for (int k = 0; k < 4; k += 2)
        q[k] = f32_fma(f32_odds(q[k], q[k + 1]), f32_set(4), f32_evens(q[k], q[k + 1]));
      q[0] = f32_fma(f32_odds(q[0], q[2]), f32_set(16), f32_evens(q[0], q[2]));
      if (i + 4 * W <= n) {
        f32_put8(data + i / 4, q[0]);
      } else { // a half
        uint8_t last[W];
        f32_put8(last, q[0]);
        memcpy(data + i / 4, last, W / 2);
      }
    }
  }
  *(double *)w[3].p = odd | quant_odd(&s) | !(f32_largest(far) < quant_LARGE);
}

EXPORT(quant_quarter_encode) {
  int64_t n = w[4].i;
  switch (w[7].i & 255) {
  case quant_TRITS: return n == 128 ? quant_quarter(w, quant_TRITS, 128, 0) : quant_quarter(w, quant_TRITS, 32, 0);
  case quant_FROM_TWO: return quant_quarter(w, quant_FROM_TWO, 32, 0);
  case quant_HALVES: return quant_quarter(w, quant_HALVES, 32, 0);
  case quant_LEVELS: return n == 128 ? quant_quarter(w, quant_LEVELS, 128, 0) : quant_quarter(w, quant_LEVELS, 64, 0);
  default: // around zero no quotient exceeds 1, and one is at least a half if the number is at least half of the scale
    if (w[7].i >> 8)
      return quant_quarter(w, quant_EVEN, n, 1);
    return n == 64 ? quant_quarter(w, quant_FROM_TWO, 64, 0) : quant_quarter(w, quant_FROM_TWO, n, 0);
  }
}

typedef uint32_t quant_u32 __attribute__((vector_size(4 * W)));
typedef int32_t quant_i32 __attribute__((vector_size(4 * W)));

EXPORT(quant_quarter_decode) {
  float *x = w[0].p;
  const uint8_t *data = w[1].p;
  const float *scales = w[5].p, *level = w[6].p;
  int64_t n = w[4].i, range = w[7].i >> 8, even = (w[7].i & 255) == quant_EVEN;
  uint32_t left[16];
  for (uint32_t i = 0; i < 16; i++)
    left[i] = 30 - 2 * i;
  for (int64_t g = 0; g < w[2].i; g++, scales += 1 + range) {
    float zero = range ? scales[1] : even ? quant_ZERO : 0;
    quant_u32 value[4]; // of the codes, and how those differ that a bit tells apart
    for (int c = 0; c < 4; c++) {
      V v = f32_set((level[c] - zero) * scales[0]);
      memcpy(value + c, &v, sizeof v);
    }
    value[1] ^= value[0], value[3] ^= value[2];
    for (int64_t i = 0; i < n; i += 16, data += 4, x += 16) {
      uint32_t word;
      memcpy(&word, data, 4);
      for (int k = 0; k < 16; k += W) {
        quant_u32 at;
        memcpy(&at, left + k, sizeof at);
        quant_u32 code = ((quant_u32){0} + word) << at; // in the top bits
        quant_u32 first = (quant_u32)((quant_i32)(code << 1) >> 31), second = (quant_u32)((quant_i32)code >> 31);
        quant_u32 low = value[0] ^ (first & value[1]), high = value[2] ^ (first & value[3]);
        low ^= second & (low ^ high);
        memcpy(x + k, &low, sizeof low);
      }
    }
  }
}

#undef QUANT_FORM
#undef QUANT_FORMS
#undef QUANT_TOP_FORMS
#undef quant_UNROLL
#undef W
#undef V
#if !defined(__clang__)
#pragma GCC pop_options
#endif
