// Package safetensors reads and writes files of Hugging Face's format safetensors: named tensors,
// packed one behind the other after a header in JSON.
//
// # Basics
//
// [Open] maps a file and checks its header; [File.Names] and [File.Tensor] give the tensors in
// place, without a copy. [Write] writes a file. The format is described at
// https://huggingface.co/docs/safetensors/index#format.
//
// # Alignment
//
// The format has no gaps between tensors, and old writers did not align the beginning of the data.
// So a tensor may begin anywhere: [Entry.Aligned] tells whether its elements can be used in place.
// In files of Write, and of the reference implementation since its version 0.3, all can.
//
// # Caveats
//
// Files are not trusted: an invalid header is an error, and reading one takes memory in proportion
// to the bytes that are present. The reader is as strict as the format's description, and stricter
// than the reference implementation about tensors of more than 64 dimensions, entries of a header
// other than those described, and names that occur twice. The values of elements are not checked: a
// bool may be a byte other than 0 and 1.
//
// An invalid file is an error that matches driver.ErrFormat, or driver.ErrCorrupt alone where the
// header is valid and data is missing or left over.
package safetensors

import (
	"fmt"
	"math/bits"
	"strings"
	"unsafe"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime/driver"
)

// Type is an element type by the format's name in small letters, which is that of package driver
// where that has the type: "f32", "bf16", "u8". A file may contain types that this package does not
// know: their tensors are listed like others.
type Type string

// Bool is the element type of booleans, bytes that are 0 or 1.
const Bool Type = "bool"

// kinds are the known types in the order of the reference implementation, in which alignment
// grows, with the bits of an element. Writing goes by this order from its end.
var kinds = []struct {
	name Type
	bits uint64
}{
	{Bool, 8}, {"f4", 4}, {"f6_e2m3", 6}, {"f6_e3m2", 6}, {"u8", 8}, {"i8", 8},
	{"f8_e5m2", 8}, {"f8_e4m3", 8}, {"f8_e8m0", 8}, {"f8_e4m3fnuz", 8}, {"f8_e5m2fnuz", 8},
	{"i16", 16}, {"u16", 16}, {"f16", 16}, {"bf16", 16}, {"i32", 32}, {"u32", 32}, {"f32", 32},
	{"c64", 64}, {"f64", 64}, {"i64", 64}, {"u64", 64},
}

// rank returns the place of a type in kinds, or -1 for one that is not known.
func (t Type) rank() int {
	for i, k := range kinds {
		if k.name == t {
			return i
		}
	}
	return -1
}

// Elem returns the type of buffers that hold such elements: driver.U8 for Bool. Types that package
// driver lacks, such as "f8_e4m3", are driver.ErrUnsupported.
func (t Type) Elem() (driver.Type, error) {
	if t == Bool {
		return driver.U8, nil
	}
	elem, err := driver.ParseType(string(t))
	if err != nil {
		return driver.NoType, fmt.Errorf("safetensors: element type %.40q: %w", string(t), driver.ErrUnsupported)
	}
	return elem, nil
}

// Entry is one tensor of a file.
type Entry struct {
	Name  string
	Type  Type
	Shape []int  // empty for a scalar, one element
	Data  []byte // in C order, little-endian
}

// Len returns the number of elements, or -1 if the shape is not a valid one.
func (e Entry) Len() int {
	n, ok := product(e.Shape)
	if !ok {
		return -1
	}
	return int(n)
}

// Aligned reports whether Data begins at a multiple of its elements' size, so that they can be used
// in place. It is false for types that Elem refuses.
func (e Entry) Aligned() bool {
	elem, err := e.Type.Elem()
	return err == nil && uintptr(unsafe.Pointer(unsafe.SliceData(e.Data)))%uintptr(elem.Size()) == 0
}

// maxDims is the number of dimensions that are accepted, NumPy's limit.
const maxDims = 64

// product returns the number of elements of a shape. It is false for a shape that no machine could
// hold, also where a dimension of zero leaves it without elements.
func product(shape []int) (uint64, bool) {
	n, zero := uint64(1), false
	for _, d := range shape {
		switch {
		case d < 0 || len(shape) > maxDims:
			return 0, false
		case d == 0:
			zero = true
			continue
		}
		high, low := bits.Mul64(n, uint64(d))
		if high != 0 || low > 1<<62 {
			return 0, false
		}
		n = low
	}
	if zero {
		return 0, true
	}
	return n, true
}

// sizeOf returns the bytes of n elements of a known type. It is false if they are no whole number,
// since elements may have less than eight bits.
func (t Type) sizeOf(n uint64) (uint64, bool) {
	high, low := bits.Mul64(n, kinds[t.rank()].bits)
	return low / 8, high == 0 && low%8 == 0
}

// File is a file that is mapped into memory. Its methods may be called from any goroutine, except
// Close.
type File struct {
	list     []Entry
	index    map[string]int
	metadata map[string]string
	mapping  *file.Mapping
}

// Open maps a file with [file.Map], which says what happens if the file changes, and reads its
// header. The caller owns the File and must close it.
func Open(path string) (*File, error) {
	f, mapping, err := file.Parse(path, parse)
	if err != nil {
		return nil, err
	}
	f.mapping = mapping
	return f, nil
}

// Names returns the names of the tensors in the order of their data. Tensors without elements come
// before the one that begins at the same place, in the order of the header.
func (f *File) Names() []string {
	names := make([]string, len(f.list))
	for i := range f.list {
		names[i] = f.list[i].Name
	}
	return names
}

// Tensor returns the tensor of that name. Its data is the file's memory: it must not be written to,
// and an access to it after Close ends the process. The shape belongs to the file, too. Whether a
// program can use the elements say Entry.Type.Elem and Entry.Aligned.
func (f *File) Tensor(name string) (Entry, bool) {
	i, ok := f.index[name]
	if !ok {
		return Entry{}, false
	}
	return f.list[i], true
}

// Metadata returns the texts that the header has beside the tensors, by their names; nil if it has
// none. The map belongs to the file.
func (f *File) Metadata() map[string]string { return f.metadata }

// Close unmaps the file. Nothing may access the data of its tensors at the time or later. A closed
// file has no tensors. Closing again does nothing.
func (f *File) Close() error {
	f.list, f.index, f.metadata = nil, nil, nil
	return f.mapping.Close()
}

// formatName returns the format's own name of a type.
func (t Type) formatName() string { return strings.ToUpper(string(t)) }
