// module.c loads programs. The bytes of a program are, in words of 32 bits in the host's order:
//
//	PROGRAM_MARK
//	number of kernels, bytes of constant data, words of code
//	for each kernel: bytes of its name, bytes of fixed local memory, bytes of arguments, whether these
//	are passed in memory, and the name, padded to words
//	the constant data, padded to words
//	the code, a module of SPIR-V

#include "state.h"

#define PROGRAM_MARK 0x31565343u // "CSV1"
#define SPIRV_MARK 0x07230203u

// reader reads words of a program.
struct reader {
  const unsigned char *at;
  uint64_t left; // bytes
};

// bytes_of returns the next n bytes and skips what pads them, or NULL if there are less.
static const unsigned char *bytes_of(struct reader *r, uint64_t n) {
  const unsigned char *at = r->at;
  uint64_t padded = (n + 3) & ~(uint64_t)3;
  if (padded < n || padded > r->left)
    return NULL;
  r->at += padded;
  r->left -= padded;
  return at;
}

static int word(struct reader *r, uint32_t *out) {
  const unsigned char *at = bytes_of(r, sizeof *out);
  if (at != NULL)
    memcpy(out, at, sizeof *out);
  return at != NULL;
}

static void drop_kernel(cs_device *d, cs_kernel *k) {
  for (struct pipeline *p = k->pipelines, *next; p != NULL; p = next) {
    next = p->next;
    d->vk.DestroyPipeline(d->handle, p->handle, NULL);
    free(p);
  }
  if (k->name != NULL)
    pthread_mutex_destroy(&k->lock);
  free(k->name);
}

static void end_module(cs_device *d, struct dead *dead) {
  cs_module *m = (cs_module *)dead;
  for (uint32_t i = 0; i < m->count; i++)
    drop_kernel(d, &m->kernels[i]);
  d->vk.DestroyShaderModule(d->handle, m->code, NULL);
  if (m->constants != NULL)
    m->constants->dead.end(d, &m->constants->dead);
  free(m);
}

static int32_t damaged(cs_error *err) { return tell(err, CS_FORMAT, 0, "the bytes are no program for Vulkan"); }

static int32_t read_kernel(struct reader *r, cs_module *m, cs_kernel *k, cs_error *err) {
  uint32_t name_bytes, in_memory = 0;
  const unsigned char *name = NULL;
  if (word(r, &name_bytes) && word(r, &k->local_bytes) && word(r, &k->argument_bytes) && word(r, &in_memory))
    name = bytes_of(r, name_bytes);
  uint32_t most = in_memory != 0 ? CHUNK_BYTES : 4 * (PUSHED - ARGUMENTS);
  if (name == NULL || name_bytes == 0 || memchr(name, 0, name_bytes) != NULL || k->argument_bytes > most)
    return damaged(err);
  k->module = m;
  k->in_memory = in_memory != 0;
  k->name = strndup((const char *)name, name_bytes);
  if (k->name == NULL)
    return no_host_memory(err);
  pthread_mutex_init(&k->lock, NULL);
  return CS_OK;
}

static int32_t vulkan_stream_new(cs_device *d, int32_t priority, cs_stream **out, cs_error *err);
static int32_t vulkan_upload(cs_stream *s, uint64_t dst, const unsigned char *src, uint64_t bytes, cs_error *err);

// place_constants copies the constant data to memory of the device.
static int32_t place_constants(cs_device *d, cs_module *m, const unsigned char *data, uint32_t bytes, cs_error *err) {
  if (bytes == 0)
    return CS_OK;
  int32_t status = make_block(d, CS_ON_DEVICE, bytes, &m->constants, err);
  if (status != CS_OK)
    return status;
  if (m->constants->host != NULL) {
    memcpy(m->constants->host, data, bytes);
    return CS_OK;
  }
  cs_stream *s = NULL;
  cs_error ignored;
  status = enter(d, m->constants, err);
  if (status != CS_OK)
    return status;
  status = vulkan_stream_new(d, 0, &s, err);
  if (status == CS_OK) {
    status = vulkan_upload(s, m->constants->address, data, bytes, err);
    int32_t closed = vulkan_stream_close(s, status == CS_OK ? err : &ignored);
    status = status == CS_OK ? closed : status;
  }
  pthread_rwlock_wrlock(&d->memory);
  take(d, &d->by_address, m->constants->address);
  pthread_rwlock_unlock(&d->memory);
  return status;
}

// make_code makes the module of SPIR-V, which need not lie at a multiple of 4 bytes.
static int32_t make_code(cs_device *d, const unsigned char *code, uint64_t bytes, VkShaderModule *out, cs_error *err) {
  uint32_t *words = malloc(bytes);
  if (words == NULL)
    return no_host_memory(err);
  memcpy(words, code, bytes);
  VkShaderModuleCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = bytes, .pCode = words};
  int32_t status = CALL(d, err, CreateShaderModule, &info, NULL, out);
  free(words);
  return status;
}

static int32_t vulkan_module_load(cs_device *d, const unsigned char *code, uint64_t bytes, cs_module **mod, char *log,
                                  uint64_t log_bytes, cs_error *err) {
  if (log_bytes > 0)
    log[0] = '\0';
  int32_t status = present(d, err);
  if (status != CS_OK)
    return status;
  struct reader r = {code, bytes};
  uint32_t mark_word, kernels, constant_bytes, words;
  if (!word(&r, &mark_word) || mark_word != PROGRAM_MARK || !word(&r, &kernels) || !word(&r, &constant_bytes) ||
      !word(&r, &words) || kernels > bytes / 16 || words < 5)
    return damaged(err);
  cs_module *m = calloc(1, sizeof *m + kernels * sizeof m->kernels[0]);
  if (m == NULL)
    return no_host_memory(err);
  m->dev = d;
  m->dead.end = end_module;
  m->count = kernels;
  for (uint32_t i = 0; i < kernels && status == CS_OK; i++)
    status = read_kernel(&r, m, &m->kernels[i], err);
  const unsigned char *data = status == CS_OK ? bytes_of(&r, constant_bytes) : NULL;
  const unsigned char *spirv = data != NULL ? bytes_of(&r, (uint64_t)words * 4) : NULL;
  uint32_t first = 0;
  if (spirv != NULL)
    memcpy(&first, spirv, sizeof first);
  if (status == CS_OK && (first != SPIRV_MARK || r.left != 0))
    status = damaged(err);
  if (status == CS_OK)
    status = make_code(d, spirv, (uint64_t)words * 4, &m->code, err);
  if (status == CS_OK)
    status = place_constants(d, m, data, constant_bytes, err);
  if (status == CS_OK)
    *mod = m;
  else
    end_module(d, &m->dead);
  return status;
}

static int32_t vulkan_module_unload(cs_module *m, cs_error *err) {
  (void)err;
  bury(m->dev, &m->dead);
  return CS_OK;
}

static int32_t vulkan_module_kernel(cs_module *m, const char *name, cs_kernel **kernel, cs_kernel_info *info,
                                    cs_error *err) {
  int32_t status = present(m->dev, err);
  if (status != CS_OK)
    return status;
  for (uint32_t i = 0; i < m->count; i++) {
    cs_kernel *k = &m->kernels[i];
    if (strcmp(k->name, name) != 0)
      continue;
    *kernel = k;
    *info = (cs_kernel_info){
        .max_group = (int32_t)m->dev->t.properties.properties.limits.maxComputeWorkGroupInvocations,
        .multiple = (int32_t)m->dev->t.subgroup,
        .local_bytes = k->local_bytes};
    return CS_OK;
  }
  return tell(err, CS_NOT_FOUND, 0, "the program has no kernel %s", name);
}
