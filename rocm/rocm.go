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

import "github.com/concord-compute/concord/runtime/driver"

func init() { driver.Register(driver.Missing("rocm", state, reason)) }
