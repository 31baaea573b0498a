// Package cuda is the backend for NVIDIA GPUs, over the CUDA driver API and NVRTC.
//
//	ours             CUDA
//	backend          driver API and NVRTC
//	device           CUdevice with its primary context
//	stream           CUstream
//	event            CUevent
//	buffer           CUdeviceptr
//	program          CUmodule
//	kernel           CUfunction
//	group / item     block / thread
//
// # Basics
//
// Import the package for its effect (or runtime/all) and build with -tags cuda.
// Devices are named "cuda:N".
//
// # Caveats
//
// This version has no shim yet: whatever the tags, the backend is listed with the
// reason why it has no devices.
package cuda

import (
	"context"

	"github.com/concord-compute/concord/runtime/driver"
)

const name = "cuda"

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
