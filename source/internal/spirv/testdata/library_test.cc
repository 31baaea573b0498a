// The library's mathematical functions (text/*.cl), compiled as C++, beside those of the C library: for float in double,
// for double in __float128. With -DFACTS=n the device has the facts n. -DINJECT gives the device's own quotients and
// square roots errors of up to two units in the last place. Argument: how many random numbers each function gets. A line
// for each function says its largest error in units in the last place; those beyond OpenCL's limit are the exit status.
#include <math.h>
#include <quadmath.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef __float128 quad;

namespace text {
typedef unsigned int uint;
typedef unsigned long ulong;
typedef unsigned short ushort;
template <class R, class T> R as(T x) {
  static_assert(sizeof(R) == sizeof(T), "of one size");
  R r;
  memcpy(&r, &x, sizeof r);
  return r;
}
#define constant static const
#define as_uint as<uint>
#define as_int as<int>
#define as_float as<float>
#define as_ulong as<ulong>
#define as_long as<long>
#define as_double as<double>
uint clz(uint x) { return x ? __builtin_clz(x) : 32; }
ulong clz(ulong x) { return x ? __builtin_clzl(x) : 64; }
#define EXACT1(g) \
  float own_##g(float x) { return __builtin_##g##f(x); } \
  double own_##g(double x) { return __builtin_##g(x); }
#define EXACT2(g) \
  float own_##g(float x, float y) { return __builtin_##g##f(x, y); } \
  double own_##g(double x, double y) { return __builtin_##g(x, y); }
EXACT1(fabs) EXACT1(floor) EXACT1(trunc) EXACT1(rint) EXACT2(copysign) EXACT2(fmax)

int cc_fact(int n) { return FACTS >> n & 1; }
float off(float x) { // a device's inexact result
#ifdef INJECT
  static uint seed = 1;
  seed = seed * 1664525u + 1013904223u;
  if (x != 0 && fabsf(x) < 0x1p127f)
    return as_float(as_int(x) + int((seed >> 16) % 5u) - 2);
#endif
  return x;
}
double off(double x) {
#ifdef INJECT
  static uint seed = 1;
  seed = seed * 1664525u + 1013904223u;
  if (x != 0 && ::fabs(x) < 0x1p1023)
    return as_double(as_long(x) + int((seed >> 16) % 5u) - 2);
#endif
  return x;
}
float cc_raw_div_f(float x, float y) { return off(x / y); }
double cc_raw_div_d(double x, double y) { return off(x / y); }
float cc_raw_sqrt_f(float x) { return off(__builtin_sqrtf(x)); }
double cc_raw_sqrt_d(double x) { return off(__builtin_sqrt(x)); }
float cc_raw_fma_f(float x, float y, float z) { return FACTS & 1 ? __builtin_fmaf(x, y, z) : x * y + z; }
double cc_raw_fma_d(double x, double y, double z) { return FACTS & 8 ? __builtin_fma(x, y, z) : x * y + z; }
#define fabs own_fabs
#define floor own_floor
#define trunc own_trunc
#define rint own_rint
#define copysign own_copysign
#define fmax own_fmax
#include "core.cl"
#include "integer.cl"
#include "number_f.cl"
#include "number_d.cl"
#include "float.cl"
#include "float2.cl"
#include "double.cl"
#include "double2.cl"
#include "double3.cl"
#undef fabs
#undef floor
#undef trunc
#undef rint
#undef copysign
#undef fmax
} // namespace text

// What the results are compared with.
namespace truth {
#define TRUTH1(g) \
  double g(double x) { return ::g(x); } \
  quad g(quad x) { return g##q(x); }
#define TRUTH2(g) \
  double g(double x, double y) { return ::g(x, y); } \
  quad g(quad x, quad y) { return g##q(x, y); }
TRUTH1(exp) TRUTH1(exp2) TRUTH1(expm1) TRUTH1(log) TRUTH1(log2) TRUTH1(log10) TRUTH1(log1p) TRUTH1(sin) TRUTH1(cos)
TRUTH1(tan) TRUTH1(sinh) TRUTH1(cosh) TRUTH1(tanh) TRUTH1(asin) TRUTH1(acos) TRUTH1(atan) TRUTH1(asinh) TRUTH1(acosh) TRUTH1(atanh)
TRUTH1(erf) TRUTH1(erfc) TRUTH1(cbrt) TRUTH1(sqrt) TRUTH1(fabs) TRUTH1(floor) TRUTH1(round) TRUTH1(logb) TRUTH1(lgamma)
TRUTH2(pow) TRUTH2(atan2) TRUTH2(hypot) TRUTH2(fmod) TRUTH2(remainder) TRUTH2(copysign) TRUTH2(fdim)
const quad pi = M_PIq;
template <class R> R exp10(R x) { // powq takes very long where it overflows
  return x > 5000 ? x * R(INFINITY) : x < -5000 ? R(0) : pow(R(10), x);
}
template <class R> R sinpi(R x) {
  const R r = fmod(fabs(x), R(2)), s = r > 1 ? r - 1 : r, h = s > R(0.5) ? 1 - s : s;
  if (!(fabs(x) < R(INFINITY)))
    return NAN;
  return copysign(R(1), x) * (h == 0 ? R(0) : (r > 1 ? -1 : 1) * R(sin(quad(pi * h))));
}
template <class R> R cospi(R x) {
  if (!(fabs(x) < R(INFINITY)))
    return NAN;
  const R r = fmod(fabs(x), R(2)), s = r > 1 ? 2 - r : r;
  return s == R(0.5) ? R(0) : s < R(0.25) ? R(cos(quad(pi * s))) : R(sin(quad(pi * (R(0.5) - s))));
}
template <class R> R tanpi(R x) {
  const R r = fmod(fabs(x), R(2)), s = copysign(R(1), x);
  if (r == 0 || r == 1)
    return r == 0 ? copysign(R(0), x) : -copysign(R(0), x);
  if (r == R(0.5) || r == R(1.5))
    return r == R(0.5) ? s * R(INFINITY) : -s * R(INFINITY);
  return sinpi(x) / cospi(x);
}
template <class R> R powr(R x, R y) {
  if (x < 0 || x != x || y != y || (x == 1 && fabs(y) == R(INFINITY)) || (y == 0 && (x == 0 || x == R(INFINITY))))
    return NAN;
  return pow(fabs(x), y);
}
template <class R> R rootn(R x, int n) {
  if (n == 0 || x != x || (x < 0 && n % 2 == 0))
    return NAN;
  const R a = fabs(x), end = (a == 0) == (n > 0) ? R(0) : R(INFINITY);
  const R r = a == 0 || a == R(INFINITY) ? end : R(pow(quad(a), quad(1) / n));
  return n % 2 ? copysign(r, x) : r;
}
template <class R> R tgamma(R x) {
  if (x == 0)
    return copysign(R(INFINITY), x);
  if (x < 0 && (floor(x) == x || x == -R(INFINITY)))
    return NAN;
  if (x < -190)
    return fmod(floor(x), R(2)) == 0 ? R(0) : -R(0);
  return R(x < 0 ? pi / (sinpi(quad(x)) * expq(lgammaq(1 - quad(x)))) : tgammaq(x));
}
} // namespace truth

static uint64_t state = 88172645463325252u;
static uint64_t next() {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}
static const double specials[] = {0, 1, .5, 2, 3, 4, 5, 6, 7, 8, 9, 1.5, 2.5, 3.5, .25, .75, 10, 11, 10.1, 100, 170, 171,
  1e-3, 1e10, 1e-10, 1e30, 1e-30, 3e38, 1e-38, 1e-44, 1e-45, 3.14159274101257324, 1.5707963705062866, 2.71828174591064453,
  .785398185253143311, .785398125648498535, 16777216, 8388607.5, 2147483648, .999999940395355225, 1.00000011920928955,
  INFINITY, NAN, 88.7, 89, -103, 38.5, 127, 128, -149, -150, 0x1.fffffep127, 0x1p-126, 35.049, 1e300, 1e-300,
  0x1.fffffffffffffp1023, 5e-324, 0x1p-1022, 709.7, -745.2};
static const int many = sizeof specials / sizeof *specials;
// Argument i of a test: special values, both ends of every binade, random bits, and numbers of usual sizes.
static double argument(long i, bool wide) {
  if (i < 2 * many)
    return i % 2 ? -specials[i / 2] : specials[i / 2];
  if ((i -= 2 * many) < (wide ? 4 * 2046 : 4 * 254)) {
    const double x = ldexp(i & 1 ? 1 : wide ? 2 - 0x1p-52 : 2 - 0x1p-23, int(i / 4) - (wide ? 1022 : 126));
    return i & 2 ? -x : x;
  }
  const uint64_t u = next(), v = next();
  switch (v % 4) {
  case 0: return wide ? text::as<double>(u) : text::as<float>(uint32_t(u));
  case 1: return int64_t(u) * 0x1p-63 * (wide ? 700 : 90);
  case 2: return int64_t(u) * 0x1p-63 * 20;
  }
  return int64_t(u) * ldexp(0x1p-62, int(v >> 8) % 9 - 4);
}

template <class F> struct format { enum { digits = 24, least = -149, most = 128 }; };
template <> struct format<double> { enum { digits = 53, least = -1074, most = 1024 }; };
static bool negative(quad x) { return signbitq(x) != 0; }
// The error of got. What is beyond the largest number counts as the power of two behind it.
template <class F> double error(F got, quad want, quad least) {
  const quad over = ldexpq(1, format<F>::most);
  if (got != got || want != want)
    return got != got && want != want ? 0 : INFINITY;
  if (want == 0)
    return got == 0 && negative(got) == negative(want) ? 0 : INFINITY;
  const quad g = fabsq(got) > over ? copysignq(over, got) : got, w = fabsq(want) > over ? copysignq(over, want) : want;
  int e;
  frexpq(fmaxq(fabsq(w), least), &e);
  e = e > format<F>::most ? format<F>::most : e;
  e -= format<F>::digits;
  if (g == 0 && negative(got) != negative(want))
    return INFINITY;
  return double(fabsq(g - w) / ldexpq(1, e < format<F>::least ? format<F>::least : e));
}

static int failures;
static long tries;
template <class F, class Call, class Truth> void measure(const char *name, double limit, int arguments, Call call, Truth want) {
  const bool wide = sizeof(F) == 8;
  const long n = 2 * many + (wide ? 4 * 2046 : 4 * 254) + (wide ? tries / 8 : tries);
  double worst = 0, wx = 0, wy = 0;
  static const int ints[] = {0, 1, 2, 3, 4, 5, 7, -1, -2, -3, 31, 127, -149, -150, 1000, -1000, 2147483647, -2147483647 - 1,
    16777217, -16777219};
  for (long i = 0; i < (arguments == 1 ? n : n + 4 * many * many); i++) {
    F x = F(argument(arguments == 1 ? i : i < 4 * many * many ? i % (2 * many) : i - 4 * many * many, wide)), y = 0;
    if (arguments == 2)
      y = F(argument(i < 4 * many * many ? i / (2 * many) : 1l << 40, wide));
    else if (arguments == 3) // an int
      y = F(i < 40 * many ? ints[i / (2 * many)] : int(next()) >> next() % 32);
    if (arguments > 1 && i >= 4 * many * many && i % 3 == 0)
      x = x < 0 ? -x : x;
    const bool gamma = !strncmp(name, "lgamma", 6) && x < 0; // near its zeros, OpenCL has no limit
    const double d = error<F>(call(x, y), want(x, y), gamma ? 1 : 0);
    if (d > worst || d != d)
      worst = d, wx = x, wy = y;
  }
  failures += !(worst <= limit);
  printf("%s %g of %g at %a, %a%s\n", name, worst, limit, wx, wy, worst <= limit ? "" : ": WRONG");
}
#define BOTH(name, limit, arguments, callf, calld, expr) \
  measure<float>(#name "_f", limit, arguments, [](float x, float y) { (void)y; return float(callf); }, \
                 [](double x, double y) -> quad { (void)y; return expr; }); \
  measure<double>(#name "_d", limit, arguments, [](double x, double y) { (void)y; return double(calld); }, \
                  [](quad x, quad y) -> quad { (void)y; return expr; });
#define ONE(name, limit, expr) BOTH(name, limit, 1, text::cc_##name##_f(x), text::cc_##name##_d(x), expr)
#define TWO(name, limit, expr) BOTH(name, limit, 2, text::cc_##name##_f(x, y), text::cc_##name##_d(x, y), expr)
#define INT(name, limit, expr) BOTH(name, limit, 3, text::cc_##name##_f(x, whole(y)), text::cc_##name##_d(x, whole(y)), expr)
static int whole(double y) { return y > 2147483647.0 ? 2147483647 : int(y); }

// Results that are exact, or rounded once.
static void exact() {
  int power;
  float part_f;
  double part_d;
#define RIGHT(name, arguments, callf, calld, exprf, exprd) \
  measure<float>(#name "_f", 0, arguments, [](float x, float y) { (void)y; return float(callf); }, \
                 [&](float x, float y) -> quad { (void)y; return exprf; }); \
  measure<double>(#name "_d", 0, arguments, [](double x, double y) { (void)y; return double(calld); }, \
                  [&](double x, double y) -> quad { (void)y; return exprd; });
#define SAME1(name, expr) RIGHT(name, 1, text::cc_##name##_f(x), text::cc_##name##_d(x), expr, expr)
#define SAME2(name, exprf, exprd) RIGHT(name, 2, text::cc_##name##_f(x, y), text::cc_##name##_d(x, y), exprf, exprd)
  SAME2(div, x / y, x / y)
  RIGHT(sqrt, 1, text::cc_sqrt_f(x), text::cc_sqrt_d(x), sqrtf(x), sqrt(x))
  SAME2(fmod, fmodf(x, y), fmod(x, y))
  SAME2(remainder, remainderf(x, y), remainder(x, y))
  SAME2(fdim, fdimf(x, y), fdim(x, y))
  SAME2(nextafter, nextafterf(x, y), nextafter(x, y))
  SAME1(logb, logb(x))
  SAME1(round, round(x))
  RIGHT(ldexp, 3, text::cc_ldexp_f(x, whole(y)), text::cc_ldexp_d(x, whole(y)), ldexpf(x, whole(y)), ldexp(x, whole(y)))
  RIGHT(frexp, 1, text::cc_frexp_f(x).value, text::cc_frexp_d(x).value, frexpf(x, &power), frexp(x, &power))
  RIGHT(modf, 1, text::cc_modf_f(x).value, text::cc_modf_d(x).value, modff(x, &part_f), modf(x, &part_d))
}
#undef SAME1
#undef SAME2

// fma and the error of a product, for numbers of which the product and the sum are near each other, or far away.
template <class F> void fused(const char *name, F (*fma)(F, F, F), F (*right)(F, F, F), F (*rest)(F, F, F)) {
  long wrong = 0;
  const bool wide = sizeof(F) == 8;
  for (long i = 0; i < 4 * tries; i++) {
    const F x = F(argument(i % 3 ? 1l << 40 : long(next() % 9999), wide)), y = F(argument(1l << 40, wide)), p = x * y;
    const int k = int(next() % (wide ? 240 : 100)) - (wide ? 120 : 50);
    const F z = i % 4 == 0   ? F(argument(long(next() % 9999), wide))
                : i % 4 == 1 ? F(ldexp(next() & 1 ? p : -p, k))
                : i % 4 == 2 ? -p * (1 + F(int(next() % 9) - 4) * F(ldexp(1, 1 - format<F>::digits)))
                             : F(argument(1l << 40, wide));
    const F got = fma(x, y, z), want = right(x, y, z);
    bool bad = memcmp(&got, &want, sizeof got) && !(got != got && want != want);
    int e, ex, ey;
    frexp(p, &e), frexp(x, &ex), frexp(y, &ey);
    const int most = format<F>::most - 2, least = format<F>::least + 2 * format<F>::digits + 4;
    if (e < most && e > least && ex < most && ey < most && ex > least && ey > least && p == p && fabs(double(p)) < INFINITY)
      bad |= rest(x, y, p) != right(x, y, -p);
    wrong += bad;
  }
  failures += wrong != 0;
  printf("%s %ld wrong%s\n", name, wrong, wrong ? ": WRONG" : "");
}

static void quotients() { // the last seven bits of remquo's
  long wrong = 0;
  for (long i = 0; i < tries; i++) {
    const double x = argument(i, true), y = argument(1l << 40, true);
    const quad r = remainderq(x, y), q = (quad(x) - r) / y;
    if (!(fabsq(q) < 0x1p58Q) || q != q || isinf(y))
      continue;
    const int low = int(fmodq(fabsq(q), 128)), got = text::cc_remquo_d(x, y).other;
    wrong += got != (negative(x) != negative(y) ? -low : low);
  }
  failures += wrong != 0;
  printf("remquo %ld wrong%s\n", wrong, wrong ? ": WRONG" : "");
}

namespace truth {
static void accuracy() {
  ONE(exp, 3, exp(x)) ONE(exp2, 3, exp2(x)) ONE(exp10, 3, exp10(x)) ONE(expm1, 3, expm1(x))
  ONE(log, 3, log(x)) ONE(log2, 3, log2(x)) ONE(log10, 3, log10(x)) ONE(log1p, 2, log1p(x))
  ONE(sinh, 4, sinh(x)) ONE(cosh, 4, cosh(x)) ONE(tanh, 5, tanh(x))
  ONE(asinh, 4, asinh(x)) ONE(acosh, 4, acosh(x)) ONE(atanh, 5, atanh(x))
  ONE(sin, 4, sin(x)) ONE(cos, 4, cos(x)) ONE(tan, 5, tan(x))
  ONE(sinpi, 4, sinpi(x)) ONE(cospi, 4, cospi(x)) ONE(tanpi, 6, tanpi(x))
  ONE(asin, 4, asin(x)) ONE(acos, 4, acos(x)) ONE(atan, 5, atan(x)) TWO(atan2, 6, atan2(x, y))
  ONE(asinpi, 5, quad(asin(x)) / pi) ONE(acospi, 5, quad(acos(x)) / pi) ONE(atanpi, 5, quad(atan(x)) / pi)
  TWO(atan2pi, 6, quad(atan2(x, y)) / pi)
  ONE(rsqrt, 2, quad(1) / sqrt(quad(x))) ONE(cbrt, 2, cbrt(x)) TWO(hypot, 4, hypot(x, y))
  TWO(pow, 16, pow(x, y)) TWO(powr, 16, powr(x, y)) INT(pown, 16, pow(x, decltype(x)(whole(double(y)))))
  INT(rootn, 16, rootn(x, whole(double(y))))
  ONE(erf, 16, erf(x)) ONE(erfc, 16, erfc(x)) ONE(tgamma, 16, tgamma(x)) ONE(lgamma, 64, lgamma(x))
}
} // namespace truth

int main(int argc, char **argv) {
  tries = argc > 1 ? atol(argv[1]) : 1 << 16;
  exact();
  fused<float>("fma_f", text::cc_fma_f, [](float x, float y, float z) { return fmaf(x, y, z); }, text::cc_error_f);
  fused<double>("fma_d", text::cc_fma_d, [](double x, double y, double z) { return fma(x, y, z); }, text::cc_error_d);
  quotients();
  truth::accuracy();
  return failures;
}
