// rccl.cpp: ccl.cpp for the driver libamdhip64.so.5.

#include "ccl.h"

const char *const ccl::driver = "libamdhip64.so.5", *const ccl::queue = "hipLaunchHostFunc";
