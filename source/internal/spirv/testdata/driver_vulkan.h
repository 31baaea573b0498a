// driver_vulkan.h: the tests' driver.c with -DVULKAN: a kernel of a SPIR-V module on the first Vulkan device. PROGRAM is a
// file of uint32: bytes of local memory, bytes of arguments, whether they are in memory, bytes of constants, facts of the device;
// then the constants and the module.
#include <vulkan/vulkan.h>

#define VK(call) \
  do { VkResult r_ = (call); if (r_) { fprintf(stderr, "%s: %d\n", #call, (int)r_); return 3; } } while (0)

static VkPhysicalDevice gpu;
static VkDevice device;

static VkQueue queue;

// Opens the first device, once.
static int open_device(void) {
  if (device) return 0;
  VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_3};
  VkInstanceCreateInfo ii = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &app};
  VkInstance instance;
  VK(vkCreateInstance(&ii, NULL, &instance));
  uint32_t count = 1;
  if (vkEnumeratePhysicalDevices(instance, &count, &gpu) < 0 || count == 0) return 4;
  VkPhysicalDeviceVulkan13Features f13 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
  VkPhysicalDeviceVulkan12Features f12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .pNext = &f13};
  VkPhysicalDeviceVulkan11Features f11 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, .pNext = &f12};
  VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &f11};
  vkGetPhysicalDeviceFeatures2(gpu, &features);
  float priority = 1;
  VkDeviceQueueCreateInfo qi = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1,
    .pQueuePriorities = &priority};
  VkDeviceCreateInfo ci = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .pNext = &features, .queueCreateInfoCount = 1,
    .pQueueCreateInfos = &qi};
  VK(vkCreateDevice(gpu, &ci, NULL, &device));
  vkGetDeviceQueue(device, 0, 0, &queue);
  return 0;
}

// A buffer in memory that the host sees, filled with data.
static int buffer(size_t bytes, const void *data, VkDeviceAddress *at, void **mapped) {
  VkBufferCreateInfo bi = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = bytes ? bytes : 4,
    .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT};
  VkBuffer b;
  VK(vkCreateBuffer(device, &bi, NULL, &b));
  VkMemoryRequirements need;
  vkGetBufferMemoryRequirements(device, b, &need);
  VkPhysicalDeviceMemoryProperties props;
  vkGetPhysicalDeviceMemoryProperties(gpu, &props);
  uint32_t type = 0;
  VkMemoryPropertyFlags want = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  while (!(need.memoryTypeBits >> type & 1) || (props.memoryTypes[type].propertyFlags & want) != want)
    if (++type == props.memoryTypeCount) return 3;
  VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
    .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
  VkMemoryAllocateInfo ai = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = &flags,
    .allocationSize = need.size, .memoryTypeIndex = type};
  VkDeviceMemory m;
  VK(vkAllocateMemory(device, &ai, NULL, &m));
  VK(vkBindBufferMemory(device, b, m, 0));
  VK(vkMapMemory(device, m, 0, VK_WHOLE_SIZE, 0, mapped));
  memset(*mapped, 0, bytes);
  if (data) memcpy(*mapped, data, bytes);
  VkBufferDeviceAddressInfo di = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, .buffer = b};
  *at = vkGetBufferDeviceAddress(device, &di);
  return 0;
}

static int run(char *program, char *name, size_t *g, size_t *l, arg *args, int n) {
  static char file[1 << 26];
  FILE *f = fopen(program, "rb");
  if (!f) return 5;
  size_t len = fread(file, 1, sizeof file, f);
  fclose(f);
  uint32_t *head = (uint32_t *)file, local = (head[0] + 127) / 128 * 128, in_memory = head[2];
  if (open_device()) return 3;
  VkDeviceAddress at[64], constants, block;
  void *mapped[64], *unused;
  static uint32_t push[32];
  static char values[1 << 16];
  size_t used = 0, offset = local;
  for (int i = 0; i < n; i++) {
    if (args[i].is_buf) {
      if (buffer(args[i].bytes, args[i].data, &at[i], &mapped[i])) return 3;
      used = (used + 7) / 8 * 8;
      memcpy(values + used, &at[i], 8);
      used += 8;
    } else if (args[i].is_local) {
      memcpy(values + used, &(uint32_t){(uint32_t)offset}, 4);
      offset += (args[i].bytes + 127) / 128 * 128;
      used += 4;
    } else {
      memcpy(values + used, args[i].data, args[i].bytes);
      used += (args[i].bytes + 3) / 4 * 4;
    }
  }
  if (used != head[1]) { fprintf(stderr, "the arguments have %zu bytes, the kernel takes %u\n", used, head[1]); return 3; }
  for (int d = 0; d < 3; d++) {
    push[d] = (uint32_t)g[d];
    if (g[d] > 1 || d == 0) push[3] = (uint32_t)d + 1;
  }
  if (buffer(head[3], file + 20, &constants, &unused) || buffer(used, values, &block, &unused)) return 3;
  memcpy(push + 4, &constants, 8);
  if (in_memory) memcpy(push + 6, &block, 8);
  else memcpy(push + 12, values, used);

  VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, 128};
  VkPipelineLayoutCreateInfo li = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .pushConstantRangeCount = 1,
    .pPushConstantRanges = &range};
  VkPipelineLayout layout;
  VK(vkCreatePipelineLayout(device, &li, NULL, &layout));
  VkShaderModuleCreateInfo mi = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = len - 20 - head[3],
    .pCode = (uint32_t *)(file + 20 + head[3])};
  VkShaderModule module;
  VK(vkCreateShaderModule(device, &mi, NULL, &module));
  uint32_t spec[5] = {(uint32_t)l[0], (uint32_t)l[1], (uint32_t)l[2], (uint32_t)(offset < 4 ? 1 : offset / 4), head[4]};
  VkSpecializationMapEntry map[5];
  for (uint32_t i = 0; i < 5; i++) map[i] = (VkSpecializationMapEntry){i, 4 * i, 4};
  VkSpecializationInfo si = {5, map, sizeof spec, spec};
  char entry[256];
  snprintf(entry, sizeof entry, "cc_kernel_%s", name);
  VkComputePipelineCreateInfo pi = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO, .layout = layout,
    .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .stage = VK_SHADER_STAGE_COMPUTE_BIT,
      .module = module, .pName = entry, .pSpecializationInfo = &si}};
  VkPipeline pipeline;
  VK(vkCreateComputePipelines(device, NULL, 1, &pi, NULL, &pipeline));
  VkCommandPoolCreateInfo cpi = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  VkCommandPool pool;
  VK(vkCreateCommandPool(device, &cpi, NULL, &pool));
  VkCommandBufferAllocateInfo cbi = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = pool,
    .commandBufferCount = 1};
  VkCommandBuffer cmd;
  VK(vkAllocateCommandBuffers(device, &cbi, &cmd));
  VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  VK(vkBeginCommandBuffer(cmd, &begin));
  vkCmdBindPipeline(cmd, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
  vkCmdPushConstants(cmd, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 128, push);
  vkCmdDispatch(cmd, (uint32_t)(g[0] / l[0]), (uint32_t)(g[1] / l[1]), (uint32_t)(g[2] / l[2]));
  VkMemoryBarrier done = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
    .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
  vkCmdPipelineBarrier(cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &done, 0, NULL, 0, NULL);
  VK(vkEndCommandBuffer(cmd));
  VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &cmd};
  VK(vkQueueSubmit(queue, 1, &submit, NULL));
  VK(vkQueueWaitIdle(queue));
  for (int i = 0; i < n; i++)
    if (args[i].is_buf) memcpy(args[i].data, mapped[i], args[i].bytes);
  return 0;
}
