//go:build cgo && unix && !noavx2

#define PART_F64
#include "../../csrc/cpu/avx2.c"
