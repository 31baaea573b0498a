// Package cpu is the backend of the machine's own processor. It is always there.
//
//	our word        here
//	backend         "cpu"
//	device          cpu:0, and cpu:reference, which runs only float64 implementations
//	stream          a queue and, while it is not empty, one goroutine
//	event           a count of the operations of its stream
//	buffer          memory between two pages that nobody may touch
//	program         a shared object made by the host's C++ compiler, or Go functions
//	kernel          an entry point of that object, or a [Func]
//	group / item    a unit of work of one thread / a turn of a loop, or a fiber where the group synchronizes
//
// # Basics
//
// Importing the package registers the backend. A kernel runs in one of three forms:
//
//   - a function of Concord's own for the catalog (driver.Natives): on cpu:0 in vector
//     instructions where a set of them is there for the kernel, otherwise in Go; in
//     float64 on cpu:reference;
//   - a Go function that the program registered with [Register];
//   - portable text, compiled once by the C++ compiler that CXX names or that PATH
//     has (c++, g++, clang++), and run by the executor in csrc/host.
//
// The sets are avx512, avx2 and neon, in csrc/cpu, and go, which is the only one without
// cgo. The best that the processor has is taken, or what Config.CPUKernels
// (CONCORD_CPU_KERNELS) says; KernelInfo and launch records name it. The build tags noavx512
// and noavx2 leave a set out, for a program that is built where it runs.
//
// Each launch spreads over GOMAXPROCS threads as it was when the device was opened, or
// Config.CPUThreads. Sums of floats whose parts several threads add up, products of few
// rows and convolutions may differ in their last digits with that number, within their
// bounds.
//
// # Faults
//
// A compiled kernel that divides by zero, runs past its buffer into a guard page,
// outgrows its stack or whose items part at a barrier fails its launch: the stream
// then answers every call with an error that names the launch and the group. Other
// streams and the process go on. What a faulting kernel wrote before stays written.
//
// # Caveats
//
// Overruns are seen where they reach a guard page. One of less than 64 bytes, an
// underrun that stays in the block's first page, or a jump into another buffer is
// not. A kernel that never ends cannot be stopped inside a process. Without cgo
// there is no executor: the catalog and Go kernels run, portable text does not.
package cpu
