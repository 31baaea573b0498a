package safetensors

// Writing, in the layout of the reference implementation.

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime/driver"
)

// align is where the data begins: at a multiple of this, so that programs that map the file can use
// it as it is. The format demands nothing, the reference implementation aligns to 8.
const align = 64

// Write writes tensors to a file with [file.Replace]: after an error the file is unchanged. The
// same entries give the same file, whatever their order: tensors whose elements are larger come
// first, as in files of the reference implementation, so that all are aligned, and then by name.
// The entries' data is not copied.
//
// Two tensors of one name, names and texts that are not UTF-8, and unknown element types are
// driver.ErrInvalidArgument; data whose length is not that of type and shape is
// driver.ErrDimension; more names than a header may have is driver.ErrTooLarge.
func Write(path string, entries []Entry, metadata map[string]string) error {
	return file.Replace(path, func(w io.Writer) error { return Encode(w, entries, metadata) })
}

// Encode writes what the file of Write has.
func Encode(w io.Writer, entries []Entry, metadata map[string]string) error {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(x, y Entry) int {
		return cmp.Or(cmp.Compare(y.Type.rank(), x.Type.rank()), cmp.Compare(x.Name, y.Name))
	})
	head, err := formatHeader(entries, metadata)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 64<<10) // tensors may be small and many; larger ones pass by
	if _, err := out.Write(head); err != nil {
		return err
	}
	for _, e := range entries {
		if _, err := out.Write(e.Data); err != nil {
			return err
		}
	}
	return out.Flush()
}

// formatHeader returns the part of a file before its data, for entries in the order of their data.
func formatHeader(entries []Entry, metadata map[string]string) ([]byte, error) {
	var b bytes.Buffer
	b.Write(make([]byte, lengthBytes)) // filled in below
	b.WriteByte('{')
	if len(metadata) > 0 {
		quote(&b, metadataKey)
		b.WriteString(":{")
		for i, name := range slices.Sorted(maps.Keys(metadata)) {
			if !utf8.ValidString(name) || !utf8.ValidString(metadata[name]) {
				return nil, fmt.Errorf("safetensors: metadata %.40q is not UTF-8: %w", name, driver.ErrInvalidArgument)
			}
			comma(&b, i)
			quote(&b, name)
			b.WriteByte(':')
			quote(&b, metadata[name])
		}
		b.WriteByte('}')
	}
	at, seen := uint64(0), make(map[string]bool, len(entries))
	for i, e := range entries {
		if err := e.check(seen); err != nil {
			return nil, fmt.Errorf("safetensors: tensor %.40q: %w", e.Name, err)
		}
		if comma(&b, i); i == 0 && len(metadata) > 0 {
			b.WriteByte(',')
		}
		quote(&b, e.Name)
		fmt.Fprintf(&b, `:{"dtype":"%s","shape":[`, e.Type.formatName())
		for i, d := range e.Shape {
			comma(&b, i)
			b.WriteString(strconv.Itoa(d))
		}
		end := at + uint64(len(e.Data))
		fmt.Fprintf(&b, `],"data_offsets":[%d,%d]}`, at, end)
		at = end
	}
	b.WriteByte('}')
	for b.Len()%align != 0 {
		b.WriteByte(' ')
	}
	n := b.Len() - lengthBytes
	if n > maxHeader {
		return nil, fmt.Errorf("safetensors: header of %d bytes, at most %d: %w", n, maxHeader, driver.ErrTooLarge)
	}
	binary.LittleEndian.PutUint64(b.Bytes(), uint64(n))
	return b.Bytes(), nil
}

// check refuses an entry that cannot be written. seen has the names of those before it.
func (e Entry) check(seen map[string]bool) error {
	switch {
	case e.Name == metadataKey:
		return fmt.Errorf("the format has another use for this name: %w", driver.ErrInvalidArgument)
	case !utf8.ValidString(e.Name):
		return fmt.Errorf("the name is not UTF-8: %w", driver.ErrInvalidArgument)
	case seen[e.Name]:
		return fmt.Errorf("there are two: %w", driver.ErrInvalidArgument)
	case e.Type.rank() < 0:
		return fmt.Errorf("element type %.40q: %w", string(e.Type), driver.ErrInvalidArgument)
	}
	seen[e.Name] = true
	n, ok := product(e.Shape)
	if !ok {
		return fmt.Errorf("shape %v: %w", e.Shape, driver.ErrInvalidArgument)
	}
	if want, ok := e.Type.sizeOf(n); !ok || uint64(len(e.Data)) != want {
		return fmt.Errorf("%d bytes of data for %s of shape %v, which is %d: %w", len(e.Data), e.Type, e.Shape, want,
			driver.ErrDimension)
	}
	return nil
}

// comma separates member i of a list from the one before it.
func comma(b *bytes.Buffer, i int) {
	if i > 0 {
		b.WriteByte(',')
	}
}

// quote writes a string of JSON.
func quote(b *bytes.Buffer, s string) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s)       // a string can always be encoded, and a buffer be written to
	b.Truncate(b.Len() - 1) // the end of line
}
