// An NVML on a machine without the driver: Init fails, and nothing else may be called.

#include <stdlib.h>

int nvmlInit_v2(void) { return 9; } // NVML_ERROR_DRIVER_NOT_LOADED
int nvmlDeviceGetCount_v2(unsigned *n) {
  (void)n;
  abort();
}
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **device) {
  (void)i;
  (void)device;
  abort();
}
const char *nvmlErrorString(int code) {
  (void)code;
  abort();
}
