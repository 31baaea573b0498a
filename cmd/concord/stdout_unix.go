//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// takeStdout returns standard output and points descriptor 1 at standard error.
// Vendors' libraries and the printf of OpenCL kernels write to that descriptor,
// and would get between the lines of a document.
func takeStdout() *os.File {
	fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return os.Stdout // it is closed: writing will say so
	}
	if err := unix.Dup2(2, 1); err != nil {
		unix.Close(fd)
		return os.Stdout
	}
	return os.NewFile(uintptr(fd), "/dev/stdout")
}
