// The type of a kernel's results, chosen by -D OUT=f32 for inputs of 16 bits; T unless defined.
#ifndef CONCORD_OUT_H
#define CONCORD_OUT_H

#ifndef OUT
#define OUT T
#elif JOIN(is_f64_, T) || !FLOATING
#error OUT is for inputs of 16 bits
#endif
#define OUT_TYPE JOIN(type_, OUT)
#define LOAD_OUT(p, i) JOIN(load_, OUT)(p, i)
#define STORE_OUT(p, i, x) JOIN(store_, OUT)(p, i, x)

#endif
