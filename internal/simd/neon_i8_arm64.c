//go:build cgo && unix

#define PART_I8
#include "../../csrc/cpu/neon.c"
