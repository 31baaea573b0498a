// threads.cpp: the threads of a threadgroup: their ids, barriers, SIMD groups. It uses the text
// that the simulated CUDA puts in front of every program.

#include "run.h"

#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#define __SIM_WARP SIMMETAL_WIDTH
#include "../lib/prelude/run.h"

static void __sim_dynamic(void *) {}

namespace simmetal {
namespace {

// The operations of msl/metal_compute.
enum { BARRIER, SHUFFLE, OR, AND, LANE };

uint64_t wait(int op, uint64_t value, uint32_t at) {
  switch (op) {
  case BARRIER:
    __sim_barrier(at, 0);
    return 0;
  case SHUFFLE:
    return __sim_exchange(__SIM_SHUFFLE, 0, value, at);
  case OR:
    return __sim_exchange(__SIM_OR, 0, value, 0);
  case AND:
    return __sim_exchange(__SIM_AND, 0, value, 0);
  default:
    return __sim_me->lane;
  }
}

void call(const __sim_item &me, void *const *args) {
  const Launch *l = *static_cast<const Launch *const *>(args[0]);
  Ids ids = {{me.thread.x, me.thread.y, me.thread.z},
             {me.block.x, me.block.y, me.block.z},
             {me.block_dim.x, me.block_dim.y, me.block_dim.z},
             {me.grid_dim.x, me.grid_dim.y, me.grid_dim.z},
             {},
             {},
             me.number,
             me.lane,
             me.warp,
             0};
  for (int d = 0; d < 3; d++) {
    ids.position[d] = ids.group[d] * ids.group_size[d] + ids.thread[d];
    ids.grid[d] = ids.groups[d] * ids.group_size[d];
  }
  ids.simds = (ids.group_size[0] * ids.group_size[1] * ids.group_size[2] + SIMMETAL_WIDTH - 1) / SIMMETAL_WIDTH;
  void *value[LIMIT];
  for (uint32_t i = 0; i < l->count; i++)
    value[i] = l->local[i] == SIZE_MAX ? l->value[i] : static_cast<char *>(me.ctx->local) + l->local[i];
  l->thunk(value, &ids);
}

} // namespace

const Hooks hooks = {wait};

extern "C" void run_thread(concord_ctx *ctx, void *const *args) {
  __sim_item me;
  __sim_begin(&me, ctx, unsigned(ctx->item[0]), unsigned(ctx->item[1]), unsigned(ctx->item[2]));
  __sim_enter(&me);
  call(me, args);
  __sim_exit();
}

extern "C" void run_group(concord_ctx *ctx, void *const *args) {
  const unsigned long *n = ctx->grid->local;
  __sim_item me;
  for (unsigned z = 0; z < n[2]; z++)
    for (unsigned y = 0; y < n[1]; y++)
      for (unsigned x = 0; x < n[0]; x++) {
        __sim_begin(&me, ctx, x, y, z);
        call(me, args);
      }
}

} // namespace simmetal
