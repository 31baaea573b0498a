// kernel.c makes pipelines and launches kernels.

#include "state.h"

// -- pipelines --

// LOCAL_UNIT is the unit of local memory in pipelines: kernels that are launched with other sizes
// share one where these round up to the same.
enum { LOCAL_UNIT = 1024 };

// make_pipeline makes a pipeline from an entry point with its specialization constants: the size of
// groups, words of local memory, facts of the device.
static int32_t make_pipeline(cs_device *d, VkShaderModule code, const char *name, const uint32_t constants[5],
                             VkPipeline *out, cs_error *err) {
  VkSpecializationMapEntry entries[5];
  for (uint32_t i = 0; i < 5; i++)
    entries[i] = (VkSpecializationMapEntry){i, 4 * i, 4};
  VkSpecializationInfo special = {5, entries, 20, constants};
  VkComputePipelineCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                      .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                .module = code,
                                                .pName = name,
                                                .pSpecializationInfo = &special},
                                      .layout = d->layout,
                                      .basePipelineIndex = -1};
  // Where sub-groups can have several sizes, they get the one that the device reports.
  const VkPhysicalDeviceVulkan13Properties *p = &d->t.thirteen;
  uint32_t size = d->t.subgroup, items = constants[0] * constants[1] * constants[2];
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo required = {
      .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
      .requiredSubgroupSize = size};
  int pinned = p->minSubgroupSize != p->maxSubgroupSize && size >= p->minSubgroupSize && size <= p->maxSubgroupSize &&
               (p->requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
               items <= (uint64_t)size * p->maxComputeWorkgroupSubgroups;
  if (pinned)
    info.stage.pNext = &required;
  if (size > 0 && constants[0] % (pinned ? size : p->maxSubgroupSize) == 0)
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
  int32_t status = CALL(d, err, CreateComputePipelines, d->cache, 1, &info, NULL, out);
  if (status == CS_FAILED)
    err->status = status = CS_LAUNCH; // several drivers have no result of their own for a program that they refuse
  if (status == CS_OK)
    atomic_store(&d->pipelines, 1);
  return status;
}

static int32_t learn_facts(cs_device *d, uint32_t *facts, cs_error *err);

// pipeline_of returns the pipeline for a size of groups and local memory; the first call makes it.
static int32_t pipeline_of(cs_kernel *k, const uint64_t *group, uint32_t words, VkPipeline *out, cs_error *err) {
  cs_device *d = k->module->dev;
  uint32_t facts = 0;
  pthread_mutex_lock(&k->lock);
  struct pipeline *p = k->pipelines;
  while (p != NULL &&
         (p->words != words || p->group[0] != group[0] || p->group[1] != group[1] || p->group[2] != group[2]))
    p = p->next;
  int32_t status = p == NULL ? learn_facts(d, &facts, err) : CS_OK;
  if (status == CS_OK && p == NULL && (p = calloc(1, sizeof *p)) == NULL) {
    status = no_host_memory(err);
  } else if (status == CS_OK && p->handle == 0) {
    *p = (struct pipeline){.group = {(uint32_t)group[0], (uint32_t)group[1], (uint32_t)group[2]}, .words = words};
    uint32_t constants[5] = {p->group[0], p->group[1], p->group[2], words, facts};
    status = make_pipeline(d, k->module->code, k->name, constants, &p->handle, err);
    if (status == CS_OK) {
      p->next = k->pipelines;
      k->pipelines = p;
    } else {
      free(p);
    }
  }
  if (status == CS_OK)
    *out = p->handle;
  pthread_mutex_unlock(&k->lock);
  return status;
}

// -- memory for arguments and copies --

// piece is a part of a chunk.
struct piece {
  unsigned char *host;
  uint64_t address;
  VkBuffer buffer;
  uint64_t offset;
};

static void drop_chunks(cs_device *d, struct chunk *c) {
  for (struct chunk *next; c != NULL; c = next) {
    next = c->next;
    c->block->dead.end(d, &c->block->dead);
    free(c);
  }
}

static int32_t new_chunk(cs_device *d, uint64_t bytes, struct chunk **out, cs_error *err) {
  struct chunk *c = calloc(1, sizeof *c);
  if (c == NULL)
    return no_host_memory(err);
  int32_t status = make_whole(d, CS_PINNED, bytes, 0, &c->block, err);
  if (status == CS_OK)
    *out = c;
  else
    free(c);
  return status;
}

static void cut(struct chunk *c, uint64_t bytes, struct piece *out) {
  *out = (struct piece){c->block->host + c->used, c->block->address + c->used, c->block->buffer,
                        c->block->offset + c->used};
  c->used = (c->used + bytes + 63) & ~(uint64_t)63; // the next one begins at a cache line
}

// next_chunk makes an empty chunk the stream's current one, or sets *until to the batch to wait for. New ones are made
// first, so that the last pieces of a download stay until the host has read them.
static int32_t next_chunk(cs_stream *s, uint64_t *until, cs_error *err) {
  if (s->chunk != NULL) {
    *s->chunks_end = s->chunk;
    s->chunks_end = &s->chunk->next;
    s->chunk->next = NULL;
    s->chunk = NULL;
  }
  if (s->chunk_count < CHUNKS) {
    int32_t status = new_chunk(s->dev, CHUNK_BYTES, &s->chunk, err);
    s->chunk_count += status == CS_OK;
    if (status != CS_NO_MEMORY || s->chunks == NULL)
      return status;
  }
  struct chunk *c = s->chunks;
  if (c->number <= atomic_load(&s->reached) || c->number <= poll_reached(s)) {
    s->chunks = c->next;
    if (s->chunks == NULL)
      s->chunks_end = &s->chunks;
    c->next = NULL;
    c->used = 0;
    s->chunk = c;
    return CS_OK;
  }
  int32_t status = s->open != NULL && s->open->number == c->number ? commit(s, err) : CS_OK;
  *until = c->number;
  return status;
}

static int32_t graph_room(cs_stream *s, uint64_t bytes, struct piece *out, cs_error *err);

// room finds a piece for commands of the open batch, or of the graph. *until is not 0 if the caller has to
// wait for that batch, without the lock, and try again.
static int32_t room(cs_stream *s, uint64_t bytes, struct piece *out, uint64_t *until, cs_error *err) {
  if (s->capture != NULL)
    return graph_room(s, bytes, out, err);
  if (bytes > CHUNK_BYTES)
    return tell(err, CS_INVALID, 0, "%llu bytes of arguments, there may be %d", (unsigned long long)bytes, CHUNK_BYTES);
  int32_t status = CS_OK;
  if (s->chunk == NULL || s->chunk->used + bytes > CHUNK_BYTES)
    status = next_chunk(s, until, err);
  if (status == CS_OK && *until == 0)
    status = begin(s, err);
  if (status != CS_OK || *until != 0)
    return status;
  cut(s->chunk, bytes, out);
  s->chunk->number = s->open->number;
  return CS_OK;
}

// WAITING evaluates an expression with the stream's lock held, again after each wait that it asks for in until.
#define WAITING(s, status, until, err, expression)                                                 \
  do {                                                                                             \
    (until) = 0;                                                                                   \
    ON(s, status, err, expression);                                                                \
    if ((status) == CS_OK && (until) != 0)                                                         \
      (status) = await(s, until, err);                                                             \
  } while ((status) == CS_OK && (until) != 0)

// -- launching --

// dispatch records a grid in parts that the device allows; programs add the number of the first group, which is 0 in
// the push constants of the first part.
static void dispatch(cs_device *d, VkCommandBuffer commands, const uint64_t *groups) {
  const uint32_t *most = d->t.properties.properties.limits.maxComputeWorkGroupCount;
  uint32_t first[3] = {0, 0, 0}, n[3];
  for (;;) {
    for (int i = 0; i < 3; i++)
      n[i] = groups[i] - first[i] < most[i] ? (uint32_t)(groups[i] - first[i]) : most[i];
    d->vk.CmdDispatch(commands, n[0], n[1], n[2]);
    int i = 0;
    while (i < 3 && first[i] + n[i] == groups[i])
      first[i++] = 0;
    if (i == 3)
      return;
    first[i] += n[i];
    d->vk.CmdPushConstants(commands, d->layout, VK_SHADER_STAGE_COMPUTE_BIT, 4 * FIRST_GROUP, sizeof first, first);
  }
}

static void bind(cs_device *d, struct recorder *r, VkPipeline pipeline, const uint32_t *words, uint32_t count) {
  if (r->bound != pipeline)
    d->vk.CmdBindPipeline(r->commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
  r->bound = pipeline;
  d->vk.CmdPushConstants(r->commands, d->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, count * 4, words);
}

// launch is a launch whose arguments are laid out.
struct launch {
  cs_kernel *kernel;
  const uint64_t *groups;
  VkPipeline pipeline;
  uint32_t words[PUSHED];
  unsigned char *block; // of arguments that are passed in memory, or NULL
  uint64_t bytes, local_bytes;
};

// put_u64 stores an address as two words.
static void put_u64(uint32_t *words, uint64_t value) { memcpy(words, &value, sizeof value); }

// lay_out writes the arguments to `to`, unless that is NULL, and sets the bytes that they take and the local
// memory. Pointers lie at multiples of 8, the others of 4.
static int32_t lay_out(struct launch *l, const cs_arg *args, uint32_t count, const unsigned char *data,
                       unsigned char *to, cs_error *err) {
  uint64_t at = 0, local = ((uint64_t)l->kernel->local_bytes + CS_LOCAL_ALIGN - 1) & -(uint64_t)CS_LOCAL_ALIGN;
  for (uint32_t i = 0; i < count; i++) {
    const cs_arg *a = &args[i];
    uint64_t address = a->mem == 0 ? 0 : a->mem + (uint64_t)a->mem_offset;
    uint32_t offset = (uint32_t)local;
    if (a->size < 0 || a->size > INT32_MAX)
      return tell(err, CS_TOO_LARGE, 0, "argument %u: %lld bytes", i, (long long)a->size);
    switch (a->kind) {
    case CS_ARG_MEMORY:
      at = (at + 7) & ~(uint64_t)7;
      if (to != NULL)
        memcpy(to + at, &address, sizeof address);
      at += sizeof address;
      break;
    case CS_ARG_VALUE:
      if (to != NULL)
        memcpy(to + at, data + a->offset, (size_t)a->size);
      at += ((uint64_t)a->size + 3) & ~(uint64_t)3;
      break;
    case CS_ARG_LOCAL:
      if (to != NULL)
        memcpy(to + at, &offset, sizeof offset);
      at += sizeof offset;
      local += ((uint64_t)a->size + CS_LOCAL_ALIGN - 1) & -(uint64_t)CS_LOCAL_ALIGN;
      break;
    default:
      return tell(err, CS_INVALID, 0, "argument %u has the unknown kind %d", i, a->kind);
    }
  }
  l->bytes = at;
  l->local_bytes = local;
  return CS_OK;
}

// fits checks a launch, and sets the words of local memory.
static int32_t fits(const struct launch *l, const uint64_t *group, uint32_t *words, cs_error *err) {
  cs_device *d = l->kernel->module->dev;
  const VkPhysicalDeviceLimits *most = &d->t.properties.properties.limits;
  uint64_t items = 1;
  for (int i = 0; i < 3; i++) {
    if (group[i] == 0)
      return tell(err, CS_INVALID, 0, "a group of 0 items in dimension %d", i);
    if (group[i] > most->maxComputeWorkGroupSize[i])
      return tell(err, CS_LAUNCH, 0, "a group of %llu items in dimension %d, the device allows %u",
                  (unsigned long long)group[i], i, most->maxComputeWorkGroupSize[i]);
    items *= group[i];
    if (l->groups[i] > UINT32_MAX / group[i])
      return tell(err, CS_TOO_LARGE, 0, "a grid of %llu groups of %llu items in dimension %d",
                  (unsigned long long)l->groups[i], (unsigned long long)group[i], i);
  }
  if (items > most->maxComputeWorkGroupInvocations)
    return tell(err, CS_LAUNCH, 0, "a group of %llu items, the device allows %u", (unsigned long long)items,
                most->maxComputeWorkGroupInvocations);
  if (l->local_bytes > most->maxComputeSharedMemorySize)
    return tell(err, CS_LAUNCH, 0, "%llu bytes of local memory, there are %u", (unsigned long long)l->local_bytes,
                most->maxComputeSharedMemorySize);
  if (l->bytes != l->kernel->argument_bytes)
    return tell(err, CS_INVALID, 0, "%llu bytes of arguments, %s takes %u", (unsigned long long)l->bytes,
                l->kernel->name, l->kernel->argument_bytes);
  uint64_t rounded = (l->local_bytes + LOCAL_UNIT - 1) & -(uint64_t)LOCAL_UNIT;
  if (rounded > most->maxComputeSharedMemorySize)
    rounded = l->local_bytes;
  *words = rounded > 0 ? (uint32_t)(rounded / 4) : 1;
  return CS_OK;
}

static int32_t launch_now(cs_stream *s, struct launch *l, uint64_t *until, cs_error *err) {
  struct recorder *r = NULL;
  if (l->kernel->in_memory) {
    struct piece p;
    int32_t status = room(s, l->bytes, &p, until, err);
    if (status != CS_OK || *until != 0)
      return status;
    memcpy(p.host, l->block, l->bytes);
    put_u64(l->words + BLOCK_AT, p.address);
  }
  int32_t status = recorder_of(s, &r, err);
  if (status != CS_OK)
    return status;
  uint32_t used = l->kernel->in_memory ? ARGUMENTS : ARGUMENTS + (l->kernel->argument_bytes + 3) / 4;
  bind(s->dev, r, l->pipeline, l->words, used);
  dispatch(s->dev, r->commands, l->groups);
  r->groups += l->groups[0] * l->groups[1] * l->groups[2];
  return queued(s, err);
}

static int32_t vulkan_launch(cs_stream *s, cs_kernel *k, const uint64_t *groups, const uint64_t *group,
                             const cs_arg *args, uint32_t count, const unsigned char *data, cs_error *err) {
  if (count > CS_MAX_ARGS)
    return tell(err, CS_INVALID, 0, "%u arguments are more than the limit of %u", count, CS_MAX_ARGS);
  struct launch l = {.kernel = k, .groups = groups};
  uint32_t words = 0;
  int32_t status = lay_out(&l, args, count, data, NULL, err);
  if (status == CS_OK)
    status = fits(&l, group, &words, err);
  if (status == CS_OK)
    status = pipeline_of(k, group, words, &l.pipeline, err);
  if (status != CS_OK)
    return status;
  for (uint32_t i = 0; i < 3; i++) {
    uint64_t items = groups[i] * group[i];
    l.words[i] = (uint32_t)items;
    if (i == 0 || items > 1)
      l.words[3] = i + 1;
  }
  if (k->module->constants != NULL)
    put_u64(l.words + CONSTANTS_AT, k->module->constants->address);
  unsigned char *to = (unsigned char *)(l.words + ARGUMENTS);
  if (k->in_memory && (to = l.block = calloc(1, l.bytes + 1)) == NULL)
    return no_host_memory(err);
  status = lay_out(&l, args, count, data, to, err);
  uint64_t until;
  if (status == CS_OK)
    WAITING(s, status, until, err, launch_now(s, &l, &until, err));
  free(l.block);
  return status;
}
