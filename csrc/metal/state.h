// state.h is what the parts of the shim share: the objects behind the contract's handles, the way a
// failure is told, and how a call enters the framework. metal.m puts the parts together.
//
// Memory is counted by hand, since the same files are built where there is no automatic counting:
// what a method whose name begins with new, alloc, copy or init returned is released here; all else
// belongs to a pool, and every entry has one of its own.

#ifndef CONCORD_METAL_STATE_H
#define CONCORD_METAL_STATE_H

#import <Foundation/Foundation.h>
#import <Metal/Metal.h>
#import <MetalPerformanceShaders/MetalPerformanceShaders.h>

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "../shim.h"

// The framework is linked: there is one library.
struct cs_lib {
  pthread_mutex_t lock;
  NSArray<id<MTLDevice>> *devices; // the default one first; from the first call on that asks
};

// A block is one MTLBuffer and the range of addresses that stands for it. Metal has no addresses to
// give to kernels: an argument is a buffer and an offset, which an address is turned into. What the
// host sees has its address there; what it does not see has one that no process can have.
struct block {
  _Atomic int refs; // of the table, and of batches if it is managed
  uint64_t address, bytes;
  id<MTLBuffer> buffer;
  unsigned char *host; // or NULL
  int managed;         // host and device have a copy each
  int uses;            // batches with a managed block that are not complete; the device's lock
};

// Where an address leads.
struct place {
  struct block *block;
  uint64_t offset;
};

// The kernels that set and copy memory where blits cannot.
enum { TOOL_FILL_WORDS, TOOL_FILL_BYTES, TOOL_COPY_BYTES, TOOLS };

struct cs_device {
  id<MTLDevice> handle;
  int unified;
  uint64_t max_buffer, max_local;
  _Atomic int lost; // the device was removed, or taken from this process

  pthread_rwlock_t memory; // of what follows
  struct block **blocks;   // by address
  size_t count, room;
  uint64_t next; // address of the next block that the host does not see

  pthread_mutex_t lock; // of batches, failures of streams, uses of blocks
  pthread_cond_t passed;

  pthread_mutex_t tools_lock;
  id<MTLComputePipelineState> tools[TOOLS];
};

// A batch is a command buffer: commands of one stream that are committed together.
struct batch {
  _Atomic int refs; // of the stream while it is open, its handler, chunks, events
  cs_stream *stream;
  uint64_t number; // 1 is the stream's first
  id<MTLCommandBuffer> buffer;
  uint32_t commands;
  struct block **managed; // the managed blocks that it uses
  size_t managed_count, managed_room;
  struct batch *after; // of another stream, which it waits for, until it is done; or NULL

  // Under the device's lock:
  int committed, done;
  double ended;     // when the device was done with it, in seconds
  cs_error failure; // status CS_OK: none
};

// Batches are committed when they have so many commands, if nothing else asks for it before; and a
// stream has at most so many in flight.
enum { BATCH_COMMANDS = 64, BATCHES_IN_FLIGHT = 64, QUEUE_BUFFERS = 512 };

// Pageable memory crosses in pieces through shared memory of the stream.
enum { CHUNKS = 4, CHUNK_BYTES = 1 << 20 };

struct chunk {
  struct batch *batch; // the last one that uses it, or NULL
  uint64_t used;
};

// Arguments of a kernel are in a table of so many buffers, and as many places for local memory.
enum { ARGUMENTS = 31, VALUE_BYTES = 4096 };

struct cs_stream {
  _Atomic int refs; // the owner, and its batches
  cs_device *dev;
  id<MTLCommandQueue> queue;
  id<MTLSharedEvent> signal; // has the number of the last batch that is done

  pthread_mutex_t lock; // of what is being encoded
  struct batch *open;   // or NULL
  struct batch *last;   // the last one committed, or NULL
  uint64_t numbered;
  id<MTLComputeCommandEncoder> compute; // of open; at most one of the two is there
  id<MTLBlitCommandEncoder> blit;
  uint32_t locals; // which places for local memory have some, bit by bit
  id<MTLBuffer> ring;
  struct chunk chunks[CHUNKS];
  int at; // the chunk that is being filled

  // Under the device's lock:
  int running;      // batches committed and not done
  int handlers;     // of these, and those whose handler has not returned
  cs_error failure; // the first; status CS_OK: none
  uint64_t failed;  // the number of the batch that it is of
  uint64_t reached; // the highest number of a batch that is done
};

struct cs_event {
  struct batch *batch; // that ends with it, or NULL if there was none
  int timing;
};

// A program is source with what it is compiled for, and the machine code of its kernels.
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
  uint32_t buffers, locals;  // places that the kernel reads, bit by bit, where Metal told
  uint64_t sizes[ARGUMENTS]; // of what lies at each buffer's place, 0 is unknown
  uint64_t *packed;          // offsets of values that lie in one struct, or NULL
  size_t packed_count;
  cs_kernel *next;
};

struct cs_module {
  cs_device *dev;
  id<MTLLibrary> library;
  id<MTLBinaryArchive> archive; // or nil
  char *path;                   // of the archive's file, or NULL
  pthread_mutex_t lock;         // of kernels
  cs_kernel *kernels;
};

// -- failures --

// tell writes an error and returns its class.
__attribute__((format(printf, 4, 5))) static int32_t tell(cs_error *err, int32_t status,
                                                          int32_t code, const char *format, ...) {
  err->status = status;
  err->code = code;
  va_list args;
  va_start(args, format);
  vsnprintf(err->text, sizeof err->text, format, args);
  va_end(args);
  return status;
}

static int32_t no_host_memory(cs_error *err) {
  return tell(err, CS_FAILED, 0, "no host memory left");
}

// words are the text of an object of the framework, valid as long as the pool.
static const char *words(NSString *text) {
  const char *c = text != nil ? [text UTF8String] : NULL;
  return c != NULL ? c : "no words for it";
}

// failed tells an NSError.
static int32_t failed(cs_error *err, int32_t status, const char *call, NSError *why) {
  return tell(err, status, why != nil ? (int32_t)[why code] : 0, "%s: %s", call,
              words([why localizedDescription]));
}

static int32_t thrown(cs_error *err, id exception) {
  if ([exception isKindOfClass:[NSException class]])
    return tell(err, CS_FAILED, 0, "%s: %s", words([exception name]), words([exception reason]));
  return tell(err, CS_FAILED, 0, "an exception");
}

// RUN sets a status to that of an expression, which has a pool of its own. What the framework
// throws ends here.
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

// present refuses calls on a device that is gone.
static int32_t present(cs_device *d, cs_error *err) {
  if (d->lost)
    return tell(err, CS_LOST, 0, "the device was removed, or its use was taken from this process");
  return CS_OK;
}

#endif
