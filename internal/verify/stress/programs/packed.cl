// Packed records with vectors inside: no padding, unaligned members are read, written and copied.
// run: kernel=f global=2 args=out:i32:40
// want: 17 21 8 33 59 44 9 17 8 9 17 6 9 35 9 4 0 0 0 0 17 21 8 33 59 44 9 17 8 9 17 6 9 35 9 4 0 0 0 0
typedef struct __attribute__((packed)) { char c; float4 v; } P;
typedef struct { char c; float4 v; int k; } __attribute__((packed)) P2;
typedef struct { char c; float v __attribute__((packed)); short s; } P4;
typedef struct __attribute__((packed)) { char c; int2 v; struct { int a; short b; } s; union { float4 f; int i; } u; } P5;
typedef struct __attribute__((packed)) { uchar tag; P in[2]; long l; int3 t; } Deep;
int2 twice(P5 p) { return p.v * 2; }
kernel void f(global int *out) {
  global int *o = out + 20 * get_global_id(0); int k = 0;
  o[k++] = sizeof(P); o[k++] = sizeof(P2); o[k++] = sizeof(P4); o[k++] = sizeof(P5); o[k++] = sizeof(Deep);
  P p; p.v = (float4)(1, 2, 3, 4); p.c = 2; P q = p; q.v.yz += q.v.x; o[k++] = q.v.z + p.v.w * 10;
  P5 z; z.u.f = (float4)(5); z.v.y = 4; z.v.x = get_global_id(0); o[k++] = z.u.f.x + z.v.y; o[k++] = (int)&((P5 *)0)->u; o[k++] = twice(z).y;
  P a[3]; for (int i = 0; i < 3; i++) { a[i].c = i; a[i].v = p.v * (float)i; } o[k++] = a[2].v.w + a[1].c; o[k++] = (char *)&a[1] - (char *)a;
  Deep d; d.in[1] = a[2]; d.l = -1; d.t = (int3)(7, 8, 9); Deep e = d; Deep *pe = &e; o[k++] = pe->in[1].v.z; o[k++] = pe->t.z; o[k++] = (char *)&pe->l - (char *)pe;
  P2 b = {1, (float4)(1, 2, 3, 4), 5}; o[k++] = b.v.w + b.k; float4 m = b.v.wzyx * b.v; o[k++] = m.x;
}
