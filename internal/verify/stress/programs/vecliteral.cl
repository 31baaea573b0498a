// Vector literals: directly, through typedefs and macros, nested, splat, mixed.
// run: kernel=lit global=1 args=out:f32:48
// want: 1 2 3 4 5 6 7 8 10 11 12 13 2 4 6 8 1 2 9 7 1 2 3 4 5 6 7 8 1.5 1.5 1.5 1.5 3 4 1.5 1 2 4 6 8 2 4 6 8 3 8 0.5 3.75
typedef float4 quad;
#define V4(a,b,c,d) ((float4)(a,b,c,d))
#define VEC float4
kernel void lit(global float *o) {
  float4 a = (float4)(1, 2, 3, 4);
  quad b = (quad)(5.0f, (float2)(6, 7), 8);
  float4 c = V4(9, 10, 11, 12) + (VEC)(1);
  float4 d = (float4)((float2)(1, 2), (float2)(3, 4)) * (float4)2;
  float3 e = (float3)(a.xy, 9);
  float8 f = (float8)(a, (float4)(b.lo, b.hi));
  float4 g = (float4)(1.5f);
  int i = 3;
  float4 h = (float4)(i, i + 1, (float)i / 2, i > 2);
  vstore4(a, 0, o); vstore4(b, 1, o); vstore4(c, 2, o); vstore4(d, 3, o);
  vstore3(e, 0, o + 16); o[19] = 7; vstore8(f, 0, o + 20); vstore4(g, 7, o); vstore4(h, 8, o);
  float16 w = (float16)(f, a, b);
  vstore8(w.odd, 0, o + 36);
  o[44] = ((float4)(1, 2, 3, 4)).z; o[45] = ((int2)(7, 8)).y;
  float2 m = (float2)(a.x, a.w) - (float2)(0.5f, 0.25f);
  o[46] = m.x; o[47] = m.y;
}
