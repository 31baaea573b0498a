package kernelcache

// Sharing a compile across processes. The lock only saves work: a process that cannot get it, or
// has waited too long, compiles for itself.

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/concord-compute/concord/internal/file"
)

const (
	// lockPrefix begins the names of lock files, which lie among the temporary ones.
	lockPrefix = "lock-"
	// The pause between two tries: short at first, as many compiles are short.
	firstPause, longestPause = time.Millisecond, 25 * time.Millisecond
	// lockTries limits how often a lock file may vanish while it is being locked.
	lockTries = 100
)

// errLate means that the lock was not free within the limit; errNoName that lock files
// repeatedly lost their names.
var (
	errLate   = errors.New("still locked")
	errNoName = errors.New("lock files lose their names")
)

// lock takes the lock of a key, waiting up to limit, and returns a function that releases it. An
// error means that there is no lock: the context's error, errLate, or an error of the file system.
func (d *disk) lock(ctx context.Context, key Key, limit time.Duration) (unlock func(), err error) {
	root, err := d.writable()
	if err != nil {
		return nil, err
	}
	name := tempName + "/" + lockPrefix + key.String()
	deadline := time.Now().Add(limit)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		unlock, err := d.tryLock(root, name)
		if !errors.Is(err, file.ErrLocked) {
			return unlock, err
		}
		left := time.Until(deadline)
		if left <= 0 {
			return nil, errLate
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(min(pause, left)):
		}
	}
}

// tryLock takes the lock if it is free. A lock is valid only while its file still has its name: the
// holder removes the file before it releases the lock, so that processes that waited with the old
// file open start again with a new one.
func (d *disk) tryLock(root *os.Root, name string) (unlock func(), err error) {
	for range lockTries {
		f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if !foreign(f) {
			err = d.flock(f)
		} else if err = root.Remove(name); err == nil {
			f.Close()
			continue
		}
		if err != nil {
			f.Close()
			return nil, err
		}
		if named(f, root, name) {
			return func() {
				_ = root.Remove(name)
				f.Close()
			}, nil
		}
		f.Close()
	}
	return nil, errNoName
}

// foreign reports whether an open file could belong to another user, whose process might
// never release the lock.
func foreign(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && file.Check(f.Name(), info) != nil
}

// named reports whether the open file still has that name.
func named(f *os.File, root *os.Root, name string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := root.Lstat(name)
	return err == nil && os.SameFile(mine, there)
}
