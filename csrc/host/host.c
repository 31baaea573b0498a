// host.c: the host executor as one translation unit. A Go package or a simulated vendor library
// includes it by one line, #include "../csrc/host/host.c", before any other header. It needs
// -lpthread if that is a library of its own.

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
