//go:build unix

package app

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/concord-compute/concord/internal/stdio"
)

// takeStdout returns standard output and makes descriptor 1 refer to standard error. Vendors'
// libraries and the printf of OpenCL kernels write to that descriptor, and their output would
// otherwise be mixed with the lines of a document.
//
// If standard output is closed, writes to the returned file fail.
func takeStdout() *os.File {
	fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return os.Stdout
	}
	if err := unix.Dup2(2, 1); err != nil {
		unix.Close(fd)
		return os.Stdout
	}
	out := os.NewFile(uintptr(fd), "/dev/stdout")
	if stdio.StdoutClosed() {
		out.Close() // it is /dev/null, by which Go's runtime replaces it
	}
	return out
}
