package file

// Directories and files that no other user can have written.

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/concord-compute/concord/runtime/driver"
)

// OpenRoot opens a trusted directory to which no other user can write; unlike the directories on
// the way to it, it may not be writable even with the sticky bit. Missing directories are made,
// with mode 0700. The path is followed once: even if it names another directory later, the Root is
// the one that was checked.
//
// A directory that is not trusted is an error that matches driver.ErrUnsupported and names the
// directory that fails; nothing was made in or below that one. The caller owns the Root.
func OpenRoot(path string) (*os.Root, error) {
	path, err := resolve(path, true)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return checkRoot(root, path)
}

// SubRoot opens an existing directory in a trusted one, under the same conditions.
func SubRoot(root *os.Root, name string) (*os.Root, error) {
	sub, err := root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return checkRoot(sub, filepath.Join(root.Name(), name))
}

// checkRoot returns the Root if it is trusted, and otherwise closes it.
func checkRoot(root *os.Root, path string) (*os.Root, error) {
	info, err := root.Stat(".")
	if err == nil {
		err = check(path, info)
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

// OpenIn opens a regular file in a trusted directory for reading. It does not follow a link, and
// refuses a file with more than one name, since others can make such names for a file that was not
// meant to be there. A file that is refused is an error that matches driver.ErrFormat. A file that
// is replaced while it is being opened is opened again: in a trusted directory only this user's
// other processes and the superuser can do that. The caller owns the file.
func OpenIn(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	path := filepath.Join(root.Name(), name)
	for range openTries {
		there, err := root.Lstat(name)
		if err != nil {
			return nil, nil, err
		}
		if err := checkFile(path, there); err != nil { // before it is opened, as it may be a pipe
			return nil, nil, err
		}
		f, err := root.Open(name)
		if err != nil {
			return nil, nil, err
		}
		info, err := f.Stat()
		if err == nil && os.SameFile(there, info) {
			if err = checkFile(path, info); err == nil {
				return f, info, nil
			}
		}
		f.Close()
		if err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, fmt.Errorf("%s is replaced all the time: %w", path, driver.ErrFormat)
}

// openTries limits how often a file may be replaced while it is being opened.
const openTries = 100

func checkFile(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file but %v: %w", path, info.Mode().Type(), driver.ErrFormat)
	}
	if err := check(path, info); err != nil {
		return fmt.Errorf("%w: %w", err, driver.ErrFormat)
	}
	if hasOtherNames(info) {
		return fmt.Errorf("%s has other names, too: %w", path, driver.ErrFormat)
	}
	return nil
}

// CheckOpen returns an error that matches driver.ErrUnsupported if a user who is not trusted could
// have written an open file, or replaced it before it was opened by its name. For a pipe or a
// device only the owner is checked: its data has no place in a directory.
func CheckOpen(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return checkOwnerOf(f.Name(), info)
	}
	if err := check(f.Name(), info); err != nil {
		return err
	}
	path, err := resolve(f.Name(), false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has no name any more: only its owner counts
	}
	if err != nil {
		return err
	}
	there, err := os.Lstat(path)
	if err == nil && !os.SameFile(there, info) {
		err = fmt.Errorf("%s was exchanged: %w", path, driver.ErrUnsupported)
	}
	return err
}

// Check returns an error that matches driver.ErrUnsupported if a user who is not trusted could have
// written a file or a directory, judged only by its owner and permissions. It is for files of an
// fs.FS, whose directories cannot be checked. A file that the operating system does not know, such
// as one of embed.FS, is trusted.
func Check(name string, info fs.FileInfo) error { return check(name, info) }

// TempDir makes a directory for temporary files, with mode 0700, in the system's directory for them
// or, if that is not trusted, in another one that is. It returns the path without links. The caller
// removes the directory.
func TempDir(prefix string) (string, error) {
	var errs []error
	for _, dir := range append([]string{os.TempDir()}, tempDirs...) {
		parent, err := resolve(dir, false)
		if err == nil {
			return os.MkdirTemp(parent, prefix)
		}
		if !errors.Is(err, driver.ErrUnsupported) {
			return "", err
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("no directory for temporary files is safe: %w", errs[0])
}

// resolve returns the absolute path of a file or a directory without links. Missing directories are
// made if makeDirs is true. It is an error if the file or a directory or link on the way is not
// trusted; directories with the sticky bit are.
func resolve(path string, makeDirs bool) (string, error) {
	if path == "" {
		return "", syscall.ENOENT
	}
	if !filepath.IsAbs(path) {
		// Not filepath.Abs, which would take the ".." after a link for the
		// directory that holds the link.
		here, err := os.Getwd()
		if err != nil {
			return "", err
		}
		path = here + string(filepath.Separator) + path
	}
	return walk(path, makeDirs)
}
