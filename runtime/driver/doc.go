// Package driver is the contract between Concord's runtime and its backends, as
// database/sql/driver is for databases. Programs import package runtime; only authors of
// backends import this one.
//
// # Basics
//
// A [Backend] registers itself in an init function and touches no vendor library there.
// [Backend.Probe] finds the devices of the machine, [Backend.Open] opens one. A [Device] allocates
// memory and creates streams; a device that can build programs is also a [Compiler]. A [Describer]
// states the backend's title, aliases and rank among backends: runtime knows none by name. Every
// other optional feature is an optional interface found by type assertion: [Natives],
// [NativeHandles] and those of optional.go. Generic code in runtime replaces a missing one where it
// can.
//
//	Backend ── Open ──> Device ─┬─ NewStream ──> Stream ── Record ──> Event
//	   │                        ├─ Alloc ──────> Memory
//	   │                        └─ Compiler: Compile ──> Binary ── Load ──> Module ──> Kernel
//	   └─ Probe: devices, or why there are none
//
// # Checks before a backend is called
//
// Package runtime has checked counts, types, sizes, bounds, lifetimes, ownership (every Memory,
// Kernel and Event belongs to the device it is used on) and the device's published limits. A
// backend does not repeat these checks; it reports only errors that it alone can detect.
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
// Every method may be called from any goroutine at any time, except that runtime never calls two
// methods of one Stream at once, apart from Sync, Err and the methods of its Events.
package driver
