// Local variables in nested blocks with equal names, local structs, local scalars, two kernels whose arrays must not alias.
// run: kernel=a1 global=4 local=4 args=out:i32:8
// want: 953 952 951 950 5 6 7 8
// run: kernel=a2 global=4 local=2 args=out:i32:8
// want: 302 287 301 287 304 287 303 287
typedef struct { int n; float f[2]; } item;
kernel void a1(global int *o) {
  local int t[4]; local item it; local int n; int l = get_local_id(0);
  t[l] = l; if (l == 1) { it.n = 5; it.f[1] = 2.5f; n = 9; }
  barrier(CLK_LOCAL_MEM_FENCE);
  o[l] = t[3 - l] + it.n * 10 + n * 100; o[l + 4] = it.f[1] * 2 + *(&t[0] + l);
}
kernel void a2(global int *o) {
  local float t[2][2][2]; local uchar bytes[3]; local double d; local float3 v; int l = get_local_id(0);
  t[1][l][1] = get_global_id(0); if (!l) { d = 0.5; v = (float3)(1, 2, 3); bytes[2] = 255; }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  local float (*p)[2] = t[1]; o[get_global_id(0) * 2] = p[1 - l][1] + d * 2 + v.z * 100; o[get_global_id(0) * 2 + 1] = bytes[2] + sizeof(t);
}
