// Package opencl is the backend for OpenCL 1.2 and newer: every device of every
// platform that the machine's OpenCL loader lists. It uses the binding github.com/go-gl/cl and, for
// the calls of every launch, the C file csrc/opencl/shim.c.
//
//	Concord          OpenCL
//	backend          the ICD loader, libOpenCL
//	device           cl_device_id with a cl_context of its own
//	stream           cl_command_queue, in order, with profiling
//	event            cl_event of a marker
//	buffer           cl_mem
//	view of a buffer cl_mem of a sub-buffer, or the parent and an offset
//	program          cl_program
//	kernel           cl_kernel
//	group / item     work-group / work-item
//
// # Basics
//
// Import the package for its effect (or runtime/all) and build with -tags opencl.
// Devices are named "opencl:N", counted over all platforms in the loader's order.
// No library is linked: libOpenCL.so.1 is opened at the first use, so that a program starts on
// machines without it. CONCORD_OPENCL_LIBRARY names another library to open.
//
// Building needs CL/opencl.h (Debian: opencl-c-headers) and, because of the
// binding, CGO_CFLAGS in the environment; `make env` prints them.
//
// Programs that already use OpenCL share objects through
// [github.com/concord-compute/concord/runtime/driver.NativeHandles]; [Adopt] makes a backend from a
// context of the program. Handles are OpenCL's objects as numbers: a cl_context, cl_device_id,
// cl_platform_id, cl_command_queue or cl_mem; Memory.Handle is the cl_mem.
//
// # Caveats
//
// A view whose offset is not a multiple of Info.BaseAlign cannot be a sub-buffer. Kernels from
// portable text then run in a second rendering that takes offsets, which is compiled when it is
// first needed; kernels from OpenCL text of the program's own return ErrInvalidArgument. Copies
// work at any offset.
//
// The failure of a queued command is detected by later calls on its stream. At most 1024 commands
// of a stream can be in progress; queueing another one waits for the oldest.
//
// Upload of at most 256 KiB returns before the copy is done; for more data it waits for the queue.
// If a context ends a wait, one goroutine stays until the work that it waited for has ended.
//
// If the driver reports no device times (rusticl of Mesa 22 returns 0, 1, 2, 3), timed events have
// the host's time at which they were found to be done.
//
// Mesa's llvmpipe, on which rusticl runs without a GPU, ends the loops of an item after 65,535 rounds
// in all, without an error: results of kernels that need more are wrong there.
//
// OpenCL has no call that stops a kernel, and most of its drivers do not check
// addresses: a kernel that writes out of bounds corrupts memory, on CPU devices
// that of this process.
//
// # How calls reach the library
//
// All calls but those of a launch go through the binding. A launch is one call into csrc/opencl/shim.c: an
// OpenCL kernel holds the arguments that were set last, so setting them and queueing is one step under that
// kernel's lock. csrc/opencl/loader.c defines the functions that the binding asks the linker for, and opens
// libOpenCL at the first call.
package opencl
