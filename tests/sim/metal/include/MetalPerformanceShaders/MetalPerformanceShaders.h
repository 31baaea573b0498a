// MetalPerformanceShaders.h is the part of Apple's framework of that name that csrc/metal uses: the
// product of matrices.

#ifndef CONCORD_SIM_MPS_H
#define CONCORD_SIM_MPS_H

#import <Metal/Metal.h>

NS_ASSUME_NONNULL_BEGIN

typedef NS_ENUM(uint32_t, MPSDataType) {
  MPSDataTypeFloatBit = 0x10000000,
  MPSDataTypeFloat32 = MPSDataTypeFloatBit | 32,
  MPSDataTypeFloat16 = MPSDataTypeFloatBit | 16,
};

extern BOOL MPSSupportsMTLDevice(id<MTLDevice> _Nullable device);

@interface MPSMatrixDescriptor : NSObject
+ (instancetype)matrixDescriptorWithRows:(NSUInteger)rows columns:(NSUInteger)columns rowBytes:(NSUInteger)rowBytes dataType:(MPSDataType)dataType;
@end

@interface MPSMatrix : NSObject
- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset descriptor:(MPSMatrixDescriptor *)descriptor;
@end

@interface MPSKernel : NSObject
@end

@interface MPSMatrixMultiplication : MPSKernel
- (instancetype)initWithDevice:(id<MTLDevice>)device transposeLeft:(BOOL)transposeLeft transposeRight:(BOOL)transposeRight resultRows:(NSUInteger)resultRows resultColumns:(NSUInteger)resultColumns interiorColumns:(NSUInteger)interiorColumns alpha:(double)alpha beta:(double)beta;
- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)commandBuffer leftMatrix:(MPSMatrix *)leftMatrix rightMatrix:(MPSMatrix *)rightMatrix resultMatrix:(MPSMatrix *)resultMatrix;
@end

NS_ASSUME_NONNULL_END

#endif
