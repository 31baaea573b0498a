// Package parity runs the kernel catalog on devices and judges each result by
// cpu:reference, which computes in float64 and rounds once.
//
// # Basics
//
// [Run] takes every case of the catalog (package kernels) to every device, as the
// device's own implementation and as the portable text where a device has both,
// and compares each element with the bound that the case states. Buffers lie
// between guard bands, inputs must come back as they were.
//
// # Caveats
//
// A case is skipped, with the reason, only for what is not here: a device without
// double precision, or no compiler. Everything else that does not work fails.
package parity
