package file

// A lock that one process of a machine has at a time.

import (
	"context"
	"errors"
	"os"
	"time"
)

// ErrLocked means that another process, or another open file of this one, has the lock.
var ErrLocked = errors.New("locked by another process")

// Lock takes the lock that the file of that name in a directory stands for, and waits for it, with a look at every
// pause, until ctx is done. It makes the directory, which no other user may be able to write, and the file, which
// stays. The lock lasts until unlock is called or the process ends. The error is that of ctx, of the file system, or
// errors.ErrUnsupported where there are no locks.
func Lock(ctx context.Context, dir, name string, pause time.Duration) (unlock func(), err error) {
	root, err := OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := TryLock(f)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, ErrLocked) {
			f.Close()
			return nil, err
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}
