//go:build cgo && unix && !noavx2

#define PART_STREAM
#include "../../csrc/cpu/avx2.c"
