// The functions of floats for expr_tile.h: those that kernels of users compute with, which loops of vector instructions can do.
#include <stdbool.h>

typedef uint32_t cc_uint;
typedef int32_t cc_int;
typedef uint64_t cc_ulong;
#define CC_ALWAYS IN
#define CC_COPY __builtin_memcpy
#define CC_INFINITY __builtin_inff()
#define CC_NAN __builtin_nanf("")
#define CC_HUGE_VAL __builtin_inf()
#define cc_pi 3.14159265358979323846
#define CC_BOTH(name, P, ...)                                                                      \
  IN float cc_c_##name##f P(float) { return __builtin_##name##f(__VA_ARGS__); }                    \
  IN double cc_c_##name P(double) { return __builtin_##name(__VA_ARGS__); }
#define ONE(T) (T x)
#define TWO(T) (T x, T y)
#define THREE(T) (T x, T y, T z)
CC_BOTH(fabs, ONE, x)
CC_BOTH(rint, ONE, x)
CC_BOTH(sqrt, ONE, x)
CC_BOTH(copysign, TWO, x, y)
CC_BOTH(fma, THREE, x, y, z)
#undef CC_BOTH
#undef ONE
#undef TWO
#undef THREE
#define CC_OF(x, name) _Generic((x), float: cc_c_##name##f, default: cc_c_##name)
#define cc_m_fabs(x) CC_OF(x, fabs)(x)
#define cc_m_rint(x) CC_OF(x, rint)(x)
#define cc_m_sqrt(x) CC_OF(x, sqrt)(x)
#define cc_m_copysign(x, y) CC_OF((x) + (y), copysign)(x, y)
#define cc_m_mad(x, y, z) CC_OF((x) + (y) + (z), fma)(x, y, z)
#define cc_m_fma cc_m_mad

#include "../../source/host/host_float.h"

#undef CC_ALWAYS
#undef CC_COPY
#undef CC_INFINITY
#undef CC_NAN
#undef CC_HUGE_VAL
