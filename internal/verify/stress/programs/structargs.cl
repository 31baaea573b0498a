// Structs as kernel arguments and buffer elements: padding, vectors inside, arrays, nested, unions.
// run: kernel=sa global=2 args=f32:1,2,3,0,4,0,0,0,i32:7,8,9,10,11,out:f32:32,buf:i32:24:iota
// want: 1 8 6 12097 58 32 20 48 17 1.07374182e+09 32 15 12 1 0 0 1 8 6 12097 59 32 20 48 0 0 0 15 12 1 0 0
typedef struct { float3 p; float w; } sphere;
typedef struct { int n; int v[2]; struct { short a, b, c, d; } in; } conf;
typedef struct { int id; float4 box __attribute__((aligned(16))); union { int i; float f; } u; } node;
float dist(sphere s, float3 x) { float3 d = s.p - x; return d.x * d.x + d.y * d.y + d.z * d.z - s.w; }
sphere grow(const sphere *s, float k) { sphere r = *s; r.w *= k; r.p.yz += k; return r; }
kernel void sa(sphere s, conf c, global float *out, global node *n) {
  int i = get_global_id(0); global float *o = out + i * 16;
  o[0] = dist(s, (float3)(1, 1, 1)); o[1] = grow(&s, 2).w; o[2] = grow(&s, 3).p.z; o[3] = c.n + c.v[1] * 10 + c.in.a * 100 + c.in.c * 1000;
  conf d = c; d.v[i] = 50; o[4] = c.v[i] + d.v[i]; o[5] = sizeof(sphere); o[6] = sizeof(conf); o[7] = sizeof(node);
  if (i == 0) { n[1].id = 77; n[1].box = (float4)(1, 2, 3, 4); n[1].box.zw = n[1].box.xy * 8; n[1].u.f = 2; global node *m = n + 1; m->box.x += m->box.w; o[8] = m->box.x; o[9] = m->u.i; o[10] = (global char *)&m->u - (global char *)m; }
  node t[2] = {{.u.i = 5}, {1, {1, 2, 3, 4}, {6}}}; o[11] = t[0].u.i + t[1].u.i + t[1].box.w; sphere a[2]; a[i] = s; a[1 - i] = grow(&a[i], 2); o[12] = a[0].w + a[1].w; o[13] = (i ? a[0] : a[1]).p.x;
}
