package rocm

// A reader for the part of MessagePack that the metadata of code objects uses.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// maxDepth limits the nesting of values. Metadata has 5 levels.
const maxDepth = 32

var (
	errShort = errors.New("MessagePack ends too early")
	errDeep  = errors.New("MessagePack is nested too deeply")
)

// unpack reads one value, which must be the whole input: nil, bool, int64 (if negative), uint64,
// float64, string, []byte, []any or map[string]any. It allocates memory in proportion to the input,
// whatever lengths the input claims.
func unpack(b []byte) (any, error) {
	r := reader{b}
	v, err := r.value(0)
	if err == nil && len(r.rest) > 0 {
		err = fmt.Errorf("%d bytes after the MessagePack value", len(r.rest))
	}
	return v, err
}

type reader struct{ rest []byte }

// take returns the next n bytes.
func (r *reader) take(n uint64) ([]byte, error) {
	if n > uint64(len(r.rest)) {
		return nil, errShort
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b, nil
}

// number reads a big-endian number of that many bytes.
func (r *reader) number(bytes uint64) (uint64, error) {
	b, err := r.take(bytes)
	var wide [8]byte
	copy(wide[8-len(b):], b)
	return binary.BigEndian.Uint64(wide[:]), err
}

func (r *reader) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, errDeep
	}
	first, err := r.take(1)
	if err != nil {
		return nil, err
	}
	c := first[0]
	switch {
	case c <= 0x7f:
		return uint64(c), nil
	case c <= 0x8f:
		return r.table(uint64(c&0xf), depth)
	case c <= 0x9f:
		return r.list(uint64(c&0xf), depth)
	case c <= 0xbf:
		b, err := r.take(uint64(c & 0x1f))
		return string(b), err
	case c >= 0xe0:
		return int64(int8(c)), nil
	}
	return r.marked(c, depth)
}

// marked reads a value whose first byte, c, has been read; c gives the type.
func (r *reader) marked(c byte, depth int) (any, error) {
	switch c {
	case 0xc0:
		return nil, nil
	case 0xc2, 0xc3:
		return c == 0xc3, nil
	case 0xca:
		n, err := r.number(4)
		return float64(math.Float32frombits(uint32(n))), err
	case 0xcb:
		n, err := r.number(8)
		return math.Float64frombits(n), err
	case 0xcc, 0xcd, 0xce, 0xcf:
		return r.number(1 << (c - 0xcc))
	case 0xd0, 0xd1, 0xd2, 0xd3:
		return r.signed(1 << (c - 0xd0))
	}
	if c < 0xc4 || c == 0xc7 || c == 0xc8 || c == 0xc9 || c > 0xd3 && c < 0xd9 {
		return nil, fmt.Errorf("byte 0x%02x begins no value of MessagePack", c)
	}
	width := map[byte]uint64{0xc4: 1, 0xc5: 2, 0xc6: 4, 0xd9: 1, 0xda: 2, 0xdb: 4, 0xdc: 2, 0xdd: 4, 0xde: 2, 0xdf: 4}[c]
	n, err := r.number(width)
	if err != nil {
		return nil, err
	}
	switch {
	case c >= 0xde:
		return r.table(n, depth)
	case c >= 0xdc:
		return r.list(n, depth)
	}
	b, err := r.take(n)
	if c <= 0xc6 {
		return b, err
	}
	return string(b), err
}

// signed reads a number that may be negative.
func (r *reader) signed(bytes uint64) (any, error) {
	n, err := r.number(bytes)
	shift := 64 - 8*bytes
	if i := int64(n<<shift) >> shift; i < 0 {
		return i, err
	}
	return n, err
}

// list reads n values. Each takes at least one byte of the input, which bounds n.
func (r *reader) list(n uint64, depth int) (any, error) {
	if n > uint64(len(r.rest)) {
		return nil, errShort
	}
	out := []any{}
	for range n {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// table reads n pairs of a string and a value.
func (r *reader) table(n uint64, depth int) (any, error) {
	if 2*n > uint64(len(r.rest)) {
		return nil, errShort
	}
	out := map[string]any{}
	for range n {
		k, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		key, ok := k.(string)
		if _, twice := out[key]; !ok || twice {
			return nil, fmt.Errorf("MessagePack has the key %v, which is not a string or is there twice", k)
		}
		if out[key], err = r.value(depth + 1); err != nil {
			return nil, err
		}
	}
	return out, nil
}
