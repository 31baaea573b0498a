// fold.h: what a collective computes of the elements of several ranks.

#ifndef CONCORD_SIM_FOLD_H
#define CONCORD_SIM_FOLD_H

#include "blas.h"

#include <cmath>
#include <type_traits>
#include <vector>

namespace ccl {

enum Type { I8, U8, I32, U32, I64, U64, F16, F32, F64, BF16, TYPES };
enum Op { SUM, PRODUCT, MAX, MIN, OPS };
const size_t sizes[TYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

using Sources = std::vector<const char *>; // by rank

struct bfloat {
  uint16_t bits;
};
inline float read(bfloat b) {
  uint32_t u = static_cast<uint32_t>(b.bits) << 16;
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}
inline void write(bfloat *p, float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  p->bits = static_cast<uint16_t>(std::isnan(x) ? u >> 16 | 64 : (u + 0x7fff + (u >> 16 & 1)) >> 16);
}
using blas::read;
using blas::write;

template <typename S> S combine(int op, S a, S b) {
  switch (op) {
  case SUM:
    return static_cast<S>(a + b);
  case PRODUCT:
    return static_cast<S>(a * b);
  case MAX:
    return b > a || a != a ? b : a;
  }
  return b < a || a != a ? b : a;
}

// fold combines n elements of all parts, from one on. S is the type in which it computes: of integers the unsigned one
// where they wrap.
template <typename T, typename S>
void fold(const Sources &from, int op, size_t n, std::vector<char> *out) {
  T *to = reinterpret_cast<T *>(out->data());
  for (size_t i = 0; i < n; i++) {
    S sum = 0;
    bool first = true;
    for (const char *p : from) {
      T x;
      memcpy(&x, p + i * sizeof(T), sizeof x);
      S y = static_cast<S>(read(x));
      sum = first ? y : combine(op, sum, y);
      first = false;
    }
    if constexpr (std::is_integral<T>::value)
      to[i] = static_cast<T>(sum);
    else
      write(&to[i], sum);
  }
}

inline void fold_all(const Sources &from, int type, int op, size_t n, std::vector<char> *out) {
  bool wraps = op == SUM || op == PRODUCT;
  switch (type) {
  case I8:
    return fold<int8_t, int>(from, op, n, out);
  case U8:
    return fold<uint8_t, unsigned>(from, op, n, out);
  case I32:
    return wraps ? fold<int32_t, uint32_t>(from, op, n, out) : fold<int32_t, int32_t>(from, op, n, out);
  case U32:
    return fold<uint32_t, uint32_t>(from, op, n, out);
  case I64:
    return wraps ? fold<int64_t, uint64_t>(from, op, n, out) : fold<int64_t, int64_t>(from, op, n, out);
  case U64:
    return fold<uint64_t, uint64_t>(from, op, n, out);
  case F16:
    return fold<blas::half, float>(from, op, n, out);
  case F32:
    return fold<float, float>(from, op, n, out);
  case F64:
    return fold<double, double>(from, op, n, out);
  }
  fold<bfloat, float>(from, op, n, out);
}

} // namespace ccl

#endif
