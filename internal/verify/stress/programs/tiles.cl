// Tiled matrix product and transpose with padded two-dimensional local arrays.
// run: kernel=mm global=8,8 local=4,4 args=i32:8,buf:f32:64:iota,buf:f32:64:alt,out:f32:64
// want: 560 -574 588 -602 616 -630 644 -658 1456 -1502 1548 -1594 1640 -1686 1732 -1778 2352 -2430 2508 -2586 2664 -2742 2820 -2898 3248 -3358 3468 -3578 3688 -3798 3908 -4018 4144 -4286 4428 -4570 4712 -4854 4996 -5138 5040 -5214 5388 -5562 5736 -5910 6084 -6258 5936 -6142 6348 -6554 6760 -6966 7172 -7378 6832 -7070 7308 -7546 7784 -8022 8260 -8498
// run: kernel=tr global=8,4 local=4,4 args=buf:f32:32:iota,out:f32:32
// want: 0 8 16 24 1 9 17 25 2 10 18 26 3 11 19 27 4 12 20 28 5 13 21 29 6 14 22 30 7 15 23 31
#define TS 4
kernel void mm(const int n, global const float *a, global const float *b, global float *c) {
  local float as[TS][TS], bs[TS][TS + 1];
  const int row = get_local_id(1), col = get_local_id(0), gr = TS * get_group_id(1) + row, gc = TS * get_group_id(0) + col;
  float acc = 0.0f;
  for (int t = 0; t < n / TS; t++) {
    as[row][col] = a[gr * n + TS * t + col]; bs[row][col] = b[(TS * t + row) * n + gc];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < TS; k++) acc += as[row][k] * bs[k][col];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[gr * n + gc] = acc;
}
__kernel __attribute__((reqd_work_group_size(4, 4, 1))) void tr(__global const float *in, __global float *out) {
  __local float tile[TS][TS + 1];
  uint x = get_global_id(0), y = get_global_id(1), w = get_global_size(0), h = get_global_size(1);
  tile[get_local_id(1)][get_local_id(0)] = in[y * w + x];
  barrier(CLK_LOCAL_MEM_FENCE);
  out[(get_group_id(0) * TS + get_local_id(1)) * h + get_group_id(1) * TS + get_local_id(0)] = tile[get_local_id(0)][get_local_id(1)];
}
