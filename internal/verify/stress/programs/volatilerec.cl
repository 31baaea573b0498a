// Volatile vectors and structs: read, written, copied, passed, compound assignments.
// run: kernel=f global=4 local=4 args=out:i32:16
// want: 150 62 87 136 150 62 87 135 150 62 87 134 150 62 87 133
typedef struct { int a; int2 b; volatile int4 w; char c[5]; } S;
S inc(S s) { s.a++; s.w += 1; return s; }
int sum(volatile S *s) { S t = *s; return t.a + s->b.y + t.w.w; }
kernel void f(volatile global int *o) {
  volatile local int t[4]; volatile int4 v = (int4)(1, 2, 3, 4); volatile S s = {1, (int2)(2, 3), (int4)(4, 5, 6, 7)};
  volatile global int4 *w = (volatile global int4 *)o; int l = get_local_id(0);
  t[l] = l; barrier(CLK_LOCAL_MEM_FENCE);
  int4 c = v; v = c + v; v.x = 9; v.zw = v.xy; v *= 2; v += v; v <<= 1; v++; --v; v -= (int4)(1);
  S d = s; s = inc(s); s.b.x += 5; s.b = s.b.yx; S e; e = s;
  w[l] = v + (int4)(s.a, s.b, t[3 - l]);
  volatile S va[2]; va[0] = d; va[1] = va[0]; va[1].b.hi = 70; o[4 * l] += va[1].b.y + e.w.z;
  o[4 * l + 1] += sum(&s) + sum(va); volatile float2 f = (float2)(1.5f, 2); o[4 * l + 2] += (f.x > 1 ? f : f * 2).x * 2 + (int)dot(f, f);
  int4 sel = v > c ? v : c; o[4 * l + 3] += sel.x + any(v == c) + v[1];
}

