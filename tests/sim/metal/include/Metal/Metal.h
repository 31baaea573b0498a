// Metal.h is the part of Apple's Metal framework that csrc/metal uses, for building it on systems
// without the framework. Types, selectors and values are those that Apple documents (the table in
// docs/metal.md, which a test compares with these files); the implementation is in tests/sim/metal.

#ifndef CONCORD_SIM_METAL_H
#define CONCORD_SIM_METAL_H

#import <Foundation/Foundation.h>

// Not part of Apple's header: marks the simulated Metal.
#define CONCORD_SIM_METAL 1

#import <Metal/MTLDevice.h>
#import <Metal/MTLResource.h>
#import <Metal/MTLLibrary.h>
#import <Metal/MTLCommandBuffer.h>

#endif
