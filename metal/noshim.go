//go:build !cgo || !metal

package metal

import "github.com/concord-compute/concord/runtime/driver"

const (
	state  = driver.Disabled
	reason = "not in this build: " + remedy + " (this version has no Metal shim yet)"
)
