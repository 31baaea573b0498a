// Ternaries of mixed types, pointers, structs, vectors; comma and assignment as values.
// run: kernel=cm global=4 args=out:f32:32
// want: 1 2.5 -10 4 3 1 16.5 677 1 2.5 400 4 1 3 24.5 673 1 2 -10 2 1 5 25.5 653 1 3 400 4 1 7 26.5 650
typedef struct { int a, b; } S;
kernel void cm(global float *out) {
  int i = get_global_id(0); global float *o = out + i * 8; uint u = 3; float f = 2.5f; long l = -1; uchar c = 200; char s = -5;
  o[0] = (i ? -1 : u) > 0; o[1] = i > 1 ? i : f; o[2] = (i & 1 ? c : s) * 2; S x = {1, 2}, y = {3, 4}; o[3] = (i == 2 ? x : y).b; const S *p = i ? &x : &y; o[4] = p->a;
  float a, b; a = b = i + 0.5f; o[5] = a + b; int n; o[6] = (n = 7.9f) + (a += 2) + (i > 0 ? (n *= 2, n) : n); float4 v = i > 2 ? (float4)(1) : (float4)(1, 2, 3, 4); int2 m = (int2)(i, 2) > 1 ? (int2)(5, 6) : (int2)(7); o[7] = v.w + m.x * 10 + m.y * 100 + (i && f ? l : u);
}
