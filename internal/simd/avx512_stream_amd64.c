//go:build cgo && unix && !noavx512

#define PART_STREAM
#include "../../csrc/cpu/avx512.c"
