// Unusual code that people write: a cast local pointer, one as void, commas in loops, chars as counters, empty statements, tricky spacing.
// run: kernel=odd global=4 local=4 args=buf:u16:8:iota,out:i32:32
// want: 262146 70 8 321 505 0 5 7 262146 70 8 321 505 1 5 14 262146 70 8 321 505 2 5 14 262146 70 8 321 505 3 5 14
typedef unsigned int u32; typedef unsigned char u8, bytes[8];
struct tag; struct list { struct list *next; int v; };
enum { COUNT = sizeof(int) * 2, LAST = COUNT - 1 };
void fill(private void *p, int n) { char *c = p; while (n--) *c++ = n; }
int total(const struct list *l) { int s = 0; for (; l; l = l->next) s += l->v; return s; }
__kernel void odd(__global unsigned short *x, __global int *out) {
  __local unsigned short sh[16]; __local uint2 *as2 = (__local uint2 *)sh; int l = get_local_id(0); global int *o = out + l * 8;
  sh[l * 2] = x[l]; sh[l * 2 + 1] = x[l] * 2; sh[8 + l] = l;; barrier(CLK_LOCAL_MEM_FENCE);
  o[0] = as2[1].x; bytes b; fill(b, sizeof b); o[1] = b[0] * 10 + b[LAST]; o[2] = COUNT;
  struct list a = {0, 1}, c = {&a, 20}, d = {.next = &c, .v = 300}; o[3] = total(&d);
  u32 i, j; for (i = 0, j = 10; i < j; ++i, --j) ; o[4] = i * 100 + j; o[5] = l - -1 + + +2 - - -3; 
  int t = 1; int t2 = t++ + 1; t = t2; o[6] = !!t ? t ? 5 : 6 : 7; u8 k; int n = 0; for (k = 250; k; k++) n++; o[7] = n + (l ? sizeof(bytes) : 1u);
}
