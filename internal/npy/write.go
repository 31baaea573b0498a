package npy

// Writing: format 1.0, C order, little-endian.

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/concord-compute/concord/runtime/driver"
)

// Write writes an array. Nothing is written if its shape and data disagree
// (driver.ErrDimension), or there is no such type or shape (driver.ErrInvalidArgument).
func Write(w io.Writer, a Array) error {
	if a.Type.Size() == 0 || slices.ContainsFunc(a.Shape, func(d int) bool { return d < 0 }) {
		return fmt.Errorf("npy: type %v, shape %v: %w", a.Type, a.Shape, driver.ErrInvalidArgument)
	}
	want, err := size(a.Shape, a.Type.Size())
	if err != nil {
		return err
	}
	if len(a.Data) != want {
		return fmt.Errorf("npy: %d bytes of data for %v of shape %v, which is %d: %w",
			len(a.Data), a.Type, a.Shape, want, driver.ErrDimension)
	}
	head, err := formatHeader(a.Type, a.Shape)
	if err != nil {
		return err
	}
	for _, part := range [][]byte{head, a.Data} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// WriteFile writes an array to a file. A regular file is replaced whole or not
// at all, under a temporary name beside it first; something else that is there
// already, such as a pipe or /dev/stdout, is written to.
func WriteFile(path string, a Array) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(Write(f, a), f.Close())
	}
	// A link stays a link, and what it points to is replaced.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	// Not os.CreateTemp, whose files only their owner can read.
	temp := filepath.Join(filepath.Dir(path), ".npy-"+rand.Text())
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	if err = errors.Join(Write(f, a), f.Close()); err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		os.Remove(temp)
		return err
	}
	return nil
}
