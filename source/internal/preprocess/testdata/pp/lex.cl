a+++b a---b a->b a<<=b a>>=b a...b a..b a.b .5 5. 5.e3 1e+5 0x1.8p+3 1.f <: :> <% %> %:%: a##b a#b
x<y>z x<=y x>=y x==y x!=y x&&y x||y x^=y x|=y x&=y x%=y x*=y x/=y a?b:c::d ~!a
"string with \" and \\ and // no comment /* nor */" 'c' '\'' '"' "'" "" L x
a/**/b a//b
c/* // */d e/*/ */f
$dollar a$b _x __y
