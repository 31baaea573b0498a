//go:build cgo

package cpu

// Loading a shared object from memory.

import (
	"fmt"
	"math/bits"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/concord-compute/concord/internal/cgo"
)

var opened atomic.Uint32

// openObject loads a shared object from an anonymous file, which works where no
// directory may hold executable files and leaves nothing behind.
func openObject(object []byte) (cgo.Library, error) {
	if err := checkObject(object); err != nil {
		return cgo.Library{}, err
	}
	fd, err := unix.MemfdCreate("concord-program", unix.MFD_CLOEXEC)
	if err != nil {
		return openTempObject(object) // an old or restricted kernel
	}
	defer unix.Close(fd)
	for rest := object; len(rest) > 0; {
		n, err := unix.Write(fd, rest)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return cgo.Library{}, fmt.Errorf("memfd: %w", err)
		}
		rest = rest[n:]
	}
	lib, err := cgo.Open(uniquePath(fd, opened.Add(1)))
	if err != nil && !strings.Contains(err.Error(), "invalid ELF") {
		if other, otherErr := openTempObject(object); otherErr == nil {
			return other, nil // no /proc, or anonymous files may not be executed
		}
	}
	return lib, err
}

// uniquePath returns a path of a file descriptor that no earlier call has returned. For a path that it
// has seen before, the loader returns the library that it has loaded from it, even if the descriptor
// is another file now. So the path contains the number n of the call in binary, as redundant
// elements "/." and "/../fd".
func uniquePath(fd int, n uint32) string {
	var b strings.Builder
	b.WriteString("/proc/self/fd")
	for i := bits.Len32(n); i > 0; i-- {
		if n>>(i-1)&1 == 1 {
			b.WriteString("/../fd")
		} else {
			b.WriteString("/.")
		}
	}
	fmt.Fprintf(&b, "/%d", fd)
	return b.String()
}
