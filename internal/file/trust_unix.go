//go:build unix

package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/concord-compute/concord/runtime/driver"
)

// tempDirs are the directories for temporary files if the system's own directory is not safe.
var tempDirs = []string{"/tmp", "/var/tmp"}

// check refuses a file that others could have written.
func check(path string, info fs.FileInfo) error {
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok { // not from the system's own call: a file built into the program
		return nil
	}
	if mode := info.Mode(); writable(mode, sys) {
		return looseError(path, mode)
	}
	return checkOwner(path, sys, 0)
}

// writable reports whether others may write, according to the mode and the group.
func writable(mode fs.FileMode, sys *syscall.Stat_t) bool {
	switch {
	case mode.Type() == fs.ModeSymlink:
		return false
	case mode.Perm()&0o002 != 0:
		return true
	}
	return mode.Perm()&0o020 != 0 && int64(sys.Gid) != ownGroup()
}

func looseError(path string, mode fs.FileMode) error {
	return fmt.Errorf("%s has mode %04o and others can write to it (chmod go-w): %w", path, mode.Perm(),
		driver.ErrUnsupported)
}

// checkOwner refuses a file that belongs neither to this user nor to the superuser nor to the
// trusted user.
func checkOwner(path string, sys *syscall.Stat_t, trusted uint32) error {
	if sys.Uid == 0 || sys.Uid == trusted || int64(sys.Uid) == int64(os.Geteuid()) {
		return nil
	}
	return fmt.Errorf("%s belongs to user %d and not to user %d: %w", path, sys.Uid, os.Geteuid(), driver.ErrUnsupported)
}

func checkOwnerOf(path string, info fs.FileInfo) error {
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		return checkOwner(path, sys, 0)
	}
	return nil
}

// way is the state of a walk from the root of the file system.
type way struct {
	// above is the owner of the root, who controls everything that this process runs. It is 0,
	// except in a container in which the superuser has no number.
	above uint32
	// shared says that the directory that was checked last has the sticky bit and is writable for
	// others: its entries may belong to any user without a number in this container.
	shared bool
}

// step checks the next file or directory on the way.
func (w *way) step(path string, info fs.FileInfo) error {
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	trusted := w.above
	if w.shared {
		trusted = 0
	}
	if err := checkOwner(path, sys, trusted); err != nil {
		return err
	}
	loose := writable(info.Mode(), sys)
	if loose && !(info.IsDir() && info.Mode()&fs.ModeSticky != 0) {
		return looseError(path, info.Mode())
	}
	if info.IsDir() {
		w.shared = loose
	}
	return nil
}

// hasOtherNames reports whether a file has several names. Files of the superuser are exempt: some
// systems are made of files with several names.
func hasOtherNames(info fs.FileInfo) bool {
	sys, ok := info.Sys().(*syscall.Stat_t)
	return ok && sys.Nlink > 1 && sys.Uid != 0
}

// walk follows an absolute path from the root of the file system. Each step is one name in a
// directory that was checked: no other user can replace the entry of that name.
func walk(path string, makeDirs bool) (string, error) {
	const separator = string(filepath.Separator)
	w, err := fromRoot()
	at, rest, links := separator, path, 0
	for err == nil && rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, separator)
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			w.shared = true // it may be
			continue
		}
		next := filepath.Join(at, name)
		var info fs.FileInfo
		if info, err = lookAt(next, makeDirs); err != nil {
			return "", err
		}
		if err = w.step(next, info); err != nil {
			return "", err
		}
		switch {
		case info.IsDir():
			at = next
		case info.Mode().Type() == fs.ModeSymlink:
			if links++; links > maxLinks {
				return "", &fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
			}
			var target string
			if target, err = os.Readlink(next); filepath.IsAbs(target) {
				at, w.shared = separator, false
			}
			rest = target + separator + rest
		case strings.Trim(rest, separator) != "" || makeDirs:
			return "", &fs.PathError{Op: "open", Path: next, Err: syscall.ENOTDIR}
		default:
			return next, nil
		}
	}
	return at, err
}

// fromRoot checks the root.
func fromRoot() (*way, error) {
	const root = string(filepath.Separator)
	info, err := os.Lstat(root)
	if err != nil {
		return nil, err
	}
	w := &way{}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		w.above = sys.Uid
	}
	return w, w.step(root, info)
}

// lookAt describes what has a name, and makes a directory of that name if nothing has it.
func lookAt(path string, makeDir bool) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if !makeDir || !errors.Is(err, fs.ErrNotExist) {
		return info, err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.Lstat(path)
}
