// Package parity runs the kernel catalog on devices and compares each result with that of
// cpu:reference, which computes in float64 and rounds once.
//
// # Basics
//
// [Run] runs every case of the catalog (package kernels) on every device, with the device's own implementation and
// with the portable text if the device has both. It compares each element with the bound of the case. Buffers lie
// between guard bands, and inputs must not change.
//
// # Caveats
//
// A case is skipped, with the reason, only if the machine lacks a requirement: a device without
// double precision, or no compiler. Any other case that cannot be run fails.
package parity
