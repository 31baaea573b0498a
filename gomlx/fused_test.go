package gomlx_test

// Random uses of fused operations on Concord, beside GoMLX's own versions, which are composed of other operations, on
// its Go backend.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/layers/attention"
	"github.com/gomlx/gomlx/ml/nn"

	"github.com/concord-compute/concord/gomlx"
)

// use is a use of a fused operation: numbers as inputs, the operation, and GoMLX's own version of it.
type use struct {
	what         string
	inputs       []*tensors.Tensor
	dtype        dtypes.DType // of the floating-point inputs, once they are on a device
	fused        func(x []*Node) []*Node
	plain        func(x []*Node) []*Node
	mayBeMissing bool // since GoMLX itself reads its operands in two ways
}

// dice draw uses.
type dice struct{ *rand.Rand }

func (r dice) length() int { return 1 + r.IntN(4) }

func (r dice) floats(dims ...int) *tensors.Tensor {
	x := make([]float32, shapes.Make(dtypes.Float32, dims...).Size())
	for i := range x {
		x[i] = float32(r.IntN(33)-16) / 8 // every type has them
	}
	return tensors.FromFlatDataAndDimensions(x, dims...)
}

// stretched returns dimensions, some of which are 1 instead.
func (r dice) stretched(dims ...int) []int {
	for i := range dims {
		if r.IntN(3) == 0 {
			dims[i] = 1
		}
	}
	return dims
}

func (r dice) truths(dims ...int) *tensors.Tensor {
	x := make([]bool, shapes.Make(dtypes.Bool, dims...).Size())
	for i := range x {
		x[i] = r.IntN(3) > 0
	}
	return tensors.FromFlatDataAndDimensions(x, dims...)
}

func (r dice) integers(limit, n int) *tensors.Tensor {
	x := make([]int32, n)
	for i := range x {
		x[i] = r.Int32N(int32(limit) + 1)
	}
	return tensors.FromFlatDataAndDimensions(x, n)
}

// attention draws an attention: its layout, shared heads, and a mask of two to four dimensions, a bias or lengths.
func (r dice) attention() use {
	layout := compute.AttentionAxesLayout(r.IntN(2))
	batch, shared, group, queries, keys, width := r.length(), r.length(), r.length(), r.length(), r.length(), r.length()
	dims := func(heads, n, width int) []int {
		if layout == attention.LayoutBSHD {
			return []int{batch, n, heads, width}
		}
		return []int{batch, heads, n, width}
	}
	of := r.length() // values may have a width of their own
	operands := func() []*tensors.Tensor {
		return []*tensors.Tensor{r.floats(dims(shared*group, queries, width)...), r.floats(dims(shared, keys, width)...),
			r.floats(dims(shared, keys, of)...)}
	}
	u := use{inputs: operands()}
	config, options := compute.ScaledDotProductAttentionConfig{}, attention.CoreOptions{DisableFusion: true}
	if r.IntN(2) == 0 {
		config.Scale = 0.25
		options.Scale = 0.25
	}
	mask, bias, lengths := -1, -1, -1
	add := func(t *tensors.Tensor) int {
		u.inputs = append(u.inputs, t)
		return len(u.inputs) - 1
	}
	draw := r.floats
	if r.IntN(2) == 0 {
		draw = r.truths
	}
	wide := func(x *Node) *Node { return x } // gives a mask the dimensions that GoMLX's version wants
	kind := r.IntN(7)
	switch kind {
	case 0:
	case 1:
		queries = keys
		u.inputs = operands()
		config.Causal, options.UseCausalMask = true, true
	case 2, 3:
		mask = add(draw(r.stretched(dims(shared*group, queries, keys)...)...))
	case 4:
		d := r.stretched(batch, queries, keys)[r.IntN(2):]
		mask = add(draw(d...))
		wide = func(x *Node) *Node {
			d := d
			if len(d) == 2 {
				d = append([]int{1}, d...)
			}
			if layout == attention.LayoutBSHD {
				return Reshape(x, d[0], d[1], 1, d[2])
			}
			return Reshape(x, d[0], 1, d[1], d[2])
		}
		u.mayBeMissing = true
	case 5:
		// GoMLX's version takes a bias for shared heads only if it is as large as the heads of the queries.
		heads := shared * group
		if group == 1 && r.IntN(2) == 0 {
			heads = 1
		}
		bias = add(r.floats(batch, heads, queries, keys))
	case 6:
		layout = attention.LayoutBSHD
		u.inputs = operands()
		lengths = add(r.integers(queries, batch))
		add(r.integers(keys, batch))
	}
	u.what = fmt.Sprintf("attention %s of kind %d", layout, kind)
	u.fused = func(x []*Node) []*Node {
		c := config
		value := func(i int) compute.Value { return InternalBackendOutputs(x[i])[0] }
		if mask >= 0 {
			c.Mask = value(mask)
		}
		if bias >= 0 {
			c.Bias = value(bias)
		}
		if lengths >= 0 {
			c.QuerySeqLen, c.KeyValueSeqLen = value(lengths), value(lengths+1)
		}
		y, _ := BackendFusedScaledDotProductAttention(x[0], x[1], x[2], layout, &c)
		return []*Node{y}
	}
	u.plain = func(x []*Node) []*Node {
		o := options
		if mask >= 0 {
			o.AttentionMask = wide(x[mask])
		}
		if bias >= 0 {
			o.AttentionBias = x[bias]
		}
		if lengths >= 0 {
			o.QuerySeqLen, o.KVSeqLen = x[lengths], x[lengths+1]
		}
		y, _ := attention.Core(x[0], x[1], x[2], layout, o)
		return []*Node{y}
	}
	return u
}

// projection draws a projection to queries, keys and values, of an operand of two to four dimensions.
func (r dice) projection() use {
	dims := []int{r.length(), r.length(), r.length(), r.length()}[r.IntN(3):]
	q, kv := r.length(), r.length()
	u := use{what: "projection"}
	u.inputs = []*tensors.Tensor{r.floats(dims...), r.floats(dims[len(dims)-1], q+2*kv)}
	var at [3]int
	for i, n := range []int{q, kv, kv} {
		if r.IntN(2) == 0 {
			at[i] = len(u.inputs)
			u.inputs = append(u.inputs, r.floats(n))
		}
	}
	bias := func(x []*Node, i int) *Node {
		if at[i] == 0 {
			return nil
		}
		return x[at[i]]
	}
	u.fused = func(x []*Node) []*Node {
		a, b, c := BackendFusedAttentionQKVProjection(x[0], x[1], bias(x, 0), bias(x, 1), bias(x, 2), q, kv)
		return []*Node{a, b, c}
	}
	u.plain = func(x []*Node) []*Node {
		return attention.QKVProjectionDecomposed(x[0], x[1], bias(x, 0), bias(x, 1), bias(x, 2), q, kv)
	}
	return u
}

// dense draws a product with weights of two or three dimensions, in both layouts.
func (r dice) dense() use {
	in, out := r.length(), []int{r.length(), r.length()}[r.IntN(2):]
	layout := compute.DenseLayout(r.IntN(2))
	w := append([]int{in}, out...)
	if layout == compute.DenseLayoutOutputsInput {
		w = append(slices.Clone(out), in)
	}
	u := use{what: fmt.Sprintf("dense %s", layout)}
	dims := append([]int{r.length(), r.length(), r.length()}[r.IntN(3):], in)
	u.inputs = []*tensors.Tensor{r.floats(dims...), r.floats(w...)}
	if r.IntN(2) == 0 {
		u.inputs = append(u.inputs, r.floats(r.stretched(out...)[r.IntN(len(out)):]...))
	}
	// The types whose function ToBackend names: GeluApprox and those that it does not know become others there.
	a := []activation.Type{activation.TypeNone, activation.TypeGelu, activation.TypeRelu, activation.TypeSilu,
		activation.TypeHardSwish, activation.TypeTanh}[r.IntN(6)]
	bias := func(x []*Node) *Node {
		if len(x) < 3 {
			return nil
		}
		return x[2]
	}
	u.fused = func(x []*Node) []*Node {
		config := compute.DenseConfig{Activation: a.ToBackend(), WeightLayout: layout}
		return []*Node{BackendFusedDense(x[0], x[1], bias(x), config)}
	}
	u.plain = func(x []*Node) []*Node { return []*Node{nn.Dense(x[0], x[1], bias(x), layout, a)} }
	return u
}

// norm draws a layer normalization over one axis or two, with factors of lower rank or such that stretch.
func (r dice) norm() use {
	dims := []int{2 + r.length(), 2 + r.length(), 2 + r.length()}
	axes := [][]int{{2}, {-1}, {1}, {0}, {1, 2}, {0, 1}, {2, 0}, {0, 1, 2}}[r.IntN(8)]
	u := use{what: fmt.Sprintf("normalization over %v", axes), mayBeMissing: true}
	u.inputs = []*tensors.Tensor{r.floats(dims...)}
	var at [2]int
	for i := range at {
		if r.IntN(3) > 0 {
			at[i] = len(u.inputs)
			u.inputs = append(u.inputs, r.floats(r.stretched(slices.Clone(dims)...)[r.IntN(3):]...))
		}
	}
	factor := func(x []*Node, i int) *Node {
		if at[i] == 0 {
			return nil
		}
		return x[at[i]]
	}
	u.fused = func(x []*Node) []*Node {
		return []*Node{BackendFusedLayerNorm(x[0], axes, 1e-3, factor(x, 0), factor(x, 1))}
	}
	u.plain = func(x []*Node) []*Node {
		return []*Node{nn.LayerNorm(x[0], axes, 1e-3, factor(x, 0), factor(x, 1), nil)}
	}
	return u
}

// others draws a softmax and a GELU.
func (r dice) others() use {
	dims := []int{r.length(), r.length(), r.length()}[r.IntN(3):]
	axis := r.IntN(len(dims))
	return use{what: "softmax and GELU", inputs: []*tensors.Tensor{r.floats(dims...)},
		fused: func(x []*Node) []*Node {
			return []*Node{BackendFusedSoftmax(x[0], axis), BackendFusedGelu(x[0], true), BackendFusedGelu(x[0], false)}
		},
		plain: func(x []*Node) []*Node {
			return []*Node{Softmax(x[0], axis), activation.Gelu(x[0]), activation.GeluApproximate(x[0])}
		},
	}
}

// as returns a graph of inputs as floating-point numbers of a type, whose results are those of a wider one.
func as(dtype dtypes.DType, f func(x []*Node) []*Node) func(x []*Node) []*Node {
	return func(x []*Node) []*Node {
		var in []*Node
		for _, n := range x {
			if n.DType().IsFloat() {
				n = ConvertDType(n, dtype)
			}
			in = append(in, n)
		}
		var out []*Node
		for _, n := range f(in) {
			out = append(out, ConvertDType(n, dtypes.Float64))
		}
		return out
	}
}

func TestFusedOperations(t *testing.T) {
	t.Setenv(FusionEnv, "false") // for GoMLX's own versions; the fused ones are called by name
	plain, err := compute.NewWithConfig("go")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Finalize()
	onDevices(t, func(t *testing.T, b *gomlx.Backend) {
		n := 300
		if !strings.Contains(t.Name(), "cpu") {
			n = 15 // since each compiles programs
		}
		r := dice{rand.New(rand.NewPCG(5, 6))}
		draws := []func() use{r.attention, r.attention, r.projection, r.dense, r.norm, r.others}
		missing, sure := 0, 0
		for i := range n {
			u := draws[i%len(draws)]()
			dtype := []dtypes.DType{dtypes.Float32, dtypes.Float64, dtypes.Float16, dtypes.BFloat16}[r.IntN(4)]
			precise, tolerance := dtypes.Float64, map[dtypes.DType]float64{dtypes.Float32: 1e-4, dtypes.Float64: 1e-10,
				dtypes.Float16: 1e-2, dtypes.BFloat16: 6e-2}[dtype]
			what := fmt.Sprintf("use %d, %s of %s", i, u.what, dtype)
			var inputs []any
			for _, x := range u.inputs {
				what += " " + x.Shape().String()
				inputs = append(inputs, x.Value())
			}
			want, err := MustNewExec(plain, as(precise, u.plain)).Call(inputs...)
			if err != nil {
				if u.what[0] == 'n' {
					continue // GoMLX's own version has no such factor
				}
				t.Fatalf("%s: GoMLX: %v", what, err)
			}
			sure++
			exec, err := NewExec(b, as(dtype, u.fused))
			if err != nil {
				t.Fatalf("%s: %+v", what, err)
			}
			got, err := exec.Call(inputs...)
			if u.mayBeMissing && compute.IsNotImplemented(err) {
				missing++
				continue
			}
			if err != nil {
				t.Fatalf("%s: %+v", what, err)
			}
			for j := range want {
				if !slices.Equal(want[j].Shape().Dimensions, got[j].Shape().Dimensions) {
					t.Fatalf("%s: result %d is of shape %s, not %s", what, j, got[j].Shape(), want[j].Shape())
				}
				expected := tensors.MustCopyFlatData[float64](want[j])
				for k, v := range tensors.MustCopyFlatData[float64](got[j]) {
					if !(math.Abs(v-expected[k]) <= tolerance*(1+math.Abs(expected[k]))) {
						t.Fatalf("%s: element %d of result %d is %v, not %v", what, k, j, v, expected[k])
					}
				}
			}
			exec.Finalize()
		}
		if missing > sure/4 {
			t.Errorf("%d of %d uses are not implemented", missing, sure)
		}
		t.Logf("%d uses, of which GoMLX reads %d in two ways", sure, missing)
	})
}
