package file

// Locks on temporary files, by which a process finds out that the writer of one is dead.

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// here is the part of a temporary name that says under which run of which kernel it was made: a lock is seen by
// all processes of that one, in whatever container they are, and perhaps by no other machine that has the
// directory from a server. It is "" if the kernel does not tell.
var here = sync.OnceValue(func() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(boot)
	return base32.StdEncoding.EncodeToString(sum[:])[:tempHere]
})

// hold locks a new temporary file until the returned file is closed, or the process ends. The file is nil where
// there are no locks. kept is false if another process, which found the file before the lock was there, has
// removed it or will.
func hold(f *os.File) (lock *os.File, kept bool, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, true, err
	}
	fd := -1
	controlErr := raw.Control(func(file uintptr) {
		if err = unix.Flock(int(file), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			return
		}
		var info unix.Stat_t
		if err = unix.Fstat(int(file), &info); err == nil && info.Nlink == 0 {
			err = unix.EWOULDBLOCK
			return
		}
		// A second descriptor of the same lock, since the file is closed before it gets its name.
		fd, err = unix.FcntlInt(file, unix.F_DUPFD_CLOEXEC, 0)
	})
	switch {
	case controlErr != nil:
		return nil, true, controlErr
	case fd >= 0:
		return os.NewFile(uintptr(fd), f.Name()), true, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil, false, nil
	case errors.Is(err, unix.EMFILE):
		return nil, true, err
	}
	return nil, true, nil // nobody else can lock it either
}

// removeAbandoned removes a temporary file that nobody holds, of a process of this machine.
func removeAbandoned(dir *os.Root, name string) {
	f, err := dir.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return // it is another user's, or it has its name by now
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	free := false
	_ = raw.Control(func(fd uintptr) { free = unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB) == nil })
	if free {
		_ = dir.Remove(name)
	}
}
