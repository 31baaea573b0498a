//go:build !cgo || !unix

package cgo

// Builds that cannot call C have no vendor's table.

import "github.com/concord-compute/concord/runtime/driver"

// NewBackend returns a backend that is listed and not there.
func NewBackend(v Vendor) driver.Backend {
	return missing{driver.Missing(v.Name, driver.Disabled, v.Missing), v.Description}
}

type missing struct {
	driver.Backend
	description driver.Description
}

// Describe implements driver.Describer.
func (m missing) Describe() driver.Description { return m.description }
