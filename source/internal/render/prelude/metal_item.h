  // metal_item.h: members of cc_program, the struct that has a program's functions and the ids of
  // the work item. Grids are whole threadgroups, and begin at 0.
  uint3 cc_lid, cc_lsize, cc_group, cc_groups;

#define CC_ID(name, others, X, Y, Z) \
  cc_size cc_##name(cc_uint d) const { return d == 0 ? (X) : d == 1 ? (Y) : d == 2 ? (Z) : (others); }
  CC_ID(get_local_id, 0, cc_lid.x, cc_lid.y, cc_lid.z)
  CC_ID(get_local_size, 1, cc_lsize.x, cc_lsize.y, cc_lsize.z)
  CC_ID(get_group_id, 0, cc_group.x, cc_group.y, cc_group.z)
  CC_ID(get_num_groups, 1, cc_groups.x, cc_groups.y, cc_groups.z)
  CC_ID(get_global_id, 0, cc_size(cc_group.x) * cc_lsize.x + cc_lid.x, cc_size(cc_group.y) * cc_lsize.y + cc_lid.y,
        cc_size(cc_group.z) * cc_lsize.z + cc_lid.z)
  CC_ID(get_global_size, 1, cc_size(cc_groups.x) * cc_lsize.x, cc_size(cc_groups.y) * cc_lsize.y,
        cc_size(cc_groups.z) * cc_lsize.z)
#undef CC_ID
  cc_size cc_get_global_offset(cc_uint) const { return 0; }
  // A launch always has three dimensions here; the dimensions in use are those up to the last with
  // more than one item.
  cc_uint cc_get_work_dim() const { return cc_get_global_size(2) > 1 ? 3 : cc_get_global_size(1) > 1 ? 2 : 1; }
  cc_uint cc_place_() const { return cc_lid.x + cc_lsize.x * (cc_lid.y + cc_lsize.y * cc_lid.z); }
  cc_uint cc_items_() const { return cc_lsize.x * cc_lsize.y * cc_lsize.z; }

  // The flags are nearly always constants, so that the compiler removes the branches.
  void cc_barrier(cc_uint flags, cc_uint) const {
    if (flags == CC_LOCAL_MEM_FENCE)
      metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    else if (flags == CC_GLOBAL_MEM_FENCE)
      metal::threadgroup_barrier(metal::mem_flags::mem_device);
    else
      metal::threadgroup_barrier(metal::mem_flags::mem_device | metal::mem_flags::mem_threadgroup);
  }
  // Before 3.2 Metal has no fence without a barrier. The barrier of a SIMD group orders its
  // threads' memory accesses.
  void cc_mem_fence(cc_uint) const {
#if __METAL_VERSION__ >= 320
    metal::atomic_thread_fence(metal::mem_flags::mem_device | metal::mem_flags::mem_threadgroup,
                               metal::memory_order_seq_cst, metal::thread_scope_device);
#else
    metal::simdgroup_barrier(metal::mem_flags::mem_device | metal::mem_flags::mem_threadgroup);
#endif
  }
  void cc_read_mem_fence(cc_uint flags) const { cc_mem_fence(flags); }
  void cc_write_mem_fence(cc_uint flags) const { cc_mem_fence(flags); }

  template <class P, class Q> cc_event cc_async_work_group_copy(P dst, Q src, cc_size n, cc_event) const {
    return cc_copy_(dst, src, n, 1, cc_place_(), cc_items_());
  }
  template <class P, class Q> cc_event cc_strided_to_local(P dst, Q src, cc_size n, cc_size stride, cc_event) const {
    return cc_copy_(dst, src, n, stride, cc_place_(), cc_items_());
  }
  template <class P, class Q> cc_event cc_strided_to_global(P dst, Q src, cc_size n, cc_size stride, cc_event) const {
    return cc_copy_(dst, src, n, stride, cc_place_(), cc_items_());
  }
  template <class P> void cc_wait_group_events(cc_int, P, cc_uint) const { cc_barrier(3, 0); }
