package expr_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	. "github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime"
)

// TestGradientAtJoints: where a function is composed of pieces, or a factor of a derivative is infinite, its
// derivatives up to the third are those of closed forms; where there is none, the ones that Gradient promises.
func TestGradientAtJoints(t *testing.T) {
	x, c := Input(0, F64), func(v float64) *Expr { return Float(F64, v) }
	inf, zero := math.Inf(1), math.Copysign(0, -1)
	size := c(0).Lt(x).Select(x, x.Neg()) // with the condition of the other piece
	for name, f := range map[string]struct {
		e    *Expr
		want map[float64][]float64 // at a point, the derivatives from the first on
	}{
		"abs":      {x.Abs(), map[float64][]float64{0: {0, 0}, zero: {0, 0}, 2: {1, 0}, -inf: {-1, 0}}},
		"copysign": {Apply(CopySign, x, c(-1)), map[float64][]float64{0: {0, 0}, zero: {0, 0}, 2: {-1, 0}}},
		"max with 0": {x.Max(c(0)), map[float64][]float64{0: {0.5, 0}, zero: {0.5, 0}, 1: {1, 0}, -1: {0,
			0}, inf: {1, 0}}},
		"0 with max":      {c(0).Max(x), map[float64][]float64{0: {0.5, 0}, zero: {0.5, 0}, 1: {1, 0}, -1: {0, 0}}},
		"min with 3":      {x.Min(c(3)), map[float64][]float64{3: {0.5, 0}, 1: {1, 0}, 4: {0, 0}}},
		"max with itself": {x.Max(x.Mul(x)), map[float64][]float64{1: {1.5, 1}, 0: {0.5, 1}, 2: {4, 2}}},
		"max of one":      {x.Max(x), map[float64][]float64{0: {1, 0}, 5: {1, 0}}},
		"relu":            {x.Relu(), map[float64][]float64{0: {0, 0}, zero: {0, 0}, 1: {1, 0}, -1: {0, 0}}},
		"clamp": {x.AtLeast(c(-1)).AtMost(c(2)), map[float64][]float64{-1: {1, 0}, 2: {1, 0}, 0: {1,
			0}, 3: {0, 0}, -inf: {0, 0}}},
		"softplus, halves": {x.Max(c(0)).Add(Apply(Log1p, x.Abs().Neg().Exp())), map[float64][]float64{0: {0.5},
			zero: {0.5}}},
		"softplus, branches": {c(0).Lt(x).Select(x, c(0)).Add(Apply(Log1p, size.Neg().Exp())),
			map[float64][]float64{0: {0.5, 0.25, 0}, zero: {0.5, 0.25, 0}, inf: {1, 0}, -inf: {0, 0}}},
		"x^0": {x.Pow(c(0)), map[float64][]float64{0: {0, 0, 0}, zero: {0, 0, 0}, 2: {0, 0, 0},
			-inf: {0, 0, 0}}},
		"x^1": {x.Pow(c(1)), map[float64][]float64{0: {1, 0, 0}, zero: {1, 0, 0}, -2: {1, 0, 0},
			inf: {1, 0, 0}}},
		"x^2":   {x.Pow(c(2)), map[float64][]float64{0: {0, 2, 0}, zero: {0, 2, 0}, -2: {-4, 2, 0}}},
		"x^3":   {x.Pow(c(3)), map[float64][]float64{0: {0, 0, 6}, zero: {0, 0, 6}, -2: {12, -12, 6}}},
		"x^4":   {x.Pow(c(4)), map[float64][]float64{0: {0, 0, 0}, zero: {0, 0, 0}, -2: {-32, 48, -48}}},
		"x^2.5": {x.Pow(c(2.5)), map[float64][]float64{0: {0, 0, inf}, 4: {20, 7.5, 0.9375}}},
		"x^0.5": {x.Pow(c(0.5)), map[float64][]float64{0: {inf, -inf, inf}, 4: {0.25, -0.03125,
			0.01171875}}},
		"x^-1": {x.Pow(c(-1)), map[float64][]float64{2: {-0.25, 0.25, -0.375}}},
		"sqrt": {x.Sqrt(), map[float64][]float64{0: {inf, -inf}, 4: {0.25, -0.03125}}},
	} {
		d := f.e
		for order := range 3 {
			d = Gradient(d, c(1), x)[0]
			require.NoError(t, d.Err(), name)
			m, err := New(d.Add(x.Cast(I32).Cast(F64).Mul(c(0)))) // which uses x at any order
			require.NoError(t, err, name)
			for at, want := range f.want {
				if order < len(want) {
					got := m.Eval([]Value{{Float: at}}, nil, 0)[0].Float
					assert.InDelta(t, want[order], got, 1e-12, "%s: derivative %d at %v", name, order+1, at)
				}
			}
		}
	}
}

// TestGradientOfPower: derivatives of x^y by both operands, which are values of a launch, are those of closed forms.
func TestGradientOfPower(t *testing.T) {
	x, y := Input(0, F64), Input(1, F64)
	by := Gradient(x.Pow(y), x.Number(1), x, y)
	xx, xy, yx := Gradient(by[0], x.Number(1), x)[0], Gradient(by[0], x.Number(1), y)[0], Gradient(by[1],
		x.Number(1), x)[0]
	xxx := Gradient(xx, x.Number(1), x)[0]
	m, err := New(by[0], by[1], xx, xy, yx, xxx)
	require.NoError(t, err)
	for _, at := range [][2]float64{{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {2, 0}, {2, 1}, {0.5, -1}, {3, 2.5},
		{-2, 3}, {-2, 0}} {
		a, k := at[0], at[1]
		down := func(n float64) float64 { // the factor k·(k-1)·… in front of a power
			f := 1.0
			for i := range int(n) {
				f *= k - float64(i)
			}
			if f == 0 {
				return 0
			}
			return f * math.Pow(a, k-n)
		}
		got := m.Eval([]Value{{Float: a}, {Float: k}}, nil, 0)
		near := func(want float64, i int, what string) {
			assert.InDelta(t, want, got[i].Float, 1e-12*(1+math.Abs(want)), "%s of x^y at %v", what, at)
		}
		near(down(1), 0, "∂x")
		near(down(2), 2, "∂x∂x")
		near(down(3), 5, "∂x∂x∂x")
		if a > 0 {
			near(math.Pow(a, k)*math.Log(a), 1, "∂y")
			mixed := math.Pow(a, k-1) * (1 + k*math.Log(a))
			near(mixed, 3, "∂x∂y")
			near(mixed, 4, "∂y∂x")
		}
	}
}

// TestGradientOfProducts: of rows with up to four zeros the first and second derivatives of the product are products
// of the other elements, and of rows without zeros also the third ones.
func TestGradientOfProducts(t *testing.T) {
	x := Input(0, F64)
	one := x.Number(1)
	at := func(i int) *Expr { return Index().Eq(Int(I64, int64(i))).Select(one, x.Number(0)) }
	// without returns the product of the elements but those at some places, which have to be different.
	without := func(row []float64, places ...int) float64 {
		p := 1.0
		for i, v := range row {
			for _, j := range places {
				if i == j {
					v = 1
				}
			}
			p *= v
		}
		for i, j := range places {
			for _, k := range places[:i] {
				if j == k {
					return 0
				}
			}
		}
		return p
	}
	r := rand.New(rand.NewPCG(34, 2))
	rows := [][]float64{{0, 2, 3}, {0}, {5}, {0, 0}, {0, 0, 7}, {1, 2, 3, 4}}
	for zeros := range 5 {
		row := make([]float64, 5)
		for i := range row {
			row[i] = math.Round(r.NormFloat64()*8)/4 + 0.125
		}
		for _, i := range r.Perm(5)[:zeros] {
			row[i] = math.Copysign(0, float64(i%2)-0.5)
		}
		rows = append(rows, row)
	}
	dev, err := runtime.Open(t.Context(), "cpu:reference")
	require.NoError(t, err)
	defer dev.Close()
	for _, row := range rows {
		n := len(row)
		first := Gradient(x.Product(), one, x)[0] // of each element
		got := elements(t, dev, first, row)
		for i := range n {
			require.InDelta(t, without(row, i), got[i], 1e-9, "%v by %d", row, i)
			second := Gradient(first.Mul(at(i)).Sum(), one, x)[0]
			got := elements(t, dev, second, row)
			for j := range n {
				require.InDelta(t, without(row, i, j), got[j], 1e-9, "%v by %d and %d", row, i, j)
				if slices.Contains(row, 0) {
					continue
				}
				third := elements(t, dev, Gradient(second.Mul(at(j)).Sum(), one, x)[0], row)
				for k := range n {
					require.InDelta(t, without(row, i, j, k), third[k], 1e-9, "%v by %d, %d and %d", row, i, j, k)
				}
			}
		}
	}
	// Of a sum, which is the same for the whole row: (x₀+x₁)² at 0.
	d := x.Sum().Add(x.Mul(x.Number(0))).Product()
	for _, want := range [][]float64{{0, 0}, {4, 4}} {
		d = Gradient(d, one, x)[0]
		assert.InDeltaSlice(t, want, elements(t, dev, d, []float64{1, -1}), 1e-12)
	}
}

// elements returns an expression's value at each element of a row, its input 0, as a device computes it.
func elements(t *testing.T, dev *runtime.Device, e *Expr, row []float64) []float64 {
	m, err := New(e.Add(Input(0, F64).Mul(Float(F64, 0)))) // which needs the input, and has a value for each element
	require.NoError(t, err)
	l, err := m.Layout(Layout{Dims: []int{len(row)}, Operands: []Operand{Rows(len(row)), Rows(len(row))}})
	require.NoError(t, err)
	u, err := m.Unit(dev.Features(), l.Rank())
	require.NoError(t, err)
	program, err := dev.Program(t.Context(), u)
	require.NoError(t, err)
	defer program.Close()
	name, size := m.Entry(&l)
	items, group, err := kernels.Geometry(u, name, size)
	require.NoError(t, err)
	k, err := program.Kernel(name)
	require.NoError(t, err)
	in, err := runtime.Upload(t.Context(), dev, row)
	require.NoError(t, err)
	defer in.Close()
	out, err := runtime.Alloc[float64](dev, len(row))
	require.NoError(t, err)
	defer out.Close()
	require.NoError(t, dev.Stream().Launch(k, runtime.Grid{Items: items, Group: group}, in, out, l.Argument()))
	got := make([]float64, len(row))
	require.NoError(t, runtime.Read(t.Context(), out, got))
	return got
}

// TestGradientOfPowerNearZero: derivatives of x^y that are 0 are so where x^-1 overflows, too, and where x is NaN.
func TestGradientOfPowerNearZero(t *testing.T) {
	for _, typ := range []Type{F32, F64} {
		x, y := Input(0, typ), Input(1, typ)
		first := Gradient(x.Pow(y), x.Number(1), x)[0]
		second := Gradient(first, x.Number(1), x)[0]
		m, err := New(first, second)
		require.NoError(t, err)
		for _, a := range []float64{0, 1e-40, -1e-40, 1e-20, 1e-170, 5e-324, 1e-7, 2, math.Inf(1), math.NaN()} {
			for k := range 2 {
				got := m.Eval([]Value{{Float: a}, {Float: float64(k)}}, nil, 0)
				assert.Equal(t, float64(k), got[0].Float, "%v: ∂x of %v^%d", typ, a, k)
				assert.Equal(t, 0.0, math.Abs(got[1].Float), "%v: ∂x∂x of %v^%d", typ, a, k)
			}
		}
	}
}
