// ccl.cpp: a library of collectives, NCCL or RCCL, for the simulated devices: communicators that do not block, of ranks
// in one process. A rank's part of a collective is a function of the host in the order of its stream. It waits there
// for the other ranks' parts, and the last one to come computes all results, in the order of the ranks.
//
// As in NCCL, a call begins something that is done when ncclCommGetAsyncError says so, here at the second time; until
// then nothing is queued, and another call is refused. Maxima and minima leave NaN out. A rank whose part does not come
// is waited for without end, until ncclCommAbort, which waits until the rank's stream has come to all of its parts: it
// frees memory, for which a device finishes what is queued before.

#include "ccl.h"
#include "blas.h"
#include "fault.h"
#include "fold.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace {

using namespace ccl;

enum Result { OK = 0, UNHANDLED = 1, SYSTEM = 2, ARGUMENT = 4, USAGE = 5, IN_PROGRESS = 7 };

struct Id {
  char bytes[128];
};
struct Config { // as far as it is read
  size_t bytes;
  unsigned magic, version;
  int blocking;
};

struct Rank;

// Sent is what one rank sends to another.
struct Sent {
  const char *from;
  size_t bytes;
  bool taken = false;
};

// Part is one rank's part of a collective.
enum Kind { ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER };
struct Part {
  Kind kind;
  int type, op, root;
  size_t n;
  const char *src;
  char *dst;
  bool like(const Part &p) const {
    return kind == p.kind && type == p.type && op == p.op && root == p.root && n == p.n;
  }
};

struct Round {
  std::map<int, Part> parts;
  bool done = false;
  int left = 0;
};

// Job is a communicator.
struct Job {
  std::string id;
  int size = 0;
  std::map<int, std::shared_ptr<Rank>> ranks; // that have joined
  std::map<long, Round> rounds;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Sent>>> sent; // by sender and receiver
};

struct Rank {
  std::shared_ptr<Job> job;
  int rank;
  blas::Queue queue;
  bool never = false, aborted = false;
  int error = OK, queued = 0; // parts on streams that have not run
  int asked = 0; // how often it has been asked since something began
  std::function<int()> later; // what has begun
  long next = 0;              // collective
};

struct State {
  std::mutex mu;
  std::condition_variable changed;
  std::map<std::string, std::weak_ptr<Job>> jobs;
  std::map<void *, std::shared_ptr<Rank>> ranks;
  long ids = 0;
};
State &state() {
  static State *s = new State; // threads outlive the end of main
  return *s;
}
using Lock = std::unique_lock<std::mutex>;

// -- computing --

// compute computes what all ranks get, before it writes any of it: dst may be src.
void compute(const Round &r) {
  const Part &p = r.parts.begin()->second;
  size_t each = p.n * sizes[p.type], all = each * r.parts.size();
  std::vector<char> result;
  Sources from;
  for (const auto &q : r.parts)
    from.push_back(q.second.src);
  switch (p.kind) {
  case ALL_REDUCE:
  case REDUCE:
    result.resize(each);
    fold_all(from, p.type, p.op, p.n, &result);
    break;
  case REDUCE_SCATTER:
    result.resize(all);
    fold_all(from, p.type, p.op, p.n * from.size(), &result);
    break;
  case BROADCAST:
    result.assign(r.parts.at(p.root).src, r.parts.at(p.root).src + each);
    break;
  case ALL_GATHER:
    for (const char *q : from)
      result.insert(result.end(), q, q + each);
  }
  for (const auto &q : r.parts) {
    if (p.kind == REDUCE && q.first != p.root)
      continue;
    const char *own = result.data() + (p.kind == REDUCE_SCATTER ? each * static_cast<size_t>(q.first) : 0);
    size_t bytes = p.kind == ALL_GATHER ? all : each;
    if (bytes > 0)
      memcpy(q.second.dst, own, bytes);
  }
}

// -- what runs on streams --

// wait waits until something is so, and returns whether it is: the rank may be aborted.
bool wait(Lock &lock, Rank *r, const std::function<bool()> &so) {
  state().changed.wait(lock, [&] { return r->aborted || so(); });
  return !r->aborted;
}

// run runs a function on a stream's thread, unless the rank is aborted or fails on demand.
void run(const std::shared_ptr<Rank> &r, const std::function<void(Lock &)> &f) {
  int late = sim::late(sim::K_COLLECTIVE_LATE), hangs = sim::late(sim::K_COLLECTIVE_HANG);
  Lock lock(state().mu);
  if (late != 0 || hangs != 0) {
    r->error = late;
    wait(lock, r.get(), [] { return false; });
  } else if (!r->aborted) {
    f(lock);
  }
  r->queued--;
  state().changed.notify_all();
}

void collect(Lock &lock, const std::shared_ptr<Rank> &r, long number, const Part &part) {
  std::shared_ptr<Job> job = r->job;
  Round &round = job->rounds[number];
  if (!round.parts.empty() && !round.parts.begin()->second.like(part)) {
    r->error = USAGE; // the ranks call different collectives
    wait(lock, r.get(), [] { return false; });
    return;
  }
  round.parts[r->rank] = part;
  if (static_cast<int>(round.parts.size()) == job->size) {
    compute(round);
    round.done = true;
    state().changed.notify_all();
  } else if (!wait(lock, r.get(), [&] { return round.done; })) {
    return;
  }
  if (++round.left == job->size)
    job->rounds.erase(number);
}

struct Message {
  bool send;
  int peer;
  char *at;
  size_t bytes;
};

void exchange(Lock &lock, const std::shared_ptr<Rank> &r, const std::vector<Message> &messages) {
  std::shared_ptr<Job> job = r->job;
  std::vector<std::shared_ptr<Sent>> own;
  for (const Message &m : messages) {
    if (!m.send)
      continue;
    own.push_back(std::make_shared<Sent>(Sent{m.at, m.bytes}));
    job->sent[{r->rank, m.peer}].push_back(own.back());
  }
  state().changed.notify_all();
  for (const Message &m : messages) {
    if (m.send)
      continue;
    auto &box = job->sent[{m.peer, r->rank}];
    if (!wait(lock, r.get(), [&] { return !box.empty(); }))
      return;
    if (box.front()->bytes != m.bytes) {
      r->error = USAGE;
      wait(lock, r.get(), [] { return false; });
      return;
    }
    if (m.bytes > 0)
      memcpy(m.at, box.front()->from, m.bytes);
    box.front()->taken = true;
    box.pop_front();
    state().changed.notify_all();
  }
  for (const auto &s : own)
    if (!wait(lock, r.get(), [&] { return s->taken; }))
      return;
}

// -- calls --

std::shared_ptr<Rank> find(void *comm) {
  auto at = state().ranks.find(comm);
  return at == state().ranks.end() ? nullptr : at->second;
}

// begin begins to queue a function on a stream.
int begin(const std::shared_ptr<Rank> &r, void *stream, std::function<void(Lock &)> f) {
  if (r->later || r->error == IN_PROGRESS)
    return USAGE; // what began before is not done
  blas::Queue queue = r->queue;
  r->asked = 0;
  r->later = [r, queue, stream, f] {
    auto *run_it = new std::function<void()>([r, f] { run(r, f); });
    int code = queue(
        stream,
        [](void *p) {
          auto *it = static_cast<std::function<void()> *>(p);
          (*it)();
          delete it;
        },
        run_it);
    if (code != 0)
      delete run_it;
    return code == 0 ? OK : UNHANDLED;
  };
  return IN_PROGRESS;
}

// Messages between ncclGroupStart and ncclGroupEnd on one thread go together.
thread_local int depth;
struct Grouped {
  std::shared_ptr<Rank> rank;
  void *stream = nullptr;
  std::vector<Message> messages;
};
thread_local Grouped grouped;

int message(void *comm, void *stream, Message m, int type) {
  if (int code = sim::call(sim::K_COLLECTIVE))
    return code;
  Lock lock(state().mu);
  auto r = find(comm);
  if (r == nullptr || type < 0 || type >= TYPES || m.peer < 0 || m.peer >= r->job->size)
    return ARGUMENT;
  m.bytes *= sizes[type];
  if (depth == 0)
    return begin(r, stream, [r, m](Lock &l) { exchange(l, r, {m}); });
  if (grouped.rank != nullptr && (grouped.rank != r || grouped.stream != stream))
    return USAGE; // which NCCL allows
  grouped.rank = r, grouped.stream = stream;
  grouped.messages.push_back(m);
  return IN_PROGRESS;
}

int collective(void *comm, void *stream, Part p) {
  if (int code = sim::call(sim::K_COLLECTIVE))
    return code;
  Lock lock(state().mu);
  auto r = find(comm);
  if (r == nullptr || p.type < 0 || p.type >= TYPES || p.op < 0 || p.op >= OPS || p.root < 0 ||
      p.root >= r->job->size || depth > 0)
    return ARGUMENT;
  long number = r->next;
  int code = begin(r, stream, [r, number, p](Lock &l) { collect(l, r, number, p); });
  if (code == IN_PROGRESS)
    r->next++;
  return code;
}

char *bytes(const void *p) { return static_cast<char *>(const_cast<void *>(p)); }

} // namespace

namespace sim {
long gauge(const std::string &what) {
  Lock lock(state().mu);
  if (what == "communicators")
    return static_cast<long>(state().ranks.size());
  return -1;
}
} // namespace sim

SIM_EXPORT int ncclGetVersion(int *version) {
  *version = 21805;
  return OK;
}

SIM_EXPORT const char *ncclGetErrorString(int code) {
  static const char *const words[] = {"no error",         "unhandled driver error", "unhandled system error",
                                      "internal error",   "invalid argument",       "invalid usage",
                                      "a remote process", "in progress"};
  return code >= OK && code <= IN_PROGRESS ? words[code] : "unknown result code";
}

SIM_EXPORT const char *ncclGetLastError(void *) { return ""; }

SIM_EXPORT int ncclGetUniqueId(Id *id) {
  if (int code = sim::call(sim::K_OTHER))
    return code == 999 ? SYSTEM : code;
  Lock lock(state().mu);
  memset(id, 0, sizeof *id);
  snprintf(id->bytes, sizeof id->bytes, "simulated communicator %ld", ++state().ids);
  return OK;
}

SIM_EXPORT int ncclCommInitRankConfig(void **comm, int size, Id id, int rank, const Config *config) {
  if (int code = sim::call(sim::K_JOIN))
    return code;
  bool never = sim::late(sim::K_JOIN_HANG) != 0;
  if (config == nullptr || config->magic != 0xcafebeef || config->bytes < sizeof *config || config->version < 21400 ||
      config->blocking != 0 || rank < 0 || rank >= size)
    return ARGUMENT;
  auto queue = reinterpret_cast<blas::Queue>(blas::sibling(ccl::driver, ccl::queue));
  if (queue == nullptr)
    return SYSTEM;
  Lock lock(state().mu);
  auto &known = state().jobs[id.bytes];
  auto job = known.lock();
  if (job == nullptr)
    known = job = std::make_shared<Job>(), job->id = id.bytes, job->size = size;
  if (job->size != size || job->ranks.count(rank) > 0)
    return USAGE;
  auto r = std::make_shared<Rank>();
  r->job = job, r->rank = rank, r->queue = queue, r->never = never, r->error = IN_PROGRESS;
  job->ranks[rank] = r;
  state().ranks[r.get()] = r;
  *comm = r.get();
  return IN_PROGRESS;
}

SIM_EXPORT int ncclCommGetAsyncError(void *comm, int *code) {
  Lock lock(state().mu);
  auto r = find(comm);
  if (r == nullptr)
    return ARGUMENT;
  if (r->error == IN_PROGRESS && static_cast<int>(r->job->ranks.size()) == r->job->size) {
    bool all = true;
    for (const auto &other : r->job->ranks)
      all = all && !other.second->never;
    if (all)
      r->error = OK;
  }
  *code = r->error;
  if (r->error != OK || !r->later)
    return OK;
  *code = IN_PROGRESS;
  if (r->asked++ == 0)
    return OK;
  auto later = std::move(r->later);
  r->later = nullptr;
  r->queued++;
  lock.unlock(); // the driver's lock is not taken inside this one
  int failed = later();
  lock.lock();
  if (failed != OK)
    r->error = failed, r->queued--;
  *code = r->error;
  return OK;
}

SIM_EXPORT int ncclCommAbort(void *comm) {
  Lock lock(state().mu);
  auto r = find(comm);
  if (r == nullptr)
    return ARGUMENT;
  r->aborted = true;
  state().changed.notify_all();
  state().changed.wait(lock, [&] { return r->queued == 0; });
  state().ranks.erase(comm);
  r->later = nullptr;
  for (auto &round : r->job->rounds) // nothing may read its memory any more
    if (!round.second.done)
      round.second.parts.erase(r->rank);
  for (auto &box : r->job->sent)
    if (box.first.first == r->rank)
      box.second.clear();
  r->job->ranks.erase(r->rank);
  if (r->job->ranks.empty())
    state().jobs.erase(r->job->id);
  return OK;
}

SIM_EXPORT int ncclAllReduce(const void *src, void *dst, size_t n, int type, int op, void *comm, void *stream) {
  return collective(comm, stream, {ALL_REDUCE, type, op, 0, n, bytes(src), bytes(dst)});
}

SIM_EXPORT int ncclReduce(const void *src, void *dst, size_t n, int type, int op, int root, void *comm, void *stream) {
  return collective(comm, stream, {REDUCE, type, op, root, n, bytes(src), bytes(dst)});
}

SIM_EXPORT int ncclBroadcast(const void *src, void *dst, size_t n, int type, int root, void *comm, void *stream) {
  return collective(comm, stream, {BROADCAST, type, 0, root, n, bytes(src), bytes(dst)});
}

SIM_EXPORT int ncclAllGather(const void *src, void *dst, size_t n, int type, void *comm, void *stream) {
  return collective(comm, stream, {ALL_GATHER, type, 0, 0, n, bytes(src), bytes(dst)});
}

SIM_EXPORT int ncclReduceScatter(const void *src, void *dst, size_t n, int type, int op, void *comm, void *stream) {
  return collective(comm, stream, {REDUCE_SCATTER, type, op, 0, n, bytes(src), bytes(dst)});
}

SIM_EXPORT int ncclSend(const void *src, size_t n, int type, int to, void *comm, void *stream) {
  return message(comm, stream, {true, to, bytes(src), n}, type);
}

SIM_EXPORT int ncclRecv(void *dst, size_t n, int type, int from, void *comm, void *stream) {
  return message(comm, stream, {false, from, bytes(dst), n}, type);
}

SIM_EXPORT int ncclGroupStart() {
  depth++;
  return OK;
}

SIM_EXPORT int ncclGroupEnd() {
  if (depth == 0)
    return USAGE;
  if (--depth > 0 || grouped.rank == nullptr)
    return OK;
  Grouped g = std::move(grouped);
  grouped = Grouped();
  Lock lock(state().mu);
  return begin(g.rank, g.stream, [g](Lock &l) { exchange(l, g.rank, g.messages); });
}
