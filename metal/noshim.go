//go:build !cgo || !metal || !(darwin || simmetal)

package metal

import (
	"unsafe"

	"github.com/concord-compute/concord/internal/cgo"
)

var missing = cgo.NotBuilt("-tags metal", "darwin")

func table() unsafe.Pointer { return nil }
