// Literals: hex floats, suffixes, octal, escapes, unsuffixed doubles, big integers.
// run: kernel=li global=1 args=out:f32:16,out:f64:8,out:i64:16,f32:0.1
// want: 3 1000 0.5 5 0.00999999978 0.125 2 1.40129846e-45 16777216 0.300000012 0 0 0 0 0 0
// want: 0.10000000000000001 0.010000000149011612 0.10000000149011612 0.33333333333333331 0.3333333432674408 0 3.1415926535897931 3.1415927410125732
// want: 511 255 24930 65 65 9223372036854775807 -1 9223372036854775807 -2147483648 4294967295 1 -2147483648 9223372036854775807 12 127 1
kernel void li(global float *f, global double *d, global long *l, float x) {
  f[0] = 0x1.8p1f; f[1] = 1e3f; f[2] = .5f; f[3] = 5.; f[4] = 1.0e-2F; f[5] = 0x1p-3; f[6] = 3.f - 1; f[7] = 1e-45f; f[8] = 16777217.0f; f[9] = 0.1f + 0.2f;
  d[0] = 0.1; d[1] = x * 0.1; d[2] = 0.1f; d[3] = 1 / 3.0; d[4] = 1.0f / 3; d[5] = x + 0.1 == 0.1f + x; d[6] = M_PI; d[7] = M_PI_F;
  l[0] = 0777; l[1] = 0xFFu; l[2] = 'ab'; l[3] = '\x41'; l[4] = '\101'; l[5] = 0x7fffffffffffffff; l[6] = 0xffffffffffffffff; l[7] = 9223372036854775807; l[8] = -2147483648; l[9] = 1u - 2; l[10] = 1UL - 2 > 0; l[11] = INT_MIN; l[12] = ULONG_MAX / 2; l[13] = sizeof(1.0) + sizeof(1.0f); l[14] = CHAR_MIN + UCHAR_MAX; l[15] = FLT_MAX > 1e38f;
}
