//go:build cgo && unix

#define PART_STREAM
#include "../../csrc/cpu/neon.c"
