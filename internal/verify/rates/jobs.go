package rates

// What is measured, in the order of its value, and how large it is.

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/concord-compute/concord/ann"
	"github.com/concord-compute/concord/quant"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/tensor"
)

// sizes of the work: on a large GPU most runs take from some dozens of microseconds to some milliseconds, and what
// memory limits does not fit its caches.
type sizes struct {
	few bool // kernels: the device's compiler takes longer than the work

	bytes, transfer int // of copies in the device, and between it and the host
	elements        int // of expressions, reductions and rows
	row             int // elements of a row
	gemm            int
	images, side    int // of convolutions
	heads, places   int
	vectors, dim    int
	queries         []int
	precisions      []ann.Precision
	mlp, cnn        training
	weights         [2]int // rows and columns of quantized matrices
}

// training is how many steps of so many examples a run has.
type training struct{ batch, steps int }

func sizesOf(dev *runtime.Device, quick bool) sizes {
	all := []ann.Precision{ann.FP32, ann.FP16, ann.INT8Scaled}
	s := sizes{bytes: 1 << 30, transfer: 256 << 20, elements: 1 << 27, row: 1 << 12, gemm: 4096, images: 64, side: 56,
		heads: 32, places: 2048, vectors: 1_000_000, dim: 128, queries: []int{1, 16, 1000}, precisions: all,
		mlp: training{128, 63}, cnn: training{128, 8}, weights: [2]int{32768, 8192}}
	if dev.Info().Simulated { // its compiler is the host's, and its processor slow
		return sizes{few: true, bytes: 1 << 20, transfer: 1 << 20, elements: 1 << 14, row: 1 << 8, gemm: 72,
			images: 1, side: 14, heads: 1, places: 32, vectors: 500, dim: 32, queries: []int{1}, precisions: all[:1],
			weights: [2]int{64, 256}}
	}
	if quick {
		s = sizes{bytes: 64 << 20, transfer: 32 << 20, elements: 1 << 21, row: 1 << 10, gemm: 256, images: 1, side: 28,
			heads: 2, places: 256, vectors: 20_000, dim: 64, queries: []int{1, 16, 100}, precisions: all,
			mlp: training{64, 4}, cnn: training{32, 1}, weights: [2]int{1024, 4096}}
		if dev.Info().Backend != "cpu" {
			s.few, s.precisions, s.mlp, s.cnn = true, all[:2], training{}, training{}
		}
	}
	return s
}

// jobs returns what is measured at those sizes.
func jobs(s sizes) (list []job) {
	for _, part := range []func(sizes) []job{copies, products, rows, nearest, networks, quantized, expressions, reductions,
		convolutions, attentions, launches, transfers} {
		list = append(list, part(s)...)
	}
	return list
}

func copies(s sizes) []job {
	n := s.bytes / 4
	return []job{{area: "memory", name: "copy " + size(s.bytes), unit: gigabytes, bytes: 8 * float64(n), roof: memoryRoof,
		call: "copy", args: map[string]any{"n": n},
		setUp: func(ctx context.Context, p *place) (*work, error) {
			b, err := p.buffers(ctx, runtime.F32, n, n)
			stream := p.dev.Stream()
			return &work{stream: stream, run: func(context.Context) error { return stream.Copy(b[0], b[1]) }}, err
		}}}
}

// size writes a number of bytes.
func size(bytes int) string {
	if bytes >= 1<<30 {
		return fmt.Sprintf("%d GiB", bytes>>30)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}

// expressions are of two arrays, with so many operations for an element.
func expressions(s sizes) (list []job) {
	shape := []int{s.elements}
	for _, e := range []struct {
		operations int
		f          func(x, y *tensor.Tensor) *tensor.Tensor
	}{
		{1, func(x, y *tensor.Tensor) *tensor.Tensor { return x.Add(y) }},
		{4, func(x, y *tensor.Tensor) *tensor.Tensor { return x.Mul(y).Add(x).Mul(0.5).Sub(y) }},
		{8, func(x, y *tensor.Tensor) *tensor.Tensor {
			return x.Mul(y).Add(x).Mul(0.5).Sub(y).Relu().Add(y).Mul(x).Sub(0.25)
		}},
	} {
		list = append(list, job{area: "expressions", unit: gigabytes,
			name:  fmt.Sprintf("expression of %d by %d", e.operations, s.elements),
			flops: float64(e.operations * s.elements), bytes: 12 * float64(s.elements),
			call: "expression", args: map[string]any{"n": s.elements, "operations": e.operations},
			setUp: compiled(tensor.F32, func(x []*tensor.Tensor) *tensor.Tensor { return e.f(x[0], x[1]) }, shape, shape)})
	}
	return list
}

func reductions(s sizes) (list []job) {
	shape := []int{s.elements / s.row, s.row}
	for _, r := range []struct {
		name string
		axes []int
	}{{"sum of all", nil}, {"sum of rows", []int{1}}, {"sum of columns", []int{0}}} {
		list = append(list, job{area: "reductions", unit: gigabytes,
			name:  fmt.Sprintf("%s %dx%d", r.name, shape[0], shape[1]),
			flops: float64(s.elements), bytes: 4 * float64(s.elements),
			call: "reduction", args: map[string]any{"rows": shape[0], "columns": shape[1], "axes": r.axes},
			setUp: compiled(tensor.F32, func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Sum(r.axes...) }, shape)})
	}
	return list
}

func rows(s sizes) []job {
	n, shape := float64(s.elements), []int{s.elements / s.row, s.row}
	args, by := map[string]any{"rows": shape[0], "columns": shape[1]}, fmt.Sprintf(" %dx%d", shape[0], shape[1])
	// Each comparison and each elementary function counts as one operation.
	return []job{
		{area: "rows", name: "softmax" + by, unit: gigabytes, flops: 5 * n, bytes: 8 * n, call: "softmax", args: args,
			setUp: compiled(tensor.F32, func(x []*tensor.Tensor) *tensor.Tensor { return x[0].Softmax(-1) }, shape)},
		{area: "rows", name: "layer norm" + by, unit: gigabytes, flops: 8 * n, bytes: 8 * n, call: "layer_norm", args: args,
			setUp: compiled(tensor.F32, func(x []*tensor.Tensor) *tensor.Tensor {
				return x[0].LayerNorm(x[1], x[2], 1e-5, -1)
			}, shape, shape[1:], shape[1:])},
	}
}

func convolutions(s sizes) (list []job) {
	const channels = 64
	for _, c := range []struct {
		name                         string
		filters, size, stride, group int
	}{{"3x3", 64, 3, 1, 1}, {"1x1", 256, 1, 1, 1}, {"3x3 stride 2", 128, 3, 2, 1}, {"depthwise 3x3", 64, 3, 1, channels}} {
		if s.few && c.size == 1 {
			continue
		}
		pad, out := c.size/2, (s.side-1)/c.stride+1
		image, filters := []int{s.images, channels, s.side, s.side}, []int{c.filters, channels / c.group, c.size, c.size}
		results := s.images * c.filters * out * out
		o := tensor.ConvOptions{Stride: []int{c.stride, c.stride}, Pad: [][2]int{{pad, pad}, {pad, pad}}, Groups: c.group}
		list = append(list, job{area: "convolutions", unit: gigaflops,
			name:  fmt.Sprintf("convolution %s of %dx%dx%dx%d", c.name, s.images, channels, s.side, s.side),
			flops: 2 * float64(results*product(filters[1:])), bytes: 4 * float64(product(image)+product(filters)+results),
			call: "convolution", args: map[string]any{"image": image, "filters": filters, "stride": c.stride, "pad": pad,
				"groups": c.group},
			setUp: compiled(tensor.F32, func(x []*tensor.Tensor) *tensor.Tensor {
				return tensor.Conv(x[0], x[1], nil, o)
			}, image, filters)})
	}
	return list
}

func attentions(s sizes) (list []job) {
	const width = 64
	shape := []int{1, s.heads, s.places, width}
	for _, a := range []struct {
		name   string
		typ    tensor.Type
		causal bool
	}{{"f32", tensor.F32, false}, {"f32 causal", tensor.F32, true}, {"f16", tensor.F16, false}} {
		if s.few && (a.causal || a.typ != tensor.F32) {
			continue
		}
		pairs, bytes, roof := float64(s.heads)*float64(s.places)*float64(s.places), 16.0, fullRoof
		if a.causal {
			pairs = float64(s.heads) * float64(s.places) * float64(s.places+1) / 2
		}
		if a.typ == tensor.F16 {
			bytes, roof = 8, noRoof
		}
		list = append(list, job{area: "attention", unit: gigaflops,
			name:  fmt.Sprintf("attention %s %dx%dx%d", a.name, s.heads, s.places, width),
			flops: 4 * width * pairs, bytes: bytes * float64(product(shape)), roof: roof,
			call: "attention", args: map[string]any{"shape": shape, "causal": a.causal, "type": a.typ.String()},
			setUp: compiled(a.typ, func(x []*tensor.Tensor) *tensor.Tensor {
				return tensor.Attention(x[0], x[1], x[2], tensor.AttentionOptions{Causal: a.causal})
			}, shape, shape, shape)})
	}
	return list
}

// quantized are products of one row of activations, whose time is that of reading the weights.
func quantized(s sizes) (list []job) {
	rows, columns := s.weights[0], s.weights[1]
	weights := float64(rows) * float64(columns)
	for _, q := range []struct {
		name   string
		format quant.Format
		bits   float64 // that are read for a weight
	}{{"W2A8", quant.TQ20, 2}, {"Q4_0", quant.Q40, 4.5}} {
		list = append(list, job{area: "quantized", name: fmt.Sprintf("%s %dx%d by a vector", q.name, rows, columns),
			unit: gigaflops, flops: 2 * weights, bytes: weights * q.bits / 8, roof: memoryRoof,
			call: "vector", args: map[string]any{"rows": rows, "columns": columns},
			setUp: func(ctx context.Context, p *place) (*work, error) {
				m, err := weightsOf(q.format, rows, columns)
				if err != nil {
					return nil, err
				}
				w, err := quant.Prepare(ctx, p.dev, m)
				if err != nil {
					return nil, err
				}
				p.keep(w)
				b, err := p.buffers(ctx, runtime.F32, rows, columns)
				return &work{stream: p.dev.Stream(), run: func(context.Context) error { return w.Mul(b[0], b[1], 1) }}, err
			}})
	}
	return list
}

// weightsOf returns a matrix of random ternary numbers, or of any for blocks. Rows that are encoded once are repeated.
func weightsOf(format quant.Format, rows, columns int) (quant.Matrix, error) {
	const once = 64
	some := min(rows, once)
	x := make([]float32, some*columns)
	for i := range x {
		x[i] = float32(rand.IntN(3)-1) / 16
		if format == quant.Q40 {
			x[i] = rand.Float32() - 0.5
		}
	}
	part, err := quant.Pack(quant.Layout{Format: format, Rows: some, Cols: columns}, x)
	if err != nil {
		return part, err
	}
	m, err := quant.New(quant.Layout{Format: format, Rows: rows, Cols: part.Cols})
	m.K = columns
	for at := 0; at < len(m.Data); at += len(part.Data) {
		copy(m.Data[at:], part.Data)
	}
	return m, err
}
