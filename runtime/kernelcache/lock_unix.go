//go:build unix && !aix

package kernelcache

// Locks between processes, where the system has flock: a dying process drops it.

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// flock takes an exclusive lock without waiting. errLocked means that another
// process has it; every other error that there are no locks here.
func flock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return errLocked
		default:
			return err
		}
	}
}
