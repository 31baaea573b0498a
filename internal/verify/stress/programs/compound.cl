// Compound literals of scalars, structs, arrays and vectors.
// host only: clang 14 puts compound literals into no address space and refuses their use
// run: kernel=com global=2 args=out:f32:32
// want: 421 510 4 2 11 7 3 5 1 2 3 30 2 0 0 0 421 520 5 4 12 7 3 5 2 3 4 30 2 0 0 0
typedef struct { float a, b; int c[2]; } S;
float use(S s) { return s.a + s.b * 10 + s.c[1] * 100; }
float sum(const float *p, int n) { float t = 0; for (int i = 0; i < n; i++) t += p[i]; return t; }
float ptr(S *s) { s->a *= 2; return s->a; }
kernel void com(global float *out) {
  global float *o = out + 16 * get_global_id(0);
  float x = get_global_id(0) + 1;
  o[0] = use((S){1, 2, {3, 4}}); o[1] = use((S){.b = x, .c = {[1] = 5}}); o[2] = sum((float[]){1, 2, x}, 3);
  o[3] = ptr(&(S){x}); S s = (S){x, 1}; s = (S){s.b, s.a}; o[4] = s.a * 10 + s.b;
  o[5] = (float){7}; o[6] = ((float4){1, 2, 3, 4}).z; o[7] = ((int[3]){4, 5, 6})[1];
  for (int i = 0; i < 3; i++) o[8 + i] = sum((float[2]){i, x}, 2);
  const float *q = (const float[]){10, 20, 30}; o[11] = q[2]; o[12] = (S){1, 2}.b;
}
