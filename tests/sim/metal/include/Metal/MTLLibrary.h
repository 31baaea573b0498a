// MTLLibrary.h: programs, pipelines and their reflection, archives of compiled code.

#ifndef CONCORD_SIM_MTLLIBRARY_H
#define CONCORD_SIM_MTLLIBRARY_H

#import <Metal/MTLDevice.h>

NS_ASSUME_NONNULL_BEGIN

// The major version is in the upper 16 bits, the minor one in the lower.
typedef NS_ENUM(NSUInteger, MTLLanguageVersion) {
  MTLLanguageVersion2_0 = (2 << 16),
  MTLLanguageVersion2_1 = (2 << 16) + 1,
  MTLLanguageVersion2_2 = (2 << 16) + 2,
  MTLLanguageVersion2_3 = (2 << 16) + 3,
  MTLLanguageVersion2_4 = (2 << 16) + 4,
  MTLLanguageVersion3_0 = (3 << 16) + 0,
  MTLLanguageVersion3_1 = (3 << 16) + 1,
  MTLLanguageVersion3_2 = (3 << 16) + 2,
};

@interface MTLCompileOptions : NSObject <NSCopying>
@property (nullable, readwrite, nonatomic, copy) NSDictionary<NSString *, NSObject *> *preprocessorMacros;
@property (readwrite, nonatomic) BOOL fastMathEnabled;
@property (readwrite, nonatomic) MTLLanguageVersion languageVersion;
@end

// Domain of the errors of newLibraryWithSource:options:error:.
extern NSString *const MTLLibraryErrorDomain;

typedef NS_ENUM(NSUInteger, MTLLibraryError) {
  MTLLibraryErrorUnsupported = 1,
  MTLLibraryErrorInternal = 2,
  MTLLibraryErrorCompileFailure = 3,
  MTLLibraryErrorCompileWarning = 4,
  MTLLibraryErrorFunctionNotFound = 5,
  MTLLibraryErrorFileNotFound = 6,
};

@protocol MTLFunction <NSObject>
@end

@protocol MTLLibrary <NSObject>
@property (readonly) NSArray<NSString *> *functionNames;
- (nullable id<MTLFunction>)newFunctionWithName:(NSString *)functionName;
@end

@interface MTLComputePipelineDescriptor : NSObject <NSCopying>
@property (nullable, readwrite, nonatomic, strong) id<MTLFunction> computeFunction;
@property (readwrite, nullable, nonatomic, copy) NSArray<id<MTLBinaryArchive>> *binaryArchives;
@end

@protocol MTLComputePipelineState <NSObject>
@property (readonly) NSUInteger maxTotalThreadsPerThreadgroup;
@property (readonly) NSUInteger threadExecutionWidth;
@property (readonly) NSUInteger staticThreadgroupMemoryLength;
@end

typedef NS_ENUM(NSInteger, MTLBindingType) {
  MTLBindingTypeBuffer = 0,
  MTLBindingTypeThreadgroupMemory = 1,
  MTLBindingTypeTexture = 2,
  MTLBindingTypeSampler = 3,
};

@interface MTLStructMember : NSObject
@property (readonly) NSUInteger offset;
@end

@interface MTLStructType : NSObject
@property (readonly) NSArray<MTLStructMember *> *members;
@end

@protocol MTLBinding <NSObject>
@property (readonly) MTLBindingType type;
@property (readonly) NSUInteger index;
@end

@protocol MTLBufferBinding <MTLBinding>
@property (readonly) NSUInteger bufferDataSize;
@property (readonly, nullable) MTLStructType *bufferStructType;
@end

@interface MTLComputePipelineReflection : NSObject
@property (readonly) NSArray<id<MTLBinding>> *bindings;
@end

@interface MTLBinaryArchiveDescriptor : NSObject <NSCopying>
@property (readwrite, nonatomic, copy, nullable) NSURL *url;
@end

@protocol MTLBinaryArchive <NSObject>
- (BOOL)addComputePipelineFunctionsWithDescriptor:(MTLComputePipelineDescriptor *)descriptor error:(NSError **)error;
- (BOOL)serializeToURL:(NSURL *)url error:(NSError **)error;
@end

NS_ASSUME_NONNULL_END

#endif
