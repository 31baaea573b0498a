// vload and vstore of every width, half storage.
// run: kernel=vl global=1 args=buf:f32:32:iota,out:f32:64,out:u16:16,buf:u8:16:iota,out:u8:16
// want: 2 3 -1 3 4 5 0 0 9 10 11 12 0 0 0 0 8 9 10 11 12 13 14 15 0 0 0 0 0 0 0 0 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 0 0 0 0 0 0 0 1 3 9 8 1.5 0.0999755859 -2 65504 1.1920929e-07
// want: 15872 11878 11879 44646 11878 49152 31743 2 31744 15360 16384 16896 0 0 0 0
// want: 4 5 6 7 0 0 6 7 8 0 0 0 0 0 0 0
kernel void vl(global const float *x, global float *o, global half *h, constant uchar *c, global uchar *u) {
  vstore2(vload2(1, x), 0, o); vstore3(vload3(1, x), 1, o); o[2] = -1; vstore4(vload4(2, x + 1), 2, o); vstore8(vload8(1, x), 2, o); vstore16(vload16(1, x), 2, o);
  vstore4(vload4(1, c), 0, u); vstore3(vload3(2, c), 2, u); local float t[8]; vstore4((float4)(1, 2, 3, 4), 1, t); o[56] = t[6]; float p[4]; vstore2((float2)(8, 9), 1, p); o[57] = p[3]; o[58] = vload2(1, p).x;
  vstore_half(1.5f, 0, h); vstore_half4((float4)(0.1f, -2, 65504, 1e-7f), 1, h); vstore_half_rtz(0.1f, 1, h); vstore_half2_rtp((float2)(0.1f, -0.1f), 1, h); vstore_half(1e6f, 8, h); vstore_half3((float3)(1, 2, 3), 3, h);
  o[59] = vload_half(0, h); vstore4(vload_half4(1, h), 15, o); o[55] = vload_half2(4, h).y;
}
