// core.h: the simulated machine that the vendor libraries share. It implements devices, contexts,
// memory, streams, events, graphs and modules, independent of an ABI: cuda_*.cpp and hip_*.cpp are
// thin layers over it. Error codes are CUDA's numbers, which HIP shares.
//
// One lock, World::mu, guards every object here; it is never held while a copy or kernel runs.
// Functions that take a Lock expect it to be held, others take it themselves.

#ifndef CONCORD_SIM_CORE_H
#define CONCORD_SIM_CORE_H

#include "fault.h"
#include "image.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace sim {

enum Code {
  OK = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NOT_INITIALIZED = 3,
  NO_DEVICE = 100,
  INVALID_DEVICE = 101,
  INVALID_IMAGE = 200,
  INVALID_CONTEXT = 201,
  NO_BINARY = 209,
  PEER_UNSUPPORTED = 217,
  INVALID_PTX = 218,
  INVALID_HANDLE = 400,
  NOT_FOUND = 500,
  NOT_READY = 600,
  ILLEGAL_ADDRESS = 700,
  OUT_OF_RESOURCES = 701,
  PEER_ENABLED = 704,
  PEER_NOT_ENABLED = 705,
  CONTEXT_DESTROYED = 709,
  ASSERT = 710,
  ALREADY_REGISTERED = 712,
  NOT_REGISTERED = 713,
  STACK_ERROR = 714,
  ILLEGAL_INSTRUCTION = 715,
  LAUNCH_FAILED = 719,
  COOPERATIVE_TOO_LARGE = 720,
  NOT_SUPPORTED = 801,
  CAPTURE_UNSUPPORTED = 900,
  CAPTURE_INVALIDATED = 901,
  CAPTURE_MERGE = 902,
  CAPTURE_UNMATCHED = 903,
  CAPTURE_UNJOINED = 904,
  CAPTURE_ISOLATION = 905,
  CAPTURE_IMPLICIT = 906,
  CAPTURED_EVENT = 907,
  CAPTURE_WRONG_THREAD = 908,
  UPDATE_FAILURE = 910,
};

using Lock = std::unique_lock<std::mutex>;

// Marker marks the end of one operation.
struct Marker {
  bool done = false;
  uint64_t nanoseconds = 0;
};
using Mark = std::shared_ptr<Marker>;

struct Context;
struct Stream;
struct Graph;

// Memory is a range of memory known to the API.
enum MemoryKind { ON_DEVICE = 1, MANAGED, PINNED, REGISTERED, GLOBAL };
struct Memory {
  char *base;
  size_t bytes;
  MemoryKind kind;
  Context *context;
  char *map; // the mapping with guards; nullptr: not mapped by this library
  size_t map_bytes;
  unsigned flags;
  bool freeing; // queued to be freed in stream order
};

// Function is a kernel of a module, with the same lifetime.
struct Function {
  std::shared_ptr<Image> image;
  const ImageKernel *kernel;
  std::string name;
  size_t max_dynamic; // shared bytes that a launch may ask for
  struct Module *module;
};

struct Module {
  Context *context;
  std::shared_ptr<Image> image;
  std::map<std::string, std::unique_ptr<Function>> functions;
};

// Node is an operation of a stream or graph. The numbers are CUDA's node types.
enum NodeType { NODE_KERNEL = 0, NODE_COPY = 1, NODE_FILL = 2, NODE_HOST = 3, NODE_EMPTY = 5 };
struct Node {
  NodeType type = NODE_EMPTY;
  // kernel
  Function *function = nullptr;
  std::shared_ptr<Image> image; // outlives a module that is unloaded meanwhile
  const ImageKernel *kernel = nullptr;
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  size_t shared = 0;
  std::vector<char> params; // at the image's offsets
  int fails = 0;            // the code with which it fails on demand
  // copy and fill
  void *to = nullptr;
  const void *from = nullptr;
  std::shared_ptr<std::vector<char>> staged; // from points into it
  size_t bytes = 0;
  unsigned value = 0, width = 1; // of a fill
  std::function<void()> host;
};

struct GraphNode {
  Node node;
  std::vector<GraphNode *> after;
  Graph *graph;
};

struct Graph {
  std::list<std::unique_ptr<GraphNode>> nodes;
};

struct GraphExec {
  std::vector<Node> nodes;               // in an order that respects the dependencies
  std::vector<const GraphNode *> origin; // of each, for updates by node
  std::vector<std::vector<size_t>> after;
  Context *context;
};

// Capture is a capture in progress; streams that join it share it.
struct Capture {
  std::unique_ptr<Graph> graph;
  uint64_t id;
  int mode;
  Stream *origin;
  std::set<Stream *> streams;
  bool invalid = false;
  uint64_t thread;
};

struct Event {
  Context *context;
  unsigned flags;
  Mark mark; // mark of the last record; nullptr: never recorded
  std::shared_ptr<Capture> capture;
  std::vector<GraphNode *> frontier; // the last nodes in the capture
};

struct Op {
  Node node;
  Mark mark;
  std::vector<Mark> after;
  std::shared_ptr<GraphExec> graph;
};

struct Stream {
  Context *context;
  unsigned flags; // 1: does not wait for the default stream
  int priority;
  bool is_default;
  std::deque<Op> queue;
  Mark tail;
  bool worker = false, closing = false;
  std::condition_variable wake;
  std::shared_ptr<Capture> capture;
  std::vector<GraphNode *> frontier;
};

struct Context {
  int device;
  bool primary, alive = false;
  int refs = 0;
  unsigned flags = 0;
  int sticky = 0; // the first asynchronous error; every call returns it from then on
  std::shared_ptr<Stream> main;
  std::map<Stream *, std::shared_ptr<Stream>> streams;
  std::vector<Mark> leaving; // the last operations of streams that were destroyed with work in them
  std::map<Event *, std::unique_ptr<Event>> events;
  std::map<Module *, std::unique_ptr<Module>> modules;
  std::set<Context *> peers;
  std::map<int, size_t> limits;
};

struct Pool { // the default pool of each device
  uint64_t attributes[16] = {};
};

struct World {
  std::mutex mu;
  std::condition_variable done; // some operation has ended, or some worker
  bool initialized = false;
  std::vector<Context *> primaries; // by device; never freed, only alive or not
  std::set<Context *> contexts;     // all that were ever made
  std::map<uintptr_t, Memory> memory;
  std::map<int, size_t> used; // bytes by device
  std::map<int, Pool> pools;
  std::set<Graph *> graphs;
  std::map<GraphExec *, std::shared_ptr<GraphExec>> execs;
  std::list<std::pair<char *, size_t>> quarantine; // of freed memory, unreadable
  long threads = 0;
  uint64_t captures = 0;
  std::set<std::shared_ptr<Capture>> capturing;
};
World &world();

// Call begins every API function: it counts the call, fails on demand, and finds the calling
// thread's context if one is needed.
enum Needs { NOTHING, INIT, CONTEXT };
struct Call {
  int code;
  Context *context;
  Call(Kind kind, Needs needs);
};

// context.cpp
int init();
int device_count();
bool device_ok(int device);
int primary_retain(int device, Context **out);
int primary_release(int device);
int primary_reset(int device);
int context_create(int device, unsigned flags, Context **out);
int context_destroy(Context *c);
Context *context_current(); // of this thread
void context_set(Context *c);
int context_push(Context *c);
int context_pop(Context **out);
bool context_known(Context *c);
void context_wait(Lock &lock, Context *c);         // for everything queued
void context_wait_all(Lock &lock);                  // of other devices too, which may copy from here
int context_end(Lock &lock, Context *c, int code); // sticky error or code, after a wait

// memory.cpp
int memory_alloc(Context *c, size_t bytes, MemoryKind kind, unsigned flags, void **out);
int memory_free(Context *c, void *p, bool host);
int memory_alloc_queued(Context *c, size_t bytes, Stream *s, void **out);
int memory_free_queued(Context *c, void *p, Stream *s);
int memory_prefetch(Context *c, const void *p, size_t bytes, int device, Stream *s); // -1: the host
bool memory_mapped(const void *p); // memory of the host that devices can access
int memory_register(Context *c, void *p, size_t bytes, unsigned flags);
int memory_unregister(void *p);
void memory_drop(Lock &lock, Context *c); // all of a dying context
Memory *memory_find(Lock &lock, const void *p);
bool memory_holds(Lock &lock, const void *p, size_t bytes,
                  bool device);              // a range of one allocation
bool memory_damaged(Lock &lock, Context *c); // a guard pattern was overwritten
void memory_info(int device, size_t *free, size_t *total);
void memory_global(Context *c, void *p, size_t bytes);
void memory_forget(Lock &lock, const void *p);

// stream.cpp
int stream_create(Context *c, unsigned flags, int priority, Stream **out);
int stream_destroy(Context *c, Stream *s);
Stream *stream_find(Lock &lock, Context *c, Stream *s); // handles of the default one too
int stream_put(Lock &lock, Stream *s, Node node, Mark *mark = nullptr);
int stream_sync(Context *c, Stream *s);
int stream_query(Context *c, Stream *s);
int stream_wait(Context *c, Stream *s, Event *e);
int stream_host(Context *c, Stream *s, std::function<void()> run); // a function on the host
void stream_close(Lock &lock, Stream *s);
int event_create(Context *c, unsigned flags, Event **out);
int event_destroy(Context *c, Event *e);
Event *event_find(Lock &lock, Event *e);
int event_record(Context *c, Event *e, Stream *s);
int event_query(Context *c, Event *e);
int event_sync(Context *c, Event *e);
int event_elapsed(float *ms, Event *from, Event *to);
int node_run(Context *c, const Node &n); // on a worker thread
void sleep_ms(long ms);

// graph.cpp
int capture_begin(Context *c, Stream *s, int mode);
int capture_end(Context *c, Stream *s, Graph **out);
void capture_drop(Lock &lock, Stream *s);
int capture_status(Context *c, Stream *s, int *status); // 0: none, 1: records, 2: it is invalid
int capture_forbids(Lock &lock); // the error during a capture; 0: there is none
uint64_t capture_thread();
GraphNode *graph_add(Graph *g, Node n, const std::vector<GraphNode *> &after);
int graph_instantiate(Context *c, Graph *g, GraphExec **out);
int graph_update(GraphExec *e, Graph *g, int *result);
int graph_launch(Context *c, GraphExec *e, Stream *s);
bool graph_known(Lock &lock, Graph *g);
int graph_destroy(Graph *g);
int exec_destroy(GraphExec *e);

// copy.cpp
enum Side { HOST_SIDE, DEVICE_SIDE, ANY_SIDE };
int copy(Context *c, void *to, Side to_side, const void *from, Side from_side, size_t bytes,
         Stream *s, bool async);
int fill(Context *c, void *to, unsigned value, unsigned width, size_t count, Stream *s, bool async);

// module.cpp
int module_load(Context *c, const void *image, std::string *log, Module **out);
int module_unload(Context *c, Module *m);
int module_function(Context *c, Module *m, const char *name, Function **out);
int module_global(Context *c, Module *m, const char *name, void **p, size_t *bytes);
// shared_plain is the shared memory in bytes that a kernel may use without opting in to more.
extern size_t shared_plain;
// image_accepts replaces the rule for which images a device runs; nullptr: CUDA's.
extern bool (*image_accepts)(const std::string &target, bool text);
// contexts_stay: contexts belong to the process (HIP), and do not count as leaked.
extern bool contexts_stay;
Function *function_find(Lock &lock, Function *f);
int launch_prepare(Context *c, Function *f, const unsigned grid[3], const unsigned block[3],
                   size_t shared, void **params, void **extra, Node *out);
int launch(Context *c, Function *f, const unsigned grid[3], const unsigned block[3], size_t shared,
           void **params, void **extra, Stream *s, bool cooperative);
int kernel_run(Context *c, const Node &n);
int occupancy(const Function *f, int block, size_t dynamic);
// occupancy_best finds the size of blocks, a multiple of step if it can be, with which most threads fit.
int occupancy_best(const Function *f, const std::function<size_t(int)> &dynamic, int limit, int step,
                   int *grid, int *block);

// limits.cpp: the properties of the devices
namespace limits {
const unsigned threads = 1024, block[3] = {1024, 1024, 64}, grid[3] = {0x7fffffff, 65535, 65535};
const size_t shared = 48 << 10, shared_optin = 163 << 10, shared_sm = 164 << 10, reserved = 1 << 10;
const int multiprocessors = 4, threads_sm = 2048, blocks_sm = 32, registers = 65536;
} // namespace limits

} // namespace sim

#endif
