// Loads and stores for the types in which elements are stored, as registers of the type in which
// they are computed: half and bfloat16 become floats when they are loaded. For each type S
//
//   S_load, S_store    a whole register
//   S_read             as S_load, but faster if much is read from memory
//   S_loadn, S_storen  the first n elements of one; others are 0, or are not written
//   S_get, S_put       one element
//   S_send             a store of a whole register to an aligned address, optionally past the caches
#include <string.h>

#define FULL(S, E)                                                                                 \
  IN S##_v S##_loadn(const E *p, int64_t n) { return S##_loadm(p, S##_first(n)); }                 \
  IN void S##_storen(E *p, int64_t n, S##_v v) { S##_storem(p, S##_first(n), v); }                 \
  IN void S##_send(E *p, S##_v v, int past) {                                                      \
    if (past)                                                                                      \
      S##_past(p, v);                                                                              \
    else                                                                                           \
      S##_store(p, v);                                                                             \
  }                                                                                                \
  IN E S##_get(const E *p) { return *p; }                                                          \
  IN void S##_put(E *p, E x) { *p = x; }
FULL(f32, float)
FULL(f64, double)
#undef FULL

#define SHORT(S)                                                                                   \
  IN f32_v S##_load(const uint16_t *p) { return f32_from_##S(p); }                                 \
  IN f32_v S##_read(const uint16_t *p) { return f32_from_##S(p); }                                 \
  IN void S##_store(uint16_t *p, f32_v v) { f32_to_##S(p, v); }                                    \
  IN f32_v S##_loadn(const uint16_t *p, int64_t n) {                                               \
    uint16_t x[f32_W] = {0};                                                                       \
    for (int64_t i = 0; i < n; i++)                                                                \
      x[i] = p[i];                                                                                 \
    return f32_from_##S(x);                                                                        \
  }                                                                                                \
  IN void S##_storen(uint16_t *p, int64_t n, f32_v v) {                                            \
    uint16_t x[f32_W];                                                                             \
    f32_to_##S(x, v);                                                                              \
    for (int64_t i = 0; i < n; i++)                                                                \
      p[i] = x[i];                                                                                 \
  }                                                                                                \
  IN void S##_send(uint16_t *p, f32_v v, int past) {                                               \
    uint16_t x[f32_W];                                                                             \
    f32_to_##S(past ? x : p, v);                                                                   \
    if (past)                                                                                      \
      past_half(p, x);                                                                             \
  }                                                                                                \
  IN float S##_get(const uint16_t *p) {                                                            \
    float x[f32_W];                                                                                \
    f32_store(x, S##_loadn(p, 1));                                                                 \
    return x[0];                                                                                   \
  }                                                                                                \
  IN void S##_put(uint16_t *p, float x) { S##_storen(p, 1, f32_set(x)); }
SHORT(f16)
SHORT(bf16)
#undef SHORT

// The numbers of the types, in the order of simdTypes in cpu/simd_stream.go.
enum { TYPE_F32, TYPE_F64, TYPE_F16, TYPE_BF16, TYPE_I8, TYPE_I16, TYPE_I32, TYPE_I64, TYPE_U8, TYPE_U16, TYPE_U32, TYPE_U64 };
static const int8_t type_size[] = {4, 8, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8};

// The reductions, in the order of kernels/expr/op.go. The last two have the place of an element as their result.
enum { REDUCE_SUM, REDUCE_PRODUCT, REDUCE_SMALLEST, REDUCE_LARGEST, REDUCE_ALL, REDUCE_ANY, REDUCE_ARG_LARGEST, REDUCE_ARG_SMALLEST };

// A part of a job computes elements lo to lo + n and stores them at to. If past is set, it stores
// them past the caches, and to is the beginning of a cache line.
typedef void part_func(const simd_word *w, int64_t lo, int64_t n, void *to, int past);

// in_parts runs a job of n elements. past says that its result is larger than the caches. The
// caller calls past_end once after all its jobs.
IN void in_parts(part_func *part, const simd_word *w, int64_t n, void *out, int64_t size, int past) {
  char *q = out;
  int64_t head = (int64_t)(-(uintptr_t)q & 63) / size;
  if (!past || n <= head) {
    part(w, 0, n, out, 0);
    return;
  }
  if (head > 0)
    part(w, 0, head, out, 0);
  part(w, head, n - head, q + head * size, 1);
}

// Returns the first n elements of v, followed by those of other.
#define PART(A, F)                                                                                 \
  IN A##_v A##_part(A##_v v, int64_t n, A##_v other) {                                             \
    F x[A##_W];                                                                                    \
    A##_store(x, other);                                                                           \
    A##_storem(x, A##_first(n), v);                                                                \
    return A##_load(x);                                                                            \
  }
PART(f32, float)
PART(f64, double)
#undef PART
