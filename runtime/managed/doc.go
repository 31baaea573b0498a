// Package managed has buffers that do more than those of package runtime, which it is built on.
//
//   - A [Buffer] has a host side and a device side, and knows which of them is newer. [Launch] uploads what the host
//     wrote, [Read] downloads what a kernel wrote, and nothing else is copied. Streams that use it wait for each
//     other.
//   - An [Arena] has many small buffers of one scope, which are freed together.
//   - A [Batch] closes several objects together.
//
// Launch stands beside [runtime.Stream.Launch], which takes no managed buffers: a launch there must not pass its
// arguments to methods that it does not know, since every number among them would then be allocated.
//
// Locks are taken in this order: Arena.mu; the lock of a Buffer's two sides, those of one launch in the order in
// which the buffers were made; then those of package runtime.
package managed
