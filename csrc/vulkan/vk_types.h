// vk_types.h has the structs of Vulkan 1.3 that the shim uses; vk.h says where they are from.

typedef struct VkExtent3D {
  uint32_t width, height, depth;
} VkExtent3D;

typedef struct VkApplicationInfo {
  int32_t sType;
  const void *pNext;
  const char *pApplicationName;
  uint32_t applicationVersion;
  const char *pEngineName;
  uint32_t engineVersion, apiVersion;
} VkApplicationInfo;

typedef struct VkInstanceCreateInfo {
  int32_t sType;
  const void *pNext;
  uint32_t flags;
  const VkApplicationInfo *pApplicationInfo;
  uint32_t enabledLayerCount;
  const char **ppEnabledLayerNames;
  uint32_t enabledExtensionCount;
  const char **ppEnabledExtensionNames;
} VkInstanceCreateInfo;

typedef struct VkExtensionProperties {
  char extensionName[256];
  uint32_t specVersion;
} VkExtensionProperties;

typedef struct VkPhysicalDeviceLimits {
  uint32_t maxImageDimension1D, maxImageDimension2D, maxImageDimension3D, maxImageDimensionCube,
      maxImageArrayLayers, maxTexelBufferElements, maxUniformBufferRange, maxStorageBufferRange,
      maxPushConstantsSize, maxMemoryAllocationCount, maxSamplerAllocationCount;
  uint64_t bufferImageGranularity, sparseAddressSpaceSize;
  uint32_t maxBoundDescriptorSets, maxPerStageDescriptorSamplers,
      maxPerStageDescriptorUniformBuffers, maxPerStageDescriptorStorageBuffers,
      maxPerStageDescriptorSampledImages, maxPerStageDescriptorStorageImages,
      maxPerStageDescriptorInputAttachments, maxPerStageResources, maxDescriptorSetSamplers,
      maxDescriptorSetUniformBuffers, maxDescriptorSetUniformBuffersDynamic,
      maxDescriptorSetStorageBuffers, maxDescriptorSetStorageBuffersDynamic,
      maxDescriptorSetSampledImages, maxDescriptorSetStorageImages,
      maxDescriptorSetInputAttachments, maxVertexInputAttributes, maxVertexInputBindings,
      maxVertexInputAttributeOffset, maxVertexInputBindingStride, maxVertexOutputComponents,
      maxTessellationGenerationLevel, maxTessellationPatchSize,
      maxTessellationControlPerVertexInputComponents,
      maxTessellationControlPerVertexOutputComponents,
      maxTessellationControlPerPatchOutputComponents, maxTessellationControlTotalOutputComponents,
      maxTessellationEvaluationInputComponents, maxTessellationEvaluationOutputComponents,
      maxGeometryShaderInvocations, maxGeometryInputComponents, maxGeometryOutputComponents,
      maxGeometryOutputVertices, maxGeometryTotalOutputComponents, maxFragmentInputComponents,
      maxFragmentOutputAttachments, maxFragmentDualSrcAttachments,
      maxFragmentCombinedOutputResources, maxComputeSharedMemorySize, maxComputeWorkGroupCount[3],
      maxComputeWorkGroupInvocations, maxComputeWorkGroupSize[3], subPixelPrecisionBits,
      subTexelPrecisionBits, mipmapPrecisionBits, maxDrawIndexedIndexValue, maxDrawIndirectCount;
  float maxSamplerLodBias, maxSamplerAnisotropy;
  uint32_t maxViewports, maxViewportDimensions[2];
  float viewportBoundsRange[2];
  uint32_t viewportSubPixelBits;
  size_t minMemoryMapAlignment;
  uint64_t minTexelBufferOffsetAlignment, minUniformBufferOffsetAlignment,
      minStorageBufferOffsetAlignment;
  int32_t minTexelOffset;
  uint32_t maxTexelOffset;
  int32_t minTexelGatherOffset;
  uint32_t maxTexelGatherOffset;
  float minInterpolationOffset, maxInterpolationOffset;
  uint32_t subPixelInterpolationOffsetBits, maxFramebufferWidth, maxFramebufferHeight,
      maxFramebufferLayers, framebufferColorSampleCounts, framebufferDepthSampleCounts,
      framebufferStencilSampleCounts, framebufferNoAttachmentsSampleCounts, maxColorAttachments,
      sampledImageColorSampleCounts, sampledImageIntegerSampleCounts, sampledImageDepthSampleCounts,
      sampledImageStencilSampleCounts, storageImageSampleCounts, maxSampleMaskWords,
      timestampComputeAndGraphics;
  float timestampPeriod;
  uint32_t maxClipDistances, maxCullDistances, maxCombinedClipAndCullDistances,
      discreteQueuePriorities;
  float pointSizeRange[2], lineWidthRange[2], pointSizeGranularity, lineWidthGranularity;
  uint32_t strictLines, standardSampleLocations;
  uint64_t optimalBufferCopyOffsetAlignment, optimalBufferCopyRowPitchAlignment,
      nonCoherentAtomSize;
} VkPhysicalDeviceLimits;

typedef struct VkPhysicalDeviceSparseProperties {
  uint32_t residencyStandard2DBlockShape, residencyStandard2DMultisampleBlockShape,
      residencyStandard3DBlockShape, residencyAlignedMipSize, residencyNonResidentStrict;
} VkPhysicalDeviceSparseProperties;

typedef struct VkPhysicalDeviceProperties {
  uint32_t apiVersion, driverVersion, vendorID, deviceID;
  int32_t deviceType;
  char deviceName[256];
  uint8_t pipelineCacheUUID[16];
  VkPhysicalDeviceLimits limits;
  VkPhysicalDeviceSparseProperties sparseProperties;
} VkPhysicalDeviceProperties;

typedef struct VkPhysicalDeviceProperties2 {
  int32_t sType;
  void *pNext;
  VkPhysicalDeviceProperties properties;
} VkPhysicalDeviceProperties2;

typedef struct VkPhysicalDeviceVulkan11Properties {
  int32_t sType;
  void *pNext;
  uint8_t deviceUUID[16], driverUUID[16], deviceLUID[8];
  uint32_t deviceNodeMask, deviceLUIDValid, subgroupSize, subgroupSupportedStages,
      subgroupSupportedOperations, subgroupQuadOperationsInAllStages;
  int32_t pointClippingBehavior;
  uint32_t maxMultiviewViewCount, maxMultiviewInstanceIndex, protectedNoFault, maxPerSetDescriptors;
  uint64_t maxMemoryAllocationSize;
} VkPhysicalDeviceVulkan11Properties;

typedef struct VkConformanceVersion {
  uint8_t major, minor, subminor, patch;
} VkConformanceVersion;

typedef struct VkPhysicalDeviceDriverProperties {
  int32_t sType;
  void *pNext;
  int32_t driverID;
  char driverName[256], driverInfo[256];
  VkConformanceVersion conformanceVersion;
} VkPhysicalDeviceDriverProperties;

typedef struct VkPhysicalDeviceFloatControlsProperties {
  int32_t sType;
  void *pNext;
  int32_t denormBehaviorIndependence, roundingModeIndependence;
  uint32_t shaderSignedZeroInfNanPreserveFloat16, shaderSignedZeroInfNanPreserveFloat32,
      shaderSignedZeroInfNanPreserveFloat64, shaderDenormPreserveFloat16,
      shaderDenormPreserveFloat32, shaderDenormPreserveFloat64, shaderDenormFlushToZeroFloat16,
      shaderDenormFlushToZeroFloat32, shaderDenormFlushToZeroFloat64, shaderRoundingModeRTEFloat16,
      shaderRoundingModeRTEFloat32, shaderRoundingModeRTEFloat64, shaderRoundingModeRTZFloat16,
      shaderRoundingModeRTZFloat32, shaderRoundingModeRTZFloat64;
} VkPhysicalDeviceFloatControlsProperties;

typedef struct VkPhysicalDeviceVulkan13Properties {
  int32_t sType;
  void *pNext;
  uint32_t minSubgroupSize, maxSubgroupSize, maxComputeWorkgroupSubgroups,
      requiredSubgroupSizeStages, maxInlineUniformBlockSize,
      maxPerStageDescriptorInlineUniformBlocks,
      maxPerStageDescriptorUpdateAfterBindInlineUniformBlocks, maxDescriptorSetInlineUniformBlocks,
      maxDescriptorSetUpdateAfterBindInlineUniformBlocks, maxInlineUniformTotalSize,
      integerDotProducts[30];
  uint64_t storageTexelBufferOffsetAlignmentBytes;
  uint32_t storageTexelBufferOffsetSingleTexelAlignment;
  uint64_t uniformTexelBufferOffsetAlignmentBytes;
  uint32_t uniformTexelBufferOffsetSingleTexelAlignment;
  uint64_t maxBufferSize;
} VkPhysicalDeviceVulkan13Properties;

typedef struct VkPhysicalDevicePCIBusInfoPropertiesEXT {
  int32_t sType;
  void *pNext;
  uint32_t pciDomain, pciBus, pciDevice, pciFunction;
} VkPhysicalDevicePCIBusInfoPropertiesEXT;

typedef struct VkPhysicalDeviceFeatures {
  uint32_t robustBufferAccess, fullDrawIndexUint32, imageCubeArray, independentBlend,
      geometryShader, tessellationShader, sampleRateShading, dualSrcBlend, logicOp,
      multiDrawIndirect, drawIndirectFirstInstance, depthClamp, depthBiasClamp, fillModeNonSolid,
      depthBounds, wideLines, largePoints, alphaToOne, multiViewport, samplerAnisotropy,
      textureCompressionETC2, textureCompressionASTC_LDR, textureCompressionBC,
      occlusionQueryPrecise, pipelineStatisticsQuery, vertexPipelineStoresAndAtomics,
      fragmentStoresAndAtomics, shaderTessellationAndGeometryPointSize, shaderImageGatherExtended,
      shaderStorageImageExtendedFormats, shaderStorageImageMultisample,
      shaderStorageImageReadWithoutFormat, shaderStorageImageWriteWithoutFormat,
      shaderUniformBufferArrayDynamicIndexing, shaderSampledImageArrayDynamicIndexing,
      shaderStorageBufferArrayDynamicIndexing, shaderStorageImageArrayDynamicIndexing,
      shaderClipDistance, shaderCullDistance, shaderFloat64, shaderInt64, shaderInt16,
      shaderResourceResidency, shaderResourceMinLod, sparseBinding, sparseResidencyBuffer,
      sparseResidencyImage2D, sparseResidencyImage3D, sparseResidency2Samples,
      sparseResidency4Samples, sparseResidency8Samples, sparseResidency16Samples,
      sparseResidencyAliased, variableMultisampleRate, inheritedQueries;
} VkPhysicalDeviceFeatures;

typedef struct VkPhysicalDeviceFeatures2 {
  int32_t sType;
  void *pNext;
  VkPhysicalDeviceFeatures features;
} VkPhysicalDeviceFeatures2;

typedef struct VkPhysicalDeviceVulkan11Features {
  int32_t sType;
  void *pNext;
  uint32_t storageBuffer16BitAccess, uniformAndStorageBuffer16BitAccess, storagePushConstant16,
      storageInputOutput16, multiview, multiviewGeometryShader, multiviewTessellationShader,
      variablePointersStorageBuffer, variablePointers, protectedMemory, samplerYcbcrConversion,
      shaderDrawParameters;
} VkPhysicalDeviceVulkan11Features;

typedef struct VkPhysicalDeviceVulkan12Features {
  int32_t sType;
  void *pNext;
  uint32_t samplerMirrorClampToEdge, drawIndirectCount, storageBuffer8BitAccess,
      uniformAndStorageBuffer8BitAccess, storagePushConstant8, shaderBufferInt64Atomics,
      shaderSharedInt64Atomics, shaderFloat16, shaderInt8, descriptorIndexing,
      shaderInputAttachmentArrayDynamicIndexing, shaderUniformTexelBufferArrayDynamicIndexing,
      shaderStorageTexelBufferArrayDynamicIndexing, shaderUniformBufferArrayNonUniformIndexing,
      shaderSampledImageArrayNonUniformIndexing, shaderStorageBufferArrayNonUniformIndexing,
      shaderStorageImageArrayNonUniformIndexing, shaderInputAttachmentArrayNonUniformIndexing,
      shaderUniformTexelBufferArrayNonUniformIndexing,
      shaderStorageTexelBufferArrayNonUniformIndexing,
      descriptorBindingUniformBufferUpdateAfterBind, descriptorBindingSampledImageUpdateAfterBind,
      descriptorBindingStorageImageUpdateAfterBind, descriptorBindingStorageBufferUpdateAfterBind,
      descriptorBindingUniformTexelBufferUpdateAfterBind,
      descriptorBindingStorageTexelBufferUpdateAfterBind, descriptorBindingUpdateUnusedWhilePending,
      descriptorBindingPartiallyBound, descriptorBindingVariableDescriptorCount,
      runtimeDescriptorArray, samplerFilterMinmax, scalarBlockLayout, imagelessFramebuffer,
      uniformBufferStandardLayout, shaderSubgroupExtendedTypes, separateDepthStencilLayouts,
      hostQueryReset, timelineSemaphore, bufferDeviceAddress, bufferDeviceAddressCaptureReplay,
      bufferDeviceAddressMultiDevice, vulkanMemoryModel, vulkanMemoryModelDeviceScope,
      vulkanMemoryModelAvailabilityVisibilityChains, shaderOutputViewportIndex, shaderOutputLayer,
      subgroupBroadcastDynamicId;
} VkPhysicalDeviceVulkan12Features;

typedef struct VkPhysicalDeviceVulkan13Features {
  int32_t sType;
  void *pNext;
  uint32_t robustImageAccess, inlineUniformBlock,
      descriptorBindingInlineUniformBlockUpdateAfterBind, pipelineCreationCacheControl, privateData,
      shaderDemoteToHelperInvocation, shaderTerminateInvocation, subgroupSizeControl,
      computeFullSubgroups, synchronization2, textureCompressionASTC_HDR,
      shaderZeroInitializeWorkgroupMemory, dynamicRendering, shaderIntegerDotProduct, maintenance4;
} VkPhysicalDeviceVulkan13Features;

typedef struct VkMemoryType {
  uint32_t propertyFlags, heapIndex;
} VkMemoryType;

typedef struct VkMemoryHeap {
  uint64_t size;
  uint32_t flags;
} VkMemoryHeap;

typedef struct VkPhysicalDeviceMemoryProperties {
  uint32_t memoryTypeCount;
  VkMemoryType memoryTypes[32];
  uint32_t memoryHeapCount;
  VkMemoryHeap memoryHeaps[16];
} VkPhysicalDeviceMemoryProperties;

typedef struct VkPhysicalDeviceMemoryProperties2 {
  int32_t sType;
  void *pNext;
  VkPhysicalDeviceMemoryProperties memoryProperties;
} VkPhysicalDeviceMemoryProperties2;

typedef struct VkPhysicalDeviceMemoryBudgetPropertiesEXT {
  int32_t sType;
  void *pNext;
  uint64_t heapBudget[16], heapUsage[16];
} VkPhysicalDeviceMemoryBudgetPropertiesEXT;

typedef struct VkQueueFamilyProperties {
  uint32_t queueFlags, queueCount, timestampValidBits;
  VkExtent3D minImageTransferGranularity;
} VkQueueFamilyProperties;

typedef struct VkDeviceQueueCreateInfo {
  int32_t sType;
  const void *pNext;
  uint32_t flags, queueFamilyIndex, queueCount;
  const float *pQueuePriorities;
} VkDeviceQueueCreateInfo;

typedef struct VkDeviceCreateInfo {
  int32_t sType;
  const void *pNext;
  uint32_t flags, queueCreateInfoCount;
  const VkDeviceQueueCreateInfo *pQueueCreateInfos;
  uint32_t enabledLayerCount;
  const char **ppEnabledLayerNames;
  uint32_t enabledExtensionCount;
  const char **ppEnabledExtensionNames;
  const VkPhysicalDeviceFeatures *pEnabledFeatures;
} VkDeviceCreateInfo;

typedef struct VkBufferCreateInfo {
  int32_t sType;
  const void *pNext;
  uint32_t flags;
  uint64_t size;
  uint32_t usage;
  int32_t sharingMode;
  uint32_t queueFamilyIndexCount;
  const uint32_t *pQueueFamilyIndices;
} VkBufferCreateInfo;

typedef struct VkBufferDeviceAddressInfo {
  int32_t sType;
  const void *pNext;
  VkBuffer buffer;
} VkBufferDeviceAddressInfo;

typedef struct VkMemoryRequirements {
  uint64_t size, alignment;
  uint32_t memoryTypeBits;
} VkMemoryRequirements;

typedef struct VkMemoryAllocateInfo {
  int32_t sType;
  const void *pNext;
  uint64_t allocationSize;
  uint32_t memoryTypeIndex;
} VkMemoryAllocateInfo;

typedef struct VkMemoryAllocateFlagsInfo {
  int32_t sType;
  const void *pNext;
  uint32_t flags, deviceMask;
} VkMemoryAllocateFlagsInfo;

typedef struct VkShaderModuleCreateInfo {
  int32_t sType;
  const void *pNext;
  uint32_t flags;
  size_t codeSize;
  const uint32_t *pCode;
} VkShaderModuleCreateInfo;

typedef struct VkPipelineCacheCreateInfo {
  int32_t sType;
  const void *pNext;
  uint32_t flags;
  size_t initialDataSize;
  const void *pInitialData;
} VkPipelineCacheCreateInfo;

typedef struct VkSpecializationMapEntry {
  uint32_t constantID, offset;
  size_t size;
} VkSpecializationMapEntry;

typedef struct VkSpecializationInfo {
  uint32_t mapEntryCount;
  const VkSpecializationMapEntry *pMapEntries;
  size_t dataSize;
  const void *pData;
} VkSpecializationInfo;

typedef struct VkPipelineShaderStageCreateInfo {
  int32_t sType;
  const void *pNext;
  uint32_t flags;
  int32_t stage;
  VkShaderModule module;
  const char *pName;
  const VkSpecializationInfo *pSpecializationInfo;
} VkPipelineShaderStageCreateInfo;

typedef struct VkPipelineShaderStageRequiredSubgroupSizeCreateInfo {
  int32_t sType;
  void *pNext;
  uint32_t requiredSubgroupSize;
} VkPipelineShaderStageRequiredSubgroupSizeCreateInfo;

typedef struct VkComputePipelineCreateInfo {
  int32_t sType;
  const void *pNext;
  uint32_t flags;
  VkPipelineShaderStageCreateInfo stage;
  VkPipelineLayout layout;
  VkPipeline basePipelineHandle;
  int32_t basePipelineIndex;
} VkComputePipelineCreateInfo;

typedef struct VkPushConstantRange {
  uint32_t stageFlags, offset, size;
} VkPushConstantRange;

typedef struct VkPipelineLayoutCreateInfo {
  int32_t sType;
  const void *pNext;
  uint32_t flags, setLayoutCount;
  const VkDescriptorSetLayout *pSetLayouts;
  uint32_t pushConstantRangeCount;
  const VkPushConstantRange *pPushConstantRanges;
} VkPipelineLayoutCreateInfo;

typedef struct VkSemaphoreTypeCreateInfo {
  int32_t sType;
  const void *pNext;
  int32_t semaphoreType;
  uint64_t initialValue;
} VkSemaphoreTypeCreateInfo;

typedef struct VkSemaphoreCreateInfo {
  int32_t sType;
  const void *pNext;
  uint32_t flags;
} VkSemaphoreCreateInfo;

typedef struct VkSemaphoreWaitInfo {
  int32_t sType;
  const void *pNext;
  uint32_t flags, semaphoreCount;
  const VkSemaphore *pSemaphores;
  const uint64_t *pValues;
} VkSemaphoreWaitInfo;

typedef struct VkSemaphoreSubmitInfo {
  int32_t sType;
  const void *pNext;
  VkSemaphore semaphore;
  uint64_t value, stageMask;
  uint32_t deviceIndex;
} VkSemaphoreSubmitInfo;

typedef struct VkCommandBufferSubmitInfo {
  int32_t sType;
  const void *pNext;
  VkCommandBuffer commandBuffer;
  uint32_t deviceMask;
} VkCommandBufferSubmitInfo;

typedef struct VkSubmitInfo2 {
  int32_t sType;
  const void *pNext;
  uint32_t flags, waitSemaphoreInfoCount;
  const VkSemaphoreSubmitInfo *pWaitSemaphoreInfos;
  uint32_t commandBufferInfoCount;
  const VkCommandBufferSubmitInfo *pCommandBufferInfos;
  uint32_t signalSemaphoreInfoCount;
  const VkSemaphoreSubmitInfo *pSignalSemaphoreInfos;
} VkSubmitInfo2;

typedef struct VkCommandPoolCreateInfo {
  int32_t sType;
  const void *pNext;
  uint32_t flags, queueFamilyIndex;
} VkCommandPoolCreateInfo;

typedef struct VkCommandBufferAllocateInfo {
  int32_t sType;
  const void *pNext;
  VkCommandPool commandPool;
  int32_t level;
  uint32_t commandBufferCount;
} VkCommandBufferAllocateInfo;

typedef struct VkCommandBufferBeginInfo {
  int32_t sType;
  const void *pNext;
  uint32_t flags;
  const void *pInheritanceInfo;
} VkCommandBufferBeginInfo;

typedef struct VkMemoryBarrier2 {
  int32_t sType;
  const void *pNext;
  uint64_t srcStageMask, srcAccessMask, dstStageMask, dstAccessMask;
} VkMemoryBarrier2;

typedef struct VkDependencyInfo {
  int32_t sType;
  const void *pNext;
  uint32_t dependencyFlags, memoryBarrierCount;
  const VkMemoryBarrier2 *pMemoryBarriers;
  uint32_t bufferMemoryBarrierCount;
  const void *pBufferMemoryBarriers;
  uint32_t imageMemoryBarrierCount;
  const void *pImageMemoryBarriers;
} VkDependencyInfo;

typedef struct VkBufferCopy {
  uint64_t srcOffset, dstOffset, size;
} VkBufferCopy;

typedef struct VkQueryPoolCreateInfo {
  int32_t sType;
  const void *pNext;
  uint32_t flags;
  int32_t queryType;
  uint32_t queryCount, pipelineStatistics;
} VkQueryPoolCreateInfo;
