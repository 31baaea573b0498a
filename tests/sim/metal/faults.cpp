// faults.cpp: implements faults.h with the code that all simulated libraries share.

#include "faults.h"

#include "../lib/fault.h"

#include <atomic>
#include <chrono>
#include <thread>

namespace {

const sim::Kind kinds[] = {sim::K_ALLOC,   sim::K_STREAM, sim::K_EVENT, sim::K_RECORD, sim::K_LAUNCH,
                           sim::K_COPY,    sim::K_COMPILE, sim::K_FIND, sim::K_LOAD,   sim::K_GRAPH,
                           sim::K_FILL,    sim::K_SYNC};
const char *const names[GAUGES] = {"objects", "allocations", "bytes",    "streams",    "threads",
                                   "events",  "modules",     "commands", "violations", "archived"};
std::atomic<long> gauges[GAUGES];

// pause checks the setting repeatedly, so that a test that changes it ends the pause.
void pause(long sim::Settings::*ms) {
  for (long waited = 0; waited < sim::settings().*ms; waited++)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

} // namespace

int simmetal_fault(enum simmetal_call call) {
  return call == CALL_LATE ? sim::late() : sim::call(kinds[call]);
}

void simmetal_count(enum simmetal_gauge gauge, long by) { gauges[gauge] += by; }
long simmetal_alive(enum simmetal_gauge gauge) { return gauges[gauge]; }

int simmetal_devices(void) { return sim::settings().devices; }
long simmetal_memory_mib(void) { return sim::settings().memory_mib; }
void simmetal_slow_kernel(void) { pause(&sim::Settings::slow_kernel_ms); }
void simmetal_slow_copy(void) { pause(&sim::Settings::slow_copy_ms); }

long sim::gauge(const std::string &what) {
  for (int i = 0; i < GAUGES; i++)
    if (what == names[i])
      return gauges[i];
  // Counters that only the other libraries have are 0.
  return what == "pinned" || what == "graphs" || what == "contexts" || what == "programs" ? 0 : -1;
}
