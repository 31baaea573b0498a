package main

// The files that commands read, and numbers of the command line.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/concord-compute/concord/internal/blocking"
	"github.com/concord-compute/concord/internal/npy"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/mempool"
)

// The most bytes that are read of files, by what they are. A device has no end, and a file without blocks on
// the disk may claim any size.
const (
	mostProgram     = 64 << 20
	mostDescription = 16 << 20
	mostBaseline    = 64 << 20
	mostText        = 256 << 20
	mostImages      = 256 << 20
	mostTrace       = 1 << 30
)

// wait returns what read returns. Reading a pipe or a terminal may take for ever: once ctx is done, its error
// is returned, and the process ends while read still waits.
func wait[T any](ctx context.Context, read func() (T, error)) (T, error) {
	return blocking.Call(ctx, read, func(T) {})
}

// readFrom opens a file and reads it with read, as wait does. More than so many bytes are driver.ErrTooLarge.
func readFrom[T any](ctx context.Context, path string, most int64, read func(io.Reader) (T, error)) (T, error) {
	return wait(ctx, func() (x T, err error) {
		f, err := os.Open(path)
		if err != nil {
			return x, err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return x, err
		}
		in := &capped{r: f, left: most, err: fmt.Errorf("more than the %s that are read of such a file: %w",
			driver.FormatBytes(most), driver.ErrTooLarge)}
		if err = in.err; info.Size() <= most {
			x, err = read(in)
		}
		if _, named := errors.AsType[*fs.PathError](err); err != nil && !named {
			err = fmt.Errorf("%s: %w", path, err)
		}
		return x, err
	})
}

// contents returns all of a file, as readFrom does.
func contents(ctx context.Context, path string, most int64) ([]byte, error) {
	return readFrom(ctx, path, most, io.ReadAll)
}

// capped is a reader whose error is err behind so many bytes.
type capped struct {
	r    io.Reader
	left int64
	err  error
}

// Read implements io.Reader.
func (c *capped) Read(b []byte) (int, error) {
	if c.left < 0 {
		return 0, c.err
	}
	n, err := c.r.Read(b[:min(int64(len(b)), c.left+1)]) // one more shows that there is more
	if c.left -= int64(n); c.left < 0 {
		return n - 1, c.err
	}
	return n, err
}

// readArray returns the array of a file, as wait does. A file that is larger than the machine's memory is
// driver.ErrTooLarge.
func readArray(ctx context.Context, path string) (npy.Array, error) {
	if err := fits(path); err != nil {
		return npy.Array{}, err
	}
	return wait(ctx, func() (npy.Array, error) { return npy.ReadFile(path) })
}

// fits returns an error for a file that the machine has less memory than, if both sizes are known.
func fits(path string) error {
	info, err := os.Stat(path)
	if _, total, known := mempool.SystemMemory(); err == nil && known && info.Size() > total {
		return fmt.Errorf("%s: %s are read into memory, of which this machine has %s: %w", path,
			driver.FormatBytes(info.Size()), driver.FormatBytes(total), driver.ErrTooLarge)
	}
	return nil
}

// directory has the files that a program of this command may include: those in it and, by names that begin with
// "../", all others. Whoever names a program here can read them anyway. What is no regular file, such as a pipe that
// would be waited for, cannot be opened.
type directory string

// Open implements fs.FS.
func (d directory) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return d.OpenAbove(name)
}

// OpenAbove opens files outside of the directory, too.
func (d directory) OpenAbove(name string) (fs.File, error) {
	path := filepath.Join(string(d), name)
	info, err := os.Stat(path) // it waits for nothing, as opening would
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("it is no regular file")}
	}
	return os.Open(path)
}

// withoutPath is the cause of an error that would name a temporary file.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

// isArray reports whether a name is that of an array of NumPy.
func isArray(name string) bool { return strings.EqualFold(filepath.Ext(name), ".npy") }

// canReadAgain reports whether a path names, or can name, a file that is read after it was written. A pipe
// would be waited for.
func canReadAgain(path string) bool {
	info, err := os.Stat(path)
	// a directory is refused when it is to be written
	return !isStdout(path) && (err != nil || info.Mode().IsRegular() || info.IsDir())
}
