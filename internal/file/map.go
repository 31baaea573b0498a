package file

// Files whose contents are used in place.

import (
	"fmt"
	"io/fs"
	"math"
	"os"

	"github.com/concord-compute/concord/runtime/driver"
)

// Mapping is the contents of a file as memory that must not be written to.
type Mapping struct {
	// Data is the contents. It begins at a multiple of 64 bytes. After Close it is nil, and an
	// access through a copy of it ends the process.
	Data []byte
}

// Map maps a regular file. Its pages are read when they are accessed, and the system may drop them
// again, so that a file may be larger than the memory of the machine. If another process shortens
// the file, an access to what is missing is a fault, which ends the process; one that replaces the
// file as [Replace] does changes nothing here. Systems other than Unix read the file into memory
// instead.
//
// The caller owns the Mapping and must close it; nothing else frees its addresses.
func Map(path string) (*Mapping, error) {
	// A pipe is not even opened: that could wait for ever.
	info, err := os.Stat(path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: WithoutPath(err)}
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "map", Path: path, Err: fmt.Errorf("it is no regular file: %w", driver.ErrUnsupported)}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the mapping stays
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	size := info.Size()
	if size > math.MaxInt {
		return nil, &fs.PathError{Op: "map", Path: path, Err: driver.ErrTooLarge}
	}
	if size == 0 { // the system refuses to map nothing
		return &Mapping{Data: []byte{}}, nil
	}
	data, err := mapFile(f, int(size))
	if err != nil {
		return nil, &fs.PathError{Op: "map", Path: path, Err: WithoutPath(err)}
	}
	return &Mapping{Data: data}, nil
}

// Close frees the memory. Nothing may access it at the time or later. Closing again does nothing.
func (m *Mapping) Close() error {
	data := m.Data
	m.Data = nil
	if len(data) == 0 {
		return nil
	}
	return unmapFile(data)
}
