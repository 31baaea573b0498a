// char is signed, character literals are ints, long has 64 bits, promotions.
// run: kernel=ch global=1 args=out:i32:32,out:i64:8
// want: -56 200 1 -1 4 66 10 0 -25536 40000 -112 400 144 8 4 8 4 4 8 0 1 1 0 1 1 1 1 2 1 3 -3 44
// want: -2147483648 2147483648 4294967295 4294967295 2147483648 -1294967296 4294967295 -1
kernel void ch(global int *o, global long *l) {
  char c = 200; uchar u = 200;
  o[0] = c; o[1] = u; o[2] = c < 0; o[3] = '\xff'; o[4] = sizeof('a'); o[5] = 'A' + 1; o[6] = '\n'; o[7] = '\0';
  short s = 40000; ushort t = 40000; o[8] = s; o[9] = t; o[10] = (char)(c + c); o[11] = u + u; o[12] = (uchar)(u + u);
  o[13] = sizeof(long); o[14] = sizeof(c + c); o[15] = sizeof(1L); o[16] = sizeof(5u); o[17] = sizeof(0xffffffff); o[18] = sizeof(4294967296);
  l[0] = 1 << 31; l[1] = 1u << 31; l[2] = 0xffffffff; l[3] = -1 + 0u; l[4] = 2147483647 + 1L; l[5] = (int)3000000000u; l[6] = ~0u; l[7] = (long)-1 >> 1;
  uint a = 1; o[19] = -1 < a; o[20] = (int)-1 < (short)1; o[21] = -1L < a; o[22] = (uchar)255 == (char)-1; o[23] = (uchar)~0 == 255;
  bool b = 5; o[24] = b; b = 0.5f; o[25] = b; b = (bool)256; o[26] = b; o[27] = true + true; o[28] = sizeof(bool);
  o[29] = (int)3.99f; o[30] = (int)-3.99f; o[31] = (uchar)300;
}
