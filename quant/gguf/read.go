package gguf

// The header.

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/concord-compute/concord/runtime/driver"
)

const (
	magic        = "GGUF"
	keyAlignment = "general.alignment"
	usualAlign   = 32
	mostAlign    = 1 << 20 // larger than any page: more only makes files of gaps, which each tensor has
	maxDims      = 4       // ggml's
	maxName      = 63      // bytes of a tensor's name: ggml has room for 64 with the zero behind it
	maxDepth     = 4       // of arrays in arrays
)

// alignments are those that validAlign accepts: ggml's, which are powers of two, as far as the format's
// description has them.
var alignments = fmt.Sprintf("a power of two from 8 to %d as a uint32", mostAlign)

// validAlign reports whether a file may have the alignment, be it read or written.
func validAlign(a uint32) bool { return a >= 8 && a&(a-1) == 0 && a <= mostAlign }

// The kinds of values.
const (
	kindU8 uint32 = iota
	kindI8
	kindU16
	kindI16
	kindU32
	kindI32
	kindF32
	kindBool
	kindString
	kindArray
	kindU64
	kindI64
	kindF64
)

// kindTypes has the Go type of a value of each kind. An array is a slice of its elements' type.
var kindTypes = [...]reflect.Type{kindU8: reflect.TypeFor[uint8](), kindI8: reflect.TypeFor[int8](),
	kindU16: reflect.TypeFor[uint16](), kindI16: reflect.TypeFor[int16](), kindU32: reflect.TypeFor[uint32](),
	kindI32: reflect.TypeFor[int32](), kindF32: reflect.TypeFor[float32](), kindBool: reflect.TypeFor[bool](),
	kindString: reflect.TypeFor[string](), kindArray: reflect.TypeFor[any](), kindU64: reflect.TypeFor[uint64](),
	kindI64: reflect.TypeFor[int64](), kindF64: reflect.TypeFor[float64]()}

// reader reads values until the first error; after that each method returns a zero value.
type reader struct {
	data []byte
	pos  int
	err  error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("gguf: header: %s at byte %d: %w", fmt.Sprintf(format, args...), r.pos, driver.ErrFormat)
	}
}

// bytes returns the next n bytes in place.
func (r *reader) bytes(n uint64) []byte {
	if r.err == nil && n > uint64(len(r.data)-r.pos) {
		r.fail("%d bytes, of which %d are there,", n, len(r.data)-r.pos)
	}
	if r.err != nil {
		return nil
	}
	b := r.data[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return b
}

func (r *reader) u32() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) text() string { return string(r.bytes(r.u64())) }

// count reads the number of things that have at least size bytes each, so that more of them than can be present
// are refused before memory is taken for them.
func (r *reader) count(what string, size int) int {
	n := r.u64()
	if r.err == nil && n > uint64(len(r.data)-r.pos)/uint64(size) {
		r.fail("%d %s where %d bytes are left", n, what, len(r.data)-r.pos)
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}

// scalars reads a value of a type that has one size, or a list of them with its length.
func (r *reader) scalars(t reflect.Type, list bool) any {
	n, to := 1, reflect.New(t)
	if list {
		n = r.count("values", int(t.Size()))
		to = reflect.MakeSlice(reflect.SliceOf(t), n, n)
	}
	if b := r.bytes(uint64(n) * uint64(t.Size())); b != nil {
		_, _ = binary.Decode(b, binary.LittleEndian, to.Interface()) // the size is right
	}
	return reflect.Indirect(to).Interface()
}

// value reads a value of a kind, or a list with its length.
func (r *reader) value(kind uint32, list bool, depth int) any {
	switch kind {
	case kindBool:
		start := r.pos
		v := r.scalars(kindTypes[kind], list)
		if list {
			start += 8
		}
		if r.err == nil && slices.ContainsFunc(r.data[start:r.pos], func(b byte) bool { return b > 1 }) {
			r.fail("bool that is neither 0 nor 1")
		}
		return v
	case kindString:
		if !list {
			return r.text()
		}
		texts := make([]string, r.count("texts", 8))
		for i := range texts {
			if texts[i] = r.text(); r.err != nil {
				return nil
			}
		}
		return texts
	case kindArray:
		if depth == maxDepth {
			r.fail("arrays in arrays deeper than %d", maxDepth)
			return nil
		}
		if !list {
			return r.value(r.u32(), true, depth+1)
		}
		arrays := make([]any, r.count("arrays", 12))
		for i := range arrays {
			if arrays[i] = r.value(kindArray, false, depth); r.err != nil {
				return nil
			}
		}
		return arrays
	}
	if kind >= uint32(len(kindTypes)) {
		r.fail("value of kind %d", kind)
		return nil
	}
	return r.scalars(kindTypes[kind], list)
}

// place is where the data of a tensor begins.
type place struct {
	at     uint64
	tensor int
}

// parse reads the header of a file with these contents, of which the data of tensors are parts.
func parse(contents []byte) (*File, error) {
	r := &reader{data: contents}
	if string(r.bytes(4)) != magic {
		return nil, fmt.Errorf("gguf: the file does not begin with %q: %w", magic, driver.ErrFormat)
	}
	f := &File{Version: r.u32(), Align: usualAlign, index: map[string]int{}, keys: map[string]int{}}
	switch {
	case r.err != nil:
		return nil, r.err
	case f.Version >= 1<<16 && f.Version&0xffff == 0:
		return nil, fmt.Errorf("gguf: a big-endian file: %w", driver.ErrUnsupported)
	case f.Version != 2 && f.Version != 3:
		return nil, fmt.Errorf("gguf: version %d, not 2 or 3: %w", f.Version, driver.ErrUnsupported)
	}
	tensors := r.count("tensors", 24)
	pairs := r.count("entries of metadata", 13)
	if r.err != nil {
		return nil, r.err
	}
	for range pairs {
		key := r.text()
		if _, twice := f.keys[key]; twice {
			r.fail("key %.40q twice", key)
		}
		value := r.value(r.u32(), false, 0)
		if r.err != nil {
			return nil, r.err
		}
		f.keys[key] = len(f.metadata)
		f.metadata = append(f.metadata, Pair{key, value})
	}
	if v := f.Value(keyAlignment); v != nil {
		align, ok := v.(uint32)
		if !ok || !validAlign(align) {
			return nil, fmt.Errorf("gguf: %s is %v (%T), not %s: %w", keyAlignment, v, v, alignments, driver.ErrFormat)
		}
		f.Align = int(align)
	}
	places := make([]place, 0, tensors)
	for i := range tensors {
		t, at := r.tensor()
		if _, twice := f.index[t.Name]; twice {
			r.fail("tensor %.40q twice", t.Name)
		}
		if at%uint64(f.Align) != 0 {
			r.fail("tensor %.40q begins at %d, not a multiple of %d,", t.Name, at, f.Align)
		}
		if r.err != nil {
			return nil, r.err
		}
		f.index[t.Name] = i
		f.tensors = append(f.tensors, t)
		places = append(places, place{at, i})
	}
	start := min((r.pos+f.Align-1)/f.Align*f.Align, len(contents))
	return f, f.lay(places, contents[start:])
}

// tensor reads one entry and the place of its data.
func (r *reader) tensor() (Tensor, uint64) {
	t := Tensor{Name: r.text()}
	dims := r.u32()
	if dims > maxDims {
		r.fail("tensor %.40q of %d dimensions", t.Name, dims)
		return t, 0
	}
	t.Shape = make([]int, dims)
	for i := range t.Shape {
		d := r.u64()
		if d > math.MaxInt {
			r.fail("tensor %.40q with a dimension of %d", t.Name, d)
		}
		t.Shape[len(t.Shape)-1-i] = int(d)
	}
	t.Type = Type(r.u32())
	return t, r.u64()
}

// lay gives each tensor its data. Tensors may have gaps between them, and must not overlap.
func (f *File) lay(places []place, data []byte) error {
	slices.SortStableFunc(places, func(x, y place) int { return cmp.Compare(x.at, y.at) })
	for i, p := range places {
		t := &f.tensors[p.tensor]
		bad := func(err error, format string, args ...any) error {
			return fmt.Errorf("gguf: tensor %.40q: %s: %w", t.Name, fmt.Sprintf(format, args...), err)
		}
		n, known, err := t.Type.size(t.Shape)
		if err != nil {
			return bad(driver.ErrFormat, "%v", err)
		}
		next := uint64(len(data))
		if i+1 < len(places) {
			next = min(next, places[i+1].at)
		}
		switch {
		case p.at > uint64(len(data)):
			return bad(driver.ErrCorrupt, "its data begins at %d of %d bytes", p.at, len(data))
		case !known:
			n = int(next - p.at)
		case uint64(n) > uint64(len(data))-p.at:
			return bad(driver.ErrCorrupt, "%d bytes at %d of %d", n, p.at, len(data))
		case uint64(n) > next-p.at:
			return bad(driver.ErrFormat, "%d bytes at %d reach into the next tensor at %d", n, p.at, next)
		}
		t.Data = data[p.at : p.at+uint64(n) : p.at+uint64(n)]
	}
	return nil
}
