// The expression for a member of a packed record is evaluated once, whatever the operation on the member.
// run: kernel=pe global=1 args=out:i32:10
// want: 1 1 0 1 4 1 1 7 0 0
typedef struct __attribute__((packed)) { char c; float4 v; int s; } P;
kernel void pe(global int *o) {
  P a[4];
  for (int i = 0; i < 4; i++) { a[i].c = 0; a[i].v = (float4)(0); a[i].s = 1; }
  int i = 0; a[i++].v += (float4)(1.0f); o[0] = i; o[1] = (int)a[0].v.x; o[2] = (int)a[1].v.x;
  i = 0; a[i++].s <<= 2; o[3] = i; o[4] = a[0].s; o[5] = a[1].s;
  i = 0; a[i++].v.xy = (float2)(7.0f, 8.0f); o[6] = i; o[7] = (int)a[0].v.x; o[8] = (int)a[1].v.x; o[9] = (int)a[2].v.x;
}
