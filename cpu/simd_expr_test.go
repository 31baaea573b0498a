package cpu

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// hardNumbers are numbers of which functions have results of their own, and their neighbours.
func hardNumbers(typ string) (list []float64) {
	most, least, tiny := math.MaxFloat64, 0x1p-1022, 0x1p-1074
	if typ == "f32" {
		most, least, tiny = math.MaxFloat32, 0x1p-126, 0x1p-149
	}
	for _, x := range []float64{0, tiny, least, least - tiny, 1e-30, 0x1p-30, 0.5, math.Sqrt2 / 2, 1, math.Pi / 2, math.Pi,
		2, 4, 10.1, 16, 17.5, 40, 87.3, 88.8,
		103.9, 104.1, 128, 149, 150.5, 709.8, 745.2, 1e6, 0x1p22, 0x1p23, 0x1p24, 1e17, 1e30, most, math.Inf(1), math.NaN()} {
		for _, y := range []float64{x, math.Nextafter(x, 0), math.Nextafter(x, math.Inf(1))} {
			list = append(list, y, -y)
		}
	}
	// Around 1 inverse functions lose digits, if written naively.
	for _, k := range []int{5, 10, 14, 20, 23, 27, 30, 40, 50} {
		for _, x := range []float64{1 - math.Ldexp(1, -k), 1 + math.Ldexp(1, -k)} {
			list = append(list, x, -x)
		}
	}
	return kernels.Decode(typ, kernels.Encode(typ, list))
}

// spread is n numbers: hard ones, and random ones of all exponents, of which the usual ones are more frequent.
func spread(typ string, r *rand.Rand, n int) []float64 {
	list := hardNumbers(typ)
	for len(list) < n {
		x := math.Ldexp(1+r.Float64(), r.IntN(12)-8)
		if r.IntN(4) == 0 {
			x = float64(math.Float32frombits(r.Uint32()))
			if typ == "f64" {
				x = math.Float64frombits(r.Uint64())
			}
		}
		list = append(list, math.Copysign(x, float64(r.IntN(2))-0.5))
	}
	return kernels.Decode(typ, kernels.Encode(typ, list[:n]))
}

// Each function of the expressions is within the bound that expressions state, in every instruction set and at
// every place of a tile.
func TestFunctionsOfExpressions(t *testing.T) {
	n := 1<<15 + 77
	if brief() {
		n = 1<<12 + 77
	}
	var one []expr.Op
	for op := expr.Sqrt; op <= expr.Round; op++ {
		one = append(one, op)
	}
	// Of doubles, the C library computes others, more exactly than package math, with which it would be compared here.
	doubles := []expr.Op{expr.Sqrt, expr.Rsqrt, expr.Exp, expr.Tanh, expr.Sigmoid, expr.Asin, expr.Acos,
		expr.Asinh, expr.Acosh, expr.Atanh, expr.Floor, expr.Ceil, expr.Trunc, expr.Round, expr.Rem, expr.Min, expr.Max,
		expr.CopySign}
	two := []expr.Op{expr.Pow, expr.Atan2, expr.Rem, expr.Min, expr.Max, expr.CopySign}
	eachSet(t, func(t *testing.T, d *device) {
		if d.simd == nil {
			t.Skip("the Go kernels compute with package math")
		}
		f := newFence(t, 31)
		for _, typ := range []expr.Type{expr.F32, expr.F64} {
			name, r := typ.String(), rand.New(rand.NewPCG(5, 9))
			var list [2][]float64
			for i := range list {
				list[i] = spread(name, r, n)
			}
			r.Shuffle(n, func(i, j int) { list[1][i], list[1][j] = list[1][j], list[1][i] })
			in := [2][]byte{f.bytes(kernels.SizeOf(name) * n), f.bytes(kernels.SizeOf(name) * n)}
			for i := range in {
				copy(in[i], kernels.Encode(name, list[i]))
			}
			out := f.bytes(len(in[0]))
			for _, op := range slices.Concat(one, two) {
				if typ == expr.F64 && !slices.Contains(doubles, op) {
					continue
				}
				e, args := expr.Apply(op, expr.Input(0, typ)), []any{in[0]}
				if slices.Contains(two, op) {
					e, args = expr.Apply(op, expr.Input(0, typ), expr.Input(1, typ)), []any{in[0], in[1]}
				}
				m, err := expr.New(e)
				require.NoError(t, err)
				u, err := m.Unit(&source.Features{FP64: true}, 0)
				require.NoError(t, err)
				require.NoError(t, invokeUnit(t, d, u, expr.Kernel, [3]int{n, 1, 1}, append(args, out, uint64(n))...))
				for i, got := range kernels.Decode(name, out) {
					values := []expr.Value{{Float: list[0][i]}, {Float: list[1][i]}}[:len(args)]
					want := m.Eval(values, nil, 0)[0]
					if !(math.Abs(got-want.Float) <= want.Bound || got == want.Float || got != got && want.Float != want.Float) {
						t.Fatalf("%v %v of %v: got %v, want %v ± %v", typ, op, values, got, want.Float, want.Bound)
					}
				}
			}
			f.free()
		}
	})
}

// Chains of operations that round, or wrap, in one way only have the bits of the Go kernels between guard
// pages: of a few elements up to several ranges of tiles, of rows and of columns, with inputs that are the same
// for all elements, in reverse order or where an output is stored.
func TestChainsOfExpressions(t *testing.T) {
	count := 400
	if brief() {
		count = 60
	}
	judge, err := backend{}.Open(t.Context(), fastIndex, &driver.Config{CPUKernels: goKernels, CPUThreads: 2})
	require.NoError(t, err)
	defer func() { assert.NoError(t, judge.Close()) }()
	eachSet(t, func(t *testing.T, d *device) {
		if d.simd == nil {
			t.Skip("these are the Go kernels")
		}
		f := newFence(t, 41)
		r, ops := f.r, []expr.Op{expr.Add, expr.Sub, expr.Mul, expr.Div, expr.Min, expr.Max, expr.Neg, expr.Abs, expr.And,
			expr.Or, expr.Xor}
		for range count {
			typ := driver.Types()[r.IntN(len(driver.Types()))]
			if typ == expr.Bool {
				continue
			}
			values := []*expr.Expr{expr.Input(0, typ), expr.Input(1, typ)}
			last := expr.Apply(expr.Add, values...)
			several, before := r.IntN(2) == 0, values // chains that read the results of others
			for range 1 + r.IntN(9) {
				e, op := before[r.IntN(len(before))], ops[r.IntN(len(ops))]
				for _, x := range []*expr.Expr{expr.Apply(op, last, e), expr.Apply(op, e, last), expr.Apply(op, last)} {
					if x.Err() == nil {
						last = x
						break
					}
				}
				if several {
					before = append(slices.Clip(before), last)
				}
			}
			outs := []*expr.Expr{last}
			if several {
				for range r.IntN(3) {
					outs = append(outs, before[2+r.IntN(len(before)-2)])
				}
			}
			if r.IntN(2) == 0 { // also an input as it is, behind or in front
				outs = slices.Insert(outs, r.IntN(2), values[r.IntN(2)])
			}
			for i, o := range outs {
				if kernels.IsFloat(typ.String()) && typ != o.Type() {
					outs[i] = o.Output(typ)
				}
			}
			m, err := expr.New(outs...)
			require.NoError(t, err)
			dims := []int{1 + r.IntN(3), 1 + r.IntN([]int{600, 3000, 3000, 3000, 200000}[r.IntN(5)])}
			l := expr.Layout{Dims: dims}
			for k := range 2 + len(outs) {
				o := expr.Rows(dims...)
				switch how := r.IntN(8); {
				case k > 1:
				case how == 0:
					o.Steps[1] = 0
				case how == 1:
					o.First, o.Steps[1] = dims[1]-1, -1
				case how == 2:
					o.Steps[0] = 0
				}
				l.Operands = append(l.Operands, o)
			}
			into, over := -1, r.IntN(len(outs)) // the input in whose memory an output is
			if i := r.IntN(2); slices.Equal(l.Operands[i].Steps, l.Operands[2].Steps) && l.Operands[i].First == 0 {
				into = i
			}
			l, err = m.Layout(l)
			require.NoError(t, err)
			in := [2][]float64{}
			for i := range in {
				in[i] = kernels.Decode(typ.String(), f.numbers(typ.String(), dims[0]*dims[1]))
				for j := range in[i] {
					in[i][j] *= 100
				}
			}
			run := func(d *device) (got [][]byte) {
				var args []any
				for i := range in {
					b := f.bytes(len(in[i]) * typ.Size())
					copy(b, kernels.Encode(typ.String(), in[i]))
					args = append(args, b)
				}
				for j := range outs {
					b := f.bytes(len(in[0]) * typ.Size())
					if j == over && into >= 0 {
						b = args[into].([]byte)
					}
					args, got = append(args, b), append(got, b)
				}
				u, err := m.Unit(&source.Features{FP64: true}, l.Rank())
				require.NoError(t, err)
				end := any(uint64(l.Len()))
				if l.Rank() > 0 {
					end = structArgument(l.Bytes())
				}
				require.NoError(t, invokeUnit(t, d, u, expr.Kernel, [3]int{l.Len(), 1, 1}, append(args, end)...))
				return got
			}
			want, got := run(judge.(*device)), run(d)
			for j := range outs {
				a, b := kernels.Decode(typ.String(), want[j]), kernels.Decode(typ.String(), got[j])
				for i := range a {
					if a[i] != b[i] && a[i] == a[i] {
						t.Fatalf("%v of %v, output %d, with %d in the memory of input %d: element %d is %v instead of %v", m, l, j, over,
							into, i, b[i], a[i])
					}
				}
			}
			f.free()
		}
	})
}
