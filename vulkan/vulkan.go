// Package vulkan is the backend for every GPU with a driver of Vulkan 1.3.
//
//	Concord          Vulkan
//	backend          the loader, and the drivers that it finds
//	device           VkPhysicalDevice with a VkDevice
//	stream           command buffers that are submitted to a VkQueue, and a timeline semaphore
//	event            a value of the timeline semaphore, with a timestamp if it is timed
//	buffer           VkBuffer with an address, or a part of one
//	program          VkShaderModule
//	kernel           an entry point, and a VkPipeline for each size of its groups
//	group / item     work group / invocation
//	local memory     memory of storage class Workgroup
//	sub-group        subgroup
//
// # Basics
//
// Import the package for its effect (or runtime/all) and build with -tags vulkan, which needs cgo and nothing of
// Vulkan's. The loader, libvulkan, is opened at the first use. Devices are named "vulkan:N", in the loader's
// order. Needed are 64-bit integers, 8-bit and 16-bit storage, and floats that keep signs of zeros, infinities and
// NaNs; devices that lack one of these are named in [driver.Probe].Tried with the reason.
//
// A device that is the processor (Mesa's lavapipe) or that belongs to MoltenVK is opened only by its name, and
// listed only with CONCORD_REQUIRE=vulkan.
//
// # Programs
//
// Package source makes SPIR-V, so that no compiler is needed, also for devices that are not here. What the driver
// compiles of it when a kernel is first launched with a size of groups is kept beside the kernel cache when the
// device is closed.
//
// Before the first pipeline of a device a small kernel finds out which operations round correctly: fused multiply-
// adds, quotients, roots. Programs compute the others by themselves. Numbers below the normal range count as 0
// where the driver flushes them.
//
// # Memory
//
// Where host and device share one memory, all of it is visible to the host. Elsewhere OnDevice memory is the
// device's, and Pinned and Unified memory the host's, which the device reads over the bus. Memory that is freed
// while work uses it lives until that is done.
//
// # Streams
//
// Work is submitted at once while the device has nothing else of the stream, and otherwise put together.
// Priorities have no effect. Work does not fail but by the loss of the device, and a submission that the driver
// refuses counts as one.
//
// # Caveats
//
// The backend has run on lavapipe only: docs/vulkan.md lists what was tested. Occupancy, copies between devices
// without the host, and wrapped streams are not supported.
package vulkan

import (
	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/runtime/driver"
)

func init() { driver.Register(cgo.NewBackend(vendor())) }
