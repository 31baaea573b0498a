//go:build !unix

package kernelcache

// Systems without owners and mode bits: the user's cache directory is the
// user's by the system's own rules.

import (
	"io/fs"
	"syscall"
)

func checkPrivate(path string, info fs.FileInfo) error {
	if !info.IsDir() {
		return &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	return nil
}

func syncDir(string) {}
