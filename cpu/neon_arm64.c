//go:build cgo && unix

#include "../csrc/cpu/neon.c"
