// vk.h declares what the shim uses of Vulkan 1.3, so that a build needs no header of it. The names, numbers
// and layouts are those of the API's registry (vk.xml); vulkan/api_test.go compares them with vulkan_core.h
// where that is installed. Enumerations are int32_t here, sets of flags uint32_t or uint64_t.

#ifndef CONCORD_VULKAN_VK_H
#define CONCORD_VULKAN_VK_H

#include <stddef.h>
#include <stdint.h>

enum {
  VK_SUCCESS = 0,
  VK_NOT_READY = 1,
  VK_TIMEOUT = 2,
  VK_INCOMPLETE = 5,
  VK_ERROR_OUT_OF_HOST_MEMORY = -1,
  VK_ERROR_OUT_OF_DEVICE_MEMORY = -2,
  VK_ERROR_INITIALIZATION_FAILED = -3,
  VK_ERROR_DEVICE_LOST = -4,
  VK_ERROR_MEMORY_MAP_FAILED = -5,
  VK_ERROR_LAYER_NOT_PRESENT = -6,
  VK_ERROR_EXTENSION_NOT_PRESENT = -7,
  VK_ERROR_FEATURE_NOT_PRESENT = -8,
  VK_ERROR_INCOMPATIBLE_DRIVER = -9,
  VK_ERROR_TOO_MANY_OBJECTS = -10,
  VK_ERROR_FRAGMENTED_POOL = -12,
  VK_ERROR_UNKNOWN = -13,
  VK_ERROR_OUT_OF_POOL_MEMORY = -1000069000,
  VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS = -1000257000,
  VK_ERROR_FRAGMENTATION = -1000161000,
  VK_ERROR_NOT_PERMITTED_KHR = -1000174001,
  VK_ERROR_INVALID_SHADER_NV = -1000012000,
  VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR = 1,
  VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU = 1,
  VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU = 2,
  VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU = 3,
  VK_PHYSICAL_DEVICE_TYPE_CPU = 4,
  VK_DRIVER_ID_MOLTENVK = 14,
  VK_SUBGROUP_FEATURE_BASIC_BIT = 1,
  VK_SUBGROUP_FEATURE_VOTE_BIT = 2,
  VK_SUBGROUP_FEATURE_ARITHMETIC_BIT = 4,
  VK_SUBGROUP_FEATURE_BALLOT_BIT = 8,
  VK_SUBGROUP_FEATURE_SHUFFLE_BIT = 0x10,
  VK_SHADER_STAGE_COMPUTE_BIT = 0x20,
  VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT = 1,
  VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT = 2,
  VK_MEMORY_PROPERTY_HOST_COHERENT_BIT = 4,
  VK_MEMORY_PROPERTY_HOST_CACHED_BIT = 8,
  VK_MEMORY_HEAP_DEVICE_LOCAL_BIT = 1,
  VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT = 2,
  VK_QUEUE_GRAPHICS_BIT = 1,
  VK_QUEUE_COMPUTE_BIT = 2,
  VK_BUFFER_USAGE_TRANSFER_SRC_BIT = 1,
  VK_BUFFER_USAGE_TRANSFER_DST_BIT = 2,
  VK_BUFFER_USAGE_STORAGE_BUFFER_BIT = 0x20,
  VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT = 0x20000,
  VK_PIPELINE_BIND_POINT_COMPUTE = 1,
  VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT = 2,
  VK_SEMAPHORE_TYPE_TIMELINE = 1,
  VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT = 2,
  VK_COMMAND_BUFFER_LEVEL_PRIMARY = 0,
  VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT = 1,
  VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT = 4,
  VK_QUERY_TYPE_TIMESTAMP = 2,
  VK_QUERY_RESULT_64_BIT = 1,
  VK_QUERY_RESULT_WAIT_BIT = 2,
};

// of 64 bits
#define VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT 0x800ULL
#define VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT 0x1000ULL
#define VK_PIPELINE_STAGE_2_HOST_BIT 0x4000ULL
#define VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT 0x10000ULL
#define VK_ACCESS_2_TRANSFER_READ_BIT 0x800ULL
#define VK_ACCESS_2_TRANSFER_WRITE_BIT 0x1000ULL
#define VK_ACCESS_2_HOST_READ_BIT 0x2000ULL
#define VK_ACCESS_2_SHADER_READ_BIT 0x20ULL
#define VK_ACCESS_2_SHADER_WRITE_BIT 0x40ULL

enum {
  VK_STRUCTURE_TYPE_APPLICATION_INFO = 0,
  VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO = 1,
  VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO = 2,
  VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO = 3,
  VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO = 5,
  VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO = 9,
  VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO = 11,
  VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO = 12,
  VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO = 16,
  VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO = 17,
  VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO = 18,
  VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO = 29,
  VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO = 30,
  VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO = 39,
  VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO = 40,
  VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO = 42,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES = 49,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES = 50,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES = 51,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES = 53,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES = 54,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2 = 1000059000,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2 = 1000059001,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2 = 1000059006,
  VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO = 1000060000,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES = 1000196000,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES = 1000197000,
  VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO = 1000207002,
  VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO = 1000207004,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT = 1000212000,
  VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO = 1000225001,
  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT = 1000237000,
  VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO = 1000244001,
  VK_STRUCTURE_TYPE_MEMORY_BARRIER_2 = 1000314000,
  VK_STRUCTURE_TYPE_DEPENDENCY_INFO = 1000314003,
  VK_STRUCTURE_TYPE_SUBMIT_INFO_2 = 1000314004,
  VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO = 1000314005,
  VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO = 1000314006,
};

typedef void (*PFN_vkVoidFunction)(void);
typedef struct VkCommandBuffer_T *VkCommandBuffer;
typedef struct VkDevice_T *VkDevice;
typedef struct VkInstance_T *VkInstance;
typedef struct VkPhysicalDevice_T *VkPhysicalDevice;
typedef struct VkQueue_T *VkQueue;

// Handles that are numbers where pointers have 32 bits.
typedef uint64_t VkBuffer;
typedef uint64_t VkCommandPool;
typedef uint64_t VkDescriptorSetLayout;
typedef uint64_t VkDeviceMemory;
typedef uint64_t VkFence;
typedef uint64_t VkPipeline;
typedef uint64_t VkPipelineCache;
typedef uint64_t VkPipelineLayout;
typedef uint64_t VkQueryPool;
typedef uint64_t VkSemaphore;
typedef uint64_t VkShaderModule;

#include "vk_types.h"

// Functions by how they are looked up: without an instance, of an instance, of a device. X takes the
// result, the name without vk, and the parameters.
#define LIBRARY_FUNCTIONS(X) \
  X(int32_t, CreateInstance, (const VkInstanceCreateInfo *, const void *, VkInstance *)) \
  X(int32_t, EnumerateInstanceVersion, (uint32_t *)) \
  X(int32_t, EnumerateInstanceExtensionProperties, (const char *, uint32_t *, \
    VkExtensionProperties *))

// of an instance
#define INSTANCE_FUNCTIONS(X) \
  X(void, DestroyInstance, (VkInstance, const void *)) \
  X(int32_t, EnumeratePhysicalDevices, (VkInstance, uint32_t *, VkPhysicalDevice *)) \
  X(void, GetPhysicalDeviceProperties2, (VkPhysicalDevice, VkPhysicalDeviceProperties2 *)) \
  X(void, GetPhysicalDeviceFeatures2, (VkPhysicalDevice, VkPhysicalDeviceFeatures2 *)) \
  X(void, GetPhysicalDeviceMemoryProperties2, (VkPhysicalDevice, \
    VkPhysicalDeviceMemoryProperties2 *)) \
  X(void, GetPhysicalDeviceQueueFamilyProperties, (VkPhysicalDevice, uint32_t *, \
    VkQueueFamilyProperties *)) \
  X(int32_t, EnumerateDeviceExtensionProperties, (VkPhysicalDevice, const char *, uint32_t *, \
    VkExtensionProperties *)) \
  X(int32_t, CreateDevice, (VkPhysicalDevice, const VkDeviceCreateInfo *, const void *, \
    VkDevice *)) \
  X(PFN_vkVoidFunction, GetDeviceProcAddr, (VkDevice, const char *))

// of a device
#define DEVICE_FUNCTIONS(X) \
  X(void, DestroyDevice, (VkDevice, const void *)) \
  X(void, GetDeviceQueue, (VkDevice, uint32_t, uint32_t, VkQueue *)) \
  X(int32_t, DeviceWaitIdle, (VkDevice)) \
  X(int32_t, QueueSubmit2, (VkQueue, uint32_t, const VkSubmitInfo2 *, VkFence)) \
  X(int32_t, AllocateMemory, (VkDevice, const VkMemoryAllocateInfo *, const void *, \
    VkDeviceMemory *)) \
  X(void, FreeMemory, (VkDevice, VkDeviceMemory, const void *)) \
  X(int32_t, MapMemory, (VkDevice, VkDeviceMemory, uint64_t, uint64_t, uint32_t, void **)) \
  X(int32_t, CreateBuffer, (VkDevice, const VkBufferCreateInfo *, const void *, VkBuffer *)) \
  X(void, DestroyBuffer, (VkDevice, VkBuffer, const void *)) \
  X(void, GetBufferMemoryRequirements, (VkDevice, VkBuffer, VkMemoryRequirements *)) \
  X(int32_t, BindBufferMemory, (VkDevice, VkBuffer, VkDeviceMemory, uint64_t)) \
  X(uint64_t, GetBufferDeviceAddress, (VkDevice, const VkBufferDeviceAddressInfo *)) \
  X(int32_t, CreateShaderModule, (VkDevice, const VkShaderModuleCreateInfo *, const void *, \
    VkShaderModule *)) \
  X(void, DestroyShaderModule, (VkDevice, VkShaderModule, const void *)) \
  X(int32_t, CreatePipelineCache, (VkDevice, const VkPipelineCacheCreateInfo *, const void *, \
    VkPipelineCache *)) \
  X(void, DestroyPipelineCache, (VkDevice, VkPipelineCache, const void *)) \
  X(int32_t, GetPipelineCacheData, (VkDevice, VkPipelineCache, size_t *, void *)) \
  X(int32_t, CreatePipelineLayout, (VkDevice, const VkPipelineLayoutCreateInfo *, const void *, \
    VkPipelineLayout *)) \
  X(void, DestroyPipelineLayout, (VkDevice, VkPipelineLayout, const void *)) \
  X(int32_t, CreateComputePipelines, (VkDevice, VkPipelineCache, uint32_t, \
    const VkComputePipelineCreateInfo *, const void *, VkPipeline *)) \
  X(void, DestroyPipeline, (VkDevice, VkPipeline, const void *)) \
  X(int32_t, CreateSemaphore, (VkDevice, const VkSemaphoreCreateInfo *, const void *, \
    VkSemaphore *)) \
  X(void, DestroySemaphore, (VkDevice, VkSemaphore, const void *)) \
  X(int32_t, GetSemaphoreCounterValue, (VkDevice, VkSemaphore, uint64_t *)) \
  X(int32_t, WaitSemaphores, (VkDevice, const VkSemaphoreWaitInfo *, uint64_t)) \
  X(int32_t, CreateCommandPool, (VkDevice, const VkCommandPoolCreateInfo *, const void *, \
    VkCommandPool *)) \
  X(void, DestroyCommandPool, (VkDevice, VkCommandPool, const void *)) \
  X(int32_t, AllocateCommandBuffers, (VkDevice, const VkCommandBufferAllocateInfo *, \
    VkCommandBuffer *)) \
  X(void, FreeCommandBuffers, (VkDevice, VkCommandPool, uint32_t, const VkCommandBuffer *)) \
  X(int32_t, BeginCommandBuffer, (VkCommandBuffer, const VkCommandBufferBeginInfo *)) \
  X(int32_t, EndCommandBuffer, (VkCommandBuffer)) \
  X(int32_t, ResetCommandBuffer, (VkCommandBuffer, uint32_t)) \
  X(void, CmdBindPipeline, (VkCommandBuffer, int32_t, VkPipeline)) \
  X(void, CmdPushConstants, (VkCommandBuffer, VkPipelineLayout, uint32_t, uint32_t, uint32_t, \
    const void *)) \
  X(void, CmdDispatch, (VkCommandBuffer, uint32_t, uint32_t, uint32_t)) \
  X(void, CmdPipelineBarrier2, (VkCommandBuffer, const VkDependencyInfo *)) \
  X(void, CmdCopyBuffer, (VkCommandBuffer, VkBuffer, VkBuffer, uint32_t, const VkBufferCopy *)) \
  X(void, CmdFillBuffer, (VkCommandBuffer, VkBuffer, uint64_t, uint64_t, uint32_t)) \
  X(void, CmdWriteTimestamp2, (VkCommandBuffer, uint64_t, VkQueryPool, uint32_t)) \
  X(int32_t, CreateQueryPool, (VkDevice, const VkQueryPoolCreateInfo *, const void *, \
    VkQueryPool *)) \
  X(void, DestroyQueryPool, (VkDevice, VkQueryPool, const void *)) \
  X(void, ResetQueryPool, (VkDevice, VkQueryPool, uint32_t, uint32_t)) \
  X(int32_t, GetQueryPoolResults, (VkDevice, VkQueryPool, uint32_t, uint32_t, size_t, void *, \
    uint64_t, uint32_t))

#endif
