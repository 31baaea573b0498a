//go:build !cgo || !rocm

package rocm

import "github.com/concord-compute/concord/runtime/driver"

const (
	state  = driver.Disabled
	reason = "not in this build: " + remedy + " (this version has no ROCm shim yet)"
)
