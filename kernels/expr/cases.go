package expr

// Launches of maps as cases of the catalog, and those that parity runs.

import (
	"fmt"
	"math"
	"slices"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/driver"
)

// Case returns one launch of the map as a case of the catalog, with the bound of [Map.Eval]. The layout is one that
// [Map.Layout] returned. inputs give the elements of each input's buffer, as many as the layout reaches (see
// [Operand.Reach]), params the parameters. It panics if there are too few of either.
func (m *Map) Case(shape string, l Layout, inputs []func() []float64, params []float64) kernels.Case {
	rank, n := l.Rank(), l.Len()
	c := kernels.Case{Family: Family, DType: m.outputs[0].elem.String(), Shape: shape, Defines: m.defines(rank)}
	kernel, size := m.Entry(&l)
	c.Kernel, c.Sizes = kernel, []int{size}
	whole := true // whether no element is a floating number, so that every bit is known
	for _, node := range m.nodes {
		c.Needs.FP64 = c.Needs.FP64 || node.typ == F64
		whole = whole && !node.typ.IsFloat()
	}
	for k, t := range m.inputs {
		c.Args = append(c.Args, kernels.Arg{Dir: kernels.In, Type: t.String(), Len: max(l.Operands[k].Reach(l.Dims), 1),
			Fill: inputs[k]})
	}
	for j, o := range m.outputs {
		k := len(m.inputs) + j
		dims, at := m.own(k, &l)
		size := at.Reach(dims)
		a := kernels.Arg{Dir: kernels.Out, Type: o.elem.String(), Len: max(size, 1)}
		if rank > 0 || n == 0 { // memory between the elements keeps its contents
			a.Dir, a.Fill = kernels.InOut, func() []float64 { return slices.Repeat([]float64{77}, a.Len) }
		}
		c.Args = append(c.Args, a)
	}
	for i, t := range m.params {
		c.Args = append(c.Args, kernels.Arg{Dir: kernels.Value, Type: t.String(), V: params[i]})
	}
	if rank == 0 {
		c.Args = append(c.Args, kernels.Arg{Dir: kernels.Value, Type: "u64", V: float64(n)})
	} else {
		c.Args = append(c.Args, kernels.Arg{Dir: kernels.Value, Bytes: l.Bytes()})
	}
	c.Tolerance, c.Why = "equal", "integers are computed exactly"
	if !whole {
		c.Tolerance, c.Why = "composed of the operations'", "each operation errs by what OpenCL allows and is rounded once"
		c.Bound = func(arg int, in [][]float64, ref []float64) []float64 {
			return m.bounds(&l, arg-len(m.inputs), in, ref)
		}
	}
	return c
}

// Reach returns how many elements of its buffer the operand needs for a layout of those dimensions.
func (o *Operand) Reach(dims []int) int {
	if slices.Contains(dims, 0) {
		return 0
	}
	_, hi, _ := o.span(dims)
	return hi + 1
}

// bounds returns the bounds of the elements of output j for the given arguments of a launch.
func (m *Map) bounds(l *Layout, j int, in [][]float64, ref []float64) []float64 {
	number := func(t Type, x float64) Value {
		if t.IsFloat() {
			return Value{Float: x}
		}
		if x >= 1<<63 {
			return Value{Int: uint64(x)}
		}
		return Value{Int: uint64(int64(x))}
	}
	operands := len(m.inputs) + len(m.outputs)
	params := make([]Value, len(m.params))
	for i, t := range m.params {
		params[i] = number(t, in[operands+i][0])
	}
	bounds := make([]float64, len(ref))
	m.visit(l, params, func(k, at int) Value { return number(m.inputs[k], in[k][at]) }, func(output, place int, v Value) {
		o := m.outputs[output]
		switch {
		case output != j:
		case o.elem == F16 || o.elem == BF16:
			bounds[place] = storedBound(o.elem, ref[place], v)
		default:
			bounds[place] = v.Bound
		}
	})
	return bounds
}

// storedBound returns the bound of a value that is rounded to 16 bits when it is stored.
func storedBound(t Type, ref float64, v Value) float64 {
	if math.IsInf(v.Bound, 1) || v.Bound == 0 {
		return v.Bound
	}
	largest := 65504.0
	if t == BF16 {
		largest = 0x1.fep127
	}
	if math.Abs(v.Float)+v.Bound >= largest {
		return math.Inf(1)
	}
	return kernels.Stored(t.String(), ref, v.Bound)
}

// cases returns launches of maps that programs often use, and with layouts that are difficult to get right.
func cases(*kernels.Family) []kernels.Case {
	var list []kernels.Case
	add := func(name string, l *Layout, outputs ...*Expr) {
		m := must(New(outputs...))
		one := func(shape string, l Layout) {
			l = must(m.Layout(l))
			var inputs []func() []float64
			for k, t := range m.inputs {
				inputs = append(inputs, kernels.Uniform(t.String(), max(l.Operands[k].Reach(l.Dims), 1), uint64(k+1), -3, 3))
			}
			list = append(list, m.Case(name+" "+shape, l, inputs, []float64{3, 5}[:len(m.params)]))
		}
		if l != nil {
			one(fmt.Sprint(l.Dims), *l)
			return
		}
		for _, n := range []int{0, 1, Tile - 1, Tile, Tile + 1, 65537} {
			var l Layout
			l.dense(n, len(m.inputs)+len(m.outputs))
			one(fmt.Sprintf("n=%d", n), l)
		}
	}
	v, w := Input(0, F32), Input(1, F32)
	reduced := func(name string, outputs ...*Expr) {
		m := must(New(outputs...))
		for _, s := range [][2]int{{1, 0}, {1, 1}, {31, 7}, {3, 513}, {2, 8200}, {1, 200003}, {1030, 37}, {5000, 3}} {
			if s[1] > 1e5 && len(outputs) > 1 { // the reference is slow
				continue
			}
			for _, columns := range []bool{false, true} {
				l := Layout{Dims: s[:]}
				for k := range len(m.inputs) + len(m.outputs) {
					o := Rows(s[:]...)
					if columns {
						o.Steps = []int{1, s[0]}
					}
					if m.oncePerRow(k) {
						o.Steps = []int{1, 0}
					}
					l.Operands = append(l.Operands, o)
				}
				add(fmt.Sprintf("%s columns=%v", name, columns), &l, outputs...)
			}
		}
	}
	mean := func(e *Expr) *Expr { return e.Sum().Div(Length().Cast(e.Type())) }
	centered := v.Sub(mean(v))
	reduced("sum", v.Sum())
	for _, t := range []Type{F32, F64, F16, BF16} {
		x := Input(0, t)
		exp := x.Sub(x.Largest()).Exp()
		reduced("softmax of "+t.String(), exp.Div(exp.Sum()).Output(t))
	}
	reduced("softmax by its name", v.Softmax())
	reduced("norm and variance", centered.Div(mean(centered.Mul(centered)).Add(v.Number(1e-5)).Sqrt()),
		mean(centered.Mul(centered)))
	reduced("product and ends", v.Mul(v.Number(0.1)).Add(v.Number(1)).Product(), v.Smallest(), v.Mul(w).Largest())
	reduced("place", v.ArgLargest())
	reduced("places", v.Mul(w).ArgSmallest(), v.ArgLargest(), v.Largest())
	reduced("bool", v.Lt(w).All(), v.Lt(w).Any())
	reduced("f64", Input(0, F64).Abs().Sum())
	reduced("f16", Input(0, F16).Sum().Output(F16))
	reduced("bf16", Input(0, BF16).ArgSmallest(), Input(0, BF16).Sum())
	for _, t := range []Type{I8, U16, I32, U64} {
		x := Input(0, t)
		reduced(t.String(), x.Sum(), x.Product(), x.Smallest(), x.Largest(), x.All(), x.Any(), x.ArgLargest())
	}
	// As networks have them, with one row of gamma and beta; with other layouts, and inside of other operations.
	layerNorm := v.Normalize(v.Number(0.001)).Mul(w).Add(Input(2, F32))
	rmsNorm := v.RMSNormalize(Param(0, F32)).Mul(w)
	for _, n := range []int{1, 70, 1030, 5000} {
		row, operand := Operand{Steps: []int{0, 1}}, Rows(5, n)
		add("layer norm", &Layout{Dims: []int{5, n}, Operands: []Operand{operand, row, row, operand}}, layerNorm)
		add("rms norm", &Layout{Dims: []int{5, n}, Operands: []Operand{operand, row, operand}}, rmsNorm)
		if n != 1030 {
			continue
		}
		add("layer norm with a sum", &Layout{Dims: []int{5, n}, Operands: []Operand{operand, row, operand, operand}},
			layerNorm)
		add("named operations", &Layout{Dims: []int{5, n}, Operands: []Operand{operand, operand}},
			v.Normalize(v.Number(0.5)).Softmax().Sub(v.Softmax()))
	}
	add("gelu", nil, v.GELU())
	add("gelu by erfc", nil, v.Mul(v.Number(0.5)).Mul(Apply(Erfc, v.Mul(v.Number(-math.Sqrt2/2)))))
	add("copy", nil, v)
	add("chain", nil, v.Mul(v.Number(1.5)).Add(v.Number(0.25)).Mul(v).Sub(v.Number(0.5)).Relu().Mul(v.Number(2)))
	add("sigmoid and gradient", nil, v.Sigmoid(), Gradient(v.Sigmoid(), w, v)[0])
	add("random", nil, Random(Param(0, U64), 7, 2), Index().Mul(Index()))
	for _, t := range []Type{F64, F16, BF16} {
		x := Input(0, t)
		add(t.String(), nil, x.Tanh().Add(x.Exp()).Output(t))
	}
	for _, t := range driver.Types() {
		if x := Input(0, t); t.IsInteger() {
			y := Input(1, t)
			if t.Size() < 4 { // the rusticl of Mesa 22.3 crashes where it divides short integers: tests/exprs does it
				add(t.String(), nil, Apply(Shr, x, y).Mul(x), x.Lt(y).Select(x.Cast(F32), y.Cast(F32)), x.Cast(I32), x.Cast(U8))
				continue
			}
			add(t.String(), nil, Apply(Div, x, y).Add(Apply(Shr, x, y).Mul(x)),
				Apply(Rem, x, y).Lt(y).Select(x.Cast(F32), y.Cast(F32)),
				x.Cast(I32), x.Cast(U8), Float(F32, 1.5).Mul(x.Cast(F32)).Cast(t))
		}
	}
	add("outer product", &Layout{Dims: []int{31, 33}, Operands: []Operand{{Steps: []int{1, 0}}, {Steps: []int{0, 1}},
		Rows(31, 33)}}, v.Mul(w))
	// Rows with gaps, a number for each row and one for each column: some consist of whole vectors, some have a rest.
	for _, n := range []int{64, 256, 640, 1030} {
		for _, t := range []Type{F32, F64, F16} {
			x, row, column := Input(0, t), Input(1, t), Input(2, t)
			gap := n + 3
			add("rows with gaps "+t.String(), &Layout{
				Dims: []int{3, 5, n}, Operands: []Operand{{Steps: []int{5 * gap, gap, 1}}, {Steps: []int{5, 1, 0}},
					{Steps: []int{0, 0, 1}},
					{First: 2, Steps: []int{5 * gap, gap, 1}}, Rows(3, 5, n)}}, x.Sub(row).Mul(column).Sigmoid().Output(t), x.Sub(
				column).Max(row).Output(t))
		}
	}
	add("reversed into columns", &Layout{
		Dims: []int{5, 1030}, Operands: []Operand{{First: 5*1030 - 1, Steps: []int{-1030, -1}},
			{Steps: []int{1, 6}}}}, v.Neg())
	eight := []int{2, 3, 2, 1, 3, 2, 2, 5}
	add("eight dimensions", &Layout{
		Dims: eight, Operands: []Operand{{Steps: []int{0, 2, 0, 0, 6, 1, 0, 18}}, Rows(eight...),
			{Steps: []int{1, 2, 6, 12, 12, 36, 72, 144}}}},
		v.Sub(w))
	return list
}
