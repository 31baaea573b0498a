package kernelcache

// Keys: hashes of named lists of strings. Different lists have different keys.

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
)

// schema is the first string that is hashed into every key. It changes with the meaning of entries,
// so that older entries are never found.
const schema = "concord kernel 1"

// Key identifies one compiled kernel.
type Key [sha256.Size]byte

// String returns the key in hexadecimal, as it appears in file names.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// ParseKey is the inverse of Key.String. Only lower-case digits are accepted, so
// that a key has one spelling.
func ParseKey(s string) (Key, error) {
	var k Key
	if n, err := hex.Decode(k[:], []byte(s[:min(len(s), 2*len(k))])); err != nil || n != len(k) || k.String() != s {
		return Key{}, fmt.Errorf("kernel cache: %.80q is not a key: %w", s, driver.ErrInvalidArgument)
	}
	return k, nil
}

// Field is one named ingredient of a key.
type Field struct {
	Name   string
	Values []string
}

// F returns a Field.
func F(name string, values ...string) Field { return Field{Name: name, Values: values} }

// KeyOf hashes the ingredients of a compiled kernel in the order given. Every name, value and count is preceded by its
// length, so that two different lists of fields never hash the same bytes. ("ab", "c") is not ("a", "bc"), and an
// option is never taken for a definition.
//
// The fields should be the backend, the architecture in full, and the versions of driver and compiler, which
// driver.Compiler.Identity lists. Then language and entry point, options and definitions in their order, names and
// texts of included files, and the source. If a relevant field is missing, the cache returns a kernel that was
// compiled from something else.
func KeyOf(fields ...Field) Key {
	n := 16 + len(schema)
	for _, f := range fields {
		n += 16 + len(f.Name)
		for _, v := range f.Values {
			n += 8 + len(v)
		}
	}
	buf := appendString(make([]byte, 0, n), schema)
	buf = binary.LittleEndian.AppendUint64(buf, uint64(len(fields)))
	for _, f := range fields {
		buf = appendString(buf, f.Name)
		buf = binary.LittleEndian.AppendUint64(buf, uint64(len(f.Values)))
		for _, v := range f.Values {
			buf = appendString(buf, v)
		}
	}
	return sha256.Sum256(buf)
}

func appendString(buf []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(buf, uint64(len(s))), s...)
}
