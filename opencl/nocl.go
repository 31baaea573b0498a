//go:build !cgo || !opencl || !(linux || darwin)

package opencl

// The backend of a build without OpenCL: it is listed, with the reason why it is missing.

import (
	"context"
	goruntime "runtime"

	"github.com/concord-compute/concord/runtime/driver"
)

func init() { driver.Register(disabled{}) }

type disabled struct{}

var (
	_ driver.Backend   = disabled{}
	_ driver.Describer = disabled{}
)

func (disabled) Name() string { return name }

// Describe implements driver.Describer.
func (disabled) Describe() driver.Description { return description }

func (disabled) Probe(context.Context, *driver.Config) driver.Probe {
	return driver.Probe{Backend: name, State: driver.Disabled, Reason: reason(), Remedy: reason()}
}

func (disabled) Open(context.Context, int, *driver.Config) (driver.Device, error) {
	return nil, &driver.OpError{Backend: name, Op: "open", Detail: reason(), Err: driver.ErrNoDevice}
}

func reason() string {
	switch goruntime.GOOS {
	case "linux", "darwin":
		return "not in this build: " + remedy
	}
	return "not in this build: OpenCL is supported on linux and darwin, not on " + goruntime.GOOS
}
