// gpu.h: the work item's functions on CUDA and HIP: ids, barriers, asynchronous copies, sub-groups.
// A group is a block, an item a thread. All ids are in registers of the GPU, so that nothing is
// stored and every function is static.

namespace {

struct cc_event { cc_uint none; };

// The memory of a launch for local pointer parameters, which are offsets in it.
extern __shared__ __attribute__((aligned(128))) cc_uchar cc_dynamic[];

struct cc_item {
#define CC_ID(name, type, others, X, Y, Z) \
  static CC_INLINE type cc_##name(cc_uint d) { return d == 0 ? (X) : d == 1 ? (Y) : d == 2 ? (Z) : (others); }
  CC_ID(get_local_id, cc_size, 0, threadIdx.x, threadIdx.y, threadIdx.z)
  CC_ID(get_local_size, cc_size, 1, blockDim.x, blockDim.y, blockDim.z)
  CC_ID(get_group_id, cc_size, 0, blockIdx.x, blockIdx.y, blockIdx.z)
  CC_ID(get_num_groups, cc_size, 1, gridDim.x, gridDim.y, gridDim.z)
  CC_ID(get_global_id, cc_size, 0, cc_size(blockIdx.x) * blockDim.x + threadIdx.x,
        cc_size(blockIdx.y) * blockDim.y + threadIdx.y, cc_size(blockIdx.z) * blockDim.z + threadIdx.z)
  CC_ID(get_global_size, cc_size, 1, cc_size(gridDim.x) * blockDim.x, cc_size(gridDim.y) * blockDim.y,
        cc_size(gridDim.z) * blockDim.z)
#undef CC_ID
  static CC_INLINE cc_size cc_get_global_offset(cc_uint) { return 0; }
  // A launch always has three dimensions here; the dimensions in use are those up to the last with
  // more than one item.
  static CC_INLINE cc_uint cc_get_work_dim() {
    return cc_get_global_size(2) > 1 ? 3 : cc_get_global_size(1) > 1 ? 2 : 1;
  }

  static CC_INLINE void cc_barrier(cc_uint, cc_uint) { __syncthreads(); }
  static CC_INLINE void cc_mem_fence(cc_uint flags) {
    if (flags & CC_GLOBAL_MEM_FENCE)
      __threadfence();
    else
      __threadfence_block();
  }
  static CC_INLINE void cc_read_mem_fence(cc_uint flags) { cc_mem_fence(flags); }
  static CC_INLINE void cc_write_mem_fence(cc_uint flags) { cc_mem_fence(flags); }

  // The index of the item in the order of the warps.
  static CC_INLINE cc_uint cc_place_() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
  static CC_INLINE cc_uint cc_items_() { return blockDim.x * blockDim.y * blockDim.z; }

  // Each item copies its share at once; waiting is a barrier.
  template <class T>
  static CC_FN cc_event cc_copy_(T *dst, const T *src, cc_size n, cc_size dstep, cc_size sstep) {
    for (cc_size i = cc_place_(); i < n; i += cc_items_())
      dst[i * dstep] = src[i * sstep];
    return {0};
  }
  template <class T>
  static CC_FN cc_event cc_async_work_group_copy(T *dst, const cc_id<T> *src, cc_size n, cc_event) {
    return cc_copy_<T>(dst, src, n, 1, 1);
  }
  // The stride applies to the global side; the renderer knows which one that is.
  template <class T>
  static CC_FN cc_event cc_strided_to_local(T *dst, const cc_id<T> *src, cc_size n, cc_size stride, cc_event) {
    return cc_copy_<T>(dst, src, n, 1, stride);
  }
  template <class T>
  static CC_FN cc_event cc_strided_to_global(T *dst, const cc_id<T> *src, cc_size n, cc_size stride, cc_event) {
    return cc_copy_<T>(dst, src, n, stride, 1);
  }
  static CC_INLINE void cc_wait_group_events(cc_int, const cc_event *, cc_uint) { __syncthreads(); }
  template <class T> static CC_INLINE void cc_prefetch(const T *, cc_size) {}

  // OpenCL's printf returns 0 or -1; the GPU's returns a count.
  static CC_INLINE cc_int cc_printed(cc_int n) { return n < 0 ? -1 : 0; }

  // ---- sub-groups: warps ----

  static CC_INLINE cc_uint cc_get_max_sub_group_size() { return warpSize; }
  static CC_INLINE cc_uint cc_get_sub_group_id() { return cc_place_() / warpSize; }
  static CC_INLINE cc_uint cc_get_num_sub_groups() { return (cc_items_() + warpSize - 1) / warpSize; }
  static CC_INLINE cc_uint cc_get_enqueued_num_sub_groups() { return cc_get_num_sub_groups(); }
  static CC_INLINE cc_uint cc_get_sub_group_local_id() { return cc_place_() % warpSize; }
  // The last sub-group of a group has the remaining items.
  static CC_INLINE cc_uint cc_get_sub_group_size() {
    cc_uint left = cc_items_() - cc_get_sub_group_id() * warpSize;
    return left < cc_uint(warpSize) ? left : cc_uint(warpSize);
  }
  static CC_INLINE cc_uint cc_mask_() { return ~cc_uint(0) >> ((32 - cc_get_sub_group_size()) & 31); }

  static CC_INLINE void cc_sub_group_barrier(cc_uint) { cc_w_barrier(cc_mask_()); }
  static CC_INLINE cc_int cc_sub_group_all(cc_int x) { return cc_w_all(cc_mask_(), x) != 0; }
  static CC_INLINE cc_int cc_sub_group_any(cc_int x) { return cc_w_any(cc_mask_(), x) != 0; }

  // Every shuffle moves an int: two of them for 8 bytes, a part of one for less than 4.
  template <class T> static CC_FN T cc_sub_group_shuffle(T x, cc_uint lane) {
    cc_int w[(sizeof(T) + 3) / 4] = {0};
    CC_COPY(w, &x, sizeof(T));
    for (cc_int &i : w)
      i = cc_w_shuffle(cc_mask_(), i, cc_int(lane));
    CC_COPY(&x, w, sizeof(T));
    return x;
  }
  template <class T> static CC_FN T cc_sub_group_broadcast(T x, cc_uint lane) { return cc_sub_group_shuffle(x, lane); }
  template <class T> static CC_FN T cc_sub_group_shuffle_xor(T x, cc_uint mask) {
    return cc_sub_group_shuffle(x, cc_get_sub_group_local_id() ^ mask);
  }
  template <class T> static CC_FN T cc_sub_group_shuffle_up(T x, cc_uint delta) {
    return cc_sub_group_shuffle(x, cc_get_sub_group_local_id() - delta);
  }
  template <class T> static CC_FN T cc_sub_group_shuffle_down(T x, cc_uint delta) {
    return cc_sub_group_shuffle(x, cc_get_sub_group_local_id() + delta);
  }

  struct cc_add_ {
    template <class T> static CC_INLINE T none() { return T(0); }
    template <class T> static CC_INLINE T of(T a, T b) { return a + b; }
  };
  struct cc_min_ {
    template <class T> static CC_INLINE T none() { return cc_most<T>(); }
    template <class T> static CC_INLINE T of(T a, T b) { return b < a ? b : a; }
  };
  struct cc_max_ {
    template <class T> static CC_INLINE T none() { return cc_least<T>(); }
    template <class T> static CC_INLINE T of(T a, T b) { return a < b ? b : a; }
  };
  // A scan in steps of 1, 2, 4 ... items; the last item then has all of them.
  template <class Op, class T> static CC_FN T cc_scan_(T x) {
    cc_uint at = cc_get_sub_group_local_id();
    for (cc_uint d = 1; d < cc_uint(warpSize); d *= 2) {
      T y = cc_sub_group_shuffle_up(x, d);
      if (at >= d)
        x = Op::of(y, x);
    }
    return x;
  }
#define CC_OP(op) \
  template <class T> static CC_FN T cc_sub_group_scan_inclusive_##op(T x) { return cc_scan_<cc_##op##_>(x); } \
  template <class T> static CC_FN T cc_sub_group_scan_exclusive_##op(T x) { \
    T y = cc_sub_group_shuffle_up(cc_scan_<cc_##op##_>(x), 1); \
    return cc_get_sub_group_local_id() == 0 ? cc_##op##_::template none<T>() : y; \
  } \
  template <class T> static CC_FN T cc_sub_group_reduce_##op(T x) { \
    return cc_sub_group_shuffle(cc_scan_<cc_##op##_>(x), cc_get_sub_group_size() - 1); \
  }
  CC_OP(add) CC_OP(min) CC_OP(max)
#undef CC_OP
};

} // namespace
