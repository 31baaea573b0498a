//go:build !cgo || !cuda || !linux

package cuda

import (
	"unsafe"

	"github.com/concord-compute/concord/internal/cgo"
)

var missing = cgo.NotBuilt("-tags cuda", "linux")

func table() unsafe.Pointer { return nil }
