//go:build cgo && cuda

package cuda

import "github.com/concord-compute/concord/runtime/driver"

// With the tag there is still nothing to open: the shim is a later step.
const (
	state  = driver.Unavailable
	reason = "this version of Concord has no CUDA shim yet"
)
