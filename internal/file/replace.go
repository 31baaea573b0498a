package file

// Files that are replaced as a whole: written under a temporary name in the same directory, forced
// to the disk, and renamed.

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Replace replaces the contents of a file by the output of write. It calls Create, write and
// Commit: an error of write is returned as it is, and leaves the file unchanged.
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
	lock *os.File // of the temporary file, until the Output is closed; nil where there are none
	name string   // the file's directory; nil: output goes directly to the file
}

// Create begins to write the file that path names, which is unchanged until Commit.
//
// Create refuses files that a plain open for writing refuses, and also files that it could not
// replace as a whole: a file without write permission for anybody, although the superuser could
// write it, and a file whose directory permits no new file or no replacement of this one. A
// symbolic link stays; its target is replaced or made. A replaced file keeps its permissions (on
// Linux its access control list, too) and, where the system permits, its owner and group; its other
// hard links keep the old contents. A new file has the permissions of any new file. Create writes
// directly to files that are not regular, such as a pipe or /dev/full, and to the files of
// os.Stdout and os.Stderr.
//
// A process that is killed leaves a file .concord-… in the directory. A later Create there
// removes it: at once if it was made on this machine since that was started (on Linux), otherwise
// when nothing has been written to it for an hour.
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

// direct begins to write directly to the existing file.
func (o *Output) direct(info fs.FileInfo) (err error) {
	if o.file = standard(info); o.file == nil {
		o.file, err = os.OpenFile(o.path, os.O_WRONLY, 0)
	}
	return err
}

// beside begins to write a temporary file beside the file. Links are followed once: the file that
// is checked now, and replaced in the end, has one name in one directory.
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

// begin makes the temporary file. old is the existing file, or nil.
func (o *Output) begin(dir, name string, old *os.File) (err error) {
	sweep(o.dir, time.Now().Add(-staleAfter))
	mode := fs.FileMode(0o666)
	if old != nil {
		// The contents may be private, like those of the old file.
		mode = 0o600
	}
	for kept := false; !kept; {
		temp := tempName()
		if o.file, err = o.dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode); err != nil {
			if old != nil && errors.Is(err, fs.ErrPermission) {
				err = fmt.Errorf("no file can be made in %s, to be put in its place: %w", dir, WithoutPath(err))
			}
			return err
		}
		o.temp, o.name = temp, name
		if o.lock, kept, err = hold(o.file); err != nil {
			return err
		}
		if !kept { // another process removes it
			_ = o.closeFile()
			_ = o.dir.Remove(temp)
			o.temp = ""
		}
	}
	if old == nil {
		return nil
	}
	info, err := old.Stat()
	if err != nil {
		return err
	}
	return o.file.Chmod(keepAccess(o.file, old, keepOwner(o.file, info)))
}

// Target returns the absolute path of the file that a path names, after following all links: the
// file that Create would replace or make. Two paths with the same target name the same file.
func Target(path string) (string, error) {
	dir, name, err := place(path)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return "", &fs.PathError{Op: "find", Path: path, Err: WithoutPath(err)}
	}
	return filepath.Join(dir, name), nil
}

// maxLinks is the number of links that are followed in a row, as systems limit it.
const maxLinks = 40

// place returns the directory of the file that a path names, after following all links, and the
// file's name there. The file need not exist.
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
		// The path is not cleaned: an element before a ".." may be a link.
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return "", "", err
		}
		if name == "." || name == ".." {
			return "", "", syscall.EISDIR
		}
		target, err := os.Readlink(filepath.Join(dir, name))
		if err != nil { // it is no link, or does not exist
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

// Write writes the next bytes.
func (o *Output) Write(b []byte) (int, error) {
	if o.file == nil {
		return 0, o.failed("write", fs.ErrClosed)
	}
	n, err := o.file.Write(b)
	return n, o.failed("write", err)
}

// Commit forces the contents to the disk and renames the temporary file to the file's name. After
// an error the file is unchanged. It closes the Output.
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
		err = nil // the file system does not support it
	}
	if err = errors.Join(err, o.closeFile()); err != nil {
		return o.failed("write", err)
	}
	if err := o.dir.Rename(o.temp, o.name); err != nil {
		return o.failed("rename", err)
	}
	o.temp = ""
	syncDir(o.dir) // if this fails, the new name exists nevertheless, at least after a while
	return nil
}

// Close drops the output if it was not committed. Closing again does nothing.
func (o *Output) Close() error {
	err := o.closeFile()
	if o.temp != "" {
		err = errors.Join(err, o.dir.Remove(o.temp))
		o.temp = ""
	}
	if o.lock != nil {
		err = errors.Join(err, o.lock.Close())
		o.lock = nil
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

// failed returns an error about the file that the caller named, and not about the temporary
// one.
func (o *Output) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: o.path, Err: WithoutPath(err)}
}

// WithoutPath returns the cause of an error, without the path of the file that it names, such as a temporary one.
func WithoutPath(err error) error {
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
