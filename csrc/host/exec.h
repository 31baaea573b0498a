// exec.h: the declarations that the executor's files share. They are one translation unit (host.c
// includes them all) in which all functions except concord_host_* are static, so that a program may
// contain two copies.

#ifndef CONCORD_EXEC_H
#define CONCORD_EXEC_H

#include "host.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif
#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS MAP_ANON
#endif

enum {
  ALIGN_LOCAL = 128,         // of a local block and every slice of it: a double16
  STACK_DEFAULT = 256 << 10, // for an item's fiber; pages get memory when they are first used
  STACK_MAIN = 8 << 20,      // for the fiber that runs kernels without barriers
  STACK_GUARD = 64 << 10,    // below each stack
  STACK_COLOUR = 320,        // difference of the offsets in a page at which stacks start: with equal
                             // offsets, their hot lines would all be in the same sets of the cache
  ALT_STACK = 64 << 10,      // stack of signal handlers: AVX-512 state alone takes 3 KiB
  MAX_THREADS = 1024,
};

// fiber is a stack and the state of the item that runs on it. It is at the top of that stack, so
// that an item's context and first frames share a page.
struct fiber {
  concord_ctx ctx; // first, because the barrier casts its address to the fiber
  void *sp;        // stack pointer of a fiber that does not run
  struct worker *worker;
  uint32_t index; // linear local id
  char *base;     // beginning of the mapping: guard, then stack
  size_t bytes;   // size of the mapping
};

// worker is the state that a thread needs to run groups. Each thread of the pool has one, and the
// thread that launches borrows one (a guest), so that a small launch wakes no other thread.
struct worker {
  bool guest;
  struct worker *link;             // next in the list of idle guests
  void *sched;                     // stack pointer of the thread itself while a fiber runs
  volatile sig_atomic_t in_kernel; // set while kernel code runs: a fault is the kernel's
  struct fiber *current;           // the fiber that runs
  struct job *job;
  struct fiber *main;          // for kernels without barriers
  struct fiber **fibers;       // fiber i runs item i
  uint32_t fiber_count, items; // number of fibers that exist, and that this job uses
  size_t stack_bytes;          // size of the stack of each
  char *local_map;             // the local block and its guard
  size_t local_map_bytes;
  char *local;          // the block in use, 128-byte aligned, ending at the guard
  void **args, **slots; // argument table of the job; slots has the addresses of local slices
  uint32_t arg_room;
  uint64_t first, last;           // linear numbers of the groups of the current chunk
  uint64_t group[3];              // the group that runs
  uint32_t round;                 // the barrier of this round, or ROUND_DONE
  uint32_t failed;                // a status that ends the job, found on a fiber
  uint32_t other;                 // the diverging item's barrier, or ROUND_DONE
  int signal_number, signal_code; // of a fault
  uint64_t signal_address;
  const int32_t *leave, *cancel; // read between chunks and between groups; or NULL
  uint64_t slice; // nanoseconds before leave is read; if leave is NULL, the time to run; 0: no limit
  char *text; // printf's buffer
  size_t text_room;
};

#define ROUND_DONE 0xffffffffu

// job is a launch in progress. It is on the launching thread's stack, or part of a concord_job.
struct job {
  const concord_launch *launch;
  const concord_kernel *kernel;
  concord_grid grid;
  uint64_t total;           // number of groups
  uint64_t items;           // number of items of a group
  uint64_t local_bytes;     // size of a group's whole block of local memory
  _Atomic uint64_t next;    // first group that no worker has taken
  _Atomic uint32_t stop;    // failed or cancelled
  _Atomic uint32_t active;  // number of workers on it; changed under the pool's lock
  uint32_t limit;           // largest number of workers
  bool done;                // under the pool's lock
  struct job *link, **back; // the pool's list of jobs that have groups left
  pthread_cond_t finished;
  concord_error *err; // written by the worker that sets stop first
};

static bool job_left(struct job *j) {
  return !atomic_load_explicit(&j->stop, memory_order_relaxed) &&
         atomic_load_explicit(&j->next, memory_order_relaxed) < j->total;
}

// fiber.c
static struct fiber *fiber_new(struct worker *w, uint32_t index, size_t stack_bytes);
static void fiber_free(struct fiber *f);
static void fiber_reset(struct fiber *f); // back to its beginning, whatever it was doing
static void fiber_switch(void **save, void *to);

// group.c
static void fiber_body(struct fiber *f); // the function of every fiber; a switch to it runs one turn
static void worker_run(struct worker *w, struct job *j);
static const concord_calls calls_loop, calls_fiber;

// fault.c
static int fault_install(void);
static int fault_thread(struct worker *w);
static void fault_mask(void);
static void fault_explain(const struct worker *w, concord_error *err);

// print.c
static int32_t print_values(concord_ctx *ctx, const char *format, const concord_value *values,
                            uint32_t count);

// pool.c
static void job_fail(struct job *j, int32_t status, const struct worker *w, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static bool pool_wanted(const struct job *j); // reports whether another job needs a worker more

#endif
