// kernel.c loads programs, describes their kernels, and launches them.

#include "load.h"

// -- modules --

static int32_t gpu_module_load(cs_device *d, const unsigned char *code, uint64_t bytes,
                               cs_module **mod, char *log, uint64_t log_bytes, cs_error *err) {
  if (log_bytes > 0)
    log[0] = '\0';
  if (bytes == 0)
    return tell(err, CS_FORMAT, 0, "a program of 0 bytes");
  cs_module *m = calloc(1, sizeof *m);
  if (m == NULL)
    return no_host_memory(err);
  m->dev = d;
  int32_t status = d->lib->vendor->load(d, code, bytes, &m->handle, log, log_bytes, err);
  if (status != CS_OK) {
    free(m);
    return status;
  }
  pthread_mutex_init(&m->lock, NULL);
  *mod = m;
  return CS_OK;
}

static int32_t gpu_module_unload(cs_module *m, cs_error *err) {
  int32_t status = enter(m->dev, err);
  if (status == CS_OK)
    status = CALL(m->dev, err, module_unload, m->handle);
  else
    m->dev->lib->api.module_unload(m->handle);
  for (cs_kernel *k = m->kernels, *next; k != NULL; k = next) {
    next = k->next;
    free(k);
  }
  pthread_mutex_destroy(&m->lock);
  free(m);
  return status;
}

// -- kernels --

static int32_t describe(cs_device *d, void *f, cs_kernel_info *info, cs_error *err) {
  static const int which[] = {FUNC_MAX_THREADS, FUNC_REGISTERS, FUNC_SHARED_BYTES,
                              FUNC_LOCAL_BYTES};
  int value[4] = {0};
  for (int i = 0; i < 4; i++) {
    int32_t status = CALL(d, err, function_attribute, &value[i], which[i], f);
    if (status != CS_OK)
      return status;
  }
  *info = (cs_kernel_info){.max_group = value[0],
                           .registers = value[1],
                           .local_bytes = (uint64_t)value[2],
                           .spill_bytes = (uint64_t)value[3]};
  return CS_OK;
}

// allow lets a kernel use all shared memory of the device; CUDA has to be asked for more than 48
// KiB. It returns the number of bytes that remain for dynamic shared memory.
static uint64_t allow(cs_device *d, void *f, uint64_t fixed) {
  uint64_t plain = d->shared > 0 ? (uint64_t)d->shared : 0;
  uint64_t most = d->shared_optin > d->shared ? (uint64_t)d->shared_optin : plain;
  if (most > plain && most > fixed && d->lib->api.set_function_attribute != NULL &&
      d->lib->api.set_function_attribute(f, FUNC_MAX_DYNAMIC_SHARED, (int)(most - fixed)) == 0)
    return most - fixed;
  return plain > fixed ? plain - fixed : 0;
}

// keep returns the module's kernel for a function; the first call allocates it.
static cs_kernel *keep(cs_module *m, void *f) {
  pthread_mutex_lock(&m->lock);
  cs_kernel *k = m->kernels;
  while (k != NULL && k->handle != f)
    k = k->next;
  if (k == NULL && (k = calloc(1, sizeof *k)) != NULL) {
    *k = (cs_kernel){.module = m, .handle = f, .next = m->kernels};
    m->kernels = k;
  }
  pthread_mutex_unlock(&m->lock);
  return k;
}

static int32_t gpu_module_kernel(cs_module *m, const char *name, cs_kernel **kernel,
                                 cs_kernel_info *info, cs_error *err) {
  cs_device *d = m->dev;
  void *f = NULL;
  cs_kernel_info found;
  int32_t status = ENTERED(d, err, module_function, &f, m->handle, name);
  if (status == CS_OK)
    status = describe(d, f, &found, err);
  if (status != CS_OK)
    return status;
  allow(d, f, found.local_bytes);
  cs_kernel *k = keep(m, f);
  if (k == NULL)
    return no_host_memory(err);
  *kernel = k;
  *info = found;
  return CS_OK;
}

static int32_t gpu_occupancy(cs_kernel *k, int32_t group, uint64_t dynamic_bytes, int32_t *groups,
                             cs_error *err) {
  cs_device *d = k->module->dev;
  if (d->lib->api.occupancy == NULL)
    return lacks(d->lib, API(occupancy), err);
  if (group < 1)
    return tell(err, CS_INVALID, 0, "a group of %d items", group);
  int n = 0;
  int32_t status = ENTERED(d, err, occupancy, &n, k->handle, group, dynamic_bytes);
  if (status == CS_OK)
    *groups = n;
  return status;
}

static int32_t gpu_suggest(cs_kernel *k, uint64_t dynamic_bytes, int32_t *group, cs_error *err) {
  cs_device *d = k->module->dev;
  if (d->lib->api.suggest_sized == NULL && d->lib->api.suggest == NULL)
    return tell(err, CS_UNSUPPORTED, 0, "this version of %s suggests no sizes of groups",
                d->lib->vendor->driver_title);
  int grid = 0, best = 0;
  int32_t status =
      d->lib->api.suggest_sized != NULL
          ? ENTERED(d, err, suggest_sized, &grid, &best, k->handle, NULL, dynamic_bytes, 0)
          : ENTERED(d, err, suggest, &grid, &best, k->handle, dynamic_bytes, 0);
  if (status == CS_OK)
    *group = best;
  return status;
}

// -- launching --

// pack sets params to the addresses of the arguments. slots has addresses of memory and offsets of
// local memory.
static int32_t pack(const cs_arg *args, uint32_t count, const unsigned char *data, uint64_t *slots,
                    void **params, uint64_t *shared, cs_error *err) {
  uint64_t dynamic = 0;
  for (uint32_t i = 0; i < count; i++) {
    const cs_arg *a = &args[i];
    params[i] = &slots[i];
    switch (a->kind) {
    case CS_ARG_VALUE: // the driver copies as many bytes as the kernel's parameter has
      params[i] = (void *)(uintptr_t)(data + a->offset);
      break;
    case CS_ARG_MEMORY:
      slots[i] = a->mem + (uint64_t)a->mem_offset;
      break;
    case CS_ARG_LOCAL: {
      dynamic = (dynamic + CS_LOCAL_ALIGN - 1) & ~(uint64_t)(CS_LOCAL_ALIGN - 1);
      if (a->size < 0 || dynamic + (uint64_t)a->size > INT32_MAX)
        return tell(err, CS_TOO_LARGE, 0, "argument %u: %lld bytes of local memory", i,
                    (long long)a->size);
      uint32_t offset = (uint32_t)dynamic;
      memcpy(&slots[i], &offset, sizeof offset);
      dynamic += (uint64_t)a->size;
      break;
    }
    default:
      return tell(err, CS_INVALID, 0, "argument %u has the unknown kind %d", i, a->kind);
    }
  }
  *shared = dynamic;
  return CS_OK;
}

static int32_t gpu_launch(cs_stream *s, cs_kernel *k, const uint64_t *groups, const uint64_t *group,
                          const cs_arg *args, uint32_t count, const unsigned char *data,
                          cs_error *err) {
  const uint64_t most = s->dev->lib->vendor->max_items;
  uint64_t slots[CS_MAX_ARGS], shared = 0;
  void *params[CS_MAX_ARGS];
  if (count > CS_MAX_ARGS)
    return tell(err, CS_INVALID, 0, "%u arguments are more than the limit of %u", count,
                CS_MAX_ARGS);
  for (int i = 0; i < 3; i++)
    if (groups[i] > INT32_MAX || group[i] > INT32_MAX || groups[i] * group[i] > most)
      return tell(err, CS_TOO_LARGE, 0, "a grid of %llu groups of %llu items in dimension %d",
                  (unsigned long long)groups[i], (unsigned long long)group[i], i);
  int32_t status = pack(args, count, data, slots, params, &shared, err);
  if (status == CS_OK)
    status = enter(s->dev, err);
  if (status != CS_OK)
    return status;
  cs_device *d = s->dev;
  status = CALL(d, err, launch, k->handle, (unsigned)groups[0], (unsigned)groups[1],
                (unsigned)groups[2], (unsigned)group[0], (unsigned)group[1], (unsigned)group[2],
                (unsigned)shared, s->handle, params, NULL);
  if (status == CS_INVALID && err->code == INVALID_VALUE) // a grid that the kernel does not allow
    err->status = status = CS_LAUNCH;
  return status;
}
