// The element types of the catalog, chosen by -D T=f32 (f64, f16, bf16, i8, i16,
// i32, i64, u8, u16, u32, u64). Every family includes this file.
//
//   TYPE    the type of a buffer's elements; half and bfloat16 are only stored in it
//   ARITH   the type for arithmetic; unsigned for the integers, so that they wrap
//   SCALAR  the type of scalar arguments
//   RAW     an unsigned integer of TYPE's size, to move values without converting them
//   LOAD    p[i] as an ARITH
//   STORE   p[i] = x, rounded to nearest even
//   LIT     a floating literal of ARITH: LIT(0.5)
//   FLOATING  for use in #if: whether T is a floating type
//   IS_NAN  whether x, an ARITH or SCALAR, is NaN; no integer is
#ifndef CONCORD_ELEM_H
#define CONCORD_ELEM_H

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#define type_f32 float
#define type_f64 double
#define type_f16 half
#define type_bf16 ushort
#define type_i8 char
#define type_i16 short
#define type_i32 int
#define type_i64 long
#define type_u8 uchar
#define type_u16 ushort
#define type_u32 uint
#define type_u64 ulong

#define arith_f32 float
#define arith_f64 double
#define arith_f16 float
#define arith_bf16 float
#define arith_i8 uint
#define arith_i16 uint
#define arith_i32 uint
#define arith_i64 ulong
#define arith_u8 uint
#define arith_u16 uint
#define arith_u32 uint
#define arith_u64 ulong

#define scalar_f32 float
#define scalar_f64 double
#define scalar_f16 float
#define scalar_bf16 float
#define scalar_i8 int
#define scalar_i16 int
#define scalar_i32 int
#define scalar_i64 long
#define scalar_u8 uint
#define scalar_u16 uint
#define scalar_u32 uint
#define scalar_u64 ulong

#define raw_f32 uint
#define raw_f64 ulong
#define raw_f16 ushort
#define raw_bf16 ushort
#define raw_i8 uchar
#define raw_i16 ushort
#define raw_i32 uint
#define raw_i64 ulong
#define raw_u8 uchar
#define raw_u16 ushort
#define raw_u32 uint
#define raw_u64 ulong

#define load_f32(p, i) ((p)[i])
#define load_f64(p, i) ((p)[i])
#define load_f16(p, i) vload_half((i), (p))
#define load_bf16(p, i) bf16_to_float((p)[i])
#define load_i8(p, i) ((p)[i])
#define load_i16(p, i) ((p)[i])
#define load_i32(p, i) ((p)[i])
#define load_i64(p, i) ((p)[i])
#define load_u8(p, i) ((p)[i])
#define load_u16(p, i) ((p)[i])
#define load_u32(p, i) ((p)[i])
#define load_u64(p, i) ((p)[i])

#define store_f32(p, i, x) ((p)[i] = (x))
#define store_f64(p, i, x) ((p)[i] = (x))
#define store_f16(p, i, x) vstore_half_rte((x), (i), (p))
#define store_bf16(p, i, x) ((p)[i] = bf16_from_float(x))
#define store_i8(p, i, x) ((p)[i] = (char)(x))
#define store_i16(p, i, x) ((p)[i] = (short)(x))
#define store_i32(p, i, x) ((p)[i] = (int)(x))
#define store_i64(p, i, x) ((p)[i] = (long)(x))
#define store_u8(p, i, x) ((p)[i] = (uchar)(x))
#define store_u16(p, i, x) ((p)[i] = (ushort)(x))
#define store_u32(p, i, x) ((p)[i] = (uint)(x))
#define store_u64(p, i, x) ((p)[i] = (ulong)(x))

// 16 consecutive elements of a floating type, or of integers of 32 or 64 bits, as a vector of ARITH.
#define load16_f32(p, i) vload16(0, (p) + (i))
#define load16_f64(p, i) vload16(0, (p) + (i))
#define load16_f16(p, i) vload_half16(0, (p) + (i))
#define load16_bf16(p, i) as_float16(convert_uint16(vload16(0, (p) + (i))) << 16)

#define load16_i32(p, i) as_uint16(vload16(0, (p) + (i)))
#define load16_i64(p, i) as_ulong16(vload16(0, (p) + (i)))

#define lit_f32(x) x##f
#define lit_f64(x) x
#define lit_f16(x) x##f
#define lit_bf16(x) x##f

#define is_float_f32 1
#define is_float_f64 1
#define is_float_f16 1
#define is_float_bf16 1
#define is_f64_f64 1
#define is_f32_f32 1

#define TYPE JOIN(type_, T)
#define ARITH JOIN(arith_, T)
#define SCALAR JOIN(scalar_, T)
#define RAW JOIN(raw_, T)
#define LOAD(p, i) JOIN(load_, T)(p, i)
#define STORE(p, i, x) JOIN(store_, T)(p, i, x)
#define LIT(x) JOIN(lit_, T)(x)
#define FLOATING JOIN(is_float_, T)

#if FLOATING
#define IS_NAN(x) ((x) != (x))
#else
#define IS_NAN(x) false
#endif

// a·b + c, fused on devices where that is fast. The two results differ in the last place, which
// all tolerances of the catalog allow.
#ifdef FP_FAST_FMAF
#define MAD(a, b, c) fma((a), (b), (c))
#else
#define MAD(a, b, c) ((a) * (b) + (c))
#endif

// A bfloat16 is the upper half of a float.
float bf16_to_float(ushort h) { return as_float((uint)h << 16); }

// Rounds to nearest, ties to even; a NaN stays a NaN.
ushort bf16_from_float(float x) {
  uint b = as_uint(x);
  if ((b & 0x7fffffffu) > 0x7f800000u)
    return (ushort)(b >> 16 | 0x40u);
  return (ushort)((b + 0x7fffu + (b >> 16 & 1u)) >> 16);
}

#endif
