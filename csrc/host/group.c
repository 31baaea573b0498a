// group.c: how one worker runs groups. A kernel without barriers is called once per group, on the
// worker's main fiber, whose stack has a guard page, so that an overflow is a fault. A kernel
// with barriers has a fiber per item. The fibers run in the order of their ids, each up to its next
// barrier; this is a round. Item 0 determines the barrier of the round, which all others must
// reach.

#include "exec.h"

// worker_fail switches away from the fiber and never returns to it.
static _Noreturn void worker_fail(struct worker *w, uint32_t status) {
  void *lost;
  w->failed = status;
  fiber_switch(&lost, w->sched);
  abort();
}

// fiber_step ends an item's part of the round and switches to the next item.
static inline void fiber_step(struct fiber *f, uint32_t site) {
  struct worker *w = f->worker;
  if (f->index == 0)
    w->round = site;
  else if (w->round != site) {
    w->other = site;
    worker_fail(w, CONCORD_BARRIER);
  }
  uint32_t next = f->index + 1;
  if (next == w->items) {
    if (site == ROUND_DONE) {
      fiber_switch(&f->sp, w->sched);
      return;
    }
    next = 0;
  }
  struct fiber *to = w->fibers[next];
  if (to == f)
    return;
  w->current = to;
  fiber_switch(&f->sp, to->sp);
}

static void group_barrier(concord_ctx *ctx, uint32_t site) {
  fiber_step((struct fiber *)ctx, site);
}

// The barrier of a kernel without the flag CONCORD_KERNEL_FIBERS. The renderer sets the flag for
// every kernel that can reach a barrier, so this is only valid if a group is one item.
static void group_no_barrier(concord_ctx *ctx, uint32_t site) {
  struct worker *w = ((struct fiber *)ctx)->worker;
  if (w->job->items == 1)
    return;
  w->round = site;
  w->other = ROUND_DONE;
  worker_fail(w, CONCORD_BARRIER);
}

static const concord_calls calls_fiber = {group_barrier, print_values};
static const concord_calls calls_loop = {group_no_barrier, print_values};

// group_at sets w->group from the linear number of a group.
static void group_at(struct worker *w, uint64_t n) {
  const uint64_t *g = w->job->grid.groups;
  w->group[0] = n % g[0];
  n /= g[0];
  w->group[1] = n % g[1];
  w->group[2] = n / g[1];
}

static void group_next(struct worker *w) {
  const uint64_t *g = w->job->grid.groups;
  w->first++;
  if (++w->group[0] < g[0])
    return;
  w->group[0] = 0;
  if (++w->group[1] < g[1])
    return;
  w->group[1] = 0;
  w->group[2]++;
}

// group_stopped reports between two groups whether the job is to end.
static bool group_stopped(struct worker *w) {
  struct job *j = w->job;
  const int32_t *cancel = w->cancel;
  if (atomic_load_explicit(&j->stop, memory_order_relaxed))
    return true;
  if (cancel == NULL || __atomic_load_n(cancel, __ATOMIC_RELAXED) == 0)
    return false;
  job_fail(j, CONCORD_CANCELLED, NULL, "cancelled");
  return true;
}

// group_box sets more to the largest box of groups that begins at the current one and has only
// groups of the chunk, and returns their number: a part of a row, whole rows, or whole planes.
static uint64_t group_box(const struct worker *w, uint64_t more[3]) {
  const uint64_t *g = w->job->grid.groups;
  uint64_t left = w->last - w->first, count = 1;
  more[0] = more[1] = more[2] = 0;
  for (int d = 0; d < 3; d++) {
    uint64_t behind = g[d] - w->group[d], fit = left / count;
    more[d] = (behind < fit ? behind : fit) - 1;
    count *= more[d] + 1;
    if (more[d] + 1 < g[d])
      break; // the next dimension goes on only behind a whole row or plane
  }
  return count;
}

// group_main runs the chunk of a kernel without barriers, on the main fiber.
static void group_main(struct fiber *f) {
  struct worker *w = f->worker;
  concord_run run = w->job->kernel->run;
  bool rows = w->job->kernel->flags & CONCORD_KERNEL_ROWS;
  while (w->first < w->last && !group_stopped(w)) {
    uint64_t count = 1;
    if (rows)
      count = group_box(w, f->ctx.more);
    memcpy(f->ctx.group, w->group, sizeof w->group);
    w->in_kernel = 1;
    run(&f->ctx, w->args);
    w->in_kernel = 0;
    w->first += count;
    group_at(w, w->first);
  }
}

static void fiber_body(struct fiber *f) {
  struct worker *w = f->worker;
  for (;;) {
    if (f == w->main) {
      group_main(f);
      fiber_switch(&f->sp, w->sched);
    } else {
      w->job->kernel->run(&f->ctx, w->args);
      fiber_step(f, ROUND_DONE);
    }
  }
}

// group_chunk runs groups first to last - 1. It returns false if a fiber failed.
static bool group_chunk(struct worker *w) {
  w->failed = 0;
  if (!(w->job->kernel->flags & CONCORD_KERNEL_FIBERS)) {
    w->current = w->main;
    fiber_switch(&w->sched, w->main->sp);
    w->in_kernel = 0;
    return w->failed == 0;
  }
  for (; w->first < w->last && !group_stopped(w); group_next(w)) {
    for (uint32_t i = 0; i < w->items; i++)
      memcpy(w->fibers[i]->ctx.group, w->group, sizeof w->group);
    w->current = w->fibers[0];
    w->in_kernel = 1;
    fiber_switch(&w->sched, w->fibers[0]->sp);
    w->in_kernel = 0;
    if (w->failed)
      return false;
  }
  return true;
}

// group_report makes the failure that of the job, and resets every fiber to its beginning.
static void group_report(struct worker *w) {
  struct job *j = w->job;
  if (w->failed == CONCORD_FAULT) {
    job_fail(j, CONCORD_FAULT, w, "fault");
  } else if (!(j->kernel->flags & CONCORD_KERNEL_FIBERS)) {
    job_fail(j, CONCORD_BARRIER, w, "a barrier in a kernel that was compiled without any");
  } else {
    job_fail(j, CONCORD_BARRIER, w, "divergent barrier: not all items of the group reached it");
  }
  fiber_reset(w->main);
  for (uint32_t i = 0; i < w->fiber_count; i++)
    fiber_reset(w->fibers[i]);
}

// Each fiber has two mappings, its stack and its guard, and by default Linux limits a process to
// 65530 mappings. If none is left, the process dies, because Go's allocator cannot continue after a
// failed mapping. So all workers together use less than half of the limit, and keep at most half of
// that while they are idle.
static _Atomic uint32_t stacks_made;

static uint32_t stacks_allowed(void) {
  static _Atomic uint32_t allowed;
  uint32_t n = atomic_load(&allowed);
  if (n == 0) {
    n = 65530 / 4;
    FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
    unsigned maps;
    if (f != NULL && fscanf(f, "%u", &maps) == 1 && maps >= 4)
      n = maps / 4;
    if (f != NULL)
      fclose(f);
    atomic_store(&allowed, n);
  }
  return n;
}

static bool stacks_take(uint32_t n) {
  uint32_t have = atomic_load(&stacks_made);
  do {
    if (n > stacks_allowed() || have > stacks_allowed() - n)
      return false;
  } while (!atomic_compare_exchange_weak(&stacks_made, &have, have + n));
  return true;
}

// group_keep frees a worker's fibers from the count-th on.
static void group_keep(struct worker *w, uint32_t count) {
  for (; w->fiber_count > count; w->fiber_count--) {
    fiber_free(w->fibers[w->fiber_count - 1]);
    atomic_fetch_sub(&stacks_made, 1);
  }
}

// group_fibers ensures that the worker has count fibers with stacks of that size. If it fails, the
// worker has the fibers that it had before, or none.
static bool group_fibers(struct worker *w, uint32_t count, size_t stack_bytes) {
  if (stack_bytes > w->stack_bytes) {
    group_keep(w, 0);
    w->stack_bytes = stack_bytes;
  }
  uint32_t had = w->fiber_count;
  if (count <= had)
    return true;
  struct fiber **fs = realloc(w->fibers, count * sizeof *fs);
  if (fs == NULL)
    return false;
  w->fibers = fs;
  if (!stacks_take(count - had))
    return false;
  for (; w->fiber_count < count; w->fiber_count++)
    if ((fs[w->fiber_count] = fiber_new(w, w->fiber_count, w->stack_bytes)) == NULL) {
      atomic_fetch_sub(&stacks_made, count - w->fiber_count); // the ones that were not made
      group_keep(w, had);
      return false;
    }
  return true;
}

// group_main_stack ensures that there is a main fiber with a stack of at least that size.
static bool group_main_stack(struct worker *w, size_t bytes) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  bytes = (bytes + page - 1) / page * page;
  if (w->main != NULL && w->main->bytes >= bytes + STACK_GUARD)
    return true;
  struct fiber *f = fiber_new(w, 0, bytes);
  if (f == NULL)
    return false;
  fiber_free(w->main);
  w->main = f;
  return true;
}

// group_local ensures that there is a block of local memory. It ends at an inaccessible page, so
// that an access more than the alignment past the end of the last local array is a fault.
static bool group_local(struct worker *w, uint64_t bytes) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (size_t)(bytes + page - 1) / page * page;
  if (w->local_map == NULL || room + page > w->local_map_bytes) {
    char *map = mmap(NULL, room + page, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
      return false;
    mprotect(map + room, page, PROT_NONE); // if this fails, only the check is missing
    if (w->local_map != NULL)
      munmap(w->local_map, w->local_map_bytes);
    w->local_map = map;
    w->local_map_bytes = room + page;
  }
  w->local = w->local_map + w->local_map_bytes - page - bytes;
  return true;
}

static uint64_t local_align(uint64_t n) {
  return (n + ALIGN_LOCAL - 1) / ALIGN_LOCAL * ALIGN_LOCAL;
}

// group_args builds the job's argument table, with this worker's slices of local memory.
static bool group_args(struct worker *w, struct job *j) {
  const concord_launch *l = j->launch;
  if (l->arg_count > w->arg_room) {
    void **args = realloc(w->args, l->arg_count * sizeof *args);
    if (args == NULL)
      return false;
    w->args = args;
    void **slots = realloc(w->slots, l->arg_count * sizeof *slots);
    if (slots == NULL)
      return false;
    w->slots = slots;
    w->arg_room = l->arg_count;
  }
  uint64_t at = local_align(j->kernel->local_bytes);
  for (uint32_t i = 0; i < l->arg_count; i++) {
    if (l->local_bytes == NULL || l->local_bytes[i] == 0) {
      w->args[i] = l->args[i];
      continue;
    }
    w->slots[i] = w->local + at;
    w->args[i] = &w->slots[i];
    at += local_align(l->local_bytes[i]);
  }
  return true;
}

// worker_enter prepares the worker for a job.
static bool worker_enter(struct worker *w, struct job *j) {
  const concord_launch *l = j->launch;
  bool fibers = j->kernel->flags & CONCORD_KERNEL_FIBERS;
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t stack =
      l->stack_bytes > 0 ? (size_t)((l->stack_bytes + page - 1) / page * page) : STACK_DEFAULT;
  w->job = j;
  w->items = (uint32_t)j->items;
  if (!group_main_stack(w, STACK_MAIN + (size_t)(j->items * j->kernel->item_bytes)))
    return false;
  if (fibers && !group_fibers(w, w->items, stack))
    return false;
  if (!group_local(w, j->local_bytes) || !group_args(w, j))
    return false;
  const uint64_t *n = j->grid.local;
  for (uint32_t i = 0; i < (fibers ? w->items : 1); i++) {
    concord_ctx *c = fibers ? &w->fibers[i]->ctx : &w->main->ctx;
    *c = (concord_ctx){.grid = &j->grid,
                       .calls = fibers ? &calls_fiber : &calls_loop,
                       .local = w->local,
                       .local_bytes = j->local_bytes,
                       .item = {i % n[0], i / n[0] % n[1], i / n[0] / n[1]}};
  }
  return true;
}

static uint64_t group_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// worker_wanted reports whether a worker is to leave a job that has groups left.
static bool worker_wanted(const struct worker *w, const struct job *j, uint64_t ran) {
  if (w->slice == 0)
    return !w->guest && pool_wanted(j);
  return ran >= w->slice && (w->leave == NULL || __atomic_load_n(w->leave, __ATOMIC_RELAXED) != 0);
}

// worker_run works on a job until it has no groups left, or until the worker is needed for another
// job. It takes groups in chunks that last about 50 microseconds, by the time of the previous ones:
// with longer chunks other jobs would wait, and shorter ones would spend their time on the shared
// counter. Each thread gets several chunks, so that all end at about the same time. If a chunk is
// done before another thread has been woken, one may be as large as half of a thread's part.
static void worker_run(struct worker *w, struct job *j) {
  uint64_t chunk = 1, share = j->total / (j->limit * 4u) + 1, begin = group_now(), start = begin;
  do {
    w->first = atomic_fetch_add_explicit(&j->next, chunk, memory_order_relaxed);
    if (w->first >= j->total)
      return;
    w->last = j->total - w->first < chunk ? j->total : w->first + chunk;
    group_at(w, w->first);
    if (!group_chunk(w)) {
      group_report(w);
      return;
    }
    uint64_t end = group_now(), took = end - start;
    start = end;
    bool quick = took < 4000;
    uint64_t more = chunk * (quick ? 4 : 2), most = share * (quick ? 2 : 1);
    if (took < 25000 && chunk < most)
      chunk = more < most ? more : most;
    else if (took > 100000 && chunk > 1)
      chunk /= 2;
  } while (job_left(j) && !worker_wanted(w, j, start - begin));
}
