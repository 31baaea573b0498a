// The simplest program: scalars, buffers, ids.
// run: kernel=saxpy global=8 local=4 args=f32:2.5,buf:f32:8:iota,out:f32:8:iota
// want: 0 3.5 7 10.5 14 17.5 21 24.5
kernel void saxpy(float a, global const float *x, global float *y) {
  int i = get_global_id(0);
  y[i] += a * x[i];
}
