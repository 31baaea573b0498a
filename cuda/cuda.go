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

import "github.com/concord-compute/concord/runtime/driver"

func init() { driver.Register(driver.Missing("cuda", state, reason)) }
