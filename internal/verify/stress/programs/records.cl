// Structs and unions: nested, anonymous, packed, aligned, by value, in buffers, arrays inside.
// run: kernel=rec global=2 args=buf:i32:16:iota,out:i32:64
// want: 321 1065353216 16 7 32 5 7 6 3 6 8 6 120 28 219 64 16457 3141 0 3 601 2 6 2 5 2 0 0 0 0 0 0 321 1065353216 16 7 32 5 7 6 3 6 8 6 120 28 219 64 16457 3141 0 5 601 2 6 2 5 2 0 0 0 0 0 0
typedef struct { int a; struct { int b, c; }; union { int d; float e; }; } An;
typedef struct __attribute__((packed)) { char c; int i; short s; } Pk;
typedef struct { char c; int i __attribute__((aligned(16))); } Al;
struct Mat { float m[2][2]; int n; };
struct Mat twice(struct Mat a) { for (int i = 0; i < 4; i++) ((float *)a.m)[i] *= 2; a.n++; return a; }
struct in { int v[3]; }; typedef struct { struct in k[2]; char tail; } Out;
typedef union { uint u; uchar4 b; ushort2 h; float f; } Bits;
typedef struct { int key; int val; } kv;
void swap(kv *a, kv *b) { kv t = *a; *a = *b; *b = t; }
kernel void rec(global const int *x, global int *out) {
  global int *o = out + get_global_id(0) * 32; int k = 0;
  An n; n.a = 1; n.b = 2; n.c = 3; n.e = 1.0f; o[k++] = n.a + n.b * 10 + n.c * 100; o[k++] = n.d; o[k++] = sizeof(An);
  o[k++] = sizeof(Pk); o[k++] = sizeof(Al); Pk p = {1, 2, 3}; Pk pp[2]; pp[1] = p; o[k++] = pp[1].i + pp[1].s; o[k++] = (int)((char *)&pp[1] - (char *)pp);
  struct Mat m = {{{1, 2}, {3, 4}}, 5}; struct Mat t = twice(m); o[k++] = t.m[1][0]; o[k++] = m.m[1][0]; o[k++] = t.n; o[k++] = twice(twice(m)).m[0][1];
  Out z = {{{{1, 2, 3}}, {{4, 5, 6}}}, 'x'}; o[k++] = z.k[1].v[2]; o[k++] = z.tail; o[k++] = sizeof(Out);
  Bits w; w.u = 0x40490fdb; o[k++] = w.b.x; o[k++] = w.b.w; o[k++] = w.h.y; o[k++] = w.f * 1000; w.b.s0 = 0; o[k++] = w.u & 0xff;
  global const kv *q = (global const kv *)x; o[k++] = q[get_global_id(0) + 1].val; kv a = q[0], b = q[3]; swap(&a, &b); o[k++] = a.key * 100 + b.val;
  const Out *c = &z; o[k++] = c->k[0].v[1]; kv ar[3] = {{1, 2}, {3, 4}, {5, 6}}; kv *e = ar + 3; o[k++] = (--e)->val; o[k++] = e - ar; o[k++] = (*e--).key; o[k++] = e[-1].val;
}
