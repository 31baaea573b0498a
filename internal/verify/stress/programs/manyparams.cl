// More than 31 parameters, of every kind.
// run: kernel=mp global=1 args=i8:-1,u8:200,i16:-3,u16:60000,i32:5,u32:6,i64:-7,u64:8,f32:1.5,f64:2.25,i32:1,2,f32:1,2,3,4,f32:5,6,7,0,u8:1,2,3,4,i32:1,i32:2,i32:3,i32:4,i32:5,i32:6,i32:7,i32:8,i32:9,i32:10,i32:11,i32:12,i32:13,i32:14,i32:15,i32:16,i32:17,i32:18,out:f32:4,f32:9,8
// want: 60211.75 47412 171 98
typedef struct { float a, b; } pair;
kernel void mp(char a, uchar b, short c, ushort d, int e, uint f, long g, ulong h, float i, double j, int2 k, float4 l, float3 m, uchar4 n,
  int a1, int a2, int a3, int a4, int a5, int a6, int a7, int a8, int a9, int a10, int a11, int a12, int a13, int a14, int a15, int a16, int a17, int a18,
  global float *o, pair z) {
  o[0] = a + b + c + d + e + f + g + h + i + j;
  o[1] = k.x * 10 + k.y + l.w * 100 + m.z * 1000 + n.w * 10000;
  o[2] = a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11 + a12 + a13 + a14 + a15 + a16 + a17 + a18;
  o[3] = z.a * 10 + z.b;
}
