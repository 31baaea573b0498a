//go:build cgo && unix

#define PART_F64
#include "../../csrc/cpu/neon.c"
