  // metal_simd.h: more members of cc_program, for programs that use sub-groups: Metal's SIMD groups.
  uint cc_lane, cc_simd, cc_width, cc_simds;

  cc_uint cc_get_max_sub_group_size() const { return cc_width; }
  cc_uint cc_get_sub_group_id() const { return cc_simd; }
  cc_uint cc_get_num_sub_groups() const { return cc_simds; }
  cc_uint cc_get_enqueued_num_sub_groups() const { return cc_simds; }
  cc_uint cc_get_sub_group_local_id() const { return cc_lane; }
  // The last sub-group of a group has the remaining items.
  cc_uint cc_get_sub_group_size() const {
    cc_uint left = cc_items_() - cc_simd * cc_width;
    return left < cc_width ? left : cc_width;
  }
  void cc_sub_group_barrier(cc_uint) const {
    metal::simdgroup_barrier(metal::mem_flags::mem_device | metal::mem_flags::mem_threadgroup);
  }
  cc_int cc_sub_group_all(cc_int x) const { return metal::simd_all(x != 0); }
  cc_int cc_sub_group_any(cc_int x) const { return metal::simd_any(x != 0); }

  // Metal shuffles numbers of up to 4 bytes; a number of 8 bytes is shuffled in two parts.
  template <class T> T cc_sub_group_shuffle(T x, cc_uint lane) const { return metal::simd_shuffle(x, ushort(lane)); }
  cc_ulong cc_sub_group_shuffle(cc_ulong x, cc_uint lane) const {
    cc_uint low = metal::simd_shuffle(cc_uint(x), ushort(lane)), high = metal::simd_shuffle(cc_uint(x >> 32), ushort(lane));
    return cc_ulong(high) << 32 | low;
  }
  cc_long cc_sub_group_shuffle(cc_long x, cc_uint lane) const { return cc_long(cc_sub_group_shuffle(cc_ulong(x), lane)); }
  template <class T> T cc_sub_group_broadcast(T x, cc_uint lane) const { return cc_sub_group_shuffle(x, lane); }
  template <class T> T cc_sub_group_shuffle_xor(T x, cc_uint mask) const { return cc_sub_group_shuffle(x, cc_lane ^ mask); }
  template <class T> T cc_sub_group_shuffle_up(T x, cc_uint delta) const { return cc_sub_group_shuffle(x, cc_lane - delta); }
  template <class T> T cc_sub_group_shuffle_down(T x, cc_uint delta) const { return cc_sub_group_shuffle(x, cc_lane + delta); }

  // A scan in steps of 1, 2, 4 ... items; the last item then has all of them.
#define CC_OP(op, expr, none) \
  template <class T> T cc_sub_group_scan_inclusive_##op(T x) const { \
    for (cc_uint d = 1; d < cc_width; d *= 2) { \
      T y = cc_sub_group_shuffle_up(x, d); \
      if (cc_lane >= d) \
        x = T(expr); \
    } \
    return x; \
  } \
  template <class T> T cc_sub_group_scan_exclusive_##op(T x) const { \
    T y = cc_sub_group_shuffle_up(cc_sub_group_scan_inclusive_##op(x), 1); \
    return cc_lane == 0 ? none : y; \
  } \
  template <class T> T cc_sub_group_reduce_##op(T x) const { \
    return cc_sub_group_shuffle(cc_sub_group_scan_inclusive_##op(x), cc_get_sub_group_size() - 1); \
  }
  CC_OP(add, y + x, T(0)) CC_OP(min, y < x ? y : x, cc_most<T>()) CC_OP(max, y < x ? x : y, cc_least<T>())
#undef CC_OP
