// Calls with side effects in one expression: operands and arguments are evaluated from left to right.
// run: kernel=f global=4 args=out:i32:64
// want: 60094 1308012 -2070 154 756 23819 30404 9 66 217 1 298 792 -2 289306 159 60117 499083 -1882 83 345 27189 30404 9 66 1351 0 92 290 -2 289306 159 60140 2249998 -1699 12 699 5791 30404 9 66 458 1 400 989 -2 289306 159 60164 1440812 -1507 -58 296 7426 30404 9 66 1612 0 388 701 -2 289306 159
uint rnd(uint *s) { *s = *s * 1664525u + 1013904223u; return *s >> 24; }
float frnd(uint *s) { return rnd(s) / 256.0f; }
float4 rnd4(uint *s) { return (float4)(frnd(s), frnd(s), frnd(s), frnd(s)); }
int three(int a, int b, int c) { return a * 10000 + b * 100 + c; }
int bump(int *x) { return ++*x; }
int addto(int v, int *x) { *x += v; return *x; }
kernel void f(global int *out) {
  uint s = get_global_id(0) + 1; global int *o = out + 16 * get_global_id(0); int k = 0, x = 3, y;
  int2 a = (int2)(rnd(&s), rnd(&s)); o[k++] = a.x * 1000 + a.y;
  o[k++] = three(rnd(&s), rnd(&s), rnd(&s)); float4 v = rnd4(&s) - rnd4(&s) * 2.0f; o[k++] = (v.x + v.w) * 1000;
  o[k++] = rnd(&s) - rnd(&s); o[k++] = rnd(&s) * 3 + rnd(&s) % 7; o[k++] = max(rnd(&s), 100u) + mad24(rnd(&s), rnd(&s), rnd(&s));
  o[k++] = three(x, bump(&x), x); o[k++] = x + bump(&x); o[k++] = bump(&x) * 10 + x; o[k++] = (rnd(&s) << 3) ^ (rnd(&s) >> (rnd(&s) & 3));
  o[k++] = rnd(&s) < rnd(&s); o[k++] = (rnd(&s) << (rnd(&s) & 3)); float2 m = mix((float2)(frnd(&s), 1), (float2)(frnd(&s)), frnd(&s)); o[k++] = m.x * 1000 + m.y * 100;
  o[k++] = addto(bump(&x), &x) - addto(2, &x); int2 w = (int2)(bump(&x), x) * (int2)(x, bump(&x)); o[k++] = w.x * 1000 + w.y; y = (x = 5, bump(&x)) + bump(&x) * 10; x += bump(&x); int q[4] = {1,2,3,4}; int *qp = q; int qq = *qp++ - *qp++ * 3; qq += qp[0] * bump(&qp[0]); y += qq * 7 + x; o[k] = y + select(bump(&x), bump(&x), bump(&x) & 1);
}
