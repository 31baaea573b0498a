// Every operator on vectors: integers, floats, mixed with scalars, compound, ternary.
// run: kernel=vo global=1 args=out:i32:96,out:f32:24,i32:3
// want: 9 -5 5 107 5 -11 13 93 14 -24 -36 700 3 -2 -2 14 1 -2 1 2 2 0 8 4 7 -5 -3 103 5 -5 -11 99 -8 7 -10 -101 -7 8 -9 -100 21 -24 27 300 -4 11 -6 -97 6 0 0 4 28 -32 36 400 1 -2 2 25 7 3 9 100 0 0 1 1 7 -8 9 100 14 -17 -32 187 8 -4 -4 12 10 -1 -8 19 1 2 -5 6 9 -3 -3 13 -1 -1 -1 0
// want: 3 2.25 -11 -3 0.5 1.25 -1.5 2 -1 -2.5 3 -4 1 0.5 -3 -1 0 4.5 -10 9 2 5.75 -8.5 7
kernel void vo(global int *o, global float *f, int n) {
  int4 a = (int4)(7, -8, 9, 100), b = (int4)(2, 3, -4, 7); int k = 0;
  vstore4(a + b, k++, o); vstore4(a - b, k++, o); vstore4(a * b, k++, o); vstore4(a / b, k++, o); vstore4(a % b, k++, o);
  vstore4(a & b, k++, o); vstore4(a | b, k++, o); vstore4(a ^ b, k++, o); vstore4(~a, k++, o); vstore4(-a, k++, o);
  vstore4(a * n, k++, o); vstore4(n - a, k++, o); vstore4(a & 6, k++, o); vstore4(a << 2, k++, o); vstore4(a >> b.x, k++, o);
  vstore4(a > b ? a : b, k++, o); vstore4(a > 8 ? (int4)(1) : 0, k++, o); vstore4(n > 2 ? a : b, k++, o);
  a += 1; a -= b; a *= 2; a ^= b; vstore4(a, k++, o); a %= 5; a <<= 1; a |= 8; vstore4(a, k++, o);
  vstore4(a++ + b, k++, o); vstore4(--b, k++, o); vstore4(a, k++, o); vstore4((a == b) | (a < 12), k++, o);
  float4 x = (float4)(1, 2.5f, -3, 4), y = (float4)(2, 0.5f, 4, -1); k = 0;
  vstore4(x * y + 1, k++, f); vstore4(x / 2, k++, f); vstore4(-x, k++, f); vstore4(x < y ? x : y, k++, f); vstore4(2 * x - y, k++, f);
  x *= 3; x += y.wzyx; x.yw /= 2; vstore4(x, k++, f);
}
