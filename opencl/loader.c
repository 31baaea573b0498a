//go:build opencl && (linux || darwin)

#include "../csrc/opencl/loader.c"
