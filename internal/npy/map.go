package npy

// Mapping: the data is used where it lies in the file.

import (
	"bytes"
	"fmt"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime/driver"
)

// Mapped is an array in a file that is mapped into memory.
type Mapped struct {
	Type    driver.Type
	Bool    bool // the elements are NumPy's booleans, 0 or 1, and Type is driver.U8
	Shape   []int
	Fortran bool // the first index changes fastest, not the last one
	// Data is the elements, little-endian. It begins at a multiple of their size and must not be
	// written to. After Close an access to it ends the process.
	Data []byte

	mapping *file.Mapping
}

// Map maps a file with [file.Map], which says what happens if the file changes. Nothing is copied
// or converted, so that the order is the file's. What cannot be used in place is
// driver.ErrUnsupported: big-endian data, and data that does not begin at a multiple of the
// elements' size, as some other programs write it. ReadFile reads both. The caller owns the result
// and must close it.
func Map(path string) (*Mapped, error) {
	m, mapping, err := file.Parse(path, within)
	if err != nil {
		return nil, err
	}
	m.mapping = mapping
	return m, nil
}

// within returns the array of a file with these contents.
func within(contents []byte) (*Mapped, error) {
	h, n, err := readHeader(bytes.NewReader(contents))
	if err != nil {
		return nil, err
	}
	elem := h.descr.elem.Size()
	want, err := size(h.shape, elem)
	if err != nil {
		return nil, err
	}
	switch data := contents[n:]; {
	case len(data) < want:
		return nil, truncated(len(data), want)
	case len(data) > want:
		return nil, trailing()
	case h.descr.big && elem > 1:
		return nil, fmt.Errorf("npy: big-endian data is not used in place: %w", driver.ErrUnsupported)
	case n%elem != 0 && want > 0:
		return nil, fmt.Errorf("npy: data at byte %d is not used in place, its elements have %d bytes: %w", n, elem,
			driver.ErrUnsupported)
	default:
		return &Mapped{
			Type: h.descr.elem, Bool: h.descr.truth, Shape: h.shape, Fortran: h.fortran,
			Data: data[:want:want],
		}, nil
	}
}

// Close unmaps the file. Nothing may access Data at the time or later. Closing again does nothing.
func (m *Mapped) Close() error {
	m.Data = nil
	return m.mapping.Close()
}
