// Package opencl is the backend for OpenCL 1.2 and newer: every device of every
// platform that the machine's OpenCL loader lists. It stands on the binding
// github.com/go-gl/cl and, for what happens at every launch, on the C file
// csrc/opencl/shim.c.
//
//	ours             OpenCL
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
// Nothing is linked: libOpenCL.so.1 is opened at the first use, and a program
// starts on a machine that has none. CONCORD_OPENCL_LIBRARY names another library
// to open.
//
// Building needs CL/opencl.h (Debian: opencl-c-headers) and, because of the
// binding, CGO_CFLAGS in the environment; `make env` prints them.
//
// Programs that already use OpenCL share objects through
// [github.com/concord-compute/concord/runtime/driver.NativeHandles]; [Adopt]
// makes a backend of a context of theirs. Handles are the raw ones: a cl_context,
// cl_device_id, cl_platform_id, cl_command_queue or cl_mem as a number, and
// Memory.Handle is the cl_mem.
//
// # Caveats
//
// A view whose offset is no multiple of Info.BaseAlign cannot be a sub-buffer.
// Kernels from portable text then run in a second rendering that takes offsets,
// compiled when it is first needed; kernels from native text return
// ErrInvalidArgument. Copies take any offset.
//
// The outcome of a command that was queued is looked at by later calls on its
// stream. At most 1024 commands of a stream can be open; the next one waits for
// the oldest.
//
// Upload returns before the copy when the data is small (256 KiB), else it waits
// for the queue. With a context that can be done, a wait that is given up leaves
// one goroutine behind until the work it waited for ends.
//
// Where the driver reports no device times (rusticl of Mesa 22 says 0, 1, 2, 3)
// timed events carry the host's clock at the time they were seen done.
//
// OpenCL has no call that stops a kernel, and most of its drivers do not check
// addresses: a kernel that writes out of bounds corrupts memory, on CPU devices
// that of this process.
package opencl
