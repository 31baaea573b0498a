// blas.h: matrix products for the simulated cuBLAS and rocBLAS, which are separate libraries, as
// the vendors' are. Products run on the host, in stream order, by the driver's call that queues a
// host function.

#ifndef CONCORD_SIM_BLAS_H
#define CONCORD_SIM_BLAS_H

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <string>

namespace blas {

// sibling finds a function in the library of that name in the directory of this one.
inline void *sibling(const char *library, const char *symbol) {
  Dl_info where;
  static int here;
  if (dladdr(&here, &where) == 0)
    return nullptr;
  std::string path = where.dli_fname;
  path = path.substr(0, path.rfind('/') + 1) + library;
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  return handle != nullptr ? dlsym(handle, symbol) : nullptr;
}

struct half {
  uint16_t bits;
};

inline float widen(half h) {
  uint32_t sign = static_cast<uint32_t>(h.bits & 0x8000u) << 16, e = h.bits >> 10 & 31,
           f = h.bits & 1023;
  if (e == 0) {
    float x = static_cast<float>(f) * 0x1p-24f;
    return sign != 0 ? -x : x;
  }
  uint32_t u = sign | (e == 31 ? 0x7f800000u : (e + 112) << 23) | f << 13;
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}

// narrow rounds to nearest, ties to even.
inline half narrow(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  uint32_t sign = u >> 16 & 0x8000u;
  u &= 0x7fffffffu;
  if (u > 0x7f800000u)
    return {static_cast<uint16_t>(sign | 0x7e00u)};
  if (u >= 0x477ff000u) // rounds beyond 65504
    return {static_cast<uint16_t>(sign | 0x7c00u)};
  if (u < 0x38800000u) { // below the normal numbers: let float do the rounding
    float m;
    memcpy(&m, &u, sizeof m);
    m += 0.5f;
    memcpy(&u, &m, sizeof u);
    return {static_cast<uint16_t>(sign | (u - 0x3f000000u))};
  }
  u += 0xfffu + (u >> 13 & 1);
  return {static_cast<uint16_t>(sign | ((u - 0x38000000u) >> 13))};
}

inline float read(half h) { return widen(h); }
template <typename T> T read(T x) { return x; }
inline void write(half *p, float x) { *p = narrow(x); }
template <typename T> void write(T *p, T x) { *p = x; }

// Product is C = alpha op(A) op(B) + beta C for column-major matrices: element (i, j) of X is X[i +
// j ld]. S is the type of sums.
template <typename T, typename S> struct Product {
  bool ta, tb;
  long m, n, k;
  S alpha, beta;
  const T *a, *b;
  T *c;
  long lda, ldb, ldc;

  void run() const {
    for (long j = 0; j < n; j++)
      for (long i = 0; i < m; i++) {
        S sum = 0;
        for (long p = 0; p < k; p++)
          sum += read(ta ? a[p + i * lda] : a[i + p * lda]) *
                 read(tb ? b[j + p * ldb] : b[p + j * ldb]);
        S x = alpha * sum;
        if (beta != 0)
          x += beta * read(c[i + j * ldc]);
        write(&c[i + j * ldc], x);
      }
  }

  // legal checks the sizes: the leading dimensions are not too small.
  bool legal() const {
    long ra = ta ? k : m, rb = tb ? n : k;
    return m >= 0 && n >= 0 && k >= 0 && lda >= (ra > 1 ? ra : 1) && ldb >= (rb > 1 ? rb : 1) &&
           ldc >= (m > 1 ? m : 1);
  }
};

// Queue is the driver's function that queues one of the host's: cuLaunchHostFunc.
using Queue = int (*)(void *stream, void (*fn)(void *), void *user);

// put queues a product. A recorded product can run many times, so it is never released.
template <typename P> int put(Queue queue, void *stream, const P &product) {
  P *kept = new P(product);
  int code = queue(
      stream, [](void *p) { static_cast<const P *>(p)->run(); }, kept);
  if (code != 0)
    delete kept;
  return code;
}

} // namespace blas

#endif
