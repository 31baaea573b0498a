// stream.cpp: each stream is a queue with a thread, and an event marks the end of an operation in a
// queue.

#include "core.h"

#include <csignal>
#include <cstdlib>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

namespace sim {

static uint64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

void sleep_ms(long ms) {
  timespec t = {ms / 1000, ms % 1000 * 1000000};
  if (ms > 0)
    nanosleep(&t, nullptr);
}

static int op_run(Context *c, const Op &op) {
  if (op.graph == nullptr)
    return node_run(c, op.node);
  for (auto &n : op.graph->nodes)
    if (int code = node_run(c, n))
      return code;
  return OK;
}

// stream_work runs operations until the stream is closed and its queue empty.
static void stream_work(const std::shared_ptr<Stream> &s) {
  World &w = world();
  Lock lock(w.mu);
  for (;;) {
    s->wake.wait(lock, [&] { return !s->queue.empty() || s->closing; });
    if (s->queue.empty())
      break;
    Op op = std::move(s->queue.front());
    s->queue.pop_front();
    for (auto &m : op.after)
      w.done.wait(lock, [&] { return m->done; });
    Context *c = s->context;
    // After an error only operations that free memory run.
    bool skip = c->sticky != 0 && op.node.type != NODE_HOST;
    lock.unlock();
    int code = skip ? OK : op_run(c, op);
    Mark mark = op.mark;
    op = Op(); // may release the last reference to an image
    lock.lock();
    if (code != OK && c->sticky == 0)
      c->sticky = code;
    mark->nanoseconds = now();
    mark->done = true;
    w.done.notify_all();
  }
  w.threads--;
  w.done.notify_all();
}

// Kernels run on this thread, too, so it needs a stack for signal handlers, and must not get
// signals that are meant for the program.
static void *stream_thread(void *arg) {
  auto *held = static_cast<std::shared_ptr<Stream> *>(arg);
  const size_t bytes = 64 << 10;
  sigset_t mask;
  sigfillset(&mask);
  for (int n : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP})
    sigdelset(&mask, n);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  stack_t alt = {};
  alt.ss_sp = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  alt.ss_size = bytes;
  if (alt.ss_sp == MAP_FAILED || sigaltstack(&alt, nullptr) != 0)
    abort();
  {
    std::shared_ptr<Stream> s = *held;
    delete held;
    stream_work(s);
  }
  stack_t none = {};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
  munmap(alt.ss_sp, bytes);
  return nullptr;
}

static bool stream_start(Stream *s, std::shared_ptr<Stream> self) {
  if (s->worker)
    return true;
  auto *held = new std::shared_ptr<Stream>(std::move(self));
  pthread_t t;
  pthread_attr_t attr;
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old); // a new thread takes no signal before it is ready
  pthread_attr_init(&attr);
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  int rc = pthread_create(&t, &attr, stream_thread, held);
  pthread_attr_destroy(&attr);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  if (rc != 0) {
    delete held;
    return false;
  }
  world().threads++;
  s->worker = true;
  return true;
}

static std::shared_ptr<Stream> stream_shared(Stream *s) {
  Context *c = s->context;
  return s->is_default ? c->main : c->streams[s];
}

int stream_create(Context *c, unsigned flags, int priority, Stream **out) {
  Lock lock(world().mu);
  auto s = std::make_shared<Stream>();
  s->context = c;
  s->flags = flags;
  s->priority = priority;
  s->is_default = false;
  c->streams[s.get()] = s;
  *out = s.get();
  return OK;
}

void stream_close(Lock &, Stream *s) {
  s->closing = true;
  s->wake.notify_all();
}

// stream_leave records the unfinished operations of a destroyed stream, for calls that wait for the
// whole context.
static void stream_leave(Context *c, const Stream *s) {
  auto &all = c->leaving;
  for (size_t i = all.size(); i-- > 0;)
    if (all[i]->done)
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
  if (s->tail != nullptr && !s->tail->done)
    all.push_back(s->tail);
}

// Queued work still runs; the handle becomes invalid at once.
int stream_destroy(Context *c, Stream *s) {
  Lock lock(world().mu);
  for (Context *owner : world().contexts) {
    auto it = owner->streams.find(s);
    if (it == owner->streams.end())
      continue;
    auto held = it->second;
    capture_drop(lock, s);
    stream_close(lock, s);
    stream_leave(owner, s);
    owner->streams.erase(it);
    return c != nullptr ? c->sticky : OK;
  }
  return INVALID_HANDLE;
}

Stream *stream_find(Lock &, Context *c, Stream *s) {
  if (reinterpret_cast<uintptr_t>(s) <= 2)
    return c->main.get();
  for (Context *owner : world().contexts)
    if (owner->streams.count(s) > 0)
      return s;
  return nullptr;
}

// stream_after lists the operations of other streams that a new operation in s has to wait for: the
// default stream waits for all streams, and all streams wait for it, except non-blocking streams.
static void stream_after(Stream *s, std::vector<Mark> *after) {
  auto add = [&](const Mark &m) {
    if (m != nullptr && !m->done)
      after->push_back(m);
  };
  if (!s->is_default) {
    if (!(s->flags & 1))
      add(s->context->main->tail);
    return;
  }
  for (auto &other : s->context->streams)
    if (!(other.second->flags & 1))
      add(other.second->tail);
}

static int stream_push(Lock &, Stream *s, Op op, Mark *mark) {
  stream_after(s, &op.after);
  op.mark = std::make_shared<Marker>();
  if (!stream_start(s, stream_shared(s)))
    return OUT_OF_MEMORY;
  s->tail = op.mark;
  if (mark != nullptr)
    *mark = op.mark;
  s->queue.push_back(std::move(op));
  s->wake.notify_one();
  return OK;
}

// stream_put queues a node, or adds it to the graph that the stream is recorded into.
int stream_put(Lock &lock, Stream *s, Node node, Mark *mark) {
  if (s->is_default)
    for (auto &cap : world().capturing)
      if (cap->origin->context == s->context && cap->mode == 0 && !(cap->origin->flags & 1)) {
        cap->invalid = true;
        return CAPTURE_IMPLICIT;
      }
  if (s->capture == nullptr) {
    Op op;
    op.node = std::move(node);
    return stream_push(lock, s, std::move(op), mark);
  }
  if (s->capture->invalid)
    return CAPTURE_INVALIDATED;
  s->frontier = {graph_add(s->capture->graph.get(), std::move(node), s->frontier)};
  return OK;
}

int graph_launch(Context *c, GraphExec *e, Stream *s) {
  Lock lock(world().mu);
  auto it = world().execs.find(e);
  s = stream_find(lock, c, s);
  if (it == world().execs.end() || s == nullptr)
    return INVALID_HANDLE;
  if (s->capture != nullptr)
    return CAPTURE_UNSUPPORTED;
  Op op;
  op.graph = std::make_shared<GraphExec>(*it->second); // a copy, since the graph may be updated
  return stream_push(lock, s, std::move(op), nullptr);
}

int stream_sync(Context *c, Stream *s) {
  World &w = world();
  Lock lock(w.mu);
  s = stream_find(lock, c, s);
  if (s == nullptr)
    return INVALID_HANDLE;
  if (s->capture != nullptr) {
    s->capture->invalid = true;
    return CAPTURE_UNSUPPORTED;
  }
  std::vector<Mark> marks;
  if (s->tail != nullptr)
    marks.push_back(s->tail);
  if (s->is_default)
    stream_after(s, &marks);
  Context *owner = s->context;
  for (auto &m : marks)
    w.done.wait(lock, [&] { return m->done; });
  return context_end(lock, owner, OK);
}

int stream_query(Context *c, Stream *s) {
  Lock lock(world().mu);
  s = stream_find(lock, c, s);
  if (s == nullptr)
    return INVALID_HANDLE;
  if (s->capture != nullptr) {
    s->capture->invalid = true;
    return CAPTURE_UNSUPPORTED;
  }
  std::vector<Mark> marks;
  if (s->tail != nullptr)
    marks.push_back(s->tail);
  if (s->is_default)
    stream_after(s, &marks);
  for (auto &m : marks)
    if (!m->done)
      return s->context->sticky != 0 ? s->context->sticky : static_cast<int>(NOT_READY);
  return s->context->sticky;
}

int event_create(Context *c, unsigned flags, Event **out) {
  Lock lock(world().mu);
  auto e = std::make_unique<Event>();
  e->context = c;
  e->flags = flags;
  *out = e.get();
  c->events[e.get()] = std::move(e);
  return OK;
}

Event *event_find(Lock &, Event *e) {
  for (Context *owner : world().contexts)
    if (owner->events.count(e) > 0)
      return e;
  return nullptr;
}

int event_destroy(Context *c, Event *e) {
  Lock lock(world().mu);
  for (Context *owner : world().contexts)
    if (owner->events.erase(e) > 0)
      return c != nullptr ? c->sticky : OK;
  return INVALID_HANDLE;
}

int event_record(Context *c, Event *e, Stream *s) {
  Lock lock(world().mu);
  s = stream_find(lock, c, s);
  if (s == nullptr || event_find(lock, e) == nullptr || e->context != s->context)
    return INVALID_HANDLE;
  if (s->capture != nullptr) {
    if (s->capture->invalid)
      return CAPTURE_INVALIDATED;
    e->capture = s->capture;
    e->frontier = s->frontier;
    return OK;
  }
  e->capture.reset();
  return stream_put(lock, s, Node(), &e->mark);
}

int event_query(Context *, Event *e) {
  Lock lock(world().mu);
  if (event_find(lock, e) == nullptr)
    return INVALID_HANDLE;
  if (e->capture != nullptr && !e->capture->streams.empty())
    return CAPTURED_EVENT;
  if (e->context->sticky != 0)
    return e->context->sticky;
  return e->mark == nullptr || e->mark->done ? OK : NOT_READY;
}

int event_sync(Context *, Event *e) {
  World &w = world();
  Lock lock(w.mu);
  if (event_find(lock, e) == nullptr)
    return INVALID_HANDLE;
  if (e->capture != nullptr && !e->capture->streams.empty())
    return CAPTURED_EVENT;
  Mark m = e->mark;
  Context *owner = e->context;
  if (m != nullptr)
    w.done.wait(lock, [&] { return m->done; });
  return context_end(lock, owner, OK);
}

int event_elapsed(float *ms, Event *from, Event *to) {
  Lock lock(world().mu);
  if (event_find(lock, from) == nullptr || event_find(lock, to) == nullptr)
    return INVALID_HANDLE;
  if (from->mark == nullptr || to->mark == nullptr || ((from->flags | to->flags) & 2))
    return INVALID_HANDLE;
  if (!from->mark->done || !to->mark->done)
    return NOT_READY;
  auto ns = static_cast<int64_t>(to->mark->nanoseconds - from->mark->nanoseconds);
  *ms = static_cast<float>(static_cast<double>(ns) * 1e-6);
  return OK;
}

// A wait for an event of a stream that is being recorded makes this stream part of that recording.
static int stream_join(Stream *s, Event *e) {
  if (s->capture != nullptr && s->capture != e->capture) {
    s->capture->invalid = e->capture->invalid = true;
    return CAPTURE_MERGE;
  }
  if (s->is_default)
    return CAPTURE_IMPLICIT;
  if (s->capture == nullptr) {
    s->capture = e->capture;
    s->frontier.clear();
    e->capture->streams.insert(s);
  }
  for (GraphNode *n : e->frontier) {
    bool have = false;
    for (GraphNode *f : s->frontier)
      have |= f == n;
    if (!have)
      s->frontier.push_back(n);
  }
  return OK;
}

int stream_wait(Context *c, Stream *s, Event *e) {
  Lock lock(world().mu);
  s = stream_find(lock, c, s);
  if (s == nullptr || event_find(lock, e) == nullptr)
    return INVALID_HANDLE;
  if (e->capture != nullptr && !e->capture->streams.empty())
    return stream_join(s, e);
  if (s->capture != nullptr) {
    s->capture->invalid = true;
    return CAPTURE_ISOLATION;
  }
  if (e->mark == nullptr)
    return OK;
  Op op;
  op.after = {e->mark};
  return stream_push(lock, s, std::move(op), nullptr);
}

int stream_host(Context *c, Stream *s, std::function<void()> run) {
  Lock lock(world().mu);
  Stream *real = stream_find(lock, c, s);
  if (real == nullptr)
    return INVALID_HANDLE;
  Node n;
  n.type = NODE_HOST;
  n.host = std::move(run);
  return stream_put(lock, real, std::move(n));
}

} // namespace sim
