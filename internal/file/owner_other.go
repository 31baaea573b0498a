//go:build !unix

package file

import (
	"io/fs"
	"os"
)

// keepOwner returns the permissions of a file that replaces another. This system has no owners
// and groups.
func keepOwner(_ *os.File, old fs.FileInfo) fs.FileMode { return old.Mode().Perm() }

func mayFollow(_, _ string) error { return nil }

// mayReplace refuses nothing: there is no sticky bit here.
func mayReplace(_, _ fs.FileInfo) error { return nil }
