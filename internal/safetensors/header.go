package safetensors

// The header: an object of JSON. The scanner is strict, since files are not trusted: it accepts the part
// of JSON that a header needs, and never goes deeper than that.

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
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
	s := &scanner{text: rest[:n]}
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
	pos  int
	err  error
}

func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("safetensors: header: %s at byte %d: %w", fmt.Sprintf(format, args...), s.pos, driver.ErrFormat)
	}
}

// skip skips white space.
func (s *scanner) skip() {
	for s.pos < len(s.text) && strings.IndexByte(" \t\r\n", s.text[s.pos]) >= 0 {
		s.pos++
	}
}

func (s *scanner) accept(token byte) bool {
	if s.err != nil {
		return false
	}
	s.skip()
	if s.pos == len(s.text) || s.text[s.pos] != token {
		return false
	}
	s.pos++
	return true
}

func (s *scanner) expect(token byte) {
	if s.err == nil && !s.accept(token) {
		s.fail("no %q", token)
	}
}

// header reads the whole header. Only white space may follow its object, and none comes before it.
func (s *scanner) header() (list []tensor, metadata map[string]string) {
	if len(s.text) == 0 || s.text[0] != '{' {
		s.fail("no '{'")
	}
	seen := map[string]bool{}
	s.object(seen, func(name string) {
		if name == metadataKey {
			metadata = s.texts()
		} else {
			list = append(list, s.tensor(name))
		}
	})
	if s.skip(); s.err == nil && s.pos < len(s.text) {
		s.fail("text after the object")
	}
	return list, metadata
}

// object reads an object and calls member after the name of each of its members. The names go to seen; a
// second one is an error.
func (s *scanner) object(seen map[string]bool, member func(name string)) {
	s.expect('{')
	if s.accept('}') {
		return
	}
	for s.err == nil {
		name := s.str()
		if seen[name] {
			s.fail("%.40q twice", name)
		}
		seen[name] = true
		if s.expect(':'); s.err != nil {
			return
		}
		if member(name); !s.accept(',') {
			s.expect('}')
			return
		}
	}
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
			t.begin = s.number()
			s.expect(',')
			t.end = s.number()
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
	if s.accept(']') {
		return shape
	}
	for s.err == nil {
		d := s.number()
		if d > math.MaxInt {
			s.fail("dimension %d", d)
		}
		if shape = append(shape, int(d)); len(shape) > maxDims {
			s.fail("more than %d dimensions", maxDims)
		}
		if !s.accept(',') {
			s.expect(']')
			break
		}
	}
	return shape
}

// number reads a natural number without fraction and exponent.
func (s *scanner) number() uint64 {
	if s.err != nil {
		return 0
	}
	s.skip()
	end := s.pos
	for end < len(s.text) && s.text[end] >= '0' && s.text[end] <= '9' {
		end++
	}
	digits := s.text[s.pos:end]
	if len(digits) == 0 || len(digits) > 1 && digits[0] == '0' || end < len(s.text) &&
		strings.IndexByte(".eE", s.text[end]) >= 0 {
		s.fail("no natural number")
		return 0
	}
	n, err := strconv.ParseUint(string(digits[:min(len(digits), 21)]), 10, 64) // 21 digits are too many already
	if err != nil {
		s.fail("number %.40s", digits)
		return 0
	}
	s.pos = end
	return n
}

// str reads a string.
func (s *scanner) str() string {
	s.expect('"')
	if s.err != nil {
		return ""
	}
	start := s.pos
	for s.pos < len(s.text) {
		switch c := s.text[s.pos]; {
		case c == '"':
			part := s.text[start:s.pos]
			s.pos++
			return s.valid(part)
		case c == '\\':
			return s.escaped(start)
		case c < ' ':
			s.fail("string with the control character %q", c)
			return ""
		}
		s.pos++
	}
	s.fail("string does not end")
	return ""
}

// valid returns a text that has to be UTF-8.
func (s *scanner) valid(text []byte) string {
	if !utf8.Valid(text) {
		s.fail("string that is not UTF-8")
		return ""
	}
	return string(text)
}

// escapes are the characters that stand behind a backslash for others.
var escapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escaped reads a string that began at start, from its first backslash on.
func (s *scanner) escaped(start int) string {
	text := slices.Clone(s.text[start:s.pos])
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		s.pos++
		switch {
		case c == '"':
			return s.valid(text)
		case c < ' ':
			s.fail("string with the control character %q", c)
			return ""
		case c != '\\':
			text = append(text, c)
			continue
		}
		if s.pos == len(s.text) {
			break
		}
		c = s.text[s.pos]
		s.pos++
		if plain, ok := escapes[c]; ok {
			text = append(text, plain)
			continue
		}
		r := rune(-1)
		if c == 'u' {
			if r = s.unit(); utf16.IsSurrogate(r) {
				r = s.second(r)
			}
		}
		if r < 0 {
			s.fail("string with a wrong escape")
			return ""
		}
		text = utf8.AppendRune(text, r)
	}
	s.fail("string does not end")
	return ""
}

// unit reads the four hexadecimal digits of an escape. It returns -1 if they are others.
func (s *scanner) unit() rune {
	if len(s.text)-s.pos < 4 {
		return -1
	}
	n, err := strconv.ParseUint(string(s.text[s.pos:s.pos+4]), 16, 16)
	if err != nil {
		return -1
	}
	s.pos += 4
	return rune(n)
}

// second reads the second half of a surrogate pair. It returns -1 if that is missing or no half of the first.
func (s *scanner) second(first rune) rune {
	if !bytes.HasPrefix(s.text[s.pos:], []byte(`\u`)) {
		return -1
	}
	s.pos += 2
	if r := utf16.DecodeRune(first, s.unit()); r != utf8.RuneError {
		return r
	}
	return -1
}
