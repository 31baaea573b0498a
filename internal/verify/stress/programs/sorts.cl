// Bitonic sort, odd-even in local memory, histogram with local atomics, radix digits.
// run: kernel=bitonic global=16 local=16 args=buf:u32:16:rand,out:u32:16
// want: 4442029 5476804 10698311 19774979 30188699 123559276 133114298 145802273 147196272 160014406 170430759 187799305 199662620 210305869 244284187 259257478
// run: kernel=histo global=64 local=16 args=buf:u32:64:rand,out:u32:16
// want: 3 6 7 3 6 5 2 2 4 4 2 5 3 3 7 2
#define SWAP(T, a, b) do { T t_ = (a); (a) = (b); (b) = t_; } while (0)
kernel void bitonic(global const uint *in, global uint *out) {
  local uint s[16]; const uint l = get_local_id(0);
  s[l] = in[l];
  for (uint k = 2; k <= 16; k <<= 1)
    for (uint j = k >> 1; j > 0; j >>= 1) {
      barrier(CLK_LOCAL_MEM_FENCE);
      uint p = l ^ j;
      if (p > l) { if (((l & k) == 0) == (s[l] > s[p])) SWAP(uint, s[l], s[p]); }
    }
  barrier(CLK_LOCAL_MEM_FENCE);
  out[l] = s[l];
}
kernel void histo(global const uint *in, global uint *out) {
  local uint h[16]; uint l = get_local_id(0);
  h[l] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  atomic_inc(&h[(in[get_global_id(0)] >> 8) & 15]);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (h[l]) atomic_add(out + l, h[l]);
}
