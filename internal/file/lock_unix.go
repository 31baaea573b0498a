//go:build unix && !aix

package file

// Locks between processes, where the system has flock: a dying process drops it.

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// TryLock takes an exclusive lock on an open file without waiting. It lasts until the file is closed or the process
// ends. [ErrLocked] means that another open file has it; every other error that there are no locks here.
func TryLock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return ErrLocked
		default:
			return err
		}
	}
}
