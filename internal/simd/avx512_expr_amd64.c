//go:build cgo && unix && !noavx512

#define PART_EXPR
#include "../../csrc/cpu/avx512.c"
