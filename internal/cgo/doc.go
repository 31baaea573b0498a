// Package cgo is the Go side of what Concord calls in C: the dynamic loader, and
// the table of csrc/shim.h, behind which every vendor looks the same.
//
// # Basics
//
// A vendor's package describes itself in a [Vendor] and registers the backend
// that [NewBackend] makes of it. Everything else of runtime/driver is here, once:
// devices, memory, programs, streams, events, graphs.
//
// # Rules
//
// One operation is one crossing, which makes its device current and brings its
// own error back; no goroutine is tied to a thread. No C function calls back or
// keeps a pointer, so that none of them makes its arguments escape: a launch
// allocates nothing.
//
// # Lifetime
//
// A C object is released when its owner was closed and nobody is in a call with
// it any more. Closing a device closes what is still open on it, in the order
// streams, events and graphs, programs, memory.
package cgo
