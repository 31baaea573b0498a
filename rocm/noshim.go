//go:build !cgo || !rocm || !linux

package rocm

import (
	"unsafe"

	"github.com/concord-compute/concord/internal/cgo"
)

var missing = cgo.NotBuilt("-tags rocm", "linux")

func table() unsafe.Pointer { return nil }
