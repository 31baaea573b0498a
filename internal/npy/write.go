package npy

// Writing: format 1.0, C order, little-endian.

import (
	"fmt"
	"io"
	"slices"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime/driver"
)

// Write writes an array. If its shape and data disagree (driver.ErrDimension), or the type or shape
// is invalid (driver.ErrInvalidArgument), nothing is written.
func Write(w io.Writer, a Array) error {
	if a.Type.Size() == 0 || a.Type == driver.Bool || slices.ContainsFunc(a.Shape, func(d int) bool { return d < 0 }) {
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

// WriteFile writes an array to a file with [file.Replace]: after an error the file is unchanged.
func WriteFile(path string, a Array) error {
	return file.Replace(path, func(w io.Writer) error { return Write(w, a) })
}
