// Package runtime is what a program imports to compile, launch and check compute
// kernels on CUDA, ROCm, OpenCL, Metal and the CPU.
//
// # Basics
//
// A program names the backends it wants by blank imports (package
// [github.com/concord-compute/concord/runtime/all] is all of them), opens a
// device, parses a kernel written in OpenCL C, and launches it:
//
//	dev, err := runtime.Open(ctx, "auto")
//	unit, err := source.Parse(text, source.Options{})
//	prog, err := dev.Program(ctx, unit)
//	saxpy, err := prog.Kernel("saxpy")
//	x, err := runtime.Upload(ctx, dev, xs)
//	y, err := runtime.Upload(ctx, dev, ys)
//	err = dev.Stream().Launch(saxpy, runtime.Items(len(xs)), float32(2), x, y, int32(len(xs)))
//	err = runtime.Read(ctx, y, ys)
//
// Work on one [Stream] happens in order; [Stream.Launch] queues and returns.
// Everything that waits takes a context. Every argument of a launch is checked
// against the kernel's parameters before a driver is called.
//
// Compiled programs are kept by the kernel cache, in memory and on disk.
//
// What belongs to what, and is closed with it:
//
//	Session                 a configuration; the package's functions use the default one
//	└─ Device               one processor with its memory: "cuda:0", "cpu:0"
//	   ├─ Program ─ Kernel  a unit of package source, built for the device
//	   ├─ Buffer, Managed   memory that kernels read and write
//	   ├─ Stream ─ Event    a queue of work; a point in it
//	   └─ Graph             recorded work, launched as a whole
//
// # Memory
//
// Each device has a pool: memory of buffers that are closed is kept for the next
// ones. What to take for what:
//
//	Buffer   Device.Alloc, Upload     memory of the device, or a view of it
//	Buffer   Device.AllocKind         pinned or unified memory; Host is the host's view
//	Buffer   Stream.Alloc             what one step needs, in the order of a stream
//	Managed  Device.NewManaged        a host side and a device side; copies by itself
//	Arena    Device.NewArena          many small buffers of one scope
//	         Stream.NewArena          the same, in the order of a stream
//	Batch    Device.NewBatch          whatever is closed together
//
// A Buffer is raw: its owner copies, and orders the streams that use it. A [Managed]
// knows which side is newer and does both. Large copies between a device and Go's memory
// pass through pinned memory ([Stats.Staging]); the context of the call ends them
// between two pieces.
//
// # What not every device has
//
// Memory that the host sees too ([Device.AllocKind], [Host]), priorities
// ([Device.NewPriorityStream]), allocation in the order of a stream ([Stream.Alloc]), graphs
// ([Stream.Capture]) and copies between devices ([CopyAcross]) can be asked for on every device:
// where a driver has none of them, Concord does the same by other means, or the call returns
// ErrUnsupported. Only some drivers know how kernels fill a device ([Kernel.Occupancy]).
//
// # Caveats
//
// Close is the contract: it may be called twice and in any order. A buffer that
// is forgotten is found after the garbage collector saw it, freed by the next
// call on its device, and counted in [Stats.Forgotten].
//
// An asynchronous failure belongs to its stream: every later call on that stream
// returns the same error until it is closed. Other streams go on. Only a device that
// is lost (ErrDeviceLost) takes all of its streams with it; opening it anew gives a
// fresh one, and Devices from before stay lost.
//
// Simulated devices (sim-cuda:0, sim-rocm:0, sim-metal:0) execute, are opened by name alone, and
// never count as a GPU.
//
// The package keeps its name although the standard library has one too: alias the
// standard one (goruntime "runtime"); no exported name is in both.
package runtime
