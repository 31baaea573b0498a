//go:build unix

package file

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a new file the owner and the group of the one that it replaces, as far
// as the system lets it, and returns the permissions to give it: the same, but nothing
// for a group that is another one.
func keepOwner(f *os.File, old fs.FileInfo) fs.FileMode {
	mode := old.Mode().Perm()
	was, ok := old.Sys().(*syscall.Stat_t)
	info, err := f.Stat()
	if !ok || err != nil {
		return mode
	}
	is, ok := info.Sys().(*syscall.Stat_t)
	if !ok || is.Uid == was.Uid && is.Gid == was.Gid {
		return mode
	}
	if f.Chown(int(was.Uid), int(was.Gid)) == nil || is.Gid == was.Gid || f.Chown(-1, int(was.Gid)) == nil {
		return mode
	}
	return mode &^ 0o070
}
