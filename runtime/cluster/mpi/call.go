//go:build cgo && unix && (amd64 || arm64)

package mpi

// Calls into the library. No other file of the package imports "C". The library calls nothing back.

/*
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

#cgo linux LDFLAGS: -ldl
#cgo nocallback concord_mpi_call
#cgo nocallback concord_mpi_poll

// In one family of libraries a handle is an int, in the other a pointer. On these processors both are passed in the
// same registers, and arguments that a function does not take are ignored. So one caller serves all functions.
typedef int32_t any(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

static int32_t concord_mpi_call(void *f, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t g,
                                uint64_t h) {
  return ((any *)f)(a, b, c, d, e, g, h);
}

// Calls MPI_Test for each of two requests, those whose address is not 0, until one is complete or has failed, at most
// as often as told. With yield, other threads and processes run between the attempts.
static int32_t concord_mpi_poll(void *test, const uint64_t *requests, int32_t *flags, int32_t *codes, char *statuses,
                                uint64_t status_size, int64_t attempts, int32_t yield) {
  flags[0] = flags[1] = codes[0] = codes[1] = 0;
  for (int64_t n = 0; n < attempts; n++) {
    if (n > 0 && yield) sched_yield();
    for (int i = 0; i < 2; i++)
      if (requests[i] != 0)
        codes[i] = ((any *)test)(requests[i], (uint64_t)(uintptr_t)&flags[i],
                                 (uint64_t)(uintptr_t)(statuses + i * status_size), 0, 0, 0, 0);
    if (flags[0] || flags[1] || codes[0] || codes[1]) return 1;
  }
  return 0;
}

// Open MPI's components are not linked with the library: they find it among the symbols of the whole process.
static int32_t concord_mpi_globally(const char *path) {
  return dlopen(path, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL) != NULL;
}

// Libraries set handlers of signals that are no use in a program of Go: they run on stacks that are too small, end the
// process at a nil pointer, or call the handler of Go before them without its arguments, as MPICH's does for the signal
// that its launcher sends to all processes when one has ended.
static struct sigaction concord_mpi_signals[NSIG];

static void concord_mpi_keep_signals(void) {
  for (int n = 1; n < NSIG; n++) sigaction(n, NULL, &concord_mpi_signals[n]);
}

static void concord_mpi_restore_signals(void) {
  for (int n = 1; n < NSIG; n++) {
    struct sigaction now;
    if (sigaction(n, NULL, &now) == 0 && now.sa_sigaction != concord_mpi_signals[n].sa_sigaction)
      sigaction(n, &concord_mpi_signals[n], NULL);
  }
}
*/
import "C"

import "unsafe"

// callable says whether this build can call a library.
const callable = true

// call calls a function of the library, of at most seven integers, handles and addresses, and returns its code.
func call(f unsafe.Pointer, args ...uint64) int32 {
	var a [7]C.uint64_t
	for i, arg := range args {
		a[i] = C.uint64_t(arg)
	}
	return int32(C.concord_mpi_call(f, a[0], a[1], a[2], a[3], a[4], a[5], a[6]))
}

// poll tests the requests of a pair until one of them is complete or has failed, and reports whether one is. It gives
// up after so many attempts.
func poll(test unsafe.Pointer, p *pair, attempts int, yield bool) bool {
	y := C.int32_t(0)
	if yield {
		y = 1
	}
	return C.concord_mpi_poll(test, (*C.uint64_t)(unsafe.Pointer(&p.request)), (*C.int32_t)(unsafe.Pointer(&p.flag)),
		(*C.int32_t)(unsafe.Pointer(&p.code)), (*C.char)(unsafe.Pointer(&p.status)), statusSize, C.int64_t(attempts), y) != 0
}

// globally makes the symbols of a library that was opened before visible to libraries that are opened later.
func globally(path string) bool {
	p := C.CString(path)
	defer C.free(unsafe.Pointer(p))
	return C.concord_mpi_globally(p) != 0
}

// keepSignals notes the handlers of all signals, and restoreSignals puts those back that have changed since.
func keepSignals() { C.concord_mpi_keep_signals() }

func restoreSignals() { C.concord_mpi_restore_signals() }

// zeroed returns memory of C, which the library may keep, or nil. It is never freed.
func zeroed(size uintptr) unsafe.Pointer { return C.calloc(1, C.size_t(size)) }
