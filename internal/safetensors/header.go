package safetensors

// The header: an object of JSON. The scanner is strict, since files are not trusted: it accepts the part
// of JSON that a header needs, and never goes deeper than that.

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/concord-compute/concord/runtime/driver"
)

const (
	lengthBytes = 8           // of the number before the header
	maxHeader   = 100_000_000 // the reference implementation's limit, in bytes
	// maxTypeName is longer than any name of a type.
	maxTypeName = 32
	metadataKey = "__metadata__"
)

// tensor is an entry of the header, and the place of its data after the header.
type tensor struct {
	Entry
	begin, end uint64
}

// parse reads the header of a file with these contents. The data of the result is part of them.
func parse(contents []byte) (*File, error) {
	if len(contents) < lengthBytes {
		return nil, fmt.Errorf("safetensors: %d bytes are too few for the length of a header: %w", len(contents),
			driver.ErrFormat)
	}
	n, rest := binary.LittleEndian.Uint64(contents), contents[lengthBytes:]
	if n > maxHeader {
		return nil, fmt.Errorf("safetensors: it does not begin with the length of a header, which has at most %d bytes: %w",
			maxHeader, driver.ErrFormat)
	}
	if n > uint64(len(rest)) {
		return nil, fmt.Errorf("safetensors: header of %d bytes, of which %d are there: %w", n, len(rest), driver.ErrFormat)
	}
	s := newScanner(rest[:n])
	list, metadata := s.header()
	if s.err != nil {
		return nil, s.err
	}
	// Offsets say where data lies; the order of the header says nothing.
	slices.SortStableFunc(list, func(x, y tensor) int {
		return cmp.Or(cmp.Compare(x.begin, y.begin), cmp.Compare(x.end, y.end))
	})
	data := rest[n:]
	if err := checkPlaces(list, uint64(len(data))); err != nil {
		return nil, err
	}
	f := &File{list: make([]Entry, len(list)), index: make(map[string]int, len(list)), metadata: metadata}
	for i, t := range list {
		t.Data = data[t.begin:t.end:t.end]
		f.list[i], f.index[t.Name] = t.Entry, i
	}
	return f, nil
}

// checkPlaces demands that tensors in the order of their data fill it from its beginning to its end, without
// gaps and without overlaps, each with the bytes of its type and shape.
func checkPlaces(list []tensor, have uint64) error {
	at := uint64(0)
	for _, t := range list {
		bad := func(format string, args ...any) error {
			return fmt.Errorf("safetensors: tensor %.40q: %s: %w", t.Name, fmt.Sprintf(format, args...), driver.ErrFormat)
		}
		switch {
		case t.end < t.begin:
			return bad("its data ends at byte %d, before it begins at byte %d", t.end, t.begin)
		case t.begin < at:
			return bad("its data begins at byte %d, within another tensor, which ends at byte %d", t.begin, at)
		case t.begin > at:
			return bad("%d bytes before its data belong to no tensor", t.begin-at)
		}
		at = t.end
		n, ok := product(t.Shape)
		if !ok {
			return bad("shape %v can never fit", t.Shape)
		}
		if t.Type.rank() < 0 {
			continue // a later version of the format may have this type
		}
		want, ok := t.Type.sizeOf(n)
		if !ok {
			return bad("%d elements of type %s are no whole number of bytes", n, t.Type)
		}
		if t.end-t.begin != want {
			return bad("%d bytes of data for %s of shape %v, which is %d", t.end-t.begin, t.Type, t.Shape, want)
		}
	}
	switch {
	case have < at:
		return fmt.Errorf("safetensors: %d bytes of data where the header says %d: %w", have, at, driver.ErrCorrupt)
	case have > at:
		return fmt.Errorf("safetensors: %d bytes after the data: %w", have-at, driver.ErrCorrupt)
	}
	return nil
}

// scanner reads tokens until its first error; after that every method returns a zero value at once.
type scanner struct {
	text []byte
	dec  *json.Decoder // of text
	err  error
}

func newScanner(text []byte) *scanner {
	s := &scanner{text: text, dec: json.NewDecoder(bytes.NewReader(text))}
	s.dec.UseNumber()
	return s
}

func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("safetensors: header: %s at byte %d: %w", fmt.Sprintf(format, args...), s.dec.InputOffset(),
			driver.ErrFormat)
	}
}

// next returns the next token.
func (s *scanner) next() json.Token {
	if s.err != nil {
		return nil
	}
	token, err := s.dec.Token()
	if err != nil {
		s.fail("%v", err)
	}
	return token
}

func (s *scanner) expect(delim json.Delim) {
	if token := s.next(); token != delim {
		s.fail("no %v", delim)
	}
}

// more reports whether the present object or list has another member.
func (s *scanner) more() bool { return s.err == nil && s.dec.More() }

// header reads the whole header. Only white space may follow its object, and none comes before it.
func (s *scanner) header() (list []tensor, metadata map[string]string) {
	switch {
	case len(s.text) == 0 || s.text[0] != '{':
		s.fail("no {")
	case !utf8.Valid(s.text): // the decoder would replace what is wrong
		s.fail("text that is not UTF-8")
	}
	seen := map[string]bool{}
	s.object(seen, func(name string) {
		if name == metadataKey {
			metadata = s.texts()
		} else {
			list = append(list, s.tensor(name))
		}
	})
	if len(bytes.TrimLeft(s.text[s.dec.InputOffset():], " \t\r\n")) > 0 {
		s.fail("text after the object")
	}
	return list, metadata
}

// object reads an object and calls member after the name of each of its members. The names go to seen; a
// second one is an error.
func (s *scanner) object(seen map[string]bool, member func(name string)) {
	s.expect('{')
	for s.more() {
		name := s.str()
		if seen[name] {
			s.fail("%.40q twice", name)
		}
		seen[name] = true
		member(name)
	}
	s.expect('}')
}

// texts reads an object of strings.
func (s *scanner) texts() map[string]string {
	texts := map[string]string{}
	s.object(map[string]bool{}, func(name string) { texts[name] = s.str() })
	return texts
}

// tensor reads {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]} in any order of the entries, each
// exactly once.
func (s *scanner) tensor(name string) tensor {
	t := tensor{Entry: Entry{Name: name}}
	seen := map[string]bool{}
	s.object(seen, func(entry string) {
		switch entry {
		case "dtype":
			t.Type = s.typeName()
		case "shape":
			t.Shape = s.shape()
		case "data_offsets":
			s.expect('[')
			t.begin, t.end = s.number(), s.number()
			s.expect(']')
		default:
			s.fail("entry %.40q of tensor %.40q", entry, name)
		}
	})
	if s.err == nil && len(seen) != 3 {
		s.fail("not all of dtype, shape and data_offsets of tensor %.40q", name)
	}
	return t
}

// typeName reads the name of a type: capitals, digits and underscores.
func (s *scanner) typeName() Type {
	name := s.str()
	bad := func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' }
	if s.err == nil && (name == "" || len(name) > maxTypeName || strings.ContainsFunc(name, bad)) {
		s.fail("element type %.40q", name)
	}
	if s.err != nil {
		return ""
	}
	name = strings.ToLower(name)
	if rank := Type(name).rank(); rank >= 0 {
		return kinds[rank].name // headers repeat the same few names
	}
	return Type(name)
}

func (s *scanner) shape() []int {
	shape := []int{}
	s.expect('[')
	for s.more() {
		d := s.number()
		if d > math.MaxInt {
			s.fail("dimension %d", d)
		}
		if shape = append(shape, int(d)); len(shape) > maxDims {
			s.fail("more than %d dimensions", maxDims)
		}
	}
	s.expect(']')
	return shape
}

// number reads a natural number without fraction and exponent.
func (s *scanner) number() uint64 {
	digits, _ := s.next().(json.Number)
	n, err := strconv.ParseUint(digits.String(), 10, 64)
	if err != nil {
		s.fail("no natural number of 64 bits: %.40q", digits)
	}
	return n
}

// str reads a string. Half of a surrogate pair, which the decoder replaces, is refused, and with it the escape of
// the character that takes its place.
func (s *scanner) str() string {
	const replacement = string(utf8.RuneError)
	start := s.dec.InputOffset()
	text, ok := s.next().(string)
	if !ok {
		s.fail("no string")
	} else if raw := string(s.text[start:s.dec.InputOffset()]); strings.Count(text, replacement) >
		strings.Count(raw, replacement) {
		s.fail("string with a wrong escape")
	}
	return text
}
