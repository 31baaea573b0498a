// context.cpp: devices, contexts, and the current context of each thread.

#include "core.h"

namespace sim {

// The world is never destroyed: worker threads outlive the end of main.
World &world() {
  static World *w = new World;
  return *w;
}

bool contexts_stay = false;

static thread_local std::vector<Context *> *stack_of_thread;

namespace {
struct StackOwner { // frees the stack when its thread ends
  ~StackOwner() {
    delete stack_of_thread;
    stack_of_thread = nullptr;
  }
};
} // namespace

static std::vector<Context *> &context_stack() {
  static thread_local StackOwner owner;
  (void)owner;
  if (stack_of_thread == nullptr)
    stack_of_thread = new std::vector<Context *>;
  return *stack_of_thread;
}

Context *context_current() {
  auto &s = context_stack();
  return s.empty() ? nullptr : s.back();
}

void context_set(Context *c) {
  auto &s = context_stack();
  if (!s.empty())
    s.pop_back();
  if (c != nullptr)
    s.push_back(c);
}

bool context_known(Context *c) {
  Lock lock(world().mu);
  return world().contexts.count(c) > 0;
}

int context_push(Context *c) {
  if (!context_known(c))
    return INVALID_CONTEXT;
  context_stack().push_back(c);
  return OK;
}

int context_pop(Context **out) {
  auto &s = context_stack();
  if (s.empty())
    return INVALID_CONTEXT;
  *out = s.back();
  s.pop_back();
  return OK;
}

Call::Call(Kind kind, Needs needs) : code(call(kind)), context(nullptr) {
  if (code != OK || needs == NOTHING)
    return;
  World &w = world();
  Lock lock(w.mu);
  if (!w.initialized) {
    code = NOT_INITIALIZED;
    return;
  }
  if (needs == INIT)
    return;
  context = context_current();
  if (context == nullptr)
    code = INVALID_CONTEXT;
  else if (!context->alive)
    code = CONTEXT_DESTROYED;
  else
    code = context->sticky;
}

int device_count() { return settings().devices; }

bool device_ok(int device) { return device >= 0 && device < device_count(); }

int init() {
  Settings s = settings();
  if (s.init != 0)
    return s.init;
  if (s.devices == 0)
    return NO_DEVICE;
  Lock lock(world().mu);
  world().initialized = true;
  return OK;
}

static Context *context_new(int device, bool primary) {
  auto *c = new Context;
  c->device = device;
  c->primary = primary;
  world().contexts.insert(c);
  return c;
}

static void context_start(Context *c) {
  c->alive = true;
  c->sticky = 0;
  c->main = std::make_shared<Stream>();
  c->main->context = c;
  c->main->flags = 0;
  c->main->priority = 0;
  c->main->is_default = true;
  c->limits = {{0, 1024}, {1, 1 << 20}, {2, 8 << 20}, {5, 64}, {6, 0}};
}

// context_finish waits for all work and frees everything that the context has.
static void context_finish(Lock &lock, Context *c) {
  context_wait_all(lock);
  stream_close(lock, c->main.get());
  c->main.reset();
  while (!c->streams.empty()) {
    auto s = c->streams.begin()->second;
    capture_drop(lock, s.get());
    stream_close(lock, s.get());
    c->streams.erase(s.get());
  }
  c->events.clear();
  for (auto &m : c->modules)
    for (auto &g : m.second->image->globals())
      memory_forget(lock, g.first);
  c->modules.clear();
  memory_drop(lock, c);
  c->peers.clear();
  c->alive = false;
}

// primary returns a device's primary context, active or not.
static Context *primary(int device) {
  auto &all = world().primaries;
  while (static_cast<int>(all.size()) <= device)
    all.push_back(context_new(static_cast<int>(all.size()), true));
  return all[static_cast<size_t>(device)];
}

int primary_retain(int device, Context **out) {
  Lock lock(world().mu);
  Context *c = primary(device);
  if (c->refs == 0)
    context_start(c);
  c->refs++;
  *out = c;
  return OK;
}

int primary_release(int device) {
  Lock lock(world().mu);
  Context *c = primary(device);
  if (c->refs == 0)
    return INVALID_CONTEXT;
  if (--c->refs == 0)
    context_finish(lock, c);
  return OK;
}

// After a reset, callers that have retained the context may still use it.
int primary_reset(int device) {
  Lock lock(world().mu);
  Context *c = primary(device);
  if (!c->alive)
    return OK;
  context_finish(lock, c);
  if (c->refs > 0)
    context_start(c);
  return OK;
}

int context_create(int device, unsigned flags, Context **out) {
  Lock lock(world().mu);
  Context *c = context_new(device, false);
  c->flags = flags;
  context_start(c);
  c->refs = 1;
  context_stack().push_back(c);
  *out = c;
  return OK;
}

int context_destroy(Context *c) {
  Lock lock(world().mu);
  if (world().contexts.count(c) == 0 || !c->alive || c->primary)
    return INVALID_CONTEXT;
  context_finish(lock, c);
  auto &s = context_stack();
  if (!s.empty() && s.back() == c)
    s.pop_back();
  return OK;
}

void context_wait(Lock &lock, Context *c) {
  std::vector<Mark> marks;
  if (c->main != nullptr && c->main->tail != nullptr)
    marks.push_back(c->main->tail);
  for (auto &s : c->streams)
    if (s.second->tail != nullptr)
      marks.push_back(s.second->tail);
  marks.insert(marks.end(), c->leaving.begin(), c->leaving.end());
  for (auto &m : marks)
    world().done.wait(lock, [&] { return m->done; });
}

void context_wait_all(Lock &lock) {
  for (Context *c : std::set<Context *>(world().contexts))
    if (c->alive)
      context_wait(lock, c);
}

int context_end(Lock &lock, Context *c, int code) {
  if (c->sticky == 0 && memory_damaged(lock, c))
    c->sticky = ILLEGAL_ADDRESS;
  return c->sticky != 0 ? c->sticky : code;
}

static long count_memory(bool bytes, bool host) {
  long n = 0;
  for (auto &m : world().memory) {
    bool is_host = m.second.kind == PINNED || m.second.kind == REGISTERED;
    if (m.second.kind != GLOBAL && is_host == host)
      n += bytes ? static_cast<long>(m.second.bytes) : 1;
  }
  return n;
}

long gauge(const std::string &what) {
  World &w = world();
  Lock lock(w.mu);
  long streams = 0, events = 0, modules = 0, contexts = 0;
  for (Context *c : w.contexts) {
    streams += static_cast<long>(c->streams.size());
    events += static_cast<long>(c->events.size());
    modules += static_cast<long>(c->modules.size());
    contexts += c->alive && !contexts_stay;
  }
  if (what == "allocations" || what == "bytes")
    return count_memory(what == "bytes", false);
  if (what == "pinned")
    return count_memory(false, true);
  if (what == "streams")
    return streams;
  if (what == "threads")
    return w.threads;
  if (what == "events")
    return events;
  if (what == "modules")
    return modules;
  if (what == "contexts")
    return contexts;
  if (what == "graphs")
    return static_cast<long>(w.graphs.size() + w.execs.size());
  return programs(what);
}

} // namespace sim
