// Arrays: multi-dimensional, sizes by constant expressions, of pointers, of structs, passed and returned by pointer, typedefed.
// run: kernel=ar global=2 args=out:i32:48
// want: 33 23 28 22 20 3 6 4 8 11 17 4 4 3 18 0 1 4 2 0 0 0 0 0 36 24 28 22 20 3 6 1 8 11 17 4 4 3 18 0 1 5 2 0 0 0 0 0
#define N 4
enum { M = N / 2 + 1 };
typedef int vec[N]; typedef vec mat[M]; typedef float grid[2][3];
constant int K = 2; constant int size = sizeof(int[3]) / sizeof(int);
int trace(mat m) { int t = 0; for (int i = 0; i < M; i++) t += m[i][i]; return t; }
void fill(vec *m, int n, int k) { for (int r = 0; r < n; r++) for (int c = 0; c < N; c++) m[r][c] = r * 10 + c + k; }
int sum2(int a[][3], int n) { int s = 0; for (int i = 0; i < n; ++i) for (int j = 0; j < 3; ++j) s += a[i][j]; return s; }
int *pick(int *a, int *b, int k) { return k ? a : b; }
kernel void ar(global int *out) {
  int i = get_global_id(0); global int *o = out + i * 24; const int L = 3; int k = 0;
  mat m; fill(m, M, i); o[k++] = trace(m); o[k++] = m[2][3]; int a[L][3] = {{1, 2, 3}, {4, 5, 6}, {7}}; o[k++] = sum2(a, L); o[k++] = sum2(a + 1, 2); int b[K * 2 + 1]; o[k++] = sizeof(b); o[k++] = sizeof(mat) / sizeof(vec);
  int *rows[3] = {a[2], a[1], a[0]}; o[k++] = rows[1][2]; o[k++] = *pick(a[0], a[1], i); grid g = {{1.5f}, {[2] = 2.5f}}; o[k++] = g[0][0] * 2 + g[1][2] * 2; int (*pa)[3] = a; pa++; o[k++] = (*pa)[0] + pa[1][0];
  char s[2][2][2] = {{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}}; o[k++] = s[1][0][1] + *(**s + 7) + s[0][1][0]; o[k++] = &s[1][0][0] - &s[0][0][0]; long big[size]; big[2] = 1L << 40; o[k++] = big[2] >> 38; struct { int v[2]; } st[2] = {{{1, 2}}, {{3, 4}}}; o[k++] = st[1].v[0]; vec w = {1, 2}; vec *pw = &w; o[k++] = (*pw)[1] + sizeof(*pw);
  for (int x = 0; x < 2; x++) { int fresh[2] = {x}; o[k++] = fresh[0] + fresh[1]; fresh[1] = 9; } float4 fv[2][2]; fv[1][0] = (float4)(i); fv[1][0].s2 = 4; o[k++] = fv[1][0].z + fv[1][0].w; bool flags[3] = {1, 0, 5}; o[k++] = flags[2] + flags[0];
}
