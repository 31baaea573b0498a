//go:build cgo && unix && !noavx512

#define PART_I8
#include "../../csrc/cpu/avx512.c"
