// device.h: synchronization, warp functions, atomics and bit operations that both vendors have.

static inline void __syncthreads(unsigned site = __builtin_LINE()) { __sim_barrier(site, 0); }
static inline int __syncthreads_count(int p, unsigned site = __builtin_LINE()) {
  return __sim_barrier(site, p != 0);
}
static inline int __syncthreads_or(int p, unsigned site = __builtin_LINE()) {
  return __sim_barrier(site, p != 0) != 0;
}
static inline int __syncthreads_and(int p, unsigned site = __builtin_LINE()) {
  return __sim_barrier(site, p == 0) == 0;
}
static inline void __threadfence() { __atomic_thread_fence(5); }
static inline void __threadfence_block() { __atomic_thread_fence(5); }
static inline void __threadfence_system() { __atomic_thread_fence(5); }
[[noreturn]] static inline void __trap() { __sim_stop(__SIM_PLAIN); }
static inline void __nanosleep(unsigned) {}
static inline void __brkpt() {}

// __sim_bits carries a value of up to 8 bytes through an exchange.
template <class T> static inline __sim_u64 __sim_bits(T v) {
  __sim_u64 b = 0;
  __builtin_memcpy(&b, &v, sizeof v);
  return b;
}
template <class T> static inline T __sim_shuffle(__sim_u64 mask, T v, unsigned from) {
  static_assert(sizeof(T) <= 8, "a shuffle exchanges at most 8 bytes");
  __sim_u64 b = __sim_exchange(__SIM_SHUFFLE, mask, __sim_bits(v), from);
  __builtin_memcpy(&v, &b, sizeof v);
  return v;
}
// The lane that each kind of shuffle reads; width splits a warp into parts.
static inline unsigned __sim_idx(int src, int width) {
  unsigned l = __sim_me->lane;
  return (l & ~(width - 1u)) | (src & (width - 1u));
}
static inline unsigned __sim_up(unsigned d, int width) {
  unsigned l = __sim_me->lane;
  return (l & (width - 1u)) < d ? l : l - d;
}
static inline unsigned __sim_down(unsigned d, int width) {
  unsigned l = __sim_me->lane;
  return (l & (width - 1u)) + d >= (unsigned)width ? l : l + d;
}
static inline unsigned __sim_xor(int m, int width) {
  unsigned l = __sim_me->lane, s = l ^ m;
  return s >= (l & ~(width - 1u)) + width ? l : s;
}

#define __SIM_ATOMIC(name, T, how)                                                                 \
  static inline T name(T *p, T v) { return how; }                                                  \
  static inline T name##_block(T *p, T v) { return name(p, v); }                                   \
  static inline T name##_system(T *p, T v) { return name(p, v); }
template <class T, class F> static inline T __sim_update(T *p, F f) {
  T old = *(volatile T *)p, next;
  do
    next = f(old);
  while (!__atomic_compare_exchange(p, &old, &next, false, 5, 5));
  return old;
}
#define __SIM_ATOMICS(T)                                                                           \
  __SIM_ATOMIC(atomicAdd, T, __atomic_fetch_add(p, v, 5))                                          \
  __SIM_ATOMIC(atomicExch, T, __atomic_exchange_n(p, v, 5))                                        \
  __SIM_ATOMIC(atomicAnd, T, __atomic_fetch_and(p, v, 5))                                          \
  __SIM_ATOMIC(atomicOr, T, __atomic_fetch_or(p, v, 5))                                            \
  __SIM_ATOMIC(atomicXor, T, __atomic_fetch_xor(p, v, 5))                                          \
  __SIM_ATOMIC(atomicMin, T, __sim_update(p, [=](T a) { return a < v ? a : v; }))                  \
  __SIM_ATOMIC(atomicMax, T, __sim_update(p, [=](T a) { return a > v ? a : v; }))                  \
  static inline T atomicCAS(T *p, T compare, T v) {                                                \
    __atomic_compare_exchange_n(p, &compare, v, false, 5, 5);                                      \
    return compare;                                                                                \
  }                                                                                                \
  static inline T atomicCAS_block(T *p, T c, T v) { return atomicCAS(p, c, v); }                   \
  static inline T atomicCAS_system(T *p, T c, T v) { return atomicCAS(p, c, v); }
__SIM_ATOMICS(int)
__SIM_ATOMICS(unsigned int)
__SIM_ATOMICS(unsigned long long)
__SIM_ATOMIC(atomicMin, long long, __sim_update(p, [=](long long a) { return a < v ? a : v; }))
__SIM_ATOMIC(atomicMax, long long, __sim_update(p, [=](long long a) { return a > v ? a : v; }))
__SIM_ATOMIC(atomicSub, int, __atomic_fetch_sub(p, v, 5))
__SIM_ATOMIC(atomicSub, unsigned int, __atomic_fetch_sub(p, v, 5))
__SIM_ATOMIC(atomicInc, unsigned int,
             __sim_update(p, [=](unsigned a) { return a >= v ? 0 : a + 1; }))
__SIM_ATOMIC(atomicDec, unsigned int,
             __sim_update(p, [=](unsigned a) { return a == 0 || a > v ? v : a - 1; }))
__SIM_ATOMIC(atomicAdd, float, __sim_update(p, [=](float a) { return a + v; }))
__SIM_ATOMIC(atomicAdd, double, __sim_update(p, [=](double a) { return a + v; }))
static inline float atomicExch(float *p, float v) {
  return __sim_update(p, [=](float) { return v; });
}
#undef __SIM_ATOMICS
#undef __SIM_ATOMIC

static inline int __clz(int v) { return v ? __builtin_clz((unsigned)v) : 32; }
static inline int __clzll(long long v) { return v ? __builtin_clzll((unsigned long long)v) : 64; }
static inline int __ffs(int v) { return __builtin_ffs(v); }
static inline int __ffsll(long long v) { return __builtin_ffsll(v); }
static inline int __popc(unsigned v) { return __builtin_popcount(v); }
static inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
static inline unsigned long long __brevll(unsigned long long v) {
  v = (v >> 1 & 0x5555555555555555) | (v & 0x5555555555555555) << 1;
  v = (v >> 2 & 0x3333333333333333) | (v & 0x3333333333333333) << 2;
  v = (v >> 4 & 0x0F0F0F0F0F0F0F0F) | (v & 0x0F0F0F0F0F0F0F0F) << 4;
  return __builtin_bswap64(v);
}
static inline unsigned __brev(unsigned v) { return (unsigned)(__brevll(v) >> 32); }
static inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
static inline unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)((unsigned long long)a * b >> 32);
}
static inline long long __mul64hi(long long a, long long b) {
  return (long long)((__int128)a * b >> 64);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline int __mul24(int a, int b) { return ((a << 8) >> 8) * ((b << 8) >> 8); }
static inline unsigned __umul24(unsigned a, unsigned b) {
  return (a & 0xffffffu) * (b & 0xffffffu);
}
static inline int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
static inline int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
static inline unsigned __uhadd(unsigned a, unsigned b) {
  return (unsigned)(((unsigned long long)a + b) >> 1);
}
static inline unsigned __urhadd(unsigned a, unsigned b) {
  return (unsigned)(((unsigned long long)a + b + 1) >> 1);
}
static inline unsigned __sad(int a, int b, unsigned c) {
  return (a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a) + c;
}
static inline unsigned __usad(unsigned a, unsigned b, unsigned c) {
  return (a > b ? a - b : b - a) + c;
}
static inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned s) {
  return (unsigned)(((unsigned long long)hi << 32 | lo) << (s & 31) >> 32);
}
static inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned s) {
  return (unsigned)(((unsigned long long)hi << 32 | lo) >> (s & 31));
}
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
  unsigned long long v = (unsigned long long)b << 32 | a;
  unsigned r = 0;
  for (int i = 0; i < 4; i++)
    r |= (unsigned)(v >> (s >> 4 * i & 7) * 8 & 255) << 8 * i;
  return r;
}
static inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; i++)
    c += (signed char)(a >> 8 * i) * (signed char)(b >> 8 * i);
  return c;
}
static inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; i++)
    c += (a >> 8 * i & 255) * (b >> 8 * i & 255);
  return c;
}
template <class T> static inline T __ldg(const T *p) { return *p; }
template <class T> static inline T __ldcg(const T *p) { return *p; }
template <class T> static inline T __ldca(const T *p) { return *p; }
template <class T> static inline T __ldcs(const T *p) { return *p; }
template <class T> static inline void __stcg(T *p, T v) { *p = v; }
template <class T> static inline void __stcs(T *p, T v) { *p = v; }

static inline long long clock64() { return (long long)__builtin_ia32_rdtsc(); }
static inline clock_t clock() { return (clock_t)clock64(); }

extern "C" {
long __sim_write(int, const void *, unsigned long) __asm__("write");
int __sim_vsnprintf(char *, unsigned long, const char *, __builtin_va_list) __asm__("vsnprintf");
void *__sim_malloc(unsigned long) __asm__("malloc");
void __sim_free(void *) __asm__("free");
}
__attribute__((format(printf, 1, 2))) static int printf(const char *format, ...) {
  char text[1024];
  __builtin_va_list ap;
  __builtin_va_start(ap, format);
  int n = __sim_vsnprintf(text, sizeof text, format, ap);
  __builtin_va_end(ap);
  if (n > 0)
    __sim_write(1, text, (unsigned)n < sizeof text ? (unsigned)n : sizeof text - 1);
  return n;
}
static inline void *malloc(size_t n) { return __sim_malloc(n); }
static inline void free(void *p) { __sim_free(p); }
static inline void *memcpy(void *a, const void *b, size_t n) { return __builtin_memcpy(a, b, n); }
static inline void *memset(void *a, int v, size_t n) { return __builtin_memset(a, v, n); }
static inline void *memmove(void *a, const void *b, size_t n) { return __builtin_memmove(a, b, n); }
[[noreturn]] static inline void __assertfail(const char *what, const char *file, unsigned line,
                                             const char *function, size_t) {
  printf("%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", file, line,
         function, blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, what);
  __sim_stop(__SIM_ASSERT);
}
