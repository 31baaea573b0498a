// pool.c: the threads, the jobs that they share, and the public calls. The thread that launches
// works on its own job, and the pool's threads help, so that a launch of one group wakes no thread.
// Threads run until the process ends; there is no shutdown.

#include "exec.h"

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pool_work = PTHREAD_COND_INITIALIZER;
static struct job *pool_jobs, **pool_tail = &pool_jobs; // jobs that have groups left
static uint32_t pool_size; // threads that a launch may use: those of the pool and the launching one
static uint32_t pool_helpers, pool_idle; // number of the pool's threads, and of those that sleep
static struct worker *pool_guests;       // guests that no launching thread has borrowed
static uint32_t pool_guest_count;        // number of guests that exist
static _Atomic uint32_t pool_lonely;     // jobs that have groups left and no helper

static void pool_say(concord_error *err, int32_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void pool_say(concord_error *err, int32_t status, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  err->status = status;
  vsnprintf(err->message, sizeof err->message, format, ap);
  va_end(ap);
}

// job_fail ends a job with its first error and drops later ones. w, if not NULL, has the group that
// failed.
static void job_fail(struct job *j, int32_t status, const struct worker *w, const char *format,
                     ...) {
  static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&once);
  if (j->err->status == CONCORD_OK) {
    concord_error *e = j->err;
    va_list ap;
    va_start(ap, format);
    vsnprintf(e->message, sizeof e->message, format, ap);
    va_end(ap);
    e->status = status;
    if (w != NULL) {
      memcpy(e->group, w->group, sizeof e->group);
      memcpy(e->more, w->current->ctx.more, sizeof e->more);
      if (j->kernel->flags & CONCORD_KERNEL_FIBERS) {
        memcpy(e->item, w->current->ctx.item, sizeof e->item);
        e->has_item = 1;
      }
      if (status == CONCORD_FAULT)
        fault_explain(w, e);
      if (status == CONCORD_BARRIER) {
        e->site = w->round == ROUND_DONE ? w->other : w->round;
        e->site2 = w->round == ROUND_DONE ? w->round : w->other;
      }
    }
  }
  pthread_mutex_unlock(&once);
  atomic_store(&j->stop, 1);
}

static void job_unlink(struct job *j) {
  if (j->back == NULL)
    return;
  *j->back = j->link;
  if (j->link != NULL)
    j->link->back = j->back;
  else
    pool_tail = j->back;
  j->back = NULL;
}

static void job_append(struct job *j) {
  j->link = NULL;
  j->back = pool_tail;
  *pool_tail = j;
  pool_tail = &j->link;
}

// pool_pick returns the job that has the fewest workers; of several, the one that was picked
// longest ago.
static struct job *pool_pick(void) {
  struct job *best = NULL;
  for (struct job *j = pool_jobs, *next; j != NULL; j = next) {
    next = j->link;
    if (!job_left(j))
      job_unlink(j);
    else if (j->active < j->limit && (best == NULL || j->active < best->active))
      best = j;
  }
  if (best != NULL) {
    job_unlink(best);
    job_append(best);
  }
  return best;
}

// pool_recount counts the jobs that could use a first helper. The list is short.
static void pool_recount(void) {
  uint32_t n = 0;
  for (struct job *j = pool_jobs; j != NULL; j = j->link)
    n += j->active <= 1 && j->limit > j->active && job_left(j);
  atomic_store_explicit(&pool_lonely, n, memory_order_relaxed);
}

static bool pool_wanted(const struct job *j) {
  return atomic_load_explicit(&pool_lonely, memory_order_relaxed) > 0 &&
         atomic_load_explicit(&j->active, memory_order_relaxed) > 2;
}

// job_leave ends a worker's part in a job. The caller holds the lock.
static void job_leave(struct job *j, bool able) {
  j->active--;
  if (!able && job_left(j)) { // no memory for this worker's stacks: the others go on without it
    j->limit = j->active;
    if (j->active == 0)
      job_fail(j, CONCORD_NOMEM, NULL, "no memory for the stacks or local memory of a group");
  }
  if (j->active == 0 && !job_left(j)) {
    job_unlink(j);
    j->done = true;
    pthread_cond_signal(&j->finished);
  }
}

// pool_work_on runs a job's groups on this thread. The caller holds the lock, which is released
// meanwhile.
static void pool_work_on(struct worker *w, struct job *j) {
  j->active++;
  pool_recount();
  pthread_mutex_unlock(&pool_lock);
  w->leave = NULL;
  w->cancel = j->launch->cancel;
  w->slice = 0;
  bool able = worker_enter(w, j);
  if (able)
    worker_run(w, j);
  if (atomic_load(&stacks_made) > stacks_allowed() / 2)
    group_keep(w, 0);
  pthread_mutex_lock(&pool_lock);
  job_leave(j, able);
  pool_recount();
}

static void *pool_thread(void *arg) {
  struct worker *w = arg;
  fault_mask();
  if (fault_thread(w) != 0)
    abort(); // no memory for the 64 KiB of its signal stack, although the thread could be started
  pthread_mutex_lock(&pool_lock);
  for (;;) {
    struct job *j = pool_pick();
    if (j != NULL) {
      pool_work_on(w, j);
      continue;
    }
    pool_idle++;
    pthread_cond_wait(&pool_work, &pool_lock);
    pool_idle--;
  }
  return NULL;
}

// guest_take borrows a worker for the launching thread, or returns NULL; then the pool does all the
// work. There are at most most guests, since each keeps the stacks that it has ever needed.
static struct worker *guest_take(uint32_t most) {
  struct worker *w = pool_guests;
  if (w != NULL) {
    pool_guests = w->link;
  } else if (pool_guest_count < most && (w = calloc(1, sizeof *w)) != NULL) {
    w->guest = true;
    pool_guest_count++;
  }
  if (w != NULL && fault_thread(w) != 0) {
    w->link = pool_guests;
    pool_guests = w;
    return NULL;
  }
  return w;
}

static void guest_return(struct worker *w) {
  fault_thread(NULL);
  w->link = pool_guests;
  pool_guests = w;
}

// pool_cpus counts the processors that this process may use.
static uint32_t pool_cpus(void) {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return (uint32_t)CPU_COUNT(&set);
#endif
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? (uint32_t)n : 1;
}

// pool_grow starts threads until count threads can work on a launch. There is always at least one,
// for launches that get no guest. The caller holds the lock.
static int pool_grow(uint32_t count) {
  uint32_t helpers = count > 1 ? count - 1 : 1;
  if (pool_size >= count)
    return 0;
  sigset_t all, old;
  pthread_attr_t attr;
  int rc = 0;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old); // so that a new thread handles no signal before it is ready
  pthread_attr_init(&attr);
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attr, 512 << 10);
  while (rc == 0 && pool_helpers < helpers) {
    pthread_t t;
    struct worker *w = calloc(1, sizeof *w);
    rc = w == NULL ? ENOMEM : pthread_create(&t, &attr, pool_thread, w);
    if (rc == 0)
      pool_helpers++;
    else
      free(w);
  }
  pthread_attr_destroy(&attr);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  if (pool_size < count)
    pool_size = pool_helpers < helpers ? pool_helpers + 1 : count;
  return pool_helpers > 0 ? 0 : rc; // fewer threads than requested are enough
}

// pool_ready installs the handlers and starts threads until there are count (0: at least one). The
// caller holds the lock.
static int32_t pool_ready(uint32_t count, concord_error *err) {
  int rc = fault_install();
  if (rc != 0) {
    pool_say(err, CONCORD_NOMEM, "signal handlers: %s", strerror(rc));
    return err->status;
  }
  if (count == 0)
    count = pool_size > 0 ? pool_size : pool_cpus();
  if (count > MAX_THREADS)
    count = MAX_THREADS;
  rc = pool_grow(count);
  if (rc != 0)
    pool_say(err, CONCORD_NOMEM, "threads: %s", strerror(rc));
  return err->status;
}

int32_t concord_host_init(uint32_t threads, concord_error *err) {
  memset(err, 0, sizeof *err);
  pthread_mutex_lock(&pool_lock);
  pool_ready(threads, err);
  pthread_mutex_unlock(&pool_lock);
  return err->status;
}

uint32_t concord_host_threads(void) {
  pthread_mutex_lock(&pool_lock);
  uint32_t n = pool_size;
  pthread_mutex_unlock(&pool_lock);
  return n;
}

// launch_grid fills in the job's grid, or describes in err why the launch is not valid.
static bool launch_grid(const concord_launch *l, struct job *j, concord_error *err) {
  const uint64_t most = (uint64_t)1 << 62;
  j->grid =
      (concord_grid){.dim = l->dim, .global = {1, 1, 1}, .local = {1, 1, 1}, .groups = {1, 1, 1}};
  j->total = j->items = 1;
  for (uint32_t d = 0; d < l->dim; d++) {
    if (l->local[d] == 0 || l->global[d] % l->local[d] != 0 || l->global[d] > most ||
        l->offset[d] > most) {
      pool_say(err, CONCORD_INVALID, "dimension %u: %llu items in groups of %llu, offset %llu", d,
               (unsigned long long)l->global[d], (unsigned long long)l->local[d],
               (unsigned long long)l->offset[d]);
      return false;
    }
    j->grid.global[d] = l->global[d];
    j->grid.local[d] = l->local[d];
    j->grid.offset[d] = l->offset[d];
    j->grid.groups[d] = l->global[d] / l->local[d];
    if (__builtin_mul_overflow(j->total, j->grid.groups[d], &j->total) || j->total > most ||
        __builtin_mul_overflow(j->items, l->local[d], &j->items)) {
      pool_say(err, CONCORD_INVALID, "the grid has more than 2^62 groups or items");
      return false;
    }
  }
  return true;
}

static bool launch_check(const concord_launch *l, struct job *j, concord_error *err) {
  const concord_kernel *k = l->kernel;
  if (k == NULL || k->run == NULL || l->dim < 1 || l->dim > 3 ||
      (l->arg_count > 0 && l->args == NULL)) {
    pool_say(err, CONCORD_INVALID, "no kernel, no arguments, or a grid of %u dimensions", l->dim);
    return false;
  }
  if (l->arg_count != k->param_count) {
    pool_say(err, CONCORD_INVALID, "%s takes %u arguments, not %u", k->name, k->param_count,
             l->arg_count);
    return false;
  }
  if (!launch_grid(l, j, err))
    return false;
  if ((k->flags & CONCORD_KERNEL_FIBERS) && j->items > CONCORD_MAX_GROUP) {
    pool_say(err, CONCORD_INVALID, "%s synchronizes: a group has at most %u items, not %llu",
             k->name, CONCORD_MAX_GROUP, (unsigned long long)j->items);
    return false;
  }
  const uint64_t most = (uint64_t)1 << 40;
  uint64_t kept;
  if (__builtin_mul_overflow(j->items, k->item_bytes, &kept) || kept > most) {
    pool_say(err, CONCORD_INVALID, "%s: groups of %llu items keep more than 2^40 bytes", k->name,
             (unsigned long long)j->items);
    return false;
  }
  j->local_bytes = local_align(k->local_bytes);
  for (uint32_t i = 0; l->local_bytes != NULL && i < l->arg_count; i++)
    if (l->local_bytes[i] > most || (j->local_bytes += local_align(l->local_bytes[i])) > most) {
      pool_say(err, CONCORD_INVALID, "argument %u: more than 2^40 bytes of local memory", i);
      return false;
    }
  return true;
}

int32_t concord_host_launch(const concord_launch *l, concord_error *err) {
  struct job j;
  memset(err, 0, sizeof *err);
  memset(&j, 0, sizeof j);
  j.launch = l;
  j.kernel = l->kernel;
  j.err = err;
  if (!launch_check(l, &j, err) || j.total == 0)
    return err->status;
  pthread_cond_init(&j.finished, NULL);
  pthread_mutex_lock(&pool_lock);
  if (pool_ready(l->threads > pool_size ? l->threads : 0, err) == CONCORD_OK) {
    j.limit = l->threads > 0 && l->threads < pool_size ? l->threads : pool_size;
    job_append(&j);
    struct worker *w = guest_take(2 * pool_size + 2);
    uint64_t most = j.total < j.limit ? j.total : j.limit;
    for (uint64_t i = w != NULL; i < most && i <= pool_idle; i++)
      pthread_cond_signal(&pool_work);
    if (w != NULL) {
      pool_work_on(w, &j);
      guest_return(w);
    }
    while (!j.done)
      pthread_cond_wait(&j.finished, &pool_lock);
  }
  pthread_mutex_unlock(&pool_lock);
  pthread_cond_destroy(&j.finished);
  return err->status;
}
