// state.h has the declarations that the parts of the shim share: the objects behind the handles of
// shim.h, and the reporting of failures. vulkan.c includes the parts.
//
// Locks, in the order in which they are taken: a kernel's, that of tools, a stream's, the device's, that of
// memory, the submit lock. Against this order a lock is only tried. No thread holds one of the last three while it
// waits for the device.

#ifndef CONCORD_VULKAN_STATE_H
#define CONCORD_VULKAN_STATE_H

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "../tell.h"
#include "vk.h"

#define MEMBER(result, name, parameters) result(*name) parameters;

struct instance_api {
  LIBRARY_FUNCTIONS(MEMBER)
  INSTANCE_FUNCTIONS(MEMBER)
};

struct device_api {
  DEVICE_FUNCTIONS(MEMBER)
};

// QUEUES is the number of queues to which the streams of a device are distributed at most.
enum { QUEUES = 4 };

// traits are what the shim asks a physical device.
struct traits {
  VkPhysicalDeviceProperties2 properties;
  VkPhysicalDeviceVulkan11Properties eleven;
  VkPhysicalDeviceVulkan13Properties thirteen;
  VkPhysicalDeviceDriverProperties driver;
  VkPhysicalDeviceFloatControlsProperties floats;
  VkPhysicalDevicePCIBusInfoPropertiesEXT pci;
  VkPhysicalDeviceFeatures2 features;
  VkPhysicalDeviceVulkan11Features features11;
  VkPhysicalDeviceVulkan12Features features12;
  VkPhysicalDeviceVulkan13Features features13;
  VkPhysicalDeviceMemoryProperties memory;
  int has_pci, has_budget, has_subset;             // extensions
  uint32_t family, family_queues, timestamp_bits;   // of the queues that compute
  uint32_t subgroup;                                // items; the size that pipelines are made with
  int fp64, subgroups, int64_atomics;
  int unified;          // host and device share one memory
  uint64_t heap_bytes;  // of the device's memory
  uint32_t device_heap; // index of that heap
};

#define NONE UINT32_MAX

struct cs_lib {
  void *driver;
  char path[1024]; // of the loader
  PFN_vkVoidFunction (*instance_proc)(VkInstance, const char *);
  const char *lacking; // the name of a function that the loader does not have, or NULL
  struct instance_api vk;

  pthread_mutex_t lock; // guards the following
  VkInstance instance;
  VkPhysicalDevice *all;
  uint32_t *facts; // of each device, once they are known, with FACTS_KNOWN
  uint32_t count;
  cs_lib *next;
};

// Facts of a device, the value of specialization constant 4: what its instructions do exactly.
enum {
  FACT_FMA = 1,
  FACT_DIVIDE = 2,
  FACT_SQRT = 4,
  FACT_FMA_DOUBLE = 8,
  FACT_DIVIDE_DOUBLE = 16,
  FACT_SQRT_DOUBLE = 32,
  FACT_DENORMALS = 64,
  FACTS_KNOWN = 1 << 30, // not passed to programs
};

// dead is the head of an object that is destroyed when no batch can use it any more: by the next call that frees
// something, closes a stream, or waits for one.
struct dead {
  struct dead *next;
  uint64_t serial; // of the last batch that was begun before
  void (*end)(cs_device *, struct dead *);
};

// A block is a range of addresses that alloc returned: a whole buffer, or a slot of a slab.
struct block {
  struct dead dead;
  uint64_t address, bytes;
  VkBuffer buffer;
  uint64_t offset; // in the buffer
  VkDeviceMemory memory;
  unsigned char *host; // or NULL; for uploads alone unless cached
  int cached;          // the host reads it at full speed
  struct slab *slab;   // or NULL
};

// place is the block and offset of an address.
struct place {
  struct block *block;
  uint64_t offset; // in the buffer
};

// Slots of a slab have one size, a power of two from 256 bytes to 1 MiB: drivers need not have more than 4,096
// allocations. A slab has 1 MiB, or 16 slots if that is more.
enum { SLAB_LEAST = 20, SLAB_SLOTS = 4, SLOT_LEAST = 8, SLOT_MOST = 20, SLOT_SIZES = SLOT_MOST - SLOT_LEAST + 1 };

struct slab {
  struct slab *next; // of the same kind and size
  struct block *whole;
  uint8_t kind;
  int size; // binary logarithm
  uint32_t used, slots, free_count;
  uint16_t free[]; // numbers of free slots
};

// table has blocks sorted by one of their addresses.
struct table {
  struct block **list;
  size_t count, room;
};

// A chunk is memory of the host that a stream's commands read or write: staging of copies, and
// arguments that are passed in memory.
struct chunk {
  struct chunk *next;
  struct block *block;
  uint64_t used;
  uint64_t number; // of the last batch that uses it
};

enum { CHUNK_BYTES = 1 << 20, CHUNKS = 4 };

// recorder is what commands are recorded to: a batch, or a graph.
struct recorder {
  VkCommandBuffer commands;
  VkPipeline bound;
  uint32_t count;  // commands
  uint64_t groups; // of launches
};

// BATCH_COMMANDS is the number of commands, BATCH_GROUPS that of groups, with which a batch is submitted at the
// latest: systems end what takes seconds. BATCHES_IN_FLIGHT is the number of batches of a stream from which new work
// waits.
enum { BATCH_COMMANDS = 64, BATCH_GROUPS = 1 << 17, BATCHES_IN_FLIGHT = 64, WAITS = 8 };

// A batch is the commands of a stream that are submitted together.
struct batch {
  struct batch *next;
  struct recorder r;
  uint64_t number; // the value of the stream's semaphore once it is done
  uint64_t serial; // among the batches of all streams
  int marked;      // an event is its end: no command may follow
  uint32_t waits;
  struct {
    cs_stream *stream;
    uint64_t number;
  } wait[WAITS];
};

struct cs_stream {
  _Atomic int refs; // held by the owner, events, batches that wait for it, the pump
  cs_device *dev;
  VkQueue queue;
  VkSemaphore done; // its value is the number of the last batch that is done
  _Atomic uint64_t reached; // a lower bound of that value
  _Atomic uint64_t oldest;  // serial of the oldest batch that is not known to be done, or UINT64_MAX
  cs_stream *next;          // of the device; guarded by its lock

  pthread_mutex_t lock; // guards the following
  VkCommandPool pool;
  uint64_t numbered, submitted;
  struct batch *open;            // or NULL
  struct batch *running, **last; // submitted, in order
  uint32_t in_flight;
  struct batch *spare;
  struct chunk *chunks, **chunks_end; // full ones, in order
  struct chunk *chunk;                // the current one, or NULL
  uint32_t chunk_count;
  struct recording *capture; // or NULL
  _Atomic int waiting;       // the pump is to submit the open batch
  int closed;
};

struct cs_event {
  cs_stream *stream;
  uint64_t number; // of the batch, 0 if there was none
  uint32_t query;  // number of its timestamp, or NONE
  cs_event *next;  // of those that are closed and not reached
};

enum { QUERIES = 256 }; // of a pool

struct queries {
  VkQueryPool *pools;
  uint32_t pools_count;
  uint32_t *free;
  uint32_t free_count;
  cs_event *closed; // events that are closed and were not reached then
};

struct cs_device {
  cs_lib *lib;
  VkPhysicalDevice physical;
  VkDevice handle;
  struct device_api vk;
  struct traits t;
  _Atomic int lost;
  int32_t ordinal;
  _Atomic int pipelines; // some were made
  uint32_t kinds[3];     // types of memory by CS_ON_DEVICE ...
  VkPipelineLayout layout;
  VkPipelineCache cache;

  pthread_mutex_t submit; // guards queues: drivers fail when two threads submit at once
  VkQueue queues[QUEUES];
  uint32_t queue_count;
  _Atomic uint32_t next_queue;

  pthread_rwlock_t memory; // guards both tables
  struct table by_address, by_host;

  pthread_mutex_t lock; // guards the following
  cs_stream *streams;
  struct dead *dead, **dead_end; // by serial
  struct slab *slabs[3][SLOT_SIZES];
  uint64_t allocated; // bytes in the device's heap
  struct queries queries;
  pthread_t pump;
  pthread_cond_t left; // a batch was left open
  int pumping, closing;

  _Atomic uint64_t begun; // serial of the last batch
  pthread_mutex_t tools; // guards the following
  uint32_t facts;        // with FACTS_KNOWN, or 0
  VkPipeline fill;
  VkShaderModule fill_code;
};

// PUSHED is the number of words of push constants: the global size and the number of dimensions, addresses of the
// constants and of arguments in memory, the number of the first group, and from ARGUMENTS on the arguments.
enum { PUSHED = 32, CONSTANTS_AT = 4, BLOCK_AT = 6, FIRST_GROUP = 8, ARGUMENTS = 12 };

struct pipeline {
  struct pipeline *next;
  uint32_t group[3], words;
  VkPipeline handle;
};

struct cs_kernel {
  cs_module *module;
  char *name;
  uint32_t local_bytes, argument_bytes;
  int in_memory; // the arguments are passed in memory
  pthread_mutex_t lock;
  struct pipeline *pipelines;
};

struct cs_module {
  struct dead dead;
  cs_device *dev;
  VkShaderModule code;
  struct block *constants; // or NULL
  uint32_t count;
  cs_kernel kernels[];
};

// recording is the commands of a graph.
struct recording {
  struct dead dead;
  struct recorder r;
  VkCommandPool pool;
  struct chunk *chunks;
};

struct cs_graph {
  cs_device *dev;
  struct recording *now;
};

// -- failures --

static const char *result_name(int32_t code) {
  switch (code) {
  case VK_NOT_READY:
    return "VK_NOT_READY";
  case VK_TIMEOUT:
    return "VK_TIMEOUT";
  case VK_INCOMPLETE:
    return "VK_INCOMPLETE";
  case VK_ERROR_OUT_OF_HOST_MEMORY:
    return "VK_ERROR_OUT_OF_HOST_MEMORY";
  case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
  case VK_ERROR_INITIALIZATION_FAILED:
    return "VK_ERROR_INITIALIZATION_FAILED";
  case VK_ERROR_DEVICE_LOST:
    return "VK_ERROR_DEVICE_LOST";
  case VK_ERROR_MEMORY_MAP_FAILED:
    return "VK_ERROR_MEMORY_MAP_FAILED";
  case VK_ERROR_LAYER_NOT_PRESENT:
    return "VK_ERROR_LAYER_NOT_PRESENT";
  case VK_ERROR_EXTENSION_NOT_PRESENT:
    return "VK_ERROR_EXTENSION_NOT_PRESENT";
  case VK_ERROR_FEATURE_NOT_PRESENT:
    return "VK_ERROR_FEATURE_NOT_PRESENT";
  case VK_ERROR_INCOMPATIBLE_DRIVER:
    return "VK_ERROR_INCOMPATIBLE_DRIVER";
  case VK_ERROR_TOO_MANY_OBJECTS:
    return "VK_ERROR_TOO_MANY_OBJECTS";
  case VK_ERROR_FRAGMENTED_POOL:
    return "VK_ERROR_FRAGMENTED_POOL";
  case VK_ERROR_OUT_OF_POOL_MEMORY:
    return "VK_ERROR_OUT_OF_POOL_MEMORY";
  case VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS:
    return "VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS";
  case VK_ERROR_FRAGMENTATION:
    return "VK_ERROR_FRAGMENTATION";
  case VK_ERROR_NOT_PERMITTED_KHR:
    return "VK_ERROR_NOT_PERMITTED_KHR";
  case VK_ERROR_INVALID_SHADER_NV:
    return "VK_ERROR_INVALID_SHADER_NV";
  case VK_ERROR_UNKNOWN:
    return "VK_ERROR_UNKNOWN";
  }
  return "an error that Vulkan 1.3 does not have";
}

static int32_t class_of(int32_t code) {
  switch (code) {
  case VK_ERROR_OUT_OF_DEVICE_MEMORY:
  case VK_ERROR_OUT_OF_HOST_MEMORY:
  case VK_ERROR_TOO_MANY_OBJECTS:
  case VK_ERROR_FRAGMENTED_POOL:
  case VK_ERROR_OUT_OF_POOL_MEMORY:
  case VK_ERROR_FRAGMENTATION:
  case VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS:
  case VK_ERROR_MEMORY_MAP_FAILED:
    return CS_NO_MEMORY;
  case VK_ERROR_DEVICE_LOST:
    return CS_LOST;
  case VK_ERROR_INCOMPATIBLE_DRIVER:
  case VK_ERROR_LAYER_NOT_PRESENT:
    return CS_NO_DEVICE;
  case VK_ERROR_EXTENSION_NOT_PRESENT:
  case VK_ERROR_FEATURE_NOT_PRESENT:
    return CS_UNSUPPORTED;
  case VK_ERROR_INVALID_SHADER_NV:
    return CS_COMPILE;
  }
  return CS_FAILED;
}

// checked converts the result of a call to a CS_* status.
static int32_t checked(int32_t code, const char *call, cs_error *err) {
  if (code >= 0)
    return CS_OK;
  return tell(err, class_of(code), code, "vk%s: %s", call, result_name(code));
}

// present returns an error if the device was lost.
static int32_t present(cs_device *d, cs_error *err) {
  if (atomic_load(&d->lost))
    return tell(err, CS_LOST, VK_ERROR_DEVICE_LOST, "VK_ERROR_DEVICE_LOST: an earlier call lost the device");
  return CS_OK;
}

// on_device is checked for calls on a device, which may lose it.
static int32_t on_device(cs_device *d, int32_t code, const char *call, cs_error *err) {
  if (code >= 0)
    return CS_OK;
  if (code == VK_ERROR_DEVICE_LOST)
    atomic_store(&d->lost, 1);
  return checked(code, call, err);
}

// CALL calls a function of a device.
#define CALL(d, err, name, ...) on_device(d, (d)->vk.name((d)->handle, __VA_ARGS__), #name, err)

#endif
