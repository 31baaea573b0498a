//go:build rocm && linux

#include "../../csrc/rocm_smi/smi.c"
