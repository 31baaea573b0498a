// host.c: the host executor as one translation unit. A Go package or a simulated vendor library
// takes it in with one line, #include "../csrc/host/host.c", before any other header; it needs
// -lpthread where the C library keeps threads apart.

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "exec.h"

#ifdef __linux__
#include <sched.h>
#endif

#include "fiber.c"

#include "fault.c"

#include "print.c"

#include "group.c"

#include "pool.c"

#include "share.c"
