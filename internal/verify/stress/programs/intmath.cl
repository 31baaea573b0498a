// Integer arithmetic: wrap-around, unsigned division, mixed signs, remainders, 64-bit products.
// run: kernel=im global=1 args=i32:2147483647,u32:4000000000,i64:-9000000000,u64:18000000000000000000,out:i64:32
// want: -2147483648 1 4611686014132420609 3705032704 1852516351 1333333333 3 -3 -1 2147483644 -1285714285 0 1800000000000000000 0 0 -410065408 -1 3884901888 294967296 294967295 250000000 -18435456 -562500000 15 3859423232 2442450943 255 -131071 0 -128 4294967294 6147483647
kernel void im(int a, uint b, long c, ulong d, global long *o) {
  int k = 0; o[k++] = a + 1; o[k++] = a * a; o[k++] = (long)a * a; o[k++] = b * 2; o[k++] = b + a; o[k++] = b / 3; o[k++] = b % 7; o[k++] = -7 / 2; o[k++] = -7 % 3; o[k++] = -7 / 2u; o[k++] = c / 7; o[k++] = c % 1000;
  o[k++] = d / 10; o[k++] = d % 1000; o[k++] = d > c; o[k++] = (int)c; o[k++] = (short)a; o[k++] = (uint)c; o[k++] = -b; o[k++] = ~b; o[k++] = b >> 4; o[k++] = (int)b >> 4; o[k++] = c >> 4; o[k++] = d >> 60; o[k++] = b & c; o[k++] = a ^ b; o[k++] = (uchar)a + (char)b; 
  ushort s = 65535; o[k++] = s * s; s++; o[k++] = s; char h = 127; h++; o[k++] = h; uint m = 3; m -= 5; o[k++] = m; long p = a; p += b; o[k++] = p;
}
