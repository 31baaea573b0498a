// Package cgo is the Go side of two interfaces in C: the dynamic loader, and the table of functions
// of csrc/shim.h, which is the same for every vendor.
//
// # Basics
//
// A vendor's package describes itself in a [Vendor] and registers the backend that [NewBackend]
// makes from it. This package implements the rest of runtime/driver for all vendors: devices,
// memory, programs, streams, events, graphs.
//
// # Rules
//
// Each operation is one call from Go to C, which makes its device current and returns its own
// error; no goroutine is tied to a thread. No C function calls back into Go or keeps a pointer, so
// that arguments do not escape to the heap and a launch allocates nothing.
//
// # Lifetime
//
// A C object is released when its owner has been closed and no call uses it any more. Closing a
// device closes what is still open on it, in the order streams, events and graphs, programs,
// memory.
package cgo
