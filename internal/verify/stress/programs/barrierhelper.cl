// Barriers in helpers and in loops with uniform control flow.
// run: kernel=scan global=16 local=8 args=buf:i32:16:iota,out:i32:16
// want: 0 1 3 6 10 15 21 28 8 17 27 38 50 63 77 92
#define SYNC barrier(CLK_LOCAL_MEM_FENCE)
void sync_all(void) { SYNC; }
int scan_step(local int *t, int l, int d) {
  int v = l >= d ? t[l - d] : 0;
  sync_all();
  t[l] += v;
  sync_all();
  return v;
}
kernel void scan(global const int *x, global int *y) {
  local int t[8];
  int l = get_local_id(0), g = get_global_id(0);
  t[l] = x[g];
  sync_all();
  for (int d = 1; d < 8; d *= 2) scan_step(t, l, d);
  y[g] = t[l];
}
