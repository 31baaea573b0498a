// A loop whose condition is false after its first round, with a comparison in it that is decided by the count of rounds:
// GCC's pass that splits such loops in two runs one round too many.
// run: kernel=once global=8 local=8 args=out:u32:8,u32:8
// want: 0 1 2 3 4 5 6 7
// run: kernel=once global=8 local=8 args=out:u32:8,u32:3
// want: 0 0 0 1 2 3 4 5
// run: kernel=size global=8 local=8 args=out:u32:8
// want: 0 1 2 3 4 5 6 7
kernel void once(global uint *out, uint n) {
  uint x = get_global_id(0), v = 1, r = 0;
  do
    v = x < r ? 0 : x - r;
  while (++r < (n & 3u));
  out[x] = v;
}
kernel void size(global uint *out) {
  uint x = get_global_id(0), n = get_local_size(0), v = 1, r = 0;
  do
    v = sub_sat(x, r);
  while (++r < (n & 3u));
  out[x] = v;
}
