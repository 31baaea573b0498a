// Ids and sizes in three dimensions.
// run: kernel=id global=4,6,2 local=2,3,1 args=out:i32:48,out:i32:16
// want: 0 1 1000 1001 10 11 1010 1011 20 21 1020 1021 10000 10001 11000 11001 10010 10011 11010 11011 10020 10021 11020 11021 100000 100001 101000 101001 100010 100011 101010 101011 100020 100021 101020 101021 110000 110001 111000 111001 110010 110011 111010 111011 110020 110021 111020 111021
// want: 3 2 3 1 0 2 2 2 0 0 0 0 0 0 0 0
kernel void id(global int *o, global int *s) {
  size_t x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
  size_t i = x + get_global_size(0) * (y + get_global_size(1) * z);
  o[i] = get_local_id(0) + 10 * get_local_id(1) + 100 * get_local_id(2) + 1000 * get_group_id(0) + 10000 * get_group_id(1) + 100000 * get_group_id(2);
  if (i == 0) {
    s[0] = get_work_dim(); for (uint d = 0; d < 3; d++) { s[1 + d] = get_local_size(d); s[5 + d] = get_num_groups(d); }
    s[9] = get_global_id(5); s[10] = get_global_offset(0);  s[12] = get_group_id(9) + get_local_id(3);
  }
}
