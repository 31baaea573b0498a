//go:build !cgo || !vulkan || !(linux || darwin)

package vulkan

import (
	"unsafe"

	"github.com/concord-compute/concord/internal/cgo"
)

var missing = cgo.NotBuilt("-tags vulkan", "linux", "darwin")

func table() unsafe.Pointer { return nil }
