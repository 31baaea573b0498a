// Package metal is the backend for Apple GPUs, over the Metal framework.
//
//	ours             Metal
//	backend          the framework
//	device           MTLDevice
//	stream           MTLCommandQueue
//	event            the end of an MTLCommandBuffer, and its MTLSharedEvent
//	buffer           MTLBuffer
//	program          MTLLibrary with an MTLBinaryArchive
//	kernel           MTLComputePipelineState
//	group / item     threadgroup / thread
//	local memory     threadgroup memory
//	sub-group        SIMD group
//
// # Basics
//
// Import the package for its effect (or runtime/all) and build with -tags metal on
// macOS 12 or later. Devices are named "metal:N", the system's default first. Both
// frameworks that it links, Metal and Metal Performance Shaders, are on every Mac;
// compiling needs the command line tools' clang and no SDK besides.
//
// "sim-metal:N" are simulated devices: the same code, built on Linux with
// -tags metal,simmetal over the framework that make test-metal builds. They are for
// tests, and are opened only by name.
//
// # Memory
//
// Where host and device share one memory (every Apple GPU) all kinds of memory are
// visible to the host, and copies between host and device are plain copies whenever
// the stream is idle. A GPU with memory of its own keeps ordinary memory there;
// unified memory is then a copy on either side, so host and device may not use one
// buffer of it at the same time.
//
// # Streams
//
// Work is put together in command buffers, which are handed on at once while the
// device is idle, and otherwise when they are full or somebody asks for the work in
// them. Times of events are the device's own, of whole command buffers: an event with
// timing ends one.
//
// # Programs
//
// The compiler is the framework's; it compiles for the devices that are there.
// Operations round once: fast math is off unless a program asks for it. A compiled
// program is its source with the machine code of its kernels.
//
// # Caveats
//
// Nothing here has run on a Mac: docs/metal.md says what has run where. There is no
// double. Graphs, peer copies and native handles of memory are not supported.
package metal

import (
	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/runtime/driver"
)

func init() {
	driver.Register(cgo.NewBackend(vendor()))
	driver.Register(cgo.NewBackend(simulated()))
}
