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

import "github.com/concord-compute/concord/runtime/driver"

func init() { driver.Register(driver.Missing("metal", state, reason)) }
