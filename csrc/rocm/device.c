// device.c describes devices, opens them, and allocates their memory.

#include "state.h"

static int32_t rocm_device_count(cs_lib *lib, int32_t *count, cs_error *err) {
  int32_t status = start(lib, err);
  int n = 0;
  if (status == CS_OK) {
    hipError code = lib->hip.hipGetDeviceCount(&n);
    if (code == HIP_NO_DEVICE) // not an error: there are 0
      n = 0;
    else
      status = check(lib, code, "hipGetDeviceCount", err);
  }
  if (status == CS_OK)
    *count = n;
  return status;
}

static int32_t device_at(cs_lib *lib, int32_t ordinal, hipDevice *out, cs_error *err) {
  int32_t status = start(lib, err);
  return status != CS_OK ? status
                         : check(lib, lib->hip.hipDeviceGet(out, ordinal), "hipDeviceGet", err);
}

// attribute returns one property, or 0 if this driver does not know it.
static int32_t attribute(cs_lib *lib, hipDevice device, int which) {
  int value = 0;
  return lib->hip.hipDeviceGetAttribute(&value, which, device) == HIP_OK ? value : 0;
}

// architecture copies the name of the architecture, which HIP returns only in its structure of
// properties. The layout of that structure differs between versions, so the function searches it:
// the name is the only text after the device's name, at the beginning, that starts with "gfx".
static int32_t architecture(cs_lib *lib, hipDevice device, char *out, size_t bytes, cs_error *err) {
  enum { name_bytes = 256, room = 16384 }; // HIP 7 has 1472 bytes
  out[0] = '\0';
  if (lib->hip.hipGetDeviceProperties == NULL)
    return CS_OK;
  unsigned char *p = calloc(1, room);
  if (p == NULL)
    return no_host_memory(err);
  int32_t status =
      check(lib, lib->hip.hipGetDeviceProperties(p, device), "hipGetDeviceProperties", err);
  for (size_t i = name_bytes; status == CS_OK && i + bytes < room; i++) {
    if (memcmp(p + i, "gfx", 3) != 0)
      continue;
    size_t n = strspn((const char *)p + i, "abcdefghijklmnopqrstuvwxyz0123456789:+-");
    if (n <= 3 || n >= bytes || p[i + n] != '\0')
      continue;
    memcpy(out, p + i, n + 1);
    break;
  }
  free(p);
  return status;
}

static int has_async_alloc(cs_lib *lib, hipDevice device) {
  return lib->hip.hipMallocAsync != NULL && lib->hip.hipFreeAsync != NULL &&
         attribute(lib, device, ATTR_MEMORY_POOLS) != 0;
}

// has_managed reports whether the device has managed memory that host and device may use at the
// same time. Other managed memory
// is not offered: the host must not access it while work runs on the device, and the shim could not
// prevent that.
static int has_managed(cs_lib *lib, hipDevice device) {
  return lib->hip.hipMallocManaged != NULL && attribute(lib, device, ATTR_MANAGED_MEMORY) != 0 &&
         attribute(lib, device, ATTR_CONCURRENT_MANAGED) != 0;
}

// name_device writes the identifiers; those that the driver does not report stay empty.
static void name_device(cs_lib *lib, hipDevice device, cs_info *out) {
  hipUUID uuid = {{0}};
  static const hipUUID none;
  if (lib->hip.hipDeviceGetUuid != NULL && lib->hip.hipDeviceGetUuid(&uuid, device) == HIP_OK &&
      memcmp(&uuid, &none, sizeof none) != 0) {
    char *at = out->uuid;
    for (int i = 0; i < 16; i++)
      at += sprintf(at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid.bytes[i]);
  }
  if (lib->hip.hipDeviceGetPCIBusId == NULL ||
      lib->hip.hipDeviceGetPCIBusId(out->pci, sizeof out->pci, device) != HIP_OK)
    out->pci[0] = '\0';
  for (char *c = out->pci; *c != '\0'; c++)
    if (*c >= 'A' && *c <= 'F')
      *c += 'a' - 'A';
}

static void limits(cs_lib *lib, hipDevice d, cs_info *out) {
  for (int i = 0; i < 3; i++) {
    out->max_group[i] = attribute(lib, d, ATTR_MAX_BLOCK_DIM_X + i);
    out->max_groups[i] = attribute(lib, d, ATTR_MAX_GRID_DIM_X + i);
  }
  out->max_threads = attribute(lib, d, ATTR_MAX_THREADS_PER_BLOCK);
  out->max_threads_multiprocessor = attribute(lib, d, ATTR_MAX_THREADS_PER_MULTIPROCESSOR);
  out->max_blocks_multiprocessor = attribute(lib, d, ATTR_MAX_BLOCKS_PER_MULTIPROCESSOR);
  out->registers_multiprocessor = attribute(lib, d, ATTR_REGISTERS_PER_MULTIPROCESSOR);
  out->shared_block = (uint64_t)attribute(lib, d, ATTR_SHARED_PER_BLOCK);
  out->shared_block_optin = out->shared_block; // HIP has no additional shared memory to request
  out->shared_multiprocessor = (uint64_t)attribute(lib, d, ATTR_SHARED_PER_MULTIPROCESSOR);
  if (out->shared_multiprocessor == 0)
    out->shared_multiprocessor = (uint64_t)attribute(lib, d, ATTR_AMD_SHARED_PER_MULTIPROCESSOR);
}

static int32_t rocm_device_info(cs_lib *lib, int32_t ordinal, cs_info *out, cs_error *err) {
  hipDevice d;
  int32_t status = device_at(lib, ordinal, &d, err);
  if (status != CS_OK)
    return status;
  cs_info info;
  memset(&info, 0, sizeof info);
  status = check(lib, lib->hip.hipDeviceGetName(info.name, sizeof info.name - 1, d),
                 "hipDeviceGetName", err);
  if (status != CS_OK)
    return status;
  size_t total = 0;
  status = check(lib, lib->hip.hipDeviceTotalMem(&total, d), "hipDeviceTotalMem", err);
  if (status != CS_OK)
    return status;
  status = architecture(lib, d, info.arch, sizeof info.arch, err);
  if (status != CS_OK)
    return status;
  // HIP limits a single allocation only by the size of the memory.
  info.total_memory = info.max_allocation = total;
  name_device(lib, d, &info);
  limits(lib, d, &info);
  info.major = attribute(lib, d, ATTR_CAPABILITY_MAJOR);
  info.minor = attribute(lib, d, ATTR_CAPABILITY_MINOR);
  info.unified = attribute(lib, d, ATTR_INTEGRATED) != 0;
  info.kind = info.unified ? CS_KIND_INTEGRATED : CS_KIND_DISCRETE;
  info.multiprocessors = attribute(lib, d, ATTR_MULTIPROCESSORS);
  info.warp = attribute(lib, d, ATTR_WARP_SIZE);
  info.clock_khz = attribute(lib, d, ATTR_CLOCK_RATE);
  info.memory_clock_khz = attribute(lib, d, ATTR_MEMORY_CLOCK_RATE);
  info.memory_bus_bits = attribute(lib, d, ATTR_MEMORY_BUS_WIDTH);
  info.simulated = lib->simulated;
  info.managed = info.concurrent_managed = has_managed(lib, d);
  info.async_alloc = has_async_alloc(lib, d);
  info.cooperative = attribute(lib, d, ATTR_COOPERATIVE_LAUNCH) != 0;
  *out = info;
  return CS_OK;
}

static int32_t rocm_peer_access(cs_lib *lib, int32_t to, int32_t from, int32_t *can,
                                cs_error *err) {
  hipDevice a, b;
  int32_t status = device_at(lib, to, &a, err);
  if (status == CS_OK)
    status = device_at(lib, from, &b, err);
  int yes = 1;
  if (status == CS_OK && a != b) {
    if (lib->hip.hipDeviceCanAccessPeer == NULL)
      return lacks(err, "hipDeviceCanAccessPeer");
    status = check(lib, lib->hip.hipDeviceCanAccessPeer(&yes, a, b), "hipDeviceCanAccessPeer", err);
  }
  if (status == CS_OK)
    *can = yes != 0;
  return status;
}

// -- opening --

// reset resets a lost device. Other users have lost their work on it already. If the device does
// not become current, nothing is reset, as that would reset another device.
static int32_t reset(cs_device *d, cs_error *err) {
  hipError code = d->lib->hip.hipSetDevice(d->handle);
  if (code == HIP_OK)
    code = d->lib->hip.hipDeviceReset();
  return check(d->lib, code, "hipDeviceReset", err);
}

static int32_t rocm_device_open(cs_lib *lib, int32_t ordinal, cs_device **dev, cs_error *err) {
  hipDevice handle;
  int32_t status = device_at(lib, ordinal, &handle, err);
  if (status != CS_OK)
    return status;
  cs_device *d = calloc(1, sizeof *d);
  if (d == NULL)
    return no_host_memory(err);
  d->lib = lib;
  d->handle = handle;
  status = enter(d, err);
  size_t left, total; // this query makes HIP initialize the device, which fails if the device does not work
  if (status == CS_OK)
    status = CALL(d, hipMemGetInfo, &left, &total);
  if (status == CS_OK)
    status = architecture(lib, handle, d->arch, sizeof d->arch, err);
  if (status != CS_OK) {
    cs_error ignored;
    if (atomic_load(&d->lost)) // clears the state of an earlier use
      reset(d, &ignored);
    free(d);
    return status;
  }
  int lowest = 0, highest = 0;
  if (lib->hip.hipDeviceGetStreamPriorityRange(&lowest, &highest) == HIP_OK) {
    d->lowest = lowest;
    d->highest = highest;
  }
  d->shared = attribute(lib, handle, ATTR_SHARED_PER_BLOCK);
  d->async_alloc = has_async_alloc(lib, handle);
  d->managed = has_managed(lib, handle);
  pthread_mutex_init(&d->lock, NULL);
  pthread_mutex_init(&d->blas_lock, NULL);
  *dev = d;
  return CS_OK;
}

static int32_t rocm_device_close(cs_device *d, cs_error *err) {
  cs_error ignored;
  enter(d, &ignored); // HIP finds the device from the address
  if (d->blas_handle != NULL)
    d->rocblas.rocblas_destroy_handle(d->blas_handle);
  for (int timing = 0; timing < 2; timing++)
    for (cs_event *e = d->events[timing], *next; e != NULL; e = next) {
      next = e->next;
      d->lib->hip.hipEventDestroy(e->handle);
      free(e);
    }
  // There is no context to release: HIP has one context per device for the whole process.
  int32_t status = atomic_load(&d->lost) ? reset(d, err) : CS_OK;
  pthread_mutex_destroy(&d->lock);
  pthread_mutex_destroy(&d->blas_lock);
  free(d);
  return status;
}

static void rocm_device_handles(cs_device *d, uint64_t *device, uint64_t *context) {
  *device = (uint64_t)d->handle;
  *context = 0;
}

static int32_t rocm_memory_info(cs_device *d, uint64_t *free_bytes, uint64_t *total_bytes,
                                cs_error *err) {
  size_t left = 0, total = 0;
  int32_t status = enter(d, err);
  if (status == CS_OK)
    status = CALL(d, hipMemGetInfo, &left, &total);
  if (status == CS_OK) {
    *free_bytes = left;
    *total_bytes = total;
  }
  return status;
}

// -- memory --

// alloc_pinned relies on HIP's property that host and device use the same address.
static int32_t alloc_pinned(cs_device *d, uint64_t bytes, cs_memory *out, cs_error *err) {
  void *host = NULL;
  hipDeviceptr address = 0;
  int32_t status = CALL(d, hipHostMalloc, &host, bytes, HOST_PORTABLE | HOST_DEVICEMAP);
  if (status != CS_OK)
    return status;
  status = CALL(d, hipHostGetDevicePointer, &address, host, 0);
  if (status == CS_OK && address != (hipDeviceptr)(uintptr_t)host)
    status = tell(err, CS_UNSUPPORTED, 0, "host and device do not use the same addresses");
  if (status != CS_OK) {
    d->lib->hip.hipHostFree(host);
    return status;
  }
  out->address = out->host = address;
  return CS_OK;
}

static int32_t rocm_alloc(cs_device *d, uint8_t kind, uint64_t bytes, cs_memory *out,
                          cs_error *err) {
  if (bytes == 0)
    return tell(err, CS_INVALID, 0, "allocation of 0 bytes");
  int32_t status = enter(d, err);
  if (status != CS_OK)
    return status;
  hipDeviceptr address = 0;
  switch (kind) {
  case CS_ON_DEVICE:
    status = CALL(d, hipMalloc, &address, bytes);
    if (status == CS_OK)
      *out = (cs_memory){address, 0};
    return status;
  case CS_PINNED:
    return alloc_pinned(d, bytes, out, err);
  case CS_UNIFIED:
    if (!d->managed)
      return tell(err, CS_UNSUPPORTED, 0,
                  "this device has no memory that host and device may use at the same time");
    status = CALL(d, hipMallocManaged, &address, bytes, ATTACH_GLOBAL);
    if (status == CS_OK)
      *out = (cs_memory){address, address};
    return status;
  }
  return tell(err, CS_INVALID, 0, "no memory of kind %d", kind);
}

static int32_t rocm_free(cs_device *d, uint8_t kind, uint64_t address, cs_error *err) {
  enter(d, err); // an error does not matter: HIP finds the device from the address
  if (kind == CS_PINNED)
    return CALL(d, hipHostFree, (void *)(uintptr_t)address);
  return CALL(d, hipFree, address);
}

static int32_t rocm_alloc_on(cs_stream *s, uint64_t bytes, uint64_t *address, cs_error *err) {
  cs_device *d = s->dev;
  if (!d->async_alloc)
    return tell(err, CS_UNSUPPORTED, 0, "this device has no memory pools");
  hipDeviceptr p = 0;
  int32_t status = enter(d, err);
  if (status == CS_OK)
    status = CALL(d, hipMallocAsync, &p, bytes, s->handle);
  if (status == CS_OK)
    *address = p;
  return status;
}

static int32_t rocm_free_on(cs_stream *s, uint64_t address, cs_error *err) {
  cs_device *d = s->dev;
  if (!d->async_alloc)
    return tell(err, CS_UNSUPPORTED, 0, "this device has no memory pools");
  enter(d, err); // as in rocm_free
  return CALL(d, hipFreeAsync, address, s->handle);
}
