#define cat(a,b) a##b
#define xcat(a,b) cat(a,b)
#define cat3(a,b,c) a##b##c
cat(foo,bar) cat(1,2) cat(1.,e5) cat(.,5) cat(<,<=) cat(-,>) cat(x,1) cat(+,=) cat(%:,%:)
cat(,) cat(a,) cat(,b) [cat(,)] cat3(,,) cat3(a,,c) cat3(,b,) cat3(a,b,c)
#define foobar cat(foo,bar)
foobar xcat(foo,bar) xcat(cat(a,b),c) cat(x y,z w) xcat(xcat(1,2),xcat(3,4))
#define cat_ cat(cat_,x)
cat_ cat(cat,_) cat(ca,t)(p,q) cat(c,at)(r,s)
#define OBJ x ## y
#define OBJ2 a ## b ## c d
OBJ OBJ2
#define N 4
#define TYPE float
#define VEC(t,n) t##n
#define XVEC(t,n) VEC(t,n)
XVEC(TYPE,N) VEC(TYPE,N) XVEC(TYPE,8)
#define eprintf(fmt, ...) printf(fmt, ##__VA_ARGS__)
#define log0(...) log(0, ##__VA_ARGS__)
#define named(fmt, args...) printf(fmt, ## args)
eprintf("a") eprintf("a",) eprintf("a", 1) eprintf("a", 1, N) log0() log0(N) log0(N,N) log0(,)
named("b") named("b", N) named("b", N, xcat(N,N))
#define rest(a, ...) a: __VA_ARGS__;
rest(1) rest(1,) rest(1,2) rest(1,2,3) rest() rest(,,)
#define strva(...) #__VA_ARGS__
strva() strva(a) strva(a,b) strva(a ,  b) strva( "x" , 'y' ) strva((a,b),c)
#define pasteva(...) x##__VA_ARGS__##y
pasteva() pasteva(1) pasteva(a,b) pasteva(k)
#define tstr(a,b) a##b #a #b a b
tstr(N,N) tstr(,) tstr(N N, N)
#define kernel_name(t) reduce_##t
kernel_name(float) kernel_name(TYPE)
#define space(a) a ## a
space(1) space(b) space()
#define numbers(a) 1 ## a 0x ## a 1.5 ## a 2. ## a
numbers(0) numbers(1)
#define mixed(x,y) x##y x y #x #y
mixed(N, cat(1,2)) mixed(cat,_)
