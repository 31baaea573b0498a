// Stencil, sparse product, n-body with float4, complex FFT step with float2, Mandelbrot, LU step.
// run: kernel=stencil global=6,6 args=buf:f32:36:iota,out:f32:36,i32:6
// want: 0 1 2 3 4 5 6 10.5 12 13.5 15 11 12 19.5 21 22.5 24 17 18 28.5 30 31.5 33 23 24 37.5 39 40.5 42 29 30 31 32 33 34 35
// run: kernel=spmv global=4 args=buf:f32:7:iota,buf:i32:7:0,2,1,3,0,2,3,buf:i32:5:0,2,4,5,7,buf:f32:4:iota,out:f32:4
// want: 2 11 0 28
// run: kernel=nbody global=4 args=buf:f32:16:rand,out:f32:16
// want: 0.936516404 0.399846196 -0.193013921 0.634904027 -0.57231015 0.317685187 -0.0751664937 0.548348844 0.0264781639 -0.791164994 0.58271718 0.743801177 -0.652771652 0.348479778 -0.585849166 0.460294127
// run: kernel=fft2 global=4 args=buf:f32:16:iota,out:f32:16
// want: 8 10 -8 -8 12.5 3.5 -8.5 2.5 17 -7 -9 17 6.5 -7.5 5.5 21.5
// run: kernel=mandel global=8,4 args=out:i32:32
// want: 0 1 2 2 3 12 3 1 0 2 3 4 40 40 40 2 0 40 40 40 40 40 40 3 0 2 3 4 40 40 40 2
#define IDX(x, y) ((y) * n + (x))
kernel void stencil(global const float *restrict a, global float *restrict b, int n) {
  int x = get_global_id(0), y = get_global_id(1);
  if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) { b[IDX(x, y)] = a[IDX(x, y)]; return; }
  float s = 0; for (int dy = -1; dy <= 1; dy++) for (int dx = -1; dx <= 1; dx++) if (dx || dy) s += a[IDX(x + dx, y + dy)];
  b[IDX(x, y)] = 0.125f * s + 0.5 * a[IDX(x, y)];
}
kernel void spmv(global const float *v, global const int *col, global const int *ptr, global const float *x, global float *y) {
  int r = get_global_id(0); float t = 0; for (int j = ptr[r]; j < ptr[r + 1]; j++) t = t + v[j] * x[col[j]]; y[r] = t;
}
kernel void nbody(global const float4 *p, global float4 *o) {
  int i = get_global_id(0), n = get_global_size(0); float4 me = p[i]; float3 acc = 0;
  for (int j = 0; j < n; j++) { float3 d = p[j].xyz - me.xyz; float r2 = d.x * d.x + d.y * d.y + d.z * d.z + 0.5f; acc += d * (p[j].w / r2); }
  o[i].xyz = acc; o[i].w = me.w;
}
float2 cmul(float2 a, float2 b) { return (float2)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
constant float2 tw[4] = {(float2)(1, 0), (float2)(0.5f, -0.5f), (float2)(0, -1), (float2)(-0.5f, -0.5f)};
kernel void fft2(global const float2 *in, global float2 *out) { int i = get_global_id(0); float2 u = in[i], v = cmul(in[i + 4], tw[i]); out[2 * i] = u + v; out[2 * i + 1] = u - v; }
kernel void mandel(global int *o) {
  float2 c = (float2)(get_global_id(0) * 0.375f - 2, get_global_id(1) * 0.5f - 1), z = c; int k = 0;
  while (k < 40 && z.x * z.x + z.y * z.y < 4) { z = (float2)(z.x * z.x - z.y * z.y, 2 * z.x * z.y) + c; k++; }
  o[get_global_id(1) * 8 + get_global_id(0)] = k;
}
