// Package metal is the backend for Apple GPUs, over the Metal framework.
//
//	Concord          Metal
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
// macOS 12 or later. Devices are named "metal:N"; the system's default device is the first. The
// frameworks that are linked, Metal and Metal Performance Shaders, are part of macOS. Building
// needs the clang of Apple's command line tools and no other SDK.
//
// "sim-metal:N" are simulated devices: the same backend, built on Linux with -tags metal,simmetal
// on a simulated framework, which make test-metal builds. They are for tests, and are opened only
// by name.
//
// # Memory
//
// If host and device share one memory, as on every Apple GPU, all kinds of memory are visible to the host. The
// CPU makes a copy between host and device on an idle stream. On a GPU with separate memory, OnDevice memory is
// on the GPU, and Unified memory has a copy on each side. Host and device must not use the same unified buffer
// there at the same time.
//
// # Streams
//
// Work is collected in command buffers. A command buffer is committed at once while the device is
// idle, and otherwise when it is full or a call waits for its work. Times of events are measured by
// the device for whole command buffers, so an event with timing ends its command buffer.
//
// # Programs
//
// The compiler is part of the framework and compiles only for the devices of the machine. Every
// operation rounds once: fast math is off unless an option of the program switches it on. The bytes
// of a compiled program are its source and the machine code of its kernels.
//
// # Caveats
//
// The backend has not run on a Mac: docs/metal.md lists what was tested and where. Metal has no
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
