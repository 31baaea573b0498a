// dot.h: dot products of four bytes (cl_khr_integer_dot_product), for every target, Metal too.

CC_BEGIN

//@ cc_dot_add_4x8packed_uu_uint cc_dot_add_4x8packed_ss_int cc_dot_add_4x8packed_us_int cc_dot_add_4x8packed_su_int
//@ cc_dot_4x8packed_uu_uint cc_dot_4x8packed_ss_int cc_dot_4x8packed_us_int cc_dot_4x8packed_su_int
//@ cc_dot_acc_sat_4x8packed_uu_uint cc_dot_acc_sat_4x8packed_ss_int cc_dot_acc_sat_4x8packed_us_int cc_dot_acc_sat_4x8packed_su_int
//@ cc_dot_acc_sat cc_dot
// Sums of four products fit an int. A target that has an instruction for uu, ss or su, which adds them to a third number, defines a
// macro with its name, which is such a function.
template <class A, class B> CC_FN cc_int cc_dot4(cc_uint a, cc_uint b) {
  return cc_int(A(a)) * cc_int(B(b)) + cc_int(A(a >> 8)) * cc_int(B(b >> 8)) + cc_int(A(a >> 16)) * cc_int(B(b >> 16)) +
         cc_int(A(a >> 24)) * cc_int(B(b >> 24));
}
#ifndef CC_DOT4_UU
#define CC_DOT4_UU(a, b, c) (cc_uint(cc_dot4<cc_uchar, cc_uchar>(a, b)) + (c))
#endif
#ifndef CC_DOT4_SS
#define CC_DOT4_SS(a, b, c) (cc_dot4<cc_char, cc_char>(a, b) + (c))
#endif
#ifndef CC_DOT4_SU
#define CC_DOT4_SU(a, b, c) (cc_dot4<cc_char, cc_uchar>(a, b) + (c))
#endif
CC_FN cc_uint cc_dot_add_4x8packed_uu_uint(cc_uint a, cc_uint b, cc_uint c) { return CC_DOT4_UU(a, b, c); }
CC_FN cc_int cc_dot_add_4x8packed_ss_int(cc_uint a, cc_uint b, cc_int c) { return CC_DOT4_SS(a, b, c); }
CC_FN cc_int cc_dot_add_4x8packed_su_int(cc_uint a, cc_uint b, cc_int c) { return CC_DOT4_SU(a, b, c); }
CC_FN cc_int cc_dot_add_4x8packed_us_int(cc_uint a, cc_uint b, cc_int c) { return CC_DOT4_SU(b, a, c); }
#define CC_DOT4(f, T) \
  CC_FN T cc_dot_##f(cc_uint a, cc_uint b) { return cc_dot_add_##f(a, b, T(0)); } \
  CC_FN T cc_dot_acc_sat_##f(cc_uint a, cc_uint b, T acc) { return cc_add_sat(cc_dot_##f(a, b), acc); }
CC_DOT4(4x8packed_uu_uint, cc_uint) CC_DOT4(4x8packed_ss_int, cc_int) CC_DOT4(4x8packed_su_int, cc_int)
CC_DOT4(4x8packed_us_int, cc_int)
#undef CC_DOT4
#define CC_DOT4(f, T, A, B) \
  CC_FN T cc_dot(cc_vec<A, 4> x, cc_vec<B, 4> y) { return cc_dot_##f(cc_as_bits<cc_uint>(x), cc_as_bits<cc_uint>(y)); } \
  CC_FN T cc_dot_acc_sat(cc_vec<A, 4> x, cc_vec<B, 4> y, T acc) { return cc_add_sat(cc_dot(x, y), acc); }
CC_DOT4(4x8packed_uu_uint, cc_uint, cc_uchar, cc_uchar) CC_DOT4(4x8packed_ss_int, cc_int, cc_char, cc_char)
CC_DOT4(4x8packed_su_int, cc_int, cc_char, cc_uchar) CC_DOT4(4x8packed_us_int, cc_int, cc_uchar, cc_char)
#undef CC_DOT4

//@
CC_END
