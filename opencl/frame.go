//go:build cgo && opencl && (linux || darwin)

package opencl

// The frame around a driver's binary: the device that it is for, and its build options. The frame
// is checked before the driver gets the binary: PoCL ends the process if a binary is truncated, and
// rusticl if it was made by another driver.

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"github.com/concord-compute/concord/internal/seal"
	"github.com/concord-compute/concord/runtime/driver"
)

// programs is the mark of compiled programs, which are sealed frames.
const programs seal.Mark = "CNCDOCL2"

// frame is a compiled program. Its bytes are 's' (source) or 'b' (binary), the device, the length
// of the options in 4 bytes, the options, the code.
type frame struct {
	source  bool // code is text, because the driver gave no binary
	device  [sha256.Size]byte
	options string
	code    []byte
}

// deviceHash identifies the devices that can load a binary.
func deviceHash(identity []string) [sha256.Size]byte {
	return sha256.Sum256([]byte(strings.Join(identity, "\x00")))
}

// frameHead is the number of bytes before the options.
const frameHead = 1 + sha256.Size + 4

func (f *frame) bytes() []byte {
	kind := byte('b')
	if f.source {
		kind = 's'
	}
	head := append([]byte{kind}, f.device[:]...)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(f.options)))
	return programs.Seal(head, []byte(f.options), f.code)
}

// parseFrame decodes a frame. Bytes that are not a sealed frame are ErrFormat; a damaged one is
// ErrCorrupt.
func parseFrame(b []byte) (frame, error) {
	body, err := programs.Open(b)
	if err != nil {
		return frame{}, err
	}
	if len(body) < frameHead || body[0] != 'b' && body[0] != 's' {
		return frame{}, driver.ErrCorrupt
	}
	n := binary.LittleEndian.Uint32(body[frameHead-4:])
	rest := body[frameHead:]
	if uint64(n) >= uint64(len(rest)) { // empty code is not a program
		return frame{}, driver.ErrCorrupt
	}
	return frame{source: body[0] == 's', device: [sha256.Size]byte(body[1:]), options: string(rest[:n]), code: rest[n:]},
		nil
}
