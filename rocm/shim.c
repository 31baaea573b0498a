//go:build rocm && linux

#include "../csrc/rocm/rocm.c"
