// when the names of macros are painted blue (never expanded again)
#define f(a) a*g
#define g(a) f(a)
f(2)(9)
f(2) (9) (3)
#define foo foo bar
foo foo
#define A B
#define B C
#define C A
A B C A
#define id(x) x
#define self id(self)
self id(self) id(id)(self)
#define NIL(xxx) xxx
#define G_0(arg) NIL(G_1)(arg)
#define G_1(arg) NIL(arg)
G_0(42)
#define EMPTY
#define LP (
#define RP )
id LP 1)
id EMPTY (2)
#define call id LP 3 RP
call id(call)
#define defer(x) x EMPTY
#define twice(x) x x
twice(twice)(twice(id))(1)
defer(id)(4) id(defer(id)(5))
#define fn() fn2
#define fn2() fn
fn()()()() fn()()
fn
(
)
fn EMPTY fn
#define AA BB
#define BB AA
#define show(x) x AA
show(AA) show(BB)
#define tail id
tail(1) tail tail(2)
#define rec(x) x rec
rec(1)(2)(3)
rec(rec)(4) rec(rec(5))(6)
#define two(x,y) x y
two(two,two)(a,b) two(two(1,2),two(3,4)) two(,)
#define open two(1,
open 2) open 3) 4)
#define mid(x) open x)
mid(5) mid(6) mid(
)
