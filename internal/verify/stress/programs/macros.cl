// Macros that hold types, address spaces, declarations, control flow.
// run: kernel=mc_float global=4 local=2 args=buf:f32:4:iota,out:f32:4
// want: -3 6 -15 30
// run: kernel=mc_int global=4 local=2 args=buf:i32:4:iota,out:i32:4
// want: -3 6 -15 30
#define GLOBAL_PTR(T) __global T * restrict
#define CAT(a, b) a##b
#define XCAT(a, b) CAT(a, b)
#define KERNEL(T) __kernel void XCAT(mc_, T)(GLOBAL_PTR(const T) x, GLOBAL_PTR(T) y) { \
  __local T tile[BLOCK]; const int i = get_global_id(0); FOR(k, BLOCK) { tile[k] = x[i]; } \
  T acc = 0; FOR(k, 3) acc += SQ(x[i]) + k; if (i MOD 2 == 0) acc = -acc; y[i] = acc; }
#define FOR(v, n) for (int v = 0; v < (n); ++v)
#define SQ(x) ((x) * (x))
#define MOD %
#define BLOCK 4
#if defined(cl_khr_fp64) && __OPENCL_VERSION__ >= 120
KERNEL(float)
#endif
KERNEL(int)
