//go:build cgo && unix

#define PART_F32
#include "../../csrc/cpu/neon.c"
