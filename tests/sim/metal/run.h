// run.h: types that compile.cpp, run.cpp and threads.cpp share.

#ifndef CONCORD_SIMMETAL_RUN_H
#define CONCORD_SIMMETAL_RUN_H

#include "compile.h"

#include <string>

struct concord_ctx;

namespace simmetal {

enum { LIMIT = 2 * SIMMETAL_BUFFERS }; // parameters with an index

// Ids holds the ids of the thread that runs a kernel; compile.cpp writes the same struct into every
// program.
struct Ids {
  uint32_t thread[3], group[3], group_size[3], groups[3], position[3], grid[3];
  uint32_t index, lane, simd, simds;
};

// Thunk calls a kernel with args, one for each parameter with an index.
typedef void (*Thunk)(void *const *args, const Ids *ids);

// Launch is the one argument that the executor passes on.
struct Launch {
  Thunk thunk;
  uint32_t count;
  void *value[LIMIT];
  size_t local[LIMIT]; // offset of the parameter's block in the group's memory; SIZE_MAX: a buffer
};

// Hooks are the functions that a program calls; see msl/metal_compute.
struct Hooks {
  uint64_t (*wait)(int op, uint64_t value, uint32_t at);
};
extern const Hooks hooks;

// threads.cpp: one thread on its fiber, and all threads of a group one after another.
extern "C" void run_thread(concord_ctx *ctx, void *const *args);
extern "C" void run_group(concord_ctx *ctx, void *const *args);

} // namespace simmetal

#endif
