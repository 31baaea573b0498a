// Local pointer parameters of two types, local arrays, local pointer variables.
// run: kernel=rev global=8 local=4 args=buf:f32:8:iota,out:f32:8,local:16,local:64
// want: 303 202 101 0 307 206 105 4
// run: kernel=sum global=16 local=8 args=buf:i32:16:iota,out:i32:2
// want: 37 101
void put(local float *t, int i, float v) { t[i] = v; }
float get(local const float *t, int i) { return t[i]; }
kernel void rev(global const float *x, global float *y, local float *t, local float4 *q) {
  int l = get_local_id(0), n = get_local_size(0);
  local float *p = t;
  put(p, l, x[get_global_id(0)]);
  q[l] = (float4)(l);
  barrier(CLK_LOCAL_MEM_FENCE);
  y[get_global_id(0)] = get(t, n - 1 - l) + q[n - 1 - l].w * 100;
}
kernel void sum(global const int *x, global int *y) {
  local int part[8]; local int total; local int2 pair[2][2];
  int l = get_local_id(0);
  part[l] = x[get_global_id(0)];
  if (l < 4) pair[l / 2][l % 2] = (int2)(l, l * l);
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int s = 4; s > 0; s >>= 1) {
    if (l < s) part[l] += part[l + s];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (l == 0) total = part[0] + pair[1][1].y;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (l == 7) y[get_group_id(0)] = total;
}
