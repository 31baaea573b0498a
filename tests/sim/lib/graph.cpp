// graph.cpp: recording streams into graphs, and graphs that can be launched.

#include "core.h"

#include <pthread.h>

namespace sim {

uint64_t capture_thread() { return static_cast<uint64_t>(pthread_self()); }

GraphNode *graph_add(Graph *g, Node n, const std::vector<GraphNode *> &after) {
  g->nodes.push_back(std::make_unique<GraphNode>());
  GraphNode *node = g->nodes.back().get();
  node->node = std::move(n);
  node->after = after;
  node->graph = g;
  return node;
}

bool graph_known(Lock &, Graph *g) { return world().graphs.count(g) > 0; }

// capture_forbids: while a stream is recorded in the global mode, or by this thread, calls that are
// not queued invalidate the recording.
int capture_forbids(Lock &) {
  int code = OK;
  for (auto &cap : world().capturing)
    if (cap->mode == 0 || (cap->mode == 1 && cap->thread == capture_thread())) {
      cap->invalid = true;
      code = CAPTURE_UNSUPPORTED;
    }
  return code;
}

int capture_begin(Context *c, Stream *s, int mode) {
  World &w = world();
  Lock lock(w.mu);
  s = stream_find(lock, c, s);
  if (s == nullptr)
    return INVALID_HANDLE;
  if (s->is_default)
    return CAPTURE_UNSUPPORTED;
  if (s->capture != nullptr)
    return INVALID_VALUE;
  auto cap = std::make_shared<Capture>();
  cap->graph = std::make_unique<Graph>();
  cap->id = ++w.captures;
  cap->mode = mode;
  cap->origin = s;
  cap->streams = {s};
  cap->thread = capture_thread();
  s->capture = cap;
  s->frontier.clear();
  w.capturing.insert(cap);
  return OK;
}

static void capture_finish(const std::shared_ptr<Capture> &cap) {
  for (Stream *s : cap->streams) {
    s->capture.reset();
    s->frontier.clear();
  }
  cap->streams.clear();
  world().capturing.erase(cap);
}

// capture_drop removes a stream that is being destroyed from its recording.
void capture_drop(Lock &, Stream *s) {
  auto cap = s->capture;
  if (cap == nullptr)
    return;
  cap->invalid = true;
  if (cap->origin == s) {
    capture_finish(cap);
    return;
  }
  cap->streams.erase(s);
  s->capture.reset();
}

// reaches reports whether a node is in the frontier or before one of its nodes.
static bool reaches(const std::vector<GraphNode *> &frontier, const GraphNode *n) {
  for (GraphNode *f : frontier)
    if (f == n || reaches(f->after, n))
      return true;
  return false;
}

int capture_end(Context *c, Stream *s, Graph **out) {
  World &w = world();
  Lock lock(w.mu);
  *out = nullptr;
  s = stream_find(lock, c, s);
  if (s == nullptr)
    return INVALID_HANDLE;
  auto cap = s->capture;
  if (cap == nullptr)
    return INVALID_VALUE;
  if (cap->origin != s)
    return CAPTURE_UNMATCHED;
  if (cap->mode != 2 && cap->thread != capture_thread())
    return CAPTURE_WRONG_THREAD;
  int code = cap->invalid ? CAPTURE_INVALIDATED : OK;
  for (Stream *other : cap->streams)
    for (GraphNode *n : other->frontier)
      if (code == OK && !reaches(s->frontier, n))
        code = CAPTURE_UNJOINED;
  capture_finish(cap);
  if (code != OK)
    return code;
  *out = cap->graph.release();
  w.graphs.insert(*out);
  return OK;
}

// exec_fill lists a graph's nodes in the order in which they were added, which is valid because a
// node can depend only on earlier ones.
static void exec_fill(GraphExec *e, Graph *g) {
  std::map<const GraphNode *, size_t> index;
  for (auto &n : g->nodes) {
    std::vector<size_t> after;
    for (GraphNode *a : n->after)
      after.push_back(index[a]);
    index[n.get()] = e->nodes.size();
    e->nodes.push_back(n->node);
    e->origin.push_back(n.get());
    e->after.push_back(after);
  }
}

int graph_instantiate(Context *c, Graph *g, GraphExec **out) {
  World &w = world();
  Lock lock(w.mu);
  if (!graph_known(lock, g))
    return INVALID_VALUE;
  auto e = std::make_shared<GraphExec>();
  e->context = c;
  exec_fill(e.get(), g);
  w.execs[e.get()] = e;
  *out = e.get();
  return OK;
}

// result is CUDA's number for the kind of difference: 0 none, 2 topology, 3 type, 4 function.
int graph_update(GraphExec *e, Graph *g, int *result) {
  Lock lock(world().mu);
  *result = 1;
  if (world().execs.count(e) == 0 || !graph_known(lock, g))
    return INVALID_HANDLE;
  GraphExec fresh;
  exec_fill(&fresh, g);
  *result = fresh.after != e->after ? 2 : 0;
  for (size_t i = 0; *result == 0 && i < fresh.nodes.size(); i++) {
    if (fresh.nodes[i].type != e->nodes[i].type)
      *result = 3;
    else if (fresh.nodes[i].kernel != e->nodes[i].kernel)
      *result = 4;
  }
  if (*result != 0)
    return UPDATE_FAILURE;
  e->nodes = fresh.nodes;
  return OK;
}

int capture_status(Context *c, Stream *s, int *status) {
  Lock lock(world().mu);
  Stream *real = stream_find(lock, c, s);
  if (real == nullptr)
    return INVALID_HANDLE;
  *status = real->capture == nullptr ? 0 : real->capture->invalid ? 2 : 1;
  return OK;
}

int graph_destroy(Graph *g) {
  Lock lock(world().mu);
  if (world().graphs.erase(g) == 0)
    return INVALID_VALUE;
  delete g;
  return OK;
}

int exec_destroy(GraphExec *e) {
  Lock lock(world().mu);
  return world().execs.erase(e) > 0 ? OK : INVALID_VALUE;
}

} // namespace sim
