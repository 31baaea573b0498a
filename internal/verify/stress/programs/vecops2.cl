// Vectors of narrow and wide types: no promotion in lanes, wrap-around, 8 and 16 lanes.
// run: kernel=vn global=1 args=out:i32:32,out:i64:16
// want: 4 44 8 10 240 100 254 254 -56 0 -29 -28 -100 100 -127 -128 6 7 8 0 62 1 70 1 4 1 16 2 0 0 0 0
// want: 2 0 -1 15 -2 3 1 -1 1 2 75 0 0 0 0 0
kernel void vn(global int *o, global long *l) {
  uchar4 a = (uchar4)(250, 200, 3, 4), b = (uchar4)(10, 100, 5, 6); uchar4 c = a + b;
  vstore4(convert_int4(c), 0, o); vstore4(convert_int4(a - b), 1, o);
  char4 d = (char4)(100, -100, 127, -128); vstore4(convert_int4(d + (char)100), 2, o); vstore4(convert_int4(-d), 3, o);
  ushort8 e = (ushort8)(1, 2, 3, 4, 5, 6, 7, 65535); e += (ushort)1; vstore4(convert_int4(e.hi), 4, o);
  short16 s = (short16)(1); s.s0f = (short2)(5, 6); s *= s; o[20] = s.s0 + s.s1 + s.sF; o[21] = any(s == (short)36);
  ulong2 u = (ulong2)(1, 0xffffffffffffffffUL); u += 1; l[0] = u.x; l[1] = u.y; u = u - 3; l[2] = u.x; l[3] = u.y >> 60;
  long3 v = (long3)(-5, 6, 7); v /= 2; l[4] = v.x; l[5] = v.y; l[6] = (v % 2).z; l[7] = (v >> 1).x;
  long2 m = (u > 5) ? (long2)(1, 2) : (long2)(3, 4); l[8] = m.x; l[9] = m.y;
  int8 i8 = (int8)(1, 2, 3, 4, 5, 6, 7, 8); int4 t = i8.lo * i8.hi; o[22] = t.x + t.y + t.z + t.w; o[23] = i8.s7 - i8.even.w;
  uint16 big = (uint16)((uint)i8.s0 + (uint8)(1), (uint8)(2)); o[24] = big.sf + big.s0; double2 q = (double2)(1, 2) / 4; l[10] = (q.x + q.y) * 100;
  bool t1 = i8.x; o[25] = t1; o[26] = (i8 << 1).s7; char2 h = (char2)(1, 2) << (char2)(9, 7); o[27] = h.x; o[28] = h.y;
}
