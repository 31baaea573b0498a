//go:build cgo && unix && !noavx512

#define PART_QUANT
#include "../../csrc/cpu/avx512.c"
