// Barriers in loops, in branches taken by whole groups, after early returns of whole groups, in called functions.
// run: kernel=bf global=16 local=4 args=out:i32:16,i32:3
// want: 37 37 37 37 14 14 14 14 0 0 0 0 70 70 70 70
int reduce(local int *t, int l, int n) { for (int s = n / 2; s; s /= 2) { if (l < s) t[l] += t[l + s]; barrier(CLK_LOCAL_MEM_FENCE); } return t[0]; }
kernel void bf(global int *o, int rounds) {
  local int t[4]; int l = get_local_id(0), g = get_group_id(0), acc = 0;
  if (g == 2) return;
  for (int r = 0; r < rounds; r++) {
    t[l] = l * (r + 1) + g; barrier(CLK_LOCAL_MEM_FENCE);
    if (r & 1) { int x = t[l ^ 1]; barrier(CLK_LOCAL_MEM_FENCE); t[l] = x + 1; barrier(CLK_LOCAL_MEM_FENCE); }
    acc = acc * 3 + reduce(t, l, 4); barrier(CLK_LOCAL_MEM_FENCE);
    if (g == 1 && r == 1) break;
  }
  do { t[l] = acc; barrier(CLK_LOCAL_MEM_FENCE); acc -= t[3 - l] / 2; barrier(CLK_LOCAL_MEM_FENCE); } while (--rounds > 1);
  switch (g) { case 0: t[l] = 7; barrier(CLK_LOCAL_MEM_FENCE); acc += t[3 - l]; break; default: acc++; }
  o[get_global_id(0)] = acc;
}
