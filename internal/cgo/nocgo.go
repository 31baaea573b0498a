//go:build !cgo || !unix

package cgo

// The backend in builds without cgo, which have no vendor's table.

import "github.com/concord-compute/concord/runtime/driver"

const enabled = false

// NewBackend returns a backend that is listed as disabled.
func NewBackend(v Vendor) driver.Backend { return Disabled(v.Name, v.Description, v.Missing) }
