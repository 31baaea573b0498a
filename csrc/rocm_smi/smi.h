// smi.h declares the C functions that package rocm/smi calls: they read the sensors of AMD devices
// through ROCm SMI, which is opened at run time. The prototypes of the library are in smi.c, so
// that no header of the vendor is needed.
//
// Functions return the library's status, 0 for success. They are called by one thread at a time.

#ifndef CONCORD_ROCM_SMI_H
#define CONCORD_ROCM_SMI_H

#include <stdint.h>

// Hidden, because with cuda/nvml a program exports all symbols that are not.
#pragma GCC visibility push(hidden)

// The values that can be read from a device, in the units of the library. A value is valid only if
// its bit of known is set.
enum {
  CONCORD_SMI_PCI,         // domain << 32 | bus << 8 | device << 3 | function
  CONCORD_SMI_UNIQUE,      // the serial number of the device
  CONCORD_SMI_BUSY,        // percent
  CONCORD_SMI_MEMORY_BUSY, // percent
  CONCORD_SMI_MEMORY_USED, // bytes
  CONCORD_SMI_MEMORY_TOTAL,
  CONCORD_SMI_TEMPERATURE, // thousandths of a degree Celsius, signed
  CONCORD_SMI_POWER,       // millionths of a watt
  CONCORD_SMI_POWER_LIMIT,
  CONCORD_SMI_FAN, // speed, from 0 to CONCORD_SMI_FAN_MAX
  CONCORD_SMI_FAN_MAX,
  CONCORD_SMI_CLOCK, // Hz
  CONCORD_SMI_MAX_CLOCK,
  CONCORD_SMI_MEMORY_CLOCK,
  CONCORD_SMI_MAX_MEMORY_CLOCK,
  CONCORD_SMI_ECC, // a bit for each part of the device that detects memory errors
  CONCORD_SMI_ECC_CORRECTED,
  CONCORD_SMI_ECC_UNCORRECTED,
  CONCORD_SMI_THROTTLE,     // reasons as bits that have the same meaning on every device
  CONCORD_SMI_THROTTLE_ANY, // reasons as bits whose meaning depends on the kind of device
  CONCORD_SMI_VALUES
};

typedef struct concord_smi_sample {
  uint64_t known; // 1 << CONCORD_SMI_*
  uint64_t value[CONCORD_SMI_VALUES];
  char name[128]; // "" is unknown
} concord_smi_sample;

typedef struct concord_smi_process {
  uint32_t pid;
  uint32_t known;  // whether memory is known
  uint64_t memory; // bytes on that device
} concord_smi_process;

typedef struct concord_smi concord_smi; // an opened library; lives as long as the process

// concord_smi_open opens and initializes the library. If it fails, it returns NULL, and text is the
// error of the dynamic loader, or "" if the initialization failed with *status.
concord_smi *concord_smi_open(const char *path, int32_t *status, char *text, uint64_t size);

// concord_smi_count returns the number of devices in *count.
int32_t concord_smi_count(concord_smi *smi, uint32_t *count);

// concord_smi_read reads all sensors of a device. A value that cannot be read is unknown.
void concord_smi_read(concord_smi *smi, uint32_t device, concord_smi_sample *out);

// concord_smi_processes lists the processes that compute on a device. *count is their number, of
// which at most room are written.
int32_t concord_smi_processes(concord_smi *smi, uint32_t device, concord_smi_process *out,
                              uint32_t room, uint32_t *count);

#pragma GCC visibility pop

#endif
