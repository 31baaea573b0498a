// Package expr computes expressions element by element: one definition for every device, which on the CPU needs no
// compiler.
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
// The program has one kernel, [Kernel]. It takes the inputs, the outputs, the parameters, and as the last argument the
// positions of the elements: a ulong, the number of elements, where all operands are dense ([Map.Unit] with rank 0),
// or the bytes of a [Layout].
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
//   - a block program, which cpu:0 runs tile by tile in vector instructions or in Go: [Map.Block];
//   - a float64 evaluation with a bound of the error that a device may make: [Map.Eval], which cpu:reference runs;
//   - its gradient, as expressions: [Gradient];
//   - its amount of work: [Map.Work].
//
// Sums and other reductions are kernels of the catalog, the family reduce; an expression has none yet.
//
// # Arithmetic
//
// Every operation is rounded once to the type of its result. float and double operations follow IEEE 754, or,
// where it has no rule, OpenCL's limits of errors; only [FMA] fuses a product and a sum. Integers wrap
// modulo 2^bits. half and bfloat16 are types of elements: their values are floats, rounded once when they are stored.
// Devices may flush denormals to zero.
package expr
