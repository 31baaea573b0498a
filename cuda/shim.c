//go:build cuda && linux

#include "../csrc/cuda/cuda.c"
