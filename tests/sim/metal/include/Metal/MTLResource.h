// MTLResource.h: buffers.

#ifndef CONCORD_SIM_MTLRESOURCE_H
#define CONCORD_SIM_MTLRESOURCE_H

#import <Metal/MTLDevice.h>

NS_ASSUME_NONNULL_BEGIN

@protocol MTLResource <NSObject>
@end

@protocol MTLBuffer <MTLResource>
@property (readonly) NSUInteger length;
- (void *)contents;
- (void)didModifyRange:(NSRange)range;
@end

NS_ASSUME_NONNULL_END

#endif
