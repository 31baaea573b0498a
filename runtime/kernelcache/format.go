package kernelcache

// The bytes of a file:
//
//	 0  magic    8 bytes
//	 8  version  uint32, little-endian like all numbers
//	12  length of the label  uint32
//	16  length of the log    uint64
//	24  length of the binary uint64
//	32  key     32 bytes
//	64  target  32 bytes, zero if there is none
//	96  flags   uint64; 1: imported
//	104 SHA-256 of everything before and after it, 32 bytes
//	136 label, log, binary
//
// The file ends there. The checksum covers the header too, so that no byte of a
// file can change unnoticed.

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/concord-compute/concord/runtime/driver"
)

const (
	magic      = "CNCRDkrn"
	version    = 2 // also the name of the directory
	sumOffset  = 104
	headerSize = sumOffset + sha256.Size
	maxLabel   = 200
	maxFile    = min(1<<30, math.MaxInt) // larger files are neither written nor read
)

// imported is the flag of an entry that was not compiled for this directory.
const imported = 1

// header is the fixed part of a file.
type header struct {
	label, log, binary uint64 // lengths
	key, target        Key
	flags              uint64
	sum                [sha256.Size]byte
}

// size returns the length of the file that the header belongs to.
func (h *header) size() int64 { return int64(headerSize + h.label + h.log + h.binary) }

// encodeHead returns all of the file but the binary, which follows it.
func encodeHead(key Key, e Entry) []byte {
	head := make([]byte, headerSize, headerSize+len(e.Label)+len(e.Log))
	copy(head, magic)
	binary.LittleEndian.PutUint32(head[8:], version)
	binary.LittleEndian.PutUint32(head[12:], uint32(len(e.Label)))
	binary.LittleEndian.PutUint64(head[16:], uint64(len(e.Log)))
	binary.LittleEndian.PutUint64(head[24:], uint64(len(e.Binary)))
	copy(head[32:], key[:])
	copy(head[64:], e.Target[:])
	if e.Imported {
		binary.LittleEndian.PutUint64(head[96:], imported)
	}
	head = append(append(head, e.Label...), e.Log...)
	sum := checksum(head, e.Binary)
	copy(head[sumOffset:], sum[:])
	return head
}

// checksum hashes a file given in two parts, of which the first holds at least
// the header.
func checksum(head, rest []byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	h.Write(head[:sumOffset])
	h.Write(head[headerSize:])
	h.Write(rest)
	h.Sum(sum[:0])
	return sum
}

// readHeader checks everything that can be checked by the header alone. The lengths are then such
// that size cannot wrap.
func readHeader(data []byte) (header, error) {
	var h header
	if len(data) < headerSize || !bytes.Equal(data[:len(magic)], []byte(magic)) {
		return h, fmt.Errorf("kernel cache: no header: %w", driver.ErrFormat)
	}
	if v := binary.LittleEndian.Uint32(data[8:]); v != version {
		return h, fmt.Errorf("kernel cache: version %d, not %d: %w", v, version, driver.ErrFormat)
	}
	h.label = uint64(binary.LittleEndian.Uint32(data[12:]))
	h.log = binary.LittleEndian.Uint64(data[16:])
	h.binary = binary.LittleEndian.Uint64(data[24:])
	h.flags = binary.LittleEndian.Uint64(data[96:])
	copy(h.key[:], data[32:])
	copy(h.target[:], data[64:])
	copy(h.sum[:], data[sumOffset:])
	if h.flags > imported {
		return h, fmt.Errorf("kernel cache: flags %#x: %w", h.flags, driver.ErrFormat)
	}
	if h.label > maxLabel || h.log > maxFile || h.binary > maxFile || h.size() > maxFile {
		return h, fmt.Errorf("kernel cache: lengths that no entry has: %w", driver.ErrCorrupt)
	}
	return h, nil
}

// headerOf checks that the header is that of a file of size bytes for key.
func headerOf(key Key, data []byte, size int64) (header, error) {
	h, err := readHeader(data)
	if err == nil && h.key != key {
		err = fmt.Errorf("kernel cache: the entry is that of %v: %w", h.key, driver.ErrCorrupt)
	}
	if err == nil && h.size() != size {
		err = fmt.Errorf("kernel cache: lengths disagree with a file of %d bytes: %w", size, driver.ErrCorrupt)
	}
	return h, err
}

// decode checks a whole file. The binary of the entry is part of data.
func decode(key Key, data []byte) (Entry, error) {
	h, err := headerOf(key, data, int64(len(data)))
	if err != nil {
		return Entry{}, err
	}
	if checksum(data, nil) != h.sum {
		return Entry{}, fmt.Errorf("kernel cache: checksum disagrees: %w", driver.ErrCorrupt)
	}
	text := headerSize + h.label
	code := text + h.log
	return seal(Entry{
		Label:    string(data[headerSize:text]),
		Log:      string(data[text:code]),
		Binary:   data[code:],
		Target:   h.target,
		Imported: h.flags&imported != 0,
	}), nil
}

// cleanLabel makes a label one printable line of at most maxLabel bytes, since it
// is printed to terminals.
func cleanLabel(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s[:min(len(s), 2*maxLabel)])
	for len(s) > maxLabel {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return s
}
