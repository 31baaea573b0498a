package file

// Small files that a program keeps for the next one: measurements.

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"

	"github.com/concord-compute/concord/runtime/driver"
)

// mostKept bounds what Kept reads.
const mostKept = 4 << 20

// Kept reads what [Keep] wrote, from a directory that no other user can write. The error is driver.ErrCorrupt if the
// file is damaged, and driver.ErrFormat if it is larger than 4 MiB.
func Kept(dir, name string) ([]byte, error) { return KeptUpTo(dir, name, mostKept) }

// KeptUpTo is Kept with another bound in bytes.
func KeptUpTo(dir, name string, most int64) ([]byte, error) {
	root, err := OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, info, err := OpenIn(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > most {
		return nil, fmt.Errorf("%s: %d bytes: %w", name, info.Size(), driver.ErrFormat)
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil, err
	}
	sum, text, ok := bytes.Cut(data, []byte("\n"))
	if want := sha256.Sum256(text); !ok || string(sum) != hex.EncodeToString(want[:]) {
		return nil, fmt.Errorf("%s: %w", name, driver.ErrCorrupt)
	}
	return text, nil
}

// Keep writes a file as a whole or not at all: the checksum of the text, and the text. It makes the directory, which
// no other user may be able to write. The error is driver.ErrTooLarge if the file would have more than 4 MiB.
func Keep(dir, name string, text []byte) error { return KeepUpTo(dir, name, text, mostKept) }

// KeepUpTo is Keep with another bound in bytes.
func KeepUpTo(dir, name string, text []byte, most int64) error {
	if int64(len(text)) > most-sha256.Size*2-1 {
		return fmt.Errorf("%s: %d bytes: %w", name, len(text), driver.ErrTooLarge)
	}
	root, err := OpenRoot(dir)
	if err != nil {
		return err
	}
	root.Close()
	return Replace(filepath.Join(dir, name), func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%x\n%s", sha256.Sum256(text), text)
		return err
	})
}
