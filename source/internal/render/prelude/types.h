// types.h: the scalar types of OpenCL C, and what the rest of the prelude asks about types. All targets share
// it. It calls no library and includes nothing. A target's own part comes first and defines CC_FN (how
// functions are declared), CC_COPY and CC_CLEAR (memcpy, memset), CC_INFINITY and its like (with _INIT: in
// the initializer of a constant), and the cc_m_ and cc_a_ hooks.

#ifndef CC_BEGIN
#define CC_BEGIN namespace {
#define CC_END }
#endif
CC_BEGIN

// What Metal defines otherwise, which has address spaces in its types, and no double. CC_SPACES repeats a macro
// for each space that a program can write to, CC_READ_SPACES for each that it can read, CC_ATOMIC_SPACES for each
// that has atomics. CC_READ and CC_WRITE copy a class out of a space and into one.
#ifndef CC_SPACES
#define CC_PRIVATE
#define CC_SPACES(f) f()
#define CC_READ_SPACES(f) f()
#define CC_ATOMIC_SPACES(f) f()
#define CC_READ(x) x
#define CC_WRITE(x, value) x = value
#define CC_FOR_DOUBLE(...) __VA_ARGS__
#define CC_FOR_HALF(...) // what math.h has for half, where the program does
typedef signed char cc_char;
typedef double cc_double;
struct cc_half;
#endif

// Fixed widths everywhere, char is signed, long has 64 bits; size_t is ulong, the same type.
typedef bool cc_bool;
typedef unsigned char cc_uchar;
typedef short cc_short;
typedef unsigned short cc_ushort;
typedef int cc_int;
typedef unsigned int cc_uint;
typedef long cc_long;
typedef unsigned long cc_ulong;
typedef float cc_float;
typedef unsigned long cc_size, cc_uintptr;
typedef long cc_ptrdiff, cc_intptr;
static_assert(sizeof(cc_long) == 8, "concord needs a long of 64 bits");

#define CC_MAXFLOAT 0x1.fffffep127f
#define CC_NULL nullptr
#define CC_LOCAL_MEM_FENCE 1u
#define CC_GLOBAL_MEM_FENCE 2u

// cc_id keeps a parameter out of template deduction, so that a scalar converts to the lanes' type.
template <class T> struct cc_id_ { typedef T type; };
template <class T> using cc_id = typename cc_id_<T>::type;

template <class A, class B> struct cc_same { enum { yes = 0 }; };
template <class A> struct cc_same<A, A> { enum { yes = 1 }; };

// Integers of a given size, and of the size of T.
template <int Bytes> struct cc_ints;
template <> struct cc_ints<1> { typedef cc_char s; typedef cc_uchar u; };
template <> struct cc_ints<2> { typedef cc_short s; typedef cc_ushort u; };
template <> struct cc_ints<4> { typedef cc_int s; typedef cc_uint u; };
template <> struct cc_ints<8> { typedef cc_long s; typedef cc_ulong u; };
template <class T> using cc_sint = typename cc_ints<sizeof(T)>::s;
template <class T> using cc_unsig = typename cc_ints<sizeof(T)>::u;

// The word in which an object of an alignment is copied, if that has to be done in words.
template <int Align> struct cc_word_ { typedef cc_ulong type; };
template <> struct cc_word_<1> { typedef cc_uchar type; };
template <> struct cc_word_<2> { typedef cc_ushort type; };
template <> struct cc_word_<4> { typedef cc_uint type; };
template <class T> using cc_word = typename cc_word_<alignof(T)>::type;

// Traits of scalars, in forms that Metal has, too: no variables. cc_real is the type that computes with a
// floating type.
template <class T> struct cc_is { enum { fp = 0, sign = T(-1) < T(1) }; };
template <> struct cc_is<float> { enum { fp = 1, sign = 1 }; };
template <class T> struct cc_real_ { typedef float type; };
template <class T> using cc_real = typename cc_real_<T>::type;
template <class T> CC_FN constexpr T cc_int_max() {
  return cc_is<T>::sign ? T((cc_ulong(1) << (sizeof(T) * 8 - 1)) - 1) : T(~cc_ulong(0));
}
template <class T> CC_FN constexpr T cc_int_min() { return cc_is<T>::sign ? T(T(-cc_int_max<T>()) - T(1)) : T(0); }
template <class T> CC_FN T cc_least() { return cc_is<T>::fp ? T(-CC_INFINITY) : cc_int_min<T>(); }
template <class T> CC_FN T cc_most() { return cc_is<T>::fp ? T(CC_INFINITY) : cc_int_max<T>(); }

// ---- vectors ----

template <class T, int N> struct cc_vec;
#define CC_LANES(expr) \
  for (int i = 0; i < N; i++) \
    r.v[i] = (expr); \
  return r
#define CC_T template <class T, int N>
#define CC_V cc_vec<T, N>
#define CC_B cc_vec<cc_sint<T>, N> // what comparisons give: lanes of 0 and -1

CC_END
