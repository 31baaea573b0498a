//go:build cgo && unix && !noavx512

#define PART_F32
#include "../../csrc/cpu/avx512.c"
