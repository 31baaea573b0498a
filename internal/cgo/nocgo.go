//go:build !cgo || !unix

package cgo

// Builds that cannot call C have no vendor's table.

import "github.com/concord-compute/concord/runtime/driver"

// NewBackend returns a backend that is listed and not there.
func NewBackend(v Vendor) driver.Backend { return driver.Missing(v.Name, driver.Disabled, v.Missing) }
