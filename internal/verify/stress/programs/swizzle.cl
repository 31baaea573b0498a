// Swizzles read and written: nested, on pointers, arrays, rvalues, results.
// run: kernel=swz global=1 args=out:f32:64
// want: 4 3 2 1 2 1 3 4 12 1 3 24 12 3 9 24 12 3 12 3 5 7 6 8 5 -1 7 -2 9 0 10 9 1 5 3 7 9 8 7 3 9 9 7 7 40 50 3 4 6 -3 2 0 4 5 3 4 5 6 0 5 7 154 0 6
float4 mk(float x) { return (float4)(x, x + 1, x + 2, x + 3); }
typedef struct { float4 v; float3 w[2]; } box;
kernel void swz(global float *o) {
  float4 a = (float4)(1, 2, 3, 4), b = a.wzyx;
  vstore4(b, 0, o);
  a.xy = b.zw; vstore4(a, 1, o);
  a.xw += (float2)(10, 20); vstore4(a, 2, o);
  a.yz *= 3; vstore4(a, 3, o);
  a.hi = a.lo; vstore4(a, 4, o);
  a = mk(5); vstore2(a.even, 10, o); vstore2(a.odd, 11, o);
  a.odd = (float2)(-1, -2); vstore4(a, 6, o);
  o[28] = mk(7).z; vstore2(mk(9).yx, 15, o);
  float4 arr[2] = {mk(0), mk(4)};
  arr[1].xz = arr[0].yw; vstore4(arr[1], 8, o);
  float4 *p = &arr[0];
  p->zyx = (float3)(7, 8, 9); vstore4(*p, 9, o);
  (*p).s13 = p->s02; vstore4(arr[0], 10, o);
  box q; q.v = mk(1); q.w[0] = q.v.xyz; q.w[1] = q.w[0].zyx * 2;
  q.w[1].y = -q.w[0].s2; q.v.xyz.xy = (float2)(40, 50);
  vstore4(q.v, 11, o); vstore3(q.w[1], 0, o + 48);
  float8 e = (float8)(0, 1, 2, 3, 4, 5, 6, 7);
  e.s7 = e.s0; e.S12 = e.hi.lo; vstore8(e, 0, o + 51);
  o[59] = e.lo.hi.x; o[60] = a.xyzw.wzyx.xy.y;
  int i = 2; a[i] = 77; o[61] = a[i] + a.z; o[62] = e.s4567.hi.odd;
  a.x++; ++a.y; a.zw = a.xy; o[63] = a.x + a.y * 10 + a.w * 100;
}
