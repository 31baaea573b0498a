// Package validate repeats some of a program's launches elsewhere while the program runs, to see whether the device
// computes what it should: a driver with a mistake, memory that flips bits, a kernel that is wrong for sizes that no
// test had.
//
// # Basics
//
// [Start] checks the first launch of each kernel on each device of a session, and then one in [Options.Every], also
// launches that packages tensor, nn, quant and ann make, and those in graphs. A launch that is checked runs
// unchanged, between copies of the memory that it may read and store; a graph with such a launch is queued launch by
// launch. Later, on a goroutine of its own, a kernel of the catalog is repeated by its float64 reference and judged
// with the bound of the catalog, as package runtime/parity judges devices. Of a large result random rows are judged.
// Any other kernel is repeated on another device: its integers have to be equal, and its floating-point numbers
// nearly so, see [Options.Device]. That device is opened for the first such launch, and stays open until Close.
//
// A [Difference] names kernel, sizes, arguments and the first element that is wrong, and has a file with the program
// and all inputs, from which [Repeat], and concord run --repeat, launch the kernel once more.
//
//	session, err := runtime.New(runtime.Config{})
//	...
//	v, err := validate.Start(session, validate.Options{Dir: "differences"})
//	defer v.Close()
//
// With CONCORD_VALIDATE=1000 a program that imports this package validates every session, and logs differences.
//
// # Cost
//
// Launches are never waited for, and results never change. Checks use at most [Options.Share] of the time on one
// thread, but for the first tenth of a second. A launch that is due while the share is used up, while too many are
// waiting, or whose memory is larger than [Options.Bytes], runs unchecked: [Stats] counts each of these.
//
// # Caveats
//
// A kernel of the catalog without a known bound for all arguments (the nearest vectors, whose order depends on
// rounding) is not judged, and counted. A result that is out of the range of its type on the way, but not by its
// definition, is a difference. Kernels that are not of the catalog have to have the same results for the same inputs:
// those that store in an order that changes from launch to launch belong into [Options.Ignore].
//
// Some launches are too large to be judged, and counted in Stats.Large: those with more than two million operations
// of kernels whose results are not divided into rows (im2col, scatter_last, some programs of expressions), and those of
// which the smallest part has more: one element of a product, a panel of 16 columns of a product of quantized blocks,
// one filter's row of a convolution's result, one row of a softmax, norm, reduction or scan, one column of what
// segments and scatters store, one pair of runs that a sort merges. Some of a result belongs to no row: of a large
// convolution with few filters or with groups what has filters that lie on padding above or below, of a quantized
// product with few rows the columns behind the last whole panel, of one row that is sorted what lies behind the last
// whole block or pair of runs.
package validate
