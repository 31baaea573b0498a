// vector.h: the built-in vector types of CUDA and HIP.

#define __SIM_VECTORS(T, N, A2, A4)                                                                \
  struct N##1 {                                                                                    \
    T x;                                                                                           \
  };                                                                                               \
  struct alignas(A2) N##2 {                                                                        \
    T x, y;                                                                                        \
  };                                                                                               \
  struct N##3 {                                                                                    \
    T x, y, z;                                                                                     \
  };                                                                                               \
  struct alignas(A4) N##4 {                                                                        \
    T x, y, z, w;                                                                                  \
  };                                                                                               \
  static inline N##1 make_##N##1(T x) { return N##1 {x}; }                                         \
  static inline N##2 make_##N##2(T x, T y) { return N##2 {x, y}; }                                 \
  static inline N##3 make_##N##3(T x, T y, T z) { return N##3 {x, y, z}; }                         \
  static inline N##4 make_##N##4(T x, T y, T z, T w) { return N##4 {x, y, z, w}; }
__SIM_VECTORS(signed char, char, 2, 4)
__SIM_VECTORS(unsigned char, uchar, 2, 4)
__SIM_VECTORS(short, short, 4, 8)
__SIM_VECTORS(unsigned short, ushort, 4, 8)
__SIM_VECTORS(int, int, 8, 16)
__SIM_VECTORS(unsigned int, uint, 8, 16)
__SIM_VECTORS(long, long, 16, 16)
__SIM_VECTORS(unsigned long, ulong, 16, 16)
__SIM_VECTORS(long long, longlong, 16, 16)
__SIM_VECTORS(unsigned long long, ulonglong, 16, 16)
__SIM_VECTORS(float, float, 8, 16)
__SIM_VECTORS(double, double, 16, 16)
#undef __SIM_VECTORS

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
};

#define threadIdx ((const uint3 &)__sim_me->thread)
#define blockIdx ((const uint3 &)__sim_me->block)
#define blockDim ((const dim3 &)__sim_me->block_dim)
#define gridDim ((const dim3 &)__sim_me->grid_dim)
#define warpSize __SIM_WARP

typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned long ulong;
typedef unsigned long size_t;
typedef long ptrdiff_t;
typedef unsigned long uintptr_t;
typedef long intptr_t;
typedef long clock_t;
#ifndef NULL
#define NULL __null
#endif
