// device.c describes devices, opens them, and allocates their memory.

#include "load.h"

static int32_t gpu_device_count(cs_lib *lib, int32_t *count, cs_error *err) {
  int32_t status = start(lib, err);
  int n = 0;
  if (status == CS_OK) {
    int code = lib->api.device_count(&n);
    if (code != 0 && code == lib->vendor->no_device)
      n = 0;
    else
      status = check(lib, code, API(device_count), err);
  }
  if (status == CS_OK)
    *count = n;
  return status;
}

static int32_t device_at(cs_lib *lib, int32_t ordinal, int *out, cs_error *err) {
  int32_t status = start(lib, err);
  return status != CS_OK ? status : check(lib, lib->api.device(out, ordinal), API(device), err);
}

// numbered returns the property of a number, or 0 if this driver does not know it.
static int32_t numbered(cs_lib *lib, int device, int number) {
  int value = 0;
  return number != 0 && lib->api.device_attribute(&value, number, device) == 0 ? value : 0;
}

static int32_t attribute(cs_lib *lib, int device, int which) {
  return numbered(lib, device, lib->vendor->attributes[which]);
}

static int has_async_alloc(cs_lib *lib, int device) {
  return lib->api.alloc_async != NULL && lib->api.free_async != NULL &&
         attribute(lib, device, ATTR_MEMORY_POOLS) != 0;
}

// has_managed reports whether the device has managed memory that host and device may use at the
// same time. Other managed memory (under WSL, on most Jetsons) is not offered: if the host accesses
// it while work runs on the device, a signal ends the process, and the shim could not prevent that.
static int has_managed(cs_lib *lib, int device) {
  return lib->api.alloc_managed != NULL && attribute(lib, device, ATTR_MANAGED_MEMORY) != 0 &&
         attribute(lib, device, ATTR_CONCURRENT_MANAGED) != 0;
}

// name_device writes the identifiers; those that the driver does not report stay empty.
static void name_device(cs_lib *lib, int device, cs_info *out) {
  unsigned char uuid[16] = {0};
  static const unsigned char none[16]; // what HIP reports for an unknown one
  if (lib->api.device_uuid != NULL && lib->api.device_uuid(uuid, device) == 0 &&
      memcmp(uuid, none, sizeof none) != 0) {
    char *at = out->uuid;
    for (int i = 0; i < 16; i++)
      at += sprintf(at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid[i]);
  }
  if (lib->api.device_pci == NULL || lib->api.device_pci(out->pci, sizeof out->pci, device) != 0)
    out->pci[0] = '\0';
  for (char *c = out->pci; *c != '\0'; c++)
    if (*c >= 'A' && *c <= 'F')
      *c += 'a' - 'A';
}

static void limits(cs_lib *lib, int d, cs_info *out) {
  const int *numbers = lib->vendor->attributes;
  for (int i = 0; i < 3; i++) {
    out->max_group[i] = numbered(lib, d, numbers[ATTR_MAX_BLOCK_DIM_X] + i);
    out->max_groups[i] = numbered(lib, d, numbers[ATTR_MAX_GRID_DIM_X] + i);
  }
  out->max_threads = attribute(lib, d, ATTR_MAX_THREADS_PER_BLOCK);
  out->max_threads_multiprocessor = attribute(lib, d, ATTR_MAX_THREADS_PER_MULTIPROCESSOR);
  out->max_blocks_multiprocessor = attribute(lib, d, ATTR_MAX_BLOCKS_PER_MULTIPROCESSOR);
  out->registers_multiprocessor = attribute(lib, d, ATTR_REGISTERS_PER_MULTIPROCESSOR);
  out->shared_block = (uint64_t)attribute(lib, d, ATTR_SHARED_PER_BLOCK);
  out->shared_block_optin = lib->vendor->attributes[ATTR_SHARED_PER_BLOCK_OPTIN] != 0
                                ? (uint64_t)attribute(lib, d, ATTR_SHARED_PER_BLOCK_OPTIN)
                                : out->shared_block;
  out->shared_multiprocessor = (uint64_t)attribute(lib, d, ATTR_SHARED_PER_MULTIPROCESSOR);
  if (out->shared_multiprocessor == 0)
    out->shared_multiprocessor = (uint64_t)attribute(lib, d, ATTR_SHARED_PER_MULTIPROCESSOR_BEFORE);
}

static int32_t gpu_device_info(cs_lib *lib, int32_t ordinal, cs_info *out, cs_error *err) {
  int d;
  int32_t status = device_at(lib, ordinal, &d, err);
  if (status != CS_OK)
    return status;
  cs_info info;
  memset(&info, 0, sizeof info);
  status =
      check(lib, lib->api.device_name(info.name, sizeof info.name - 1, d), API(device_name), err);
  if (status != CS_OK)
    return status;
  size_t total = 0;
  status = check(lib, lib->api.device_memory(&total, d), API(device_memory), err);
  if (status != CS_OK)
    return status;
  // The driver limits a single allocation only by the size of the memory.
  info.total_memory = info.max_allocation = total;
  name_device(lib, d, &info);
  limits(lib, d, &info);
  status = lib->vendor->identify(lib, d, &info, err);
  if (status != CS_OK)
    return status;
  info.unified = attribute(lib, d, ATTR_INTEGRATED) != 0;
  info.kind = info.unified ? CS_KIND_INTEGRATED : CS_KIND_DISCRETE;
  info.multiprocessors = attribute(lib, d, ATTR_MULTIPROCESSORS);
  info.warp = attribute(lib, d, ATTR_WARP_SIZE);
  info.clock_khz = attribute(lib, d, ATTR_CLOCK_RATE);
  info.memory_clock_khz = attribute(lib, d, ATTR_MEMORY_CLOCK_RATE);
  info.memory_bus_bits = attribute(lib, d, ATTR_MEMORY_BUS_WIDTH);
  info.l2_cache = (uint64_t)attribute(lib, d, ATTR_L2_CACHE_SIZE);
  info.simulated = lib->simulated;
  *out = info;
  return CS_OK;
}

static int32_t gpu_peer_access(cs_lib *lib, int32_t to, int32_t from, int32_t *can, cs_error *err) {
  int a, b;
  int32_t status = device_at(lib, to, &a, err);
  if (status == CS_OK)
    status = device_at(lib, from, &b, err);
  int yes = 1;
  if (status == CS_OK && a != b) {
    if (lib->api.can_access_peer == NULL)
      return lacks(lib, API(can_access_peer), err);
    status = check(lib, lib->api.can_access_peer(&yes, a, b), API(can_access_peer), err);
  }
  if (status == CS_OK)
    *can = yes != 0;
  return status;
}

// -- opening --

static int32_t gpu_device_open(cs_lib *lib, int32_t ordinal, cs_device **dev, cs_error *err) {
  int handle;
  int32_t status = device_at(lib, ordinal, &handle, err);
  if (status != CS_OK)
    return status;
  cs_device *d = calloc(1, lib->vendor->device_bytes);
  if (d == NULL)
    return no_host_memory(err);
  d->lib = lib;
  d->handle = handle;
  status = lib->vendor->acquire(d, err);
  if (status != CS_OK) {
    free(d);
    return status;
  }
  int lowest = 0, highest = 0;
  if (lib->api.priority_range != NULL && lib->api.priority_range(&lowest, &highest) == 0) {
    d->lowest = lowest;
    d->highest = highest;
  }
  d->shared = attribute(lib, handle, ATTR_SHARED_PER_BLOCK);
  d->shared_optin = attribute(lib, handle, ATTR_SHARED_PER_BLOCK_OPTIN);
  d->async_alloc = has_async_alloc(lib, handle);
  d->managed = has_managed(lib, handle);
  pthread_mutex_init(&d->lock, NULL);
  pthread_mutex_init(&d->blas_lock, NULL);
  *dev = d;
  return CS_OK;
}

static int32_t gpu_device_close(cs_device *d, cs_error *err) {
  cs_error ignored;
  enter(d, &ignored); // the driver finds the context from the handles
  if (d->blas_handle != NULL)
    d->blas_api.destroy(d->blas_handle);
  for (int timing = 0; timing < 2; timing++)
    for (cs_event *e = d->events[timing], *next; e != NULL; e = next) {
      next = e->next;
      d->lib->api.event_destroy(e->handle);
      free(e);
    }
  int32_t status = d->lib->vendor->release(d, err);
  pthread_mutex_destroy(&d->lock);
  pthread_mutex_destroy(&d->blas_lock);
  free(d);
  return status;
}

static void gpu_device_handles(cs_device *d, uint64_t *device, uint64_t *context) {
  *device = (uint64_t)d->handle;
  *context = (uint64_t)(uintptr_t)d->context;
}

static int32_t gpu_memory_info(cs_device *d, uint64_t *free_bytes, cs_error *err) {
  size_t left = 0, total = 0;
  int32_t status = ENTERED(d, err, memory_info, &left, &total);
  if (status == CS_OK)
    *free_bytes = left;
  return status;
}

// -- memory --

// alloc_pinned relies on unified addressing: host and device use the same address.
static int32_t alloc_pinned(cs_device *d, uint64_t bytes, cs_memory *out, cs_error *err) {
  void *host = NULL;
  uint64_t address = 0;
  int32_t status = CALL(d, err, host_alloc, &host, bytes, HOST_PORTABLE | HOST_DEVICEMAP);
  if (status != CS_OK)
    return status;
  status = CALL(d, err, host_address, &address, host, 0);
  if (status == CS_OK && address != (uint64_t)(uintptr_t)host)
    status = tell(err, CS_UNSUPPORTED, 0, "host and device do not use the same addresses");
  if (status != CS_OK) {
    d->lib->api.host_free(host);
    return status;
  }
  out->address = out->host = address;
  return CS_OK;
}

static int32_t gpu_alloc(cs_device *d, uint8_t kind, uint64_t bytes, cs_memory *out,
                         cs_error *err) {
  if (bytes == 0)
    return tell(err, CS_INVALID, 0, "allocation of 0 bytes");
  int32_t status = enter(d, err);
  if (status != CS_OK)
    return status;
  uint64_t address = 0;
  switch (kind) {
  case CS_ON_DEVICE:
    status = CALL(d, err, alloc, &address, bytes);
    if (status == CS_OK)
      *out = (cs_memory){address, 0};
    return status;
  case CS_PINNED:
    return alloc_pinned(d, bytes, out, err);
  case CS_UNIFIED:
    if (!d->managed)
      return tell(err, CS_UNSUPPORTED, 0,
                  "this device has no memory that host and device may use at the same time");
    status = CALL(d, err, alloc_managed, &address, bytes, ATTACH_GLOBAL);
    if (status == CS_OK)
      *out = (cs_memory){address, address};
    return status;
  }
  return tell(err, CS_INVALID, 0, "no memory of kind %d", kind);
}

static int32_t gpu_free(cs_device *d, uint8_t kind, uint64_t address, cs_error *err) {
  enter(d, err); // an error does not matter: the driver finds the context from the address
  if (kind == CS_PINNED)
    return CALL(d, err, host_free, (void *)(uintptr_t)address);
  return CALL(d, err, free, address);
}

static int32_t gpu_alloc_on(cs_stream *s, uint64_t bytes, uint64_t *address, cs_error *err) {
  cs_device *d = s->dev;
  if (!d->async_alloc)
    return tell(err, CS_UNSUPPORTED, 0, "this device has no memory pools");
  uint64_t p = 0;
  int32_t status = ENTERED(d, err, alloc_async, &p, bytes, s->handle);
  if (status == CS_OK)
    *address = p;
  return status;
}

static int32_t gpu_free_on(cs_stream *s, uint64_t address, cs_error *err) {
  cs_device *d = s->dev;
  if (!d->async_alloc)
    return tell(err, CS_UNSUPPORTED, 0, "this device has no memory pools");
  enter(d, err); // as in gpu_free
  return CALL(d, err, free_async, address, s->handle);
}
