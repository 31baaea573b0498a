// run.h: the interface between a program and the executor: thread indices, barriers, warps, and the
// table of kernels. This text is in front of every program, with exec.h's part of csrc/host/host.h.

typedef unsigned char __sim_u8;
typedef unsigned short __sim_u16;
typedef unsigned int __sim_u32;
typedef unsigned long long __sim_u64;
typedef long long __sim_i64;

struct concord_ctx;
struct __sim_calls {
  void (*barrier)(concord_ctx *, __sim_u32);
  void *print;
};
struct __sim_grid {
  __sim_u32 dim, reserved;
  unsigned long global[3], local[3], offset[3], groups[3];
};
struct concord_ctx {
  const __sim_grid *grid;
  const __sim_calls *calls;
  void *local;
  unsigned long local_bytes, group[3], item[3];
};

#ifndef __SIM_WARP
#define __SIM_WARP 32
#endif
enum { __SIM_MOST = 1024, __SIM_WARPS = __SIM_MOST / __SIM_WARP };
enum { __SIM_IDLE = 3 }; // rounds without progress after which the block is considered stuck
enum { __SIM_PLAIN = 1, __SIM_ASSERT = 2, __SIM_DIVERGED = 3 };
enum __sim_op {
  __SIM_SYNC,
  __SIM_SHUFFLE,
  __SIM_BALLOT,
  __SIM_ADD,
  __SIM_MIN,
  __SIM_MAX,
  __SIM_SMIN,
  __SIM_SMAX,
  __SIM_AND,
  __SIM_OR,
  __SIM_XOR,
  __SIM_MATCH
};

struct __sim_index {
  unsigned x, y, z;
};

// __sim_item is one thread of a block, on its own stack.
struct __sim_item {
  __sim_index thread, block, block_dim, grid_dim;
  concord_ctx *ctx;
  unsigned number, lane, warp;
  // values that it exchanges with its warp
  bool waiting;
  __sim_op op;
  unsigned from;
  __sim_u64 mask, in, out;
};

// __sim_block is the block that this thread of the host runs.
struct __sim_block {
  unsigned items, exited, arrived, turn, site;
  bool ended;
  __sim_u64 progress; // counts events that let other threads continue
  int sum, sum_out;
  __sim_u64 live[__SIM_WARPS];
  __sim_item *item[__SIM_MOST];
};
static thread_local __sim_item *__sim_me;
static thread_local __sim_block __sim_b;
static volatile int __sim_trap;

[[noreturn, gnu::noipa]] static void __sim_stop(int why) {
  __sim_trap = why;
  if (why == __SIM_DIVERGED && __sim_b.items > 1)
    __sim_me->ctx->calls->barrier(__sim_me->ctx, 2); // not the site at which the other threads wait
  __builtin_trap();
}

// __sim_wait lets all other threads of the block run until they wait. Only this function switches
// between threads, so a kernel that does not call it, directly or indirectly, needs no stack per
// thread.
extern "C" __attribute__((noinline, visibility("hidden"))) void __sim_wait() {
  __sim_item *me = __sim_me;
  me->ctx->calls->barrier(me->ctx, 1);
  __sim_me = me;
}

static void __sim_exit() {
  __sim_item *me = __sim_me;
  __sim_b.exited++;
  __sim_b.progress++;
  __sim_b.live[me->warp] &= ~(1ull << me->lane);
  if (__sim_b.arrived > 0)
    __sim_stop(__SIM_DIVERGED);
  // All threads leave in the same round, which thread 0 begins.
  while (me->number == 0 ? __sim_b.exited < __sim_b.items : !__sim_b.ended)
    __sim_wait();
  __sim_b.ended = true;
}

static int __sim_barrier(unsigned site, int value) {
  __sim_block &b = __sim_b;
  b.progress++;
  if (b.exited > 0 || (b.arrived > 0 && b.site != site))
    __sim_stop(__SIM_DIVERGED);
  b.site = site;
  b.sum = (b.arrived == 0 ? 0 : b.sum) + value;
  unsigned turn = b.turn;
  if (++b.arrived == b.items) {
    b.arrived = 0;
    b.turn++;
    b.sum_out = b.sum;
  } else {
    for (int idle = 0; b.turn == turn;) {
      __sim_u64 before = b.progress;
      __sim_wait();
      idle = b.progress == before ? idle + 1 : 0;
      if (b.turn == turn && idle == __SIM_IDLE)
        __sim_stop(__SIM_DIVERGED);
    }
  }
  return b.sum_out;
}

static __sim_u64 __sim_combine(__sim_op op, __sim_u64 a, __sim_u64 b) {
  switch (op) {
  case __SIM_BALLOT:
  case __SIM_OR:
    return a | b;
  case __SIM_ADD:
    return a + b;
  case __SIM_MIN:
    return (__sim_u32)a < (__sim_u32)b ? a : b;
  case __SIM_MAX:
    return (__sim_u32)a > (__sim_u32)b ? a : b;
  case __SIM_SMIN:
    return (int)a < (int)b ? a : b;
  case __SIM_SMAX:
    return (int)a > (int)b ? a : b;
  case __SIM_AND:
    return a & b;
  case __SIM_XOR:
    return a ^ b;
  default:
    return a;
  }
}

// __sim_complete finishes an exchange if all its lanes are there. A mask of 0 means the active
// lanes: all lanes, or with force those that have arrived.
static bool __sim_complete(bool force) {
  __sim_item *me = __sim_me, **warp = __sim_b.item + me->warp * __SIM_WARP, *in[__SIM_WARP];
  __sim_u64 live = __sim_b.live[me->warp], lanes = me->mask ? me->mask & live : live;
  unsigned n = 0;
  for (unsigned i = 0; i < __SIM_WARP; i++) {
    if (!(lanes >> i & 1))
      continue;
    __sim_item *t = warp[i];
    if (t && t->waiting && t->op == me->op && t->mask == me->mask)
      in[n++] = t;
    else if (force)
      lanes &= ~(1ull << i);
    else
      return false;
  }
  __sim_u64 all = in[0]->in;
  for (unsigned i = 1; i < n; i++)
    all = __sim_combine(me->op, all, in[i]->in);
  for (unsigned i = 0; i < n; i++) {
    __sim_item *t = in[i];
    t->out = all;
    if (t->op == __SIM_SHUFFLE)
      t->out = lanes >> t->from & 1 ? warp[t->from]->in : t->in;
    if (t->op == __SIM_MATCH) {
      t->out = 0;
      for (unsigned k = 0; k < n; k++)
        t->out |= in[k]->in == t->in ? 1ull << in[k]->lane : 0;
    }
  }
  for (unsigned i = 0; i < n; i++)
    in[i]->waiting = false;
  __sim_b.progress++;
  return true;
}

static __sim_u64 __sim_exchange(__sim_op op, __sim_u64 mask, __sim_u64 in, unsigned from) {
  __sim_item *me = __sim_me;
  __sim_b.progress++;
  if (mask && !(mask >> me->lane & 1))
    __sim_stop(__SIM_DIVERGED);
  me->op = op;
  me->mask = mask;
  me->in = in;
  me->from = from;
  me->waiting = true;
  for (int idle = 0; me->waiting && !__sim_complete(false);) {
    __sim_u64 before = __sim_b.progress;
    __sim_wait();
    idle = __sim_b.progress == before ? idle + 1 : 0;
    if (me->waiting && idle > 0 && !mask)
      __sim_complete(true);
    else if (me->waiting && idle == __SIM_IDLE)
      __sim_stop(__SIM_DIVERGED);
  }
  return me->out;
}

static void __sim_dynamic(void *block); // sets the program's pointers to dynamic shared memory

static void __sim_begin(__sim_item *me, concord_ctx *ctx, unsigned x, unsigned y, unsigned z) {
  const unsigned long *l = ctx->grid->local, *g = ctx->grid->groups;
  me->thread = {x, y, z};
  me->block = {(unsigned)ctx->group[0], (unsigned)ctx->group[1], (unsigned)ctx->group[2]};
  me->block_dim = {(unsigned)l[0], (unsigned)l[1], (unsigned)l[2]};
  me->grid_dim = {(unsigned)g[0], (unsigned)g[1], (unsigned)g[2]};
  me->ctx = ctx;
  me->number = (z * me->block_dim.y + y) * me->block_dim.x + x;
  me->lane = me->number % __SIM_WARP;
  me->warp = me->number / __SIM_WARP;
  me->waiting = false;
  __sim_me = me;
  __sim_dynamic(ctx->local);
}

// __sim_enter makes a thread part of its block; thread 0 comes first.
static void __sim_enter(__sim_item *me) {
  __sim_block &b = __sim_b;
  if (me->number == 0) {
    b.items = me->block_dim.x * me->block_dim.y * me->block_dim.z;
    b.exited = b.arrived = 0;
    b.ended = false;
    for (unsigned i = 0; i < b.items; i++)
      b.item[i] = nullptr; // the thread has not begun
    for (unsigned i = 0; i < b.items; i += __SIM_WARP)
      b.live[i / __SIM_WARP] =
          b.items - i >= __SIM_WARP ? ~0ull >> (64 - __SIM_WARP) : (1ull << (b.items - i)) - 1;
  }
  b.item[me->number] = me;
}

struct __sim_param {
  __sim_u32 bytes, align;
};
struct __sim_entry {
  __sim_u32 params;
  const __sim_param *param;
  void (*run_item)(concord_ctx *, void *const *), (*run_block)(concord_ctx *, void *const *);
  const void *address;
};
struct __sim_table_type {
  __sim_u32 abi, count;
  const __sim_entry *entries;
  volatile int *trap;
};

template <unsigned... I> struct __sim_list {};
template <unsigned N, unsigned... I> struct __sim_count : __sim_count<N - 1, N - 1, I...> {};
template <unsigned... I> struct __sim_count<0, I...> { typedef __sim_list<I...> list; };
template <class T> struct __sim_bare { typedef T type; };
template <class T> struct __sim_bare<T &> { typedef T type; };

// __sim_kernel<K> calls the kernel K with arguments from an array of addresses.
template <auto K> struct __sim_kernel;
template <class... A, void (*K)(A...)> struct __sim_kernel<K> {
  static constexpr __sim_param params[sizeof...(A) + 1] = {{sizeof(A), alignof(A)}..., {0, 1}};
  template <unsigned... I> static void invoke(void *const *args, __sim_list<I...>) {
    (void)args;
    K(*(typename __sim_bare<A>::type *)args[I]...);
  }
  static void run_item(concord_ctx *ctx, void *const *args) {
    __sim_item me;
    __sim_begin(&me, ctx, (unsigned)ctx->item[0], (unsigned)ctx->item[1], (unsigned)ctx->item[2]);
    __sim_enter(&me);
    invoke(args, typename __sim_count<sizeof...(A)>::list());
    __sim_exit();
  }
  static void run_block(concord_ctx *ctx, void *const *args) {
    const unsigned long *l = ctx->grid->local;
    __sim_item me;
    for (unsigned z = 0; z < l[2]; z++)
      for (unsigned y = 0; y < l[1]; y++)
        for (unsigned x = 0; x < l[0]; x++) {
          __sim_begin(&me, ctx, x, y, z);
          invoke(args, typename __sim_count<sizeof...(A)>::list());
        }
  }
  static constexpr __sim_entry entry() {
    return {sizeof...(A), params, run_item, run_block, (const void *)K};
  }
};

#define __global__ __attribute__((visibility("default"), noipa, used))
#define __device__ __attribute__((visibility("default")))
#define __host__
#define __constant__ __attribute__((visibility("default")))
#define __managed__ __attribute__((visibility("default")))
#define __shared__ static thread_local
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __inline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __device_builtin__
