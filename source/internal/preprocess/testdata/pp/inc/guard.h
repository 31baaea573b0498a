#ifndef GUARD_H
#define GUARD_H
int guarded;
#include "sub/inner.h"
#endif
