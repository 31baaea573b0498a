// copy.cpp: copies and fills. A copy from pageable host memory copies the bytes to a staging buffer
// first, or waits. In either case the caller may reuse its memory when the call returns, as with
// the vendors' drivers.

#include "core.h"

#include <cstring>

namespace sim {

int node_run(Context *c, const Node &n) {
  switch (n.type) {
  case NODE_KERNEL:
    return kernel_run(c, n);
  case NODE_COPY:
    sleep_ms(settings().slow_copy_ms);
    memmove(n.to, n.from, n.bytes);
    return OK;
  case NODE_FILL: {
    auto *p = static_cast<unsigned char *>(n.to);
    sleep_ms(settings().slow_copy_ms);
    if (n.width == 1)
      memset(p, static_cast<int>(n.value), n.bytes);
    else
      for (size_t i = 0; i < n.bytes; i += n.width)
        memcpy(p + i, &n.value, n.width);
    return OK;
  }
  case NODE_HOST:
    n.host();
    return OK;
  default:
    return OK;
  }
}

// side_ok checks the source or the target of a copy. Device memory has to be within one allocation.
static bool side_ok(Lock &lock, const void *p, size_t bytes, Side side) {
  Memory *m = memory_find(lock, p);
  if (side == DEVICE_SIDE)
    return memory_holds(lock, p, bytes, true);
  return m == nullptr || memory_holds(lock, p, bytes, false);
}

static bool pageable(Lock &lock, const void *p) { return memory_find(lock, p) == nullptr; }

static int wait_for(Lock &lock, Context *c, const Mark &m) {
  if (m != nullptr)
    world().done.wait(lock, [&] { return m->done; });
  return context_end(lock, c, OK);
}

int copy(Context *c, void *to, Side to_side, const void *from, Side from_side, size_t bytes,
         Stream *s, bool async) {
  Lock lock(world().mu);
  s = stream_find(lock, c, s);
  if (s == nullptr)
    return INVALID_HANDLE;
  if (bytes == 0)
    return OK;
  if (to == nullptr || from == nullptr || !side_ok(lock, to, bytes, to_side) ||
      !side_ok(lock, from, bytes, from_side))
    return INVALID_VALUE;
  if (!async)
    if (int code = capture_forbids(lock))
      return code;
  Node n;
  n.type = NODE_COPY;
  n.to = to;
  n.from = from;
  n.bytes = bytes;
  bool waits = !async;
  if (async && pageable(lock, from)) {
    auto *p = static_cast<const char *>(from);
    n.staged = std::make_shared<std::vector<char>>(p, p + bytes);
    n.from = n.staged->data();
  }
  if (async && pageable(lock, to) && s->capture == nullptr)
    waits = true;
  Mark mark;
  int code = stream_put(lock, s, std::move(n), &mark);
  return code != OK || !waits ? code : wait_for(lock, s->context, mark);
}

int fill(Context *c, void *to, unsigned value, unsigned width, size_t count, Stream *s,
         bool async) {
  Lock lock(world().mu);
  s = stream_find(lock, c, s);
  if (s == nullptr)
    return INVALID_HANDLE;
  if (count == 0)
    return OK;
  if (count > SIZE_MAX / width || reinterpret_cast<uintptr_t>(to) % width != 0 ||
      !memory_holds(lock, to, count * width, true))
    return INVALID_VALUE;
  if (!async)
    if (int code = capture_forbids(lock))
      return code;
  Node n;
  n.type = NODE_FILL;
  n.to = to;
  n.value = value;
  n.width = width;
  n.bytes = count * width;
  Mark mark;
  int code = stream_put(lock, s, std::move(n), &mark);
  return code != OK || async ? code : wait_for(lock, s->context, mark);
}

} // namespace sim
