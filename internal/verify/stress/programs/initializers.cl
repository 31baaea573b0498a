// Initializers: designators, elided braces, nested, partial, vectors from braces, unions.
// run: kernel=ini global=1 args=out:f32:64
// want: 1 2 0 0 0 0 5 0 7 8 4 6 8 3 4 0 3 2 3 0 9 3 1 1 23 11 1023 40 -31072 2 1023 4.5 78 8 3 8742 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
typedef struct { int x, y; } P;
typedef struct { P p[2]; float4 v; union { float f; uint u; } w; float t[3]; } Q;
typedef union { float f[2]; struct { uint lo, hi; } s; ulong l; } W;
kernel void ini(global float *o) {
  int k = 0;
  int a[5] = {1, 2}; for (int i = 0; i < 5; i++) o[k++] = a[i];
  int b[] = {[3] = 7, 8, [1] = 5}; for (int i = 0; i < 5; i++) o[k++] = b[i];
  float4 v = {1, 2, 3, 4}; o[k++] = v.w;
  float4 av[2] = {{1, 2, 3, 4}, {5, 6, (float2)(7, 8)}}; o[k++] = av[1].y; o[k++] = av[1].w; o[k++] = av[0].z;
  float4 ev[2] = {(float4)(1), (float4)(2, 3, 4, 5)}; o[k++] = ev[1].z;
  P p = {.y = 3}; o[k++] = p.x; o[k++] = p.y;
  P q[2] = {1, 2, 3}; o[k++] = q[0].y; o[k++] = q[1].x; o[k++] = q[1].y;
  Q s = {.p = {{1, 2}, {.y = 9}}, .w.u = 0x40400000u, .t = {1}}; o[k++] = s.p[1].y; o[k++] = s.w.f; o[k++] = s.t[0] + s.t[2];
  W w = {.s = {0, 0x3f800000}}; o[k++] = w.f[1];
  W z = {.l = 0x4000000040400000UL}; o[k++] = z.f[0] + z.f[1] * 10;
  P r = p; r.x = 11; o[k++] = p.x + r.x;
  int m[2][2] = {{1}, {2, 3}}; o[k++] = m[0][0] * 1000 + m[0][1] * 100 + m[1][0] * 10 + m[1][1];
  int e[2][3] = {1, 2, 3, 4, 5}; o[k++] = e[1][0] * 10 + e[1][2];
  short h[3] = {100000, -1, 2.9f}; o[k++] = h[0]; o[k++] = h[2];
  uchar4 u = {255, 256, -1, 3}; o[k++] = u.x + u.y * 2 + u.z * 3 + u.w;
  float f = {4.5f}; o[k++] = f; int2 i2 = {7, 8}; o[k++] = i2.x * 10 + i2.y;
  const P cp[] = {{1, 2}, {3, 4}, {5, 6}}; o[k++] = sizeof(cp) / sizeof(cp[0]) + cp[2].x;
  struct { int n; P in; } anon = {1, 2, 3}; o[k++] = anon.in.y;
  float4 sp[3] = {1, 2, {3, 4, 5, 6}}; struct { float4 v; int k; } sv = {7, 8}; o[k++] = sp[1].w + sp[2].y * 10 + sv.v.z * 100 + sv.k * 1000; uint4 zz[4] = {0}; o[k++] = zz[3].y;
  P zero = {0}; o[k++] = zero.x + zero.y;
}
