//go:build cgo && unix

#define PART_EXPR
#include "../../csrc/cpu/neon.c"
