//go:build cgo && unix && !noavx2

#define PART_I8
#include "../../csrc/cpu/avx2.c"
