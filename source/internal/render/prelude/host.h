// host.h: the work item's functions on the host: ids, barriers, printf, asynchronous copies, and
// the table of kernels that the executor reads (see abi.h and csrc/host/host.h).

#define CC_KERNEL_FN CC_ALWAYS

namespace {

struct cc_event { cc_uint none; };

// A program is a struct derived from cc_item whose members are its functions. One object serves a
// whole group of a kernel without barriers (the loop below moves it from item to item, and the
// compiler keeps it in registers), or one item that has a fiber.
struct cc_item {
  concord_ctx *cc_ctx;
  concord_grid cc_grid; // a copy, as is cc_group, so that the compiler knows that no store of the kernel changes it
  cc_size cc_group[3];
  cc_size cc_lid[3]; // local id
  cc_size cc_gid[3]; // global id

  CC_ALWAYS void cc_enter(concord_ctx *ctx) {
    // Without a loop: a loop would keep the object in memory until it is unrolled, which is too
    // late for the optimizations of the item loop.
    cc_ctx = ctx;
    cc_grid = *ctx->grid;
    cc_group[0] = ctx->group[0];
    cc_group[1] = ctx->group[1];
    cc_group[2] = ctx->group[2];
    cc_lid[0] = ctx->item[0];
    cc_lid[1] = ctx->item[1];
    cc_lid[2] = ctx->item[2];
    cc_gid[0] = cc_group[0] * cc_grid.local[0] + cc_grid.offset[0] + cc_lid[0];
    cc_gid[1] = cc_group[1] * cc_grid.local[1] + cc_grid.offset[1] + cc_lid[1];
    cc_gid[2] = cc_group[2] * cc_grid.local[2] + cc_grid.offset[2] + cc_lid[2];
  }
  // Whether all ids of the launch fit an int. The sums cannot overflow: the executor refuses sizes
  // and offsets of more than 63 bits.
  CC_ALWAYS bool cc_small() const {
    const concord_grid &g = cc_grid;
    return ((g.offset[0] + g.global[0]) | (g.offset[1] + g.global[1]) | (g.offset[2] + g.global[2])) <= 0x7fffffff;
  }
  CC_ALWAYS cc_uint cc_get_work_dim() const { return cc_grid.dim; }
  CC_ALWAYS cc_size cc_get_global_id(cc_uint d) const { return d < 3 ? cc_gid[d] : 0; }
  CC_ALWAYS cc_size cc_get_local_id(cc_uint d) const { return d < 3 ? cc_lid[d] : 0; }
  CC_ALWAYS cc_size cc_get_group_id(cc_uint d) const { return d < 3 ? cc_group[d] : 0; }
  CC_ALWAYS cc_size cc_get_global_size(cc_uint d) const { return d < 3 ? cc_grid.global[d] : 1; }
  CC_ALWAYS cc_size cc_get_local_size(cc_uint d) const { return d < 3 ? cc_grid.local[d] : 1; }
  CC_ALWAYS cc_size cc_get_num_groups(cc_uint d) const { return d < 3 ? cc_grid.groups[d] : 1; }
  CC_ALWAYS cc_size cc_get_global_offset(cc_uint d) const { return d < 3 ? cc_grid.offset[d] : 0; }

//@ cc_box cc_run cc_begin CC_ITEMS CC_EACH
  // cc_box is the range of items that execute a region, as local ids: the whole group without the
  // items that guards exclude. It continues into the groups that run in the same call.
  template <class I> struct cc_box {
    cc_long base[3], lo[3], hi[3];
    CC_ALWAYS explicit cc_box(const cc_item &p) {
      const concord_grid &g = p.cc_grid;
      base[0] = cc_long(p.cc_group[0] * g.local[0] + g.offset[0]);
      base[1] = cc_long(p.cc_group[1] * g.local[1] + g.offset[1]);
      base[2] = cc_long(p.cc_group[2] * g.local[2] + g.offset[2]);
      lo[0] = lo[1] = lo[2] = 0;
      hi[0] = cc_long(g.local[0] * (p.cc_ctx->more[0] + 1));
      hi[1] = cc_long(g.local[1] * (p.cc_ctx->more[1] + 1));
      hi[2] = cc_long(g.local[2] * (p.cc_ctx->more[2] + 1));
    }
    // The bound that an id is compared with, clamped: ids are between 0 and 2^31, so values beyond
    // 2^62 make no difference.
    template <class T> static CC_ALWAYS cc_long limit(T u) {
      const cc_long most = cc_long(1) << 62;
      if (cc_is<T>::sign)
        return cc_long(u) > most ? most : cc_long(u) < -most ? -most : cc_long(u);
      return cc_ulong(u) > cc_ulong(most) ? most : cc_long(u);
    }
    CC_ALWAYS void below(int d, bool global, cc_long u) {
      u -= global ? base[d] : 0;
      hi[d] = hi[d] < u ? hi[d] : u;
    }
    CC_ALWAYS void from(int d, bool global, cc_long u) {
      u -= global ? base[d] : 0;
      lo[d] = lo[d] > u ? lo[d] : u;
    }
  };

  // cc_run is a sequence of items of one row in which straight indices do not wrap: int or uint
  // values that grow by a constant from item to item, and are counted in 64 bits.
  template <class I> struct cc_run {
    I x, i, n; // local and global id of the first item; number of items
    cc_size row;
    // The first value of a straight index. The run ends before the one that would wrap.
    template <cc_long Step, class T> CC_ALWAYS cc_long from(T first) {
      const cc_long at = cc_long(first), most = cc_is<T>::sign ? 0x7fffffff : 0xffffffff,
                    least = cc_is<T>::sign ? -most - 1 : 0,
                    more = Step > 0 ? (most - at) / Step : (at - least) / -Step;
      n = cc_long(n) - 1 > more ? I(more + 1) : n;
      return at;
    }
    CC_ALWAYS void most(I items) { n = n < items ? n : items; }
  };

//@ cc_rounds
  // cc_rounds is an interchanged loop over the items of a run. The items lo to hi are in the
  // current round. The loop's variable is k for item lo and grows by Step from item to item. Signs:
  // a condition converts the variable between signed and unsigned.
  template <class I, class T, int Step, bool Signs> struct cc_rounds {
    I lo, hi, rest, end; // the items from rest to end are to be run one by one later
    T k, later;          // the value of k for item rest
    CC_ALWAYS cc_rounds(I n, T first) : lo(0), hi(n), rest(n), end(n), k(first), later(first) {}
    CC_ALWAYS T at(I item) const { return T(k + T(item - lo) * T(Step)); }
    // begin returns false when no item is left. If k wraps between lo and hi, cut would be wrong,
    // and the items run one after the other.
    CC_ALWAYS bool begin() {
      if (lo >= hi) {
        if (rest >= end)
          return false;
        lo = rest;
        hi = ++rest;
        k = later;
        later = T(later + T(Step));
      } else if (!straight(k)) {
        rest = lo + 1;
        end = hi;
        later = T(k + T(Step));
        hi = rest;
      }
      return true;
    }
    CC_ALWAYS bool straight(T first) const {
      const T last = T(first + T(hi - 1 - lo) * T(Step));
      return (Step > 0 ? last >= first : last <= first) && !(Signs && T(last ^ first) >> (8 * sizeof(T) - 1) != 0);
    }
    // whole reports whether the next count rounds have the same items. If k does not wrap during
    // them, its values in the rounds between are between those of the first and the last.
    template <class N, class F> CC_ALWAYS bool whole(int count, const N &next, const F &in) const {
      if (lo >= hi)
        return false;
      T n = next(k);
      const bool up = n > k;
      bool same = n != k;
      for (int u = 2; u < count; u++) {
        const T was = n;
        n = next(n);
        same = same && n != was && (n > was) == up;
      }
      return same && straight(n) && !(Signs && T(n ^ k) >> (8 * sizeof(T) - 1) != 0) && in(n) &&
             in(T(n + T(hi - 1 - lo) * T(Step)));
    }
    // far reports that a round's memory does not begin where the previous round's ended.
    template <class N> CC_ALWAYS bool far(const N &next) const {
      const T n = next(k);
      return (n > k ? n - k : k - n) > 2 * T(hi - lo);
    }
    // cut removes the items for which a condition is false. If it is true for any item, it is true
    // at one end of the range.
    template <class F> CC_ALWAYS void cut(const F &in) {
      if (lo >= hi)
        return;
      const bool low = in(k);
      if (low == in(at(hi - 1))) {
        hi = low ? hi : lo;
        return;
      }
      I l = lo, h = hi - 1;
      while (h - l > 1) {
        const I mid = l + (h - l) / 2;
        if (in(at(mid)) == low)
          l = mid;
        else
          h = mid;
      }
      if (low) {
        hi = h;
        return;
      }
      k = at(h);
      lo = h;
    }
    CC_ALWAYS cc_run<I> run(const cc_run<I> &r, I from) const { return {r.x + from, r.i + from, hi - from, r.row}; }
  };
//@ cc_box cc_run cc_begin CC_ITEMS CC_EACH
  template <class I> CC_ALWAYS void cc_begin(const cc_run<I> &r) {
    cc_lid[0] = cc_size(r.x);
    cc_gid[0] = cc_size(r.i);
  }

//@
  CC_ALWAYS cc_size cc_group_items() const {
    return cc_grid.local[0] * cc_grid.local[1] * cc_grid.local[2];
  }

  // cc_local is the kernel's block of local variables, one per group.
  template <class L> CC_FN L &cc_local() const { return *static_cast<L *>(cc_ctx->local); }

  // All items of a group run on one thread, so a barrier needs no fence for them; the fences are
  // for atomics between groups.
  CC_FN void cc_barrier(cc_uint, cc_uint site) const {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    cc_ctx->calls->barrier(cc_ctx, site);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
  }
  CC_FN void cc_mem_fence(cc_uint) const { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
  CC_FN void cc_read_mem_fence(cc_uint) const { __atomic_thread_fence(__ATOMIC_ACQUIRE); }
  CC_FN void cc_write_mem_fence(cc_uint) const { __atomic_thread_fence(__ATOMIC_RELEASE); }

//@ cc_async_work_group_copy cc_async_work_group_strided_copy cc_wait_group_events cc_prefetch
  // Each item copies its share at once; waiting is a barrier.
  template <class T>
  CC_FN cc_event cc_copy_(T *dst, const T *src, cc_size n, cc_size dstep, cc_size sstep) const {
    const cc_size *l = cc_grid.local, items = l[0] * l[1] * l[2];
    for (cc_size i = cc_lid[0] + l[0] * (cc_lid[1] + l[1] * cc_lid[2]); i < n; i += items)
      dst[i * dstep] = src[i * sstep];
    return {0};
  }
  template <class T>
  CC_FN cc_event cc_async_work_group_copy(T *dst, const cc_id<T> *src, cc_size n, cc_event) const {
    return cc_copy_<T>(dst, src, n, 1, 1);
  }
  // The stride applies to the global side, which is the one outside of the local block.
  template <class T>
  CC_FN cc_event cc_async_work_group_strided_copy(T *dst, const cc_id<T> *src, cc_size n,
                                                  cc_size stride, cc_event) const {
    const char *d = (const char *)dst, *l = (const char *)cc_ctx->local;
    bool to_local = d >= l && d < l + cc_ctx->local_bytes;
    return cc_copy_<T>(dst, src, n, to_local ? 1 : stride, to_local ? stride : 1);
  }
  CC_FN void cc_wait_group_events(cc_int, const cc_event *, cc_uint site) const { cc_barrier(0, site); }
  template <class T> CC_FN void cc_prefetch(const T *, cc_size) const {}

//@ cc_printf
  // printf collects its arguments; the executor knows the formats.
  template <class T> static CC_FN concord_value cc_value(const T &x) {
    typedef cc_lane_of<T> L;
    int kind = cc_is<L>::fp ? CONCORD_VALUE_FLOAT : cc_is<L>::sign ? CONCORD_VALUE_SIGNED : CONCORD_VALUE_UNSIGNED;
    return {cc_uchar(kind), cc_uchar(cc_lane_<T>::n), sizeof(L), 0, &x};
  }
  static CC_FN concord_value cc_value(const char *const &s) { return {CONCORD_VALUE_STRING, 1, 8, 0, s}; }
  static CC_FN concord_value cc_value(char *const &s) { return {CONCORD_VALUE_STRING, 1, 8, 0, s}; }
  static CC_FN concord_value cc_value(const cc_char *const &s) { return {CONCORD_VALUE_STRING, 1, 8, 0, s}; }
  static CC_FN concord_value cc_value(cc_char *const &s) { return {CONCORD_VALUE_STRING, 1, 8, 0, s}; }
  template <class T> static CC_FN concord_value cc_value(T *const &p) {
    return {CONCORD_VALUE_POINTER, 1, 8, 0, (const void *)p};
  }
  template <class... A> CC_FN cc_int cc_printf(const void *format, const A &...a) const {
    const concord_value v[sizeof...(A) + 1] = {cc_value(a)...};
    return cc_ctx->calls->print(cc_ctx, static_cast<const char *>(format), v, sizeof...(A));
  }
//@
};

// cc_entry<&P::kernel> unpacks the arguments by the kernel's own parameter types.
template <int... I> struct cc_seq {};
template <int N, int... I> struct cc_seq_ : cc_seq_<N - 1, N - 1, I...> {};
template <int... I> struct cc_seq_<0, I...> { typedef cc_seq<I...> type; };

template <class M, M F> struct cc_entry;
template <class P, class... A, void (P::*F)(A...)> struct cc_entry<void (P::*)(A...), F> {
  static constexpr cc_uint count = sizeof...(A);
  static constexpr uint32_t bytes[sizeof...(A) + 1] = {sizeof(A)...};

  // One item, on its fiber.
  template <int... I> static CC_ALWAYS void item(concord_ctx *ctx, void *const *args, cc_seq<I...>) {
    P p;
    p.cc_enter(ctx);
    (p.*F)(*static_cast<A *>(args[I])...);
  }
  // All items of a group. The arguments are loaded once, before the kernel can write to memory. Most
  // kernels keep their id in an int: where all ids of the launch fit one, I is int, the conversion to
  // size_t and back disappears, and the compiler sees consecutive addresses. Both ids are counted,
  // since computing one from the other would hide the consecutive addresses from the compiler.
  template <class I> static CC_ALWAYS void loop(P p, A... a) {
    const concord_grid &g = p.cc_grid;
    const I gx = I(p.cc_gid[0]), gy = I(p.cc_gid[1]), gz = I(p.cc_gid[2]);
    const I ex = gx + I(g.local[0]), ey = gy + I(g.local[1]), ez = gz + I(g.local[2]);
    for (I k = gz, z = 0; k < ez; k++, z++)
      for (I j = gy, y = 0; j < ey; j++, y++)
        for (I i = gx, x = 0; i < ex; i++, x++) {
          p.cc_lid[0] = cc_size(x);
          p.cc_lid[1] = cc_size(y);
          p.cc_lid[2] = cc_size(z);
          p.cc_gid[0] = cc_size(i);
          p.cc_gid[1] = cc_size(j);
          p.cc_gid[2] = cc_size(k);
          (p.*F)(a...);
        }
  }
  // Launches with ids beyond 2^31 are rare: their copy of the kernel is optimized for size.
  __attribute__((cold, noinline)) static void big(P p, A... a) { loop<cc_size>(p, a...); }
  template <int... I> static CC_ALWAYS void group(concord_ctx *ctx, void *const *args, cc_seq<I...>) {
    P p;
    p.cc_enter(ctx);
    if (p.cc_small())
      loop<cc_int>(p, *static_cast<A *>(args[I])...);
    else
      big(p, *static_cast<A *>(args[I])...);
  }
  template <bool Fibers> static void run(concord_ctx *ctx, void *const *args) {
    if constexpr (Fibers)
      item(ctx, args, typename cc_seq_<sizeof...(A)>::type());
    else
      group(ctx, args, typename cc_seq_<sizeof...(A)>::type());
  }
};

} // namespace

// The variables that items keep from one region to the next are on the stack, in memory that
// nothing else points to.
#define CC_KEEP(at) at = (decltype(at))__builtin_alloca_with_align(sizeof(*at) * cc_group_items(), 512)
#define CC_SMALL (sizeof(cc_I) == 4) // all ids fit an int
#define CC_ITEM __attribute__((always_inline))
// For the loops of kernels that need no permutation of lanes: other kernels get vectors of 256 bits, since GCC
// 12 makes mistakes in permutations of 512.
#if defined(__AVX512F__) && !defined(__clang__)
#define CC_LONG __attribute__((target("prefer-vector-width=512")))
#else
#define CC_LONG
#endif

//@ CC_ITEMS CC_EACH
// CC_ITEMS(b, r) repeats the next statement for the runs r of a box b, row by row. It is for ks_ functions, of
// which there are two, as for loop of cc_entry: their cc_I is explained there. The limits of an empty box may
// not fit an int.
#define CC_ITEMS(b, r) \
  if (b.lo[0] < b.hi[0] && b.lo[1] < b.hi[1] && b.lo[2] < b.hi[2]) \
    for (cc_I cc_z = cc_I(b.lo[2]), cc_z1 = cc_I(b.hi[2]); cc_z < cc_z1; cc_z++) \
      for (cc_I cc_y = cc_I(b.lo[1]), cc_y1 = cc_I(b.hi[1]); cc_y < cc_y1; cc_y++) \
        if (cc_lid[1] = cc_size(cc_y), cc_lid[2] = cc_size(cc_z), cc_gid[1] = cc_size(cc_I(b.base[1]) + cc_y), \
            cc_gid[2] = cc_size(cc_I(b.base[2]) + cc_z), true) \
          for (cc_run<cc_I> r = {cc_I(b.lo[0]), cc_I(b.base[0]) + cc_I(b.lo[0]), cc_I(b.hi[0]) - cc_I(b.lo[0]), \
                                 (cc_size(cc_z) * cc_grid.local[1] + cc_size(cc_y)) * cc_grid.local[0]}; \
               r.x < cc_I(b.hi[0]); r.x += r.n, r.i += r.n, r.n = cc_I(b.hi[0]) - r.x) \
            if (cc_begin(r), true)

// CC_EACH(r, apart) repeats the next statement for the items of a run: cc_it is the index of the item in its
// groups, cc_k in the run. It counts the global id, for which compilers can prove that it does not wrap as an
// int; for the local id they cannot. apart is CC_APART if nothing is carried from one item to the next: then GCC
// neither compares the addresses of the buffers nor writes a second loop for those that overlap.
#ifdef __clang__
#define CC_APART
#else
#define CC_APART _Pragma("GCC ivdep")
#endif
#define CC_EACH(r, apart) \
  if (cc_I cc_i = r.i, cc_end = r.i + r.n; true) \
    if (cc_size cc_x = cc_size(r.x), cc_it = r.row + cc_x; true) \
      apart for (cc_long cc_k = 0; cc_i < cc_end; cc_i++, cc_x++, cc_it++, cc_k++) \
        if (cc_lid[0] = cc_x, cc_gid[0] = cc_size(cc_i), true)
//@ CC_ONE_BY_ONE
// CC_ONE_BY_ONE(p) repeats the next statement for every item of the groups that run in this call.
#define CC_ONE_BY_ONE(p) \
  if (const cc_size *n = p.cc_grid.local, *more = p.cc_ctx->more, i = p.cc_gid[0], j = p.cc_gid[1], k = p.cc_gid[2]; true) \
    for (p.cc_lid[2] = 0; p.cc_lid[2] < n[2] * (more[2] + 1); p.cc_lid[2]++) \
      for (p.cc_lid[1] = 0; p.cc_lid[1] < n[1] * (more[1] + 1); p.cc_lid[1]++) \
        for (p.cc_lid[0] = 0; p.cc_lid[0] < n[0] * (more[0] + 1) && \
                              (p.cc_gid[0] = i + p.cc_lid[0], p.cc_gid[1] = j + p.cc_lid[1], p.cc_gid[2] = k + p.cc_lid[2], true); \
             p.cc_lid[0]++)
//@
#define CC_REGION_END __atomic_signal_fence(__ATOMIC_SEQ_CST)

#define CC_PROGRAM_BEGIN \
  namespace { \
  constexpr concord_kernel cc_kernels[] = {
#define CC_KERNEL(name, P, k, fibers, local_bytes) \
  {name, \
   (fibers) ? CONCORD_KERNEL_FIBERS : 0u, \
   cc_entry<decltype(&P::k), &P::k>::count, \
   cc_entry<decltype(&P::k), &P::k>::bytes, \
   local_bytes, \
   cc_entry<decltype(&P::k), &P::k>::template run<(fibers) != 0>, \
   0},
#define CC_SPLIT_KERNEL(name, k, flags, local_bytes, item_bytes) \
  {name, flags, sizeof(cc_bytes_##k) / sizeof(uint32_t) - 1, cc_bytes_##k, local_bytes, cc_run_##k, item_bytes},
#define CC_PROGRAM_END \
  {nullptr, 0, 0, nullptr, 0, nullptr, 0} \
  } \
  ; \
  } \
  extern "C" __attribute__((visibility("default"))) const concord_module concord_program; \
  const concord_module concord_program = {CONCORD_HOST_ABI, sizeof(cc_kernels) / sizeof(cc_kernels[0]) - 1, cc_kernels};
