// Package vulkan is the backend for every GPU that has a Vulkan driver.
package vulkan

import (
	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/runtime/driver"
)

func init() { driver.Register(cgo.NewBackend(vendor())) }
