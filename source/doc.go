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
// This package is a facade. The work is done in packages below internal:
//
//	text ─> preprocess ─> tokens ─> check ─> tree ─> render ─> text for a target
//	                                  │                 │
//	            the table of functions: builtins      loops: kernels without fibers on the host
//
// # Caveats
//
// What cannot be rendered is an error with position and construct, never wrong
// code: recursion, pointers to functions, variable length arrays, bit-fields,
// images. What a target lacks is ErrUnsupported with the places: sub-groups on the
// host; on Metal double, 64-bit atomics, goto and printf.
//
// No input takes the front end long: the work grows with the text and no faster, and a
// context ends it ([ParseContext], [Unit.RenderContext]). What would not is refused with its place: one
// text of more than 16 MiB, 64 MiB read or written in all, 2^20 tokens after preprocessing or 2^21
// steps on the way to them, names of more than 4096 bytes, 256 levels of nesting (of statements,
// parentheses, pointers, initializers), 4000 operators in one chain, 1000 levels of calls, 256
// overloads of one function, 2^22 elements of initializers. A kernel whose barriers it would
// take too long to look into keeps its fibers on the host.
//
// One rounding per operation is kept: products and sums are not contracted, denormals
// are kept, division is exact. That needs flags. NVRTC: --std=c++17 --fmad=false
// --prec-div=true --prec-sqrt=true --ftz=false. hipRTC: -std=c++17 -ffp-contract=off
// -fwrapv -fno-strict-aliasing. Metal: fast math off in the compile options; the
// rendering turns contraction off itself; Apple's GPUs may take denormal floats for 0 all
// the same, as Metal allows. Overflow of signed integers is undefined on CUDA, as
// it is in C; elsewhere it wraps.
package source
