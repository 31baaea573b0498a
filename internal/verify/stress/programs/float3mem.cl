// float3 takes 16 bytes; vload3 and vstore3 are packed.
// run: kernel=f3 global=4 args=buf:f32:16:iota,out:f32:12,out:i32:8
// want: 0 3 6 8 11 14 16 19 22 24 27 30
// want: 16 48 32 16 48 16 4 132
typedef struct { char c; float3 v; char d; } S;
typedef struct { uchar3 a; ushort3 b; double2 c; } U;
kernel void f3(global const float3 *in, global float *out, global int *o) {
  int i = get_global_id(0);
  vstore3(in[i] * 2 + (float3)(0, 1, 2), i, out);
  if (i == 0) {
    o[0] = sizeof(float3); o[1] = sizeof(S); o[2] = sizeof(U); o[3] = sizeof(in[0]);
    S s[2]; o[4] = (int)((char *)&s[1] - (char *)&s[0]); o[5] = (int)((char *)&s[0].v - (char *)&s[0]);
    o[6] = vec_step(float3); o[7] = sizeof(char3) + sizeof(long16);
  }
}
