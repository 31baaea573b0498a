//go:build unix

package file

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// keepOwner gives a new file the owner and the group of the one that it replaces, as far as the
// system permits, and returns the permissions to set: the same, but none for the group if the group
// is a different one.
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

// mayFollow refuses a link in a directory with the sticky bit, such as /tmp, if the link belongs
// neither to this user nor to the directory's owner: the link's owner could choose the file that is
// replaced. Linux has this rule for its own calls (fs.protected_symlinks).
func mayFollow(dir, name string) error {
	in, err := os.Stat(dir)
	if err != nil || in.Mode()&fs.ModeSticky == 0 {
		return err
	}
	its, ok := in.Sys().(*syscall.Stat_t)
	if !ok || !writable(in.Mode(), its) {
		return nil
	}
	link, err := os.Lstat(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	of, ok := link.Sys().(*syscall.Stat_t)
	if !ok || of.Uid == its.Uid || int64(of.Uid) == int64(os.Geteuid()) {
		return nil
	}
	return fs.ErrPermission
}

// mayReplace refuses in advance a replacement that the system would refuse at the end: in a
// directory with the sticky bit only the owner of the file or of the directory, or the superuser,
// can replace the file.
func mayReplace(dir, old fs.FileInfo) error {
	in, ok := dir.Sys().(*syscall.Stat_t)
	of, too := old.Sys().(*syscall.Stat_t)
	uid := int64(os.Geteuid())
	if !ok || !too || dir.Mode()&fs.ModeSticky == 0 || uid == 0 || uid == int64(in.Uid) || uid == int64(of.Uid) {
		return nil
	}
	return fmt.Errorf("it belongs to another user, and its directory has the sticky bit: %w", fs.ErrPermission)
}
