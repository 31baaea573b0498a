// Sub-groups of any size: every item writes the sum of the numbers of the checks that failed.
// run: kernel=all global=40 local=40 args=out:i32:40
// want: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
// run: kernel=all global=10,6 local=10,3 args=out:i32:60
// want: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0

#define CHECK(n, cond) bad += (cond) ? 0 : 1 << n

kernel void all(global int *o) {
  int bad = 0;
  int linear = get_local_id(0) + get_local_size(0) * get_local_id(1);
  int items = get_local_size(0) * get_local_size(1);
  int size = get_sub_group_size(), at = get_sub_group_local_id(), first = linear - at;
  int most = get_max_sub_group_size();
  CHECK(0, at == linear % most && get_sub_group_id() == linear / most);
  CHECK(1, size == min(most, items - first) && get_num_sub_groups() == (items + most - 1) / most);

  CHECK(2, sub_group_reduce_add(linear) == size * first + size * (size - 1) / 2);
  CHECK(3, sub_group_reduce_min(-(long)linear << 33) == -(long)(first + size - 1) << 33);
  CHECK(4, sub_group_reduce_max(linear * 0.5) == (first + size - 1) * 0.5);
  CHECK(5, sub_group_scan_inclusive_add(1u) == at + 1);
  CHECK(6, sub_group_scan_inclusive_min((float)-linear) == -linear);
  CHECK(7, sub_group_scan_inclusive_max(-linear) == -first);
  CHECK(8, sub_group_scan_exclusive_add((ulong)2) == 2 * at);
  CHECK(9, sub_group_scan_exclusive_min(linear) == (at == 0 ? INT_MAX : first));
  CHECK(10, sub_group_scan_exclusive_max((float)linear) == (at == 0 ? -INFINITY : linear - 1));

  CHECK(11, sub_group_broadcast(linear, size / 2) == first + size / 2);
  CHECK(12, sub_group_shuffle((char)linear, size - 1 - at) == first + size - 1 - at);
  double other = sub_group_shuffle_xor(linear * 0.25, 1);
  CHECK(13, (at ^ 1) >= size || other == (first + (at ^ 1)) * 0.25);
  ushort up = sub_group_shuffle_up((ushort)linear, 3);
  CHECK(14, at < 3 || up == linear - 3);
  long down = sub_group_shuffle_down((long)linear << 40, 2);
  CHECK(15, at + 2 >= size || down >> 40 == linear + 2);

  CHECK(16, sub_group_any(at == size - 1) == 1 && sub_group_any(at < 0) == 0);
  CHECK(17, sub_group_all(at < size) == 1 && sub_group_all(at > 0) == 0);
  sub_group_barrier(CLK_LOCAL_MEM_FENCE);
  o[get_global_id(0) + get_global_size(0) * get_global_id(1)] = bad;
}
