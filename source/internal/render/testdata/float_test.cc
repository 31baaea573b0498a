// The functions of host_float.h beside the C library's in double: errors in units in the last place, and
// the same bits from a loop that is vectorized, a call alone, and a vector's lanes. Arguments: a
// stride, and the names of functions. A line for each says what was found.
extern "C" int printf(const char *, ...);
extern "C" int puts(const char *);
extern "C" int strcmp(const char *, const char *);
extern "C" unsigned long strtoul(const char *, char **, int);

namespace {

enum { BLOCK = 1024 };

struct function {
  const char *name;
  double most; // OpenCL's limit, in units in the last place
  void (*block)(const float *x, const float *y, float *out);
  void (*lanes)(const float *x, const float *y, float *out);
  float (*alone)(float x, float y);
  void (*truth)(const float *x, const float *y, double *out);
  bool two;
};

#define DEFINE(f, call4, call, expr) \
  __attribute__((noinline)) void block_##f(const float *__restrict in, const float *__restrict in2, float *__restrict out) { \
    for (int i = 0; i < BLOCK; i++) { \
      float x = in[i], y = in2[i]; \
      (void)y; \
      out[i] = call; \
    } \
  } \
  __attribute__((noinline)) void lanes_##f(const float *in, const float *in2, float *out) { \
    cc_float4 x = cc_vload4(0, in), y = cc_vload4(0, in2); \
    (void)y; \
    cc_vstore4(call4, 0, out); \
  } \
  __attribute__((noinline)) float alone_##f(float x, float y) { (void)y; return call; } \
  __attribute__((noinline)) void truth_##f(const float *__restrict in, const float *__restrict in2, double *__restrict out) { \
    for (int i = 0; i < BLOCK; i++) { \
      double x = in[i], y = in2[i]; \
      (void)y; \
      out[i] = expr; \
    } \
  }
#define ONE(f, ulp, expr) DEFINE(f, cc_##f(x), cc_##f(x), expr)
#define TWO(f, ulp, expr) DEFINE(f, cc_##f(x, y), cc_##f(x, y), expr)
#define FUNCTIONS \
  ONE(acos, 4, cc_m_acos(x)) ONE(acosh, 4, cc_m_acosh(x)) ONE(acospi, 5, cc_m_acos(x) / cc_pi) \
  ONE(asin, 4, cc_m_asin(x)) ONE(asinh, 4, cc_m_asinh(x)) ONE(asinpi, 5, cc_m_asin(x) / cc_pi) \
  ONE(atan, 5, cc_m_atan(x)) ONE(atanh, 5, cc_m_atanh(x)) ONE(atanpi, 5, cc_m_atan(x) / cc_pi) \
  ONE(cbrt, 2, cc_m_cbrt(x)) ONE(cos, 4, cc_m_cos(x)) ONE(cosh, 4, cc_m_cosh(x)) \
  ONE(erf, 16, cc_m_erf(x)) ONE(erfc, 16, cc_m_erfc(x)) ONE(exp, 3, cc_m_exp(x)) \
  ONE(exp2, 3, cc_m_exp2(x)) ONE(exp10, 3, cc_m_exp10(x)) ONE(expm1, 3, cc_m_expm1(x)) \
  ONE(log, 3, cc_m_log(x)) ONE(log2, 3, cc_m_log2(x)) ONE(log10, 3, cc_m_log10(x)) \
  ONE(log1p, 2, cc_m_log1p(x)) ONE(rsqrt, 2, 1 / cc_m_sqrt(x)) ONE(sin, 4, cc_m_sin(x)) \
  ONE(sinh, 4, cc_m_sinh(x)) ONE(sqrt, 3, cc_m_sqrt(x)) ONE(tan, 5, cc_m_tan(x)) \
  ONE(tanh, 5, cc_m_tanh(x)) TWO(atan2, 6, cc_m_atan2(x, y)) TWO(atan2pi, 6, cc_m_atan2(x, y) / cc_pi) \
  TWO(hypot, 4, cc_m_hypot(x, y)) TWO(pow, 16, cc_m_pow(x, y))
FUNCTIONS
#undef ONE
#undef TWO
#define ONE(f, ulp, expr) {#f, ulp, block_##f, lanes_##f, alone_##f, truth_##f, false},
#define TWO(f, ulp, expr) {#f, ulp, block_##f, lanes_##f, alone_##f, truth_##f, true},
const function functions[] = {FUNCTIONS};

cc_uint bits(float x) { return cc_as_bits<cc_uint>(x); }
float number(cc_uint x) { return cc_as_bits<float>(x); }

// The error of got. What is beyond the largest float counts as the power of two behind it.
double error(float got, double truth) {
  const double g = cc_m_fabs(got) == CC_INFINITY ? cc_m_copysign(0x1p128, double(got)) : double(got);
  const double t = cc_m_fabs(truth) > 0x1p128 ? cc_m_copysign(0x1p128, truth) : truth;
  cc_ulong e = cc_as_bits<cc_ulong>(t) >> 52 & 0x7ff;
  e = e < 1023 - 126 ? 1023 - 126 : e > 1023 + 127 ? 1023 + 127 : e;
  const double d = cc_m_fabs(g - t) * cc_as_bits<double>((2046 + 23 - e) << 52);
  const bool one = got == got, other = truth == truth;
  const bool wrong = (one != other) | ((truth == 0.0) & (bits(got) != bits(float(truth)))); // a zero has its sign
  return wrong ? double(CC_INFINITY) : one ? d : 0.0;
}

struct result {
  double worst = 0;
  float x = 0, y = 0, got = 0;
  long count = 0, parted = 0; // parted: results that depend on how they were computed
};

void check(const function &f, result &r, const float *x, const float *y) {
  float out[BLOCK], four[4];
  double truth[BLOCK];
  cc_long high = 0; // of what is not negative, the bits have the order: a loop that vectorizes
  f.block(x, y, out);
  f.truth(x, y, truth);
  for (int i = 0; i < BLOCK; i++) {
    const cc_long e = cc_as_bits<cc_long>(error(out[i], truth[i]));
    high = e > high ? e : high;
  }
  const double most = cc_as_bits<double>(high);
  for (int i = 0; i < BLOCK && most > r.worst; i++)
    if (error(out[i], truth[i]) == most)
      r.worst = most, r.x = x[i], r.y = y[i], r.got = out[i];
  for (int i = 0; i < BLOCK && r.count / BLOCK % 8 == 0; i++) {
    const float one = f.alone(x[i], y[i]);
    if (i % 4 == 0)
      f.lanes(x + i, y + i, four);
    const bool nan = one != one && out[i] != out[i] && four[i % 4] != four[i % 4];
    r.parted += !nan && (bits(one) != bits(out[i]) || bits(one) != bits(four[i % 4]));
  }
  r.count += BLOCK;
}

const float edges[] = {0.0f, 0x1p-149f, 0x1p-127f, 0x1p-126f, 1e-30f, 1e-3f, 0.5f, 0x1.fffffep-1f, 1.0f, 0x1.000002p0f, 1.5f, 2.0f,
                       3.0f, 4.0f, 5.5f, 1e3f, 0x1.fffffep22f, 0x1p23f, 0x1.000002p23f, 0x1.fffffep23f, 0x1p24f, 0x1p31f, 1e30f, CC_MAXFLOAT,
                       CC_INFINITY, CC_NAN};
enum { EDGES = sizeof(edges) / sizeof(*edges) };

cc_ulong state = 1;
cc_uint next() {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return cc_uint(state >> 32);
}

result run(const function &f, cc_ulong stride) {
  result r;
  float x[BLOCK], y[BLOCK] = {};
  cc_ulong n = 0;
  if (!f.two) {
    for (int i = 0; i < 4 * EDGES; i += BLOCK) {
      for (int k = 0; k < BLOCK; k++)
        x[k] = (k & 1 ? -1 : 1) * number(bits(edges[k / 4 % EDGES]) + (k & 2) / 2);
      check(f, r, x, y);
    }
    while (n < (cc_ulong(1) << 32)) {
      for (int i = 0; i < BLOCK; i++, n += stride)
        x[i] = number(cc_uint(n));
      check(f, r, x, y);
    }
    return r;
  }
  for (int i = 0; i < 4 * EDGES * EDGES; i += BLOCK) {
    for (int k = 0; k < BLOCK; k++) {
      int at = (i + k) % (4 * EDGES * EDGES);
      x[k] = (at & 1 ? -1 : 1) * edges[at / 4 % EDGES];
      y[k] = (at & 2 ? -1 : 1) * edges[at / 4 / EDGES];
    }
    check(f, r, x, y);
  }
  while (n < (cc_ulong(1) << 32)) {
    for (int i = 0; i < BLOCK; i++, n += stride) {
      x[i] = number(next());
      y[i] = number(next());
      if (i & 1) { // near each other, and with powers that are floats
        x[i] = number((bits(x[i]) & 0x87ffffff) | 0x38000000);
        y[i] = number((bits(y[i]) & 0x87ffffff) | 0x40000000);
      }
      if ((i & 6) == 6)
        y[i] = float(cc_int(next()) >> (next() % 31)); // whole
    }
    check(f, r, x, y);
  }
  return r;
}

} // namespace

int main(int argc, char **argv) {
  if (argc == 1) {
    for (const function &f : functions)
      puts(f.name);
    return 0;
  }
  int wrong = 0;
  for (const function &f : functions)
    for (int i = 2; i < argc; i++)
      if (!strcmp(f.name, argv[i])) {
        result r = run(f, strtoul(argv[1], nullptr, 10));
#ifdef CC_RELAXED // operations may be in another order where the compiler vectorizes
        r.parted = 0;
#endif
        bool bad = !(r.worst <= f.most) || r.parted;
        wrong += bad;
        printf("%s%s: %.3f ulp of %g at (%a, %a), where it is %a; %ld results, %ld depend on vectorization\n", bad ? "WRONG " : "",
               f.name, r.worst, f.most, r.x, r.y, r.got, r.count, r.parted);
      }
  return wrong != 0;
}

CC_PROGRAM_BEGIN
CC_PROGRAM_END
