#if 1
a1
#else
a2
#endif
#if 0
it's not "closed
#error nothing
#if 1
b1
#elif 1/0
b2
#else
#endif
#elif 1
b3
#elif 1/0
b4
#else
b5
#endif
#if defined A || !defined(B) && (2 > 1 ? 1 : 0)
c1
#endif
#define A
#define Z 0
#define F(x) x
#ifdef A
d1
#ifndef A
d2
#else
d3
#endif
#endif
#if F(1) && F (0)
e1
#elif F(1) == 1 && F
e2
#endif
#if -1 > 0u
f1
#endif
#if (0 ? 1u : -1) > 0
f2
#endif
#if (-1 >> 63) == -1 && (-1 >> 100) == -1 && (1 << 64) == 0 && (1 << -1) == 0 && (4 >> -1) == 8
f3
#endif
#if 0x7fffffffffffffff + 1 < 0 && 18446744073709551615u == -1 && 0xffffffffffffffff > 1
f4
#endif
#if 'a' == 97 && '\n' == 10 && '\x41' == 65 && '\101' == 65 && '\377' < 0 && 'ab' == 24930 && '\'' == 39 && '\\' == 92
f5
#endif
#if 0 && 1/0 || 1 || 1%0
f6
#endif
#if 7 / -2 == -3 && 7 % -2 == 1 && -7 / 2u > 1
f7
#endif
#if ~0 == -1 && !0 == 1 && - -1 == 1 && +1 == 1 && ~0u == 0xffffffffffffffff
f8
#endif
#if 1 ? 2 : 3 ? 0 : 0
f9
#endif
#if (1, 0) || 010 == 8 && 0b101 == 5
f10
#endif
#if 2 || 0 && 0
f11
#endif
#if 1 | 6 ^ 3 & 5 == 5
f12
#endif
#if Z
#elif A + 1
#else
#endif
#define HAS defined(A)
#if HAS && HAS
g1
#endif
#if 1 // comment
h1
#endif /* comment
over lines */
# /* null */
#
  #  if 1
h2
	#	endif
/* before */ #if 1
h3
/**/#/**/endif/**/
%:if 1
h4
%:endif
F(1
#if 1
+ 2
#else
+ 3
#endif
#define INSIDE 9
INSIDE)
