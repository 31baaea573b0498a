// Package source is the front end of the portable language: OpenCL C 1.2 without
// images, pipes and device-side enqueue. It preprocesses, parses and checks a
// program once, so that every kernel's parameters are known to the caller and
// mistakes have a file, a line and a column, and renders it for a target.
//
// # Basics
//
//	unit, err := source.Parse(text, source.Options{Name: "saxpy.cl", Features: dev.Features()})
//	for _, k := range unit.Kernels() { ... }
//	cpp, err := unit.Render(source.Host)
//
// A [Unit] is a function of its text, definitions, included files and the features
// of the device it is for: [Unit.Hash] is over all of them and over the front end
// itself.
//
// # Caveats
//
// What cannot be rendered is an error with position and construct, never wrong
// code: recursion, pointers to functions, variable length arrays, bit-fields,
// images. What a target lacks is ErrUnsupported with the places: sub-groups on the
// host; on Metal double, 64-bit atomics, goto and printf.
//
// One rounding per operation is kept: products and sums are not contracted, denormals
// are kept, division is exact. That needs flags. NVRTC: --std=c++17 --fmad=false
// --prec-div=true --prec-sqrt=true --ftz=false. hipRTC: -std=c++17 -ffp-contract=off
// -fwrapv -fno-strict-aliasing. Metal: fast math off in the compile options; the
// rendering turns contraction off itself; Apple's GPUs may take denormal floats for 0 all
// the same, as Metal allows. Overflow of signed integers is undefined on CUDA, as
// it is in C; elsewhere it wraps.
package source
