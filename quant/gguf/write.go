package gguf

// Writing.

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/quant"
	"github.com/concord-compute/concord/runtime/driver"
)

// Entry is a tensor that Write writes.
type Entry struct {
	Name  string
	Type  Type
	Shape []int
	Size  int                    // bytes of Data, for types whose size the shape does not give
	Data  func() ([]byte, error) // called once, when it is the tensor's turn; its result is not kept
}

// NewEntry returns the entry of a matrix, whose data is not copied, and the metadata that belongs to it.
// Without data the entry has none either, and the caller sets Entry.Data. Formats that no file has are
// driver.ErrUnsupported.
func NewEntry(name string, m quant.Matrix) (Entry, []Pair, error) {
	t, ok := TypeOf(m.Format)
	if !ok {
		return Entry{}, nil, fmt.Errorf("gguf: tensor %.40q: files have no type for %v: %w", name, m.Format,
			driver.ErrUnsupported)
	}
	size, _, err := m.Sizes()
	if err == nil && m.Data != nil && size > len(m.Data) {
		err = fmt.Errorf("%d bytes needed, %d given: %w", size, len(m.Data), driver.ErrDimension)
	}
	if err != nil {
		return Entry{}, nil, fmt.Errorf("gguf: tensor %.40q: %w", name, err)
	}
	var pairs []Pair
	if _, several := meanings[t]; several {
		pairs = append(pairs, Pair{keyType + strconv.Itoa(int(t)), m.Format.String()})
	}
	if m.Tile != (quant.Tile{}) {
		pairs = append(pairs, Pair{keyTile, []uint32{uint32(m.Tile.BM), uint32(m.Tile.BY), uint32(m.Tile.Sub)}})
	}
	if m.K != 0 && m.K != m.Cols {
		pairs = append(pairs, Pair{keyColumns + name, uint64(m.K)})
	}
	e := Entry{Name: name, Type: t, Shape: []int{m.Rows, m.Cols}, Size: size}
	if m.Data != nil {
		e.Data = func() ([]byte, error) { return m.Data[:size], nil }
	}
	return e, pairs, nil
}

// Save writes a file of version 3 with [file.Replace]: after an error the file at path is as it was. Tensors lie in the
// order of the entries at multiples of general.alignment, a power of two from 8 to 2^20, or 32. Pairs may
// repeat an earlier one with the same value, which is written once. What is written ggml reads, but for a
// []any, and types that ggml does not have.
//
// Two tensors or different values of one name, tensors with names of more than 63 bytes or with a zero byte, empty
// keys, and values of other types than those of Pair, are driver.ErrInvalidArgument. Data whose length is not that of
// type and shape is driver.ErrDimension. An error of Entry.Data is returned as it is.
func Save(path string, metadata []Pair, entries []Entry) error {
	return file.Replace(path, func(w io.Writer) error { return Write(w, metadata, entries) })
}

// Write writes what the file of Save has.
func Write(w io.Writer, metadata []Pair, entries []Entry) error {
	return write(w, 3, metadata, entries)
}

func write(w io.Writer, version uint32, metadata []Pair, entries []Entry) error {
	align := usualAlign
	seen := map[string][]byte{}
	var pairs []byte
	for _, p := range metadata {
		value, err := appendValue(nil, p.Value, 0)
		if p.Key == "" {
			err = fmt.Errorf("an empty key, which ggml does not read: %w", driver.ErrInvalidArgument)
		}
		if err != nil {
			return fmt.Errorf("gguf: metadata %.40q: %w", p.Key, err)
		}
		if before, twice := seen[p.Key]; twice {
			if !slices.Equal(before, value) {
				return fmt.Errorf("gguf: metadata %.40q has two values: %w", p.Key, driver.ErrInvalidArgument)
			}
			continue
		}
		if seen[p.Key] = value; p.Key == keyAlignment {
			a, _ := p.Value.(uint32)
			if !validAlign(a) {
				return fmt.Errorf("gguf: metadata %s is %v (%T), not %s: %w", p.Key, p.Value, p.Value, alignments,
					driver.ErrInvalidArgument)
			}
			align = int(a)
		}
		pairs = append(appendText(pairs, p.Key), value...)
	}
	head := binary.LittleEndian.AppendUint32([]byte(magic), version)
	head = binary.LittleEndian.AppendUint64(head, uint64(len(entries)))
	head = binary.LittleEndian.AppendUint64(head, uint64(len(seen)))
	head = append(head, pairs...)
	sizes, at := make([]int, len(entries)), uint64(0)
	names := map[string]bool{}
	for i, e := range entries {
		size, known, err := e.Type.size(e.Shape)
		switch {
		case err != nil:
		case !known:
			size = e.Size
		case e.Size != 0 && e.Size != size:
			err = fmt.Errorf("%d bytes given, %d needed: %w", e.Size, size, driver.ErrDimension)
		}
		if len(e.Name) > maxName {
			err = fmt.Errorf("a name of %d bytes, and ggml reads up to %d: %w", len(e.Name), maxName, driver.ErrInvalidArgument)
		}
		if strings.ContainsRune(e.Name, 0) {
			err = fmt.Errorf("a name with a zero byte, at which it ends for ggml: %w", driver.ErrInvalidArgument)
		}
		if names[e.Name] || len(e.Shape) > maxDims || e.Data == nil || size < 0 {
			err = fmt.Errorf("there are two, or more than %d dimensions, or no data: %w", maxDims, driver.ErrInvalidArgument)
		}
		if err != nil {
			return fmt.Errorf("gguf: tensor %.40q: %w", e.Name, err)
		}
		names[e.Name], sizes[i] = true, size
		head = binary.LittleEndian.AppendUint32(appendText(head, e.Name), uint32(len(e.Shape)))
		for _, d := range slices.Backward(e.Shape) {
			head = binary.LittleEndian.AppendUint64(head, uint64(d))
		}
		head = binary.LittleEndian.AppendUint32(head, uint32(e.Type))
		head = binary.LittleEndian.AppendUint64(head, at)
		at += uint64(size+align-1) / uint64(align) * uint64(align)
	}
	out := bufio.NewWriterSize(w, 64<<10) // tensors may be small and many; larger ones pass by
	put := func(b []byte) error {
		if _, err := out.Write(b); err != nil {
			return err
		}
		_, err := out.Write(make([]byte, -len(b)&(align-1)))
		return err
	}
	if err := put(head); err != nil {
		return err
	}
	for i, e := range entries {
		data, err := e.Data()
		if err != nil {
			return err
		}
		if len(data) != sizes[i] {
			return fmt.Errorf("gguf: tensor %.40q: %d bytes of data, %d needed: %w", e.Name, len(data), sizes[i],
				driver.ErrDimension)
		}
		if err := put(data); err != nil {
			return err
		}
	}
	return out.Flush()
}

func appendText(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

// kindOf returns the kind of a value, or of the elements of a list and how many there are; -1 for no list.
func kindOf(v any) (kind uint32, n int, ok bool) {
	t := reflect.TypeOf(v)
	for kind, one := range kindTypes {
		switch t {
		case one:
			return uint32(kind), -1, true
		case reflect.SliceOf(one):
			return uint32(kind), reflect.ValueOf(v).Len(), true
		}
	}
	return 0, 0, false
}

// appendValue appends the kind of a value and the value.
func appendValue(b []byte, v any, depth int) ([]byte, error) {
	kind, n, ok := kindOf(v)
	if !ok || n >= 0 && kind == kindArray && depth+1 >= maxDepth { // the deepest lists are of single values
		return nil, fmt.Errorf("a value of type %T: %w", v, driver.ErrInvalidArgument)
	}
	if n >= 0 {
		if depth == 0 { // the kind of an array within an array is that of the outer one's elements
			b = binary.LittleEndian.AppendUint32(b, kindArray)
		}
		b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(b, kind), uint64(n))
	} else {
		if depth > 0 {
			return nil, fmt.Errorf("a %T in a list of lists: %w", v, driver.ErrInvalidArgument)
		}
		b = binary.LittleEndian.AppendUint32(b, kind)
	}
	switch v := v.(type) {
	case string:
		return appendText(b, v), nil
	case []string:
		for _, s := range v {
			b = appendText(b, s)
		}
		return b, nil
	case []any:
		for _, x := range v {
			var err error
			if b, err = appendValue(b, x, depth+1); err != nil {
				return nil, err
			}
		}
		return b, nil
	}
	return binary.Append(b, binary.LittleEndian, v)
}
