// Package expr computes expressions element by element, and reductions of them: one definition for every device,
// which on the CPU needs no compiler.
//
// # Basics
//
// An [Expr] is made of inputs, parameters and numbers by its methods. [New] makes a [Map] of one expression or
// several, one for each output:
//
//	v := expr.Input(0, expr.F32)
//	y := v.Mul(expr.Float(expr.F32, 1.5)).Add(expr.Float(expr.F32, 0.25)).Tanh()
//	m, err := expr.New(y)
//	unit, err := m.Unit(dev.Features(), 0)
//
// The program has one kernel, [Kernel]. It takes the inputs, the outputs, the parameters, and last the
// positions of the elements. These are the number of elements, a ulong, where all operands are dense
// ([Map.Unit] with rank 0), and otherwise the bytes of a [Layout].
//
//	stream.Launch(k, runtime.Items(n), in, out, uint64(n))
//
// [Layout.Argument] gives the last argument for a layout. The grid has at least as many items in its first dimension
// as there are elements. An output may be the same memory as an input if both have the same First and Steps and
// elements of one size; any other overlap of an output with another operand gives undefined results.
//
// # Evaluators
//
// The same definition gives
//
//   - OpenCL C, which every device compiles: [Map.Text];
//   - a block program, which cpu:0 runs tile by tile in vector instructions or in Go: [Map.Block], or several:
//     [Map.Steps];
//   - a float64 evaluation with a bound of the error that a device may make: [Map.Eval], which cpu:reference runs;
//   - its gradient, as expressions: [Gradient];
//   - its amount of work: [Map.Work].
//
// # Reductions
//
// [Sum], [Product], [Smallest], [Largest], [All], [Any], [ArgLargest] and [ArgSmallest] reduce the last dimension of a
// launch, a row, to one value, which every element of the row may use, also in other reductions. So a softmax is one
// map of three passes over each row, of which those after the first find the row in the caches:
//
//	e := v.Sub(v.Largest()).Exp()
//	m, err := expr.New(e.Div(e.Sum()))
//	rows := expr.Rows(1000, 64)
//	l, err := m.Layout(expr.Layout{Dims: []int{1000, 64}, Operands: []expr.Operand{rows, rows}}) // of in and out
//	unit, err := m.Unit(dev.Features(), l.Rank())
//	program, err := dev.Program(ctx, unit)
//	name, size := m.Entry(&l)
//	k, err := program.Kernel(name)
//	items, group, err := kernels.Geometry(unit, name, size)
//	err = stream.Launch(k, runtime.Grid{Items: items, Group: group}, in, out, l.Argument())
//
// [Softmax], [Normalize] and [RMSNormalize] are named operations: an expression of other operations defines each. The
// canonical form has them by name, where [Map.Match] finds them for devices with a loop of their own; all evaluators
// see what defines them, so that none needs a case for them. [Expr.Named] gives an expression that was put together
// its name.
//
// An output whose value is the same for a whole row is stored once for each row, and must not overlap an input.
// A program with reductions has no rank 0, and [Map.Entry] gives the entry point for a launch. Other dimensions
// than the last one are reduced by a layout that has them last.
//
// Sums are added up in an order that depends on the layout and the device, but neither on the number of threads
// nor on the run. Smallest and Largest are NaN if an element is, and of zeros of both signs either may be the
// result.
//
// # Kernels of the catalog
//
// The families saxpy, arith, fill, copy, cast, activation, reduce, softmax and norm of the catalog are expressions with
// names: their kernels are launched like any other of the catalog (see package kernels), and a device runs them as it
// runs maps. [DefinedOf] returns the map of such a kernel.
//
// # Arithmetic
//
// Every operation is rounded once to the type of its result. float and double operations follow IEEE 754, or,
// where it has no rule, OpenCL's limits of errors; only [FMA] fuses a product and a sum. Integers wrap
// modulo 2^bits. half and bfloat16 are types of elements: their values are floats, rounded once when they are stored.
// Devices may flush denormals to zero.
package expr
