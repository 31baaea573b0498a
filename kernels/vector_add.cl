// out[i] = a[i] + b[i]. An item computes WIDTH elements that lie side by side, with one load of each operand and one
// store; the last ones of an array one by one. Pointers need only the alignment of an element.
#include "elem.h"

#ifndef WIDTH
#define WIDTH 4
#endif

#if WIDTH > 1
#define wide_load_f32(p) JOIN(vload, WIDTH)(0, p)
#define wide_load_f64(p) JOIN(vload, WIDTH)(0, p)
#define wide_load_f16(p) JOIN(vload_half, WIDTH)(0, p)
#define wide_store_f32(x, p) JOIN(vstore, WIDTH)(x, 0, p)
#define wide_store_f64(x, p) JOIN(vstore, WIDTH)(x, 0, p)
#define wide_store_f16(x, p) JOIN(JOIN(vstore_half, WIDTH), _rte)(x, 0, p)
#define WIDE_LOAD(p) JOIN(wide_load_, T)(p)
#define WIDE_STORE(x, p) JOIN(wide_store_, T)(x, p)
#endif

kernel void vector_add(global const TYPE *a, global const TYPE *b, global TYPE *out, ulong n) {
  ulong first = (ulong)get_global_id(0) * WIDTH;
#if WIDTH > 1
  if (first < n && n - first >= WIDTH) {
    WIDE_STORE(WIDE_LOAD(a + first) + WIDE_LOAD(b + first), out + first);
    return;
  }
#endif
  for (ulong i = first; i < n && i - first < WIDTH; i++)
    STORE(out, i, LOAD(a, i) + LOAD(b, i));
}
