// Unsigned keys in the order of the numbers: both zeros are equal, and NaN comes after all numbers. Those of floating
// types are made from the bits, because a device may flush denormals to 0 in floating-point operations.
#ifndef CONCORD_ORDER_H
#define CONCORD_ORDER_H

#include "elem.h"

#define key_f32 uint
#define key_f16 uint
#define key_bf16 uint
#define key_f64 ulong
#define key_i8 uint
#define key_i16 uint
#define key_i32 uint
#define key_i64 ulong
#define key_u8 uint
#define key_u16 uint
#define key_u32 uint
#define key_u64 ulong
#define KEY JOIN(key_, T)

#define is_signed_i8 1
#define is_signed_i16 1
#define is_signed_i32 1
#define is_signed_i64 1

uint key_of_float(float x) {
  uint u = as_uint(x);
  if (u << 1 > 0xffu << 24) // NaN
    return ~0u;
  if (u << 1 == 0)
    u = 0;
  return u >> 31 ? ~u : u | 1u << 31;
}

#if JOIN(is_f64_, T)
ulong key_of(double x) {
  ulong u = as_ulong(x);
  if (u << 1 > (ulong)0x7ff << 53) // NaN
    return ~(ulong)0;
  if (u << 1 == 0)
    u = 0;
  return u >> 63 ? ~u : u | (ulong)1 << 63;
}
#elif FLOATING
#define key_of key_of_float
#elif JOIN(is_signed_, T)
KEY key_of(SCALAR x) { return (KEY)x ^ (KEY)1 << (8 * sizeof(KEY) - 1); }
#else
KEY key_of(SCALAR x) { return x; }
#endif

#endif
