// Functions: prototypes, static, inline, attributes, overloads, struct results, vectors, pointers.
// run: kernel=fn global=4 args=buf:f32:4:iota,out:f32:40
// want: 14 21 0 7 9 2 45 0 0 0 22 31 2 7 9 3 45 0 0 0 32 41 4 2 9 4 45 0 0 0 44 51 6 1 9 5 45 0 0 0
static inline float sq(float x);
float __attribute__((overloadable)) area(float r) { return 3 * r; }
float __attribute__((overloadable)) area(float a, float b) { return a * b; }
int __attribute__((overloadable)) area(int a) { return a * 7; }
float4 __attribute__((overloadable)) area(float4 v) { return v * 2; }
__attribute__((overloadable)) float peek(global const float *p) { return p[0] + 1; }
__attribute__((overloadable)) float peek(float *p) { return p[0] + 2; }
__attribute__((overloadable)) float peek(local float *p) { return 3; }
typedef struct { float x, y; } pt;
__attribute__((always_inline)) pt mk(float x, float y) { pt p = {x, y}; return p; }
float early(int n) { if (n > 2) return 1; else if (n == 2) return 2; for (;;) { if (n++ > 5) return n; } }
void nop() {}
float noparam(void) { nop(); return 4; }
float unused(int, float y) { return y; }
const float cst(const float a, const int n) { return a + n; }
int conv(int a) { return a; }
float conv2(double d) { return d; }
uchar narrow(int x) { return x; }
bool test(int x) { return x; }
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void fn(global const float *x, global float *out) {
  int i = get_global_id(0); global float *o = out + i * 10; float f = x[i];
  o[0] = sq(f) + area(f) + area(2) + area(f, 2) + area((float4)(f)).y; o[1] = peek(x) + peek(&f) * 10; o[2] = mk(1, f).y + mk(f, 3).x;
  o[3] = early(i); o[4] = noparam() + unused(1, 2) + cst(1, 2); o[5] = conv(2.9f) + conv2(f); o[6] = narrow(300) + test(256) + test(0); nop();
}
static inline float sq(float x) { return x * x; }
