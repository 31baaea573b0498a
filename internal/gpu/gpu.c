//go:build (cuda || rocm) && linux

#include "../../csrc/gpu/gpu.c"
