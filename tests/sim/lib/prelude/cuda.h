// cuda.h: functions that only CUDA has, or that have other names in HIP.

static inline void __syncwarp(unsigned mask = 0xffffffffu) {
  __sim_exchange(__SIM_SYNC, mask, 0, 0);
}
template <class T>
static inline T __shfl_sync(unsigned mask, T v, int src, int width = __SIM_WARP) {
  return __sim_shuffle(mask, v, __sim_idx(src, width));
}
template <class T>
static inline T __shfl_up_sync(unsigned mask, T v, unsigned d, int width = __SIM_WARP) {
  return __sim_shuffle(mask, v, __sim_up(d, width));
}
template <class T>
static inline T __shfl_down_sync(unsigned mask, T v, unsigned d, int width = __SIM_WARP) {
  return __sim_shuffle(mask, v, __sim_down(d, width));
}
template <class T>
static inline T __shfl_xor_sync(unsigned mask, T v, int m, int width = __SIM_WARP) {
  return __sim_shuffle(mask, v, __sim_xor(m, width));
}
static inline unsigned __ballot_sync(unsigned mask, int p) {
  return (unsigned)__sim_exchange(__SIM_BALLOT, mask, p ? 1ull << __sim_me->lane : 0, 0);
}
static inline int __any_sync(unsigned mask, int p) {
  return (int)__sim_exchange(__SIM_OR, mask, p != 0, 0);
}
static inline int __all_sync(unsigned mask, int p) {
  return (int)__sim_exchange(__SIM_AND, mask, p != 0, 0);
}
static inline unsigned __activemask() {
  return (unsigned)__sim_exchange(__SIM_BALLOT, 0, 1ull << __sim_me->lane, 0);
}
template <class T> static inline unsigned __match_any_sync(unsigned mask, T v) {
  return (unsigned)__sim_exchange(__SIM_MATCH, mask, __sim_bits(v), 0);
}
template <class T> static inline unsigned __match_all_sync(unsigned mask, T v, int *all) {
  unsigned same = __match_any_sync(mask, v);
  *all = __all_sync(mask, same == (mask & (unsigned)__sim_b.live[__sim_me->warp]));
  return *all ? same : 0;
}
static inline unsigned __reduce_add_sync(unsigned m, unsigned v) {
  return (unsigned)__sim_exchange(__SIM_ADD, m, v, 0);
}
static inline unsigned __reduce_min_sync(unsigned m, unsigned v) {
  return (unsigned)__sim_exchange(__SIM_MIN, m, v, 0);
}
static inline unsigned __reduce_max_sync(unsigned m, unsigned v) {
  return (unsigned)__sim_exchange(__SIM_MAX, m, v, 0);
}
static inline int __reduce_add_sync(unsigned m, int v) {
  return (int)__sim_exchange(__SIM_ADD, m, (unsigned)v, 0);
}
static inline int __reduce_min_sync(unsigned m, int v) {
  return (int)__sim_exchange(__SIM_SMIN, m, (unsigned)v, 0);
}
static inline int __reduce_max_sync(unsigned m, int v) {
  return (int)__sim_exchange(__SIM_SMAX, m, (unsigned)v, 0);
}
static inline unsigned __reduce_and_sync(unsigned m, unsigned v) {
  return (unsigned)__sim_exchange(__SIM_AND, m, v, 0);
}
static inline unsigned __reduce_or_sync(unsigned m, unsigned v) {
  return (unsigned)__sim_exchange(__SIM_OR, m, v, 0);
}
static inline unsigned __reduce_xor_sync(unsigned m, unsigned v) {
  return (unsigned)__sim_exchange(__SIM_XOR, m, v, 0);
}

// The instructions of inline PTX that are known, by their operands. "h" operands hold the bits.
static inline void __sim_ptx_cvt_f32_f16(float &f, unsigned short h) {
  unsigned sign = (h & 0x8000u) << 16, e = h >> 10 & 31, m = h & 1023;
  if (e == 31)
    f = __uint_as_float(sign | 0x7f800000u | m << 13);
  else
    f = copysignf(ldexpf(e ? 1024 + m : m, e ? (int)e - 25 : -24), __uint_as_float(sign));
}
static inline void __sim_ptx_cvt_rn_f16_f32(unsigned short &h, float f) {
  unsigned short sign = __float_as_uint(f) >> 16 & 0x8000;
  float a = fabsf(f);
  if (a != a)
    h = 0x7fff;
  else if (a >= 65520.f)
    h = sign | 0x7c00;
  else {
    int e = a < 0x1p-14f ? -14 : ilogbf(a);
    unsigned m = (unsigned)rintf(ldexpf(a, 10 - e)); // a power of two more carries into e
    h = sign | (m + ((unsigned)(e + 14) << 10));
  }
}
static inline void __sim_ptx_cvt_rn_bf16_f32(unsigned short &h, float f) {
  unsigned u = __float_as_uint(f);
  h = f != f ? 0x7fff : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
template <class A, class B> static inline int __sim_dot4(unsigned a, unsigned b) {
  int s = 0;
  for (int k = 0; k < 32; k += 8)
    s += (int)(A)(a >> k) * (int)(B)(b >> k);
  return s;
}
static inline void __sim_ptx_dp4a_u32_u32(unsigned &d, unsigned a, unsigned b, unsigned c) {
  d = (unsigned)__sim_dot4<unsigned char, unsigned char>(a, b) + c;
}
static inline void __sim_ptx_dp4a_s32_s32(int &d, unsigned a, unsigned b, int c) {
  d = __sim_dot4<signed char, signed char>(a, b) + c;
}
static inline void __sim_ptx_dp4a_s32_u32(int &d, unsigned a, unsigned b, int c) {
  d = __sim_dot4<signed char, unsigned char>(a, b) + c;
}
