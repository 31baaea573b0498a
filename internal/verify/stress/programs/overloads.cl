// Mixed arguments of built-ins; a user's function with the name of a built-in is called.
// run: kernel=bi global=1 args=out:f32:32,out:i32:32,i32:3,u32:7
// want: 8 8 2 1.73205078 1 1.5 2.5 12 0 0.5 1 1 0 0.5 0.75 0.75 3 5 3 6 32 5 0.25 1.5 3 1 0.5 -1 0.75 0.75 3 0.25
// want: 4 5 3 3 2 4 15 7 8 31 2 7 8 127 0 2 65538 12 200 2 204 3 2147483647 5 2 3 8 2 3 3 3 1016
float clamp01(float x) { return clamp(x, 0.0f, 1.0f); }
float lerp(float a, float b, float t) { return mix(a, b, t); }
int mad(int a, int b, int c) { return a * b - c; }
kernel void bi(global float *o, global int *p, int n, uint u) {
  o[0] = pow(2.0f, (float)n); o[1] = pown(2.0f, n); o[2] = fmax(1.5f, 2); o[3] = sqrt((float)n);
  o[4] = clamp01(1.7f); o[5] = lerp(1, 3, 0.25f); o[6] = fabs(-2.5f); o[7] = ldexp(1.5f, n);
  float4 v = clamp((float4)(-1, 0.5f, 2, 3), 0.0f, 1.0f); vstore4(v, 2, o);
  v = fmin(v, 0.75f); vstore4(v, 3, o);
  v = max((float4)(1, 5, 2, 6), 3.0f); vstore4(v, 4, o);
  o[20] = dot((float3)(1, 2, 3), (float3)(4, 5, 6)); o[21] = length((float2)(3, 4));
  o[22] = native_divide(1.0f, 4.0f); o[23] = fmod(7.5f, 2.0f); o[24] = mix(2.0f, 4.0f, 0.5f);
  o[25] = step(1.0f, 2.0f); o[26] = smoothstep(0.0f, 2.0f, 1.0f); o[27] = sign(-3.0f);
  int e; o[28] = frexp(12.0f, &e); p[0] = e; float ip; o[29] = modf(3.75f, &ip); o[30] = ip; o[31] = fract(2.25f, &ip);
  p[1] = max(n, 5); p[2] = min((uint)n, u); p[3] = abs(-n); p[4] = mad(2, 3, 4); p[5] = clamp(n, 4, 9);
  p[6] = mul24(n, 5); p[7] = mad24(n, 2, 1); p[8] = popcount(0xffu); p[9] = clz(1); p[10] = rotate(1, 33);
  p[11] = hadd(7, 8); p[12] = rhadd(7, 8); p[13] = add_sat((char)100, (char)100); p[14] = sub_sat((uchar)3, (uchar)9);
  p[15] = mul_hi(1 << 30, 8); p[16] = upsample((short)1, (ushort)2); p[17] = abs_diff(-5, 7); p[18] = max((uchar)3, (uchar)200);
  p[19] = select(1, 2, n > 2); p[20] = bitselect(0xf0, 0x0f, 0x3c); p[21] = mad_hi(1 << 30, 8, 1); p[22] = mad_sat(1 << 30, 4, 1);
  int4 s = select((int4)(1, 2, 3, 4), (int4)(5, 6, 7, 8), (int4)(-1, 0, 1, -2)); vstore4(s, 0, p + 23);
  p[27] = max((char)-3, (char)2); p[28] = min(5u, 3u); p[29] = isinf(INFINITY) + 2 * isnan(NAN); p[30] = ilogb(8.0f); p[31] = as_int(1.0f) >> 20;
}
