// shim.c is the hot path of the OpenCL backend: launches, copies and events, one call each.
// opencl.h documents the functions.

#include "opencl.h"

_Static_assert(sizeof(size_t) == 8, "the binding passes 64-bit sizes");

// mem_of converts a handle from a number; Go keeps handles as numbers in driver.Memory.
static cl_mem mem_of(uint64_t mem) { return (cl_mem)(uintptr_t)mem; }

// status returns the execution status of an event: 0 or less if it is done, above 0 if not.
static cl_int status(cl_event event) {
  cl_int s = CL_COMPLETE;
  cl_int code = clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof s, &s, NULL);
  // If the driver cannot return the status, the device is lost: the command is done, and failed.
  return code != CL_SUCCESS ? code : s;
}

// retire removes the oldest command from the ring. It is done, or its device is lost.
static void retire(concord_cl_queue *q, cl_int s) {
  concord_cl_slot *slot = &q->ring[q->done % CONCORD_CL_RING];
  if (s < 0 && q->failed == 0) {
    q->failed = s;
    q->failed_at = q->done;
  }
  clReleaseEvent(slot->event);
  free(slot->staging);
  q->staged -= slot->staged;
  memset(slot, 0, sizeof *slot);
  q->done++;
}

// outcome waits for an event and returns its status.
static cl_int outcome(cl_event event) {
  cl_int s = status(event);
  if (s <= 0)
    return s;
  cl_int code = clWaitForEvents(1, &event);
  s = status(event);
  return s <= 0 ? s : code != CL_SUCCESS ? code : CL_INVALID_EVENT; // its status will never be known
}

// finished returns the number of the first command that is not done. The queue is in order, so a
// search in doubling steps and then by bisection finds it. A query about a running command may
// block until it is done (in rusticl 22.3), and queries about each command in turn would wait for
// all of them.
static uint64_t finished(concord_cl_queue *q) {
  uint64_t done = q->done, open = q->pushed;
  for (uint64_t step = 1; done < open; step *= 2) {
    uint64_t at = step <= open - done ? done + step - 1 : done + (open - done) / 2;
    if (status(q->ring[at % CONCORD_CL_RING].event) <= 0) {
      done = at + 1;
    } else {
      open = at;
      step = open - done; // by halves from here
    }
  }
  return done;
}

int concord_cl_settle(concord_cl_queue *q, int room) {
  uint64_t end = finished(q);
  while (q->done < end || (room && q->pushed - q->done > CONCORD_CL_RING - CONCORD_CL_ROOM))
    retire(q, outcome(q->ring[q->done % CONCORD_CL_RING].event));
  return q->done == q->pushed;
}

// push adds a command to the ring. It also checks a few old ones, so that the ring of a queue that
// keeps up stays short; the first commands of a burst skip this.
static void push(concord_cl_queue *q, cl_event event, void *staging, size_t staged) {
  concord_cl_slot *slot = &q->ring[q->pushed % CONCORD_CL_RING];
  *slot = (concord_cl_slot){.event = event, .staging = staging, .staged = staged};
  q->staged += staged;
  q->pushed++;
  for (int i = 0; i < 2 && q->pushed - q->done > 64; i++) {
    cl_int s = status(q->ring[q->done % CONCORD_CL_RING].event);
    if (s > 0)
      break;
    retire(q, s);
  }
}

// queued ends every operation that queued a command. The flush makes the device begin now instead
// of when a caller waits.
static cl_int queued(concord_cl_queue *q, cl_int code, cl_event event) {
  if (code != CL_SUCCESS)
    return code;
  push(q, event, NULL, 0);
  clFlush(q->queue);
  return CL_SUCCESS;
}

concord_cl_queue *concord_cl_queue_new(cl_command_queue queue) {
  concord_cl_queue *q = calloc(1, sizeof *q);
  if (q != NULL) {
    q->queue = queue;
    q->bad_arg = -1;
  }
  return q;
}

void concord_cl_queue_free(concord_cl_queue *q) {
  clFinish(q->queue);
  while (q->done < q->pushed)
    retire(q, outcome(q->ring[q->done % CONCORD_CL_RING].event));
  clReleaseCommandQueue(q->queue);
  free(q);
}

cl_int concord_cl_launch(concord_cl_queue *q, cl_kernel kernel, const cs_arg *args,
                         uint32_t count, const unsigned char *data, int offsets, uint32_t dim,
                         const size_t *global, const size_t *local) {
  cl_uint extra = count;
  for (uint32_t i = 0; i < count; i++) {
    const cs_arg *a = &args[i];
    cl_mem mem;
    cl_int code;
    switch (a->kind) {
    case CS_ARG_MEMORY:
      mem = mem_of(a->mem);
      code = clSetKernelArg(kernel, i, sizeof mem, &mem);
      if (code == CL_SUCCESS && offsets) {
        cl_ulong bytes = (cl_ulong)a->mem_offset;
        code = clSetKernelArg(kernel, extra++, sizeof bytes, &bytes);
      }
      break;
    case CS_ARG_LOCAL:
      code = clSetKernelArg(kernel, i, (size_t)a->size, NULL);
      break;
    default:
      code = clSetKernelArg(kernel, i, (size_t)a->size, data + a->offset);
    }
    if (code != CL_SUCCESS) {
      q->bad_arg = (int32_t)i;
      return code;
    }
  }
  q->bad_arg = -1;
  cl_event event = NULL;
  cl_int code = clEnqueueNDRangeKernel(q->queue, kernel, dim, NULL, global, local, 0, NULL, &event);
  return queued(q, code, event);
}

cl_int concord_cl_write(concord_cl_queue *q, uint64_t mem, size_t offset, const unsigned char *src,
                        size_t n, int later, cl_event *done) {
  if (!later)
    return clEnqueueWriteBuffer(q->queue, mem_of(mem), CL_TRUE, offset, n, src, 0, NULL, done);
  void *copy = malloc(n);
  if (copy == NULL)
    return CL_OUT_OF_HOST_MEMORY;
  memcpy(copy, src, n);
  cl_event event = NULL;
  cl_int code =
      clEnqueueWriteBuffer(q->queue, mem_of(mem), CL_FALSE, offset, n, copy, 0, NULL, &event);
  if (code != CL_SUCCESS) {
    free(copy);
    return code;
  }
  push(q, event, copy, n);
  clFlush(q->queue);
  return CL_SUCCESS;
}

cl_int concord_cl_read(concord_cl_queue *q, uint64_t mem, size_t offset, unsigned char *dst,
                       size_t n, cl_event *done) {
  return clEnqueueReadBuffer(q->queue, mem_of(mem), CL_TRUE, offset, n, dst, 0, NULL, done);
}

cl_int concord_cl_copy(concord_cl_queue *q, uint64_t dst, size_t dst_offset, uint64_t src,
                       size_t src_offset, size_t n) {
  cl_event event = NULL;
  cl_int code = clEnqueueCopyBuffer(q->queue, mem_of(src), mem_of(dst), src_offset, dst_offset, n,
                                    0, NULL, &event);
  return queued(q, code, event);
}

// fill_with fills a range that OpenCL accepts: offset and n are multiples of size.
static cl_int fill_with(concord_cl_queue *q, cl_mem mem, size_t offset, size_t n, const void *p,
                        size_t size) {
  if (n == 0)
    return CL_SUCCESS;
  cl_event event = NULL;
  cl_int code = clEnqueueFillBuffer(q->queue, mem, p, size, offset, n, 0, NULL, &event);
  if (code == CL_SUCCESS)
    push(q, event, NULL, 0);
  return code;
}

cl_int concord_cl_fill(concord_cl_queue *q, uint64_t mem, size_t offset, size_t n,
                       const unsigned char *p, size_t k) {
  cl_mem m = mem_of(mem);
  // OpenCL requires multiples of the pattern's size. For other ranges, the bytes before and
  // after the aligned part are filled one by one, and the part itself with the rotated pattern.
  size_t head = (k - offset % k) % k;
  if (head > n)
    head = n;
  size_t middle = (n - head) / k * k;
  cl_int code = CL_SUCCESS;
  for (size_t i = 0; i < head && code == CL_SUCCESS; i++)
    code = fill_with(q, m, offset + i, 1, p + i % k, 1);
  unsigned char turned[16];
  for (size_t i = 0; i < k && i < sizeof turned; i++)
    turned[i] = p[(head + i) % k];
  if (code == CL_SUCCESS)
    code = fill_with(q, m, offset + head, middle, turned, k);
  for (size_t i = head + middle; i < n && code == CL_SUCCESS; i++)
    code = fill_with(q, m, offset + i, 1, p + i % k, 1);
  clFlush(q->queue);
  return code;
}

cl_int concord_cl_mark(concord_cl_queue *q, cl_event *event) {
  cl_int code = clEnqueueMarkerWithWaitList(q->queue, 0, NULL, event);
  if (code == CL_SUCCESS)
    clFlush(q->queue); // another queue may wait for it
  return code;
}

cl_int concord_cl_after(concord_cl_queue *q, cl_event event) {
  cl_event done = NULL;
  cl_int code = clEnqueueBarrierWithWaitList(q->queue, 1, &event, &done);
  return queued(q, code, done);
}

cl_event concord_cl_at(concord_cl_queue *q, uint64_t n) {
  if (n < q->done || n >= q->pushed)
    return NULL;
  cl_event event = q->ring[n % CONCORD_CL_RING].event;
  return clRetainEvent(event) == CL_SUCCESS ? event : NULL;
}

cl_int concord_cl_event_wait(cl_event event) {
  cl_int code = clWaitForEvents(1, &event);
  cl_int s = status(event);
  return s < 0 ? s : code;
}

cl_int concord_cl_event_times(cl_event event, cl_ulong times[4]) {
  static const cl_profiling_info what[4] = {CL_PROFILING_COMMAND_QUEUED,
                                            CL_PROFILING_COMMAND_SUBMIT, CL_PROFILING_COMMAND_START,
                                            CL_PROFILING_COMMAND_END};
  for (int i = 0; i < 4; i++) {
    cl_int code = clGetEventProfilingInfo(event, what[i], sizeof times[i], &times[i], NULL);
    if (code != CL_SUCCESS)
      return code;
  }
  return CL_SUCCESS;
}

cl_int concord_cl_touch(cl_command_queue queue, uint64_t mem) {
  cl_mem m = mem_of(mem);
  cl_event event = NULL;
  cl_int code = clEnqueueMigrateMemObjects(queue, 1, &m, 0, 0, NULL, &event);
  if (code == CL_SUCCESS) {
    code = concord_cl_event_wait(event);
    clReleaseEvent(event);
  }
  return code;
}

cl_int concord_cl_binary(cl_program program, unsigned char *dst, size_t n) {
  // There is one entry per device of the program; programs here are built for one device.
  size_t size = 0;
  cl_int code = clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL);
  if (code != CL_SUCCESS)
    return code;
  if (size != n)
    return CL_INVALID_VALUE;
  return clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof dst, &dst, NULL);
}
