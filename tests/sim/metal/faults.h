// faults.h: the counters of the simulated framework, and its faults on demand. ../lib/fault.h
// documents the words; the kinds here are:
//
//   alloc    newBufferWithLength:options: returns nil
//   stream   newCommandQueueWithMaxCommandBufferCount: returns nil
//   event    newSharedEvent returns nil
//   record   commandBuffer returns nil
//   launch   computeCommandEncoder returns nil
//   copy     blitCommandEncoder returns nil
//   compile  newLibraryWithSource:... fails
//   find     newFunctionWithName: returns nil
//   load     newComputePipelineStateWithDescriptor:... fails
//   graph    an archive of compiled code cannot be made, filled or written
//   fill, sync, launch-late    a fill, a command buffer as a whole, a dispatch fails when it runs;
//            =CODE is a MTLCommandBufferError
//   lost     the device is removed: what makes something returns nil, command buffers fail

#ifndef CONCORD_SIMMETAL_FAULTS_H
#define CONCORD_SIMMETAL_FAULTS_H

#ifdef __cplusplus
extern "C" {
#endif

enum simmetal_call {
  CALL_ALLOC,
  CALL_STREAM,
  CALL_EVENT,
  CALL_RECORD,
  CALL_LAUNCH,
  CALL_COPY,
  CALL_COMPILE,
  CALL_FIND,
  CALL_LOAD,
  CALL_ARCHIVE,
  CALL_FILL,
  CALL_SYNC,
  CALL_LATE,
};

// simmetal_fault counts a call and returns 0, or the code with which it has to fail.
int simmetal_fault(enum simmetal_call call);
// SIMMETAL_LOST is the code of a device that was removed.
#define SIMMETAL_LOST 214

// Counters of live objects; faults.cpp has their names for concord_sim_count.
enum simmetal_gauge {
  GAUGE_OBJECTS, // objects of any class except devices
  GAUGE_ALLOCATIONS,
  GAUGE_BYTES,
  GAUGE_STREAMS,
  GAUGE_THREADS,
  GAUGE_EVENTS,
  GAUGE_MODULES,
  GAUGE_COMMANDS,   // command buffers
  GAUGE_VIOLATIONS, // violations of Metal's rules that cannot raise an exception; never decreases
  GAUGE_ARCHIVED,   // pipelines whose code was in an archive; never decreases
  GAUGES,
};
void simmetal_count(enum simmetal_gauge gauge, long by);
long simmetal_alive(enum simmetal_gauge gauge);

int simmetal_devices(void);
long simmetal_memory_mib(void);
void simmetal_slow_kernel(void); // sleeps as long as slow-kernel currently says
void simmetal_slow_copy(void);

#ifdef __cplusplus
}
#endif
#endif
