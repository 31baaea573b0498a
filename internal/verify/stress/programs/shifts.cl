// Shift counts are masked by the (promoted) left operand's width.
// run: kernel=sh global=8 args=buf:i32:8:0,1,31,32,33,40,63,64,out:i32:48,out:i64:16,out:u32:8
// want: 1 -100 200 -3 5 -2147483648 2 -50 400 -2 10 1073741824 -2147483648 -1 0 -1 -2147483648 1 1 -100 200 -3 5 -2147483648 2 -50 400 -2 10 1073741824 256 -1 51200 -1 1280 8388608 -2147483648 -1 0 -1 -2147483648 1 1 -100 200 -3 5 -2147483648
// want: 1 -1000 2 -500 2147483648 -1 4294967296 -1 8589934592 -1 1099511627776 -1 -9223372036854775808 -1 1 -1000
// want: 4376 4376 4608 4376 4376 5890 4608 4376
kernel void sh(global const int *n, global int *o, global long *l, global uint *u) {
  int i = get_global_id(0), c = n[i];
  o[i * 6] = 1 << c; o[i * 6 + 1] = -100 >> c;
  uchar b = 200; short s = -3;
  o[i * 6 + 2] = b << c; o[i * 6 + 3] = s >> c;
  int x = 5; x <<= c; o[i * 6 + 4] = x;
  uint y = 0x80000000u; y >>= c; o[i * 6 + 5] = (int)y;
  l[i * 2] = 1L << c; l[i * 2 + 1] = (long)-1000 >> (c + 64);
  int4 v = (int4)(1, 2, 3, 4) << c;
  int4 w = (int4)(1, 2, 3, 4) << (int4)(c, 1, 33, 34);
  uchar4 q = (uchar4)(1, 2, 3, 255) << (uchar)c;
  w >>= (uint4)(0, 1, 32, c);
  u[i] = v.x + v.w + w.x + w.y + w.z + w.w + q.x * 3 + q.w + ((uchar)255 << 4) + (1u << 35);
}
