// Conversions between all types except 64-bit integers. A piece of elements is converted to float
// or double, whichever represents the type exactly, and rounded once when it is written. float
// and types of up to 16 bits are converted to float.
enum { CAST_PIECE = 512 };

#define READ(NAME, S, E, W, A)                                                                     \
  static void cast_read_##NAME(const void *from, int64_t n, void *to) {                            \
    const E *p = from;                                                                             \
    int64_t i = 0;                                                                                 \
    for (; i + W <= n; i += W)                                                                     \
      A##_store((A##_c *)to + i, A##_from_##S(p + i));                                             \
    if (i < n) {                                                                                   \
      E rest[W] = {0};                                                                             \
      memcpy(rest, p + i, (size_t)(n - i) * sizeof(E));                                            \
      A##_storen((A##_c *)to + i, n - i, A##_from_##S(rest));                                      \
    }                                                                                              \
  }
typedef float f32_c;
typedef double f64_c;
READ(f16, f16, uint16_t, f32_W, f32)
READ(bf16, bf16, uint16_t, f32_W, f32)
READ(i8, i8, int8_t, f32_W, f32)
READ(u8, u8, uint8_t, f32_W, f32)
READ(i16, i16, int16_t, f32_W, f32)
READ(u16, u16, uint16_t, f32_W, f32)
READ(i32, i32, int32_t, f64_W, f64)
READ(u32, u32, uint32_t, f64_W, f64)
#undef READ

#define CLAMP(A, v, LO, HI) A##_max(A##_set(LO), A##_min(A##_set(HI), A##_number(v)))
#define WRITE(NAME, E, A, PUT, PART)                                                               \
  static void cast_##A##_to_##NAME(const void *from, int64_t n, void *to, int past) {              \
    const A##_c *p = from;                                                                         \
    E *q = to, rest[A##_W];                                                                        \
    int64_t i = 0;                                                                                 \
    for (; i + A##_W <= n; i += A##_W) {                                                           \
      E *at = past ? rest : q + i;                                                                 \
      A##_v v = A##_read(p + i);                                                                   \
      PUT;                                                                                         \
      if (past)                                                                                    \
        past_##PART(q + i, rest);                                                                  \
    }                                                                                              \
    if (i < n) {                                                                                   \
      E *at = rest;                                                                                \
      A##_v v = A##_loadn(p + i, n - i);                                                           \
      PUT;                                                                                         \
      memcpy(q + i, rest, (size_t)(n - i) * sizeof(E));                                            \
    }                                                                                              \
  }
WRITE(f16, uint16_t, f32, f32_to_f16(at, v), half)
WRITE(bf16, uint16_t, f32, f32_to_bf16(at, v), half)
WRITE(i8, int8_t, f32, f32_put8(at, CLAMP(f32, v, -128, 127)), quarter)
WRITE(u8, uint8_t, f32, f32_put8(at, CLAMP(f32, v, 0, 255)), quarter)
WRITE(i16, int16_t, f32, f32_put16(at, CLAMP(f32, v, -32768, 32767)), half)
WRITE(u16, uint16_t, f32, f32_put16(at, CLAMP(f32, v, 0, 65535)), half)
WRITE(i32, int32_t, f32, f32_put32(at, v), full)
WRITE(f32, float, f64, f64_to_f32(at, v), half)
WRITE(i32, int32_t, f64, f64_put32(at, CLAMP(f64, v, -0x1p31, 0x1p31 - 1)), half)
WRITE(u32, uint32_t, f64, f64_put32(at, CLAMP(f64, v, 0, 0x1p32 - 1)), half)
// For a result of half or bfloat16, doubles are rounded to floats that keep the information for the
// final rounding.
WRITE(sticky, float, f64, f64_to_f32(at, f64_sticky(v)), half)
#undef WRITE
#undef CLAMP

static void cast_f32_to_f64(const void *from, int64_t n, void *to, int past) {
  const float *p = from;
  double *q = to;
  int64_t i = 0;
  for (; i + f64_W <= n; i += f64_W)
    f64_send(q + i, f64_from_f32(p + i), past);
  for (; i < n; i++)
    q[i] = p[i];
}

// Doubles to shorter integers: converted to 32-bit integers, which are clamped to the range.
#define SHORTEN(NAME, E, LO, HI)                                                                   \
  static void cast_f64_to_##NAME(const void *from, int64_t n, void *to, int past) {                \
    int32_t x[CAST_PIECE];                                                                         \
    E *q = to;                                                                                     \
    (void)past;                                                                                    \
    cast_f64_to_i32(from, n, x, 0);                                                                \
    for (int64_t i = 0; i < n; i++)                                                                \
      q[i] = (E)(x[i] < LO ? LO : x[i] > HI ? HI : x[i]);                                          \
  }
SHORTEN(i8, int8_t, -128, 127)
SHORTEN(u8, uint8_t, 0, 255)
SHORTEN(i16, int16_t, -32768, 32767)
SHORTEN(u16, uint16_t, 0, 65535)
#undef SHORTEN

#define BY_STICKY(NAME)                                                                            \
  static void cast_f64_to_##NAME(const void *from, int64_t n, void *to, int past) {                \
    float x[CAST_PIECE];                                                                           \
    cast_f64_to_sticky(from, n, x, 0);                                                             \
    cast_f32_to_##NAME(x, n, to, past);                                                            \
  }
BY_STICKY(f16)
BY_STICKY(bf16)
#undef BY_STICKY

static void cast_f32_to_u32(const void *from, int64_t n, void *to, int past) {
  double x[CAST_PIECE];
  cast_f32_to_f64(from, n, x, 0);
  cast_f64_to_u32(x, n, to, past);
}

static void cast_i32_to_f32(const void *from, int64_t n, void *to, int past) {
  const int32_t *p = from;
  float *q = to;
  int64_t i = 0;
  for (; i + f32_W <= n; i += f32_W)
    f32_send(q + i, f32_from_i32(p + i), past);
  for (; i < n; i++)
    q[i] = (float)p[i];
}

// Words from 1 on: types from and to, n, in, out, 1 if out is larger than the caches. Neither
// type is a 64-bit integer.
static void cast_part(const simd_word *w, int64_t lo, int64_t n, void *to, int past) {
  typedef void read_func(const void *, int64_t, void *);
  typedef void func(const void *, int64_t, void *, int);
  static read_func *const read[] = {[TYPE_F16] = cast_read_f16, [TYPE_BF16] = cast_read_bf16, [TYPE_I8] = cast_read_i8,
                               [TYPE_U8] = cast_read_u8,   [TYPE_I16] = cast_read_i16,   [TYPE_U16] = cast_read_u16,
                               [TYPE_I32] = cast_read_i32, [TYPE_U32] = cast_read_u32};
  static func *const write[2][12] = {
      {[TYPE_F64] = cast_f32_to_f64, [TYPE_F16] = cast_f32_to_f16, [TYPE_BF16] = cast_f32_to_bf16, [TYPE_I8] = cast_f32_to_i8,
       [TYPE_U8] = cast_f32_to_u8, [TYPE_I16] = cast_f32_to_i16, [TYPE_U16] = cast_f32_to_u16, [TYPE_I32] = cast_f32_to_i32,
       [TYPE_U32] = cast_f32_to_u32},
      {[TYPE_F32] = cast_f64_to_f32, [TYPE_F16] = cast_f64_to_f16, [TYPE_BF16] = cast_f64_to_bf16, [TYPE_I8] = cast_f64_to_i8,
       [TYPE_U8] = cast_f64_to_u8, [TYPE_I16] = cast_f64_to_i16, [TYPE_U16] = cast_f64_to_u16, [TYPE_I32] = cast_f64_to_i32,
       [TYPE_U32] = cast_f64_to_u32}};
  int64_t from = w[1].i, wide = from == TYPE_F64 || from == TYPE_I32 || from == TYPE_U32;
  int one_step = from == TYPE_F32 ? w[2].i != TYPE_U32 : from == TYPE_F64 && type_size[w[2].i] >= 4;
  double piece[CAST_PIECE];
  if (from == TYPE_I32 && w[2].i == TYPE_F32) {
    cast_i32_to_f32((const int32_t *)w[4].p + lo, n, to, past);
    return;
  }
  for (int64_t i = 0, m; i < n; i += m) {
    m = one_step || n - i < CAST_PIECE ? n - i : CAST_PIECE;
    const char *in = (const char *)w[4].p + (lo + i) * type_size[from];
    char *out = (char *)to + i * type_size[w[2].i];
    if (from != TYPE_F32 && from != TYPE_F64) {
      read[from](in, m, piece);
      in = (const char *)piece;
    }
    if (write[wide][w[2].i])
      write[wide][w[2].i](in, m, out, past);
    else if (past) // no conversion is needed
      past_copy(out, in, m * (wide ? 8 : 4));
    else
      memcpy(out, in, (size_t)(m * (wide ? 8 : 4)));
  }
}

EXPORT(cast) {
  in_parts(cast_part, w, w[3].i, w[5].p, type_size[w[2].i], w[6].i != 0);
  past_end();
}
