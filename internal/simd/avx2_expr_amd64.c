//go:build cgo && unix && !noavx2

#define PART_EXPR
#include "../../csrc/cpu/avx2.c"
