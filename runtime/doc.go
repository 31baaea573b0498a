// Package runtime compiles, launches and checks compute kernels on CUDA, ROCm, OpenCL, Metal and
// the CPU. It is the package that programs import.
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
// Work on one [Stream] happens in order; [Stream.Launch] queues and returns. Every function that
// waits takes a context. Every argument of a launch is checked against the kernel's parameters
// before a driver is called.
//
// Compiled programs are kept by the kernel cache, in memory and on disk. [Device.Programs] builds several
// at once, in less time.
//
// What belongs to what, and is closed with it:
//
//	Session                 a configuration; the package's functions use the default one
//	└─ Device               one processor with its memory: "cuda:0", "cpu:0"
//	   ├─ Program ─ Kernel  a unit of package source, built for the device
//	   ├─ Buffer            memory that kernels read and write
//	   ├─ Stream ─ Event    a queue of work; a point in it
//	   └─ Graph             recorded work, launched as a whole
//
// # Memory
//
// Each device has a pool: the memory of closed buffers is kept for later ones. There are several
// ways to allocate:
//
//	Device.Alloc, Upload     memory of the device, or a view of it
//	Device.AllocKind         pinned or unified memory; Host is the host's view
//	Stream.Alloc             what one step needs, in the order of a stream
//	Device.Wrap, WrapHandle  the program's memory: a mapped file, a vendor's handle
//
// A Buffer is raw: the program copies its contents and orders the streams that use it, by [Stream.Wait]
// or [Stream.WaitFor]; [Read] comes after the work of all streams with it. Package
// [github.com/concord-compute/concord/runtime/managed] has buffers that do both, arenas of many small
// buffers, and batches of what is closed together. Large copies between a device and Go's memory pass
// through pinned memory ([Stats.Staging]) in pieces; when the call's context is done, the copy ends
// after the current piece.
//
// # Optional features of devices
//
// These can be requested on every device: memory that the host can access ([Device.AllocKind], [Host]), priorities
// ([Device.NewPriorityStream]), allocation in the order of a stream ([Stream.Alloc]), graphs ([Stream.Capture]), and
// copies between devices ([Stream.CopyFrom], [CopyAcross]). Where the driver lacks one, Concord does the same by other
// means, or the call returns ErrUnsupported. Only some drivers can tell the occupancy of kernels ([Kernel.Occupancy]).
//
// # Caveats
//
// Every object is to be closed. Close may be called twice and in any order. A buffer that was
// forgotten is noticed by the garbage collector, freed by the next call on its device, and counted
// in [Stats.Forgotten].
//
// An asynchronous failure belongs to its stream: every later call on that stream returns the same
// error until it is closed or reset ([Stream.Reset]). Other streams go on. Only a lost device (ErrDeviceLost)
// fails all of its streams. Opening it again gives a new device; earlier Devices stay lost. A device that hangs
// can be given up: [Device.Abandon].
//
// Simulated devices (sim-cuda:0, sim-rocm:0, sim-metal:0) execute kernels, can be opened by name
// only, and never count as a GPU.
//
// The standard library has a package runtime, too: import that one under another name
// (goruntime "runtime"). No exported name is in both.
package runtime
