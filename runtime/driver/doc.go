// Package driver is the contract between Concord's runtime and its backends, as
// database/sql/driver is for databases. Programs import package runtime; only
// those who write a backend import this one.
//
// # Basics
//
// A [Backend] registers itself in an init function and touches no vendor library
// there. [Backend.Probe] says what is on the machine, [Backend.Open] opens one
// device. A [Device] hands out memory and streams; a device that can build
// programs is also a [Compiler]. A [Describer] says how the backend is called and where it
// stands among others: runtime knows none by name. Whatever else not every device has is an
// optional interface found by assertion: [Natives], [NativeHandles] and those of
// optional.go. Generic code in runtime stands in where one is absent.
//
//	Backend ── Open ──> Device ─┬─ NewStream ──> Stream ── Record ──> Event
//	   │                        ├─ Alloc ──────> Memory
//	   │                        └─ Compiler: Compile ──> Binary ── Load ──> Module ──> Kernel
//	   └─ Probe: devices, or why there are none
//
// # What runtime has checked before a backend is called
//
// Counts, types, sizes, bounds, lifetimes, ownership (every Memory, Kernel and
// Event belongs to the device it is used on) and the device's published limits.
// A backend does not repeat these checks; it reports what only it can know.
//
// # Errors
//
// A method returns the error of its own call. Asynchronous work that fails makes
// its stream failed: from then on every method of that stream returns the same
// error, which names the launch or copy, until the stream is closed. Nothing
// panics and nothing aborts the process.
//
// # Threads
//
// Every method may be called from any goroutine at any time, except that runtime
// never calls two methods of one Stream at once, with the exception of Sync,
// Err and those of its Events.
package driver
