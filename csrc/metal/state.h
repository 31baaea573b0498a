// state.h has the declarations that the parts of the shim share: the objects behind the handles of
// shim.h, the reporting of failures, and the entry of a call into the framework. metal.m includes
// the parts.
//
// Retain counts are managed by hand, because the same files are built for a runtime without
// automatic counting: the shim releases objects that methods with names in new, alloc, copy or init
// return. All other objects belong to an autorelease pool, and every entry has one of its own.

#ifndef CONCORD_METAL_STATE_H
#define CONCORD_METAL_STATE_H

#import <Foundation/Foundation.h>
#import <Metal/Metal.h>
#import <MetalPerformanceShaders/MetalPerformanceShaders.h>

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "../tell.h"

// The framework is linked, so there is only one library.
struct cs_lib {
  pthread_mutex_t lock;
  NSArray<id<MTLDevice>> *devices; // the default device first; set by the first call that needs them
};

// A block is one MTLBuffer and a range of addresses that represents it. Metal does not pass
// addresses to kernels: an argument is a buffer and an offset, to which the shim converts an
// address. A buffer that the host can access has its address on the host; others have one that no
// process can map.
struct block {
  _Atomic int refs; // held by the table, and by batches if it is managed
  uint64_t address, bytes;
  id<MTLBuffer> buffer;
  unsigned char *host; // or NULL
  int managed;         // host and device have a copy each
  int uses;            // incomplete batches that use a managed block; guarded by the device's lock
};

// place is the block and offset of an address.
struct place {
  struct block *block;
  uint64_t offset;
};

// The kernels that set and copy memory if blits cannot.
enum { TOOL_FILL_WORDS, TOOL_FILL_BYTES, TOOL_COPY_BYTES, TOOLS };

struct cs_device {
  id<MTLDevice> handle;
  int unified;
  uint64_t max_buffer, max_local;
  _Atomic int lost; // the device was removed, or taken from this process

  pthread_rwlock_t memory; // guards the following fields
  struct block **blocks;   // by address
  size_t count, room;
  uint64_t next; // address of the next block that the host cannot access

  pthread_mutex_t lock; // guards batches, failures of streams, uses of blocks
  pthread_cond_t passed;

  pthread_mutex_t tools_lock;
  id<MTLComputePipelineState> tools[TOOLS];
};

// A batch is a command buffer: commands of one stream that are committed together.
struct batch {
  _Atomic int refs; // held by the stream while it is open, its handler, chunks, events
  cs_stream *stream;
  uint64_t number; // 1 is the stream's first
  id<MTLCommandBuffer> buffer;
  uint32_t commands;
  struct block **managed; // the managed blocks that it uses
  size_t managed_count, managed_room;
  struct batch *after; // a batch of another stream for which it waits, until that is done; or NULL

  // Guarded by the device's lock:
  int committed, done;
  double ended;     // when the device was done with it, in seconds
  cs_error failure; // status CS_OK: none
};

// BATCH_COMMANDS is the number of commands with which a batch is committed at the latest,
// BATCHES_IN_FLIGHT the number of batches of a stream from which new work waits.
enum { BATCH_COMMANDS = 64, BATCHES_IN_FLIGHT = 64, QUEUE_BUFFERS = 512 };

// Copies from and to pageable memory are done in pieces, through shared memory of the stream.
enum { CHUNKS = 4, CHUNK_BYTES = 1 << 20 };

struct chunk {
  struct batch *batch; // the last one that uses it, or NULL
  uint64_t used;
};

// A kernel has at most ARGUMENTS buffers, and as many blocks of local memory.
enum { ARGUMENTS = 31, VALUE_BYTES = 4096 };

struct cs_stream {
  _Atomic int refs; // held by the owner and the batches
  cs_device *dev;
  id<MTLCommandQueue> queue;
  id<MTLSharedEvent> signal; // its value is the number of the last batch that is done

  pthread_mutex_t lock; // guards encoding
  struct batch *open;   // or NULL
  struct batch *last;   // the last one committed, or NULL
  uint64_t numbered;
  id<MTLComputeCommandEncoder> compute; // of open; at most one of the two exists
  id<MTLBlitCommandEncoder> blit;
  uint32_t locals; // bit i is set if index i has local memory
  id<MTLBuffer> ring;
  struct chunk chunks[CHUNKS];
  int at; // index of the current chunk

  // Guarded by the device's lock:
  int running;      // number of batches that are committed and not done
  int handlers;     // number of these, and of batches whose handler has not returned
  cs_error failure; // the first failure; none if its status is CS_OK
  uint64_t failed;  // the number of the batch that failed
  uint64_t reached; // the highest number of a batch that is done
};

struct cs_event {
  struct batch *batch; // the batch whose end is the event, or NULL if there was none
  int timing;
};

// program is the source of a program with its options, and the machine code of its kernels.
struct program {
  uint32_t language; // MTLLanguageVersion, 0: the system's newest
  uint32_t fast;     // fast math
  uint64_t source_bytes, archive_bytes;
  const char *source; // not terminated
  const unsigned char *archive;
};

struct cs_kernel {
  cs_module *module;
  char *name;
  id<MTLComputePipelineState> pipeline;
  uint64_t max_threads, width, max_dynamic;
  uint32_t buffers, locals;  // bits of the indices that the kernel uses, if Metal reported them
  uint64_t sizes[ARGUMENTS]; // size of the data at each buffer's index, 0 if unknown
  uint64_t *packed;          // offsets of values that are passed in one struct, or NULL
  size_t packed_count;
  cs_kernel *next;
};

struct cs_module {
  cs_device *dev;
  id<MTLLibrary> library;
  id<MTLBinaryArchive> archive; // or nil
  char *path;                   // path of the archive's file, or NULL
  pthread_mutex_t lock;         // guards kernels
  cs_kernel *kernels;
};

// -- failures --

// words returns the text of an object of the framework, which is valid as long as the pool.
static const char *words(NSString *text) {
  const char *c = text != nil ? [text UTF8String] : NULL;
  return c != NULL ? c : "no error text";
}

// failed writes an NSError as an error.
static int32_t failed(cs_error *err, int32_t status, const char *call, NSError *why) {
  return tell(err, status, why != nil ? (int32_t)[why code] : 0, "%s: %s", call,
              words([why localizedDescription]));
}

static int32_t thrown(cs_error *err, id exception) {
  if ([exception isKindOfClass:[NSException class]])
    return tell(err, CS_FAILED, 0, "%s: %s", words([exception name]), words([exception reason]));
  return tell(err, CS_FAILED, 0, "an exception");
}

// RUN evaluates an expression in an autorelease pool of its own and sets a status to its value. It
// converts an exception of the framework to an error.
#define RUN(status, err, expression)                                                               \
  do {                                                                                             \
    @autoreleasepool {                                                                             \
      @try {                                                                                       \
        (status) = (expression);                                                                   \
      } @catch (id exception) {                                                                    \
        (status) = thrown((err), exception);                                                       \
      }                                                                                            \
    }                                                                                              \
  } while (0)

// present returns an error if the device was removed.
static int32_t present(cs_device *d, cs_error *err) {
  if (d->lost)
    return tell(err, CS_LOST, 0, "the device was removed, or its use was taken from this process");
  return CS_OK;
}

#endif
