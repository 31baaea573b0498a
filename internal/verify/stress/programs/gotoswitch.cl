// goto, labels, switch past initializers, fallthrough, Duff's device.
// run: kernel=gs global=8 args=out:i32:48
// want: 1 2 5 1000 0 3 2 3 107 1000 5 3 3 10 114 1000 6 3 4 9 100 1000 7 2 5 36 1005 1000 10 3 6 55 1001 1000 16 3 7 78 100 1000 11 3 8 105 100 1000 16 3
int duff(int n) {
  int c = 0, k = (n + 3) / 4;
  switch (n % 4) {
  case 0: do { c++;
  case 3: c++;
  case 2: c++;
  case 1: c++;
          } while (--k > 0);
  }
  return c;
}
int jump(int n) {
  int i = 0, sum = 0;
again:;
  int step = i * 2;
  const int bias = step + 1;
  sum += bias;
  if (++i < n) goto again;
  if (n == 3) goto out;
  { int arr[3] = {n, i, sum}; float4 v = (float4)(1, 2, 3, n); sum += arr[2] + (int)v.w; }
out:
  return sum;
}
int sw(int n) {
  int r = 0;
  switch (n) {
    int hidden;
  case 0: { int q = 5; r = q; } break;
  case 1:
  case 2: hidden = 7; r = hidden * n;
  default: r += 100; break;
  case 4: r = 4;
  case 5: { for (int i = 0; i < 3; i++) { if (i == 2) break; if (i == 0) continue; r += i; } }
  case -1: case 'a': r += 1000;
  }
  return r;
}
kernel void gs(global int *o) {
  int i = get_global_id(0);
  o[i * 6] = duff(i + 1); o[i * 6 + 1] = jump(i); o[i * 6 + 2] = sw(i); o[i * 6 + 3] = sw(i == 6 ? 'a' : -1);
  int n = 0;
  for (int a = 0; a < 4; a++) for (int b = 0; b < 4; b++) { if (a * b == i) goto found; n++; }
found:
  o[i * 6 + 4] = n;
  uchar c = i; switch (c) { case 256 + 3: n = 1; break; case 3: n = 2; break; default: n = 3; }
  o[i * 6 + 5] = n;
}
