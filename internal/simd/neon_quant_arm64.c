//go:build cgo && unix

#define PART_QUANT
#include "../../csrc/cpu/neon.c"
