// out[i] = in[i] for n elements, bit for bit, including NaN payloads and denormals.
#include "elem.h"

kernel void copy(global const TYPE *in, global TYPE *out, ulong n) {
  size_t i = get_global_id(0);
  if (i < n)
    ((global RAW *)out)[i] = ((global const RAW *)in)[i];
}
