// Atomics: 32 and 64 bits, global and local, all operations, float exchange.
// run: kernel=at global=32 local=8 args=out:i32:16,out:u32:8,out:i64:4,out:f32:2,out:i32:4
// want: 496 -64 32 -32 93 -31 -1 0 0 0 77 9 0 0 0 0
// want: 96 31 32 32 0 0 0 0
// want: 4260607557632 0 1099511627520 0
// want: 2.5 0
// want: 112 120 128 168
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable
kernel void at(volatile global int *a, volatile global uint *u, volatile global long *l, volatile global float *f, global int *h) {
  int i = get_global_id(0);
  atomic_add(&a[0], i); atomic_sub(a + 1, 2); atomic_inc(&a[2]); atomic_dec(&a[3]); atomic_max(&a[4], i * 3); atomic_min(&a[5], -i);
  atomic_or(&a[6], 1 << i); atomic_xor(&a[7], i); atomic_and(&a[8], i); if (i == 5) a[9] = atomic_xchg(&a[10], 77);
  atomic_cmpxchg(&a[11], 0, 9); atom_add(&u[0], 3u); atomic_max(&u[1], (uint)i); atomic_inc(&u[2]); atom_inc(&u[3]);
  atom_add(&l[0], (long)i << 33); atom_max(&l[1], (long)i - 100); atom_or(&l[2], 1L << i + 8);
  if (i == 0) f[1] = atomic_xchg(&f[0], 2.5f);
  local int t[4];
  int m = get_local_id(0);
  if (m < 4) t[m] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  atomic_add(&t[m % 4], i); int old = atomic_inc(&t[3]);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (m < 4) atomic_add(&h[m], t[m]);
}
