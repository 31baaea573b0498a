package rocm

// A reader for the part of MessagePack that the metadata of code objects uses.

import (
	"cmp"
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
	r := reader{rest: b}
	v := r.value(0)
	if len(r.rest) > 0 {
		r.fail(fmt.Errorf("%d bytes after the MessagePack value", len(r.rest)))
	}
	return v, r.err
}

// reader reads until the first error, after which nothing is left to read.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) fail(err error) {
	r.err = cmp.Or(r.err, err)
	r.rest = nil
}

// take returns the next n bytes.
func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.fail(errShort)
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// number reads a big-endian number of that many bytes.
func (r *reader) number(bytes uint64) uint64 {
	var wide [8]byte
	b := r.take(bytes)
	copy(wide[8-len(b):], b)
	return binary.BigEndian.Uint64(wide[:])
}

// value reads a value. The first byte has its type, and the length or the number if that is small.
func (r *reader) value(depth int) any {
	if depth > maxDepth {
		r.fail(errDeep)
	}
	first := r.take(1)
	if r.err != nil {
		return nil
	}
	switch c := first[0]; {
	case c <= 0x7f:
		return uint64(c)
	case c <= 0x8f:
		return r.table(uint64(c&0xf), depth)
	case c <= 0x9f:
		return r.list(uint64(c&0xf), depth)
	case c <= 0xbf:
		return string(r.take(uint64(c & 0x1f)))
	case c == 0xc0:
		return nil
	case c == 0xc2, c == 0xc3:
		return c == 0xc3
	case c >= 0xc4 && c <= 0xc6:
		return r.take(r.number(1 << (c - 0xc4)))
	case c == 0xca:
		return float64(math.Float32frombits(uint32(r.number(4))))
	case c == 0xcb:
		return math.Float64frombits(r.number(8))
	case c >= 0xcc && c <= 0xcf:
		return r.number(1 << (c - 0xcc))
	case c >= 0xd0 && c <= 0xd3:
		return r.signed(1 << (c - 0xd0))
	case c >= 0xd9 && c <= 0xdb:
		return string(r.take(r.number(1 << (c - 0xd9))))
	case c == 0xdc, c == 0xdd:
		return r.list(r.number(2<<(c-0xdc)), depth)
	case c == 0xde, c == 0xdf:
		return r.table(r.number(2<<(c-0xde)), depth)
	case c >= 0xe0:
		return int64(int8(c))
	default:
		r.fail(fmt.Errorf("byte 0x%02x begins no value of MessagePack", c))
		return nil
	}
}

// signed reads a number that may be negative.
func (r *reader) signed(bytes uint64) any {
	n := r.number(bytes)
	shift := 64 - 8*bytes
	if i := int64(n<<shift) >> shift; i < 0 {
		return i
	}
	return n
}

// list reads n values. Each takes at least one byte of the input, which bounds n.
func (r *reader) list(n uint64, depth int) any {
	if n > uint64(len(r.rest)) {
		r.fail(errShort)
	}
	out := []any{}
	for ; n > 0 && r.err == nil; n-- {
		out = append(out, r.value(depth+1))
	}
	return out
}

// table reads n pairs of a string and a value.
func (r *reader) table(n uint64, depth int) any {
	if 2*n > uint64(len(r.rest)) {
		r.fail(errShort)
	}
	out := map[string]any{}
	for ; n > 0 && r.err == nil; n-- {
		k := r.value(depth + 1)
		key, ok := k.(string)
		if _, twice := out[key]; !ok || twice {
			r.fail(fmt.Errorf("MessagePack has the key %v, which is not a string or is there twice", k))
		}
		out[key] = r.value(depth + 1)
	}
	return out
}
