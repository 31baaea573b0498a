// smi.c reads ROCm SMI. See smi.h. Each function is looked up separately: if a version of the
// library lacks one, its value is unknown.

#include "smi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, NOT_SUPPORTED = 2, OUT_OF_RESOURCES = 5 };
enum { CLOCK_SYSTEM = 0, CLOCK_MEMORY = 4 };
enum { EDGE = 0, JUNCTION = 1 }; // sensors of temperature; newer devices lack the first
enum { CURRENT = 0, VRAM = 0, FIRST_SENSOR = 0 };

typedef struct {
  uint64_t corrected, uncorrected;
} error_count;

typedef struct {
  uint32_t pid, pasid;
  uint64_t vram, sdma;
  uint32_t occupancy, evicted; // evicted was added later, in the padding
} process_info;

// The functions that are used. A block of the device is a 64-bit enumeration, all others have 32.
#define FUNCTIONS(X)                                                                               \
  X(init, (uint64_t flags))                                                                        \
  X(num_monitor_devices, (uint32_t * count))                                                       \
  X(dev_name_get, (uint32_t device, char *name, size_t size))                                      \
  X(dev_pci_id_get, (uint32_t device, uint64_t * id))                                              \
  X(dev_unique_id_get, (uint32_t device, uint64_t * id))                                           \
  X(dev_busy_percent_get, (uint32_t device, uint32_t * percent))                                   \
  X(dev_memory_busy_percent_get, (uint32_t device, uint32_t * percent))                            \
  X(dev_memory_usage_get, (uint32_t device, uint32_t kind, uint64_t * bytes))                      \
  X(dev_memory_total_get, (uint32_t device, uint32_t kind, uint64_t * bytes))                      \
  X(dev_temp_metric_get, (uint32_t device, uint32_t sensor, uint32_t metric, int64_t * value))     \
  X(dev_power_ave_get, (uint32_t device, uint32_t sensor, uint64_t * power))                       \
  X(dev_current_socket_power_get, (uint32_t device, uint64_t * power))                             \
  X(dev_power_cap_get, (uint32_t device, uint32_t sensor, uint64_t * power))                       \
  X(dev_fan_speed_get, (uint32_t device, uint32_t sensor, int64_t * speed))                        \
  X(dev_fan_speed_max_get, (uint32_t device, uint32_t sensor, uint64_t * speed))                   \
  X(dev_gpu_clk_freq_get, (uint32_t device, uint32_t clock, void *frequencies))                    \
  X(dev_ecc_enabled_get, (uint32_t device, uint64_t * blocks))                                     \
  X(dev_ecc_count_get, (uint32_t device, uint64_t block, error_count * count))                     \
  X(dev_gpu_metrics_info_get, (uint32_t device, void *metrics))                                    \
  X(compute_process_info_get, (process_info * list, uint32_t * count))                             \
  X(compute_process_gpus_get, (uint32_t pid, uint32_t * devices, uint32_t * count))                \
  X(compute_process_info_by_device_get, (uint32_t pid, uint32_t device, process_info * info))

struct concord_smi {
#define MEMBER(name, parameters) int32_t(*name) parameters;
  FUNCTIONS(MEMBER)
#undef MEMBER
};

concord_smi *concord_smi_open(const char *path, int32_t *status, char *text, uint64_t size) {
  *status = OK;
  text[0] = '\0';
  // Never closed: the library has state and threads of its own.
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    const char *why = dlerror();
    snprintf(text, (size_t)size, "%s", why != NULL ? why : "cannot be opened");
    return NULL;
  }
  concord_smi *smi = calloc(1, sizeof *smi);
  if (smi == NULL) {
    *status = OUT_OF_RESOURCES;
    return NULL;
  }
#define LOOK_UP(name, parameters) *(void **)&smi->name = dlsym(library, "rsmi_" #name);
  FUNCTIONS(LOOK_UP)
#undef LOOK_UP
  if (smi->init == NULL || smi->num_monitor_devices == NULL)
    snprintf(text, (size_t)size, "%s: no rsmi_init in it", path);
  else
    *status = smi->init(0);
  if (text[0] == '\0' && *status == OK)
    return smi;
  free(smi);
  return NULL;
}

int32_t concord_smi_count(concord_smi *smi, uint32_t *count) {
  *count = 0;
  return smi->num_monitor_devices(count);
}

static void put(concord_smi_sample *out, int what, uint64_t value) {
  out->known |= UINT64_C(1) << what;
  out->value[what] = value;
}

// READ calls a function that writes a number of that type to its last argument, and stores the
// number.
#define READ(what, type, function, ...)                                                            \
  do {                                                                                             \
    type value = 0;                                                                                \
    if (smi->function != NULL && smi->function(__VA_ARGS__, &value) == OK)                         \
      put(out, what, (uint64_t)value);                                                             \
  } while (0)

static int known(const concord_smi_sample *out, int what) { return out->known >> what & 1; }

// clocks reads the current and the highest clock rate. Version 6 of the library has inserted a bool
// at the beginning of its structure, and distributors build it without version numbers; but the two
// layouts can be told apart: the first words of the older one are a count and an index
// below it, those of the newer one 0 or 1 and a count.
static void clocks(concord_smi *smi, uint32_t device, uint32_t clock, concord_smi_sample *out,
                   int now, int most) {
  uint64_t words[64] = {0}; // 35 are used
  uint32_t head[4];
  if (smi->dev_gpu_clk_freq_get == NULL || smi->dev_gpu_clk_freq_get(device, clock, words) != OK)
    return;
  memcpy(head, words, sizeof head);
  uint32_t count, current;
  const uint64_t *frequencies;
  if (head[0] >= 1 && head[0] <= 32 && head[1] < head[0]) {
    count = head[0], current = head[1], frequencies = words + 1;
  } else if ((head[0] & 0xff) <= 1 && head[1] >= 1 && head[1] <= 33) {
    count = head[1], current = head[2], frequencies = words + 2;
  } else {
    return;
  }
  uint64_t highest = 0;
  for (uint32_t i = 0; i < count; i++)
    if (frequencies[i] > highest)
      highest = frequencies[i];
  if (highest > 0)
    put(out, most, highest);
  if (current < count && frequencies[current] > 0)
    put(out, now, frequencies[current]);
}

// throttling reads the reasons why the clock is reduced, from a table that has grown from 96 bytes
// to several thousand. The two fields have kept their offsets. All bits set means unknown: the
// kernel writes that, and it remains if the table is too old to have the field.
static void throttling(concord_smi *smi, uint32_t device, concord_smi_sample *out) {
  enum { DEPENDENT = 68, INDEPENDENT = 112, ROOM = 32 << 10 };
  uint32_t dependent;
  uint64_t independent;
  unsigned char *table = smi->dev_gpu_metrics_info_get != NULL ? malloc(ROOM) : NULL;
  if (table == NULL)
    return;
  memset(table, 0xff, ROOM);
  if (smi->dev_gpu_metrics_info_get(device, table) == OK) {
    memcpy(&dependent, table + DEPENDENT, sizeof dependent);
    memcpy(&independent, table + INDEPENDENT, sizeof independent);
    if (dependent != UINT32_MAX)
      put(out, CONCORD_SMI_THROTTLE_ANY, dependent);
    if (independent != UINT64_MAX)
      put(out, CONCORD_SMI_THROTTLE, independent);
  }
  free(table);
}

// errors adds up the memory errors of all parts that detect them and can be read.
static void errors(concord_smi *smi, uint32_t device, concord_smi_sample *out) {
  READ(CONCORD_SMI_ECC, uint64_t, dev_ecc_enabled_get, device);
  if (!known(out, CONCORD_SMI_ECC) || smi->dev_ecc_count_get == NULL)
    return;
  error_count sum = {0, 0};
  int any = 0;
  for (int bit = 0; bit < 63; bit++) { // the last one is reserved
    uint64_t block = UINT64_C(1) << bit;
    error_count count = {0, 0};
    if (!(out->value[CONCORD_SMI_ECC] & block) || smi->dev_ecc_count_get(device, block, &count))
      continue;
    sum.corrected += count.corrected;
    sum.uncorrected += count.uncorrected;
    any = 1;
  }
  if (any) {
    put(out, CONCORD_SMI_ECC_CORRECTED, sum.corrected);
    put(out, CONCORD_SMI_ECC_UNCORRECTED, sum.uncorrected);
  }
}

void concord_smi_read(concord_smi *smi, uint32_t device, concord_smi_sample *out) {
  memset(out, 0, sizeof *out);
  if (smi->dev_name_get == NULL || smi->dev_name_get(device, out->name, sizeof out->name) != OK)
    out->name[0] = '\0';
  out->name[sizeof out->name - 1] = '\0';
  READ(CONCORD_SMI_PCI, uint64_t, dev_pci_id_get, device);
  READ(CONCORD_SMI_UNIQUE, uint64_t, dev_unique_id_get, device);
  READ(CONCORD_SMI_BUSY, uint32_t, dev_busy_percent_get, device);
  READ(CONCORD_SMI_MEMORY_BUSY, uint32_t, dev_memory_busy_percent_get, device);
  READ(CONCORD_SMI_MEMORY_USED, uint64_t, dev_memory_usage_get, device, VRAM);
  READ(CONCORD_SMI_MEMORY_TOTAL, uint64_t, dev_memory_total_get, device, VRAM);
  READ(CONCORD_SMI_TEMPERATURE, int64_t, dev_temp_metric_get, device, EDGE, CURRENT);
  if (!known(out, CONCORD_SMI_TEMPERATURE))
    READ(CONCORD_SMI_TEMPERATURE, int64_t, dev_temp_metric_get, device, JUNCTION, CURRENT);
  READ(CONCORD_SMI_POWER, uint64_t, dev_power_ave_get, device, FIRST_SENSOR);
  if (!known(out, CONCORD_SMI_POWER))
    READ(CONCORD_SMI_POWER, uint64_t, dev_current_socket_power_get, device);
  READ(CONCORD_SMI_POWER_LIMIT, uint64_t, dev_power_cap_get, device, FIRST_SENSOR);
  READ(CONCORD_SMI_FAN, int64_t, dev_fan_speed_get, device, FIRST_SENSOR);
  READ(CONCORD_SMI_FAN_MAX, uint64_t, dev_fan_speed_max_get, device, FIRST_SENSOR);
  clocks(smi, device, CLOCK_SYSTEM, out, CONCORD_SMI_CLOCK, CONCORD_SMI_MAX_CLOCK);
  clocks(smi, device, CLOCK_MEMORY, out, CONCORD_SMI_MEMORY_CLOCK, CONCORD_SMI_MAX_MEMORY_CLOCK);
  errors(smi, device, out);
  throttling(smi, device, out);
}

// on reports whether a process computes on a device, and how much of its memory it uses if that
// is known: an older library reports only the sum over all devices.
static int on(concord_smi *smi, const process_info *all, uint32_t device,
              concord_smi_process *out) {
  uint32_t devices[256], count = sizeof devices / sizeof devices[0];
  if (smi->compute_process_gpus_get(all->pid, devices, &count) != OK)
    return 0; // it has ended
  if (count > sizeof devices / sizeof devices[0])
    count = sizeof devices / sizeof devices[0];
  int found = 0;
  for (uint32_t i = 0; i < count; i++)
    found |= devices[i] == device;
  process_info here = {0};
  *out = (concord_smi_process){all->pid, 0, 0};
  if (smi->compute_process_info_by_device_get != NULL) {
    if (smi->compute_process_info_by_device_get(all->pid, device, &here) == OK)
      out->known = 1, out->memory = here.vram;
  } else if (count == 1) {
    out->known = 1, out->memory = all->vram;
  }
  return found;
}

int32_t concord_smi_processes(concord_smi *smi, uint32_t device, concord_smi_process *out,
                              uint32_t room, uint32_t *count) {
  *count = 0;
  if (smi->compute_process_info_get == NULL || smi->compute_process_gpus_get == NULL)
    return NOT_SUPPORTED;
  uint32_t n = 0;
  int32_t status = smi->compute_process_info_get(NULL, &n);
  if (status != OK || n == 0)
    return status;
  n += 16; // further processes may start meanwhile
  process_info *list = calloc(n, sizeof *list);
  if (list == NULL)
    return OUT_OF_RESOURCES;
  uint32_t written = n;
  status = smi->compute_process_info_get(list, &written);
  for (uint32_t i = 0; status == OK && i < written && i < n; i++) {
    concord_smi_process p;
    if (!on(smi, &list[i], device, &p))
      continue;
    if (*count < room)
      out[*count] = p;
    ++*count;
  }
  free(list);
  return status;
}
