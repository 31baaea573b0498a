package cpu

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/source"
)

// hardNumbers are numbers of which functions have results of their own, and their neighbours.
func hardNumbers(typ string) (list []float64) {
	most, least, tiny := math.MaxFloat64, 0x1p-1022, 0x1p-1074
	if typ == "f32" {
		most, least, tiny = math.MaxFloat32, 0x1p-126, 0x1p-149
	}
	for _, x := range []float64{0, tiny, least, least - tiny, 1e-30, 0x1p-30, 0.5, math.Sqrt2 / 2, 1, math.Pi / 2, math.Pi, 2, 4, 10.1, 16, 17.5, 40, 87.3, 88.8,
		103.9, 104.1, 128, 149, 150.5, 709.8, 745.2, 1e6, 0x1p22, 0x1p23, 0x1p24, 1e17, 1e30, most, math.Inf(1), math.NaN()} {
		for _, y := range []float64{x, math.Nextafter(x, 0), math.Nextafter(x, math.Inf(1))} {
			list = append(list, y, -y)
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

// Each function of the expressions is within the bound that expressions state, in every instruction set and at every place of a tile.
func TestFunctionsOfExpressions(t *testing.T) {
	n := 1<<15 + 77
	if brief() {
		n = 1<<12 + 77
	}
	one := []expr.Op{expr.Sqrt, expr.Rsqrt, expr.Exp, expr.Exp2, expr.Expm1, expr.Log, expr.Log2, expr.Log1p, expr.Sin, expr.Cos, expr.Tan, expr.Sinh, expr.Cosh,
		expr.Tanh, expr.Atan, expr.Erf, expr.Erfc, expr.Sigmoid, expr.Floor, expr.Ceil, expr.Trunc, expr.Round}
	// Of doubles, the C library computes these, more exactly than package math, with which it would be compared here.
	library := []expr.Op{expr.Exp2, expr.Expm1, expr.Log, expr.Log2, expr.Log1p, expr.Sin, expr.Cos, expr.Tan, expr.Sinh, expr.Cosh, expr.Atan, expr.Erf,
		expr.Erfc, expr.Pow, expr.Atan2}
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
				if typ == expr.F64 && slices.Contains(library, op) {
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
