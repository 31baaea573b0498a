// Loops and branches: nested break and continue, do-while, dangling else, comma, side effects, ternary chains.
// run: kernel=ct global=6 args=out:i32:48
// want: 20 3 3 10 18 21 1 11 20 6 6 20 18 21 3 12 20 12 2 30 18 21 1 10 20 12 2 40 18 21 3 12 20 12 1 40 18 21 3 12 20 12 1 40 18 21 3 12
int side(int *p) { return (*p)++; }
kernel void ct(global int *out) {
  int i = get_global_id(0), n = 0; global int *o = out + i * 8;
  for (int a = 0, b = 10; a < b; a++, b -= 2) { if (a == 2) continue; n += a * b; } o[0] = n;
  n = 0; do { n += 3; if (n > 10) break; } while (n < 5 * i); o[1] = n;
  if (i > 1) if (i > 3) n = 1; else n = 2; o[2] = n;
  n = i < 1 ? 10 : i < 2 ? 20 : i < 3 ? 30 : 40; o[3] = n;
  int c = 0, d; d = (c++, c += 5, c * 2); o[4] = d + c; 
  int s = 0; int r = side(&s) && side(&s) || side(&s); o[5] = s * 10 + r; 
  while (1) { if (n-- < 5) break; for (;;) { n -= 3; break; } } o[6] = n;
  #pragma unroll
  for (int k = 0; k < 4; ++k) n += k;
  __attribute__((opencl_unroll_hint(2)))
  for (uint k = 3; k --> 0;) n += k;
  int *p = &n; *p += !i; for (int i = 0; i < 2; i++); ; {} { ; } o[7] = n;
}
