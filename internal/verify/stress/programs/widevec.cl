// 8 and 16 lanes: literals, halves, swizzles by sABC, reductions by .lo and .hi, conversions.
// run: kernel=wv global=2 args=buf:i32:32:iota,out:i32:64
// want: 120 1111 0 -2 1 13 43 3 7 6 5 4 3 2 1 0 -15 1 -2 3 -4 5 -6 7 -8 9 -110 111 -112 13 -14 0 376 1127 16 -18 1 29 43 51 23 22 21 20 19 18 17 16 -31 17 -18 19 -20 21 -22 23 -24 25 -126 127 -128 29 -30 16
int sum16(int16 v) { int8 a = v.lo + v.hi; int4 b = a.lo + a.hi; int2 c = b.xy + b.zw; return c.s0 + c.s1; }
int8 rev(int8 v) { return v.s76543210; }
kernel void wv(global const int *x, global int *out) {
  int i = get_global_id(0); global int *o = out + i * 32; int16 v = vload16(i, x); o[0] = sum16(v); vstore8(rev(v.lo), 1, o); v.s0f = v.sF0; v.sABC += 100; v.even = -v.even; vstore16(v, 1, o); 
  short8 s = convert_short8(v.hi); uchar16 u = as_uchar16(vload4(0, x)); o[1] = s.s3 + u.s4 * 1000; float8 f = convert_float8(s) / 2; o[2] = f.s7 * 2; long8 l = convert_long8(v.lo) << 33; o[3] = l.s2 >> 33; o[4] = all(v.lo == v.lo) + any(v > 1000); o[5] = ((int8)(v.lo.lo, v.hi.hi)).s5; 
  double8 d = (double8)(1, 2, 3, 4, 5, 6, 7, 8); d.hi.lo = d.lo.hi; o[6] = d.s4 + d.s5 * 10; int3 t = v.s321; t.yx = t.zz; o[7] = t.x + t.y + t.z;
}
