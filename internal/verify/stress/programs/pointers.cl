// Pointers: arithmetic, differences, comparison, void, to pointers, to arrays, casts, in structs.
// run: kernel=pt global=1 args=buf:f32:16:iota,out:f32:40
// want: 1 5 2 5 8 9 4 4 30 3 10 5 5 5 6 2 2 5 6 3 1 2 0 1 30 5 6 4 8 1 2 5 6 2 8 4321 3 1 4 2
typedef global float *gp;
typedef __global const float *__private cgp;
typedef struct { global const float *p; int n; } view;
float at(view v, int i) { return v.p[i] * v.n; }
void set(private float *p, float x) { *p = x; }
void adv(global const float **p, int n) { *p += n; }
float row(float (*m)[3], int i) { return m[i][0] + m[i][2]; }
int isnull(global const float *p) { return !p; }
kernel void pt(global const float *x, global float *o) {
  gp q = o + 1; *q++ = 5; *q = q - o; q[1] = *(x + 3) + x[2]; 2[q] = 8; q += 3; *q-- = 9; o[0] = q > o;
  cgp r = x; adv(&r, 4); o[6] = *r; o[7] = r - x; view v = {x + 2, 10}; o[8] = at(v, 1);
  float f; set(&f, 3); o[9] = f; float m[2][3] = {{1, 2, 3}, {4, 5, 6}}; o[10] = row(m, 1); o[11] = *(*(m + 1) + 1); o[12] = (&m[1][2] - &m[0][0]);
  float (*pm)[3] = &m[1]; o[13] = (*pm)[1]; float *ptrs[2] = {m[0], m[1]}; o[14] = ptrs[1][2]; float **pp = ptrs; o[15] = pp[0][1];
  void *vp = &f; *(int *)vp = 0x40000000; o[16] = f; global const void *gv = x + 5; o[17] = *(global const float *)gv; global const char *cp = (global const char *)x; o[18] = ((global const float *)(cp + 24))[0];
  o[19] = isnull(0) + isnull(NULL) * 2 + isnull(x) * 4; const float *nl = NULL; o[20] = nl == 0; o[21] = nl ? 1 : 2; o[22] = x == x + 1; o[23] = &x[3] >= x;
  float4 w = (float4)(1, 2, 3, 4); float *wp = (float *)&w; wp[2] = 30; o[24] = w.z; global const float4 *g4 = (global const float4 *)x; o[25] = g4[1].y; o[26] = ((global const float2 *)x)[3].x;
  ulong ad = (ulong)x; o[27] = (ulong)(x + 1) - ad; o[28] = (size_t)&x[2] - (size_t)x; uchar by[8] = {1, 2, 3, 4}; o[29] = *(uint *)by == 0x04030201; const char *s = (const char *)by; o[30] = s[1];
  int ar[2][2][2]; for (int i = 0; i < 8; i++) ((int *)ar)[i] = i; o[31] = ar[1][0][1]; int (*a3)[2] = ar[1]; o[32] = a3[1][0]; o[33] = sizeof(ar) / sizeof(ar[0]); o[34] = sizeof(*a3);
  float arr[4] = {1, 2, 3, 4}, *e = arr + 4, t = 0; while (e != arr) t = t * 10 + *--e; o[35] = t; int idx = 2; o[36] = (idx[arr]); o[37] = -arr[1] - -arr[2]; o[38] = *&arr[3]; o[39] = (1 ? arr : 0)[1];
}
