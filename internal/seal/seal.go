// Package seal puts a header in front of bytes that will run, by which it is noticed that they
// are of another kind, incomplete or changed. Dynamic loaders and drivers trust
// what they are given, so that damaged bytes must never reach them.
//
// The header is:
//
//	 0 mark            8 bytes
//	 8 length          uint64, little-endian, of what follows the header
//	16 SHA-256         32 bytes, of mark, length and what follows the header
//
// A seal finds accidents and mistakes. It keeps no attacker out, since anyone can make one.
package seal

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/concord-compute/concord/runtime/driver"
)

// Size is the length of a header in bytes.
const Size = markSize + 8 + sha256.Size

const markSize = 8

// Mark is what the headers of one kind of bytes begin with: eight bytes that name the kind and the
// version of its layout. Its methods keep nothing and may be called from any goroutine.
type Mark string

// Header returns the header of the parts one after the other, for a caller that writes the parts itself.
func (m Mark) Header(parts ...[]byte) []byte {
	length := 0
	for _, p := range parts {
		length += len(p)
	}
	h := binary.LittleEndian.AppendUint64([]byte(m), uint64(length))
	sum := checksum(h, parts...)
	return append(h, sum[:]...)
}

// Seal returns the parts one after the other behind their header.
func (m Mark) Seal(parts ...[]byte) []byte {
	return slices.Concat(append([][]byte{m.Header(parts...)}, parts...)...)
}

// Length returns how many bytes have to follow a header. The error matches driver.ErrFormat if b does
// not begin with a header of this mark. Nobody has checked the number yet: it is not for allocating.
func (m Mark) Length(b []byte) (uint64, error) {
	if len(b) < Size || string(b[:markSize]) != string(m) {
		return 0, fmt.Errorf("it does not begin as %q does: %w", m, driver.ErrFormat)
	}
	return binary.LittleEndian.Uint64(b[markSize:]), nil
}

// Open returns what was sealed, which is a part of b. The error matches driver.ErrFormat if b never
// had a seal with this mark, and driver.ErrCorrupt if b is not what was sealed any more, or is a
// seal of nothing.
func (m Mark) Open(b []byte) ([]byte, error) {
	n, err := m.Length(b)
	if err != nil {
		return nil, err
	}
	body := b[Size:]
	if n != uint64(len(body)) || n == 0 {
		return nil, fmt.Errorf("%d bytes instead of %d: %w", len(body), n, driver.ErrCorrupt)
	}
	if checksum(b[:markSize+8], body) != [sha256.Size]byte(b[markSize+8:Size]) {
		return nil, fmt.Errorf("wrong checksum: %w", driver.ErrCorrupt)
	}
	return body, nil
}

func checksum(start []byte, parts ...[]byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	h.Write(start)
	for _, p := range parts {
		h.Write(p)
	}
	h.Sum(sum[:0])
	return sum
}
