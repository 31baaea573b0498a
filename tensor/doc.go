// Package tensor has arrays of numbers with up to eight dimensions, on any device, that compute themselves with as few
// kernels as possible and have gradients.
//
// # Basics
//
// Operations describe; [Eval] and [Read] compute:
//
//	dev, err := runtime.Open(ctx, "auto")
//	s := tensor.NewScope(dev)
//	defer s.Close()
//	x := tensor.From(s, xs, 32, 784)
//	w := tensor.From(s, ws, 784, 10)
//	p := x.MatMul(w).Add(b).Softmax(-1)
//	loss := p.Log().Mul(labels).Sum().Div(-32)
//	g := tensor.Grad(loss, w, b)
//	err = tensor.Eval(ctx, loss, g[0], g[1])
//	numbers, err := tensor.Read[float32](ctx, g[0])
//
// Shapes stretch and types are promoted as NumPy does (see [Promote]). A mistake, such as shapes that do not fit, is
// kept in the result, with the place in the program, and passes to all that is made of it. So only the errors of Eval
// and Read have to be looked at.
//
// # Operations
//
// There are element-wise functions, comparisons and choices. Sums, products, extremes and their places, means,
// variances and norms are over any axes. There are products of matrices and [Einsum], convolutions, pooling,
// normalization and [Attention]. Besides views there are [Concat], [Stack], Pad, Tile, Roll and triangles. Elements are
// taken, added and stored by index, in a fixed order. There are running sums, sorting and the largest elements, and
// random numbers that are the same on every device. [Tensor.MatMulTernary] multiplies by weights of 2 bits. [Apply]
// makes an operation of an expression, and [Launch] of a kernel. Tensors are read from and written to files of NumPy
// and of safetensors, and read from files of GGUF, whose quantized numbers are decoded when they are needed
// ([LoadGGUF]).
//
// # What is computed
//
// Eval takes the operations from the tensors that were asked for down to data, and puts them into kernels:
//
//   - Element-wise operations are computed together, also with the reductions of rows that they contain or are
//     contained in: a softmax is one kernel, and so is a layer normalization.
//   - Views (Permute, Slice, Reshape, Expand, Flip and those made of them) are places that a kernel reads. They
//     copy nothing.
//   - What several kernels need is stored, or computed again in each where that moves fewer bytes. A kernel
//     stores several results that one loop computes.
//   - The parts of a Concat or Pad are computed into their places.
//   - Products of matrices read transposed and sliced matrices in place. On the CPU they add a bias for each
//     column and apply an activation.
//   - A tensor that is stored and reduced is both by one kernel. What only one kernel reads is not stored.
//     Small loops of one length are one kernel.
//   - What a compiled function computes of constants alone, and is small, is computed once for all calls, as is
//     all that it takes from around it.
//   - Numbers of Go are arguments of kernels, but for small ones, so that another learning rate needs no other program.
//
// Memory between kernels comes from the device's pool and is freed after its last reader, in the order of the
// stream. With CONCORD_FUSION=0 every operation is a kernel of its own. A compiled function may store results
// in the memory of arguments ([Func.CallDonating]).
//
// # Groups
//
// A scope may belong to a member of a group of devices ([NewMemberScope]). All members run the same program, each with
// its part of the data, and exchange what they have by [Tensor.AllReduce], [Tensor.AllGather], [Tensor.ReduceScatter]
// and [Tensor.Broadcast]:
//
//	err = g.Do(ctx, func(ctx context.Context, m *cluster.Member) error {
//		s := tensor.NewMemberScope(m)
//		defer s.Close()
//		x := tensor.From(s, own, 32, 784) // of 32·s.Size() rows
//		sums := x.Sum(0).AllReduce(cluster.Sum)
//		return tensor.Eval(ctx, sums)
//	})
//
// Collectives are steps of plans, also of compiled functions, and have gradients. They start as soon as their operand
// is computed, and run beside what does not need their result. Without a group they change nothing, so that one
// program serves one device and many.
//
// # Devices that fail
//
// A scope on a [cluster.Runner] ([NewRunnerScope]) goes on where its device fails or is lost: there or on another
// device it computes again what is needed, from data of the host.
//
// # Ownership
//
// A tensor belongs to a [Scope] and ends with it, but for what is kept ([Tensor.Keep]). A loop makes a scope
// for each step:
//
//	for range steps {
//		step := s.Scope()
//		next := update(tensor.From(step, batch, 32, 784), w)
//		w, err = next.Keep(ctx) // computes it, and moves it to s
//		step.Close()
//	}
//
// Operations that only describe can be called from any goroutine. Eval, Read and Close of scopes of one device
// come one at a time.
package tensor
