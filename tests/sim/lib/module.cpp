// module.cpp: programs on a device, and launches of their kernels.

#include "core.h"

#include <cstring>

namespace sim {

size_t shared_plain = limits::shared;
bool (*image_accepts)(const std::string &target, bool text) = nullptr;

static int arch_of(const std::string &target) {
  size_t at = target.find('_');
  return at == std::string::npos ? 0 : atoi(target.c_str() + at + 1);
}

// Text (PTX) runs on its architecture and newer ones, binary code within one generation.
static bool accepts(const std::string &target, bool text) {
  int own = settings().arch, other = arch_of(target);
  return text ? other <= own : other / 10 == own / 10 && other <= own;
}

int module_load(Context *c, const void *image, std::string *log, Module **out) {
  World &w = world();
  {
    Lock lock(w.mu);
    if (int code = capture_forbids(lock))
      return code;
  }
  Image *loaded = nullptr;
  int code = Image::load(image, image_accepts != nullptr ? image_accepts : accepts, log, &loaded);
  if (code != OK)
    return code;
  auto m = std::make_unique<Module>();
  m->context = c;
  m->image.reset(loaded);
  Lock lock(w.mu);
  *out = m.get();
  c->modules[m.get()] = std::move(m);
  return OK;
}

int module_unload(Context *c, Module *m) {
  World &w = world();
  Lock lock(w.mu);
  for (Context *owner : w.contexts) {
    auto it = owner->modules.find(m);
    if (it == owner->modules.end())
      continue;
    context_wait(lock, owner);
    for (auto &g : m->image->globals())
      memory_forget(lock, g.first);
    std::unique_ptr<Module> gone = std::move(it->second);
    owner->modules.erase(it);
    lock.unlock();
    gone.reset(); // without our lock, since the loader has its own
    return c != nullptr ? c->sticky : OK;
  }
  return INVALID_HANDLE;
}

static bool module_known(Lock &, Module *m) {
  for (Context *owner : world().contexts)
    if (owner->modules.count(m) > 0)
      return true;
  return false;
}

int module_function(Context *, Module *m, const char *name, Function **out) {
  Lock lock(world().mu);
  if (name == nullptr)
    return INVALID_VALUE;
  if (!module_known(lock, m))
    return INVALID_HANDLE;
  auto &f = m->functions[name];
  if (f == nullptr) {
    const ImageKernel *k = m->image->kernel(name);
    if (k == nullptr) {
      m->functions.erase(name);
      return NOT_FOUND;
    }
    size_t room = k->facts.shared < shared_plain ? shared_plain - k->facts.shared : 0;
    f.reset(new Function{m->image, k, name, room, m});
  }
  *out = f.get();
  return OK;
}

int module_global(Context *c, Module *m, const char *name, void **p, size_t *bytes) {
  size_t n = 0;
  void *at;
  {
    Lock lock(world().mu);
    if (!module_known(lock, m))
      return INVALID_HANDLE;
    at = name == nullptr ? nullptr : m->image->global(name, &n);
  }
  if (at == nullptr)
    return NOT_FOUND;
  memory_global(c, at, n);
  if (p != nullptr)
    *p = at;
  if (bytes != nullptr)
    *bytes = n;
  return OK;
}

Function *function_find(Lock &, Function *f) {
  for (Context *owner : world().contexts)
    for (auto &m : owner->modules)
      for (auto &g : m.second->functions)
        if (g.second.get() == f)
          return f;
  return nullptr;
}

static size_t up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// params_pack copies the arguments. extra is CUDA's alternative way to pass them: one buffer with
// the layout of a struct.
static bool params_pack(const ImageEntry *e, void **params, void **extra, Node *out) {
  size_t total = 0;
  for (uint32_t i = 0; i < e->params; i++)
    total = up(total, 16) + e->param[i].bytes;
  out->params.assign(total + 16, 0);
  const char *packed = nullptr;
  size_t packed_bytes = 0;
  for (size_t i = 0; params == nullptr && extra != nullptr && extra[i] != nullptr; i += 2) {
    if (reinterpret_cast<uintptr_t>(extra[i]) == 1)
      packed = static_cast<const char *>(extra[i + 1]);
    else if (reinterpret_cast<uintptr_t>(extra[i]) == 2)
      packed_bytes = *static_cast<size_t *>(extra[i + 1]);
    else
      return false;
  }
  if (params == nullptr && packed == nullptr && e->params > 0)
    return false;
  size_t at = 0, from = 0;
  for (uint32_t i = 0; i < e->params; i++) {
    size_t n = e->param[i].bytes;
    at = up(at, 16);
    from = up(from, e->param[i].align);
    if (params != nullptr ? params[i] == nullptr : from + n > packed_bytes)
      return false;
    memcpy(out->params.data() + at, params != nullptr ? params[i] : packed + from, n);
    at += n;
    from += n;
  }
  return true;
}

static int launch_shape(const Function *f, const unsigned grid[3], const unsigned block[3],
                        size_t shared) {
  uint64_t threads = 1;
  for (int d = 0; d < 3; d++) {
    if (grid[d] == 0 || grid[d] > limits::grid[d] || block[d] == 0 || block[d] > limits::block[d])
      return INVALID_VALUE;
    threads *= block[d];
  }
  if (threads > limits::threads || shared > f->max_dynamic)
    return INVALID_VALUE;
  if (f->kernel->facts.threads != 0 && threads > f->kernel->facts.threads)
    return OUT_OF_RESOURCES;
  return OK;
}

int launch_prepare(Context *, Function *f, const unsigned grid[3], const unsigned block[3],
                   size_t shared, void **params, void **extra, Node *out) {
  Lock lock(world().mu);
  if (function_find(lock, f) == nullptr)
    return INVALID_HANDLE;
  if (int code = launch_shape(f, grid, block, shared))
    return code;
  out->type = NODE_KERNEL;
  out->function = f;
  out->image = f->image;
  out->kernel = f->kernel;
  memcpy(out->grid, grid, sizeof out->grid);
  memcpy(out->block, block, sizeof out->block);
  out->shared = shared;
  return params_pack(f->kernel->entry, params, extra, out) ? OK : INVALID_VALUE;
}

int launch(Context *c, Function *f, const unsigned grid[3], const unsigned block[3], size_t shared,
           void **params, void **extra, Stream *s, bool cooperative) {
  Node n;
  if (int code = launch_prepare(c, f, grid, block, shared, params, extra, &n))
    return code;
  if (cooperative) {
    uint64_t blocks = static_cast<uint64_t>(grid[0]) * grid[1] * grid[2];
    int fit = occupancy(f, static_cast<int>(block[0] * block[1] * block[2]), shared);
    if (blocks > static_cast<uint64_t>(fit) * limits::multiprocessors)
      return COOPERATIVE_TOO_LARGE;
  }
  n.fails = late();
  Lock lock(world().mu);
  s = stream_find(lock, c, s);
  return s == nullptr ? static_cast<int>(INVALID_HANDLE) : stream_put(lock, s, std::move(n));
}

static void print_text(void *, const char *text, uint64_t bytes) { fwrite(text, 1, bytes, stdout); }

static int kernel_code(const Image &image, const concord_error &err) {
  int trap = image.trap();
  if (err.status == CONCORD_BARRIER || trap == TRAP_DIVERGED || trap == TRAP_PLAIN)
    return LAUNCH_FAILED;
  if (trap == TRAP_ASSERT)
    return ASSERT;
  if (err.status != CONCORD_FAULT)
    return err.status == CONCORD_NOMEM ? OUT_OF_RESOURCES : LAUNCH_FAILED;
  switch (err.fault) {
  case CONCORD_FAULT_ADDRESS:
    return ILLEGAL_ADDRESS;
  case CONCORD_FAULT_STACK:
    return STACK_ERROR;
  case CONCORD_FAULT_ILLEGAL:
    return ILLEGAL_INSTRUCTION;
  default:
    return LAUNCH_FAILED;
  }
}

int kernel_run(Context *c, const Node &n) {
  sleep_ms(settings().slow_kernel_ms);
  if (n.fails != 0)
    return n.fails;
  const ImageEntry *e = n.kernel->entry;
  bool fibers = n.kernel->facts.fibers != 0;
  concord_kernel k = {};
  k.name = n.kernel->facts.name.c_str();
  k.flags = fibers ? CONCORD_KERNEL_FIBERS : 0;
  k.param_count = e->params;
  k.param_bytes = n.kernel->sizes.data();
  k.local_bytes = n.shared;
  k.run = fibers ? e->run_item : e->run_block;
  std::vector<void *> args;
  size_t at = 0;
  for (uint32_t size : n.kernel->sizes) {
    at = up(at, 16);
    args.push_back(const_cast<char *>(n.params.data()) + at);
    at += size;
  }
  concord_launch l = {};
  l.kernel = &k;
  l.dim = 3;
  l.arg_count = e->params;
  for (int d = 0; d < 3; d++) {
    l.local[d] = n.block[d];
    l.global[d] = static_cast<uint64_t>(n.grid[d]) * n.block[d];
  }
  l.args = args.data();
  l.print = print_text;
  concord_error err;
  int code = OK;
  if (concord_host_launch(&l, &err) != CONCORD_OK) {
    code = kernel_code(*n.image, err);
    if (verbose())
      fprintf(stderr, "concord-sim: %s: %s\n", k.name, err.message);
  }
  fflush(stdout);
  Lock lock(world().mu);
  return code == OK && memory_damaged(lock, c) ? static_cast<int>(ILLEGAL_ADDRESS) : code;
}

// occupancy counts the blocks that one multiprocessor holds at a time.
int occupancy(const Function *f, int block, size_t dynamic) {
  size_t bytes = f->kernel->facts.shared + dynamic + limits::reserved;
  int by_threads = limits::threads_sm / static_cast<int>(up(static_cast<size_t>(block), 32));
  int by_shared = static_cast<int>(limits::shared_sm / bytes);
  int n = by_threads < by_shared ? by_threads : by_shared;
  return n < limits::blocks_sm ? n : limits::blocks_sm;
}

int occupancy_best(const Function *f, const std::function<size_t(int)> &dynamic, int limit, int step,
                   int *grid, int *block) {
  const unsigned own = f->kernel->facts.threads;
  int most = static_cast<int>(own != 0 ? own : limits::threads), best = 0;
  if (limit > 0 && limit < most)
    most = limit;
  for (int n = most; n > 0; n = n % step != 0 ? n - n % step : n - step) {
    int fit = occupancy(f, n, dynamic(n));
    if (fit * n > best) {
      best = fit * n;
      *block = n;
      *grid = fit * limits::multiprocessors;
    }
  }
  return best > 0 ? OK : INVALID_VALUE;
}

} // namespace sim
