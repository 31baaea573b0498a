//go:build unix

package kernelcache

// Who may write to a directory, where owners and mode bits say so.

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/concord-compute/concord/runtime/driver"
)

// checkPrivate refuses a directory that others could put files into: what lies
// there is loaded and run.
func checkPrivate(path string, info fs.FileInfo) error {
	if !info.IsDir() {
		return &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("%s has mode %04o and others can write to it (chmod go-w): %w", path, mode, driver.ErrUnsupported)
	}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok && int64(sys.Uid) != int64(os.Geteuid()) {
		return fmt.Errorf("%s belongs to user %d and not to user %d: %w", path, sys.Uid, os.Geteuid(), driver.ErrUnsupported)
	}
	return nil
}

// syncDir forces a directory's names to the disk, where the file system can.
func syncDir(path string) {
	if f, err := os.Open(path); err == nil {
		_ = f.Sync()
		f.Close()
	}
}
