// Relational built-ins, select, bitselect, shuffle, any, all, on scalars and vectors, and their signs.
// run: kernel=sl global=1 args=out:i32:64,f32:2.5,i32:-7
// want: -1 0 0 -1 0 -1 0 0 0 0 -1 0 0 0 0 -1 -1 -1 -1 -1 -7 2 3 -7 1 2 1 2 0 1073741824 1073741824 0 0 3 20 1 0 0 2 1 0 1 1 1 20 1 5 -1 1 -7 -5 -9 7 2 82 3 257 203 0 0 0 0 0 0
kernel void sl(global int *o, float x, int n) {
  float4 a = (float4)(1, NAN, INFINITY, -0.0f), b = (float4)(1, 2, 3, 0); int k = 0;
  vstore4(isequal(a, b), k++, o); vstore4(isnan(a), k++, o); vstore4(isinf(a), k++, o); vstore4(signbit(a), k++, o); vstore4(isless(b, a) | isfinite(b), k++, o);
  vstore4(select((int4)(n), (int4)(1, 2, 3, 4), b > 1.5f), k++, o); vstore4(convert_int4(select(a, b, (int4)(-1, -1, 0, 0)).xyxy), k++, o); vstore4(as_int4(bitselect(b, (float4)(2), (float4)(1.5f))), k++, o);
  uint4 m = (uint4)(3, 2, 5, 0); vstore4(convert_int4(shuffle2(b, b * 10, m)), k++, o); vstore4(convert_int4(shuffle(b, (uint4)(3, 3, 1, 0))), k++, o); k = 40;
  o[k++] = isnan(x); o[k++] = isgreater(x, 1.0f); o[k++] = any((int2)(n, 0)); o[k++] = all((int2)(n, -1)); o[k++] = select(10, 20, x > 1); o[k++] = signbit(-x); o[k++] = (isequal(x, x) ? 5 : 6); o[k++] = -isequal(x, x);
  o[k++] = fmax(x, NAN) == x; o[k++] = fmin((float)n, x); o[k++] = clamp(x, 0.0f, 1.0f) + max(n, -3) + min((short)-3, (short)4); o[k++] = mad24(n, 3, 1) + abs((char)-5) + abs_diff((uchar)3, (uchar)9); o[k++] = islessgreater(1.0, 2.0) + isordered(x, x) * 2 + isunordered(x, NAN) * 4;
  char2 c = isequal((double)1, 1.0) ? (char2)(1, 2) : (char2)(3, 4); o[k++] = c.y; o[k++] = popcount((ushort)0xff0f) + clz((uchar)1) + clz(1L); o[k++] = rotate((uchar)0x81, (uchar)1); o[k++] = convert_int(mul_hi(0x80000000u, 6u)) + hadd((uchar)255, (uchar)254); o[k++] = upsample((uchar)1, (uchar)2) + as_int(as_float(n)) + sub_sat(INT_MIN, 1) % 100;
}
