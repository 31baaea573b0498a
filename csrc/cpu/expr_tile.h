// The instructions of expr.h: the operations of kernels/expr on tiles of numbers, and conversions of elements to numbers and
// back. Those that have a place in a chain are in expr_chain.h alone.
#include "expr_functions.h"
#include <math.h>

enum { EXPR_TILE = 512, EXPR_STEP = EXPR_TILE * 8 + 5 * 64, EXPR_REGISTERS = 256, EXPR_RANK = 8 };

// The codes of instructions, as in kernels/expr/op.go and block.go.
#define EXPR_CODES(F)                                                                              \
  F(LOAD) F(PARAM) F(FILL) F(INDEX) F(BITS) F(LENGTH) F(NEG) F(ABS) F(NOT) F(SQRT) F(RSQRT) F(EXP) F(EXP2) F(EXPM1) F(LOG) F(LOG2) \
  F(LOG1P) F(SIN) F(COS) F(TAN) F(SINH) F(COSH) F(TANH) F(ASIN) F(ACOS) F(ATAN) F(ASINH) F(ACOSH) F(ATANH) \
  F(ERF) F(ERFC) F(SIGMOID) F(GELU) F(FLOOR) F(CEIL) F(TRUNC) F(ROUND) \
  F(ISNAN) F(ADD) F(SUB) F(MUL) F(DIV) F(REM) F(MIN) F(MAX) F(POW) F(ATAN2) F(COPYSIGN) F(AND) F(OR) F(XOR) F(SHL) F(SHR) \
  F(EQ) F(NE) F(LT) F(LE) F(SELECT) F(FMA) F(CAST) F(REINTERPRET) F(ODD) F(SUM) F(PRODUCT) F(SMALLEST) F(LARGEST) F(ALL) F(ANY) \
  F(ARG_LARGEST) F(ARG_SMALLEST) F(STORE) F(WRAP)
#define EXPR_CODE(NAME) EXPR_##NAME,
enum { EXPR_NONE, EXPR_CODES(EXPR_CODE) EXPR_END };
#undef EXPR_CODE
// The classes of numbers, as in kernels/expr/block.go, and those of elements that a chain converts in registers, which
// cpu/simd_expr.go gives to programs that allow it.
enum { CLASS_F32, CLASS_F64, CLASS_I32, CLASS_I64, CLASS_U32, CLASS_U64, CLASS_F16, CLASS_BF16, CLASS_U8, CLASS_U16 };
IN int64_t class_size(int64_t class) {
  static const int8_t size[] = {4, 8, 4, 8, 4, 8, 2, 2, 1, 2};
  return size[class];
}

// gcc turns loops into vector instructions at -O3, and those with square roots, roundings and choices only if nothing
// depends on errno and floating-point exceptions. No product is fused with a sum: each operation is rounded.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#define TILES
#else
#define TILES __attribute__((optimize("O3,no-math-errno,no-trapping-math,fp-contract=off")))
#endif
// Memory that is fetched into the cache while an instruction computes: a later tile of an operand, and the memory of
// a later tile of the result. Without this the processor would have few loads in flight, and would wait for memory.
enum { EXPR_PART = 64, EXPR_FETCHES = 4 };
// Elements are converted in pieces, so that the processor reads the next one while it writes the last one past the caches.
enum { EXPR_PIECE = 4 * EXPR_PART };
typedef struct {
  const char *at; // or NULL
  int64_t size;   // of an element
} expr_next;
typedef struct {
  expr_next read[EXPR_FETCHES]; // those after the first NULL do not count
  const char *write;            // or NULL; the size of a result is that of the register's numbers
} expr_ahead;
IN void expr_fetch(const expr_ahead *ahead, int64_t i, int64_t size) {
  for (const expr_next *x = ahead->read; x < ahead->read + EXPR_FETCHES && x->at; x++)
    for (int64_t at = i * x->size; at < (i + EXPR_PART) * x->size; at += 64)
      __builtin_prefetch(x->at + at);
  if (ahead->write)
    for (int64_t at = i * size; at < (i + EXPR_PART) * size; at += 64)
      __builtin_prefetch(ahead->write + at, 1);
}

#define EACH(...) PARTS(EXPR_TILE, __VA_ARGS__)
#define SOME(...) PARTS(n, __VA_ARGS__)
#define PARTS(count, ...)                                                                          \
  for (int64_t part = 0; part < count; part += EXPR_PART) {                                    \
    expr_fetch(ahead, part, sizeof *d);                                                            \
    for (int64_t i = part; i < part + EXPR_PART; i++) {                                            \
      __VA_ARGS__;                                                                                 \
    }                                                                                              \
  }                                                                                                \
  break;
#define ALL(...) COUNT(EXPR_TILE, __VA_ARGS__)
#define PIECE(...) COUNT(EXPR_PIECE, __VA_ARGS__)
#define COUNT(count, ...)                                                                          \
  for (int64_t i = 0; i < count; i++) {                                                            \
    __VA_ARGS__;                                                                                   \
  }                                                                                                \
  break;
#define WANTED(...)                                                                                \
  for (int64_t i = 0; i < n; i++) {                                                                \
    __VA_ARGS__;                                                                                   \
  }                                                                                                \
  break;

#define FLOATS(A, F, X, Y, FUNCTION)                                                                            \
  TILES static void A##_expr(int64_t code, void *restrict q, const F *a, const F *b, int64_t n, const expr_ahead *ahead) { \
    F *d = q; /* or, of comparisons, truth */                                                      \
    uint32_t *t = q;                                                                               \
    switch (code) {                                                                                \
    case EXPR_FLOOR:                                                                               \
      SOME(d[i] = X(floor)(a[i]))                                                                  \
    case EXPR_CEIL:                                                                                \
      SOME(d[i] = X(ceil)(a[i]))                                                                   \
    case EXPR_TRUNC:                                                                               \
      SOME(d[i] = X(trunc)(a[i]))                                                                  \
    case EXPR_ROUND:                                                                               \
      SOME(d[i] = X(rint)(a[i]))                                                                   \
    case EXPR_ISNAN:                                                                               \
      SOME(t[i] = a[i] != a[i])                                                                    \
    case EXPR_COPYSIGN:                                                                            \
      SOME(d[i] = X(copysign)(a[i], b[i]))                                                         \
    case EXPR_EQ:                                                                                  \
      SOME(t[i] = a[i] == b[i])                                                                    \
    case EXPR_NE:                                                                                  \
      SOME(t[i] = a[i] != b[i])                                                                    \
    case EXPR_LT:                                                                                  \
      SOME(t[i] = a[i] < b[i])                                                                     \
    case EXPR_LE:                                                                                  \
      SOME(t[i] = a[i] <= b[i])                                                                    \
    case EXPR_EXP2:                                                                                \
      FUNCTION(d[i] = Y(exp2)(a[i]))                                                               \
    case EXPR_EXPM1:                                                                               \
      FUNCTION(d[i] = Y(expm1)(a[i]))                                                              \
    case EXPR_LOG:                                                                                 \
      FUNCTION(d[i] = Y(log)(a[i]))                                                                \
    case EXPR_LOG2:                                                                                \
      FUNCTION(d[i] = Y(log2)(a[i]))                                                               \
    case EXPR_LOG1P:                                                                               \
      FUNCTION(d[i] = Y(log1p)(a[i]))                                                              \
    case EXPR_SIN:                                                                                 \
      FUNCTION(d[i] = Y(sin)(a[i]))                                                                \
    case EXPR_COS:                                                                                 \
      FUNCTION(d[i] = Y(cos)(a[i]))                                                                \
    case EXPR_TAN:                                                                                 \
      FUNCTION(d[i] = Y(tan)(a[i]))                                                                \
    case EXPR_SINH:                                                                                \
      FUNCTION(d[i] = Y(sinh)(a[i]))                                                               \
    case EXPR_COSH:                                                                                \
      FUNCTION(d[i] = Y(cosh)(a[i]))                                                               \
    case EXPR_ASIN:                                                                                \
      FUNCTION(d[i] = Y(asin)(a[i]))                                                               \
    case EXPR_ACOS:                                                                                \
      FUNCTION(d[i] = Y(acos)(a[i]))                                                               \
    case EXPR_ASINH:                                                                               \
      FUNCTION(d[i] = Y(asinh)(a[i]))                                                              \
    case EXPR_ACOSH:                                                                               \
      FUNCTION(d[i] = Y(acosh)(a[i]))                                                              \
    case EXPR_ATANH:                                                                               \
      FUNCTION(d[i] = Y(atanh)(a[i]))                                                              \
    case EXPR_ATAN:                                                                                \
      FUNCTION(d[i] = Y(atan)(a[i]))                                                               \
    case EXPR_ERF:                                                                                 \
      FUNCTION(d[i] = Y(erf)(a[i]))                                                                \
    case EXPR_ERFC:                                                                                \
      FUNCTION(d[i] = Y(erfc)(a[i]))                                                               \
    case EXPR_REM:                                                                                 \
      WANTED(d[i] = X(fmod)(a[i], b[i]))                                                           \
    case EXPR_POW:                                                                                 \
      FUNCTION(d[i] = Y(pow)(a[i], b[i]))                                                            \
    case EXPR_ATAN2:                                                                               \
      FUNCTION(d[i] = Y(atan2)(a[i], b[i]))                                                          \
    }                                                                                              \
  }
// Functions of float are computed for whole parts of a tile, and those of double by the C library.
#define SINGLE(name) name##f
#define DOUBLE(name) name
#define OURS(name) cc_m_##name
FLOATS(f32, float, SINGLE, OURS, SOME)
FLOATS(f64, double, DOUBLE, DOUBLE, WANTED)
#undef FLOATS
#undef SINGLE
#undef DOUBLE
#undef OURS

// Operations on integers that do not depend on signedness. mask is that of a shift's count, or the number that Not
// inverts a Bool with.
#define BARE(NAME, U)                                                                              \
  TILES static void NAME(int64_t code, void *restrict q, const U *a, const U *b, U mask, const expr_ahead *ahead) {         \
    U *d = q;                                                                                      \
    uint32_t *t = q;                                                                               \
    switch (code) {                                                                                \
    case EXPR_NOT:                                                                                 \
      mask = mask ? mask : (U)-1;                                                                  \
      EACH(d[i] = a[i] ^ mask)                                                                     \
    case EXPR_SHL:                                                                                 \
      EACH(d[i] = a[i] << (b[i] & mask))                                                           \
    case EXPR_EQ:                                                                                  \
      EACH(t[i] = a[i] == b[i])                                                                    \
    case EXPR_NE:                                                                                  \
      EACH(t[i] = a[i] != b[i])                                                                    \
    }                                                                                              \
  }
BARE(u32_expr_bare, uint32_t)
BARE(u64_expr_bare, uint64_t)
#undef BARE

// The operations on integers that depend on signedness. SIZE is |x|, DIVIDE the quotient x/y and LEAVE the remainder, for
// y that is not 0.
#define SIGNED(NAME, BARE, I, U, SIZE, DIVIDE, LEAVE)                                              \
  TILES static void NAME(int64_t code, void *restrict q, const I *a, const I *b, U mask, const expr_ahead *ahead) {         \
    I *d = q;                                                                                      \
    uint32_t *t = q;                                                                               \
    switch (code) {                                                                                \
    case EXPR_ABS:                                                                                 \
      EACH(I x = a[i]; d[i] = SIZE)                                                                \
    case EXPR_DIV:                                                                                 \
      EACH(I x = a[i]; I y = b[i]; d[i] = y == 0 ? 0 : DIVIDE)                                     \
    case EXPR_REM:                                                                                 \
      EACH(I x = a[i]; I y = b[i]; d[i] = y == 0 ? 0 : LEAVE)                                      \
    case EXPR_MIN:                                                                                 \
      EACH(d[i] = a[i] < b[i] ? a[i] : b[i])                                                       \
    case EXPR_MAX:                                                                                 \
      EACH(d[i] = a[i] > b[i] ? a[i] : b[i])                                                       \
    case EXPR_SHR:                                                                                 \
      EACH(d[i] = a[i] >> ((U)b[i] & mask))                                                        \
    case EXPR_LT:                                                                                  \
      EACH(t[i] = a[i] < b[i])                                                                     \
    case EXPR_LE:                                                                                  \
      EACH(t[i] = a[i] <= b[i])                                                                    \
    default:                                                                                       \
      BARE(code, q, (const U *)a, (const U *)b, mask, ahead);                                     \
    }                                                                                              \
  }
SIGNED(i32_expr, u32_expr_bare, int32_t, uint32_t, x < 0 ? (int32_t) - (uint32_t)x : x, (y == -1 ? (int32_t) - (uint32_t)x : x / y), (y == -1 ? 0 : x % y))
SIGNED(i64_expr, u64_expr_bare, int64_t, uint64_t, x < 0 ? (int64_t) - (uint64_t)x : x, (y == -1 ? (int64_t) - (uint64_t)x : x / y), (y == -1 ? 0 : x % y))
SIGNED(u32_expr, u32_expr_bare, uint32_t, uint32_t, x, x / y, x % y)
SIGNED(u64_expr, u64_expr_bare, uint64_t, uint64_t, x, x / y, x % y)
#undef SIGNED

// Casts. low and top are the least and the largest result: for an integer operand as numbers of the operand's type,
// for a float as numbers of the result's type; high is then the smallest float that is too large.
#define CAST_INT(NAME, S)                                                                          \
  TILES static void NAME(int64_t to, void *restrict q, const S *a, S low, S top) {                 \
    switch (to) {                                                                                  \
    case CLASS_F32:                                                                                \
      PIECE(((float *)q)[i] = (float)a[i])                                                          \
    case CLASS_F64:                                                                                \
      PIECE(((double *)q)[i] = (double)a[i])                                                        \
    case CLASS_I32:                                                                                \
    case CLASS_U32:                                                                                \
      PIECE(S x = a[i]; x = x < low ? low : x; x = x > top ? top : x; ((uint32_t *)q)[i] = (uint32_t)x) \
    default:                                                                                       \
      PIECE(S x = a[i]; x = x < low ? low : x; x = x > top ? top : x; ((uint64_t *)q)[i] = (uint64_t)x) \
    }                                                                                              \
  }
CAST_INT(i32_expr_cast, int32_t)
CAST_INT(i64_expr_cast, int64_t)
CAST_INT(u32_expr_cast, uint32_t)
CAST_INT(u64_expr_cast, uint64_t)
#undef CAST_INT

#define CAST_FLOAT(NAME, F)                                                                        \
  TILES static void NAME(int64_t to, void *restrict q, const F *a, int64_t low, uint64_t top) {    \
    double least = (double)low, high = (double)top; /* 2^63 and 2^64 are above their ends */       \
    const F below = (F)(0x1p31 - (sizeof(F) == 4 ? 128 : 1)); /* the last number below 2^31 that is whole */ \
    switch (to) {                                                                                  \
    case CLASS_F32:                                                                                \
      PIECE(((float *)q)[i] = (float)a[i])                                                          \
    case CLASS_F64:                                                                                \
      PIECE(((double *)q)[i] = (double)a[i])                                                        \
    case CLASS_I32:                                                                                \
      if (high < 0x1p24) { /* the ends are exact in F, too */                                      \
        F down = (F)least, up = (F)high;                                                           \
        PIECE(F x = a[i]; x = x != x ? 0 : x; x = x < down ? down : x; x = x > up ? up : x; ((int32_t *)q)[i] = (int32_t)x) \
      }                                                                                            \
      PIECE(F x = a[i], y; x = x != x ? 0 : x; y = x < -(F)0x1p31 ? -(F)0x1p31 : x; y = y > below ? below : y; \
           ((int32_t *)q)[i] = x > below ? INT32_MAX : (int32_t)y)                                 \
    case CLASS_U32:                                                                                \
      if (high < 0x1p24) {                                                                         \
        F up = (F)high;                                                                            \
        PIECE(F x = a[i]; x = x != x || x < 0 ? 0 : x; x = x > up ? up : x; ((int32_t *)q)[i] = (int32_t)x) \
      }                                                                                            \
      PIECE(double x = (double)a[i]; x = x != x ? 0 : x; x = x < least ? least : x; x = x > high ? high : x; \
           ((uint32_t *)q)[i] = (uint32_t)x)                                                       \
    case CLASS_I64:                                                                                \
      PIECE(double x = (double)a[i]; int over = x >= 0x1p63; x = x != x || over ? 0 : x; x = x < least ? least : x; \
           ((int64_t *)q)[i] = over ? INT64_MAX : (int64_t)x)                                      \
    default:                                                                                       \
      PIECE(double x = (double)a[i]; int over = x >= 0x1p64; x = x != x || over || x < 0 ? 0 : x;   \
           ((uint64_t *)q)[i] = over ? UINT64_MAX : (uint64_t)x)                                   \
    }                                                                                              \
  }
CAST_FLOAT(f32_expr_cast, float)
CAST_FLOAT(f64_expr_cast, double)
#undef CAST_FLOAT

// A number rounded to a float to odd: if the float is not exact, its last bit is set, so that a rounding to 16 bits after it is as one
// rounding of the number. A double keeps the 24 bits of a float, the last of which also stands for those that are cut off, or 13 bits
// where floats are denormal and bfloat16s have 7. Integers of 64 bits are first rounded to odd to the 53 of a double.
IN float expr_to_odd(double x) {
  uint64_t b, low = fabs(x) < 0x1p-126 ? (1ull << 40) - 1 : (1ull << 29) - 1;
  memcpy(&b, &x, 8);
  b = (b & ~low) | ((b & low) != 0 ? low + 1 : 0);
  memcpy(&x, &b, 8);
  return (float)x;
}
IN double expr_odd_wide(uint64_t x) {
  int big = x >> 53 != 0;
  uint64_t cut = big ? x >> 11 | ((x & 2047) != 0) : x;
  return (double)cut * (big ? 2048 : 1);
}
TILES static void expr_odd(int64_t class, float *restrict d, const void *a) {
  switch (class) {
  case CLASS_F64:
    ALL(d[i] = expr_to_odd(((const double *)a)[i]))
  case CLASS_I32:
    ALL(d[i] = expr_to_odd(((const int32_t *)a)[i]))
  case CLASS_U32:
    ALL(d[i] = expr_to_odd(((const uint32_t *)a)[i]))
  case CLASS_I64:
    ALL(int64_t x = ((const int64_t *)a)[i]; double y = expr_odd_wide(x < 0 ? 0 - (uint64_t)x : (uint64_t)x); d[i] = expr_to_odd(x < 0 ? -y : y))
  default:
    ALL(d[i] = expr_to_odd(expr_odd_wide(((const uint64_t *)a)[i])))
  }
}

TILES static void expr_wrap(int64_t elem, uint32_t *restrict d, const uint32_t *a) {
  switch (elem) {
  case TYPE_I8:
    ALL(d[i] = (uint32_t)(int32_t)(int8_t)a[i])
  case TYPE_I16:
    ALL(d[i] = (uint32_t)(int32_t)(int16_t)a[i])
  case TYPE_U8:
    ALL(d[i] = a[i] & 0xff)
  default:
    ALL(d[i] = a[i] & 0xffff)
  }
}

TILES static void expr_fill(int64_t size, void *restrict q, uint64_t bits, int64_t n) {
  switch (size) {
  case 1:
    WANTED(((uint8_t *)q)[i] = (uint8_t)bits)
  case 2:
    WANTED(((uint16_t *)q)[i] = (uint16_t)bits)
  case 4:
    WANTED(((uint32_t *)q)[i] = (uint32_t)bits)
  default:
    WANTED(((uint64_t *)q)[i] = bits)
  }
}

TILES static void expr_select(int64_t size, void *restrict q, const uint32_t *c, const void *x, const void *y) {
  switch (size) {
  case 4:
    ALL(((uint32_t *)q)[i] = c[i] ? ((const uint32_t *)x)[i] : ((const uint32_t *)y)[i])
  default:
    ALL(((uint64_t *)q)[i] = c[i] ? ((const uint64_t *)x)[i] : ((const uint64_t *)y)[i])
  }
}

// Philox4x32-10 with the seeds in a register; the counter is the element's position.
TILES static void expr_random(uint32_t *restrict d, const uint64_t *seed, uint64_t at, uint64_t bits) {
  uint32_t stream = (uint32_t)(bits >> 2);
  int lane = bits & 3;
  for (int64_t i = 0; i < EXPR_TILE; i++) {
    uint64_t counter = at + (uint64_t)i;
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32), c2 = stream, c3 = 0;
    uint32_t k0 = (uint32_t)seed[i], k1 = (uint32_t)(seed[i] >> 32);
    for (int r = 0; r < 10; r++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
      uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
      c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, c1 = (uint32_t)p1;
      c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1, c3 = (uint32_t)p0;
    }
    d[i] = lane == 0 ? c0 : lane == 1 ? c1 : lane == 2 ? c2 : c3;
  }
}

// Elements of less than 32 bits as numbers, and back.
TILES static void expr_widen(int64_t elem, void *restrict q, const void *p) {
  switch (elem) {
  case TYPE_F16:
    for (int64_t i = 0; i < EXPR_PIECE; i += f32_W)
      f32_store((float *)q + i, f32_from_f16((const uint16_t *)p + i));
    break;
  case TYPE_BF16:
    for (int64_t i = 0; i < EXPR_PIECE; i += f32_W)
      f32_store((float *)q + i, f32_from_bf16((const uint16_t *)p + i));
    break;
  case TYPE_I8:
    PIECE(((int32_t *)q)[i] = ((const int8_t *)p)[i])
  case TYPE_I16:
    PIECE(((int32_t *)q)[i] = ((const int16_t *)p)[i])
  case TYPE_U8:
    PIECE(((uint32_t *)q)[i] = ((const uint8_t *)p)[i])
  default:
    PIECE(((uint32_t *)q)[i] = ((const uint16_t *)p)[i])
  }
}

TILES static void expr_narrow(int64_t elem, void *restrict q, const void *p) {
  switch (elem) {
  case TYPE_F16:
    for (int64_t i = 0; i < EXPR_PIECE; i += f32_W)
      f32_to_f16((uint16_t *)q + i, f32_load((const float *)p + i));
    break;
  case TYPE_BF16:
    for (int64_t i = 0; i < EXPR_PIECE; i += f32_W)
      f32_to_bf16((uint16_t *)q + i, f32_load((const float *)p + i));
    break;
  case TYPE_I8:
  case TYPE_U8:
    PIECE(((uint8_t *)q)[i] = (uint8_t)((const uint32_t *)p)[i])
  default:
    PIECE(((uint16_t *)q)[i] = (uint16_t)((const uint32_t *)p)[i])
  }
}
#undef EACH
#undef SOME
#undef PARTS
#undef ALL
#undef PIECE
#undef COUNT
#undef WANTED
#undef WORDS
