// A librocm_smi64 for tests: two devices, and a third one without any values. It is built with two
// versions of the ABI: -DVERSION=5 and 6. -DINIT=n makes rsmi_init return n.

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifndef INIT
#define INIT 0
#endif

enum { OK = 0, NOT_SUPPORTED = 2, INVALID = 1, INSUFFICIENT = 11 };
#define EACH(device)                                                                               \
  if ((device) > 2)                                                                                \
    return INVALID;                                                                                \
  if ((device) == 2)                                                                               \
  return NOT_SUPPORTED

int rsmi_init(uint64_t flags) { return flags != 0 ? INVALID : INIT; }
int rsmi_num_monitor_devices(uint32_t *n) {
  *n = 3;
  return OK;
}
int rsmi_dev_name_get(uint32_t d, char *name, size_t size) {
  EACH(d);
  snprintf(name, size, "Fake Instinct %u", d);
  return OK;
}
int rsmi_dev_pci_id_get(uint32_t d, uint64_t *id) {
  EACH(d);
  *id = (uint64_t)d << 32 | (0xc0 + d) << 8 | 3 << 3 | 1;
  return OK;
}
int rsmi_dev_unique_id_get(uint32_t d, uint64_t *id) {
  EACH(d);
  *id = 0x1234abcd00000000 + d;
  return OK;
}
int rsmi_dev_busy_percent_get(uint32_t d, uint32_t *p) {
  EACH(d);
  *p = 90 + d;
  return OK;
}
int rsmi_dev_memory_busy_percent_get(uint32_t d, uint32_t *p) {
  EACH(d);
  *p = d == 0 ? 30 : 0xffffffff; // the value of some kernels for unknown
  return OK;
}
int rsmi_dev_memory_usage_get(uint32_t d, uint32_t kind, uint64_t *n) {
  EACH(d);
  *n = kind == 0 ? (1 + d) * (UINT64_C(1) << 30) : 7;
  return OK;
}
int rsmi_dev_memory_total_get(uint32_t d, uint32_t kind, uint64_t *n) {
  EACH(d);
  *n = kind == 0 ? UINT64_C(64) << 30 : 7;
  return OK;
}
int rsmi_dev_temp_metric_get(uint32_t d, uint32_t sensor, uint32_t metric, int64_t *t) {
  EACH(d);
  if (metric != 0 || (d == 1 && sensor == 0)) // a newer device has no edge sensor
    return NOT_SUPPORTED;
  *t = d == 0 ? (sensor == 0 ? 41500 : 60000) : -2000;
  return OK;
}
int rsmi_dev_power_ave_get(uint32_t d, uint32_t sensor, uint64_t *p) {
  EACH(d);
  if (d == 1 || sensor != 0)
    return NOT_SUPPORTED;
  *p = 123500000;
  return OK;
}
#if VERSION >= 6
int rsmi_dev_current_socket_power_get(uint32_t d, uint64_t *p) {
  EACH(d);
  *p = 456000000;
  return OK;
}
#endif
int rsmi_dev_power_cap_get(uint32_t d, uint32_t sensor, uint64_t *p) {
  EACH(d);
  *p = 300000000 + sensor;
  return OK;
}
int rsmi_dev_fan_speed_get(uint32_t d, uint32_t sensor, int64_t *speed) {
  EACH(d);
  if (d == 1 || sensor != 0)
    return NOT_SUPPORTED; // cooled by the rack
  *speed = 51;
  return OK;
}
int rsmi_dev_fan_speed_max_get(uint32_t d, uint32_t sensor, uint64_t *speed) {
  EACH(d);
  *speed = 255 + sensor;
  return OK;
}

typedef struct {
#if VERSION >= 6
  bool has_deep_sleep;
#endif
  uint32_t count, current;
#if VERSION >= 6
  uint64_t hz[33];
#else
  uint64_t hz[32];
#endif
} frequencies;

int rsmi_dev_gpu_clk_freq_get(uint32_t d, uint32_t clock, frequencies *f) {
  EACH(d);
  if (clock == 0) {
    *f = (frequencies){.count = 3, .current = 1, .hz = {500000000, 1502000000, 1700000000}};
#if VERSION >= 6
    f->has_deep_sleep = d == 1;
#endif
  } else if (clock == 4) {
    // Only one frequency; device 1 does not know the current one.
    *f = (frequencies){.count = 1, .current = d == 0 ? 0 : 0xffffffff, .hz = {1600000000}};
  } else {
    return NOT_SUPPORTED;
  }
  return OK;
}
int rsmi_dev_ecc_enabled_get(uint32_t d, uint64_t *blocks) {
  EACH(d);
  *blocks = d == 0 ? 0x7 : 0;
  return OK;
}
int rsmi_dev_ecc_count_get(uint32_t d, uint64_t block, uint64_t count[2]) {
  EACH(d);
  if (block == 2)
    return NOT_SUPPORTED; // it detects errors, but the counter cannot be read
  count[0] = 10 * block;
  count[1] = block;
  return OK;
}

// The table of metrics, with only the two fields that are used.
int rsmi_dev_gpu_metrics_info_get(uint32_t d, unsigned char *table) {
  EACH(d);
#if VERSION >= 6
  uint64_t independent = d == 0 ? UINT64_C(1) << 36 | 1 : 0;
  memset(table, 0, 2000);
  memcpy(table + 112, &independent, sizeof independent);
#else
  memset(table, 0, 96);
#endif
  uint32_t dependent = d == 0 ? 0x400 : 0;
  memcpy(table + 68, &dependent, sizeof dependent);
  return OK;
}

typedef struct {
  uint32_t pid, pasid;
  uint64_t vram, sdma;
  uint32_t occupancy;
} process;

int rsmi_compute_process_info_get(process *list, uint32_t *n) {
  uint32_t room = *n;
  *n = 3;
  if (list == NULL)
    return OK;
  if (room < 3)
    return INSUFFICIENT;
  for (uint32_t i = 0; i < 3; i++)
    list[i] = (process){.pid = 2000000001 + i, .vram = 100 * (i + 1)};
  return OK;
}
// The first computes on device 0, the second on both, the third has ended.
int rsmi_compute_process_gpus_get(uint32_t pid, uint32_t *devices, uint32_t *n) {
  if (pid == 2000000003)
    return 10;
  if (*n < 2)
    return INSUFFICIENT;
  *n = pid == 2000000001 ? 1 : 2;
  devices[0] = 0;
  if (*n == 2)
    devices[1] = 1;
  return OK;
}
#if VERSION >= 6
int rsmi_compute_process_info_by_device_get(uint32_t pid, uint32_t d, process *p) {
  *p = (process){.pid = pid, .vram = pid - 2000000000 + 1000 * d};
  return OK;
}
#endif
