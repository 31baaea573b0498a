#define LINE __LINE__
#define f(a, b) a b __LINE__
__LINE__ LINE f(__LINE__, LINE)
f(1,
  __LINE__
 ) f
(__LINE__,
 LINE)
a \
__LINE__ \
__LINE__
/* comment
   over lines */ __LINE__
#line 100
__LINE__ LINE
#line 200 "other.cl"
__LINE__ __FILE__
#define N 300
#line N
__LINE__
# 400 "third.cl" 1
__LINE__ __FILE__
__COUNTER__ __COUNTER__ f(__COUNTER__, __COUNTER__)
id\
ent 12\
34 "str\
ing" +\
+ // comment \
still comment
/\
* comment *\
/ after /\
/ line comment
#def\
ine SPLIT 1\
2
SPLIT
#if __LINE__ == 407 + 12
right
#else
wrong __LINE__
#endif
