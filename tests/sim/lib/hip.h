// hip.h: the types of HIP's module interface as in its public headers, for the hip_*.cpp files.
// HIP's codes are CUDA's numbers. It has one context per device and process.

#ifndef CONCORD_SIM_HIP_H
#define CONCORD_SIM_HIP_H

#include "core.h"

typedef int hipError_t;
typedef int hipDevice_t;
typedef void *hipDeviceptr_t;
typedef sim::Stream *hipStream_t;
typedef sim::Event *hipEvent_t;
typedef sim::Module *hipModule_t;
typedef sim::Function *hipFunction_t;
typedef sim::Graph *hipGraph_t;
typedef sim::GraphNode *hipGraphNode_t;
typedef sim::GraphExec *hipGraphExec_t;

struct hipUUID {
  char bytes[16];
};

// Enter begins a function: it counts the call, and finds the context of the thread's device.
struct Enter {
  int code;
  sim::Context *context;
  Enter(sim::Kind kind, bool device);
};
int hip_device(); // of this thread
void hip_device_set(int device);
hipError_t hip_keep(hipError_t code); // for hipGetLastError
std::string hip_arch();               // "gfx90a:sramecc+:xnack-"

#define HIP(kind)                                                                                  \
  Enter enter_(sim::kind, true);                                                                   \
  if (enter_.code != sim::OK)                                                                      \
    return hip_keep(enter_.code);                                                                  \
  sim::Context *ctx = enter_.context;                                                              \
  (void)ctx
#define HIP_ANY(kind)                                                                              \
  Enter enter_(sim::kind, false);                                                                  \
  if (enter_.code != sim::OK)                                                                      \
  return hip_keep(enter_.code)
// HIP_END is the body of a function that destroys an object. If it has to fail, it still destroys
// the object, as the vendors' functions do.
#define HIP_END(work)                                                                              \
  Enter enter_(sim::K_OTHER, true);                                                                \
  sim::Context *ctx = enter_.context;                                                              \
  int done_ = ctx != nullptr ? (work) : enter_.code;                                               \
  return hip_keep(enter_.code != sim::OK ? enter_.code : done_)
#define NEED(condition)                                                                            \
  if (!(condition))                                                                                \
  return hip_keep(sim::INVALID_VALUE)
#define DEVICE(d)                                                                                  \
  if (!sim::device_ok(d))                                                                          \
  return hip_keep(sim::INVALID_DEVICE)

#endif
