package cgo

// A backend that is not in the build.

import "github.com/concord-compute/concord/runtime/driver"

// Disabled returns a backend that is listed with its description, but has no devices, for a reason such as that of
// NotBuilt.
func Disabled(name string, description driver.Description, reason string) driver.Backend {
	return disabled{driver.Missing(name, driver.Disabled, reason), description}
}

type disabled struct {
	driver.Backend
	description driver.Description
}

// Describe implements driver.Describer.
func (d disabled) Describe() driver.Description { return d.description }
