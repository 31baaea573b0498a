#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma unroll
for
#pragma unroll 4
for
_Pragma("unroll 8") for
#define UNROLL _Pragma("unroll") for
UNROLL (;;) UNROLL
#define DO(x) _Pragma(#x) for
DO(unroll 2) DO(GCC foo "bar")
#define id(x) x
id(a
#pragma foo
b)
#pragma
# pragma  spaced   out  +1
