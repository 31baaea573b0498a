// Scopes: shadowing, names of types as variables, loops that redeclare, C++ keywords.
// run: kernel=shd global=1 args=out:i32:24
// want: 50 50 5 8 7 100 5 100 1 3 3 1002 5 7 18 4 6 16 21 77 0 17 4 0
struct node { int v; struct node *next; };
typedef struct node node;
typedef int count;
constant int x = 100;
int max_(int a, int b) { return a * 1000 + b; }
int this_(int class) { return class + 1; }
int template(int new, int delete) { int operator = new - delete; return operator; }
kernel void shd(global int *o) {
  int i = 5, k = 0;
  for (int i = 0; i < 2; i++) { int i = 50; o[k++] = i; }
  o[k++] = i; { int i = 7; { int i = 8; o[k++] = i; } o[k++] = i; }
  o[k++] = x; { float x = 2.5f; o[k++] = x * 2; } o[k++] = x;
  struct node node = {1, 0}; struct node b = {2, &node}; o[k++] = b.next->v;
  { count count = 3; o[k++] = count; { typedef float count; count y = 1.5f; o[k++] = y * 2; } }
  o[k++] = max_(1, 2); o[k++] = this_(4); o[k++] = template(9, 2);
  int float4_ = 3, min = 6, u_i = 9; o[k++] = float4_ + min + u_i;
  if (1) { struct node { float q; } n = {1.5f}; o[k++] = sizeof(struct node); o[k++] = n.q * 4; }
  int sizeof_ = sizeof(struct node); o[k++] = sizeof_;
  enum { A, B = 10, C } e = C; o[k++] = e + A + B; { enum { A = 77 }; o[k++] = A; } o[k++] = A;
  unsigned int namespace = 3, try = 4, and = 5; o[k++] = namespace * try + and;
  int cc_l = 4; o[k++] = cc_l;
}
