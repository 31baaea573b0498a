# 1 "gen.cl"
# 1 "<command-line>" 1
# 3 "gen.cl" 2
// how kernels use macros: types by switch, unrolled steps, macros handed to macros
#ifdef WANT_FLOAT
#define REAL float
#elif WANT_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64: enable
#define REAL double
#else
# define REAL int
#endif
#if defined(cl_amd_fp64) // one vendor
#pragma OPENCL EXTENSION cl_amd_fp64 : enable
#elif defined(cl_none_fp64)	/* another */
#pragma OPENCL EXTENSION cl_none_fp64 : enable
#endif
#ifndef ROOT_HALF
# define ROOT_HALF      0.7071067811865475f
#endif
#ifdef __cplusplus
extern "C" {
#endif
#define PAIR REAL##2
#define VEC_(t, n) t##n
#define VEC(t, n) VEC_(t, n)
#define unit_a   (VEC(REAL, 2))(  1, -1 )//needs a scale
#define unit_b   (VEC(REAL, 2))(  0, -1 )	/* no scale */
#define SWAP(p, q)                      \
{                                       \
    VEC(REAL, 2) keep = *p;             \
    *p = add(keep, *q); /* sum */       \
    *q = sub(keep, *q);                 \
}
#define SWAP4(p, q, r, s)               \
{                                       \
    SWAP( p, r ); SWAP( q, s );         \
    *s = mul(*s,unit_b);                \
}
#define ISWAP SWAP
#define STEP(w, n, a, b, c, fn) { a += fn(a,b,c) + w; a = ROTL(a, n); }
#define ROTL(x, c) (((x) << (c)) | ((x) >> (32 - (c))))
#define PICK(x,y,z) ((x & y) | ((~x) & z))
#define FLIP(x,y,z) (x ^ y ^ z)
#define STEPPER STEP
#define DOT(A,B) ((A.x)*(B.x)+(A.y)*(B.y))	// stable
#define PADDED(__n) (__n+(__n>>LOG)+(__n>>(2*LOG)))
#define LOG 4
#define GLOBAL_ID get_global_id(0)
#define KERNEL(name, op) \
__kernel void name##_##op(__global REAL *restrict out, __local REAL *tmp) \
{ const size_t i = GLOBAL_ID; out[i] = OP_##op(out[i], tmp[PADDED(i)]); }
#define OP_add(a, b) ((a) + (b))
#define OP_max(a, b) ((a) > (b) ? (a) : (b))
KERNEL(reduce, add)
KERNEL(reduce, max)
__kernel void f(__global VEC(REAL, 2) *v)
{
    SWAP4( &v[0], &v[1], &v[2], &v[3] ); ISWAP(&v[0],
      &v[1]);
    v[4] = scale(mul(v[5],unit_a) , ROOT_HALF );
    STEPPER(0, 7, a, b, c, PICK);  STEPPER(1u<<3, 12,
            c, a, b, FLIP) ; DOT(v[0],v[1]);
#if 0
    it's off
#else
    __local float pad[PADDED(1024)];
#endif
}
#ifdef __cplusplus
}
#endif
