package kernelcache

// The bytes of a file are a seal, and what it seals:
//
//	 0 length of the label  uint32, little-endian like all numbers
//	 4 flags                uint32; 1: imported
//	 8 length of the log    uint64
//	16 length of the binary uint64
//	24 key                  32 bytes
//	56 target               32 bytes, zero if there is none
//	88 label, log, binary
//
// The file ends there.

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/concord-compute/concord/internal/seal"
	"github.com/concord-compute/concord/runtime/driver"
)

const (
	version    = 3 // of the layout of entries and bundles, and the name of the directory
	headerSize = seal.Size + headSize
	headSize   = 24 + 2*sha256.Size
	maxLabel   = 200
	maxFile    = min(1<<30, math.MaxInt) // larger files are neither written nor read
)

// entries is the mark of an entry. It ends with the version.
const entries seal.Mark = "CNCRDkr3"

// imported is the flag of an entry that was not compiled for this directory.
const imported = 1

// header is the fixed part of a file.
type header struct {
	label, log, binary uint64 // lengths
	key, target        Key
	flags              uint32
}

// size returns the length of the file that the header belongs to.
func (h *header) size() int64 { return int64(headerSize + h.label + h.log + h.binary) }

// encodeHead returns all of the file but the binary, which follows it.
func encodeHead(key Key, e Entry) []byte {
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(e.Label)))
	var flags uint32
	if e.Imported {
		flags = imported
	}
	head = binary.LittleEndian.AppendUint32(head, flags)
	head = binary.LittleEndian.AppendUint64(head, uint64(len(e.Log)))
	head = binary.LittleEndian.AppendUint64(head, uint64(len(e.Binary)))
	head = append(append(head, key[:]...), e.Target[:]...)
	head = append(append(head, e.Label...), e.Log...)
	return append(entries.Header(head, e.Binary), head...)
}

// readHeader checks everything that can be checked by the header alone. The lengths are then such
// that size cannot wrap.
func readHeader(data []byte) (header, error) {
	var h header
	sealed, err := entries.Length(data)
	if err != nil {
		return h, fmt.Errorf("kernel cache: %w", err)
	}
	if len(data) < headerSize {
		return h, fmt.Errorf("kernel cache: no header: %w", driver.ErrFormat)
	}
	head := data[seal.Size:headerSize]
	h.label = uint64(binary.LittleEndian.Uint32(head))
	h.flags = binary.LittleEndian.Uint32(head[4:])
	h.log = binary.LittleEndian.Uint64(head[8:])
	h.binary = binary.LittleEndian.Uint64(head[16:])
	copy(h.key[:], head[24:])
	copy(h.target[:], head[24+len(h.key):])
	if h.flags > imported {
		return h, fmt.Errorf("kernel cache: flags %#x: %w", h.flags, driver.ErrFormat)
	}
	if h.label > maxLabel || h.log > maxFile || h.binary > maxFile || h.size() > maxFile || uint64(h.size()) != seal.Size+
		sealed {
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
	if _, err := entries.Open(data); err != nil {
		return Entry{}, fmt.Errorf("kernel cache: %w", err)
	}
	text := headerSize + h.label
	code := text + h.log
	return shareable(Entry{
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
