//go:build cgo && unix

package stdio

/*
#include <errno.h>
#include <fcntl.h>

static int concord_stdout_closed;

// Before Go's runtime begins.
__attribute__((constructor)) static void concord_look(void) {
  concord_stdout_closed = fcntl(1, F_GETFD) == -1 && errno == EBADF;
}

static int concord_closed(void) { return concord_stdout_closed; }
*/
import "C"

// Knows says whether StdoutClosed can tell in this build.
const Knows = true

// StdoutClosed reports whether standard output was closed when the process began.
func StdoutClosed() bool { return C.concord_closed() != 0 }
