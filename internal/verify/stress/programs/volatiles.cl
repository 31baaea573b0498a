// volatile, restrict and const in every position.
// run: kernel=vq global=4 args=buf:f32:4:iota,out:f32:4,out:f32:16
// want: 2 6 12 20
// want: 10 0 1 1 10 1 2 2 10 2 3 3 10 3 4 4
kernel void vq(const global volatile float *const restrict x, __global float *restrict volatile y, global volatile float4 *v) {
  const int i = get_global_id(0); volatile int j = i; volatile local float t[4]; local volatile float *p = t;
  t[i] = x[i]; p[i] = p[i] + 1; int volatile *q = &j; *q += 1;
  y[i] = t[i] * j; volatile float4 w = (float4)(i); w.x = 9; w = w + 1; v[i] = w; v[i].y = x[i]; float const k = v[i].z; y[i] += k;
}
