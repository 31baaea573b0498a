// device.c describes devices, opens and closes them.

#include "state.h"

// -- asking --

static void ask_extensions(cs_lib *lib, VkPhysicalDevice physical, struct traits *t) {
  uint32_t n = 0;
  if (lib->vk.EnumerateDeviceExtensionProperties(physical, NULL, &n, NULL) < 0 || n == 0)
    return;
  VkExtensionProperties *list = calloc(n, sizeof *list);
  if (list != NULL && lib->vk.EnumerateDeviceExtensionProperties(physical, NULL, &n, list) >= 0)
    for (uint32_t i = 0; i < n; i++) {
      const char *name = list[i].extensionName;
      t->has_pci |= strcmp(name, "VK_EXT_pci_bus_info") == 0;
      t->has_budget |= strcmp(name, "VK_EXT_memory_budget") == 0;
      t->has_subset |= strcmp(name, "VK_KHR_portability_subset") == 0;
    }
  free(list);
}

// ask_queues chooses a family that computes, without graphics if there is one.
static void ask_queues(cs_lib *lib, VkPhysicalDevice physical, struct traits *t) {
  VkQueueFamilyProperties list[32];
  uint32_t n = 32;
  t->family = NONE;
  lib->vk.GetPhysicalDeviceQueueFamilyProperties(physical, &n, list);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t flags = list[i].queueFlags;
    int better = t->family == NONE || ((list[t->family].queueFlags & VK_QUEUE_GRAPHICS_BIT) != 0 &&
                                       (flags & VK_QUEUE_GRAPHICS_BIT) == 0);
    if ((flags & VK_QUEUE_COMPUTE_BIT) != 0 && better)
      t->family = i;
  }
  if (t->family != NONE) {
    t->family_queues = list[t->family].queueCount;
    t->timestamp_bits = list[t->family].timestampValidBits;
  }
}

// ask_memory finds the heap of the device, and whether the host has the same.
static void ask_memory(cs_lib *lib, VkPhysicalDevice physical, struct traits *t) {
  VkPhysicalDeviceMemoryProperties2 m = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
  lib->vk.GetPhysicalDeviceMemoryProperties2(physical, &m);
  t->memory = m.memoryProperties;
  for (uint32_t i = 0; i < t->memory.memoryHeapCount; i++)
    if ((t->memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0 &&
        t->memory.memoryHeaps[i].size > t->heap_bytes) {
      t->heap_bytes = t->memory.memoryHeaps[i].size;
      t->device_heap = i;
    }
  int type = t->properties.properties.deviceType;
  t->unified = type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU || type == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

static void ask(cs_lib *lib, VkPhysicalDevice physical, struct traits *t) {
  memset(t, 0, sizeof *t);
  t->properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  lib->vk.GetPhysicalDeviceProperties2(physical, &t->properties);
  if (t->properties.properties.apiVersion < API_1_3)
    return; // what follows is of 1.3
  ask_extensions(lib, physical, t);
  t->eleven = (VkPhysicalDeviceVulkan11Properties){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES};
  t->thirteen = (VkPhysicalDeviceVulkan13Properties){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES,
                                                     .pNext = &t->eleven};
  t->driver = (VkPhysicalDeviceDriverProperties){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES,
                                                 .pNext = &t->thirteen};
  t->floats = (VkPhysicalDeviceFloatControlsProperties){
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES, .pNext = &t->driver};
  t->pci = (VkPhysicalDevicePCIBusInfoPropertiesEXT){
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT, .pNext = &t->floats};
  t->properties.pNext = t->has_pci ? (void *)&t->pci : &t->floats;
  lib->vk.GetPhysicalDeviceProperties2(physical, &t->properties);
  t->features11 = (VkPhysicalDeviceVulkan11Features){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
  t->features12 = (VkPhysicalDeviceVulkan12Features){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                                     .pNext = &t->features11};
  t->features13 = (VkPhysicalDeviceVulkan13Features){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
                                                     .pNext = &t->features12};
  t->features =
      (VkPhysicalDeviceFeatures2){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &t->features13};
  lib->vk.GetPhysicalDeviceFeatures2(physical, &t->features);
  ask_queues(lib, physical, t);
  ask_memory(lib, physical, t);
  const uint32_t all = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_VOTE_BIT | VK_SUBGROUP_FEATURE_BALLOT_BIT |
                       VK_SUBGROUP_FEATURE_ARITHMETIC_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  t->subgroups = (t->eleven.subgroupSupportedOperations & all) == all &&
                 (t->eleven.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  t->subgroup = t->eleven.subgroupSize;
  t->fp64 = t->features.features.shaderFloat64 && t->floats.shaderSignedZeroInfNanPreserveFloat64;
  t->int64_atomics = t->features12.shaderBufferInt64Atomics && t->features12.shaderSharedInt64Atomics;
}

// REQUIRED_FEATURES are the features without which a device is not usable.
#define REQUIRED_FEATURES(X)                                                                       \
  X(features.features, shaderInt64) X(features11, storageBuffer16BitAccess)                        \
  X(features12, storageBuffer8BitAccess) X(features12, timelineSemaphore)                          \
  X(features12, bufferDeviceAddress) X(features12, vulkanMemoryModel)                              \
  X(features12, vulkanMemoryModelDeviceScope) X(features12, hostQueryReset)                        \
  X(features13, synchronization2) X(features13, maintenance4)                                      \
  X(features13, subgroupSizeControl) X(features13, computeFullSubgroups)

// OPTIONAL_FEATURES are switched on where they are there.
#define OPTIONAL_FEATURES(X)                                                                       \
  X(features.features, shaderFloat64) X(features.features, shaderInt16)                            \
  X(features12, shaderFloat16) X(features12, shaderInt8) X(features12, shaderBufferInt64Atomics)   \
  X(features12, shaderSharedInt64Atomics) X(features12, shaderSubgroupExtendedTypes)               \
  X(features11, variablePointersStorageBuffer) X(features11, variablePointers)

// usable returns an error with the reason if programs cannot run on a device.
static int32_t usable(const struct traits *t, cs_error *err) {
  const VkPhysicalDeviceProperties *p = &t->properties.properties;
  if (p->apiVersion < API_1_3)
    return tell(err, CS_UNSUPPORTED, 0, "%s: its driver is of Vulkan %u.%u.%u, and 1.3 is needed", p->deviceName,
                VERSION(p->apiVersion));
#define REFUSE(where, feature)                                                                     \
  if (!t->where.feature)                                                                           \
    return tell(err, CS_UNSUPPORTED, 0, "%s: its driver has no %s, which is needed", p->deviceName, #feature);
  REQUIRED_FEATURES(REFUSE)
#undef REFUSE
  if (!t->floats.shaderSignedZeroInfNanPreserveFloat32)
    return tell(err, CS_UNSUPPORTED, 0, "%s: its driver does not keep signs of zeros, infinities and NaNs", p->deviceName);
  if (t->family == NONE)
    return tell(err, CS_UNSUPPORTED, 0, "%s: it has no queue that computes", p->deviceName);
  return CS_OK;
}

// -- describing --

// arch writes the features that decide what programs may use, which is the target of compilation.
static void arch(const struct traits *t, char *text, size_t bytes) {
  snprintf(text, bytes, "vk1.3%s%s%s%s", t->fp64 ? "-fp64" : "",
           t->features12.shaderFloat16 ? "-fp16" : "", t->int64_atomics ? "-i64" : "", t->subgroups ? "-sg" : "");
}

static int32_t kind_of(int32_t type) {
  switch (type) {
  case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
    return CS_KIND_DISCRETE;
  case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
    return CS_KIND_INTEGRATED;
  case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
    return CS_KIND_VIRTUAL;
  case VK_PHYSICAL_DEVICE_TYPE_CPU:
    return CS_KIND_CPU;
  }
  return CS_KIND_UNKNOWN;
}

// ADDRESS_UNIT is what addresses of allocations are multiples of.
enum { ADDRESS_UNIT = 256 };

// largest returns the size of the largest buffer in a heap, with room to align its address.
static uint64_t largest(const struct traits *t, uint64_t heap) {
  return (t->thirteen.maxBufferSize < heap ? t->thirteen.maxBufferSize : heap) - 2 * ADDRESS_UNIT;
}

static const char *maker(uint32_t vendor) {
  switch (vendor) {
  case 0x1002:
    return "AMD";
  case 0x106b:
    return "Apple";
  case 0x10de:
    return "NVIDIA";
  case 0x13b5:
    return "Arm";
  case 0x5143:
    return "Qualcomm";
  case 0x8086:
    return "Intel";
  case 0x10005:
    return "Mesa";
  }
  return "";
}

static int32_t vulkan_device_info(cs_lib *lib, int32_t ordinal, cs_info *out, cs_error *err) {
  VkPhysicalDevice physical = NULL;
  struct traits t;
  int32_t status = device_at(lib, ordinal, &physical, err);
  if (status != CS_OK)
    return status;
  ask(lib, physical, &t);
  status = usable(&t, err);
  if (status != CS_OK)
    return status;
  const VkPhysicalDeviceProperties *p = &t.properties.properties;
  cs_info info;
  memset(&info, 0, sizeof info);
  snprintf(info.name, sizeof info.name, "%s", p->deviceName);
  arch(&t, info.arch, sizeof info.arch);
  snprintf(info.maker, sizeof info.maker, "%s", maker(p->vendorID));
  snprintf(info.driver, sizeof info.driver, "%.60s %.60s", t.driver.driverName, t.driver.driverInfo);
  const uint8_t *u = t.eleven.deviceUUID;
  snprintf(info.uuid, sizeof info.uuid, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
           u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
  if (t.has_pci)
    snprintf(info.pci, sizeof info.pci, "%04x:%02x:%02x.%x", t.pci.pciDomain, t.pci.pciBus, t.pci.pciDevice,
             t.pci.pciFunction);
  info.total_memory = t.heap_bytes;
  info.max_allocation = largest(&t, t.heap_bytes);
  info.shared_block = info.shared_block_optin = p->limits.maxComputeSharedMemorySize;
  for (int i = 0; i < 3; i++) {
    info.max_group[i] = p->limits.maxComputeWorkGroupSize[i];
    info.max_groups[i] = INT32_MAX; // what is more than a dispatch may have is launched in parts
  }
  info.kind = kind_of(p->deviceType);
  info.major = 1;
  info.minor = 3;
  info.warp = (int32_t)t.subgroup;
  info.max_threads = (int32_t)p->limits.maxComputeWorkGroupInvocations;
  info.unified = t.unified;
  info.by_name = info.kind == CS_KIND_CPU || t.driver.driverID == VK_DRIVER_ID_MOLTENVK;
  *out = info;
  return CS_OK;
}

// -- opening --

// switch_on makes the features of a device from those that it has.
static void switch_on(const struct traits *t, struct traits *on) {
  memset(on, 0, sizeof *on);
  on->features11.sType = t->features11.sType;
  on->features12.sType = t->features12.sType;
  on->features13.sType = t->features13.sType;
  on->features.sType = t->features.sType;
  on->features12.pNext = &on->features11;
  on->features13.pNext = &on->features12;
  on->features.pNext = &on->features13;
#define COPY(where, feature) on->where.feature = t->where.feature;
  REQUIRED_FEATURES(COPY)
  OPTIONAL_FEATURES(COPY)
#undef COPY
}

static int32_t make_device(cs_device *d, cs_error *err) {
  float priorities[QUEUES] = {1, 1, 1, 1};
  d->queue_count = d->t.family_queues < QUEUES ? d->t.family_queues : QUEUES;
  VkDeviceQueueCreateInfo queues = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                    .queueFamilyIndex = d->t.family,
                                    .queueCount = d->queue_count,
                                    .pQueuePriorities = priorities};
  const char *extensions[2];
  uint32_t n = 0;
  if (d->t.has_budget)
    extensions[n++] = "VK_EXT_memory_budget";
  if (d->t.has_subset)
    extensions[n++] = "VK_KHR_portability_subset"; // has to be switched on where it is there
  struct traits on;
  switch_on(&d->t, &on);
  VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                             .pNext = &on.features,
                             .queueCreateInfoCount = 1,
                             .pQueueCreateInfos = &queues,
                             .enabledExtensionCount = n,
                             .ppEnabledExtensionNames = extensions};
  int32_t status = checked(d->lib->vk.CreateDevice(d->physical, &info, NULL, &d->handle), "CreateDevice", err);
  if (status != CS_OK)
    return status;
  const char *lacking = look_up_device(&d->vk, d->lib->vk.GetDeviceProcAddr, d->handle);
  if (lacking != NULL) {
    void (*destroy)(VkDevice, const void *) = d->vk.DestroyDevice;
    if (destroy != NULL)
      destroy(d->handle, NULL);
    d->handle = NULL;
    return tell(err, CS_UNSUPPORTED, 0, "the driver has no %s", lacking);
  }
  for (uint32_t i = 0; i < d->queue_count; i++)
    d->vk.GetDeviceQueue(d->handle, d->t.family, i, &d->queues[i]);
  return CS_OK;
}

static int32_t new_semaphore(cs_device *d, VkSemaphore *out, cs_error *err) {
  VkSemaphoreTypeCreateInfo timeline = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &timeline};
  return CALL(d, err, CreateSemaphore, &info, NULL, out);
}

// All programs have one layout: push constants, no descriptors.
static int32_t make_layout(cs_device *d, cs_error *err) {
  VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, PUSHED * 4};
  VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                       .pushConstantRangeCount = 1,
                                       .pPushConstantRanges = &range};
  int32_t status = CALL(d, err, CreatePipelineLayout, &layout, NULL, &d->layout);
  VkPipelineCacheCreateInfo cache = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  return status == CS_OK ? CALL(d, err, CreatePipelineCache, &cache, NULL, &d->cache) : status;
}

static void drop_device(cs_device *d);
static int32_t choose_types(cs_device *d, cs_error *err);

static int32_t vulkan_device_open(cs_lib *lib, int32_t ordinal, cs_device **dev, cs_error *err) {
  VkPhysicalDevice physical = NULL;
  int32_t status = device_at(lib, ordinal, &physical, err);
  if (status != CS_OK)
    return status;
  cs_device *d = calloc(1, sizeof *d);
  if (d == NULL)
    return no_host_memory(err);
  d->lib = lib;
  d->physical = physical;
  d->ordinal = ordinal;
  d->dead_end = &d->dead;
  pthread_mutex_init(&d->submit, NULL);
  pthread_rwlock_init(&d->memory, NULL);
  pthread_mutex_init(&d->lock, NULL);
  pthread_cond_init(&d->left, NULL);
  pthread_mutex_init(&d->tools, NULL);
  ask(lib, physical, &d->t);
  status = usable(&d->t, err);
  if (status == CS_OK)
    status = make_device(d, err);
  if (status == CS_OK)
    status = choose_types(d, err);
  if (status == CS_OK)
    status = make_layout(d, err);
  if (status == CS_OK)
    *dev = d;
  else
    drop_device(d);
  return status;
}

static void vulkan_device_handles(cs_device *d, uint64_t *device, uint64_t *context) {
  *device = (uint64_t)(uintptr_t)d->physical;
  *context = (uint64_t)(uintptr_t)d->handle;
}

// memory_info returns what the driver lets this process allocate yet, or the heap without what it
// has allocated where the driver does not tell.
static int32_t vulkan_memory_info(cs_device *d, uint64_t *free_bytes, cs_error *err) {
  int32_t status = present(d, err);
  if (status != CS_OK)
    return status;
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
  VkPhysicalDeviceMemoryProperties2 m = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
                                         .pNext = d->t.has_budget ? &budget : NULL};
  uint64_t total = d->t.heap_bytes, used;
  pthread_mutex_lock(&d->lock);
  used = d->allocated;
  pthread_mutex_unlock(&d->lock);
  if (d->t.has_budget) {
    d->lib->vk.GetPhysicalDeviceMemoryProperties2(d->physical, &m);
    if (budget.heapBudget[d->t.device_heap] > 0) // some drivers say nothing
      total = budget.heapBudget[d->t.device_heap];
    if (budget.heapUsage[d->t.device_heap] > used)
      used = budget.heapUsage[d->t.device_heap];
  }
  *free_bytes = used < total ? total - used : 0;
  return CS_OK;
}
