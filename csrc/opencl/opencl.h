// opencl.h is the interface of Concord's OpenCL shim: the C functions that package opencl calls in
// addition to the binding go-gl/cl. Two C files implement it.
//
// loader.c defines every cl* function that the binding refers to and forwards it to the OpenCL
// loader of the machine, opened at the first call and never closed. Without a loader each returns
// CL_PLATFORM_NOT_FOUND_KHR, so that a program starts anywhere.
//
// shim.c is the hot path: a launch or a copy is one call of it. All functions
// return an OpenCL error code. None keeps a pointer that it was given, none calls back. A queue is
// used by one thread at a time, unless a comment says otherwise; its owner in Go has the lock.

#ifndef CONCORD_OPENCL_H
#define CONCORD_OPENCL_H

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#ifndef CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS // the binding still offers them
#endif

// Before the pragma, because CL's headers include some of these, whose functions must not be
// hidden.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Hidden, because go-nvml links programs with --export-dynamic, and if these cl* functions were
// exported, another library in the process could call them by mistake.
#ifdef __APPLE__
#include <OpenCL/opencl.h>
#else
#pragma GCC visibility push(hidden)
#include <CL/opencl.h>
#pragma GCC visibility pop
#endif

#include "../shim.h" // cs_arg, whose mem is a cl_mem here

#ifndef CL_PLATFORM_NOT_FOUND_KHR
#define CL_PLATFORM_NOT_FOUND_KHR -1001
#endif

#pragma GCC visibility push(hidden)

// concord_cl_library opens the OpenCL loader if that was not done yet, returns whether it is open,
// and sets *tried to one line per name that was tried, with the result. The text is static. If name
// is not empty, it replaces the usual names. It has an effect only before a library was opened, as
// that library stays open.
int concord_cl_library(const char *name, const char **tried);

// CONCORD_CL_RING is the largest number of commands of a queue whose result is not known yet.
// Before more are queued, the caller waits for the oldest, so that no failure is lost and each can
// name its command.
#define CONCORD_CL_RING 1024u
// CONCORD_CL_ROOM is the largest number of commands that one call queues (a fill at an odd offset).
#define CONCORD_CL_ROOM 32u

// CONCORD_CL_STAGE is the size in bytes of the largest upload that is copied to other memory so
// that it need not wait for the queue, CONCORD_CL_STAGED the largest sum of these per queue.
#define CONCORD_CL_STAGE ((size_t)1 << 18)
#define CONCORD_CL_STAGED ((size_t)1 << 23)

typedef struct concord_cl_slot {
  cl_event event;
  void *staging; // freed when the command is done
  size_t staged;
} concord_cl_slot;

// concord_cl_queue is a command queue with the commands whose result is not known yet: command
// number i is in ring[i % CONCORD_CL_RING], for done <= i < pushed.
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

// concord_cl_queue_new takes over the caller's reference to queue. It returns NULL if there is no
// host memory.
concord_cl_queue *concord_cl_queue_new(cl_command_queue queue);
// concord_cl_queue_free waits for the queue, settles its commands and releases it.
void concord_cl_queue_free(concord_cl_queue *q);
// concord_cl_settle removes the finished commands at the front of the ring, keeps the first
// failure, and returns whether the ring is empty. With room, it waits until there are
// CONCORD_CL_ROOM free slots.
int concord_cl_settle(concord_cl_queue *q, int room);

// concord_cl_launch sets all arguments and enqueues the kernel. The caller has the kernel's lock,
// as OpenCL kernels are not safe for concurrent argument setting, and has called concord_cl_settle
// with room. With offsets, the kernel has a trailing ulong parameter per memory argument for its
// byte offset. Otherwise the offsets of memory are ignored.
cl_int concord_cl_launch(concord_cl_queue *q, cl_kernel kernel, const cs_arg *args,
                         uint32_t count, const unsigned char *data, int offsets, uint32_t dim,
                         const size_t *global, const size_t *local);

// The queueing operations. With later, write copies src to other memory and returns at once.
// Without it, write waits for the queue, does not use the ring and may be called at any time; read
// does always. If done is not NULL, the caller gets the event of a copy that was waited for, and owns it.
cl_int concord_cl_write(concord_cl_queue *q, uint64_t mem, size_t offset, const unsigned char *src,
                        size_t n, int later, cl_event *done);
cl_int concord_cl_read(concord_cl_queue *q, uint64_t mem, size_t offset, unsigned char *dst,
                       size_t n, cl_event *done);
cl_int concord_cl_copy(concord_cl_queue *q, uint64_t dst, size_t dst_offset, uint64_t src,
                       size_t src_offset, size_t n);
// offset and n may have any value; the first byte of the pattern is stored at offset.
cl_int concord_cl_fill(concord_cl_queue *q, uint64_t mem, size_t offset, size_t n,
                       const unsigned char *pattern, size_t pattern_size);
// concord_cl_mark queues an event after all commands so far; the caller owns *event.
cl_int concord_cl_mark(concord_cl_queue *q, cl_event *event);
// concord_cl_after makes later commands wait for event.
cl_int concord_cl_after(concord_cl_queue *q, cl_event event);
// concord_cl_at returns the event of command n, with a reference for the caller, or NULL if it is not in the
// ring. To wait for the queue, wait for the newest command: clFinish of rusticl (Mesa 22) does not wait for
// commands that were flushed before.
cl_event concord_cl_at(concord_cl_queue *q, uint64_t n);

// Functions of events, which may be called at any time and from any thread. wait returns the
// event's failure, if it failed.
cl_int concord_cl_event_wait(cl_event event);
// concord_cl_event_times returns the times when the command was queued, submitted, started and
// ended, in nanoseconds of the device's clock.
cl_int concord_cl_event_times(cl_event event, cl_ulong times[4]);

// concord_cl_touch makes the device allocate a buffer now instead of at its first use.
cl_int concord_cl_touch(cl_command_queue queue, uint64_t mem);
// concord_cl_binary copies the binary of a program built for one device into n bytes at dst.
cl_int concord_cl_binary(cl_program program, unsigned char *dst, size_t n);

#pragma GCC visibility pop

#endif
