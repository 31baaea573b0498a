// Package seal puts a header in front of compiled code, so that a reader can tell whether the
// bytes are of the expected kind, complete and unchanged. Dynamic loaders and drivers do not check
// the code that they load and may crash over damaged bytes, so these must never reach them.
//
// The header is:
//
//	 0 mark            8 bytes
//	 8 length          uint64, little-endian: number of bytes after the header
//	16 SHA-256         32 bytes: hash of the mark, the length and the bytes after the header
//
// A seal detects accidents and mistakes. It is no protection from an attacker, since it has no
// secret and anyone can compute it.
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

// Mark is the beginning of a header: eight bytes that name the kind of the bytes that follow it and the
// version of their layout. Its methods have no state and may be called from any goroutine.
type Mark string

// Header returns the header for the concatenated parts, for a caller that writes the parts itself.
func (m Mark) Header(parts ...[]byte) []byte {
	length := 0
	for _, p := range parts {
		length += len(p)
	}
	h := binary.LittleEndian.AppendUint64([]byte(m), uint64(length))
	sum := checksum(h, parts...)
	return append(h, sum[:]...)
}

// Seal returns a new slice with the header and the concatenated parts.
func (m Mark) Seal(parts ...[]byte) []byte {
	return slices.Concat(append([][]byte{m.Header(parts...)}, parts...)...)
}

// Length returns the number of bytes that have to follow the header at the beginning of b. The error
// matches driver.ErrFormat if b does not begin with a header of this mark. Length does not verify the
// checksum: the number may be damaged and must not be used as the size of an allocation.
func (m Mark) Length(b []byte) (uint64, error) {
	if len(b) < Size || string(b[:markSize]) != string(m) {
		return 0, fmt.Errorf("no header with the mark %q: %w", m, driver.ErrFormat)
	}
	return binary.LittleEndian.Uint64(b[markSize:]), nil
}

// Open verifies sealed bytes and returns those after the header, as a part of b. The error matches
// driver.ErrFormat if b does not begin with a header of this mark, and driver.ErrCorrupt if length
// or checksum are wrong, or if no bytes follow the header.
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
