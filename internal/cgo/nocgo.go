//go:build !cgo || !unix

package cgo

// The backend in builds without cgo, which have no vendor's table.

import "github.com/concord-compute/concord/runtime/driver"

// NewBackend returns a backend that is listed as disabled.
func NewBackend(v Vendor) driver.Backend {
	return missing{driver.Missing(v.Name, driver.Disabled, v.Missing), v.Description}
}

type missing struct {
	driver.Backend
	description driver.Description
}

// Describe implements driver.Describer.
func (m missing) Describe() driver.Description { return m.description }
