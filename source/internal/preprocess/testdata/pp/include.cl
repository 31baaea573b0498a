#include "guard.h"
#include "guard.h"
#include <once.h>
#include "once.h"
#define WHICH <beside.h>
#include WHICH
#define STR(x) #x
#define XSTR(x) STR(x)
#define DIR sub
#include XSTR(DIR/beside.h)
#define X(c) kernel_##c,
enum {
#include "colors.def"
};
#undef X
#define X(c) #c
#include "colors.def"
#include "sub/../beside.h"
# include /* here */ "beside.h" // there
