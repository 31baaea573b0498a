package file

// Files that are replaced whole: written under a temporary name beside their
// place, forced to the disk, and renamed.

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Replace makes a file hold what write writes. It is Create, write, Commit: an error
// of write is returned as it is, and leaves the file as it was.
func Replace(path string, write func(io.Writer) error) error {
	out, err := Create(path)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := write(out); err != nil {
		return err
	}
	return out.Commit()
}

// Output is a file that is being written. It is not safe for concurrent use.
type Output struct {
	path string   // as the caller named it
	file *os.File // nil when it is closed
	dir  *os.Root // of the file; nil: what is written is there at once
	temp string   // the name in dir until Commit
	name string   // the name in dir after it
}

// Create begins to write the file that path names: until Commit that is what it was.
//
// What a plain open for writing refuses is refused, and so is a file that nobody may
// write to, although the superuser could, and one whose directory takes no new file, or no
// other in place of this one: it could not be replaced as a whole. A symbolic link stays, and what it points to is replaced or made.
// A file that was there keeps its permissions (on Linux its access control list, too) and,
// where the system lets it, its owner and group; its other hard links keep the old contents. A new one has the
// permissions of any new file. What is no regular file, such as a pipe or /dev/full, and what
// os.Stdout or os.Stderr is, is written to directly.
//
// A process that is killed leaves a file .concord-… in the directory; a later Create there
// removes it, once nothing has been written to it for an hour.
//
// An error is a *fs.PathError with path. The caller owns the Output and must close it.
func Create(path string) (*Output, error) {
	o := &Output{path: path}
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular() || err == nil && isStandard(info):
		err = o.direct(info)
	case err == nil || errors.Is(err, fs.ErrNotExist):
		err = o.beside()
	}
	if err != nil {
		o.Close()
		return nil, o.failed("create", err)
	}
	return o, nil
}

// isStandard reports whether a file is the standard output or error of this process.
func isStandard(info fs.FileInfo) bool { return standard(info) != nil }

func standard(info fs.FileInfo) *os.File {
	for _, std := range []*os.File{os.Stdout, os.Stderr} {
		if open, err := std.Stat(); err == nil && os.SameFile(open, info) {
			return std
		}
	}
	return nil
}

// direct begins to write to what is there.
func (o *Output) direct(info fs.FileInfo) (err error) {
	if o.file = standard(info); o.file == nil {
		o.file, err = os.OpenFile(o.path, os.O_WRONLY, 0)
	}
	return err
}

// beside begins to write a file that will get its name later. Links are followed once: what
// is looked at here, and replaced in the end, has one name in one directory.
func (o *Output) beside() error {
	dir, name, err := place(o.path)
	if err != nil {
		return err
	}
	if o.dir, err = os.OpenRoot(dir); err != nil {
		return err
	}
	info, err := o.dir.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return o.begin(dir, name, nil)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("it was exchanged: %w", fs.ErrPermission)
	case info.Mode().Perm()&0o222 == 0:
		return fs.ErrPermission
	}
	old, err := o.dir.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer old.Close()
	in, err := o.dir.Stat(".")
	if err == nil {
		err = mayReplace(in, info)
	}
	if err != nil {
		return err
	}
	return o.begin(dir, name, old)
}

// begin makes the temporary file. old is the file that is there, if one is.
func (o *Output) begin(dir, name string, old *os.File) (err error) {
	sweep(o.dir, time.Now().Add(-staleAfter))
	temp, mode := tempPrefix+rand.Text(), fs.FileMode(0o666)
	if old != nil {
		// It may become what others cannot read.
		mode = 0o600
	}
	if o.file, err = o.dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode); err != nil {
		if old != nil && errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("no file can be made in %s, to be put in its place: %w", dir, withoutPath(err))
		}
		return err
	}
	o.temp, o.name = temp, name
	if old == nil {
		return nil
	}
	info, err := old.Stat()
	if err != nil {
		return err
	}
	return o.file.Chmod(keepAccess(o.file, old, keepOwner(o.file, info)))
}

// Target returns the absolute path of the file that a path names, all links followed:
// what Create would replace or make. Two paths with the same target are the same file.
func Target(path string) (string, error) {
	dir, name, err := place(path)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return "", &fs.PathError{Op: "find", Path: path, Err: withoutPath(err)}
	}
	return filepath.Join(dir, name), nil
}

// maxLinks bounds how many links in a row are followed, as systems do.
const maxLinks = 40

// place returns the directory of what a path names, all links followed, and its name
// there. Nothing need have that name.
func place(path string) (dir, name string, err error) {
	for range maxLinks {
		if path == "" {
			return "", "", syscall.ENOENT
		}
		if os.IsPathSeparator(path[len(path)-1]) {
			return "", "", syscall.EISDIR
		}
		dir, name = filepath.Split(path)
		if dir == "" {
			dir = "."
		}
		// Not cleaned: what comes before a ".." may be a link itself.
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return "", "", err
		}
		if name == "." || name == ".." {
			return "", "", syscall.EISDIR
		}
		target, err := os.Readlink(filepath.Join(dir, name))
		if err != nil { // it is no link, or not there
			return dir, name, nil
		}
		if err := mayFollow(dir, name); err != nil {
			return "", "", err
		}
		if path = target; !filepath.IsAbs(target) {
			path = dir + string(filepath.Separator) + target
		}
	}
	return "", "", syscall.ELOOP
}

// Write writes what comes next.
func (o *Output) Write(b []byte) (int, error) {
	if o.file == nil {
		return 0, o.failed("write", fs.ErrClosed)
	}
	n, err := o.file.Write(b)
	return n, o.failed("write", err)
}

// Commit ends the writing: it forces the contents to the disk, and then gives them the
// file's name. After an error the file is what it was. It closes the Output.
func (o *Output) Commit() error {
	if o.file == nil {
		return o.failed("write", fs.ErrClosed)
	}
	defer o.Close()
	if o.dir == nil {
		return o.failed("close", o.closeFile())
	}
	err := o.file.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		err = nil // a file system that forces nothing
	}
	if err = errors.Join(err, o.closeFile()); err != nil {
		return o.failed("write", err)
	}
	if err := o.dir.Rename(o.temp, o.name); err != nil {
		return o.failed("rename", err)
	}
	o.temp = ""
	syncDir(o.dir) // where this fails the file is there all the same, or will be
	return nil
}

// Close drops what was not committed. Closing again does nothing.
func (o *Output) Close() error {
	err := o.closeFile()
	if o.temp != "" {
		err = errors.Join(err, o.dir.Remove(o.temp))
		o.temp = ""
	}
	if o.dir != nil {
		err = errors.Join(err, o.dir.Close())
	}
	return o.failed("close", err)
}

func (o *Output) closeFile() error {
	f := o.file
	o.file = nil
	if f == nil || f == os.Stdout || f == os.Stderr {
		return nil
	}
	return f.Close()
}

// failed is an error about the file that the caller named, and not about the temporary
// one.
func (o *Output) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: o.path, Err: withoutPath(err)}
}

// withoutPath is what an error about a file says of it.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

// syncDir forces a directory's names to the disk, where the file system can.
func syncDir(dir *os.Root) {
	if f, err := dir.Open("."); err == nil {
		_ = f.Sync()
		f.Close()
	}
}
