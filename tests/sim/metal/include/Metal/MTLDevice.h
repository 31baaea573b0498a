// MTLDevice.h: devices and their queues.

#ifndef CONCORD_SIM_MTLDEVICE_H
#define CONCORD_SIM_MTLDEVICE_H

#import <Foundation/Foundation.h>

// Apple has these in CoreFoundation and in newer versions of Foundation.
typedef double CFTimeInterval;

typedef struct {
  NSUInteger width, height, depth;
} MTLSize;

NS_ASSUME_NONNULL_BEGIN

static inline MTLSize MTLSizeMake(NSUInteger width, NSUInteger height, NSUInteger depth) {
  MTLSize size = {width, height, depth};
  return size;
}

typedef NS_ENUM(NSInteger, MTLGPUFamily) {
  MTLGPUFamilyApple1 = 1001,
  MTLGPUFamilyApple2 = 1002,
  MTLGPUFamilyApple3 = 1003,
  MTLGPUFamilyApple4 = 1004,
  MTLGPUFamilyApple5 = 1005,
  MTLGPUFamilyApple6 = 1006,
  MTLGPUFamilyApple7 = 1007,
  MTLGPUFamilyApple8 = 1008,
  MTLGPUFamilyApple9 = 1009,
  MTLGPUFamilyMac2 = 2002,
  MTLGPUFamilyCommon1 = 3001,
  MTLGPUFamilyCommon2 = 3002,
  MTLGPUFamilyCommon3 = 3003,
  MTLGPUFamilyMetal3 = 5001,
};

typedef NS_OPTIONS(NSUInteger, MTLResourceOptions) {
  MTLResourceCPUCacheModeDefaultCache = 0,
  MTLResourceStorageModeShared = 0,
  MTLResourceStorageModeManaged = 1 << 4,
  MTLResourceStorageModePrivate = 2 << 4,
  MTLResourceHazardTrackingModeDefault = 0,
};

typedef NS_OPTIONS(NSUInteger, MTLPipelineOption) {
  MTLPipelineOptionNone = 0,
  MTLPipelineOptionArgumentInfo = 1 << 0,
  MTLPipelineOptionBufferTypeInfo = 1 << 1,
  MTLPipelineOptionFailOnBinaryArchiveMiss = 1 << 2,
};

@protocol MTLBinaryArchive;
@protocol MTLBuffer;
@protocol MTLCommandBuffer;
@protocol MTLCommandQueue;
@protocol MTLComputePipelineState;
@protocol MTLLibrary;
@protocol MTLSharedEvent;
@class MTLBinaryArchiveDescriptor;
@class MTLCompileOptions;
@class MTLComputePipelineDescriptor;
@class MTLComputePipelineReflection;

typedef __autoreleasing MTLComputePipelineReflection *_Nullable
    MTLAutoreleasedComputePipelineReflection;

@protocol MTLDevice <NSObject>
@property (readonly) NSString *name;
@property (readonly) uint64_t registryID;
@property (readonly) MTLSize maxThreadsPerThreadgroup;
@property (readonly) NSUInteger maxThreadgroupMemoryLength;
@property (readonly) NSUInteger maxBufferLength;
@property (readonly) uint64_t recommendedMaxWorkingSetSize;
@property (readonly) NSUInteger currentAllocatedSize;
@property (readonly) BOOL hasUnifiedMemory;
- (BOOL)supportsFamily:(MTLGPUFamily)gpuFamily;
- (nullable id<MTLCommandQueue>)newCommandQueueWithMaxCommandBufferCount:(NSUInteger)maxCommandBufferCount;
- (nullable id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options;
- (nullable id<MTLLibrary>)newLibraryWithSource:(NSString *)source options:(nullable MTLCompileOptions *)options error:(__autoreleasing NSError **)error;
- (nullable id<MTLComputePipelineState>)newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor *)descriptor options:(MTLPipelineOption)options reflection:(MTLAutoreleasedComputePipelineReflection *_Nullable)reflection error:(__autoreleasing NSError **)error;
- (nullable id<MTLBinaryArchive>)newBinaryArchiveWithDescriptor:(MTLBinaryArchiveDescriptor *)descriptor error:(NSError **)error;
- (nullable id<MTLSharedEvent>)newSharedEvent;
@end

@protocol MTLCommandQueue <NSObject>
@property (readonly) id<MTLDevice> device;
- (nullable id<MTLCommandBuffer>)commandBuffer;
@end

// The caller releases the array (NS_RETURNS_RETAINED).
extern NSArray<id<MTLDevice>> *MTLCopyAllDevices(void);

// The caller releases the device (NS_RETURNS_RETAINED).
extern id<MTLDevice> _Nullable MTLCreateSystemDefaultDevice(void);

NS_ASSUME_NONNULL_END

#endif
