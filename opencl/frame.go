//go:build cgo && opencl && (linux || darwin)

package opencl

// The frame around a driver's binary: whose it is, and its build options. PoCL ends the process over a truncated binary, rusticl over any
// that is not its own.

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"github.com/concord-compute/concord/internal/seal"
	"github.com/concord-compute/concord/runtime/driver"
)

// programs are compiled programs: sealed frames.
const programs seal.Mark = "CNCDOCL2"

// frame is: 's' or 'b', the device, length of the options in 4 bytes, options, code.
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

// frameHead is the length of what stands before the options.
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

// parseFrame returns ErrFormat for what never was a frame, ErrCorrupt for what is
// one no more.
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
	if uint64(n) >= uint64(len(rest)) { // an empty code is no program either
		return frame{}, driver.ErrCorrupt
	}
	return frame{source: body[0] == 's', device: [sha256.Size]byte(body[1:]), options: string(rest[:n]), code: rest[n:]}, nil
}
