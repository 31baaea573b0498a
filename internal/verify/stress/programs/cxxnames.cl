// Names that C++, the prelude or libc would take: keywords, cc_ names, main, this, template parameters.
// run: kernel=main_ global=2 args=out:i32:8,i32:5
// want: 437 10 97 22 437 10 97 22
#define or_ 1
typedef struct { int public, private_, virtual; struct { int delete; } operator; } class;
int new(int this) { return this + 1; }
int malloc(int n) { return n * 2; }
int u_x(int u) { return u; }
int cc_item(int cc_lid) { return cc_lid + cc_lid; }
int printf_(int and) { return and; }
constant int nullptr = 3, alignas = 4;
kernel void delete(global int *typename) { typename[0] = 1; }
kernel void main_(global int *o, int throw) {
  class catch = {1, 2, 3, {4}}; int explicit = catch.public + catch.virtual * 10 + catch.operator.delete * 100, x = 2, u_x_ = 3; bool export = true;
  o[get_global_id(0) * 4] = new(throw) + explicit; o[get_global_id(0) * 4 + 1] = malloc(x) + u_x(u_x_) + cc_item(1) + printf_(export); int cc_ctx = 1, cc_barrier = 2, std = 3, u_o = 4;
  { int x = 5; { int u2_x = 7, x = 9; o[get_global_id(0) * 4 + 2] = x * 10 + u2_x; } } for (int register_ = 0, mutable = 0; register_ < 2; register_++) { int mutable = 3; u_o += mutable; } using: if (u_o-- > 5) goto using; o[get_global_id(0) * 4 + 3] = cc_ctx + cc_barrier + std + u_o + nullptr * alignas;
}
