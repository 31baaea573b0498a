// share.c: launches that run on threads of the caller, for programs that have a scheduler of their
// own. The pool's threads do not take part.

#include "exec.h"

// The nanoseconds that a thread works before it reads *leave, since entering a job again has a
// cost.
enum { SLICE = 200 * 1000 };

struct concord_job {
  struct job job;
  concord_launch launch;
  concord_error err;
  void **args;
  uint64_t *local_bytes;
};

// share_copy allocates a job with a copy of the launch. The values of its arguments follow the job,
// each aligned for any type.
static struct concord_job *share_copy(const concord_launch *l) {
  const size_t align = ALIGN_LOCAL;
  size_t bytes = sizeof(struct concord_job) + l->arg_count * (sizeof(void *) + sizeof(uint64_t));
  size_t values = bytes = local_align(bytes);
  for (uint32_t i = 0; i < l->arg_count; i++)
    bytes += local_align(l->kernel->param_bytes[i]);
  struct concord_job *s = aligned_alloc(align, bytes);
  if (s == NULL)
    return NULL;
  memset(s, 0, sizeof *s);
  s->launch = *l;
  s->args = (void **)(s + 1);
  s->local_bytes = (uint64_t *)(s->args + l->arg_count);
  s->launch.args = s->args;
  s->launch.local_bytes = s->local_bytes;
  s->launch.cancel = NULL;
  char *at = (char *)s + values;
  for (uint32_t i = 0; i < l->arg_count; i++) {
    s->local_bytes[i] = l->local_bytes != NULL ? l->local_bytes[i] : 0;
    s->args[i] = at;
    if (s->local_bytes[i] == 0)
      memcpy(at, l->args[i], l->kernel->param_bytes[i]);
    at += local_align(l->kernel->param_bytes[i]);
  }
  s->job.launch = &s->launch;
  s->job.kernel = l->kernel;
  s->job.err = &s->err;
  return s;
}

concord_job *concord_host_begin(const concord_launch *l, uint64_t *groups, concord_error *err) {
  struct job j;
  memset(err, 0, sizeof *err);
  memset(&j, 0, sizeof j);
  *groups = 0;
  if (!launch_check(l, &j, err) || j.total == 0)
    return NULL;
  struct concord_job *s = share_copy(l);
  pthread_mutex_lock(&pool_lock);
  int rc = s == NULL ? ENOMEM : fault_install();
  pthread_mutex_unlock(&pool_lock);
  if (rc != 0) {
    pool_say(err, CONCORD_NOMEM, "launch: %s", strerror(rc));
    free(s);
    return NULL;
  }
  s->job.grid = j.grid;
  s->job.total = *groups = j.total;
  s->job.items = j.items;
  s->job.local_bytes = j.local_bytes;
  s->job.limit = l->threads > 0 ? l->threads : 1;
  return s;
}

int32_t concord_host_help(concord_job *s, const int32_t *leave, const int32_t *cancel,
                          uint64_t nanoseconds) {
  struct job *j = &s->job;
  if (!job_left(j))
    return 0;
  pthread_mutex_lock(&pool_lock);
  struct worker *w = guest_take(MAX_THREADS);
  pthread_mutex_unlock(&pool_lock);
  if (w == NULL)
    return 0;
  w->leave = nanoseconds > 0 ? NULL : leave;
  w->cancel = cancel;
  w->slice = nanoseconds > 0 ? nanoseconds : leave != NULL ? SLICE : 0;
  bool able = worker_enter(w, j);
  if (able)
    worker_run(w, j);
  w->leave = w->cancel = NULL; // they point to memory of the caller
  pthread_mutex_lock(&pool_lock);
  if (atomic_load(&stacks_made) > stacks_allowed() / 2)
    group_keep(w, 0);
  guest_return(w);
  pthread_mutex_unlock(&pool_lock);
  return able && job_left(j);
}

int32_t concord_host_end(concord_job *s, concord_error *err) {
  if (job_left(&s->job)) // the last thread that tried found no memory
    job_fail(&s->job, CONCORD_NOMEM, NULL, "no memory for the stacks or local memory of a group");
  *err = s->err;
  free(s);
  return err->status;
}
