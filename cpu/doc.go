// Package cpu is the backend for the processor of the machine itself. It needs no driver and is
// always available.
//
//	Concord's word  on the CPU
//	backend         "cpu"
//	device          cpu:0, and cpu:reference, which runs only float64 implementations
//	stream          a queue and, while it is not empty, one goroutine
//	event           a count of the operations of its stream
//	buffer          memory between two inaccessible guard pages
//	program         a shared object made by the host's C++ compiler, or Go functions
//	kernel          an entry point of that object, or a [Func]
//	group / item    work that one thread does at a time / an iteration of a loop, or a fiber if items synchronize
//
// # Basics
//
// Importing the package registers the backend. A kernel runs in one of three forms:
//
//   - an implementation of a catalog kernel (driver.Natives): on cpu:0 in vector
//     instructions if there is one for the processor, otherwise in Go; on cpu:reference in
//     float64;
//   - a Go function that the program registered with [Register];
//   - portable text, compiled once by the C++ compiler that CXX names or that is found in PATH
//     (c++, g++, clang++), and run by the executor in csrc/host.
//
// The sets of catalog kernels are avx512, avx2 and neon, written in C in csrc/cpu, and go, which is the
// only one in a build without cgo. A device uses the best set that the processor supports, or the
// one that Config.CPUKernels (CONCORD_CPU_KERNELS) names; KernelInfo and launch records name the
// set. The build tags noavx512 and noavx2 leave a set out, which shortens a build for a processor
// without it.
//
// Each launch uses up to Config.CPUThreads threads, or, if that is 0, the value of GOMAXPROCS
// at the time when the device was opened. A thread that has helped a launch polls for the work of the
// next for 0.2 ms before it sleeps, as waking it takes longer than many launches. The results of sums of floats that several threads
// compute together, of products of few rows and of convolutions may depend on that number in their
// last digits, within their bounds.
//
// # Faults
//
// The launch of a compiled kernel fails if the kernel divides an integer by zero (the least integer by -1 wraps),
// accesses a guard page behind its buffer, overflows its stack, or if not all items of a group reach the same
// barrier. Every later
// call on the stream returns an error that names the launch and the group. Other
// streams and the process go on. Data that a failed kernel has written stays written.
//
// # Limitations
//
// An access outside a buffer is detected if it reaches a guard page. Not detected are an access
// less than 64 bytes past the end, one before the beginning that stays in the buffer's first page, and one
// that reaches another buffer. A kernel that never ends cannot be stopped. Without cgo
// there is no executor: catalog kernels and Go functions run, portable text does not.
package cpu
