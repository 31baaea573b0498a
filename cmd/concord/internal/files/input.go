// Package files reads the files of commands within limits, without waiting for ever, and says what may be replaced.
package files

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
	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/internal/npy"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/mempool"
)

// The most bytes that are read of files, by what they are. A device has no end, and a file without blocks on
// the disk may claim any size.
const (
	MostProgram     = 64 << 20
	MostDescription = 16 << 20
	MostBaseline    = 64 << 20
	MostText        = 256 << 20
	MostImages      = 256 << 20
	MostTrace       = 1 << 30
)

// Wait returns what read returns. Reading a pipe or a terminal may take for ever: once ctx is done, its error
// is returned, and the process ends while read still waits.
func Wait[T any](ctx context.Context, read func() (T, error)) (T, error) {
	return blocking.Call(ctx, read, func(T) {})
}

// Read opens a file and reads it with read, as [Wait] does. More than so many bytes are driver.ErrTooLarge.
func Read[T any](ctx context.Context, path string, most int64, read func(io.Reader) (T, error)) (T, error) {
	return Wait(ctx, func() (x T, err error) {
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

// Contents returns all of a file, as [Read] does.
func Contents(ctx context.Context, path string, most int64) ([]byte, error) {
	return Read(ctx, path, most, io.ReadAll)
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

// ReadArray returns the array of a file, as [Wait] does. A file that is larger than the machine's memory is
// driver.ErrTooLarge.
func ReadArray(ctx context.Context, path string) (npy.Array, error) {
	if err := Fits(path); err != nil {
		return npy.Array{}, err
	}
	return Wait(ctx, func() (npy.Array, error) { return npy.ReadFile(path) })
}

// Fits returns an error for a file that the machine has less memory than, if both sizes are known.
func Fits(path string) error {
	info, err := os.Stat(path)
	if _, total, known := mempool.SystemMemory(); err == nil && known && info.Size() > total {
		return fmt.Errorf("%s: %s are read into memory, of which this machine has %s: %w", path,
			driver.FormatBytes(info.Size()), driver.FormatBytes(total), driver.ErrTooLarge)
	}
	return nil
}

// Directory has the files that a program of this command may include: those in it and, by names that begin with
// "../", all others. Whoever names a program here can read them anyway. What is no regular file, such as a pipe that
// would be waited for, cannot be opened.
type Directory string

// Open implements fs.FS.
func (d Directory) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return d.OpenAbove(name)
}

// OpenAbove opens files outside of the directory, too.
func (d Directory) OpenAbove(name string) (fs.File, error) {
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

// WithoutPath is the cause of an error that would name a temporary file.
var WithoutPath = file.WithoutPath

// IsArray reports whether a name is that of an array of NumPy.
func IsArray(name string) bool { return strings.EqualFold(filepath.Ext(name), ".npy") }

// CanReadAgain reports whether a path names, or can name, a file that is read after it was written. A pipe
// would be waited for.
func CanReadAgain(path string) bool {
	info, err := os.Stat(path)
	// a directory is refused when it is to be written
	return !IsStdout(path) && (err != nil || info.Mode().IsRegular() || info.IsDir())
}
