// kernel.m loads programs, describes their kernels, and launches them.

#include "state.h"

// -- modules --

static void drop_kernel(cs_kernel *k) {
  if (k == NULL)
    return;
  [k->pipeline release];
  free(k->packed);
  free(k->name);
  free(k);
}

static int32_t drop_module(cs_module *m) {
  for (cs_kernel *k = m->kernels, *next; k != NULL; k = next) {
    next = k->next;
    drop_kernel(k);
  }
  [m->archive release];
  [m->library release];
  drop_file(m->path);
  pthread_mutex_destroy(&m->lock);
  free(m);
  return CS_OK;
}

static int32_t load(cs_device *d, const struct program *p, cs_module **out, char *log,
                    uint64_t log_bytes, cs_error *err) {
  cs_module *m = calloc(1, sizeof *m);
  if (m == NULL)
    return no_host_memory(err);
  m->dev = d;
  pthread_mutex_init(&m->lock, NULL);
  int32_t status = CS_OK;
  @try {
    status = library_of(d->handle, p, &m->library, log, log_bytes, err);
    if (status == CS_OK) {
      open_archive(d, p, m); // without it the pipelines are compiled from the library
      *out = m;
      m = NULL; // the caller owns it now
    }
  } @finally { // RUN handles exceptions
    if (m != NULL)
      drop_module(m);
  }
  return status;
}

static int32_t metal_module_load(cs_device *d, const unsigned char *code, uint64_t bytes,
                                 cs_module **mod, char *log, uint64_t log_bytes, cs_error *err) {
  struct program p;
  if (log_bytes > 0)
    log[0] = '\0';
  int32_t status = present(d, err);
  if (status == CS_OK)
    status = unpack(code, bytes, &p, err);
  if (status == CS_OK)
    RUN(status, err, load(d, &p, mod, log, log_bytes, err));
  return status;
}

static int32_t metal_module_unload(cs_module *m, cs_error *err) {
  int32_t status = CS_OK;
  RUN(status, err, drop_module(m));
  return status;
}

// -- kernels --

static int32_t pipeline_of(cs_device *d, id<MTLFunction> function, NSArray *archives,
                           MTLPipelineOption options, MTLComputePipelineReflection **reflection,
                           id<MTLComputePipelineState> *out, cs_error *err) {
  MTLComputePipelineDescriptor *descriptor = [[MTLComputePipelineDescriptor alloc] init];
  [descriptor setComputeFunction:function];
  [descriptor setBinaryArchives:archives];
  NSError *why = nil;
  MTLComputePipelineReflection *told = nil;
  @try {
    *out = [d->handle newComputePipelineStateWithDescriptor:descriptor
                                                    options:options
                                                 reflection:reflection != NULL ? &told : NULL
                                                      error:&why];
  } @finally {
    [descriptor release];
  }
  if (*out == nil)
    return failed(err, CS_COMPILE, "newComputePipelineState", why);
  if (reflection != NULL)
    *reflection = told;
  return CS_OK;
}

// learn records the kernel's parameters, so that a launch with other arguments is refused. The
// buffer with the highest index may be a struct of values, whose layout Metal reports.
static int32_t learn(cs_kernel *k, MTLComputePipelineReflection *told, cs_error *err) {
  if (told == nil || ![told respondsToSelector:@selector(bindings)])
    return CS_OK; // systems before macOS 13 have another interface for it
  NSArray<MTLStructMember *> *members = nil;
  NSUInteger last = 0;
  for (id<MTLBinding> binding in [told bindings]) {
    NSUInteger i = [binding index];
    if (i >= ARGUMENTS)
      continue;
    if ([binding type] == MTLBindingTypeThreadgroupMemory)
      k->locals |= 1u << i;
    if ([binding type] != MTLBindingTypeBuffer)
      continue;
    id<MTLBufferBinding> buffer = (id<MTLBufferBinding>)binding;
    k->buffers |= 1u << i;
    k->sizes[i] = [buffer bufferDataSize];
    if (i >= last) {
      last = i;
      members = [[buffer bufferStructType] members];
    }
  }
  size_t n = [members count];
  if (n == 0)
    return CS_OK;
  k->packed = calloc(n, sizeof *k->packed);
  if (k->packed == NULL)
    return no_host_memory(err);
  k->packed_count = n;
  for (size_t i = 0; i < n; i++)
    k->packed[i] = [[members objectAtIndex:i] offset];
  return CS_OK;
}

static int32_t make_kernel(cs_module *m, cs_kernel *k, cs_error *err) {
  cs_device *d = m->dev;
  NSString *name = [NSString stringWithUTF8String:k->name];
  id<MTLFunction> function = name != nil ? [m->library newFunctionWithName:name] : nil;
  if (function == nil)
    return tell(err, CS_NOT_FOUND, 0, "newFunctionWithName: no function %s", k->name);
  NSArray *archives = m->archive != nil ? [NSArray arrayWithObject:m->archive] : nil;
  MTLComputePipelineReflection *told = nil;
  int32_t status;
  @try {
    status = pipeline_of(d, function, archives,
                         MTLPipelineOptionArgumentInfo | MTLPipelineOptionBufferTypeInfo, &told,
                         &k->pipeline, err);
  } @finally {
    [function release];
  }
  if (status == CS_OK)
    status = learn(k, told, err);
  if (status != CS_OK)
    return status;
  uint64_t fixed = [k->pipeline staticThreadgroupMemoryLength];
  k->max_threads = [k->pipeline maxTotalThreadsPerThreadgroup];
  k->width = [k->pipeline threadExecutionWidth];
  k->max_dynamic = fixed < d->max_local ? d->max_local - fixed : 0;
  return CS_OK;
}

// kernel_named returns the module's kernel of that name; the first call makes it.
static int32_t kernel_named(cs_module *m, const char *name, cs_kernel **out, cs_error *err) {
  for (cs_kernel *k = m->kernels; k != NULL; k = k->next)
    if (strcmp(k->name, name) == 0) {
      *out = k;
      return CS_OK;
    }
  cs_kernel *k = calloc(1, sizeof *k);
  if (k == NULL || (k->name = strdup(name)) == NULL) {
    free(k);
    return no_host_memory(err);
  }
  k->module = m;
  int32_t status = CS_OK;
  @try {
    status = make_kernel(m, k, err);
    if (status == CS_OK) {
      k->next = m->kernels;
      m->kernels = k;
      *out = k;
      k = NULL; // the module owns it now
    }
  } @finally { // RUN handles exceptions
    drop_kernel(k);
  }
  return status;
}

static int32_t metal_module_kernel(cs_module *m, const char *name, cs_kernel **kernel,
                                   cs_kernel_info *info, cs_error *err) {
  cs_kernel *k = NULL;
  int32_t status = present(m->dev, err);
  if (status != CS_OK)
    return status;
  pthread_mutex_lock(&m->lock);
  RUN(status, err, kernel_named(m, name, &k, err));
  pthread_mutex_unlock(&m->lock);
  if (status != CS_OK)
    return status;
  *kernel = k;
  *info = (cs_kernel_info){.max_group = (int32_t)k->max_threads,
                           .multiple = (int32_t)k->width,
                           .local_bytes = m->dev->max_local - k->max_dynamic};
  return CS_OK;
}

// -- launching --

// launch has the arguments of a launch, with addresses resolved to buffers.
struct launch {
  const cs_arg *args;
  uint32_t count;
  const unsigned char *data;
  const uint64_t *groups, *group;
  struct place places[CS_MAX_ARGS];
  uint32_t pointers, values, locals;
  uint64_t local_bytes;
};

// unit rounds a size of local memory up as Metal requires.
static uint64_t unit(int64_t bytes) { return bytes > 16 ? ((uint64_t)bytes + 15) & ~15ULL : 16; }

// read_args counts the arguments and finds their buffers.
static int32_t read_args(cs_device *d, struct launch *l, cs_error *err) {
  for (uint32_t i = 0; i < l->count; i++) {
    const cs_arg *a = &l->args[i];
    l->places[i] = (struct place){NULL, 0};
    switch (a->kind) {
    case CS_ARG_VALUE:
      l->values++;
      break;
    case CS_ARG_MEMORY: {
      l->pointers++;
      if (a->mem == 0)
        break;
      int32_t status =
          find(d, a->mem + (uint64_t)a->mem_offset, (uint64_t)a->mem_size, &l->places[i], err);
      if (status != CS_OK)
        return status;
      // A view of 0 bytes may begin at the end of its buffer, where Metal refuses to bind it.
      if (l->places[i].offset == l->places[i].block->bytes)
        l->places[i].offset = 0;
      break;
    }
    case CS_ARG_LOCAL:
      if (a->size < 0 || a->size > INT32_MAX)
        return tell(err, CS_TOO_LARGE, 0, "argument %u: %lld bytes of local memory", i,
                    (long long)a->size);
      l->locals++;
      l->local_bytes += unit(a->size);
      break;
    default:
      return tell(err, CS_INVALID, 0, "argument %u has the unknown kind %d", i, a->kind);
    }
  }
  return CS_OK;
}

// packs reports whether the values are passed in one struct, because there are not enough buffer
// indices.
static int packs(const struct launch *l) { return l->pointers + l->values > ARGUMENTS; }

// fits checks for mistakes for which Metal would end the process, or which it would not detect.
static int32_t fits(cs_kernel *k, const struct launch *l, cs_error *err) {
  uint64_t items = 1;
  for (int i = 0; i < 3; i++) {
    if (l->groups[i] > INT32_MAX || l->group[i] > INT32_MAX)
      return tell(err, CS_TOO_LARGE, 0, "a grid of %llu groups of %llu items in dimension %d",
                  (unsigned long long)l->groups[i], (unsigned long long)l->group[i], i);
    items = items > INT32_MAX ? items : items * l->group[i];
  }
  if (items > k->max_threads)
    return tell(err, CS_LAUNCH, 0, "a group of %llu items, the kernel allows %llu",
                (unsigned long long)items, (unsigned long long)k->max_threads);
  if (l->local_bytes > k->max_dynamic)
    return tell(err, CS_LAUNCH, 0, "%llu bytes of local memory, there are %llu",
                (unsigned long long)l->local_bytes, (unsigned long long)k->max_dynamic);
  uint32_t buffers = packs(l) ? l->pointers + 1 : l->pointers + l->values;
  if (buffers > ARGUMENTS || l->locals > ARGUMENTS)
    return tell(err, CS_INVALID, 0,
                "%u buffers and %u places of local memory, Metal has %d of each", buffers,
                l->locals, ARGUMENTS);
  uint32_t lacking = k->buffers & ~(uint32_t)((1ULL << buffers) - 1);
  uint32_t unlocal = k->locals & ~(uint32_t)((1ULL << l->locals) - 1);
  if (lacking != 0 || unlocal != 0)
    return tell(err, CS_INVALID, 0,
                "the launch gives %u buffers and %u places of local memory, %s "
                "takes more",
                buffers, l->locals, k->name);
  return CS_OK;
}

// set_value passes bytes to the kernel at the index of a buffer.
static int32_t set_value(cs_stream *s, const unsigned char *bytes, uint64_t length, uint32_t at,
                         cs_error *err) {
  if (length <= VALUE_BYTES) {
    [s->compute setBytes:bytes length:(NSUInteger)length atIndex:at];
    return CS_OK;
  }
  id<MTLBuffer> copy = [s->dev->handle newBufferWithLength:(NSUInteger)length
                                                   options:MTLResourceStorageModeShared];
  if (copy == nil)
    return tell(err, CS_NO_MEMORY, 0, "newBufferWithLength: no memory for arguments");
  memcpy([copy contents], bytes, length);
  [s->compute setBuffer:copy offset:0 atIndex:at];
  [copy release]; // the command buffer keeps it
  return CS_OK;
}

// offset_of returns the offset of the next value in the struct: the one that Metal reports, or
// `end` rounded up to the largest power of two that divides its size, which is the alignment of
// scalars and vectors.
static uint64_t offset_of(const cs_kernel *k, const struct launch *l, uint32_t value, uint64_t end,
                          uint64_t size) {
  if (k->packed_count == l->values)
    return k->packed[value];
  uint64_t align = size & -size;
  return (end + align - 1) & -align;
}

// set_packed passes all values to the kernel in one struct.
static int32_t set_packed(cs_stream *s, const cs_kernel *k, const struct launch *l, cs_error *err) {
  uint64_t end = 0, room = k->sizes[l->pointers];
  uint32_t value = 0;
  for (uint32_t i = 0; i < l->count; i++) { // computes an upper bound of its size
    uint64_t size = (uint64_t)l->args[i].size;
    if (l->args[i].kind != CS_ARG_VALUE || l->args[i].size <= 0)
      continue;
    uint64_t next = room; // offset of the following value, if Metal reports it
    if (k->packed_count == l->values && value + 1 < l->values)
      next = k->packed[value + 1];
    end = offset_of(k, l, value++, end, size) + size;
    if (next != 0 && end > next)
      return tell(err, CS_INVALID, 0, "argument %u: %llu bytes are more than %s takes", i,
                  (unsigned long long)size, k->name);
  }
  room = (end > room ? end : room) + 127;
  unsigned char *bytes = calloc(1, room);
  if (bytes == NULL)
    return no_host_memory(err);
  end = value = 0;
  for (uint32_t i = 0; i < l->count; i++) {
    const cs_arg *a = &l->args[i];
    if (a->kind != CS_ARG_VALUE || a->size <= 0)
      continue;
    uint64_t at = offset_of(k, l, value++, end, (uint64_t)a->size);
    memcpy(bytes + at, l->data + a->offset, (size_t)a->size);
    end = at + (uint64_t)a->size;
  }
  int32_t status = set_value(s, bytes, room & ~15ULL, l->pointers, err);
  free(bytes);
  return status;
}

// set_args passes the arguments to the kernel: pointers and values in their order at the indices of
// buffers, local memory at those of threadgroup memory.
static int32_t set_args(cs_stream *s, const cs_kernel *k, const struct launch *l, cs_error *err) {
  uint32_t buffer = 0, local = 0;
  for (uint32_t i = 0; i < l->count; i++) {
    const cs_arg *a = &l->args[i];
    struct place p = l->places[i];
    int32_t status = CS_OK;
    switch (a->kind) {
    case CS_ARG_VALUE:
      if (packs(l))
        break;
      if (k->sizes[buffer] != 0 && (uint64_t)a->size != k->sizes[buffer])
        return tell(err, CS_INVALID, 0, "argument %u: %lld bytes, %s takes %llu", i,
                    (long long)a->size, k->name, (unsigned long long)k->sizes[buffer]);
      status = set_value(s, l->data + a->offset, (uint64_t)a->size, buffer++, err);
      break;
    case CS_ARG_MEMORY:
      if (p.block != NULL)
        status = touch(s, p.block, err);
      if (status == CS_OK)
        [s->compute setBuffer:p.block != NULL ? p.block->buffer : nil
                       offset:(NSUInteger)p.offset
                      atIndex:buffer++];
      break;
    case CS_ARG_LOCAL:
      [s->compute setThreadgroupMemoryLength:(NSUInteger)unit(a->size) atIndex:local++];
      break;
    }
    if (status != CS_OK)
      return status;
  }
  for (uint32_t i = local; i < ARGUMENTS; i++) // clears the sizes of an earlier launch
    if ((s->locals & 1u << i) != 0)
      [s->compute setThreadgroupMemoryLength:0 atIndex:i];
  s->locals = (uint32_t)((1ULL << local) - 1);
  return packs(l) ? set_packed(s, k, l, err) : CS_OK;
}

static int32_t launch_now(cs_stream *s, const cs_kernel *k, const struct launch *l, cs_error *err) {
  int32_t status = computing(s, err);
  if (status != CS_OK)
    return status;
  [s->compute setComputePipelineState:k->pipeline];
  status = set_args(s, k, l, err);
  if (status != CS_OK)
    return status;
  const uint64_t *n = l->groups, *g = l->group;
  [s->compute dispatchThreadgroups:MTLSizeMake(n[0], n[1], n[2])
             threadsPerThreadgroup:MTLSizeMake(g[0], g[1], g[2])];
  return queued(s, err);
}

static int32_t metal_launch(cs_stream *s, cs_kernel *k, const uint64_t *groups,
                            const uint64_t *group, const cs_arg *args, uint32_t count,
                            const unsigned char *data, cs_error *err) {
  if (count > CS_MAX_ARGS)
    return tell(err, CS_INVALID, 0, "%u arguments are more than the limit of %u", count, CS_MAX_ARGS);
  struct launch l;
  l.args = args;
  l.count = count;
  l.data = data;
  l.groups = groups;
  l.group = group;
  l.pointers = l.values = l.locals = 0;
  l.local_bytes = 0;
  int32_t status = read_args(s->dev, &l, err);
  if (status == CS_OK)
    status = fits(k, &l, err);
  if (status == CS_OK)
    ON(s, status, err, launch_now(s, k, &l, err));
  return status;
}
