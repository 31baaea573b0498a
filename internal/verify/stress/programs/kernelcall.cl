// A kernel that calls kernels, with and without local memory of their own.
// run: kernel=outer global=8 local=4 args=buf:i32:8:iota,out:i32:8
// want: 1003 1012 1021 1030 1047 1056 1065 1074
// run: kernel=inner global=8 local=4 args=buf:i32:8:iota,out:i32:8
// want: 3 2 1 0 7 6 5 4
kernel void plain(global const int *x, global int *y) { y[get_global_id(0)] = x[get_global_id(0)] * 10; }
kernel void inner(global const int *x, global int *y) {
  local int t[4];
  int l = get_local_id(0);
  t[l] = x[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  y[get_global_id(0)] += t[3 - l];
}
kernel void outer(global const int *x, global int *y) {
  local int t[4];
  t[get_local_id(0)] = 1000;
  plain(x, y);
  barrier(CLK_GLOBAL_MEM_FENCE);
  inner(x, y);
  barrier(CLK_LOCAL_MEM_FENCE);
  y[get_global_id(0)] += t[get_local_id(0)];
}
