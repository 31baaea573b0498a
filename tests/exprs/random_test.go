package exprs

// Random maps, and launches of them.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime/driver"
)

// randomMap returns a map of up to that many operations, with up to three inputs, two parameters and two outputs.
func randomMap(r *rand.Rand, operations int) *expr.Map {
	for {
		values := []*expr.Expr{}
		types, same := driver.Types(), false
		switch r.IntN(4) {
		case 0, 1: // most maps in use have floats only
			types = []expr.Type{expr.F32}
		case 2:
			i := r.IntN(len(types))
			types, same = types[i:min(i+1+r.IntN(2), len(types))], true // neighbours are of one size, for the most part
		}
		for slot := range 1 + r.IntN(3) {
			values = append(values, expr.Input(slot, types[r.IntN(len(types))]))
		}
		for slot := range r.IntN(3) {
			params := []expr.Type{expr.F32, expr.F64, expr.I32, expr.U64, expr.I8}
			if t := types[0].Computed(); same && slices.Contains(params, t) {
				params = []expr.Type{t}
			}
			values = append(values, expr.Param(slot, params[r.IntN(len(params))]))
		}
		if !same && r.IntN(10) == 0 {
			values = append(values, expr.Index())
		}
		leaves := len(values)
		reductions, few := r.IntN(3) == 0, same && r.IntN(2) == 0
		for made := 0; made < 1+r.IntN(operations); {
			e := randomOperation(r, values, reductions)
			if few {
				e = fewOperation(r, values)
			}
			if e.Err() == nil {
				values = append(values, e)
				made++
			}
		}
		// Every slot has to be used, so all inputs and parameters are added to an output.
		out := []*expr.Expr{values[len(values)-1]}
		if r.IntN(3) == 0 {
			out = append(out, values[r.IntN(len(values))])
		}
		for _, v := range values[:leaves] {
			sum := out[0].Add(v.Cast(out[0].Type()))
			if out[0].Type() == expr.Bool {
				sum = expr.Apply(expr.Xor, out[0], v.Cast(expr.Bool))
			}
			out[0] = sum
		}
		if reductions && r.IntN(2) == 0 {
			out = append(out, out[0])
			out[0] = expr.Apply([]expr.Op{expr.Sum, expr.Largest, expr.All}[r.IntN(3)], out[0])
			if out[0].Err() != nil {
				continue
			}
		}
		if out[0].Type() == expr.F32 && same && types[0].Computed() == expr.F32 {
			out[0] = out[0].Output(types[0])
		} else if out[0].Type() == expr.F32 {
			out[0] = out[0].Output([]expr.Type{expr.F32, expr.F32, expr.F16, expr.BF16}[r.IntN(4)])
		}
		if m, err := expr.New(out...); err == nil {
			return m
		}
	}
}

// randomOperation returns an operation on some of the values. It may not be well formed.
func randomOperation(r *rand.Rand, values []*expr.Expr, reductions bool) *expr.Expr {
	pick := func() *expr.Expr {
		v := values[r.IntN(len(values))]
		if r.IntN(5) == 0 && v.Type() != expr.Bool {
			return v.Number(float64(r.IntN(9)) - 4 + float64(r.IntN(4))/4)
		}
		return v
	}
	a := pick()
	same := func() *expr.Expr {
		for range 20 {
			if b := pick(); b.Type() == a.Type() {
				return b
			}
		}
		return a
	}
	switch r.IntN(12) {
	case 0:
		computed := []expr.Type{expr.F32, expr.F64, expr.I8, expr.I16, expr.I32, expr.I64, expr.U8, expr.U16, expr.U32,
			expr.U64, expr.Bool}
		return a.Cast(computed[r.IntN(len(computed))])
	case 1:
		return a.Bits([]expr.Type{expr.I32, expr.U32, expr.I64, expr.U8, expr.I8}[r.IntN(5)])
	case 2:
		return a.Lt(same()).Select(a, same())
	case 3:
		if a.Type() == expr.U64 {
			return expr.Random(a, r.Uint32(), r.IntN(4))
		}
	}
	if reductions && r.IntN(8) == 0 {
		n, epsilon := expr.Length().Cast(a.Type()), same()
		if r.IntN(2) == 0 && epsilon.Type() != expr.Bool {
			epsilon = epsilon.Number(2)
		}
		switch e := expr.Apply(expr.Softmax, a); {
		case e.Err() != nil:
		case r.IntN(3) == 0:
			return e
		default:
			return expr.Apply([]expr.Op{expr.Normalize, expr.RMSNormalize}[r.IntN(2)], a, n, epsilon)
		}
	}
	if reductions && r.IntN(5) == 0 {
		if e := expr.Apply(expr.Sum+expr.Op(r.IntN(int(expr.ArgSmallest-expr.Sum)+1)), a); e.Err() == nil {
			return e
		}
		return expr.Length()
	}
	op := expr.Neg + expr.Op(r.IntN(int(expr.FMA-expr.Neg)+1))
	for n := 1; n <= 3; n++ {
		args := []*expr.Expr{a, same(), same()}[:n]
		if e := expr.Apply(op, args...); e.Err() == nil {
			return e
		}
	}
	return expr.Apply(op)
}

// fewOperation returns one of the operations that cpu:0 computes from elements as they are stored, or a cast
// that keeps bits.
func fewOperation(r *rand.Rand, values []*expr.Expr) *expr.Expr {
	a, b := values[r.IntN(len(values))], values[max(0, len(values)-1-r.IntN(2))]
	switch op := r.IntN(15); op {
	case 0, 9, 10, 11:
		return b.Bits(map[expr.Type]expr.Type{expr.I8: expr.U8, expr.U8: expr.I8, expr.I16: expr.U16,
			expr.U16: expr.I16}[a.Type()])
	case 1:
		return expr.Apply([]expr.Op{expr.Neg, expr.Abs, expr.Exp, expr.Sigmoid, expr.Tanh}[r.IntN(5)], b)
	default:
		return expr.Apply([]expr.Op{expr.Add, expr.Sub, expr.Mul, expr.And, expr.Or, expr.Xor, expr.Div, expr.Min,
			expr.Max}[op%9], a, b)
	}
}

// randomCase returns a launch of a map with a random layout: dense, or of up to eight dimensions whose operands are
// permuted, spread, reversed and repeated.
func randomCase(r *rand.Rand, m *expr.Map, name string) (kernels.Case, error) {
	operands := len(m.Inputs()) + len(m.Outputs())
	rank := 1 + r.IntN(8)
	l := expr.Layout{Dims: make([]int, rank)}
	most := 3000
	for j := range l.Dims {
		l.Dims[j] = 1 + r.IntN(max(1, min(most, 1400)))
		if rank > 2 && (!m.Reduces() || j < rank-1) {
			l.Dims[j] = 1 + r.IntN(min(most, 7))
		}
		most = max(1, most/l.Dims[j])
	}
	if r.IntN(40) == 0 {
		l.Dims[r.IntN(rank)] = 0
	}
	plain := r.IntN(3) == 0
	for k := range operands {
		o := expr.Rows(l.Dims...)
		if !plain {
			o = randomOperand(r, l.Dims, k < len(m.Inputs()))
		}
		if m.Reduces() && k >= len(m.Inputs()) && m.OncePerRow(k-len(m.Inputs())) {
			last := rank - 1
			if o = expr.Rows(l.Dims[:last]...); !plain && !slices.Contains(l.Dims[:last], 0) {
				o = randomOperand(r, l.Dims[:last], false)
			}
			o.Steps = append(o.Steps, 0)
		}
		l.Operands = append(l.Operands, o)
	}
	l, err := m.Layout(l)
	if err != nil {
		return kernels.Case{}, err
	}
	var inputs []func() []float64
	for k, t := range m.Inputs() {
		n := max(l.Operands[k].Reach(l.Dims), 1)
		data := kernels.Uniform(t.String(), n, r.Uint64(), -4, 4)
		if kernels.IsFloat(t.String()) && r.IntN(4) == 0 {
			usual, special := data, kernels.Special(t.String())
			data = func() []float64 {
				x := usual()
				for i := 0; i < len(x); i += 3 {
					x[i] = special[i/3%len(special)]
				}
				return x
			}
		}
		inputs = append(inputs, data)
	}
	params := make([]float64, len(m.Params()))
	for i := range params {
		params[i] = math.Trunc(r.Float64() * 100)
	}
	return m.Case(fmt.Sprintf("%s %v", name, l.Dims), l, inputs, params), nil
}

func randomOperand(r *rand.Rand, dims []int, input bool) expr.Operand {
	o := expr.Operand{Steps: make([]int, len(dims))}
	order := r.Perm(len(dims))
	step := 1 + r.IntN(2)
	for _, j := range order {
		if input && r.IntN(4) == 0 {
			continue
		}
		o.Steps[j] = step
		step = step*max(dims[j], 1) + r.IntN(3)
		if r.IntN(4) == 0 && dims[j] > 0 {
			o.First += (dims[j] - 1) * o.Steps[j]
			o.Steps[j] = -o.Steps[j]
		}
	}
	if slices.Contains(dims, 0) {
		o.First = 0
	}
	return o
}
