// Preprocessor: conditionals inside expressions and parameter lists, stringizing, variadic macros, redefinition, line splices, comments.
// run: kernel=pp global=1 args=out:i32:16
// want: 7 7 8 10 4 11 1 7 8 1 1 0 0 0 0 0
#define STR(x) #x
#define ADD(a, b) a + b
#define TWICE(f, x) f(f(x, 1), 1)
#define EMPTY
#define LONG_MACRO(a) do { \
    int q = a; /* a comment \
    over lines */ o[k++] = q * 2; \
  } while (0)
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#undef EMPTY
#define EMPTY /* nothing */
constant char s[] = STR(a + "b");
kernel void pp(global int *o
#ifdef UNDEFINED
  , int missing
#endif
) {
  int k = 0; o[k++] = ADD(1, 2) * 3; o[k++] = TWICE(ADD, 5); o[k++] = sizeof(s); LONG_MACRO(4 + 1); o[k++] = MAX(k, 3) EMPTY; o[k++] = 1
#if defined(__OPENCL_VERSION__) && !defined(FOO) && (__OPENCL_C_VERSION__ >= 100 || 0)
    + 10
#elif 1
    + 20
#else
    + 30
#endif
    ; o[k++] = __LINE__ > 10; /* * / */ o[k++] = 7 // end \
    o[k++] = 99;
    ; o[k\
++] = 8; o[k++] = 'a' ? "//"[0] == '/' : 0; o[k++] = __ENDIAN_LITTLE__;
}
