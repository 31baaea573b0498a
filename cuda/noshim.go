//go:build !cgo || !cuda

package cuda

import "github.com/concord-compute/concord/runtime/driver"

const (
	state  = driver.Disabled
	reason = "not in this build: " + remedy + " (this version has no CUDA shim yet)"
)
