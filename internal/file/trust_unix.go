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

// tempDirs are where temporary files may be if the system's own directory is not safe.
var tempDirs = []string{"/tmp", "/var/tmp"}

// check refuses what others could have written. sticky says that it is a directory on
// the way to something, in which others may write if they cannot rename what is not theirs.
// What the system's own call did not describe is built into the program.
func check(path string, info fs.FileInfo, sticky bool) error {
	if _, ok := info.Sys().(*syscall.Stat_t); !ok {
		return nil
	}
	mode := info.Mode()
	sticky = sticky && mode&fs.ModeSticky != 0
	if mode.Type() != fs.ModeSymlink && mode.Perm()&0o022 != 0 && !sticky {
		return fmt.Errorf("%s has mode %04o and others can write to it (chmod go-w): %w", path, mode.Perm(), driver.ErrUnsupported)
	}
	return checkOwner(path, info)
}

func checkOwner(path string, info fs.FileInfo) error {
	sys, ok := info.Sys().(*syscall.Stat_t)
	if ok && sys.Uid != 0 && int64(sys.Uid) != int64(os.Geteuid()) {
		return fmt.Errorf("%s belongs to user %d and not to user %d: %w", path, sys.Uid, os.Geteuid(), driver.ErrUnsupported)
	}
	return nil
}

// hasOtherNames reports whether a file has several names. What the superuser makes of
// its files is its own business; some systems are built of such files.
func hasOtherNames(info fs.FileInfo) bool {
	sys, ok := info.Sys().(*syscall.Stat_t)
	return ok && sys.Nlink > 1 && sys.Uid != 0
}

// walk follows an absolute path from the root of the file system. Each step is one name in a
// directory that was checked: nobody else can exchange what has that name.
func walk(path string, makeDirs bool) (string, error) {
	const separator = string(filepath.Separator)
	at, rest, links := separator, path, 0
	info, err := os.Lstat(at)
	if err == nil {
		err = check(at, info, true)
	}
	for err == nil && rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, separator)
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		if info, err = lookAt(next, makeDirs); err != nil {
			return "", err
		}
		if err = check(next, info, info.IsDir()); err != nil {
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
				at = separator
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
