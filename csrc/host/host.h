// host.h is the interface of the host executor: the layout of a compiled program (a shared object
// made from a rendered portable source), and the calls that run one of its kernels on the CPU's
// threads.
//
// What compiled programs and the executor share is in abi.h, which is also the beginning of every rendered
// program. It is there and not here, because the go command embeds no file of another folder.

#ifndef CONCORD_HOST_H
#define CONCORD_HOST_H

#include "../../source/host/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

// The results of concord_host_launch.
enum {
  CONCORD_OK = 0,
  CONCORD_INVALID = 1,   // an argument of the launch is not valid; nothing ran
  CONCORD_NOMEM = 2,     // no memory for stacks, local blocks or threads
  CONCORD_CANCELLED = 3, // *cancel became non-zero; some groups did not run
  CONCORD_FAULT = 4,     // kernel code faulted; some groups did not run
  CONCORD_BARRIER = 5,   // the items of a group did not all reach the same barrier
};

// Kinds of fault.
enum {
  CONCORD_FAULT_ADDRESS = 1,    // access to memory that does not exist or is not writable
  CONCORD_FAULT_STACK = 2,      // the stack of an item overflowed
  CONCORD_FAULT_ARITHMETIC = 3, // integer division by zero, or INT_MIN / -1, where it traps (x86)
  CONCORD_FAULT_ILLEGAL = 4,    // an instruction that this CPU lacks, or a trap
  CONCORD_FAULT_LOCAL = 5,      // the page after the group's local memory
};

// The address of a fault if the system does not report it.
#define CONCORD_ADDRESS_UNKNOWN UINT64_MAX

// concord_error describes the failure of a launch. The caller owns it; every call writes every
// field.
typedef struct concord_error {
  int32_t status;    // as returned
  int32_t fault;     // CONCORD_FAULT_*, or 0
  uint64_t address;  // address of the fault: of the data (ADDRESS, STACK, LOCAL) or of the instruction;
                     // CONCORD_ADDRESS_UNKNOWN if it was not canonical (ADDRESS on x86)
  uint64_t group[3]; // the group that failed (FAULT, BARRIER), or the first of several: see more
  uint64_t item[3];  // local index of the item, for kernels with fibers
  uint32_t has_item; // item is known
  uint32_t site;     // BARRIER: the barrier that some items wait at
  uint32_t site2;    // BARRIER: the one that others wait at, or 0xffffffff: they have returned
  uint32_t reserved;
  uint64_t more[3];  // number of groups after group in each dimension that ran in the same call
  char message[256]; // one line of text, NUL-terminated
} concord_error;

// concord_print_fn receives the text of one printf call. Calls are serialized. It runs on a thread
// of the pool and must return.
typedef void (*concord_print_fn)(void *user, const char *text, uint64_t bytes);

// concord_launch is one launch. All memory that it points to belongs to the caller and is only
// read; no pointer is kept after concord_host_launch returns.
typedef struct concord_launch {
  const concord_kernel *kernel;
  uint32_t dim;       // 1, 2 or 3; the entries below beyond it are ignored
  uint32_t arg_count; // must equal kernel->param_count
  uint64_t global[3]; // items; zero is allowed and runs nothing
  uint64_t local[3];  // items of a group; divides global
  uint64_t offset[3]; // added to the global ids
  void *const *args;  // args[i] points to the value of argument i; ignored for local memory
  const uint64_t
      *local_bytes;       // per argument: > 0 makes it local memory of that many bytes; or NULL
  const int32_t *cancel;  // read between groups, may be set by any thread; or NULL
  concord_print_fn print; // sink of printf; NULL: standard error
  void *print_user;
  uint64_t stack_bytes; // of an item that has a fiber; 0: 256 KiB, committed as it is used
  uint32_t threads;     // largest number of threads that work on it; 0: all of the pool
  uint32_t reserved;
} concord_launch;

// Hidden: a program may contain two copies, and if it exports its symbols it must not export these.
#pragma GCC visibility push(hidden)

// concord_host_init starts the pool with that many threads (0: one per CPU that this process may
// use) and installs the signal handlers. It may be called at any time from any thread; a pool that
// exists grows and never shrinks. The first launch calls it with 0 if it has not been called.
int32_t concord_host_init(uint32_t threads, concord_error *err);

// concord_host_threads returns the size of the pool, 0 before the first use.
uint32_t concord_host_threads(void);

// concord_host_launch runs one kernel over one grid and blocks until no thread works on it any
// more. Any number of threads may call it at a time; their launches share the pool. It returns
// err->status. After a failed launch its buffers may be partly written; the pool is not affected
// and accepts other launches. A kernel that never ends cannot be stopped.
int32_t concord_host_launch(const concord_launch *launch, concord_error *err);

// concord_job is a launch that runs on threads of the caller and not of the pool.
// concord_host_begin copies the launch (except cancel and threads), any number of threads call
// concord_host_help until it returns 0, and after all of these calls have returned,
// concord_host_end returns the result and frees the job. The result is CONCORD_NOMEM if groups did
// not run because of missing memory. begin returns NULL if there is nothing to run: with the reason
// in err, or with CONCORD_OK for an empty grid.
typedef struct concord_job concord_job;
concord_job *concord_host_begin(const concord_launch *launch, uint64_t *groups, concord_error *err);

// concord_host_help runs groups on the calling thread until none is left or the launch has
// failed, and then returns 0. It also returns 0 if there is no memory for the stacks of one more
// thread: other threads continue, and after they have returned, one thread should call it again
// alone. Otherwise it returns 1: after that many nanoseconds (if not 0), or when *leave is not
// zero, which it reads between chunks after it has run for a fraction of a millisecond. leave and
// cancel may be NULL and may be set by any thread.
int32_t concord_host_help(concord_job *job, const int32_t *leave, const int32_t *cancel,
                          uint64_t nanoseconds);
int32_t concord_host_end(concord_job *job, concord_error *err);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
