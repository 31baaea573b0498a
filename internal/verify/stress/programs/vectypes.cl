// Vectors as elements, members, parameters, results; in unions; in local memory; through pointers.
// run: kernel=vt global=2 local=2 args=buf:f32:32:iota,out:f32:64,f32:1,2,3,4,i32:1,2,3,0
// want: 0 50 2 9 4 6 4 7 3 4 1 2 15 9 15.5 15.5 2 3 4 256 7 10 5 8 3 6 9 12 8 4 6 12 4 50 6 9 4 6 4 7 3 4 1 2 7 5 7.5 7.5 0 2 3 255 7 10 5 8 3 6 9 12 8 4 6 12
typedef union { float4 v; float f[4]; struct { float x, y, z, w; } n; } U;
typedef struct { float4 p; uchar4 c; int2 i[2]; } particle;
float4 step1(float4 a, const float2 *b, int3 c) { return a + (float4)(*b, c.x, c.z); }
void out2(float4 v, float2 *lo, private float2 *hi) { *lo = v.lo; *hi = v.hi; }
kernel void vt(global const float4 *x, global float4 *out, float4 k, int3 m) {
  int l = get_local_id(0); global float4 *o = out + l * 8; local float4 t[2]; local particle q[2]; U u; u.v = x[l]; u.f[1] = 50; u.n.w = 9; o[0] = u.v;
  float2 b = k.zw; o[1] = step1(k, &b, m); float2 h, w; out2(k, &h, &w); o[2] = (float4)(w, h); t[l] = x[l + 1].wzyx; q[l].p = x[l]; q[l].p.y = -1; q[l].c = (uchar4)(l, 2, 3, 255); q[l].i[1] = (int2)(7, l); q[l].p.zw += 0.5f;
  barrier(CLK_LOCAL_MEM_FENCE); o[3] = t[1 - l] + q[1 - l].p; o[4] = convert_float4(q[1 - l].c) + q[1 - l].i[1].y; local float4 *tp = t; o[5] = (float4)(tp->x, tp[1].y, (*tp).z, (tp + 1)->w);
  float4 arr[2][2] = {{k, k * 2}, {k * 3, k * 4}}; o[6] = arr[1][0]; arr[0][1].xw = arr[1][1].yz; o[7] = arr[0][1] * (m.x == 1 ? 1.0f : 2.0f);
}
