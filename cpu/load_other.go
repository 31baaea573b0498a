//go:build cgo && unix && !linux

package cpu

import "github.com/concord-compute/concord/internal/cgo"

// openObject loads a shared object.
func openObject(object []byte) (cgo.Library, error) { return openTempObject(object) }
