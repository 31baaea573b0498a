// metal_types.h: for Metal, what cpp.h defines for the other targets: the operators of numbers, and objects in
// address spaces: copies and atomics.

CC_BEGIN

template <> struct cc_is<cc_half> { enum { fp = 1, sign = 1 }; };

// cc_as_bits is as_T between types of one size.
template <class R, class T> CC_FN R cc_as_bits(T x) {
  static_assert(sizeof(R) == sizeof(T), "as_type needs types of one size");
  union { T x; R r; } u;
  u.x = x;
  return u.r;
}

template <class T> CC_FN T cc_neg(T x) { return T(-x); }
template <class T> CC_FN T cc_sub(T x, T y) { return T(x - y); }
template <class T> CC_FN T cc_mul(T x, T y) { return T(x * y); }
template <class T> CC_FN T cc_div(T x, T y) { return T(x / y); }
template <class T> CC_FN T cc_rem(T x, T y) { return T(x % y); }

// cc_get and cc_put copy a vector or record out of and into an address space. CC_GET and CC_PUT are defined by
// compilers that cannot copy classes from one space to another. cc_unpack and cc_pack copy objects that may be
// unaligned.
#ifndef CC_GET
#define CC_GET(T, space, x) return x
#define CC_PUT(T, space, x, o) x = o
#endif
#define CC_SPACE(space) \
  template <class T> CC_FN T cc_get(const space T &x) { CC_GET(T, space, x); } \
  template <class T> CC_FN T cc_unpack(const space cc_uchar *p) { \
    T r; \
    for (cc_uint i = 0; i < sizeof(T); i++) \
      ((thread cc_uchar *)&r)[i] = p[i]; \
    return r; \
  }
CC_READ_SPACES(CC_SPACE)
#undef CC_SPACE
#define CC_SPACE(space) \
  template <class T> CC_FN T cc_put(space T &x, cc_id<T> o) { \
    CC_PUT(T, space, x, o); \
    return o; \
  } \
  template <class T> CC_FN T cc_pack(space cc_uchar *p, T x) { \
    for (cc_uint i = 0; i < sizeof(T); i++) \
      p[i] = ((thread cc_uchar *)&x)[i]; \
    return x; \
  }
CC_SPACES(CC_SPACE)
#undef CC_SPACE
// cc_clear sets all bytes of a variable to zero.
template <class T> CC_FN void cc_clear(thread T &x) {
  thread cc_uchar *p = (thread cc_uchar *)&x;
  for (cc_uint i = 0; i < sizeof(T); i++)
    p[i] = 0;
}

// A group's asynchronous copies: each item copies its share at once; waiting is a barrier. The stride
// is that of the global side.
struct cc_event { cc_uint none; };
template <class P> CC_FN void cc_prefetch(P, cc_size) {}
#define CC_COPIES(to, from, name, dstep, sstep) \
  template <class T> \
  CC_FN cc_event name(to T *dst, const from cc_id<T> *src, cc_size n, cc_size stride, cc_uint place, cc_uint items) { \
    (void)stride; \
    for (cc_size i = place; i < n; i += items) \
      cc_put(dst[i * dstep], cc_get(src[i * sstep])); \
    return {0}; \
  }
CC_COPIES(threadgroup, device, cc_copy_, 1, stride) CC_COPIES(threadgroup, constant, cc_copy_, 1, stride)
CC_COPIES(device, threadgroup, cc_copy_, stride, 1)
#undef CC_COPIES

// The hooks of atomics, which have 32 bits and are relaxed, as OpenCL 1.2's are. Each returns the old value.
template <class T> struct cc_atomic_;
template <> struct cc_atomic_<cc_int> { typedef metal::atomic_int type; };
template <> struct cc_atomic_<cc_uint> { typedef metal::atomic_uint type; };
template <class T> using cc_atomic = typename cc_atomic_<T>::type;
#define CC_ATOMIC(space, name, how) \
  template <class T> CC_FN T cc_a_##name(volatile space T *p, cc_id<T> v) { \
    return metal::atomic_##how##_explicit((volatile space cc_atomic<T> *)p, v, metal::memory_order_relaxed); \
  }
#define CC_SPACE(space) \
  CC_ATOMIC(space, add, fetch_add) CC_ATOMIC(space, min, fetch_min) CC_ATOMIC(space, max, fetch_max) \
  CC_ATOMIC(space, and, fetch_and) CC_ATOMIC(space, or, fetch_or) CC_ATOMIC(space, xor, fetch_xor) \
  CC_ATOMIC(space, xchg, exchange) \
  CC_FN float cc_a_xchg(volatile space float *p, float v) { \
    return as_type<float>(cc_a_xchg((volatile space cc_uint *)p, as_type<cc_uint>(v))); \
  } \
  /* Metal's exchange is weak: it may fail although the values are equal. */ \
  template <class T> CC_FN T cc_a_cas(volatile space T *p, cc_id<T> want, cc_id<T> v) { \
    T old = want; \
    while (!metal::atomic_compare_exchange_weak_explicit((volatile space cc_atomic<T> *)p, &old, v, \
                                                         metal::memory_order_relaxed, metal::memory_order_relaxed) && \
           old == want) \
      ; \
    return old; \
  }
CC_ATOMIC_SPACES(CC_SPACE)
#undef CC_SPACE
#undef CC_ATOMIC

CC_END
