// device.m: devices and their memory.

#include "sim.h"

#include <sys/mman.h>
#include <unistd.h>

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static SimDevice *devices[SIM_DEVICES];

NSError *sim_error(NSString *domain, NSInteger code, NSString *text) {
  return [NSError errorWithDomain:domain
                             code:code
                         userInfo:[NSDictionary dictionaryWithObject:text
                                                              forKey:NSLocalizedDescriptionKey]];
}

@implementation SimObject
+ (id)allocWithZone:(NSZone *)zone {
  id made = [super allocWithZone:zone];
  if (made != nil)
    simmetal_count(GAUGE_OBJECTS, 1);
  return made;
}
- (void)dealloc {
  simmetal_count(GAUGE_OBJECTS, -1);
  [super dealloc];
}
@end

// sim_device returns a device, which lives as long as the process. Devices with an odd ordinal have
// separate memory.
SimDevice *sim_device(int ordinal) {
  pthread_mutex_lock(&devices_lock);
  if (devices[ordinal] == nil)
    devices[ordinal] = [[SimDevice alloc] initWithOrdinal:ordinal];
  SimDevice *d = devices[ordinal];
  pthread_mutex_unlock(&devices_lock);
  return d;
}

NSArray<id<MTLDevice>> *MTLCopyAllDevices(void) {
  NSMutableArray *all = [[NSMutableArray alloc] init];
  for (int i = 0; i < simmetal_devices() && i < SIM_DEVICES; i++)
    [all addObject:sim_device(i)];
  return all;
}

id<MTLDevice> MTLCreateSystemDefaultDevice(void) {
  return simmetal_devices() > 0 ? [sim_device(0) retain] : nil;
}

@implementation SimDevice
- (id)initWithOrdinal:(int)n {
  self = [super init];
  ordinal = n;
  unified = n % 2 == 0;
  pthread_mutex_init(&lock, NULL);
  return self;
}
- (NSString *)name {
  return unified ? @"Simulated Apple GPU" : @"Simulated discrete GPU";
}
- (uint64_t)registryID {
  return 0x100000000 + (uint64_t)ordinal;
}
- (MTLSize)maxThreadsPerThreadgroup {
  return MTLSizeMake(1024, 1024, 1024);
}
- (NSUInteger)maxThreadgroupMemoryLength {
  return SIMMETAL_MEMORY;
}
- (NSUInteger)room {
  return (NSUInteger)simmetal_memory_mib() << 20;
}
- (NSUInteger)maxBufferLength {
  return [self room] / 2;
}
- (uint64_t)recommendedMaxWorkingSetSize {
  return [self room];
}
- (NSUInteger)currentAllocatedSize {
  pthread_mutex_lock(&lock);
  NSUInteger n = used;
  pthread_mutex_unlock(&lock);
  return n;
}
- (BOOL)hasUnifiedMemory {
  return unified;
}
- (BOOL)supportsFamily:(MTLGPUFamily)family {
  if (family >= MTLGPUFamilyCommon1 && family <= MTLGPUFamilyCommon3)
    return YES;
  if (unified)
    return family >= MTLGPUFamilyApple1 && family <= MTLGPUFamilyApple7;
  return family == MTLGPUFamilyMac2;
}

- (id<MTLCommandQueue>)newCommandQueueWithMaxCommandBufferCount:(NSUInteger)most {
  CHECK(most > 0, @"maxCommandBufferCount is 0");
  if (simmetal_fault(CALL_STREAM) != 0)
    return nil;
  return [[SimQueue alloc] initOn:self most:most];
}

- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options {
  CHECK(length > 0, @"a buffer of length 0");
  CHECK(options == MTLResourceStorageModeShared || options == MTLResourceStorageModePrivate ||
            options == MTLResourceStorageModeManaged,
        @"no storage has options %lu", (unsigned long)options);
  CHECK(!(unified && options == MTLResourceStorageModeManaged),
        @"managed storage on a device with unified memory");
  if (simmetal_fault(CALL_ALLOC) != 0 || length > [self maxBufferLength])
    return nil;
  pthread_mutex_lock(&lock);
  BOOL fits = length <= [self room] && used <= [self room] - length;
  if (fits)
    used += length;
  pthread_mutex_unlock(&lock);
  if (!fits)
    return nil;
  SimBuffer *b = [[SimBuffer alloc] initOn:self length:length options:options];
  if (b == nil) {
    pthread_mutex_lock(&lock);
    used -= length;
    pthread_mutex_unlock(&lock);
  }
  return b;
}

- (id<MTLLibrary>)newLibraryWithSource:(NSString *)source
                               options:(MTLCompileOptions *)options
                                 error:(NSError **)error {
  return sim_library(source, options, error);
}

- (id<MTLComputePipelineState>)
    newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor *)descriptor
                                  options:(MTLPipelineOption)options
                               reflection:(MTLAutoreleasedComputePipelineReflection *)reflection
                                    error:(NSError **)error {
  return sim_pipeline(descriptor, options, reflection, error);
}

- (id<MTLBinaryArchive>)newBinaryArchiveWithDescriptor:(MTLBinaryArchiveDescriptor *)descriptor
                                                 error:(NSError **)error {
  return sim_archive(descriptor, error);
}

- (id<MTLSharedEvent>)newSharedEvent {
  return simmetal_fault(CALL_EVENT) != 0 ? nil : [[SimEvent alloc] init];
}
@end

enum { TAIL = 0xC7, FRESH = 0xA5, GUARD = 1 << 16, FRESH_BYTES = 1 << 20 };

static unsigned char *map_memory(NSUInteger mapped) {
  unsigned char *p = mmap(NULL, mapped + GUARD, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    return NULL;
  mprotect(p + mapped, GUARD, PROT_NONE);
  return p;
}

@implementation SimBuffer
- (id)initOn:(SimDevice *)d length:(NSUInteger)n options:(MTLResourceOptions)o {
  self = [super init];
  NSUInteger page = (NSUInteger)sysconf(_SC_PAGESIZE);
  owner = d;
  bytes = n;
  options = o;
  mapped = (n + page - 1) / page * page;
  device = map_memory(mapped);
  if (o == MTLResourceStorageModeManaged && device != NULL)
    host = map_memory(mapped);
  simmetal_count(GAUGE_ALLOCATIONS, 1);
  simmetal_count(GAUGE_BYTES, (long)n);
  if (device == NULL || (o == MTLResourceStorageModeManaged && host == NULL)) {
    owner = nil; // the caller corrects the owner's accounts
    [self release];
    return nil;
  }
  memset(device, FRESH, n < FRESH_BYTES ? n : FRESH_BYTES); // memory is not zeroed
  memset(device + n, TAIL, mapped - n);
  return self;
}
- (void)dealloc {
  if (device != NULL && [self spoiled]) {
    fprintf(stderr, "simulated Metal: something was written behind a buffer of %lu bytes\n",
            (unsigned long)bytes);
    simmetal_count(GAUGE_VIOLATIONS, 1);
  }
  if (device != NULL)
    munmap(device, mapped + GUARD);
  if (host != NULL)
    munmap(host, mapped + GUARD);
  if (owner != nil) {
    pthread_mutex_lock(&owner->lock);
    owner->used -= bytes;
    pthread_mutex_unlock(&owner->lock);
  }
  simmetal_count(GAUGE_ALLOCATIONS, -1);
  simmetal_count(GAUGE_BYTES, -(long)bytes);
  [super dealloc];
}
- (NSUInteger)length {
  return bytes;
}
- (void *)contents {
  if (options == MTLResourceStorageModePrivate)
    return NULL;
  return host != NULL ? host : device;
}
- (void)didModifyRange:(NSRange)range {
  CHECK(options == MTLResourceStorageModeManaged, @"didModifyRange: of a buffer that is not managed");
  CHECK(range.location <= bytes && range.length <= bytes - range.location,
        @"didModifyRange: beyond the end");
  memcpy(device + range.location, host + range.location, range.length);
}
- (BOOL)spoiled {
  for (NSUInteger i = bytes; i < mapped; i++)
    if (device[i] != TAIL)
      return YES;
  return NO;
}
@end
