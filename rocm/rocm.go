// Package rocm is the backend for AMD GPUs, over HIP and hipRTC.
//
//	ours             HIP
//	backend          HIP and hipRTC
//	device           hipDevice_t
//	stream           hipStream_t
//	event            hipEvent_t
//	buffer           device pointer
//	program          hipModule_t
//	kernel           hipFunction_t
//	group / item     block / thread
//
// # Basics
//
// Import the package for its effect (or runtime/all) and build with -tags rocm.
// Devices are named "rocm:N"; "hip:N" means the same.
//
// # Caveats
//
// This version has no shim yet: whatever the tags, the backend is listed with the
// reason why it has no devices.
package rocm

import (
	"context"

	"github.com/concord-compute/concord/runtime/driver"
)

const name = "rocm"

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
