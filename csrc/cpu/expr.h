// The machine that runs block programs of kernels/expr. Registers are tiles of EXPR_TILE numbers, an instruction is
// one loop over a tile. Whole tiles are computed even if fewer elements are needed: loops of a known length need no
// code for a rest, and no operation on numbers can fail. Functions of the C library, which are slow, are called only
// for the needed elements.
#include <math.h>

enum { EXPR_TILE = 512, EXPR_REGISTERS = 256, EXPR_RANK = 8 };

// The codes of instructions, as in kernels/expr/op.go and block.go.
#define EXPR_CODES(F)                                                                              \
  F(LOAD) F(PARAM) F(FILL) F(INDEX) F(BITS) F(NEG) F(ABS) F(NOT) F(SQRT) F(RSQRT) F(EXP) F(EXP2) F(EXPM1) F(LOG) F(LOG2) \
  F(LOG1P) F(SIN) F(COS) F(TAN) F(SINH) F(COSH) F(TANH) F(ATAN) F(ERF) F(ERFC) F(SIGMOID) F(FLOOR) F(CEIL) F(TRUNC) F(ROUND) \
  F(ISNAN) F(ADD) F(SUB) F(MUL) F(DIV) F(REM) F(MIN) F(MAX) F(POW) F(ATAN2) F(COPYSIGN) F(AND) F(OR) F(XOR) F(SHL) F(SHR) \
  F(EQ) F(NE) F(LT) F(LE) F(SELECT) F(FMA) F(CAST) F(REINTERPRET) F(STORE) F(WRAP) F(PAIR)
#define EXPR_CODE(NAME) EXPR_##NAME,
enum { EXPR_NONE, EXPR_CODES(EXPR_CODE) EXPR_END };
#undef EXPR_CODE
enum { CLASS_F32, CLASS_F64, CLASS_I32, CLASS_I64, CLASS_U32, CLASS_U64 };
IN int64_t class_size(int64_t class) { return class == CLASS_F32 || class == CLASS_I32 || class == CLASS_U32 ? 4 : 8; }

// gcc turns loops into vector instructions at -O3, and those with square roots, roundings and choices only if nothing
// depends on errno and floating-point exceptions. No product is fused with a sum: each operation is rounded.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#define TILES
#else
#define TILES __attribute__((optimize("O3,no-math-errno,no-trapping-math,fp-contract=off")))
#endif
// Memory that is fetched into the cache while an instruction computes: the next tile of an operand, and the memory of
// the next tile of the result. Without this the processor would have few loads in flight, and would wait for memory.
typedef struct {
  const char *read, *write; // or NULL
  int64_t size;             // of an element that is read; the size of a result is that of the register's numbers
} expr_ahead;
enum { EXPR_PART = 64 };
IN void expr_fetch(const expr_ahead *ahead, int64_t i, int64_t size) {
  if (ahead->read)
    for (int64_t at = i * ahead->size; at < (i + EXPR_PART) * ahead->size; at += 64)
      __builtin_prefetch(ahead->read + at);
  if (ahead->write)
    for (int64_t at = i * size; at < (i + EXPR_PART) * size; at += 64)
      __builtin_prefetch(ahead->write + at, 1);
}

#define EACH(...)                                                                                  \
  for (int64_t part = 0; part < EXPR_TILE; part += EXPR_PART) {                                    \
    expr_fetch(ahead, part, sizeof *d);                                                            \
    for (int64_t i = part; i < part + EXPR_PART; i++) {                                            \
      __VA_ARGS__;                                                                                 \
    }                                                                                              \
  }                                                                                                \
  break;
#define ALL(...)                                                                                   \
  for (int64_t i = 0; i < EXPR_TILE; i++) {                                                        \
    __VA_ARGS__;                                                                                   \
  }                                                                                                \
  break;
#define WANTED(...)                                                                                \
  for (int64_t i = 0; i < n; i++) {                                                                \
    __VA_ARGS__;                                                                                   \
  }                                                                                                \
  break;

// Functions of whole registers; the last register may hold numbers that are not needed.
#define WORDS(A, NAME)                                                                             \
  for (int64_t part = 0; part < n; part += EXPR_PART) {                                            \
    expr_fetch(ahead, part, sizeof *d);                                                            \
    for (int64_t i = part; i < part + EXPR_PART; i += A##_W)                                       \
      A##_store(d + i, A##_##NAME(A##_load(a + i)));                                               \
  }                                                                                                \
  break;

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
IN f32_v f32_tanh(f32_v x) { return f32_signed(f32_tanh_act(x), x); } // tanh_act loses the sign of zero
IN f64_v f64_tanh(f64_v x) { return f64_tanh_act(x); }

#define FLOATS(A, F, X)                                                                            \
  static void A##_expr_words(int64_t code, F *d, const F *a, int64_t n, const expr_ahead *ahead) { \
    switch (code) {                                                                                \
    case EXPR_EXP:                                                                                 \
      WORDS(A, exp)                                                                                \
    case EXPR_SIGMOID:                                                                             \
      WORDS(A, sigmoid)                                                                            \
    default:                                                                                       \
      WORDS(A, tanh)                                                                               \
    }                                                                                              \
  }                                                                                                \
  TILES static void A##_expr(int64_t code, void *restrict q, const F *a, const F *b, const F *c, int64_t n, const expr_ahead *ahead) { \
    F *d = q; /* or, of comparisons, truth */                                                      \
    uint32_t *t = q;                                                                               \
    switch (code) {                                                                                \
    case EXPR_NEG:                                                                                 \
      EACH(d[i] = -a[i])                                                                           \
    case EXPR_ABS:                                                                                 \
      EACH(d[i] = X(fabs)(a[i]))                                                                   \
    case EXPR_SQRT:                                                                                \
      EACH(d[i] = X(sqrt)(a[i]))                                                                   \
    case EXPR_RSQRT:                                                                               \
      EACH(d[i] = 1 / X(sqrt)(a[i]))                                                               \
    case EXPR_FLOOR:                                                                               \
      EACH(d[i] = X(floor)(a[i]))                                                                  \
    case EXPR_CEIL:                                                                                \
      EACH(d[i] = X(ceil)(a[i]))                                                                   \
    case EXPR_TRUNC:                                                                               \
      EACH(d[i] = X(trunc)(a[i]))                                                                  \
    case EXPR_ROUND:                                                                               \
      EACH(d[i] = X(rint)(a[i]))                                                                   \
    case EXPR_ISNAN:                                                                               \
      EACH(t[i] = a[i] != a[i])                                                                    \
    case EXPR_ADD:                                                                                 \
      EACH(d[i] = a[i] + b[i])                                                                     \
    case EXPR_SUB:                                                                                 \
      EACH(d[i] = a[i] - b[i])                                                                     \
    case EXPR_MUL:                                                                                 \
      EACH(d[i] = a[i] * b[i])                                                                     \
    case EXPR_DIV:                                                                                 \
      EACH(d[i] = a[i] / b[i])                                                                     \
    case EXPR_MIN:                                                                                 \
      EACH(F x = a[i]; F y = b[i]; y = x < y ? x : y; d[i] = x != x ? x : y)                       \
    case EXPR_MAX:                                                                                 \
      EACH(F x = a[i]; F y = b[i]; y = x > y ? x : y; d[i] = x != x ? x : y)                       \
    case EXPR_COPYSIGN:                                                                            \
      EACH(d[i] = X(copysign)(a[i], b[i]))                                                         \
    case EXPR_FMA:                                                                                 \
      EACH(d[i] = X(fma)(a[i], b[i], c[i]))                                                        \
    case EXPR_EQ:                                                                                  \
      EACH(t[i] = a[i] == b[i])                                                                    \
    case EXPR_NE:                                                                                  \
      EACH(t[i] = a[i] != b[i])                                                                    \
    case EXPR_LT:                                                                                  \
      EACH(t[i] = a[i] < b[i])                                                                     \
    case EXPR_LE:                                                                                  \
      EACH(t[i] = a[i] <= b[i])                                                                    \
    case EXPR_EXP2:                                                                                \
      WANTED(d[i] = X(exp2)(a[i]))                                                                 \
    case EXPR_EXPM1:                                                                               \
      WANTED(d[i] = X(expm1)(a[i]))                                                                \
    case EXPR_LOG:                                                                                 \
      WANTED(d[i] = X(log)(a[i]))                                                                  \
    case EXPR_LOG2:                                                                                \
      WANTED(d[i] = X(log2)(a[i]))                                                                 \
    case EXPR_LOG1P:                                                                               \
      WANTED(d[i] = X(log1p)(a[i]))                                                                \
    case EXPR_SIN:                                                                                 \
      WANTED(d[i] = X(sin)(a[i]))                                                                  \
    case EXPR_COS:                                                                                 \
      WANTED(d[i] = X(cos)(a[i]))                                                                  \
    case EXPR_TAN:                                                                                 \
      WANTED(d[i] = X(tan)(a[i]))                                                                  \
    case EXPR_SINH:                                                                                \
      WANTED(d[i] = X(sinh)(a[i]))                                                                 \
    case EXPR_COSH:                                                                                \
      WANTED(d[i] = X(cosh)(a[i]))                                                                 \
    case EXPR_ATAN:                                                                                \
      WANTED(d[i] = X(atan)(a[i]))                                                                 \
    case EXPR_ERF:                                                                                 \
      WANTED(d[i] = X(erf)(a[i]))                                                                  \
    case EXPR_ERFC:                                                                                \
      WANTED(d[i] = X(erfc)(a[i]))                                                                 \
    case EXPR_REM:                                                                                 \
      WANTED(d[i] = X(fmod)(a[i], b[i]))                                                           \
    case EXPR_POW:                                                                                 \
      WANTED(d[i] = X(pow)(a[i], b[i]))                                                            \
    case EXPR_ATAN2:                                                                               \
      WANTED(d[i] = X(atan2)(a[i], b[i]))                                                          \
    default:                                                                                       \
      A##_expr_words(code, d, a, n, ahead);                                                            \
    }                                                                                              \
  }
// Two operations in one loop, the second with the result of the first: d = (a FIRST b) SECOND c. Chains consist of such
// pairs, and one operation by itself spends half of its time loading and storing its tile.
#define PAIRS(A, F)                                                                                \
  IN F A##_smaller_of(F x, F y) { return x < y || x != x ? x : y; }                                \
  IN F A##_larger_of(F x, F y) { return x > y || x != x ? x : y; }                                 \
  TILES static void A##_expr_pair(int64_t ops, F *restrict d, const F *a, const F *b, const F *c, const expr_ahead *ahead) { \
    switch (ops & 255) {                                                                           \
    case EXPR_ADD:                                                                                 \
      SECOND(A, F, a[i] + b[i])                                                                    \
    case EXPR_SUB:                                                                                 \
      SECOND(A, F, a[i] - b[i])                                                                    \
    case EXPR_MUL:                                                                                 \
      SECOND(A, F, a[i] * b[i])                                                                    \
    case EXPR_MIN:                                                                                 \
      SECOND(A, F, A##_smaller_of(a[i], b[i]))                                                     \
    default:                                                                                       \
      SECOND(A, F, A##_larger_of(a[i], b[i]))                                                      \
    }                                                                                              \
  }
#define SECOND(A, F, FIRST)                                                                        \
  switch (ops >> 8) {                                                                              \
  case EXPR_ADD:                                                                                   \
    EACH(F t = FIRST; d[i] = t + c[i])                                                             \
  case EXPR_SUB:                                                                                   \
    EACH(F t = FIRST; d[i] = t - c[i])                                                             \
  case EXPR_SUB | 256: /* the result of the first stands behind */                                 \
    EACH(F t = FIRST; d[i] = c[i] - t)                                                             \
  case EXPR_MUL:                                                                                   \
    EACH(F t = FIRST; d[i] = t * c[i])                                                             \
  case EXPR_MIN:                                                                                   \
    EACH(F t = FIRST; d[i] = A##_smaller_of(t, c[i]))                                              \
  default:                                                                                         \
    EACH(F t = FIRST; d[i] = A##_larger_of(t, c[i]))                                               \
  }                                                                                                \
  break;
PAIRS(f32, float)
PAIRS(f64, double)
#undef PAIRS
#undef SECOND

#define SINGLE(name) name##f
#define DOUBLE(name) name
FLOATS(f32, float, SINGLE)
FLOATS(f64, double, DOUBLE)
#undef FLOATS
#undef SINGLE
#undef DOUBLE

// Operations on integers that do not depend on signedness. mask is that of a shift's count, or the number that Not
// inverts a Bool with.
#define BARE(NAME, U)                                                                              \
  TILES static void NAME(int64_t code, void *restrict q, const U *a, const U *b, U mask, const expr_ahead *ahead) {         \
    U *d = q;                                                                                      \
    uint32_t *t = q;                                                                               \
    switch (code) {                                                                                \
    case EXPR_NEG:                                                                                 \
      EACH(d[i] = -a[i])                                                                           \
    case EXPR_NOT:                                                                                 \
      mask = mask ? mask : (U)-1;                                                                  \
      EACH(d[i] = a[i] ^ mask)                                                                     \
    case EXPR_ADD:                                                                                 \
      EACH(d[i] = a[i] + b[i])                                                                     \
    case EXPR_SUB:                                                                                 \
      EACH(d[i] = a[i] - b[i])                                                                     \
    case EXPR_MUL:                                                                                 \
      EACH(d[i] = a[i] * b[i])                                                                     \
    case EXPR_AND:                                                                                 \
      EACH(d[i] = a[i] & b[i])                                                                     \
    case EXPR_OR:                                                                                  \
      EACH(d[i] = a[i] | b[i])                                                                     \
    case EXPR_XOR:                                                                                 \
      EACH(d[i] = a[i] ^ b[i])                                                                     \
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
      ALL(((float *)q)[i] = (float)a[i])                                                          \
    case CLASS_F64:                                                                                \
      ALL(((double *)q)[i] = (double)a[i])                                                        \
    case CLASS_I32:                                                                                \
    case CLASS_U32:                                                                                \
      ALL(S x = a[i]; x = x < low ? low : x; x = x > top ? top : x; ((uint32_t *)q)[i] = (uint32_t)x) \
    default:                                                                                       \
      ALL(S x = a[i]; x = x < low ? low : x; x = x > top ? top : x; ((uint64_t *)q)[i] = (uint64_t)x) \
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
    switch (to) {                                                                                  \
    case CLASS_F32:                                                                                \
      ALL(((float *)q)[i] = (float)a[i])                                                          \
    case CLASS_F64:                                                                                \
      ALL(((double *)q)[i] = (double)a[i])                                                        \
    case CLASS_I32:                                                                                \
    case CLASS_U32:                                                                                \
      ALL(double x = (double)a[i]; x = x != x ? 0 : x; x = x < least ? least : x; x = x > high ? high : x; \
           ((uint32_t *)q)[i] = (uint32_t)(int64_t)x)                                              \
    case CLASS_I64:                                                                                \
      ALL(double x = (double)a[i]; int over = x >= 0x1p63; x = x != x || over ? 0 : x; x = x < least ? least : x; \
           ((int64_t *)q)[i] = over ? INT64_MAX : (int64_t)x)                                      \
    default:                                                                                       \
      ALL(double x = (double)a[i]; int over = x >= 0x1p64; x = x != x || over || x < 0 ? 0 : x;   \
           ((uint64_t *)q)[i] = over ? UINT64_MAX : (uint64_t)x)                                   \
    }                                                                                              \
  }
CAST_FLOAT(f32_expr_cast, float)
CAST_FLOAT(f64_expr_cast, double)
#undef CAST_FLOAT

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

TILES static void expr_fill(int64_t size, void *restrict q, uint64_t bits) {
  switch (size) {
  case 4:
    ALL(((uint32_t *)q)[i] = (uint32_t)bits)
  default:
    ALL(((uint64_t *)q)[i] = bits)
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
    for (int64_t i = 0; i < EXPR_TILE; i += f32_W)
      f32_store((float *)q + i, f32_from_f16((const uint16_t *)p + i));
    break;
  case TYPE_BF16:
    ALL(((uint32_t *)q)[i] = (uint32_t)((const uint16_t *)p)[i] << 16)
  case TYPE_I8:
    ALL(((int32_t *)q)[i] = ((const int8_t *)p)[i])
  case TYPE_I16:
    ALL(((int32_t *)q)[i] = ((const int16_t *)p)[i])
  case TYPE_U8:
    ALL(((uint32_t *)q)[i] = ((const uint8_t *)p)[i])
  default:
    ALL(((uint32_t *)q)[i] = ((const uint16_t *)p)[i])
  }
}

TILES static void expr_narrow(int64_t elem, void *restrict q, const void *p) {
  switch (elem) {
  case TYPE_F16:
    for (int64_t i = 0; i < EXPR_TILE; i += f32_W)
      f32_to_f16((uint16_t *)q + i, f32_load((const float *)p + i));
    break;
  case TYPE_BF16:
    for (int64_t i = 0; i < EXPR_TILE; i += f32_W)
      f32_to_bf16((uint16_t *)q + i, f32_load((const float *)p + i));
    break;
  case TYPE_I8:
  case TYPE_U8:
    ALL(((uint8_t *)q)[i] = (uint8_t)((const uint32_t *)p)[i])
  default:
    ALL(((uint16_t *)q)[i] = (uint16_t)((const uint32_t *)p)[i])
  }
}
#undef EACH
#undef ALL
#undef WANTED
#undef WORDS
#undef TILES

// The positions of operands, as words of a launch.
typedef struct {
  int64_t rank, operands;
  const simd_word *dims, *operand; // for each operand: its memory, its first element, rank steps
} expr_layout;

// The coordinates of an element of the launch.
typedef struct {
  int64_t at[EXPR_RANK];
} expr_place;

static expr_place expr_find(const expr_layout *l, int64_t lo) {
  expr_place p;
  for (int64_t j = l->rank - 1; j > 0; j--) {
    p.at[j] = lo % l->dims[j].i;
    lo /= l->dims[j].i;
  }
  p.at[0] = lo;
  return p;
}

#define MOVE(E)                                                                                    \
  if (out)                                                                                         \
    for (int64_t i = 0; i < n; i++)                                                                \
      ((E *)p)[i * step] = ((E *)tile)[i];                                                         \
  else                                                                                             \
    for (int64_t i = 0; i < n; i++)                                                                \
      ((E *)tile)[i] = ((E *)p)[i * step];                                                         \
  break;

// expr_move gathers n elements of an operand into a tile, or scatters them.
static void expr_move(const expr_layout *l, int64_t slot, int64_t size, expr_place place, int64_t count, char *tile, int out) {
  const simd_word *o = l->operand + slot * (2 + l->rank);
  int64_t last = l->rank - 1, step = o[2 + last].i;
  while (count > 0) {
    int64_t n = l->dims[last].i - place.at[last];
    char *p = o[0].p;
    n = n < count ? n : count;
    for (int64_t j = 0; j <= last; j++)
      p += place.at[j] * o[2 + j].i * size;
    p += o[1].i * size;
    if (step == 1)
      memcpy(out ? p : tile, out ? tile : p, (size_t)(n * size));
    else
      switch (size) {
      case 1:
        MOVE(uint8_t)
      case 2:
        MOVE(uint16_t)
      case 4:
        MOVE(uint32_t)
      default:
        MOVE(uint64_t)
      }
    tile += n * size, count -= n;
    place.at[last] = 0;
    for (int64_t j = last - 1; j >= 0; j--) {
      if (++place.at[j] < l->dims[j].i || j == 0)
        break;
      place.at[j] = 0;
    }
  }
}
#undef MOVE

// expr_side returns the address of a tile of an operand if the tile is whole and adjacent in memory, and otherwise NULL.
static char *expr_side(const expr_layout *l, int64_t slot, int64_t size, const expr_place *place, int64_t n) {
  const simd_word *o = l->operand + slot * (2 + l->rank);
  int64_t last = l->rank - 1;
  char *p = o[0].p;
  if (n < EXPR_TILE || o[2 + last].i != 1 || l->dims[last].i - place->at[last] < n)
    return NULL;
  for (int64_t j = 0; j <= last; j++)
    p += place->at[j] * o[2 + j].i * size;
  return p + o[1].i * size;
}

typedef struct {
  int64_t code, type, to, dst, a, b, c, elem;
  simd_word bits, low, top;
  int64_t copied;  // of a load: whether the register must not be the operand's memory
  int64_t fetches; // the load whose next tile this instruction fetches, or -1
} expr_instruction;

static expr_instruction expr_decode(const simd_word *w) {
  uint64_t x = (uint64_t)w[0].i;
  return (expr_instruction){.code = x & 255,      .type = x >> 8 & 255,  .to = x >> 16 & 255, .dst = x >> 24 & 255,
                            .a = x >> 32 & 255,   .b = x >> 40 & 255,    .c = x >> 48 & 255,  .elem = x >> 56,
                            .bits = w[1],         .low = w[2],           .top = w[3],         .fetches = -1};
}

static void expr_compute(const expr_instruction *in, void *d, char *const *reg, int64_t lo, int64_t n, const expr_ahead *ahead) {
  const void *a = reg[in->a], *b = reg[in->b], *c = reg[in->c];
  switch (in->code) {
  case EXPR_INDEX:
    for (int64_t i = 0; i < EXPR_TILE; i++)
      ((int64_t *)d)[i] = lo + i;
    return;
  case EXPR_BITS:
    expr_random(d, a, (uint64_t)lo, (uint64_t)in->bits.i);
    return;
  case EXPR_WRAP:
    expr_wrap(in->elem, d, a);
    return;
  case EXPR_SELECT:
    expr_select(class_size(in->to), d, a, b, c);
    return;
  case EXPR_CAST:
    switch (in->type) {
    case CLASS_F32:
      f32_expr_cast(in->to, d, a, in->low.i, (uint64_t)in->top.i);
      return;
    case CLASS_F64:
      f64_expr_cast(in->to, d, a, in->low.i, (uint64_t)in->top.i);
      return;
    case CLASS_I32:
      i32_expr_cast(in->to, d, a, (int32_t)in->low.i, (int32_t)in->top.i);
      return;
    case CLASS_I64:
      i64_expr_cast(in->to, d, a, in->low.i, in->top.i);
      return;
    case CLASS_U32:
      u32_expr_cast(in->to, d, a, (uint32_t)in->low.i, (uint32_t)in->top.i);
      return;
    default:
      u64_expr_cast(in->to, d, a, (uint64_t)in->low.i, (uint64_t)in->top.i);
      return;
    }
  }
  if (in->code == EXPR_PAIR) {
    if (in->type == CLASS_F32)
      f32_expr_pair(in->bits.i, d, a, b, c, ahead);
    else
      f64_expr_pair(in->bits.i, d, a, b, c, ahead);
    return;
  }
  switch (in->type) {
  case CLASS_F32:
    f32_expr(in->code, d, a, b, c, n, ahead);
    return;
  case CLASS_F64:
    f64_expr(in->code, d, a, b, c, n, ahead);
    return;
  case CLASS_I32:
    i32_expr(in->code, d, a, b, (uint32_t)in->bits.i, ahead);
    return;
  case CLASS_I64:
    i64_expr(in->code, d, a, b, (uint64_t)in->bits.i, ahead);
    return;
  case CLASS_U32:
    u32_expr(in->code, d, a, b, (uint32_t)in->bits.i, ahead);
    return;
  default:
    u64_expr(in->code, d, a, b, (uint64_t)in->bits.i, ahead);
  }
}

// The memory of a program: a tile for each register and one for elements as they are stored, the instructions, and
// what they fetch. Small programs have it on the stack.
#define EXPR_BYTES(registers, count)                                                               \
  (((registers) + 1) * EXPR_TILE * 8 + (count) * (int64_t)(sizeof(expr_instruction) + sizeof(expr_ahead)))

_Static_assert(sizeof(expr_instruction) + sizeof(expr_ahead) <= 192, "cpu/simd_expr.go counts so many bytes");

// Words: first element, last element plus one, number of instructions, number of those that run once, registers, rank,
// operands, 1 if the results are larger than the caches, EXPR_BYTES of memory or NULL; rank lengths; for each operand
// its memory, its first element and rank steps; four words for each instruction, see expr_decode, of which the second is also the operand of a load
// or store.
EXPORT(expr) {
  int64_t count = w[2].i, once = w[3].i, registers = w[4].i;
  expr_layout l = {.rank = w[5].i, .operands = w[6].i, .dims = w + 9, .operand = w + 9 + w[5].i};
  const simd_word *code = l.operand + l.operands * (2 + l.rank);
  _Alignas(64) char own[w[8].p ? 64 : EXPR_BYTES(registers, count)];
  char *tiles = w[8].p ? w[8].p : own;
  char *home[EXPR_REGISTERS], *reg[EXPR_REGISTERS], *raw = tiles + registers * EXPR_TILE * 8;
  expr_instruction *list = (expr_instruction *)(raw + EXPR_TILE * 8), *end = list + count;
  expr_ahead *ahead = (expr_ahead *)end;
  int64_t stores = 0;
  for (int64_t r = 0; r < registers; r++)
    home[r] = reg[r] = tiles + r * EXPR_TILE * 8;
  for (int64_t k = 0; k < count; k++)
    list[k] = expr_decode(code + 4 * k), stores += list[k].code == EXPR_STORE;
  for (const expr_instruction *in = list; in < list + once; in++)
    expr_fill(class_size(in->to), reg[in->dst], (uint64_t)in->bits.i);
  // The last operation writes its result directly to the output if the store after it needs no conversion and the
  // results fit in the caches.
  expr_instruction *direct = count - once >= 2 && !w[7].i ? end - 2 : NULL;
  if (direct && (direct->code == EXPR_LOAD || direct->code == EXPR_STORE || direct->code == EXPR_CAST || direct->dst != end[-1].a ||
                 type_size[end[-1].elem] != class_size(direct->to)))
    direct = NULL;
  // Each operation fetches the next tile of one load, as long as there are loads left.
  expr_instruction *fetcher = list + once;
  for (int64_t k = once; k < count; k++)
    if (list[k].code == EXPR_LOAD) {
      // An input that is stored as it is has to be copied, if an earlier store may overwrite it.
      for (int64_t j = count - stores; j < count; j++)
        list[k].copied |= stores > 1 && list[j].a == list[k].dst;
      while (fetcher < end && (fetcher->code == EXPR_LOAD || fetcher->code == EXPR_STORE))
        fetcher++;
      if (fetcher < end)
        (fetcher++)->fetches = k;
    }
  for (int64_t lo = w[0].i, n; lo < w[1].i; lo += n) {
    n = w[1].i - lo < EXPR_TILE ? w[1].i - lo : EXPR_TILE;
    expr_place place = expr_find(&l, lo);
    for (const expr_instruction *in = list + once; in < end; in++) {
      int64_t size = type_size[in->elem], slot = in->bits.i;
      if (in->code == EXPR_LOAD) {
        char *p = expr_side(&l, slot, size, &place, n);
        int as_is = size >= 4;
        ahead[in - list] = (expr_ahead){.read = p ? p + EXPR_TILE * size : NULL, .size = size};
        if (!p || in->copied) {
          p = as_is ? home[in->dst] : raw;
          expr_move(&l, slot, size, place, n, p, 0);
        }
        reg[in->dst] = as_is ? p : home[in->dst];
        if (!as_is)
          expr_widen(in->elem, home[in->dst], p);
      } else if (in->code == EXPR_STORE) {
        char *p = expr_side(&l, slot, size, &place, n), *from = reg[in->a];
        if (size < 4) {
          char *to = p ? p : raw;
          expr_narrow(in->elem, to, from);
          if (!p)
            expr_move(&l, slot, size, place, n, raw, 1);
        } else if (!p)
          expr_move(&l, slot, size, place, n, from, 1);
        else if (w[7].i && ((uintptr_t)p & 63) == 0)
          for (int64_t i = 0; i < EXPR_TILE * size; i += 64)
            past_line(p + i, from + i);
        else if (p != from)
          for (int64_t i = 0; i < EXPR_TILE * size; i += 4 * f32_W) {
            __builtin_prefetch(from + i + EXPR_TILE * size);
            __builtin_prefetch(p + i + EXPR_TILE * size, 1);
            f32_store((float *)(p + i), f32_load((const float *)(from + i)));
          }
      } else {
        char *p = in == direct ? expr_side(&l, end[-1].bits.i, class_size(in->to), &place, n) : NULL;
        expr_ahead next = {.write = p ? p + EXPR_TILE * class_size(in->to) : NULL};
        if (in->fetches >= 0)
          next.read = ahead[in->fetches].read, next.size = ahead[in->fetches].size;
        p = p ? p : home[in->dst];
        expr_compute(in, p, reg, lo, n, &next); // reg[in->dst] changes only now, since an operand may be in it
        reg[in->dst] = p;
      }
    }
  }
  past_end();
}
