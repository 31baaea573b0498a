//go:build !cgo || !unix || !(amd64 || arm64)

package mpi

import "unsafe"

// callable says whether this build can call a library: it never has one.
const callable = false

func call(unsafe.Pointer, ...uint64) int32 { return -1 }

func poll(unsafe.Pointer, *pair, int, bool) bool { return false }

func globally(string) bool { return false }

func keepSignals() {}

func restoreSignals() {}

func zeroed(uintptr) unsafe.Pointer { return nil }
