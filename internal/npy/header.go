package npy

// The header: a Python dictionary with three known entries. The parser is strict, since the data is
// not trusted: it accepts only the part of Python's syntax that NumPy writes.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/runtime/driver"
)

const (
	magic = "\x93NUMPY"
	// maxHeader bounds the text of a header. NumPy itself refuses more than
	// 10000 bytes; 64 dimensions take less than 1500.
	maxHeader = 10000
	align     = 64 // the data starts at a multiple of this, so that it can be mapped
)

// header is the description of a file's data.
type header struct {
	descr   descr
	fortran bool
	shape   []int
}

// readHeader reads everything before the data and returns its length in bytes.
func readHeader(r io.Reader) (h header, n int, err error) {
	var start [12]byte
	if err := readFull(r, start[:8]); err != nil {
		return h, 0, err
	}
	if string(start[:len(magic)]) != magic {
		return h, 0, fmt.Errorf("npy: no NumPy magic: %w", driver.ErrFormat)
	}
	n = 10
	if start[6] >= 2 {
		n = 12
	}
	if start[6] < 1 || start[6] > 3 || start[7] != 0 {
		return h, 0, fmt.Errorf("npy: format %d.%d: %w", start[6], start[7], driver.ErrFormat)
	}
	if err := readFull(r, start[8:n]); err != nil {
		return h, 0, err
	}
	length := binary.LittleEndian.Uint32(start[8:])
	if n == 10 {
		length = uint32(binary.LittleEndian.Uint16(start[8:]))
	}
	if length > maxHeader {
		return h, 0, fmt.Errorf("npy: header of %d bytes: %w", length, driver.ErrFormat)
	}
	text := make([]byte, length)
	if err := readFull(r, text); err != nil {
		return h, 0, err
	}
	h, err = parseHeader(string(text))
	return h, n + len(text), err
}

// readFull fills buf. The end of the file is ErrFormat; other errors are the reader's.
func readFull(r io.Reader, buf []byte) error {
	_, err := io.ReadFull(r, buf)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("npy: ends within the header: %w", driver.ErrFormat)
	}
	return err
}

// parseHeader parses {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
// in any order of the entries, each exactly once.
func parseHeader(text string) (h header, err error) {
	p := &parser{text: text}
	seen := map[string]bool{}
	p.expect("{")
	for p.err == nil && !p.accept("}") {
		name := p.str()
		p.expect(":")
		if seen[name] {
			p.fail("entry %.40q twice", name)
		}
		seen[name] = true
		switch name {
		case "descr":
			h.descr = p.descr()
		case "fortran_order":
			h.fortran = p.boolean()
		case "shape":
			h.shape = p.tuple()
		default:
			p.fail("entry %.40q", name)
		}
		if !p.accept(",") {
			p.expect("}")
			break
		}
	}
	p.end()
	if p.err == nil && len(seen) != 3 {
		p.fail("not all of descr, fortran_order and shape")
	}
	return h, p.err
}

// parser reads tokens until its first error; after that every method returns a
// zero value at once.
type parser struct {
	text string
	pos  int
	err  error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("npy: header: %s at byte %d: %w", fmt.Sprintf(format, args...), p.pos, driver.ErrFormat)
	}
}

// rest skips white space and returns what follows.
func (p *parser) rest() string {
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
	return p.text[p.pos:]
}

func (p *parser) accept(token string) bool {
	if p.err != nil || !strings.HasPrefix(p.rest(), token) {
		return false
	}
	p.pos += len(token)
	return true
}

func (p *parser) expect(token string) {
	if p.err == nil && !p.accept(token) {
		p.fail("no %q", token)
	}
}

func (p *parser) end() {
	if p.err == nil && p.rest() != "" {
		p.fail("text after the dictionary")
	}
}

// str reads a quoted string of printable ASCII without escapes, which no known name needs.
func (p *parser) str() string {
	quote := "'"
	if !p.accept(quote) {
		quote = `"`
		p.expect(quote)
	}
	if p.err != nil {
		return ""
	}
	length := strings.Index(p.text[p.pos:], quote)
	if length < 0 {
		p.fail("string does not end")
		return ""
	}
	s := p.text[p.pos : p.pos+length]
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' || r == '\\' }) {
		p.fail("string with an escape or a character that is not ASCII")
		return ""
	}
	p.pos += length + 1
	return s
}

func (p *parser) descr() descr {
	if p.err == nil && strings.HasPrefix(p.rest(), "[") {
		p.err = fmt.Errorf("npy: elements are structures: %w", driver.ErrUnsupported)
	}
	s := p.str()
	if p.err != nil {
		return descr{}
	}
	d, err := parseDescr(s)
	p.err = err
	return d
}

func (p *parser) boolean() bool {
	if p.accept("True") {
		return true
	}
	p.expect("False")
	return false
}

// tuple reads (), (3,), (2, 3) or (2, 3,). As in Python, (3) is a number and not a tuple.
func (p *parser) tuple() []int {
	shape := []int{}
	p.expect("(")
	for p.err == nil && !p.accept(")") {
		shape = append(shape, p.number())
		if p.accept(",") {
			continue
		}
		if p.expect(")"); len(shape) == 1 {
			p.fail("shape is a number and no tuple")
		}
		break
	}
	return shape
}

// number reads a decimal integer. Python 2 wrote some integers with an L at the end.
func (p *parser) number() int {
	rest := p.rest()
	digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	if digits == "" || len(digits) > 1 && digits[0] == '0' {
		p.fail("no dimension")
		return 0
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		p.err = fmt.Errorf("npy: dimension %.40s: %w", digits, driver.ErrTooLarge)
		return 0
	}
	p.pos += len(digits)
	if strings.HasPrefix(p.text[p.pos:], "L") {
		p.pos++
	}
	return n
}

// formatHeader returns the part of a file before its data.
func formatHeader(t driver.Type, shape []int) ([]byte, error) {
	name, err := descrOf(t)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (", name)
	for i, d := range shape {
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(strconv.Itoa(d))
	}
	if len(shape) == 1 {
		text.WriteString(",")
	}
	text.WriteString("), }")
	total := (10 + text.Len() + 1 + align - 1) / align * align
	text.WriteString(strings.Repeat(" ", total-10-text.Len()-1) + "\n")
	head := append([]byte(magic), 1, 0)
	head = binary.LittleEndian.AppendUint16(head, uint16(text.Len())) // 64 dimensions take less than 1500
	return append(head, text.String()...), nil
}
