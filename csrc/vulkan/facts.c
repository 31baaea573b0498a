// facts.c asks a device what its instructions compute exactly, before it makes the first pipeline of a program. Vulkan
// allows that a fused multiply-add is a product and a sum, that quotients and roots are off by some units, and that
// numbers below the normal range are zero. Programs get the facts as a specialization constant.

#include <float.h>
#include <math.h>

#include "state.h"

enum { FACT_ITEMS = 4096 };

// next_bits is a generator of numbers (splitmix64).
static uint64_t next_bits(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static int same(const void *a, const void *b, size_t bytes) { return memcmp(a, b, bytes) == 0; }

// JUDGE defines, for a type, the inputs of the kernels in tools and the comparison of what they return. Of four numbers,
// x, y and z have exponents around 0 in one half of the items and of the whole range in the other; every other z is the
// negative rounded product, whose sum with the product is 0 unless that is exact; the last one is 1. Every eighth x is
// below the normal range. Infinite results are not judged, and results or an x below the normal range only if the
// device keeps such numbers.
#define JUDGE(TYPE, BITS, MANTISSA, MIDDLE, LEAST, fused, root)                                    \
  static TYPE some_##TYPE(uint64_t *state, int wide) {                                             \
    uint64_t bits = next_bits(state), other = next_bits(state);                                    \
    uint64_t exponent = wide ? 1 + other % (2 * MIDDLE) : MIDDLE - 15 + other % 30;                \
    BITS to = (BITS)(bits & (((BITS)1 << MANTISSA) - 1)) | (BITS)exponent << MANTISSA |            \
              (BITS)(bits >> 63) << (8 * sizeof(BITS) - 1);                                        \
    TYPE value;                                                                                    \
    memcpy(&value, &to, sizeof value);                                                             \
    return value;                                                                                  \
  }                                                                                                \
  static void inputs_##TYPE(TYPE *to) {                                                            \
    uint64_t state = 38;                                                                           \
    for (uint32_t i = 0; i < FACT_ITEMS; i++, to += 4) {                                           \
      int wide = i >= FACT_ITEMS / 2;                                                              \
      to[0] = some_##TYPE(&state, wide);                                                           \
      to[1] = some_##TYPE(&state, wide);                                                           \
      volatile TYPE product = to[0] * to[1];                                                       \
      to[2] = i % 2 == 0 && isfinite(product) ? -product : some_##TYPE(&state, wide);              \
      to[3] = 1;                                                                                   \
      BITS small = (BITS)(next_bits(&state) & (((BITS)1 << MANTISSA) - 1)) | 1;                    \
      if (i % 8 == 0)                                                                              \
        memcpy(to, &small, sizeof small);                                                          \
    }                                                                                              \
  }                                                                                                \
  static uint32_t judge_##TYPE(const TYPE *from, const TYPE *got) {                                \
    int right[3] = {1, 1, 1}, kept = 1;                                                            \
    for (uint32_t i = 0; i < FACT_ITEMS; i++)                                                      \
      kept &= same(got + 4 * i + 3, from + 4 * i, sizeof *got);                                    \
    for (uint32_t i = 0; i < FACT_ITEMS; i++, from += 4, got += 4) {                               \
      TYPE x = from[0] < 0 ? -from[0] : from[0];                                                   \
      TYPE exact[3] = {fused(from[0], from[1], from[2]), from[0] / from[1], root(x)};              \
      for (int j = 0; j < 3; j++) {                                                                \
        TYPE size = exact[j] < 0 ? -exact[j] : exact[j];                                           \
        if (isfinite(exact[j]) && (kept || (x >= LEAST && (size >= LEAST || size == 0))))          \
          right[j] &= same(got + j, exact + j, sizeof *got);                                       \
      }                                                                                            \
    }                                                                                              \
    return (right[0] ? FACT_FMA : 0u) | (right[1] ? FACT_DIVIDE : 0u) |                            \
           (right[2] ? FACT_SQRT : 0u) | (kept ? FACT_DENORMALS : 0u);                             \
  }

JUDGE(float, uint32_t, 23, 127, FLT_MIN, fmaf, sqrtf)
JUDGE(double, uint64_t, 52, 1023, DBL_MIN, fma, sqrt)

// trial is the run of one of the kernels.
struct trial {
  const uint32_t *code;
  uint64_t code_bytes;
  struct block *from, *to;
};

static int32_t run_trial(cs_device *d, cs_stream *s, VkPipeline pipeline, const struct trial *t, cs_error *err) {
  struct recorder *r = NULL;
  uint32_t words[5];
  put_u64(words, t->from->address);
  put_u64(words + 2, t->to->address);
  words[4] = FACT_ITEMS;
  int32_t status = recorder_of(s, &r, err);
  if (status != CS_OK)
    return status;
  bind(d, r, pipeline, words, 5);
  dispatch(d, r->commands, (const uint64_t[3]){FACT_ITEMS / TOOL_GROUP, 1, 1});
  return queued(s, err);
}

static int32_t try_out(cs_device *d, const struct trial *t, cs_error *err) {
  VkShaderModule code = 0;
  VkPipeline pipeline = 0;
  cs_stream *s = NULL;
  cs_error ignored;
  const uint32_t constants[5] = {TOOL_GROUP, 1, 1, 1, 0};
  int32_t status = make_code(d, (const unsigned char *)t->code, t->code_bytes, &code, err);
  if (status == CS_OK)
    status = make_pipeline(d, code, "main", constants, &pipeline, err);
  if (status == CS_OK)
    status = vulkan_stream_new(d, 0, &s, err);
  if (status == CS_OK) {
    ON(s, status, err, run_trial(d, s, pipeline, t, err));
    int32_t closed = vulkan_stream_close(s, status == CS_OK ? err : &ignored);
    status = status == CS_OK ? closed : status;
  }
  d->vk.DestroyPipeline(d->handle, pipeline, NULL);
  d->vk.DestroyShaderModule(d->handle, code, NULL);
  return status;
}

static int32_t ask_facts(cs_device *d, uint32_t *facts, cs_error *err) {
  struct trial t = {.code = facts_float_words, .code_bytes = sizeof facts_float_words};
  uint64_t bytes = (uint64_t)FACT_ITEMS * 4 * sizeof(double);
  int32_t status = make_whole(d, CS_PINNED, bytes, 0, &t.from, err);
  if (status == CS_OK)
    status = make_whole(d, CS_PINNED, bytes, 0, &t.to, err);
  if (status == CS_OK) {
    inputs_float((float *)t.from->host);
    status = try_out(d, &t, err);
  }
  if (status == CS_OK)
    *facts = judge_float((const float *)t.from->host, (const float *)t.to->host);
  if (status == CS_OK && d->t.fp64) {
    t.code = facts_double_words;
    t.code_bytes = sizeof facts_double_words;
    inputs_double((double *)t.from->host);
    status = try_out(d, &t, err);
    if (status == CS_OK) {
      uint32_t found = judge_double((const double *)t.from->host, (const double *)t.to->host);
      *facts |= ((found & FACT_FMA) != 0 ? FACT_FMA_DOUBLE : 0u) |
                ((found & FACT_DIVIDE) != 0 ? FACT_DIVIDE_DOUBLE : 0u) |
                ((found & FACT_SQRT) != 0 ? FACT_SQRT_DOUBLE : 0u);
    }
  }
  if (t.from != NULL)
    end_whole(d, &t.from->dead);
  if (t.to != NULL)
    end_whole(d, &t.to->dead);
  return status;
}

// known_facts returns what this process or an earlier one knows of the device, with FACTS_KNOWN, or 0. The caller holds
// the lock of tools.
static uint32_t known_facts(cs_device *d) {
  if (d->facts != 0)
    return d->facts;
  pthread_mutex_lock(&d->lib->lock);
  d->facts = d->lib->facts[d->ordinal];
  pthread_mutex_unlock(&d->lib->lock);
  return d->facts;
}

static void know_facts(cs_device *d, uint32_t facts) {
  d->facts = facts | FACTS_KNOWN;
  pthread_mutex_lock(&d->lib->lock);
  d->lib->facts[d->ordinal] = d->facts; // a driver cannot change before the process ends
  pthread_mutex_unlock(&d->lib->lock);
}

static int32_t learn_facts(cs_device *d, uint32_t *facts, cs_error *err) {
  int32_t status = CS_OK;
  uint32_t found = 0;
  pthread_mutex_lock(&d->tools);
  if (known_facts(d) == 0) {
    status = ask_facts(d, &found, err);
    if (status == CS_OK)
      know_facts(d, found);
  }
  *facts = d->facts & ~(uint32_t)FACTS_KNOWN;
  pthread_mutex_unlock(&d->tools);
  return status;
}
