// Conversions with saturation and rounding, reinterpretation.
// run: kernel=cv global=1 args=buf:f32:8:-1.5,2.5,3.5,-3.7,300.2,-300,1e10,0.5,out:i32:80,out:f32:8
// want: -1 2 3 -3 300 -300 2147483647 0 -2 2 4 -4 300 -300 2147483647 0 0 2 3 0 255 0 255 0 -2 2 4 -4 127 -128 127 0 -1 3 4 -3 301 -300 0 1 -2 2 3 -4 300 -300 0 0 -1 2 3 -3 300 -300 32767 0 0 2 0 -2 0 5 255 255 1065353216 -1082130432 1056964608 0 1 3 -3 1 1 4464 1 0 127 3 -1 0
// want: 16777216 16777218 16777218 1 255 1.875 0.00100000005 4.2949673e+09
kernel void cv(global const float *x, global int *o, global float *f) {
  for (int i = 0; i < 8; i++) {
    float v = x[i];
    o[i] = convert_int_sat(v); o[8 + i] = convert_int_sat_rte(v); o[16 + i] = convert_uchar_sat(v); o[24 + i] = convert_char_sat_rte(v);
    o[32 + i] = i == 6 ? 0 : convert_int_rtp(v); o[40 + i] = i == 6 ? 0 : convert_int_rtn(v); o[48 + i] = convert_short_sat_rtz(v);
  }
  int4 a = convert_int4_rte((float4)(0.5f, 1.5f, -0.5f, -2.5f)); vstore4(a, 14, o);
  uchar4 b = convert_uchar4_sat((int4)(-5, 5, 300, 255)); vstore4(convert_int4(b), 15, o);
  vstore4(as_int4((float4)(1, -1, 0.5f, 0)), 16, o); o[68] = as_uint(-0.0f) >> 31; o[69] = as_short2(0x00030004).y;
  o[70] = convert_int((char)-3); o[71] = convert_uint((char)-3) == 4294967293u; o[72] = as_uchar4(0x01020304).w; o[73] = convert_ushort(70000);
  f[0] = convert_float(16777217); f[1] = convert_float_rtp(16777217); f[2] = convert_float_rtz(16777219); f[3] = as_float(0x3f800000);
  f[4] = convert_float4((uchar4)(1, 2, 3, 255)).w; f[5] = as_float2(as_ulong((double)1)).y; f[6] = convert_float(1e-3); f[7] = (float)(uint)-1;
  o[74] = (int)convert_long_sat(1e30f) == -1; o[75] = convert_uint_sat(-1L); o[76] = convert_char_sat(200u); o[77] = ((int4)(3)).w; o[78] = convert_int2((double2)(1.9, -1.9)).y;
}
