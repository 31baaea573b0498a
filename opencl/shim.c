//go:build opencl && (linux || darwin)

#include "../csrc/opencl/shim.c"
