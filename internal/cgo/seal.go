//go:build cgo && unix

package cgo

// Compiled programs as bytes: a header and the vendor's code. Drivers are given
// code without its length and trust it, so damaged bytes must not reach them.

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
)

// The header is: magic, length of the code in 8 bytes (little endian), SHA-256 of
// the code.
const (
	sealMagic = "CNCDVND1"
	sealBytes = len(sealMagic) + 8 + sha256.Size
)

func seal(code []byte) []byte {
	sum := sha256.Sum256(code)
	b := append(make([]byte, 0, sealBytes+len(code)), sealMagic...)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(code)))
	b = append(b, sum[:]...)
	return append(b, code...)
}

// unseal returns the code.
func unseal(b []byte) ([]byte, error) {
	if len(b) < sealBytes || string(b[:len(sealMagic)]) != sealMagic {
		return nil, fmt.Errorf("not a program of this device: %w", driver.ErrFormat)
	}
	code := b[sealBytes:]
	if n := binary.LittleEndian.Uint64(b[len(sealMagic):]); n != uint64(len(code)) || n == 0 {
		return nil, fmt.Errorf("%d bytes instead of %d: %w", len(code), n, driver.ErrCorrupt)
	}
	if sha256.Sum256(code) != [sha256.Size]byte(b[len(sealMagic)+8:sealBytes]) {
		return nil, fmt.Errorf("wrong checksum: %w", driver.ErrCorrupt)
	}
	return code, nil
}
