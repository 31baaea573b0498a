// batch.c has batches of commands: how they are recorded, submitted, and how they end.
//
// A stream records commands into its open batch. The batch is submitted when a caller waits for it,
// when it is full, and at once if the device has no other work of the stream. So small launches share
// a few submissions, and none waits for long: the pump, a thread of the device, submits what was left
// open once the work before it is done.
//
// Each stream has a timeline semaphore, whose value is the number of its last batch that is done. Work
// fails only by the loss of the device, which is the failure of everything. A submission that the driver
// refuses counts as that, since later commands may need those that are missing.

#include "state.h"

// -- lifetimes --

static cs_stream *retain_stream(cs_stream *s) {
  s->refs++;
  return s;
}

static void release_stream(cs_stream *s) {
  if (--s->refs > 0)
    return;
  s->dev->vk.DestroySemaphore(s->dev->handle, s->done, NULL);
  pthread_mutex_destroy(&s->lock);
  free(s);
}

// -- how batches end --

// poll_reached reads how far a stream is. An error is found by the call that waits; some drivers give the largest
// number for a device that is lost.
static uint64_t poll_reached(cs_stream *s) {
  uint64_t value = 0, known = atomic_load(&s->reached);
  int32_t code = s->dev->vk.GetSemaphoreCounterValue(s->dev->handle, s->done, &value);
  if (code == VK_ERROR_DEVICE_LOST || value == UINT64_MAX)
    atomic_store(&s->dev->lost, 1);
  if (code != VK_SUCCESS || value == UINT64_MAX)
    return known;
  while (known < value && !atomic_compare_exchange_weak(&s->reached, &known, value))
    ;
  return known < value ? value : known;
}

// mark_oldest tells the device which batches may still use memory; an open one without commands does not. The caller
// holds the stream's lock.
static void mark_oldest(cs_stream *s) {
  const struct batch *b = s->running;
  if (b == NULL && s->open != NULL && s->open->r.count > 0)
    b = s->open;
  atomic_store(&s->oldest, b != NULL ? b->serial : UINT64_MAX);
}

// look takes the batches that are done from those that run. The caller holds the stream's lock.
static void look(cs_stream *s) {
  if (s->running == NULL)
    return;
  uint64_t reached = poll_reached(s);
  struct batch *b;
  while ((b = s->running) != NULL && b->number <= reached) {
    s->running = b->next;
    s->in_flight--;
    for (uint32_t i = 0; i < b->waits; i++)
      release_stream(b->wait[i].stream);
    b->waits = 0;
    b->next = s->spare;
    s->spare = b;
  }
  if (s->running == NULL)
    s->last = &s->running;
  mark_oldest(s);
}

// WAIT_SLICE is how long one call into the driver waits, in nanoseconds: whether the device was lost is
// seen between two.
#define WAIT_SLICE 100000000ULL

// await waits for a batch that was submitted.
static int32_t await(cs_stream *s, uint64_t number, cs_error *err) {
  cs_device *d = s->dev;
  VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                              .semaphoreCount = 1,
                              .pSemaphores = &s->done,
                              .pValues = &number};
  int32_t status = present(d, err);
  while (status == CS_OK && atomic_load(&s->reached) < number) {
    int32_t code = d->vk.WaitSemaphores(d->handle, &info, WAIT_SLICE);
    status = on_device(d, code, "WaitSemaphores", err);
    if (status == CS_OK)
      status = present(d, err);
    if (status == CS_OK && code == VK_SUCCESS)
      poll_reached(s);
  }
  return status;
}

// -- recording --

static int32_t new_batch(cs_stream *s, struct batch **out, cs_error *err) {
  struct batch *b = s->spare;
  if (b != NULL) {
    s->spare = b->next;
  } else {
    b = calloc(1, sizeof *b);
    if (b == NULL)
      return no_host_memory(err);
    VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                        .commandPool = s->pool,
                                        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                        .commandBufferCount = 1};
    int32_t status = CALL(s->dev, err, AllocateCommandBuffers, &info, &b->r.commands);
    if (status != CS_OK) {
      free(b);
      return status;
    }
  }
  b->next = NULL;
  b->r.bound = 0;
  b->r.count = 0;
  b->r.groups = 0;
  b->marked = 0;
  b->waits = 0;
  *out = b;
  return CS_OK;
}

static void memory_barrier(cs_device *d, VkCommandBuffer commands, uint64_t to_stage, uint64_t to_access) {
  VkMemoryBarrier2 barrier = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
      .srcStageMask = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT,
      .srcAccessMask = VK_ACCESS_2_SHADER_WRITE_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT,
      .dstStageMask = to_stage,
      .dstAccessMask = to_access};
  VkDependencyInfo info = {
      .sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO, .memoryBarrierCount = 1, .pMemoryBarriers = &barrier};
  d->vk.CmdPipelineBarrier2(commands, &info);
}

// order makes the next command wait for those before it, also for those of earlier batches in its queue.
static void order(cs_device *d, VkCommandBuffer commands) {
  memory_barrier(d, commands, VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT,
                 VK_ACCESS_2_SHADER_READ_BIT | VK_ACCESS_2_SHADER_WRITE_BIT | VK_ACCESS_2_TRANSFER_READ_BIT |
                     VK_ACCESS_2_TRANSFER_WRITE_BIT);
}

// to_host ends commands whose results the host reads.
static void to_host(cs_device *d, VkCommandBuffer commands) {
  memory_barrier(d, commands, VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
}

static int32_t begin_commands(cs_device *d, VkCommandBuffer commands, uint32_t flags, cs_error *err) {
  VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, .flags = flags};
  return on_device(d, d->vk.BeginCommandBuffer(commands, &info), "BeginCommandBuffer", err);
}

static int32_t commit(cs_stream *s, cs_error *err);

// begin opens a batch, unless one is open to which commands may be added. The caller holds the stream's lock.
static int32_t begin(cs_stream *s, cs_error *err) {
  int32_t status = s->open != NULL && s->open->marked ? commit(s, err) : CS_OK;
  if (status != CS_OK || s->open != NULL)
    return status;
  struct batch *b = NULL;
  status = new_batch(s, &b, err);
  if (status != CS_OK)
    return status;
  status = begin_commands(s->dev, b->r.commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, err);
  if (status != CS_OK) {
    b->next = s->spare;
    s->spare = b;
    return status;
  }
  b->number = ++s->numbered;
  b->serial = atomic_fetch_add(&s->dev->begun, 1) + 1;
  s->open = b;
  mark_oldest(s);
  return CS_OK;
}

// -- submitting --

static VkSemaphoreSubmitInfo point(VkSemaphore semaphore, uint64_t value) {
  return (VkSemaphoreSubmitInfo){.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
                                 .semaphore = semaphore,
                                 .value = value,
                                 .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT};
}

// submit gives the open batch to the device, with the commands of a graph behind its own if there is one.
static int32_t submit(cs_stream *s, const struct recording *graph, cs_error *err) {
  cs_device *d = s->dev;
  struct batch *b = s->open;
  if (b == NULL)
    return CS_OK;
  int32_t status = present(d, err);
  if (status != CS_OK)
    return status;
  to_host(d, b->r.commands);
  status = on_device(d, d->vk.EndCommandBuffer(b->r.commands), "EndCommandBuffer", err);
  VkSemaphoreSubmitInfo waits[WAITS], signal = point(s->done, b->number);
  for (uint32_t i = 0; i < b->waits; i++)
    waits[i] = point(b->wait[i].stream->done, b->wait[i].number);
  VkCommandBufferSubmitInfo commands[2] = {
      {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO, .commandBuffer = b->r.commands},
      {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO,
       .commandBuffer = graph != NULL ? graph->r.commands : NULL}};
  VkSubmitInfo2 info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
                        .waitSemaphoreInfoCount = b->waits,
                        .pWaitSemaphoreInfos = waits,
                        .commandBufferInfoCount = graph != NULL ? 2 : 1,
                        .pCommandBufferInfos = commands,
                        .signalSemaphoreInfoCount = 1,
                        .pSignalSemaphoreInfos = &signal};
  if (status == CS_OK) {
    pthread_mutex_lock(&d->submit);
    status = on_device(d, d->vk.QueueSubmit2(s->queue, 1, &info, 0), "QueueSubmit2", err);
    pthread_mutex_unlock(&d->submit);
  }
  // A batch that the driver refuses has lost commands that later ones may need.
  if (status != CS_OK) {
    atomic_store(&d->lost, 1);
    err->status = CS_LOST;
    return CS_LOST;
  }
  s->open = NULL;
  atomic_store(&s->waiting, 0);
  s->submitted = b->number;
  b->next = NULL;
  *s->last = b;
  s->last = &b->next;
  s->in_flight++;
  mark_oldest(s);
  return CS_OK;
}

static int32_t commit(cs_stream *s, cs_error *err) { return submit(s, NULL, err); }

// -- the pump --

// left_open retains the turn-th of the streams whose open batch waits for the batches before it, and returns their
// number. The caller holds the device's lock.
static uint32_t left_open(cs_device *d, uint32_t turn, cs_stream **out) {
  uint32_t n = 0, at = 0;
  for (cs_stream *s = d->streams; s != NULL; s = s->next)
    n += atomic_load(&s->waiting) != 0;
  *out = NULL;
  for (cs_stream *s = d->streams; s != NULL && n > 0 && *out == NULL; s = s->next)
    if (atomic_load(&s->waiting) && at++ == turn % n)
      *out = retain_stream(s);
  return n;
}

static void submit_late(cs_stream *s) {
  cs_error ignored; // the call that waits for the batch gets it, since the device is lost
  pthread_mutex_lock(&s->lock);
  look(s);
  if (atomic_load(&s->waiting) && s->running == NULL)
    commit(s, &ignored);
  pthread_mutex_unlock(&s->lock);
}

// PUMP_SLICE is how long the pump waits for streams in turn, in nanoseconds, and so how long the device may lack work
// of one while others have some. A wait for any of several semaphores would have no such slices, but Khronos's
// validation layer fails at it (1.3.239).
#define PUMP_SLICE 1000000ULL

static void *pump(void *of) {
  cs_device *d = of;
  cs_stream *s = NULL;
  pthread_mutex_lock(&d->lock);
  for (uint32_t turn = 0; !d->closing; turn++) {
    uint32_t n = left_open(d, turn, &s);
    if (s == NULL || atomic_load(&d->lost)) {
      pthread_cond_wait(&d->left, &d->lock);
    } else {
      pthread_mutex_unlock(&d->lock);
      pthread_mutex_lock(&s->lock);
      uint64_t number = s->submitted;
      pthread_mutex_unlock(&s->lock);
      VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                  .semaphoreCount = 1,
                                  .pSemaphores = &s->done,
                                  .pValues = &number};
      int32_t code = d->vk.WaitSemaphores(d->handle, &info, PUMP_SLICE / n);
      if (code == VK_ERROR_DEVICE_LOST)
        atomic_store(&d->lost, 1);
      if (code < 0)
        nanosleep(&(const struct timespec){0, PUMP_SLICE}, NULL);
      submit_late(s);
      pthread_mutex_lock(&d->lock);
    }
    if (s != NULL)
      release_stream(s);
  }
  pthread_mutex_unlock(&d->lock);
  return NULL;
}

// start_pump makes the thread, on which no signal of the program is handled.
static int start_pump(cs_device *d) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int made = pthread_create(&d->pump, NULL, pump, d) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return made;
}

// leave_open has the pump submit the open batch later. Without a thread it is submitted now.
static int32_t leave_open(cs_stream *s, cs_error *err) {
  cs_device *d = s->dev;
  if (atomic_exchange(&s->waiting, 1))
    return CS_OK;
  pthread_mutex_lock(&d->lock);
  if (!d->pumping)
    d->pumping = start_pump(d);
  int pumping = d->pumping;
  pthread_cond_signal(&d->left);
  pthread_mutex_unlock(&d->lock);
  return pumping ? CS_OK : commit(s, err);
}

// queued is called at the end of each call that recorded a command.
static int32_t queued(cs_stream *s, cs_error *err) {
  if (s->capture != NULL)
    return CS_OK;
  s->open->r.count++;
  look(s);
  if (s->running == NULL || s->open->r.count >= BATCH_COMMANDS || s->open->r.groups >= BATCH_GROUPS)
    return commit(s, err);
  mark_oldest(s);
  return leave_open(s, err);
}

// ready waits while too many batches are in flight. It does not hold the stream's lock meanwhile,
// because a query of the stream needs that. An entry begins few batches, so the limit is exceeded by few.
static int32_t ready(cs_stream *s, cs_error *err) {
  int32_t status = present(s->dev, err);
  pthread_mutex_lock(&s->lock);
  uint64_t oldest_number = 0;
  if (s->in_flight >= BATCHES_IN_FLIGHT) {
    look(s);
    if (s->in_flight >= BATCHES_IN_FLIGHT)
      oldest_number = s->running->number;
  }
  pthread_mutex_unlock(&s->lock);
  return status == CS_OK && oldest_number > 0 ? await(s, oldest_number, err) : status;
}

// ON evaluates an expression with the stream's lock held, if the device is there.
#define ON(s, status, err, expression)                                                             \
  do {                                                                                             \
    (status) = ready((s), (err));                                                                  \
    if ((status) == CS_OK) {                                                                       \
      pthread_mutex_lock(&(s)->lock);                                                              \
      (status) = (expression);                                                                     \
      pthread_mutex_unlock(&(s)->lock);                                                            \
    }                                                                                              \
  } while (0)

// recorder_of returns what commands are recorded to: the stream's graph, or its open batch, which it opens.
// It orders the next command behind the others.
static int32_t recorder_of(cs_stream *s, struct recorder **out, cs_error *err);
