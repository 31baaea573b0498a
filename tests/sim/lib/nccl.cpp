// nccl.cpp: ccl.cpp for the driver libcuda.so.1.

#include "ccl.h"

const char *const ccl::driver = "libcuda.so.1", *const ccl::queue = "cuLaunchHostFunc";
