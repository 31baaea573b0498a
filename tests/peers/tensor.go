package main

// Compiled functions of package tensor, compared with the same functions in PyTorch. A call of ours ends when
// its results are in memory, and so does PyTorch's. PyTorch has the best of several ways to write a function:
// with its results in memory that is there, with another loop of the optimizer. Images with channels last are
// rows of their own.

import (
	"fmt"

	"github.com/concord-compute/concord/tensor"
)

// tensorRow is a function of tensors beside calls of peers.py.
type tensorRow struct {
	what  string
	work  float64
	unit  string
	f     func(a ...*tensor.Tensor) []*tensor.Tensor
	args  [][]int // shapes of its arguments
	feed  int     // how many results are the first arguments of the next call
	calls []string
	with  map[string]any
	last  []string // calls with data in another order, channels last, which are a row of their own
	blas  bool     // PyTorch's BLAS takes part
}

// of returns a function of one result.
func of(f func(a []*tensor.Tensor) *tensor.Tensor) func(a ...*tensor.Tensor) []*tensor.Tensor {
	return func(a ...*tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{f(a)} }
}

// tensorConvs are the convolutions whose gradients are measured.
var tensorConvs = []convSize{
	{8, 64, 56, 64, 3, 1, 1, 1, 1},
	{8, 64, 56, 64, 1, 1, 0, 1, 1},
	{8, 64, 56, 64, 3, 2, 1, 1, 1},
	{8, 64, 56, 64, 3, 1, 1, 1, 64},
}

func tensorRows() []tensorRow {
	const rows, cols, side = 4096, 1024, 4096
	flat := [][]int{{rows, cols}}
	size := map[string]any{"rows": rows, "cols": cols}
	list := []tensorRow{
		{what: "softmax 4096×1024", work: 8 * rows * cols, unit: gbps, args: flat,
			calls: []string{"softmax", "softmax_allocating"}, with: size,
			f: of(func(a []*tensor.Tensor) *tensor.Tensor { return a[0].Softmax(-1) })},
		{what: "layer norm 4096×1024", work: 8 * rows * cols, unit: gbps, args: [][]int{{rows, cols}, {cols}, {cols}},
			calls: []string{"layer_norm"}, with: size,
			f: of(func(a []*tensor.Tensor) *tensor.Tensor { return a[0].LayerNorm(a[1], a[2], 1e-5) })},
		{what: "gelu 4096×1024", work: 8 * rows * cols, unit: gbps, args: flat, calls: []string{"gelu"}, with: size,
			f: of(func(a []*tensor.Tensor) *tensor.Tensor { return a[0].GELU() })},
		{what: "gelu by tanh 4096×1024", work: 8 * rows * cols, unit: gbps, args: flat, calls: []string{"gelu_tanh"},
			with: size,
			f:    of(func(a []*tensor.Tensor) *tensor.Tensor { return a[0].GELUTanh() })},
	}
	for _, s := range []struct {
		what, call string
		axes       []int
	}{{"sum", "sum_all", nil}, {"sum of rows", "sum_rows", []int{1}}, {"sum of columns", "sum_columns", []int{0}}} {
		list = append(list, tensorRow{what: s.what + " 4096×4096", work: 4 * side * side, unit: gbps,
			args: [][]int{{side, side}}, calls: []string{s.call},
			with: map[string]any{"rows": side, "cols": side}, f: of(func(a []*tensor.Tensor) *tensor.Tensor {
				return a[0].Sum(s.axes...)
			})})
	}
	product := func(a []*tensor.Tensor) *tensor.Tensor { return a[0].MatMul(a[1]) }
	list = append(list,
		tensorRow{what: "32 products 256×256×256", work: 32 * 2 * 256 * 256 * 256, unit: gflops,
			args: [][]int{{32, 256, 256}, {32, 256, 256}}, calls: []string{"products"},
			with: map[string]any{"n": 32, "side": 256}, blas: true, f: of(product)},
		tensorRow{what: "512×1024×4096, bias, gelu", work: 2 * 512 * 1024 * 4096, unit: gflops,
			args: [][]int{{512, 1024}, {1024, 4096}, {4096}}, calls: []string{"linear_gelu", "linear_gelu_mkldnn"},
			with: map[string]any{"rows": 512, "cols": 4096, "depth": 1024}, blas: true,
			f: of(func(a []*tensor.Tensor) *tensor.Tensor { return product(a).Add(a[2]).GELU() })},
	)
	for i := range tensorConvs {
		list = append(list, tensorConvs[i].tensorRow(false))
	}
	list = append(list, tensorConvs[1].lastRow())
	for i := range tensorConvs {
		list = append(list, tensorConvs[i].tensorRow(true))
	}
	for _, causal := range []bool{false, true} {
		const heads, places, width = 8, 4096, 64
		what, work := "attention 8×4096×64", float64(4*heads*places*places*width)
		if causal {
			what, work = what+", causal", work/2
		}
		shape := []int{heads, places, width}
		list = append(list, tensorRow{what: what, work: work, unit: gflops, args: [][]int{shape, shape, shape}, blas: true,
			calls: []string{"attention", "attention_kept", "attention_library"}, with: map[string]any{
				"heads": heads, "places": places, "width": width, "causal": causal},
			f: of(func(a []*tensor.Tensor) *tensor.Tensor {
				return tensor.Attention(a[0], a[1], a[2], tensor.AttentionOptions{Causal: causal})
			})})
	}
	return append(list, trainingRow())
}

// tensorRow returns the row for a convolution, or that for its gradients.
func (s *convSize) tensorRow(gradients bool) tensorRow {
	o := tensor.ConvOptions{Stride: []int{s.stride, s.stride}, Pad: [][2]int{{s.pad, s.pad}, {s.pad, s.pad}},
		Dilation: []int{s.dilation, s.dilation}, Groups: s.groups}
	out := (s.side+2*s.pad-s.dilation*(s.filter-1)-1)/s.stride + 1
	weights := s.k * s.c / s.groups * s.filter * s.filter
	r := tensorRow{what: s.String(), work: 2 * float64(s.n*weights*out*out), unit: gflops,
		args:  [][]int{{s.n, s.c, s.side, s.side}, {s.k, s.c / s.groups, s.filter, s.filter}},
		calls: []string{"conv2d"}, last: []string{"conv2d_last"}, with: map[string]any{"n": s.n, "c": s.c, "h": s.side,
			"w": s.side, "out": s.k, "kernel": s.filter,
			"stride": s.stride, "pad": s.pad, "dilation": s.dilation, "groups": s.groups},
		f: of(func(a []*tensor.Tensor) *tensor.Tensor { return tensor.Conv(a[0], a[1], nil, o) })}
	if gradients {
		r.what, r.work, r.calls, r.last = "gradients of "+r.what, 2*r.work, []string{"conv2d_gradients"},
			[]string{"conv2d_gradients_last"}
		r.args = append(r.args, []int{s.n, s.k, out, out})
		r.f = func(a ...*tensor.Tensor) []*tensor.Tensor {
			return tensor.GradOf([]*tensor.Tensor{tensor.Conv(a[0], a[1], nil, o)}, a[2:], a[0], a[1])
		}
	}
	return r
}

// lastRow returns the row for a convolution of images with channels last, which are permuted on both sides.
func (s *convSize) lastRow() tensorRow {
	r := s.tensorRow(false)
	f := r.f
	r.what, r.calls, r.last, r.args[0] = r.what+", channels last", r.last, nil, []int{s.n, s.side, s.side, s.c}
	r.f = func(a ...*tensor.Tensor) []*tensor.Tensor {
		return []*tensor.Tensor{f(a[0].Permute(0, 3, 1, 2), a[1])[0].Permute(0, 2, 3, 1)}
	}
	return r
}

// trainingRow is one step of training a network of three layers by Adam.
func trainingRow() tensorRow {
	const batch = 128
	sizes := []int{784, 512, 256, 10}
	r := tensorRow{what: "training 784-512-256-10", unit: gflops, feed: 18, calls: []string{"training", "training_each"},
		with: map[string]any{"sizes": sizes, "batch": batch}, blas: true}
	for i := range 3 {
		r.args = append(r.args, []int{sizes[i], sizes[i+1]}, []int{sizes[i+1]})
		r.work += 3 * 2 * batch * float64(sizes[i]*sizes[i+1])
	}
	r.args = append(append(r.args, r.args...), r.args...)
	r.args = append(r.args, []int{batch, 784}, []int{batch, 10})
	r.f = func(a ...*tensor.Tensor) []*tensor.Tensor {
		p, m, v := a[:6], a[6:12], a[12:18]
		h := a[18]
		for i := range 3 {
			h = h.MatMul(p[2*i]).Add(p[2*i+1])
			if i < 2 {
				h = h.Relu()
			}
		}
		loss := h.LogSoftmax(-1).Mul(a[19]).Sum().Div(-batch)
		var next, means, squares []*tensor.Tensor
		for i, g := range tensor.Grad(loss, p...) {
			m, v := m[i].Mul(0.9).Add(g.Mul(0.1)), v[i].Mul(0.999).Add(g.Square().Mul(0.001))
			next, means, squares = append(next, p[i].Sub(m.Mul(0.001).Div(v.Sqrt().Add(1e-8)))), append(means, m),
				append(squares, v)
		}
		return append(append(append(next, means...), squares...), loss)
	}
	return r
}

func (b *bench) tensors() error {
	for _, r := range tensorRows() {
		if !b.wanted(r.what) {
			continue
		}
		if err := b.tensor(&r); err != nil {
			return fmt.Errorf("%s: %w", r.what, err)
		}
	}
	return nil
}

func (b *bench) tensor(r *tensorRow) error {
	s := tensor.NewScope(b.whole)
	defer s.Close()
	args := make([]*tensor.Tensor, len(r.args))
	for i, shape := range r.args {
		args[i] = tensor.Uniform(s, tensor.F32, uint64(i), -0.1, 0.1, shape...)
	}
	if err := tensor.Eval(b.ctx, args...); err != nil {
		return err
	}
	library := "torch"
	if r.blas {
		library = "torch and BLAS"
	}
	f := tensor.Compile(s, r.f)
	row := subject{what: r.what, work: r.work, unit: r.unit, name: "tensor", run: func() error {
		out, err := f.Call(b.ctx, args...)
		if err == nil {
			copy(args[:r.feed], out)
			err = out[0].Sync(b.ctx)
		}
		return err
	}}
	for i, calls := range [][]string{r.calls, r.last} {
		if len(calls) == 0 {
			continue
		}
		peer, err := b.peer(library, r.with, calls...)
		if err != nil {
			return err
		}
		if i > 0 {
			peer.name += ", data in another order, channels last"
		}
		if err := b.compare(row, peer); err != nil {
			return err
		}
	}
	return nil
}
