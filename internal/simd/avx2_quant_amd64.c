//go:build cgo && unix && !noavx2

#define PART_QUANT
#include "../../csrc/cpu/avx2.c"
