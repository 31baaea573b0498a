// Extensions of GNU C that OpenCL compilers have: case ranges, ?: without a middle, statement expressions,
// arithmetic on void pointers, __func__, too many values in an initializer.
// run: kernel=choose global=6 args=out:i32:6
// want: 46 13 8 11 13 15
// run: kernel=values global=3 args=out:i32:3
// want: 116 120 122
// run: kernel=bytes global=1 args=out:i32:6
// want: 4 7 8 1 9 6
kernel void choose(global int *o) {
  int g = get_global_id(0); uint u = 3;
  switch (g) { case 0 ... 2: o[g] = 1; break; case 3: case 4 ... 9: o[g] = 2; }
  o[g] += g ?: 42; o[g] += (g - 1) ? : 7; long l = u ?: -1; o[g] += l; global int *p = (g & 1 ? o : 0) ?: o; o[g] += p == o;
}
#define MIN(a, b) ({ int _a = (a); int _b = (b); _a < _b ? _a : _b; })
kernel void values(global int *o) {
  int g = get_global_id(0); int a[2] = {1, 2, 3}; char s[2] = "abc"; int b = {4, 5}; struct { int x; } q = {1, 2};
  o[g] = MIN(g * 3, 4) + ({ int s = 0; for (int i = 0; i < 3; i++) s += i; s; }) + sizeof(__func__) + a[1] + s[1] + b + q.x;
  float4 v = ({ float4 t = (float4)(g); t.x += 1; t; }); o[g] += v.x;
}
kernel void bytes(global int *o) {
  global void *p = o; p += 4; *(global int *)p = 7; global void *q = p + 4; *(global int *)q = 8; o[0] = q - p; q++; --q; q -= 4;
  p = 8 + p; o[3] = q == o + 1; *(global int *)(p + 4) = 9; int a[2] = {1, 2}; const void *v = a; v += sizeof(int); o[5] = *(const int *)v + ((char *)v - (char *)a);
}
