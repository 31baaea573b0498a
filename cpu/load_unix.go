//go:build cgo && unix

package cpu

// Loading a shared object by way of a file.

import (
	"os"
	"path/filepath"

	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/internal/file"
)

// openTempObject loads a shared object from a file in a private directory, which
// is removed at once: the loaded library does not need it.
func openTempObject(object []byte) (cgo.Library, error) {
	dir, err := file.TempDir("concord-load-") // no other user can replace it, and its name was never used before
	if err != nil {
		return cgo.Library{}, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "program.so")
	if err := os.WriteFile(path, object, 0o700); err != nil {
		return cgo.Library{}, err
	}
	return cgo.Open(path)
}
