// metal.h: the definitions for the Metal Shading Language (C++14), for Metal 2.2 and newer, that the shared part
// of the prelude needs. Metal has no double, its vectors have at most 4 lanes, comparisons of them
// return bool, and shifts by more than the width are undefined. So vectors are classes of the
// prelude here, too, of any width, with one overload for each address space in which an object can
// be changed. Functions of Metal are written with metal::.

#include <metal_stdlib>

// No contraction of products and sums to fma and no fast math, so that all devices round alike.
// These pragmas override the compiler's options; to compile with fast math, define CC_FAST_MATH.
#ifdef CC_FAST_MATH
#elif __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
#else
#pragma STDC FP_CONTRACT OFF
#endif
#pragma clang diagnostic ignored "-Wunused-function"
#pragma clang diagnostic ignored "-Wunused-value"
#pragma clang diagnostic ignored "-Wunused-variable"
#pragma clang diagnostic ignored "-Wparentheses"

#define CC_FN inline
// Nothing is in an anonymous namespace: a kernel with a parameter of such a type would not be exported.
#define CC_BEGIN
#define CC_END
#define CC_PRIVATE thread
#define CC_SPACES(f) f(thread) f(device) f(threadgroup)
#define CC_READ_SPACES(f) CC_SPACES(f) f(constant)
#define CC_ATOMIC_SPACES(f) f(device) f(threadgroup)
#define CC_READ(x) cc_get(x)
#define CC_WRITE(x, value) cc_put(x, value)
#define CC_FOR_DOUBLE(...)
#define CC_FOR_HALF(...) __VA_ARGS__
typedef char cc_char;
typedef half cc_half;
static_assert(sizeof(cc_half) == 2, "concord needs Metal's types");

#define CC_INFINITY INFINITY
#define CC_NAN NAN
#define CC_INFINITY_INIT INFINITY
#define CC_NAN_INIT NAN
