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
// A [Unit] is determined by its text, its definitions, the included files and the features of
// the device that it is for. [Unit.Hash] covers all of them and the front end itself.
//
// This package is a facade. The work is done in packages below internal:
//
//	text ─> preprocess ─> tokens ─> check ─> tree ─┬─> render ─> text for a target
//	                                  │            │      │
//	            the table of functions: builtins   │    loops: kernels without fibers on the host
//	                                               └─> spirv ─> a module for Vulkan
//
// The dot products of bytes of cl_khr_integer_dot_product are always there (dot_4x8packed_ss_int and its
// like, dot and dot_acc_sat of char4 and uchar4): instructions where CUDA and HIP devices have them, else plain
// code. An int or a uint plus such a product is one instruction there, too. Of AMD's before gfx11, those of
// bytes with and without a sign take two.
//
// A program may have texts in vendors' languages beside the portable one (Options.Native), for a kernel that
// uses what OpenCL C does not have. The portable text declares its kernels, so that arguments are checked as
// usual. That the vendor's text has the same parameters is not checked.
//
// # Caveats
//
// A construct that cannot be rendered is an error with its position and its name, and never
// becomes wrong code: recursion, pointers to functions, variable length arrays, bit-fields,
// images. A feature that a target lacks is an error that matches ErrUnsupported and has the
// positions: sub-groups on the host; on Metal double, 64-bit atomics, goto and printf. In SPIR-V these are printf,
// labels of a switch inside of other statements, a goto into a block, 64-bit atomics on local memory, more than
// 256 KiB of private variables, and chains of more than 700 else if.
//
// The work of the front end is linear in the size of the text, and a context ends it
// ([ParseContext], [Unit.RenderContext]). Texts beyond a limit are refused with the position. A text has at
// most 16 MiB, and all that is read or written 64 MiB. Preprocessing takes at most 2^21 steps and leaves at
// most 2^20 tokens. Names have at most 4096 bytes. Statements, parentheses, pointers and initializers nest up
// to 256 levels, calls up to 1000. A chain has at most 4000 operators, a function 256 overloads, and all
// initializers 2^22 elements. On the host, a kernel whose barriers would take too long to analyze runs on
// fibers.
//
// Every operation rounds once: products and sums are not contracted, denormals
// are kept, division is exact. That needs compiler flags. NVRTC: --std=c++17 --fmad=false
// --prec-div=true --prec-sqrt=true --ftz=false. hipRTC: -std=c++17 -ffp-contract=off
// -fwrapv -fno-strict-aliasing. Metal: fast math off in the compile options; the
// rendering turns contraction off itself; Apple's GPUs may still treat denormal floats as 0,
// as Metal allows. Overflow of signed integers is undefined on CUDA, as
// it is in C; elsewhere it wraps.
package source
