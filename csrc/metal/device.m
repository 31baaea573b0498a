// device.m lists devices, describes them, and opens them.

#include "state.h"

static cs_lib the_library = {.lock = PTHREAD_MUTEX_INITIALIZER};

// list_devices finds all devices, the system's default device first, and keeps the list.
static NSArray<id<MTLDevice>> *list_devices(cs_lib *lib) {
  if (lib->devices != nil)
    return lib->devices;
  NSArray<id<MTLDevice>> *all = MTLCopyAllDevices();
  id<MTLDevice> first = MTLCreateSystemDefaultDevice();
  NSMutableArray<id<MTLDevice>> *list = [[NSMutableArray alloc] initWithArray:all];
  for (NSUInteger i = 0; first != nil && i < [list count]; i++)
    if ([[list objectAtIndex:i] registryID] == [first registryID]) {
      [list removeObjectAtIndex:i];
      break;
    }
  if (first != nil)
    [list insertObject:first atIndex:0];
  [all release];
  [first release];
  if ([list count] > 0)
    lib->devices = list; // an empty list is not kept: a device may be added later
  else
    [list release];
  return lib->devices;
}

// devices_of calls list_devices with the lock held.
static int32_t devices_of(cs_lib *lib, NSArray<id<MTLDevice>> **out, cs_error *err) {
  int32_t status = CS_OK;
  NSArray<id<MTLDevice>> *list = nil;
  pthread_mutex_lock(&lib->lock);
  RUN(status, err, ((list = list_devices(lib)), CS_OK));
  pthread_mutex_unlock(&lib->lock);
  if (status == CS_OK)
    *out = list;
  return status;
}

static int32_t device_at(cs_lib *lib, int32_t ordinal, id<MTLDevice> *out, cs_error *err) {
  NSArray<id<MTLDevice>> *list = nil;
  int32_t status = devices_of(lib, &list, err);
  if (status != CS_OK)
    return status;
  if (ordinal < 0 || (NSUInteger)ordinal >= [list count])
    return tell(err, CS_NO_DEVICE, 0, "Metal has no device %d", ordinal);
  *out = [list objectAtIndex:(NSUInteger)ordinal];
  return CS_OK;
}

// -- the library --

static int32_t metal_open(const concord_shim *shim, const char *driver_names,
                          const char *compiler_names, cs_lib **lib, char *tried,
                          uint64_t tried_bytes, cs_error *err) {
  (void)shim;
  (void)driver_names;
  (void)compiler_names;
  (void)err;
  if (tried_bytes > 0)
    snprintf(tried, tried_bytes, "Metal.framework: found");
  *lib = &the_library;
  return CS_OK;
}

static int32_t metal_linked(cs_lib *lib) {
  (void)lib;
  return 1;
}

static void metal_missing(cs_lib *lib, char *text, uint64_t bytes) {
  (void)lib;
  if (bytes > 0)
    text[0] = '\0';
}

// The framework has no version of its own, so this is the system's: 230500 for Darwin 23.5.
static int32_t metal_versions(cs_lib *lib, cs_versions *out, cs_error *err) {
  (void)lib;
  struct utsname system;
  int major = 0, minor = 0, patch = 0;
  if (uname(&system) != 0)
    return tell(err, CS_FAILED, 0, "uname failed");
  sscanf(system.release, "%d.%d.%d", &major, &minor, &patch);
  *out = (cs_versions){.driver = major * 10000 + minor % 100 * 100 + patch % 100};
  return CS_OK;
}

static int32_t metal_device_count(cs_lib *lib, int32_t *count, cs_error *err) {
  NSArray<id<MTLDevice>> *list = nil;
  int32_t status = devices_of(lib, &list, err);
  if (status == CS_OK)
    *count = (int32_t)[list count];
  return status;
}

// -- describing --

// family writes the newest family of GPUs to which a device belongs, such as "apple7" or "mac2".
static void family(id<MTLDevice> device, char *text, size_t bytes) {
  for (int n = 9; n >= 1; n--)
    if ([device supportsFamily:(MTLGPUFamily)(MTLGPUFamilyApple1 + n - 1)]) {
      snprintf(text, bytes, "apple%d", n);
      return;
    }
  int mac = [device supportsFamily:MTLGPUFamilyMac2];
  snprintf(text, bytes, "%s", mac ? "mac2" : "common");
}

static int32_t describe(id<MTLDevice> device, cs_info *out) {
  cs_info info;
  memset(&info, 0, sizeof info);
  snprintf(info.name, sizeof info.name, "%s", words([device name]));
  family(device, info.arch, sizeof info.arch);
  if (strncmp(info.arch, "apple", 5) == 0) {
    info.major = atoi(info.arch + 5);
    info.warp = 32;
  }
  unsigned long long n = [device registryID]; // unique among the devices of a system while it runs
  snprintf(info.uuid, sizeof info.uuid, "00000000-0000-0000-%04llx-%012llx", n >> 48,
           n & 0xffffffffffffULL);
  info.total_memory = [device recommendedMaxWorkingSetSize];
  info.max_allocation = [device maxBufferLength];
  if (info.total_memory == 0)
    info.total_memory = info.max_allocation;
  info.shared_block = info.shared_block_optin = [device maxThreadgroupMemoryLength];
  MTLSize most = [device maxThreadsPerThreadgroup];
  info.max_group[0] = (int64_t)most.width;
  info.max_group[1] = (int64_t)most.height;
  info.max_group[2] = (int64_t)most.depth;
  info.max_threads = (int32_t)most.width; // a kernel may allow fewer
  for (int i = 0; i < 3; i++)
    info.max_groups[i] = INT32_MAX;
  info.unified = [device hasUnifiedMemory];
  info.kind = info.unified ? CS_KIND_INTEGRATED : CS_KIND_DISCRETE;
#ifdef CONCORD_SIM_METAL
  info.simulated = 1;
#endif
  *out = info;
  return CS_OK;
}

static int32_t metal_device_info(cs_lib *lib, int32_t ordinal, cs_info *out, cs_error *err) {
  id<MTLDevice> device = nil;
  int32_t status = device_at(lib, ordinal, &device, err);
  if (status == CS_OK)
    RUN(status, err, describe(device, out));
  return status;
}

// -- opening --

// The first address of memory that the host cannot access: beyond the addresses that a process can
// map.
static const uint64_t UNSEEN = (uint64_t)1 << 60;

static int32_t open_device(id<MTLDevice> handle, cs_device **out, cs_error *err) {
  cs_device *d = calloc(1, sizeof *d);
  if (d == NULL)
    return no_host_memory(err);
  d->handle = [handle retain];
  d->unified = [handle hasUnifiedMemory];
  d->max_buffer = [handle maxBufferLength];
  d->max_local = [handle maxThreadgroupMemoryLength];
  d->next = UNSEEN;
  pthread_rwlock_init(&d->memory, NULL);
  pthread_mutex_init(&d->lock, NULL);
  pthread_cond_init(&d->passed, NULL);
  pthread_mutex_init(&d->tools_lock, NULL);
  *out = d;
  return CS_OK;
}

static int32_t metal_device_open(cs_lib *lib, int32_t ordinal, cs_device **dev, cs_error *err) {
  id<MTLDevice> handle = nil;
  int32_t status = device_at(lib, ordinal, &handle, err);
  if (status == CS_OK)
    RUN(status, err, open_device(handle, dev, err));
  return status;
}

static int32_t close_device(cs_device *d) {
  for (int i = 0; i < TOOLS; i++)
    [d->tools[i] release];
  for (size_t i = 0; i < d->count; i++) {
    [d->blocks[i]->buffer release];
    free(d->blocks[i]);
  }
  [d->handle release];
  return CS_OK;
}

static int32_t metal_device_close(cs_device *d, cs_error *err) {
  int32_t status = CS_OK;
  RUN(status, err, close_device(d));
  free(d->blocks);
  pthread_rwlock_destroy(&d->memory);
  pthread_mutex_destroy(&d->lock);
  pthread_cond_destroy(&d->passed);
  pthread_mutex_destroy(&d->tools_lock);
  free(d);
  return status;
}

static void metal_device_handles(cs_device *d, uint64_t *device, uint64_t *context) {
  *device = (uint64_t)(uintptr_t)d->handle;
  *context = 0;
}

static int32_t left_of(cs_device *d, uint64_t *free_bytes) {
  uint64_t total = [d->handle recommendedMaxWorkingSetSize],
           used = [d->handle currentAllocatedSize];
  if (total == 0)
    total = d->max_buffer;
  *free_bytes = used < total ? total - used : 0;
  return CS_OK;
}

static int32_t metal_memory_info(cs_device *d, uint64_t *free_bytes, cs_error *err) {
  int32_t status = present(d, err);
  if (status == CS_OK)
    RUN(status, err, left_of(d, free_bytes));
  return status;
}
