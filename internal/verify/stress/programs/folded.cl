// Constants that a compiler has to compute: unsigned comparisons of 64 bits, conversions that round once, lanes,
// unions, the bits of a NaN.
// run: kernel=folded global=1 args=out:i32:24,out:u32:8,i32:0
// want: 3 1 4 16 -1 -1 0 -1 8 16 -1 0 1065353216 2 40 9 8 1 5 -2 -128 6 3 2147483646
// want: 2143363909 1602224128 528482304 1602224128 1602224128 1509949441 4290847557 1602224127
typedef union { int i; float f; char c[8]; struct { short a; float2 v; } s; } either;
typedef union { float f; uint u; } bits;
typedef struct { int n; either e; } tagged;
constant int4 more = (int4)(1, 2, 3, 4) > (int4)(2);
constant char2 bytes = (uchar2)(200, 1) > (uchar2)(100, 2);
constant int2 less = (uint2)(1, 4000000000u) < (uint2)(2, 5), nots = !(int2)(0, 5);
constant uint2 moved = (uint2)(1, 2) << (uint2)(35, 3);
constant either one = {.f = 1.0f};
constant either list[3] = {{.i = 1}, {.s = {.a = 2, .v = (float2)(3, 4) * 10}}, {.c = {7, 8, 9}}};
constant tagged pair = {8, {.f = 1.0f}};
constant int picked = (ULONG_MAX > 0 ? 1 : 2), least = INT_MIN / -1 == INT_MIN ? 5 : 6;
constant short2 halves = (short2)(-3, 7) >> (short2)(1, 17);
constant bits odd = {.u = 0x7fc12345u}, minus = {.u = 0xffc12345u};
constant float scale = 1.0f / ULONG_MAX, rest = ~(256UL), top = 0xffffff7fffffffffUL;
constant int many = (int)(UINT_MAX / 2u) - 1;
kernel void folded(global int *o, global uint *p, int at) {
  enum { E = (ULONG_MAX >= 1.0f) ? 3 : 5 };
  int a[0xffffffffffffffffUL > 5 ? 4 : 1];
  float z = ULONG_MAX, y = ((float4)(1) * 0xffffffffffffffffUL).x, x = 9007199791611905L;
  o[0] = E;
  switch (1) { case (0x8000000000000000UL > 1.0f): o[1] = 1; break; default: o[1] = 2; }
  o[2] = sizeof(a) / sizeof(int); o[3] = sizeof(either);
  o[4] = more.w; o[5] = bytes.x; o[6] = less.y; o[7] = nots.x; o[8] = moved.x; o[9] = moved.y; o[10] = -1; o[11] = 0;
  o[12] = one.i; o[13] = list[at + 1].s.a; o[14] = list[at + 1].s.v.y; o[15] = list[at + 2].c[2]; o[16] = pair.n; o[17] = pair.e.f;
  o[18] = least; o[19] = halves.x; o[20] = -128; o[21] = 6; o[22] = halves.y; o[23] = many;
  p[0] = odd.u; p[1] = as_uint(z); p[2] = as_uint(scale); p[3] = as_uint(rest); p[4] = as_uint(y); p[5] = as_uint(x);
  p[6] = as_uint(minus.f); p[7] = as_uint(top);
}
