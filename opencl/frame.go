//go:build cgo && opencl && (linux || darwin)

package opencl

// The frame around a driver's binary: whose it is, its build options, its length
// and checksum. PoCL ends the process over a truncated binary, rusticl over any
// that is not its own.

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"github.com/concord-compute/concord/runtime/driver"
)

// magic begins every frame: a name and the version of the layout.
const magic = "CCOCL\x00\x00\x01"

// frame is: magic, length of the rest in 8 bytes, SHA-256 of the rest; the rest
// is: 's' or 'b', the device, length of the options in 4 bytes, options, code.
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

const (
	frameHead = len(magic) + 8 + sha256.Size
	bodyHead  = 1 + sha256.Size + 4
)

func (f *frame) bytes() []byte {
	kind := byte('b')
	if f.source {
		kind = 's'
	}
	out := make([]byte, frameHead, frameHead+bodyHead+len(f.options)+len(f.code))
	out = append(out, kind)
	out = append(out, f.device[:]...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(f.options)))
	out = append(out, f.options...)
	out = append(out, f.code...)
	body := out[frameHead:]
	copy(out, magic)
	binary.LittleEndian.PutUint64(out[len(magic):], uint64(len(body)))
	sum := sha256.Sum256(body)
	copy(out[len(magic)+8:], sum[:])
	return out
}

// parseFrame returns ErrFormat for what never was a frame, ErrCorrupt for what is
// one no more.
func parseFrame(b []byte) (frame, error) {
	if !bytes.HasPrefix(b, []byte(magic)) {
		return frame{}, driver.ErrFormat
	}
	if len(b) < frameHead {
		return frame{}, driver.ErrCorrupt
	}
	body := b[frameHead:]
	sum := sha256.Sum256(body)
	if binary.LittleEndian.Uint64(b[len(magic):]) != uint64(len(body)) || !bytes.Equal(sum[:], b[len(magic)+8:frameHead]) {
		return frame{}, driver.ErrCorrupt
	}
	if len(body) < bodyHead || body[0] != 'b' && body[0] != 's' {
		return frame{}, driver.ErrCorrupt
	}
	n := binary.LittleEndian.Uint32(body[bodyHead-4:])
	rest := body[bodyHead:]
	if uint64(n) >= uint64(len(rest)) { // an empty code is no program either
		return frame{}, driver.ErrCorrupt
	}
	return frame{source: body[0] == 's', device: [sha256.Size]byte(body[1:]), options: string(rest[:n]), code: rest[n:]}, nil
}
