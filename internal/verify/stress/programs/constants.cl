// Program-scope constants: scalars, vectors, structs, nested braces, 2-d, pointers to them.
// run: kernel=cst global=1 args=out:f32:32,out:i32:16
// want: -4 1000 2.5 8 4 3 9 9 8 5 0 0 0.5 0.25 3 4 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
// want: 6 4 0 101 4 6 255 9 5 4 0 0 0 0 0 0
typedef struct { int a; float b[2]; float4 v; } row;
constant int N = 3;
constant float tab[] = {1, 2.5f, 1e3, -4};
constant float4 vec[2] = {(float4)(1, 2, 3, 4), (float4)(5)};
constant int grid[2][3] = {{1, 2, 3}, {4, 5, 6}};
constant int flat[2][3] = {1, 2, 3, 4};
constant row rows[] = {{1, {2, 3}, (float4)(4, 5, 6, 7)}, {.b = {8}, .a = 9}};
constant char text[] = "hey";
constant uchar mask[4] = {0xff, 1 << 3, 'a', N * 2};
__constant float4 half4 = {0.5f, 0.25f, (float2)(3, 4)};
float pick(constant float *t, int i) { return t[i]; }
float first(constant row *r) { return r->b[0] + r->v.w; }
kernel void cst(global float *o, global int *p) {
  constant float *q = tab + 1;
  o[0] = tab[3]; o[1] = pick(tab, 2); o[2] = q[0]; o[3] = vec[1].y + vec[0].z; o[4] = sizeof(tab) / sizeof(tab[0]);
  o[5] = rows[0].b[1]; o[6] = rows[1].a; o[7] = first(&rows[0]); o[8] = first(rows + 1); vstore4(half4, 3, o);
  float loc[N]; loc[2] = 5; o[9] = loc[2];
  constant int inner[] = {7, 8, 9};
  p[0] = grid[1][2]; p[1] = flat[1][0]; p[2] = flat[1][2]; p[3] = text[1]; p[4] = sizeof(text); p[5] = mask[3]; p[6] = mask[0]; p[7] = inner[N - 1];
  constant int *g = &grid[1][0]; p[8] = g[1]; p[9] = *(constant int *)grid[1];
}
