// Package metal is the backend for Apple GPUs, over the Metal framework.
//
//	ours             Metal
//	backend          the framework
//	device           MTLDevice
//	stream           MTLCommandQueue
//	event            MTLSharedEvent
//	buffer           MTLBuffer
//	program          MTLLibrary
//	kernel           MTLComputePipelineState
//	group / item     threadgroup / thread
//
// # Basics
//
// Import the package for its effect (or runtime/all) and build with -tags metal on
// macOS. Devices are named "metal:N".
//
// # Caveats
//
// This version has no shim yet: whatever the tags, the backend is listed with the
// reason why it has no devices.
package metal

import (
	"context"

	"github.com/concord-compute/concord/runtime/driver"
)

const name = "metal"

func init() { driver.Register(backend{}) }

type backend struct{}

var _ driver.Backend = backend{}

// Name implements driver.Backend.
func (backend) Name() string { return name }

// Probe implements driver.Backend: the backend is listed with the reason why it
// has no devices.
func (backend) Probe(context.Context, *driver.Config) driver.Probe {
	return driver.Probe{Backend: name, State: state, Reason: reason}
}

// Open implements driver.Backend.
func (backend) Open(context.Context, int, *driver.Config) (driver.Device, error) {
	return nil, &driver.OpError{Backend: name, Op: "open", Detail: reason, Err: driver.ErrNoDevice}
}
