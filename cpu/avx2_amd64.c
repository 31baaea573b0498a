//go:build cgo && unix

#include "../csrc/cpu/avx2.c"
