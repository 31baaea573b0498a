// abi.h: the layout of a compiled program, for the program and for the host executor (csrc/host/host.h). It is valid
// C11 and C++17 and includes only stdint.h.

#include <stdint.h>

// CONCORD_HOST_ABI changes whenever a struct below does. The executor refuses other numbers.
#define CONCORD_HOST_ABI 3u

// CONCORD_MAX_GROUP is the largest number of items in a group of a kernel that synchronizes:
// each of them has a stack of its own. Kernels without barriers have no such limit.
#define CONCORD_MAX_GROUP 4096u

// concord_grid is the index space of a launch. All three entries of every array are valid, unused
// dimensions hold 1 (offset: 0). global counts items and is a multiple of local, which counts the
// items of a group; groups is global / local.
typedef struct concord_grid {
  uint32_t dim;
  uint32_t reserved;
  uint64_t global[3];
  uint64_t local[3];
  uint64_t offset[3];
  uint64_t groups[3];
} concord_grid;

// concord_value is one argument of a kernel's printf: width lanes of bytes bytes each at data.
typedef struct concord_value {
  uint8_t kind;   // one of CONCORD_VALUE_*
  uint8_t width;  // lanes: 1, 2, 3, 4, 8, 16
  uint16_t bytes; // of a lane
  uint32_t reserved;
  const void *data;
} concord_value;

enum {
  CONCORD_VALUE_SIGNED = 1,
  CONCORD_VALUE_UNSIGNED = 2,
  CONCORD_VALUE_FLOAT = 3,   // 2 (half), 4 or 8 bytes
  CONCORD_VALUE_POINTER = 4, // data is the pointer itself
  CONCORD_VALUE_STRING = 5,  // data is the NUL-terminated text itself
};

struct concord_ctx;

// concord_calls are the executor's functions, reached through the context so that a compiled
// program has no symbol of the executor to resolve.
typedef struct concord_calls {
  // barrier returns when every item of the group has called it from the same site. Only items of
  // a kernel with CONCORD_KERNEL_FIBERS may call it. It may never return (another item faulted, or
  // went another way), so a kernel must not hold a resource across it that needs to be released.
  void (*barrier)(struct concord_ctx *ctx, uint32_t site);
  // print formats count values after OpenCL's rules and hands the text to the launch's sink in
  // one piece. It returns 0, or -1 for a bad format.
  int32_t (*print)(struct concord_ctx *ctx, const char *format, const concord_value *values,
                   uint32_t count);
} concord_calls;

// concord_ctx is the position of a running item, or of a group of a kernel without fibers.
typedef struct concord_ctx {
  const concord_grid *grid;
  const concord_calls *calls;
  void *local;          // the group's local block, 128-byte aligned: static part first, then slices
  uint64_t local_bytes; // of the whole block
  uint64_t group[3];    // index of the group
  uint64_t item[3];     // local index of the item; zeros for kernels without fibers
  uint64_t more[3];     // groups behind this one in each dimension that run in the same call
} concord_ctx;

// concord_run runs one item (CONCORD_KERNEL_FIBERS), or all items of a box of groups:
// one and ctx->more behind it in each dimension (0 without CONCORD_KERNEL_ROWS). args[i] points to
// the value of argument i: for a buffer to the pointer, for local memory to the pointer of this
// group's slice.
typedef void (*concord_run)(concord_ctx *ctx, void *const *args);

enum {
  CONCORD_KERNEL_FIBERS = 1, // synchronizes: each item needs a fiber
  CONCORD_KERNEL_ROWS = 2,   // does not use the group's index: one run may cover several groups
};

// concord_kernel is one entry point of a compiled program.
typedef struct concord_kernel {
  const char *name;
  uint32_t flags;
  uint32_t param_count;
  const uint32_t *param_bytes; // size of each parameter as passed; pointers: 8
  uint64_t local_bytes;        // static local memory of a group
  concord_run run;
  uint64_t item_bytes; // of stack that run takes for each item of a group, beyond the usual
} concord_kernel;

// concord_module is what a compiled program exports, as one constant named concord_program.
typedef struct concord_module {
  uint32_t abi; // CONCORD_HOST_ABI of the prelude that it was compiled with
  uint32_t kernel_count;
  const concord_kernel *kernels;
} concord_module;
