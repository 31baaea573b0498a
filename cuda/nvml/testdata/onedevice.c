// An NVML of an old driver: one device, and only some of the functions. Calling a missing one would
// end the process.

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { OK = 0, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7 };
static int device;

typedef struct {
  char legacy[16];
  uint32_t domain, bus, slot, id, subsystem;
  char bus_id[32];
} pci_info;

typedef struct {
  uint32_t pid;
  uint64_t memory;
  uint32_t instance, compute;
} process;

int nvmlInit_v2(void) { return OK; }
int nvmlDeviceGetCount_v2(unsigned *n) {
  *n = 1;
  return OK;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **handle) {
  *handle = &device;
  return i == 0 ? OK : 2;
}
int nvmlDeviceGetUUID(void *d, char *uuid, unsigned size) {
  (void)d;
  snprintf(uuid, size, "GPU-01020304-0506-0708-090a-0b0c0d0e0f10");
  return OK;
}
int nvmlDeviceGetName(void *d, char *name, unsigned size) {
  (void)d;
  snprintf(name, size, "NVIDIA Made Up");
  return OK;
}
int nvmlDeviceGetPciInfo_v3(void *d, pci_info *p) {
  (void)d;
  *p = (pci_info){.domain = 1, .bus = 0x3b, .slot = 2, .bus_id = "00000001:3B:02.0"};
  return OK;
}
int nvmlDeviceGetPciInfo(void *d, pci_info *p) { return nvmlDeviceGetPciInfo_v3(d, p); }
int nvmlDeviceGetUtilizationRates(void *d, unsigned use[2]) {
  (void)d;
  use[0] = 70;
  use[1] = 20;
  return OK;
}
int nvmlDeviceGetMemoryInfo(void *d, uint64_t m[3]) { // total, free, used
  (void)d;
  m[0] = 1000, m[1] = 600, m[2] = 400;
  return OK;
}
int nvmlDeviceGetTemperature(void *d, int sensor, unsigned *t) {
  (void)d;
  *t = sensor == 0 ? 55 : 99;
  return OK;
}
int nvmlDeviceGetPowerUsage(void *d, unsigned *milliwatts) {
  (void)d;
  *milliwatts = 99500;
  return OK;
}
int nvmlDeviceGetClockInfo(void *d, int clock, unsigned *mhz) {
  (void)d;
  *mhz = 1000 + clock; // graphics 0, multiprocessors 1, memory 2
  return OK;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *d, unsigned long long *reasons) {
  (void)d;
  *reasons = 0x4;
  return OK;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, process *list) {
  (void)d;
  unsigned room = *n;
  *n = 2;
  if (room < 2)
    return INSUFFICIENT_SIZE;
  list[0] = (process){.pid = 2000000001, .memory = 123};
  list[1] = (process){.pid = 2000000002, .memory = UINT64_MAX};
  return OK;
}
int nvmlDeviceGetComputeRunningProcesses(void *d, unsigned *n, process *list) {
  (void)d, (void)n, (void)list;
  return NOT_SUPPORTED; // the first version, which newer ones have replaced
}
