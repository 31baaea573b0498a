// out[i] = in[i] converted from type FROM to type TO, both definitions, with one rounding: to a
// floating type to nearest even, with overflow to infinity; to an integer type toward zero, with
// saturation, and a NaN becomes 0.
#include "elem.h"

// Every element is first converted to one of five wide types, exactly. int stays int: rusticl of
// Mesa 22.3 loses the sign of an int that is converted to long and then clamped.
#define wide_f32 f
#define wide_f16 f
#define wide_bf16 f
#define wide_f64 d
#define wide_i8 l
#define wide_i16 l
#define wide_i32 i
#define wide_i64 l
#define wide_u8 u
#define wide_u16 u
#define wide_u32 u
#define wide_u64 u

#define wide_type_f float
#define wide_type_d double
#define wide_type_i int
#define wide_type_l long
#define wide_type_u ulong

// Rounding twice, to float and then to 16 bits, can differ from rounding once: a
// number just above the middle of two 16-bit neighbours may become that middle.
// A float "rounded to odd" (truncated, with the last bit set if the truncation was inexact)
// keeps the information that the second rounding needs.
ulong odd_u(ulong x) {
  int drop = 40 - (int)clz(x | 1); // keeps 24 bits
  if (drop <= 0)
    return x;
  ulong lost = x & (((ulong)1 << drop) - 1);
  return (x >> drop | (ulong)(lost != 0)) << drop;
}

float odd_from_u(ulong x) { return (float)odd_u(x); }

float odd_from_i(int x) {
  uint size = x < 0 ? 0u - (uint)x : (uint)x;
  int drop = 8 - (int)clz(size | 1u);
  if (drop > 0)
    size = (size >> drop | (uint)((size & ((1u << drop) - 1u)) != 0)) << drop;
  return x < 0 ? -(float)size : (float)size;
}

float odd_from_l(long x) {
  return x < 0 ? -(float)odd_u((ulong)0 - (ulong)x) : (float)odd_u((ulong)x);
}

#ifdef cl_khr_fp64
float odd_from_d(double x) {
  float f = (float)x;
  if ((double)f == x || isnan(x) || isinf(f))
    return f;
  uint b = as_uint(f);
  if ((b & 1u) == 0)
    b += fabs((double)f) > fabs(x) ? 0xffffffffu : 1u; // to the neighbour, which is odd
  return as_float(b);
}
#endif

#define to_f32(p, i, x, K) ((p)[i] = (float)(x))
#define to_f64(p, i, x, K) ((p)[i] = (double)(x))
#define to_f16(p, i, x, K) vstore_half_rte(JOIN(odd_from_, K)(x), (i), (p))
#define to_bf16(p, i, x, K) ((p)[i] = bf16_from_float(JOIN(odd_from_, K)(x)))
#define to_i8(p, i, x, K) ((p)[i] = convert_char_sat(JOIN(number_, K)(x)))
#define to_i16(p, i, x, K) ((p)[i] = convert_short_sat(JOIN(number_, K)(x)))
#define to_i32(p, i, x, K) ((p)[i] = convert_int_sat(JOIN(number_, K)(x)))
#define to_i64(p, i, x, K) ((p)[i] = convert_long_sat(JOIN(number_, K)(x)))
#define to_u8(p, i, x, K) ((p)[i] = convert_uchar_sat(JOIN(number_, K)(x)))
#define to_u16(p, i, x, K) ((p)[i] = convert_ushort_sat(JOIN(number_, K)(x)))
#define to_u32(p, i, x, K) ((p)[i] = convert_uint_sat(JOIN(number_, K)(x)))
#define to_u64(p, i, x, K) ((p)[i] = convert_ulong_sat(JOIN(number_, K)(x)))
#define odd_from_f(x) (x)

// The result of a saturating conversion of a NaN differs between devices.
#define number_f(x) (isnan(x) ? 0.0f : (x))
#define number_d(x) (isnan(x) ? 0.0 : (x))
#define number_i(x) (x)
#define number_l(x) (x)
#define number_u(x) (x)

#define KIND JOIN(wide_, FROM)
#define WIDE JOIN(wide_type_, KIND)

kernel void cast(global const JOIN(type_, FROM) * in, global JOIN(type_, TO) * out, ulong n) {
  size_t i = get_global_id(0);
  if (i < n) {
    WIDE x = JOIN(load_, FROM)(in, i);
    JOIN(to_, TO)(out, i, x, KIND);
  }
}
