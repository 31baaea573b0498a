// Elements of 16 bytes at a time, for kernels whose speed is that of memory. UNIT is the number of elements of T
// in 16 bytes, and UNPACK(w, x) converts those in the uint4 w to the array x: of int for i8, else of ARITH. ALIGNED(p) says
// whether p may be read as uint4. A group's items are ROWS times LANES: LANES items read 16 bytes each of one row.
#ifndef CONCORD_UNIT_H
#define CONCORD_UNIT_H

#include "group.h"

#if GROUP < 8
#define LANES GROUP
#else
#define LANES 8
#endif
#define ROWS (GROUP / LANES)

#define unit_f32 4
#define unit_f64 2
#define unit_f16 8
#define unit_bf16 8
#define unit_i8 16
#define UNIT JOIN(unit_, T)

#define unpack_f32(w, x) vstore4(as_float4(w), 0, x)
#define unpack_f64(w, x) vstore2(as_double2(w), 0, x)
#define unpack_f16(w, x) vstore8(vload_half8(0, (const half *)&(w)), 0, x)
#define unpack_bf16(w, x) vstore8(as_float8(convert_uint8(as_ushort8(w)) << 16), 0, x)
#define unpack_i8(w, x) vstore16(convert_int16(as_char16(w)), 0, x)
#define UNPACK(w, x) JOIN(unpack_, T)(w, x)

#define ALIGNED(p) (((ulong)(p)&15) == 0)
#define READ_UNIT(p) (*(global const uint4 *)(p))

#endif
