#define str(x) #x
#define xstr(x) str(x)
#define E
#define y(x) x y
#define sp(x) [x]
str(a  +   b) str( a ) str(a/**/b) str(a /* c */ b) str("q\n\\" '"' '\'') str("a" "b")
xstr(-y()-) xstr(- E-) xstr(-E -) xstr(-E-) xstr(E) xstr(E E) xstr(a E b) xstr(aE b)
xstr(sp(1)sp(2)) xstr(sp( 1 )) xstr(sp()sp()) xstr( sp(sp(x)) )
str(a
 b
c) str(
) xstr((,)) str((a,b))
#define two(a,b) a b
#define pad(a) a-a - a
xstr((two(1,2))) xstr(two(,)) xstr(x two(,)) xstr(two(,)x) xstr(two(1,)x) xstr(pad()) xstr(pad(E)) xstr(pad(1)) xstr(pad(two(,)))
#define f() f
xstr(f()()) xstr(f ()) xstr(f()  x) xstr(f (  ) f)
str('\\') str("\\") str(<:) str(%:%:)
str(L"x") str(1.5e+3f) str(0x1p-3) str(.) str(...) str(a->b) xstr(__LINE__)
#define hash(a) # a #a
hash(x y)
