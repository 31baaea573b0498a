// Asynchronous copies to and from local memory, plain and strided.
// run: kernel=ac global=8 local=4 args=buf:f32:16:iota,out:f32:16,local:32
// want: 7 206 405 604 -7 -206 -405 -604 815 1014 1213 1412 -815 -1014 -1213 -1412
kernel void ac(global const float *x, global float *o, local float *t) {
  local float u[4]; int g = get_group_id(0), l = get_local_id(0);
  event_t e = async_work_group_copy(t, x + g * 8, 8, 0);
  event_t f = async_work_group_strided_copy(u, x + g * 8, 4, 2, 0);
  wait_group_events(1, &e); wait_group_events(1, &f);
  float a = t[7 - l] + u[l] * 100;
  barrier(CLK_LOCAL_MEM_FENCE);
  t[l] = a; t[l + 4] = -a;
  barrier(CLK_LOCAL_MEM_FENCE);
  event_t w[2]; w[0] = async_work_group_copy(o + g * 8, t, 8, (event_t)0);
  wait_group_events(1, w);
}
