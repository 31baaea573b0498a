#ifndef __opencl_c_integer_dot_product_input_4x8bit_packed
#define __opencl_c_integer_dot_product_input_4x8bit_packed 1
#define CC_DOT4(f, T, S, A, B) \
  static T cc_dot_##f(uint a, uint b) { \
    const S##4 x = convert_##S##4(as_##A##4(a)), y = convert_##S##4(as_##B##4(b)); \
    return x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w; \
  } \
  static T cc_dot_acc_sat_##f(uint a, uint b, T acc) { return add_sat(cc_dot_##f(a, b), acc); }
CC_DOT4(uu, uint, uint, uchar, uchar)
CC_DOT4(ss, int, int, char, char)
CC_DOT4(su, int, int, char, uchar)
CC_DOT4(us, int, int, uchar, char)
#undef CC_DOT4
#define dot_4x8packed_uu_uint cc_dot_uu
#define dot_4x8packed_ss_int cc_dot_ss
#define dot_4x8packed_su_int cc_dot_su
#define dot_4x8packed_us_int cc_dot_us
#define dot_acc_sat_4x8packed_uu_uint cc_dot_acc_sat_uu
#define dot_acc_sat_4x8packed_ss_int cc_dot_acc_sat_ss
#define dot_acc_sat_4x8packed_su_int cc_dot_acc_sat_su
#define dot_acc_sat_4x8packed_us_int cc_dot_acc_sat_us
#endif
#ifndef __opencl_c_integer_dot_product_input_4x8bit
#define __opencl_c_integer_dot_product_input_4x8bit 1
#define CC_DOT4(f, T, A, B) \
  static T __attribute__((overloadable)) dot(A a, B b) { return f(as_uint(a), as_uint(b)); } \
  static T __attribute__((overloadable)) dot_acc_sat(A a, B b, T acc) { return add_sat(f(as_uint(a), as_uint(b)), acc); }
CC_DOT4(dot_4x8packed_uu_uint, uint, uchar4, uchar4)
CC_DOT4(dot_4x8packed_ss_int, int, char4, char4)
CC_DOT4(dot_4x8packed_su_int, int, char4, uchar4)
CC_DOT4(dot_4x8packed_us_int, int, uchar4, char4)
#undef CC_DOT4
#endif
#ifndef cl_khr_integer_dot_product
#define cl_khr_integer_dot_product 1
#endif
