// fault.h: faults on demand and the counters of a simulated library. Each library has its own copy
// of this state and exports the two control symbols below.
//
// CONCORD_SIM_FAULT in the environment, or a call of concord_sim_control, gives a comma-separated
// list of words:
//
//   KIND:N        the Nth call of that kind fails, counted from 1 and from the control call
//   KIND:N+       that one and all later ones
//   KIND:N=CODE   with the vendor's number CODE instead of the usual one
//   any:N         the Nth call of any kind fails, likewise
//   lost:N        the Nth call of any kind and all after it say that the device is lost
//   launch-late:N the Nth launch is accepted and fails when it runs
//   collective-late:N=CODE, collective-hang:N    the Nth part of a collective that runs never ends,
//                 and its communicator reports CODE, or nothing
//   join-hang:N   the Nth rank that joins a communicator, and so all, are never done
//   slow-copy:MS, slow-kernel:MS    each takes that much longer
//   devices:N, driver:VERSION, init:CODE, arch:NN, memory:MIB    what the machine looks like
//   symbol:NAME   the function that looks symbols up does not know NAME
//
// The kinds are in fault.cpp.

#ifndef CONCORD_SIM_FAULT_H
#define CONCORD_SIM_FAULT_H

#include <string>

#define SIM_EXPORT extern "C" __attribute__((visibility("default")))

// concord_sim_control replaces all faults; "" clears them. It also sets the call counters to zero.
// 0 is success, -1 a word that it does not know: then nothing has changed.
SIM_EXPORT int concord_sim_control(const char *command);

// concord_sim_count returns the number of live "allocations", "bytes", "pinned", "streams",
// "threads", "events", "modules", "graphs", "contexts", "programs", "communicators"; or the calls since the last
// control: "calls", "calls:KIND". -1: no such counter.
SIM_EXPORT long concord_sim_count(const char *what);

namespace sim {

enum Kind {
  K_OTHER,
  K_ALLOC,
  K_FREE,
  K_PINNED,
  K_COPY,
  K_FILL,
  K_LAUNCH,
  K_LATE,
  K_LOAD,
  K_FIND,
  K_STREAM,
  K_EVENT,
  K_RECORD,
  K_SYNC,
  K_GRAPH,
  K_CONTEXT,
  K_COMPILE,
  K_JOIN,
  K_JOIN_HANG,
  K_COLLECTIVE,
  K_COLLECTIVE_LATE,
  K_COLLECTIVE_HANG,
  K_COUNT,
};

// call counts a call and returns the code with which it has to fail, or 0.
int call(Kind kind);

const int code_lost = 214; // uncorrectable ECC error: the context is gone

// late returns the code with which the current launch, or what else the kind says, has to fail when it runs, or 0.
int late(Kind kind = K_LATE);

struct Settings {
  int devices, driver, init, arch;
  long memory_mib, slow_copy_ms, slow_kernel_ms;
};
Settings settings();
bool symbol_hidden(const std::string &name);
bool verbose();

// gauge returns the number of live objects by name; each library has its own. -1: unknown.
long gauge(const std::string &what);
long programs(const std::string &what); // the counters of the compiler

} // namespace sim

#endif
