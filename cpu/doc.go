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
// next for 0.2 ms before it sleeps, as waking it takes longer than many launches. The results of sums of floats
// that several threads compute together, of products of few rows and of convolutions may depend on that number
// in their last digits, within their bounds.
//
// The numbers that were chosen by measuring are choices (cpu/choices*.go, driver.Tunable): blocks and methods of
// products and convolutions, the lengths of parts of rows, when threads are woken and how long they poll, what is
// stored past the caches, what expressions fetch ahead. A launch keeps the values with which it began. cpu:reference
// has none, and compiled kernels only those of threads.
//
// # Faults
//
// The launch of a compiled kernel fails if it divides an integer by zero, accesses a guard page behind its
// buffer, or overflows its stack. It fails, too, if not all items of a group reach the same barrier. The least
// integer divided by -1 wraps. Every later call on the stream returns an error that names the launch and the
// group. Other streams and the process go on. Data that a failed kernel has written stays written.
//
// # Limitations
//
// An access outside a buffer is detected if it reaches a guard page. Not detected are an access
// less than 64 bytes past the end, one before the beginning that stays in the buffer's first page, and one
// that reaches another buffer. A kernel that never ends cannot be stopped. Without cgo
// there is no executor: catalog kernels and Go functions run, portable text does not.
//
// # The executor of compiled kernels
//
// csrc/host runs compiled kernels. A device has Config.CPUThreads threads (workers.go): kernels of all
// streams, native or compiled, and large copies share them in turn. A group is computed in one of three ways:
//
//   - A kernel without a barrier is a loop over the items of a group. If it does not ask for its group, the
//     loop spans whole rows and planes of groups. The C++ compiler vectorizes it, together with the
//     mathematical functions of float (source/host/host_float.h).
//   - A kernel whose barriers all items provably reach together is cut at them (source/internal/loops). Each
//     piece is a loop over the items; what stands around the pieces runs once per group.
//   - Without such a proof each item runs on a fiber. A round in which the items do not all reach the same
//     barrier is an error. The flag -D CONCORD_HOST_FIBERS forces this way.
//
// Three transformations help the compiler. Indices of 32 bits that grow evenly along a row are counted in 64
// bits, and a row is cut where one would wrap. A comparison of an id with a uniform value becomes a bound of
// the loop. An inner loop in which neighbouring items read neighbouring elements is interchanged with the
// loop over the items (source/internal/loops/interchange.go).
//
// A fault in kernel code (a bad address, a division by zero, the stack) reaches handlers in front of Go's. It
// ends that launch and becomes its stream's error. Every other signal goes on to Go's handlers.
//
// # Kernels of the catalog
//
// csrc/cpu is C over a small set of vector operations, compiled for AVX-512, AVX2 and NEON, each in six
// parts that compilers do side by side. Row and element kernels are written once for four types, since half
// and bfloat16 are loaded as floats (storage.h). Integers are reduced by plain loops, which compilers
// vectorize. Results larger than the last-level cache are stored past it.
//
//   - Element-wise kernels, reductions, softmax and the normalizations are expressions of package expr, which the
//     machine of expr.h runs: chains of operations stay in registers, other operations pass over tiles in the
//     first-level cache. Softmax and normalizations of dense rows have loops of their own (rows.h).
//   - A product of up to 32 rows or columns reads the other matrix once, in the order of memory, if that has 16
//     bits or exceeds the second-level cache. Nothing is packed or widened before (few.h).
//   - A convolution copies its input into planes with zeros beside the image, and multiplies the filters with
//     rows of the planes. Filters of 1×1, and of 3×3 of a single channel, read the image itself.
//   - Filters of 3×3 and 5×5 with stride and dilation 1 go through Winograd's transforms if enough channels pay
//     for them and the image has no gaps. Results that are not finite are computed again by definition.
//   - Filters with dilation and a stride of 1 leave out the products in the padding, if these are many. The image
//     is copied to cells of dilation × dilation elements, whose elements meet the same elements of a filter. An
//     infinite or NaN element of a filter may or may not make the results NaN where it meets the padding.
//   - Filters longer than the output, as in gradients of filters, are multiplied with the planes as dot
//     products. With enough images to fill registers they are products of matrices, on copies that have the
//     images innermost.
//   - Distances read each vector once. Few queries go along the rows in memory order. Many queries are packed,
//     and tiles of vectors by queries stay in registers. A search keeps the best of each query in a heap per
//     thread.
//
// Which set runs is decided when the device is opened. Kernels that a set lacks are portable Go, as are all
// of them in a build without cgo. Before any of them runs, and before the reference, Family.Arguments checks
// the sizes, so that all refuse the same launches.
package cpu
