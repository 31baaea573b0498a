// Comparisons: int 0 or 1 for scalars, lanes of 0 and -1 for vectors.
// run: kernel=cmp global=1 args=out:i32:40,out:i64:4,f32:2
// want: 1 -1 2 -1 4 0 1 2 0 0 -1 -1 -1 0 -1 0 -1 0 0 0 0 -1 0 0 0 -1 -1 0 1 1 0 -1 0 -1 7 1 0 0 0 0
// want: -1 0 1 1
kernel void cmp(global int *o, global long *l, float x) {
  int k = 0;
  o[k++] = x > 1; o[k++] = -(x > 1); o[k++] = (x > 1) + (x > 0); o[k++] = ~(x < 1);
  o[k++] = sizeof(x > 1); o[k++] = !x; o[k++] = !!x; o[k++] = (x && 0) | (x || 0) << 1;
  float4 a = (float4)(1, 2, 3, 4);
  int4 c = a > 2.5f; vstore4(c, 2, o); k += 4;
  vstore4(a == (float4)(1, 0, 3, 0), 3, o); k += 4;
  vstore4(!(int4)(0, 1, -1, 5), 4, o); k += 4;
  vstore4((int4)(0, 1, 2, 0) && (int4)(1, 1, 0, 0), 5, o); k += 4;
  vstore4((int4)(0, 1, 2, 0) || 0, 6, o); k += 4;
  o[k++] = any(a > 3.5f); o[k++] = all(a > 0.5f); o[k++] = any(a > 5.0f);
  double2 d = (double2)(1, 2); long2 e = d < 1.5; l[0] = e.x; l[1] = e.y;
  uchar2 u = (uchar2)(200, 3); char2 g = u > (uchar)100; o[k++] = g.x; o[k++] = g.y;
  l[2] = ((long2)(5, 6)).x == 5; short2 h = ((short2)(1, 2) != (short)1); o[k++] = h.x * 10 + h.y;
  o[k++] = (x == 2) * 7; o[k++] = isnan(x) + isequal(x, 2.0f); int2 q = isequal(a.xy, a.yx); o[k++] = q.x;
  l[3] = isless(1.0, 2.0);
}
