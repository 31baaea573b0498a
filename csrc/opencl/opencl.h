// opencl.h is the manual of Concord's OpenCL shim: what package opencl calls beside the binding
// go-gl/cl. Two C files implement it.
//
// loader.c defines every cl* function that the binding refers to and forwards it to the OpenCL
// loader of the machine, opened at the first call and never closed. Without a loader each returns
// CL_PLATFORM_NOT_FOUND_KHR, so that a program starts anywhere.
//
// shim.c is the hot path: whatever happens once per launch or copy is one call here. All functions
// return an OpenCL error code. None keeps a pointer it was given, none calls back. A queue is used
// by one thread at a time, except where it says otherwise; its owner in Go has the lock.

#ifndef CONCORD_OPENCL_H
#define CONCORD_OPENCL_H

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#ifndef CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS // the binding still offers them
#endif

// Before the pragma: CL's headers include some of these, whose functions are not ours to hide.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Hidden: go-nvml links programs with --export-dynamic, and an exported cl* of ours could capture
// the calls of another library in the process.
#ifdef __APPLE__
#include <OpenCL/opencl.h>
#else
#pragma GCC visibility push(hidden)
#include <CL/opencl.h>
#pragma GCC visibility pop
#endif

#ifndef CL_PLATFORM_NOT_FOUND_KHR
#define CL_PLATFORM_NOT_FOUND_KHR -1001
#endif

#pragma GCC visibility push(hidden)

// concord_cl_library opens the OpenCL loader if that was not done yet, returns whether it is there
// and sets *tried to one line per name that was tried, with the outcome. The text is static. A name
// that is not empty replaces the usual ones; it counts in the first call of the process, as a
// library that was opened stays.
int concord_cl_library(const char *name, const char **tried);

// concord_cl_arg is one kernel argument. It has the layout of driver.Arg, so that the runtime's
// table crosses as it is.
typedef struct concord_cl_arg {
  uint8_t kind;   // CONCORD_CL_*
  int64_t offset; // CONCORD_CL_VALUE: bytes into data
  int64_t size;   // CONCORD_CL_VALUE, CONCORD_CL_LOCAL: bytes
  uint64_t mem;   // CONCORD_CL_MEMORY: a cl_mem
  int64_t mem_offset;
  int64_t mem_size;
  uint8_t mem_kind;
} concord_cl_arg;

enum { CONCORD_CL_VALUE = 0, CONCORD_CL_MEMORY = 1, CONCORD_CL_LOCAL = 2 };

// CONCORD_CL_RING is the number of commands of a queue whose outcome may be unknown. More wait for
// the oldest: a failure is never lost, and it can name its command.
#define CONCORD_CL_RING 1024u
// CONCORD_CL_ROOM is the most commands that one call queues (a fill at an odd offset).
#define CONCORD_CL_ROOM 32u

// CONCORD_CL_STAGE is the largest upload that is copied aside so that it need not wait for the
// queue, CONCORD_CL_STAGED the most of that per queue.
#define CONCORD_CL_STAGE ((size_t)1 << 18)
#define CONCORD_CL_STAGED ((size_t)1 << 23)

typedef struct concord_cl_slot {
  cl_event event;
  void *staging; // freed when the command is done
  size_t staged;
} concord_cl_slot;

// concord_cl_queue is a command queue with the commands whose outcome is not known yet: number
// i is in ring[i % CONCORD_CL_RING], for done <= i < pushed.
typedef struct concord_cl_queue {
  cl_command_queue queue;
  uint64_t pushed;
  uint64_t done;
  uint64_t failed_at; // number of the first command that failed; valid if failed is not 0
  cl_int failed;      // its execution status
  int32_t bad_arg;    // argument that the last launch was refused for, or -1
  size_t staged;
  concord_cl_slot ring[CONCORD_CL_RING];
} concord_cl_queue;

// concord_cl_queue_new takes over the caller's reference to queue. NULL: no host memory.
concord_cl_queue *concord_cl_queue_new(cl_command_queue queue);
// concord_cl_queue_free waits for the queue, settles its commands and releases it.
void concord_cl_queue_free(concord_cl_queue *q);
// concord_cl_settle retires the finished commands at the front, noting the first failure, and
// returns whether all are retired. With room, it waits until there are CONCORD_CL_ROOM free slots.
int concord_cl_settle(concord_cl_queue *q, int room);

// concord_cl_launch sets all arguments and enqueues the kernel. The caller has the kernel's lock,
// as OpenCL kernels are not safe for concurrent argument setting, and has seen to room. With
// offsets, the kernel is one that takes a trailing ulong per memory argument: its byte offset.
// Else the offsets of memory are ignored.
cl_int concord_cl_launch(concord_cl_queue *q, cl_kernel kernel, const concord_cl_arg *args,
                         uint32_t count, const unsigned char *data, int offsets, uint32_t dim,
                         const size_t *global, const size_t *local);

// The queueing operations. write, with later, copies src aside and returns at once; without, it
// waits for the queue, touches no ring and may run at any time, as read always does.
cl_int concord_cl_write(concord_cl_queue *q, uint64_t mem, size_t offset, const unsigned char *src,
                        size_t n, int later);
cl_int concord_cl_read(concord_cl_queue *q, uint64_t mem, size_t offset, unsigned char *dst,
                       size_t n);
cl_int concord_cl_copy(concord_cl_queue *q, uint64_t dst, size_t dst_offset, uint64_t src,
                       size_t src_offset, size_t n);
// offset and n may be any; the pattern's first byte belongs at offset.
cl_int concord_cl_fill(concord_cl_queue *q, uint64_t mem, size_t offset, size_t n,
                       const unsigned char *pattern, size_t pattern_size);
// concord_cl_mark queues an event behind everything so far; the caller owns *event.
cl_int concord_cl_mark(concord_cl_queue *q, cl_event *event);
// concord_cl_after makes later commands wait for event.
cl_int concord_cl_after(concord_cl_queue *q, cl_event event);
// concord_cl_last returns the event of the newest command on the ring, with a reference for the
// caller, or NULL if the ring is empty. Waiting for it is waiting for the queue: clFinish of
// rusticl (Mesa 22) forgets what was flushed before.
cl_event concord_cl_last(concord_cl_queue *q);

// Events, at any time and from any thread. wait returns the event's failure, if it failed.
cl_int concord_cl_event_retain(cl_event event);
void concord_cl_event_release(cl_event event);
cl_int concord_cl_event_status(cl_event event, cl_int *status);
cl_int concord_cl_event_wait(cl_event event);
// times: queued, submitted, started, ended; nanoseconds of the device's clock.
cl_int concord_cl_event_times(cl_event event, cl_ulong times[4]);

// concord_cl_touch makes the device allocate a buffer now instead of at its first use.
cl_int concord_cl_touch(cl_command_queue queue, uint64_t mem);
// concord_cl_binary copies the binary of a program built for one device into n bytes at dst.
cl_int concord_cl_binary(cl_program program, unsigned char *dst, size_t n);

#pragma GCC visibility pop

#endif
