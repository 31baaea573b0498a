// prelude_test.cc checks the prelude's functions against the OpenCL C 1.2 specification, with
// values that were computed by hand. The Go test puts the prelude in front of it.

extern "C" int printf(const char *, ...);
static int failures;

template <class T> static bool same(T a, T b) { return a == b || (a != a && b != b); }
template <class T, int N> static bool same(cc_vec<T, N> a, cc_vec<T, N> b) {
  for (int i = 0; i < N; i++)
    if (!same(a.v[i], b.v[i]))
      return false;
  return true;
}
#define EQ(got, want)                                                                              \
  do {                                                                                             \
    auto g_ = (got);                                                                               \
    decltype(g_) w_ = (want);                                                                      \
    if (!same(g_, w_)) {                                                                           \
      failures++;                                                                                  \
      printf("line %d: %s is not %s\n", __LINE__, #got, #want);                                    \
    }                                                                                              \
  } while (0)
#define NEAR(got, want)                                                                            \
  do {                                                                                             \
    double g_ = double(got), w_ = double(want);                                                    \
    if (!(g_ - w_ < 1e-5 && w_ - g_ < 1e-5)) {                                                     \
      failures++;                                                                                  \
      printf("line %d: %s is %.9g, not %s\n", __LINE__, #got, g_, #want);                          \
    }                                                                                              \
  } while (0)
#define I4(a, b, c, d) cc_make<cc_int4>(a, b, c, d)
#define F4(a, b, c, d) cc_make<cc_float4>(float(a), float(b), float(c), float(d))

static void vectors() {
  static_assert(sizeof(cc_float3) == 16 && alignof(cc_float3) == 16 && sizeof(cc_double16) == 128 &&
                    sizeof(cc_char2) == 2,
                "");
  static_assert(
      __is_trivially_copyable(cc_float4) && __is_trivial(cc_float4) && __is_trivial(cc_half3), "");
  constexpr cc_float4 fixed = cc_make<cc_float4>(1.0f, 2, 3.0, cc_char(4));
  cc_float4 a = fixed, b = cc_make<cc_float4>(2.0f);
  EQ(a + b * 2, F4(5, 6, 7, 8));
  EQ(10 - a, F4(9, 8, 7, 6));
  EQ(a / b, F4(0.5, 1, 1.5, 2));
  EQ(-a, F4(-1, -2, -3, -4));
  EQ(a < 2.5f, I4(-1, -1, 0, 0));
  EQ(a == F4(1, 0, 3, CC_NAN), I4(-1, 0, -1, 0));
  EQ(F4(0, CC_NAN, 1, -0.0f) && b, I4(0, -1, -1, 0));
  EQ(!F4(0, CC_NAN, 1, -0.0f), I4(-1, 0, 0, -1));
  EQ((cc_swz<3, 2, 1>(a)), cc_make<cc_float3>(4, 3, 2));
  cc_ref<0, 1>(a) = cc_swz<1, 0>(a);
  EQ(a, F4(2, 1, 3, 4));
  cc_ref<0, 2>(a) += 1;
  EQ(a, F4(3, 1, 4, 4));
  cc_ref<3, 0>(a) = cc_ref<0, 3>(a);
  EQ(a, F4(4, 1, 4, 3));
  EQ(a++, F4(4, 1, 4, 3));
  EQ(--a, F4(4, 1, 4, 3));
  volatile cc_float4 vol;
  cc_store(vol, a);
  cc_float4 back = cc_load(vol);
  back += cc_load(vol);
  EQ(back, F4(8, 2, 8, 6));
  EQ(cc_make<cc_int8>(cc_make<cc_int4>(1), cc_make<cc_int3>(2), 3).v[6], 2);
  cc_uchar4 u = cc_make<cc_uchar4>(250, 1, 2, 3);
  EQ(u + cc_uchar(10), cc_make<cc_uchar4>(4, 11, 12, 13));
  EQ(u << 9, cc_make<cc_uchar4>(244, 2, 4, 6)); // the count is taken modulo 8
  EQ(cc_make<cc_int4>(-8) >> 33, cc_make<cc_int4>(-4));
  EQ(1 << cc_make<cc_int4>(0, 1, 31, 32), I4(1, 2, int(0x80000000), 1));
  EQ(cc_make<cc_int2>(7, -7) % 3, cc_make<cc_int2>(1, -1));
  EQ(~cc_make<cc_short2>(0, -1), cc_make<cc_short2>(-1, 0));
  EQ(cc_shl(1, 33), 2);
  EQ(cc_shl(cc_uchar(255), 8), 65280);
  EQ(cc_shr(cc_long(-1), 65), cc_long(-1));
  cc_ushort us = 0x8000;
  cc_shl_assign(us, 1);
  EQ(us, 0);
  EQ(cc_select_vec(I4(-1, 0, 1, int(0x80000000)), F4(1, 1, 1, 1), 2), F4(1, 2, 2, 1));
  EQ(cc_cast<cc_int4>(true), cc_make<cc_int4>(-1));
  EQ(cc_cast<cc_float2>(3), cc_make<cc_float2>(3.0f));
  EQ(cc_vec_step(cc_make<cc_int3>(1)), 4);
  EQ(cc_shuffle(F4(1, 2, 3, 4), cc_make<cc_uint2>(3u, 4u)), cc_make<cc_float2>(4, 1));
  EQ(cc_shuffle2(F4(1, 2, 3, 4), F4(5, 6, 7, 8), cc_make<cc_uint4>(7u, 0u, 4u, 15u)),
     F4(8, 1, 5, 8));
}

#define CONV(T, sat, mode, x) (cc_convert<T, sat, mode>(x))
static void conversions() {
  EQ(CONV(cc_int, 0, CC_RTE, 2.5f), 2);
  EQ(CONV(cc_int, 0, CC_RTE, -3.5f), -4);
  EQ(CONV(cc_int, 0, CC_RTZ, -2.7f), -2);
  EQ(CONV(cc_int, 0, CC_RTP, -2.7f), -2);
  EQ(CONV(cc_int, 0, CC_RTN, -2.2f), -3);
  EQ(CONV(cc_uchar, CC_SAT, 0, 300.0f), cc_uchar(255));
  EQ(CONV(cc_uchar, CC_SAT, 0, -1.0f), cc_uchar(0));
  EQ(CONV(cc_char, CC_SAT, 0, 200u), cc_char(127));
  EQ(CONV(cc_int, CC_SAT, 0, CC_NAN), 0);
  EQ(CONV(cc_int, CC_SAT, 0, 3e9f), 2147483647);
  EQ(CONV(cc_int, CC_SAT, 0, -3e9f), -2147483647 - 1);
  EQ(CONV(cc_ulong, CC_SAT, 0, -5), cc_ulong(0));
  EQ(CONV(cc_ulong, CC_SAT, 0, 1e30), ~cc_ulong(0));
  EQ(CONV(cc_long, CC_SAT, 0, 9.3e18), cc_int_max<cc_long>());
  EQ(CONV(cc_long, CC_SAT, 0, ~cc_ulong(0)), cc_int_max<cc_long>());
  EQ(CONV(cc_uint, CC_SAT, 0, cc_long(-1)), 0u);
  EQ(CONV(cc_float, 0, 0, 16777217), 16777216.0f);
  EQ(CONV(cc_float, 0, CC_RTP, 16777217), 16777218.0f);
  EQ(CONV(cc_float, 0, CC_RTN, -16777217), -16777218.0f);
  EQ(CONV(cc_float, 0, CC_RTZ, -16777217), -16777216.0f);
  EQ(CONV(cc_float, 0, CC_RTZ, cc_int_max<cc_long>()), 9223371487098961920.0f);
  EQ(CONV(cc_float, 0, CC_RTZ, ~cc_ulong(0)), 18446742974197923840.0f);
  EQ(CONV(cc_double, 0, CC_RTN, cc_int_max<cc_long>()), 9223372036854774784.0);
  EQ(CONV(cc_float, 0, CC_RTZ, 1e40), CC_MAXFLOAT);
  EQ(CONV(cc_float, 0, CC_RTP, 1e-50), 0x1p-149f);
  EQ(CONV(cc_float, 0, CC_RTN, 1e-50), 0.0f);
  EQ(CONV(cc_int4, 0, CC_RTE, F4(0.5, 1.5, -0.5, -2.5)), I4(0, 2, 0, -2));
  EQ(CONV(cc_uchar4, CC_SAT, 0, I4(-5, 5, 300, 255)), cc_make<cc_uchar4>(0, 5, 255, 255));
  EQ(cc_as<cc_int>(1.0f), 0x3f800000);
  EQ(cc_as<cc_float4>(cc_make<cc_int3>(0x3f800000)).v[2], 1.0f);
  EQ(cc_as<cc_uchar4>(0x01020304).v[0], cc_uchar(4));
  // half
  EQ(cc_half(1.0f).bits, cc_ushort(0x3c00));
  EQ(cc_half(65504.0f).bits, cc_ushort(0x7bff));
  EQ(cc_half(65519.0f).bits, cc_ushort(0x7bff));
  EQ(cc_half(65520.0f).bits, cc_ushort(0x7c00));
  EQ(cc_half(0x1p-24f).bits, cc_ushort(1));
  EQ(cc_half(0x1p-25f).bits, cc_ushort(0));
  EQ(cc_half(0x1.8p-25f).bits, cc_ushort(1));
  EQ(cc_half(2049.0f).bits, cc_half(2048.0f).bits);
  EQ(cc_half(2051.0f).bits, cc_half(2052.0f).bits);
  EQ(cc_half(-0.0f).bits, cc_ushort(0x8000));
  EQ(cc_half(1.0 + 0x1p-11 + 0x1p-40).bits, cc_ushort(0x3c01)); // once, not twice
  EQ(cc_half(1.0 + 0x1p-11).bits, cc_ushort(0x3c00));
  for (unsigned h = 0; h < 65536; h++) { // every half there and back
    cc_half x = cc_as_bits<cc_half>(cc_ushort(h)), y = cc_half(float(x));
    if (x.bits != y.bits && !(float(x) != float(x) && float(y) != float(y))) {
      failures++;
      printf("half %#x comes back as %#x\n", h, y.bits);
      break;
    }
  }
  EQ((CONV(cc_half, 0, CC_RTZ, 1e6f)).bits, cc_ushort(0x7bff));
  EQ((CONV(cc_half, 0, CC_RTN, 1e6f)).bits, cc_ushort(0x7bff));
  EQ((CONV(cc_half, 0, CC_RTP, 1e-10)).bits, cc_ushort(1));
  EQ((CONV(cc_half, 0, CC_RTN, -1e-10f)).bits, cc_ushort(0x8001));
  EQ((CONV(cc_half, 0, CC_RTP, 2049)).bits, cc_half(2050.0f).bits);
  EQ(CONV(cc_int, 0, CC_RTE, cc_half(2.5f)), 2);
  cc_half buf[8];
  cc_vstore_half3(cc_make<cc_float3>(1, 2, 3), 1, buf);
  EQ(cc_vload_half3(1, buf), cc_make<cc_float3>(1, 2, 3));
  EQ(float(buf[5]), 3.0f);
  cc_vstorea_half3_rtz(cc_make<cc_double3>(1.0, 2.0, 2051.0), 1, buf);
  EQ(float(buf[6]), 2050.0f);
  EQ(cc_vloada_half3(1, buf), cc_make<cc_float3>(1, 2, 2050));
  float m[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  EQ(cc_vload3(2, m), cc_make<cc_float3>(6, 7, 8));
  cc_vstore2(cc_make<cc_float2>(-1, -2), 5, m);
  EQ(m[11], -2.0f);
}

static void integers() {
  EQ(cc_abs(cc_char(-128)), cc_uchar(128));
  EQ(cc_abs_diff(cc_int_min<cc_int>(), cc_int_max<cc_int>()), 0xffffffffu);
  EQ(cc_add_sat(cc_char(100), cc_char(100)), cc_char(127));
  EQ(cc_add_sat(cc_ulong(-1), cc_ulong(1)), ~cc_ulong(0));
  EQ(cc_sub_sat(cc_int_min<cc_long>(), cc_long(1)), cc_int_min<cc_long>());
  EQ(cc_sub_sat(3u, 4u), 0u);
  EQ(cc_hadd(cc_int_max<cc_int>(), cc_int_max<cc_int>()), cc_int_max<cc_int>());
  EQ(cc_hadd(-1, 0), -1);
  EQ(cc_rhadd(-1, 0), 0);
  EQ(cc_rhadd(cc_uchar(255), cc_uchar(254)), cc_uchar(255));
  EQ(cc_clz(cc_char(0)), cc_char(8));
  EQ(cc_clz(cc_short(1)), cc_short(15));
  EQ(cc_clz(0xffffffffu), 0u);
  EQ(cc_clz(cc_long(1)), cc_long(63));
  EQ(cc_popcount(cc_char(-1)), cc_char(8));
  EQ(cc_popcount(cc_long(-1)), cc_long(64));
  EQ(cc_rotate(cc_uchar(0x81), cc_uchar(1)), cc_uchar(3));
  EQ(cc_rotate(0x80000001u, 36u), 0x18u);
  EQ(cc_rotate(-2, 0), -2);
  EQ(cc_mul_hi(cc_char(-128), cc_char(-128)), cc_char(64));
  EQ(cc_mul_hi(0xffffffffu, 0xffffffffu), 0xfffffffeu);
  EQ(cc_mul_hi(cc_long(-1), cc_long(2)), cc_long(-1));
  EQ(cc_mul_hi(~cc_ulong(0), ~cc_ulong(0)), ~cc_ulong(1));
  EQ(cc_mad_hi(1 << 30, 8, 5), 7);
  EQ(cc_mad_sat(1 << 30, 4, -5), 2147483647);
  EQ(cc_mad_sat(cc_long(1) << 62, cc_long(4), cc_long(-5)), cc_int_max<cc_long>());
  EQ(cc_mad_sat(cc_int_max<cc_long>(), cc_long(1), cc_long(-1)), cc_int_max<cc_long>() - 1);
  EQ(cc_mad_sat(cc_int_min<cc_long>(), cc_long(1), cc_long(-1)), cc_int_min<cc_long>());
  EQ(cc_mad_sat(~cc_ulong(0), 1ul, 1ul), ~cc_ulong(0));
  EQ(cc_mad_sat(cc_short(300), cc_short(300), cc_short(0)), cc_short(32767));
  EQ(cc_mul24(-3, 5), -15);
  EQ(cc_mad24(100u, 100u, 1u), 10001u);
  EQ(cc_upsample(cc_char(-1), cc_uchar(2)), cc_short(-254));
  EQ(cc_upsample(1u, 0xffffffffu), 0x1fffffffful);
  EQ(cc_upsample(cc_make<cc_short2>(1, -1), cc_make<cc_ushort2>(2, 3)),
     cc_make<cc_int2>(0x10002, -65533));
  EQ(cc_max(I4(1, -2, 3, -4), 0), I4(1, 0, 3, 0));
  EQ(cc_clamp(I4(1, -2, 300, -4), -3, 3), I4(1, -2, 3, -3));
  EQ(cc_min(~cc_ulong(0), cc_ulong(1)), cc_ulong(1));
  EQ(cc_any(I4(0, 1, 2, 3)), 0);
  EQ(cc_any(I4(0, 1, -1, 3)), 1);
  EQ(cc_all(I4(-1, -2, -1, -3)), 1);
  EQ(cc_all(cc_char(1)), 0);
  EQ(cc_select(1.0f, 2.0f, 1), 2.0f);
  EQ(cc_select(F4(1, 1, 1, 1), F4(2, 2, 2, 2), I4(1, -1, 0, int(0x80000000))), F4(1, 2, 1, 2));
  EQ(cc_bitselect(cc_uchar(0xf0), cc_uchar(0x0f), cc_uchar(0x3c)), cc_uchar(0xcc));
  EQ(cc_bitselect(1.0f, -2.0f, -0.0f), -1.0f);
  cc_int x = 5;
  EQ(cc_atomic_add(&x, 3), 5);
  EQ(cc_atomic_sub(&x, 1), 8);
  EQ(cc_atomic_inc(&x), 7);
  EQ(cc_atomic_dec(&x), 8);
  EQ(cc_atomic_min(&x, -4), 7);
  EQ(cc_atomic_max(&x, 9), -4);
  EQ(cc_atomic_and(&x, 8), 9);
  EQ(cc_atomic_or(&x, 3), 8);
  EQ(cc_atomic_xor(&x, 1), 11);
  EQ(cc_atomic_cmpxchg(&x, 10, 20), 10);
  EQ(cc_atomic_xchg(&x, 1), 20);
  cc_uint u = 0;
  EQ(cc_atomic_dec(&u), 0u);
  EQ(cc_atomic_max(&u, 7u), 0xffffffffu);
  cc_float f = 1.5f;
  EQ(cc_atomic_xchg(&f, 2.0f), 1.5f);
  cc_ulong l = 1ul << 40;
  EQ(cc_atom_add(&l, 1), 1ul << 40);
  EQ(cc_atom_min(&l, 3ul), (1ul << 40) + 1);
}

static void maths() {
  const float inf = CC_INFINITY, nan = CC_NAN;
  float f;
  int n;
  EQ(cc_fmin(nan, 1.0f), 1.0f);
  EQ(cc_fmax(1.0f, nan), 1.0f);
  EQ(cc_fmax(F4(1, 2, 3, nan), 2.5f), F4(2.5, 2.5, 3, 2.5));
  EQ(cc_round(2.5f), 3.0f);
  EQ(cc_round(-0.5f), -1.0f);
  EQ(cc_rint(2.5f), 2.0f);
  EQ(cc_trunc(-2.7), -2.0);
  EQ(cc_sign(-0.0f), -0.0f);
  EQ(cc_signbit(cc_sign(-0.0f)), 1);
  EQ(cc_sign(nan), 0.0f);
  EQ(cc_isequal(nan, nan), 0);
  EQ(cc_isnotequal(nan, nan), 1);
  EQ(cc_isnan(F4(1, nan, inf, 0)), I4(0, -1, 0, 0));
  EQ(cc_isfinite(cc_make<cc_double2>(1.0, CC_HUGE_VAL)), cc_make<cc_long2>(-1, 0));
  EQ(cc_isnormal(1e-44f), 0);
  EQ(cc_isunordered(1.0f, nan), 1);
  EQ(cc_islessgreater(1.0f, 1.0f), 0);
  EQ(cc_fract(-0.25f, &f), 0.75f);
  EQ(f, -1.0f);
  EQ(cc_fract(-1e-20f, &f), 0x1.fffffep-1f);
  EQ(cc_fract(inf, &f), 0.0f);
  EQ(f, inf);
  EQ(cc_modf(-2.5f, &f), -0.5f);
  EQ(cc_frexp(8.0f, &n), 0.5f);
  EQ(n, 4);
  EQ(cc_ldexp(1.5f, 3), 12.0f);
  EQ(cc_ldexp(F4(1, 2, 3, 4), 1), F4(2, 4, 6, 8));
  EQ(cc_ilogb(0.0f), cc_int_min<cc_int>());
  EQ(cc_ilogb(nan), cc_int_max<cc_int>());
  EQ(cc_ilogb(1e-40f), -133);
  EQ(cc_logb(8.0f), 3.0f);
  EQ(cc_remquo(1000.0f, 7.0f, &n), -1.0f);
  EQ(n, 143 % 128);
  EQ(cc_remquo(-3.0f, 2.0f, &n), 1.0f);
  EQ(n, -2);
  EQ(cc_remainder(5.0f, 2.0f), 1.0f);
  EQ(cc_remainder(3.0f, 2.0f), -1.0f);
  EQ(cc_fmod(-7.5f, 2.0f), -1.5f);
  EQ(cc_nextafter(1.0f, 2.0f), 1.0f + 0x1p-23f);
  EQ(cc_nextafter(0.0f, -1.0f), -0x1p-149f);
  EQ(cc_pown(-2.0f, 3), -8.0f);
  EQ(cc_pown(0.0f, -1), inf);
  EQ(cc_powr(-1.0f, 2.0f), nan);
  EQ(cc_powr(0.0f, 0.0f), nan);
  EQ(cc_powr(1.0f, inf), nan);
  NEAR(cc_powr(2.0f, 0.5f), 1.41421356);
  EQ(cc_rootn(-27.0f, 3), -3.0f);
  EQ(cc_rootn(-4.0f, 2), nan);
  EQ(cc_rootn(0.0f, -2), inf);
  EQ(cc_rootn(16.0, 4), 2.0);
  EQ(cc_maxmag(-3.0f, 2.0f), -3.0f);
  EQ(cc_minmag(-3.0f, 3.0f), -3.0f);
  EQ(cc_sinpi(1.0f), 0.0f);
  EQ(cc_sinpi(0.5f), 1.0f);
  EQ(cc_sinpi(-1.5), 1.0);
  EQ(cc_cospi(0.5f), 0.0f);
  EQ(cc_cospi(1e10f), 1.0f);
  NEAR(cc_tanpi(0.25), 1.0);
  EQ(cc_tanpi(0.5f), inf);
  EQ(cc_tanpi(1.5f), -inf);
  EQ(cc_tanpi(-0.5f), -inf);
  NEAR(cc_exp10(2.0f), 100);
  EQ(cc_nan(5u), nan);
  EQ(cc_as<cc_uint>(cc_nan(5u)), 0x7fc00005u);
  EQ(cc_step(F4(1, 2, 3, 4), F4(1, 1, 4, 4)), F4(1, 0, 1, 1));
  EQ(cc_step(2.0f, F4(1, 2, 3, nan)), F4(0, 1, 1, 1));
  EQ(cc_smoothstep(0.0f, 1.0f, F4(-1, 0.5, 2, 0)), F4(0, 0.5, 1, 0));
  EQ(cc_mix(F4(0, 0, 0, 0), F4(4, 8, 12, 16), 0.25f), F4(1, 2, 3, 4));
  NEAR(cc_degrees(3.14159265f), 180);
  EQ(cc_fma(0x1.001p0f, 0x1.001p0f, -1.0f), 0x1.0008p-11f);
  EQ(cc_dot(F4(1, 2, 3, 4), F4(1, 1, 1, 1)), 10.0f);
  EQ(cc_cross(cc_make<cc_float3>(1, 0, 0), cc_make<cc_float3>(0, 1, 0)),
     cc_make<cc_float3>(0, 0, 1));
  EQ(cc_length(F4(3e20, 4e20, 0, 0)), 5e20f);
  EQ(cc_length(cc_make<cc_double2>(0x3p800, 0x4p800)), 0x5p800);
  EQ(cc_length(cc_make<cc_double2>(0x3p-800, 0x4p-800)), 0x5p-800);
  EQ(cc_normalize(F4(0, 0, 0, 0)), F4(0, 0, 0, 0));
  EQ(cc_normalize(F4(3, 0, 4, 0)), F4(0.6f, 0, 0.8f, 0));
  EQ(cc_distance(cc_make<cc_float2>(1, 2), cc_make<cc_float2>(4, 6)), 5.0f);
  EQ(cc_native_divide(F4(1, 2, 3, 4), F4(2, 2, 2, 2)), F4(0.5, 1, 1.5, 2));
  EQ(cc_half_sqrt(9.0f), 3.0f);
  EQ(float(cc_sqrt(cc_half(9.0f))), 3.0f);
  EQ(cc_lgamma_r(-0.5f, &n), cc_lgamma(-0.5f));
  EQ(n, -1);
  cc_float2 c;
  NEAR(cc_sincos(cc_make<cc_float2>(0.5f, 1), &c).v[0], 0.479425539);
  NEAR(c.v[0], 0.877582562);
}

// A program in the form that the renderer writes, run without the executor: ids of small and of
// huge grids.
namespace {
struct cc_program : cc_item {
  CC_KERNEL_FN void k_ids(cc_ulong *u_out, cc_char u_add) {
    cc_size at =
        cc_get_local_id(0) + cc_get_local_size(0) * (cc_get_local_id(1) + 2 * cc_get_local_id(2));
    u_add += 1; // a parameter is the item's own
    u_out[at] = cc_get_global_id(0) + cc_ulong(u_add);
    u_out[at] += (cc_get_global_id(1) << 8) + (cc_get_global_id(2) << 16) + cc_get_global_id(3) +
                 cc_get_local_size(7);
  }
  void k_none() {}
};
} // namespace
CC_PROGRAM_BEGIN
CC_KERNEL("ids", cc_program, k_ids, 0, 0)
CC_KERNEL("none", cc_program, k_none, 1, 64)
CC_PROGRAM_END

static void ids(cc_ulong offset) {
  const concord_kernel *k = concord_program.kernels;
  EQ(concord_program.kernel_count, 2u);
  EQ(concord_program.abi, CONCORD_HOST_ABI);
  EQ(k->param_count, 2u);
  EQ(k->param_bytes[0], 8u);
  EQ(k->param_bytes[1], 1u);
  EQ(k[1].param_count, 0u);
  EQ(k[1].flags, cc_uint(CONCORD_KERNEL_FIBERS));
  EQ(k[1].local_bytes, 64ul);
  concord_grid g = {3, 0, {12, 4, 2}, {4, 2, 2}, {offset, 0, 1}, {3, 2, 1}};
  concord_ctx ctx = {&g, nullptr, nullptr, 0, {2, 1, 0}, {0, 0, 0}};
  cc_ulong out[16], *p = out;
  cc_char add = 5;
  void *args[] = {&p, &add};
  k->run(&ctx, args);
  for (cc_ulong i = 0; i < 16; i++)
    EQ(out[i], offset + 8 + i % 4 + 6 + ((2 + i / 4 % 2) << 8) + ((1 + i / 8) << 16) + 1);
}

int main() {
  ids(0);
  ids(1ul << 40);
  ids(0x7fffffff - 12);
  ids(0x80000000);
  vectors();
  conversions();
  integers();
  maths();
  printf("%d failures\n", failures);
  return failures != 0;
}
