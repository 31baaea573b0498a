// memory.cpp: device memory is host memory between two guard pages. An allocation ends as close to
// its guard as an alignment of 256 bytes allows; the few bytes between are filled with a pattern
// that is checked after kernels, so that every kernel that writes beyond the end is detected. Freed
// memory stays unreadable for a while.

#include "core.h"

#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace sim {
namespace {

const size_t guard = 16 << 20, alignment = 256, quarantined = 256; // guards use no memory
const unsigned char pattern = 0xA5, fresh = 0xCD;
const size_t filled = 64 << 10; // of a new allocation, at each end

size_t up(size_t n, size_t to) { return (n + to - 1) / to * to; }

size_t page() {
  static const size_t p = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return p;
}

bool ours(const Memory &m) { return m.map != nullptr; }

bool on_device(const Memory &m) { return m.kind == ON_DEVICE || m.kind == MANAGED; }

// clean checks the bytes between an allocation and its guards.
bool clean(const Memory &m) {
  const char *end = m.map + m.map_bytes - guard;
  for (const char *p = m.base + m.bytes; p < end; p++)
    if (static_cast<unsigned char>(*p) != pattern)
      return false;
  const char *before = m.base - alignment, *start = m.map + guard;
  for (const char *p = before > start ? before : start; p < m.base; p++)
    if (static_cast<unsigned char>(*p) != pattern)
      return false;
  return true;
}

bool map_memory(Memory *m) {
  size_t body = up(up(m->bytes, alignment), page());
  m->map_bytes = body + 2 * guard;
  void *map =
      mmap(nullptr, m->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED)
    return false;
  m->map = static_cast<char *>(map);
  if (mprotect(m->map + guard, body, PROT_READ | PROT_WRITE) != 0) {
    munmap(map, m->map_bytes);
    return false;
  }
  m->base = m->map + guard + body - up(m->bytes, alignment);
  size_t ends = m->bytes < filled ? m->bytes : filled;
  memset(m->map + guard, pattern, static_cast<size_t>(m->base - m->map - guard));
  memset(m->base + m->bytes, pattern,
         static_cast<size_t>(m->map + guard + body - m->base) - m->bytes);
  memset(m->base, fresh, ends);
  memset(m->base + m->bytes - ends, fresh, ends);
  return true;
}

void unmap_memory(const Memory &m) {
  auto &q = world().quarantine;
  mmap(m.map, m.map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
       0);
  q.emplace_back(m.map, m.map_bytes);
  if (q.size() <= quarantined)
    return;
  munmap(q.front().first, q.front().second);
  q.pop_front();
}

void drop(std::map<uintptr_t, Memory>::iterator it) {
  World &w = world();
  const Memory &m = it->second;
  if (on_device(m))
    w.used[m.context->device] -= m.bytes;
  if (ours(m))
    unmap_memory(m);
  w.memory.erase(it);
}

} // namespace

int memory_alloc(Context *c, size_t bytes, MemoryKind kind, unsigned flags, void **out) {
  World &w = world();
  Lock lock(w.mu);
  if (int code = capture_forbids(lock))
    return code;
  if (bytes == 0)
    return INVALID_VALUE;
  Memory m{nullptr, bytes, kind, c, nullptr, 0, flags, false};
  size_t total = static_cast<size_t>(settings().memory_mib) << 20;
  if (on_device(m) && (bytes > total || w.used[c->device] > total - bytes))
    return OUT_OF_MEMORY;
  if (bytes > static_cast<size_t>(1) << 46 || !map_memory(&m))
    return OUT_OF_MEMORY;
  if (on_device(m))
    w.used[c->device] += bytes;
  w.memory[reinterpret_cast<uintptr_t>(m.base)] = m;
  *out = m.base;
  return OK;
}

static std::map<uintptr_t, Memory>::iterator exact(const void *p) {
  auto it = world().memory.find(reinterpret_cast<uintptr_t>(p));
  return it;
}

// Freeing waits for the work that may use the memory, as the vendors' calls do.
int memory_free(Context *c, void *p, bool host) {
  World &w = world();
  Lock lock(w.mu);
  if (p == nullptr)
    return OK;
  if (int code = capture_forbids(lock))
    return code;
  auto it = exact(p);
  if (it == w.memory.end() || it->second.freeing)
    return INVALID_VALUE;
  if (host ? it->second.kind != PINNED : !on_device(it->second))
    return INVALID_VALUE;
  context_wait_all(lock);
  it = exact(p);
  if (it == w.memory.end())
    return INVALID_VALUE;
  if (!clean(it->second) && it->second.context->sticky == 0)
    it->second.context->sticky = ILLEGAL_ADDRESS;
  drop(it);
  return c != nullptr ? c->sticky : OK;
}

int memory_free_queued(Context *c, void *p, Stream *s) {
  World &w = world();
  Lock lock(w.mu);
  auto it = exact(p);
  s = stream_find(lock, c, s);
  if (s == nullptr)
    return INVALID_HANDLE;
  if (it == w.memory.end() || !on_device(it->second) || it->second.freeing)
    return INVALID_VALUE;
  if (s->capture != nullptr)
    return CAPTURE_UNSUPPORTED;
  it->second.freeing = true;
  Node n;
  n.type = NODE_HOST;
  n.host = [p] {
    Lock inner(world().mu);
    auto at = exact(p);
    if (at != world().memory.end())
      drop(at);
  };
  return stream_put(lock, s, n);
}

int memory_register(Context *c, void *p, size_t bytes, unsigned flags) {
  World &w = world();
  Lock lock(w.mu);
  if (p == nullptr || bytes == 0)
    return INVALID_VALUE;
  if (memory_find(lock, p) != nullptr ||
      memory_find(lock, static_cast<char *>(p) + bytes - 1) != nullptr)
    return ALREADY_REGISTERED;
  w.memory[reinterpret_cast<uintptr_t>(p)] =
      Memory{static_cast<char *>(p), bytes, REGISTERED, c, nullptr, 0, flags, false};
  return OK;
}

int memory_unregister(void *p) {
  World &w = world();
  Lock lock(w.mu);
  auto it = exact(p);
  if (it == w.memory.end() || it->second.kind != REGISTERED)
    return NOT_REGISTERED;
  context_wait_all(lock);
  it = exact(p);
  if (it != w.memory.end())
    w.memory.erase(it);
  return OK;
}

void memory_drop(Lock &, Context *c) {
  World &w = world();
  for (auto it = w.memory.begin(); it != w.memory.end();) {
    auto next = std::next(it);
    if (it->second.context == c)
      drop(it);
    it = next;
  }
}

Memory *memory_find(Lock &, const void *p) {
  auto &all = world().memory;
  uintptr_t at = reinterpret_cast<uintptr_t>(p);
  auto it = all.upper_bound(at);
  if (it == all.begin())
    return nullptr;
  Memory *m = &std::prev(it)->second;
  return at - reinterpret_cast<uintptr_t>(m->base) < m->bytes ? m : nullptr;
}

bool memory_holds(Lock &lock, const void *p, size_t bytes, bool device) {
  Memory *m = memory_find(lock, p);
  if (m == nullptr || (device && (m->kind == REGISTERED && !m->flags)))
    return false;
  return bytes <= m->bytes - static_cast<size_t>(static_cast<const char *>(p) - m->base);
}

bool memory_damaged(Lock &, Context *c) {
  for (auto &m : world().memory)
    if (m.second.context == c && ours(m.second) && !clean(m.second)) {
      if (verbose())
        fprintf(stderr, "concord-sim: something was written next to %zu bytes at %p\n",
                m.second.bytes, static_cast<void *>(m.second.base));
      return true;
    }
  return false;
}

void memory_info(int device, size_t *free, size_t *total) {
  Lock lock(world().mu);
  *total = static_cast<size_t>(settings().memory_mib) << 20;
  size_t used = world().used[device];
  *free = used < *total ? *total - used : 0;
}

void memory_global(Context *c, void *p, size_t bytes) {
  Lock lock(world().mu);
  world().memory[reinterpret_cast<uintptr_t>(p)] =
      Memory{static_cast<char *>(p), bytes, GLOBAL, c, nullptr, 0, 0, false};
}

void memory_forget(Lock &, const void *p) {
  auto it = exact(p);
  if (it != world().memory.end() && it->second.kind == GLOBAL)
    world().memory.erase(it);
}

int memory_alloc_queued(Context *c, size_t bytes, Stream *s, void **out) {
  {
    Lock lock(world().mu);
    Stream *real = stream_find(lock, c, s);
    if (real == nullptr)
      return INVALID_HANDLE;
    if (real->capture != nullptr)
      return CAPTURE_UNSUPPORTED;
  }
  return memory_alloc(c, bytes, ON_DEVICE, 0, out);
}

int memory_prefetch(Context *c, const void *p, size_t bytes, int device, Stream *s) {
  Lock lock(world().mu);
  Memory *m = memory_find(lock, p);
  if ((device != -1 && !device_ok(device)) || m == nullptr || m->kind != MANAGED ||
      !memory_holds(lock, p, bytes, true))
    return INVALID_VALUE;
  Stream *real = stream_find(lock, c, s);
  return real == nullptr ? static_cast<int>(INVALID_HANDLE) : stream_put(lock, real, Node());
}

bool memory_mapped(const void *p) {
  Lock lock(world().mu);
  Memory *m = memory_find(lock, p);
  return m != nullptr && (m->kind == PINNED || m->kind == REGISTERED);
}

} // namespace sim
