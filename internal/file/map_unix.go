//go:build unix

package file

import (
	"os"

	"golang.org/x/sys/unix"
)

func mapFile(f *os.File, size int) ([]byte, error) {
	// A private mapping can do without the support that some network file systems lack.
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_PRIVATE)
}

func unmapFile(data []byte) error { return unix.Munmap(data) }
