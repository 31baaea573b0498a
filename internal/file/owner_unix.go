//go:build unix

package file

import (
	"io/fs"
	"os"
	"path/filepath"
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

// mayFollow refuses a link in a directory with the sticky bit, such as /tmp, that belongs
// neither to this user nor to the directory's: whoever made it would choose the file that
// is replaced. Linux may have this rule for its own (fs.protected_symlinks).
func mayFollow(dir, name string) error {
	in, err := os.Stat(dir)
	if err != nil || in.Mode()&fs.ModeSticky == 0 || !writable(in.Mode()) {
		return err
	}
	link, err := os.Lstat(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	of, ok := link.Sys().(*syscall.Stat_t)
	its, too := in.Sys().(*syscall.Stat_t)
	if !ok || !too || of.Uid == its.Uid || int64(of.Uid) == int64(os.Geteuid()) {
		return nil
	}
	return fs.ErrPermission
}
