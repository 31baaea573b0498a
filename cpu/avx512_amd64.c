//go:build cgo && unix

#include "../csrc/cpu/avx512.c"
