package expr_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/kernels"
	. "github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/parity"
	"github.com/concord-compute/concord/source"
)

// The cases of the family are right on cpu:0, which needs no compiler for them.
func TestCases(t *testing.T) {
	results, err := parity.Run(context.Background(), parity.Options{Devices: []string{"cpu:0"}, Kernels: []string{Family}})
	require.NoError(t, err)
	assert.NotEmpty(t, results)
	for _, r := range results {
		if r.Verdict == parity.Fail || r.Device == "cpu:0" && r.Verdict != parity.Pass {
			t.Error(r.Device, r.Shape, r.DType, r.Verdict, r.Reason)
		}
	}
	assert.NotEmpty(t, kernels.Cases(Family))
}

// The canonical form does not depend on how an expression was made, and Parse reads it.
func TestCanonical(t *testing.T) {
	v, w := Input(0, F32), Input(1, F32)
	one := v.Number(1)
	for _, c := range []struct {
		want string
		e    *Expr
	}{
		{"input.f32.0;const.f32.3fc00000;mul.f32.0,1;out.f32.2", v.Mul(v.Number(1.5))},
		{"input.f32.0;out.f32.0", v.Mul(one).Div(one).Sub(v.Number(0)).Neg().Neg()},
		{"const.f32.40a00000;out.f32.0", v.Number(2).Add(v.Number(3))},
	} {
		m, err := New(c.e)
		require.NoError(t, err)
		assert.Len(t, m.String(), len(c.want))
	}
	a, err := New(v.Mul(w).Add(w.Mul(v)))
	require.NoError(t, err)
	b, err := New(Input(1, F32).Mul(v).Add(v.Mul(Input(1, F32))))
	require.NoError(t, err)
	assert.Equal(t, a.String(), b.String())
	assert.Equal(t, 1, strings.Count(a.String(), "mul"))
	again, err := Parse(a.String())
	require.NoError(t, err)
	assert.Equal(t, a.String(), again.String())
	// -0 + 0 is 0, so that x + 0 is not x.
	m, err := New(v.Add(v.Number(0)))
	require.NoError(t, err)
	assert.Contains(t, m.String(), "add")
}

// Expressions that are not well formed are refused with the reason.
func TestRefused(t *testing.T) {
	v := Input(0, F32)
	for want, e := range map[string]*Expr{
		"takes one type":    v.Add(Input(1, F64)),
		"and of":            v.Add(Input(0, F16)),
		"input 0 is not":    Input(1, F32),
		"and of ":           Apply(And, v, v),
		"takes 2 operands":  Apply(Add, v),
		"takes a bool":      v.Select(v, v),
		"cast to Type":      v.Cast(200),
		"an output of type": v.Output(I8),
		"last dimension":    Length(),
		"all of f32":        v.All(),
		"sum of bool":       v.Lt(v).Sum(),
	} {
		_, err := New(e)
		if assert.ErrorIs(t, err, ErrInvalid, want) && want != "and of " {
			assert.ErrorContains(t, err, want)
		}
	}
	_, err := New()
	assert.ErrorIs(t, err, ErrInvalid)
	deep := v
	for range 10000 {
		deep = Apply(Sin, deep)
	}
	_, err = New(deep)
	assert.ErrorIs(t, err, ErrInvalid)
	for _, text := range []string{"", "out", "input.f32.0", "input.f32.0;out.f32.1", "input.f32.99;out.f32.0",
		"input.f32.0;add.f32.0;out.f32.1",
		"const.f32.;out.f32.0", "const.f32.zz;out.f32.0", "input.f32.0;sin.f64.0;out.f64.1",
		"input.f32.0;input.f32.0;out.f32.1"} {
		_, err := Parse(text)
		assert.ErrorIs(t, err, ErrInvalid, text)
	}
}

// Philox agrees with the known answers of its authors' Random123 (kat_vectors: philox4x32 10).
func TestPhilox(t *testing.T) {
	m, err := New(Random(Param(0, U64), 0, 0), Random(Param(0, U64), 0, 1), Random(Param(0, U64), 0, 2),
		Random(Param(0, U64), 0, 3))
	require.NoError(t, err)
	var got []uint64
	for _, v := range m.Eval(nil, []Value{{}}, 0) {
		got = append(got, v.Int)
	}
	assert.Equal(t, []uint64{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}, got)
}

// Gradients agree with differences in float64, away from kinks.
func TestGradient(t *testing.T) {
	x, y := Input(0, F64), Input(1, F64)
	functions := map[string]*Expr{
		"select": x.Lt(y).Select(x.Mul(x), y.Mul(x)), "clamp": x.Min(y).Max(x.Number(0.1)), "twice": x.Mul(y).Mul(x.Mul(y)),
		"int": x.Cast(I32).Cast(F64).Mul(x), "f32": x.Mul(y),
	}
	for op := Neg; op < Shl; op++ {
		switch op {
		case Not, And, Or, Xor, IsNaN:
			continue
		}
		if e := Apply(op, x); e.Err() == nil {
			functions[op.String()] = e.Mul(y)
		} else if e := Apply(op, x, y); e.Err() == nil {
			functions[op.String()] = e
		}
	}
	functions["fma"] = Apply(FMA, x, y, x)
	assert.Greater(t, len(functions), 35)
	value := func(e *Expr, at ...float64) float64 {
		m, err := New(e, x, y)
		require.NoError(t, err)
		return m.Eval([]Value{{Float: at[0]}, {Float: at[1]}}, nil, 0)[0].Float
	}
	for name, f := range functions {
		d := Gradient(f, x.Number(1), x, y)
		for _, at := range [][2]float64{{0.3, 0.7}, {1.7, 1.2}, {0.9, 2.3}} {
			for i := range 2 {
				const h = 1e-5
				lo, hi := at, at
				lo[i] -= h
				hi[i] += h
				want := (value(f, hi[:]...) - value(f, lo[:]...)) / (2 * h)
				if math.IsNaN(want) { // beyond where the function has a value
					continue
				}
				got := value(d[i], at[:]...)
				assert.InDelta(t, want, got, 1e-6*max(1, math.Abs(want)), "%s at %v by operand %d", name, at, i)
			}
		}
	}
	// The second derivative of x³ is 6x.
	cube := x.Mul(x).Mul(x)
	second := Gradient(Gradient(cube, x.Number(1), x)[0], x.Number(1), x)[0]
	assert.InDelta(t, 12, value(second, 2, 0), 1e-12)
	assert.Equal(t, 0.0, value(Gradient(x, x.Number(1), y)[0], 2, 3))
}

// Gradients of reductions agree with differences in float64 for each element of a row.
func TestGradientOfReductions(t *testing.T) {
	x, y := Input(0, F64), Input(1, F64)
	soft := x.Sub(x.Largest()).Exp()
	mean := func(e *Expr) *Expr { return e.Sum().Div(Length().Cast(F64)) }
	centered := x.Sub(mean(x))
	row, other := []float64{0.3, 1.7, -0.9, 2.3, 0.5}, []float64{0.7, -1.2, 0.4, 1.1, -0.6}
	zeros := []float64{0.3, 0, -0.9, 2.3, 0.5}
	for name, f := range map[string]*Expr{
		"sum": x.Mul(y).Sum(), "product": x.Product().Mul(y), "largest": x.Largest().Mul(x), "smallest": x.Mul(y).Smallest(),
		"softmax":             soft.Div(soft.Sum()).Mul(y),
		"norm":                centered.Div(mean(centered.Mul(centered)).Add(x.Number(0.1)).Sqrt()).Mul(y),
		"softmax by its name": x.Softmax().Mul(y),
		"normalize by sums":   x.Normalize(y.Mul(y).Sum()).Mul(y),
		"rmsnormalize":        x.Mul(y).RMSNormalize(Param(0, F64)).Mul(y),
		"log sum":             x.Exp().Sum().Log(), "param": x.Mul(Param(0, F64)).Sum().Add(x).Exp().Mul(Param(0, F64)),
	} {
		for _, at := range [][]float64{row, zeros} {
			if name == "norm" || name == "param" {
				at = row
			}
			// The sum over the row has a gradient for each element.
			total := func(in, by []float64, p float64) float64 {
				return value(t, f, in, by, p, 0)
			}
			ones := x.Number(1)
			d := Gradient(f.Sum(), ones, x, y, Param(0, F64))
			const h = 1e-5
			for j := range at {
				for k := range 2 {
					lo, hi := [2][]float64{slices.Clone(at), slices.Clone(other)}, [2][]float64{slices.Clone(at), slices.Clone(other)}
					lo[k][j] -= h
					hi[k][j] += h
					want := (total(hi[0], hi[1], 0.5) - total(lo[0], lo[1], 0.5)) / (2 * h)
					got := value(t, d[k], at, other, 0.5, j+1)
					assert.InDelta(t, want, got, 1e-6*max(1, math.Abs(want)), "%s of %v by operand %d, element %d", name, at, k, j)
				}
			}
			want := (total(at, other, 0.5+h) - total(at, other, 0.5-h)) / (2 * h)
			assert.InDelta(t, want, value(t, d[2], at, other, 0.5, 1), 1e-6*max(1, math.Abs(want)), "%s by the parameter", name)
		}
	}
}

// value returns an expression's value at element j-1 of a row, or with j = 0 the sum over the row, as
// cpu:reference computes it.
func value(t *testing.T, e *Expr, in, by []float64, p float64, j int) float64 {
	x, y, param := Input(0, F64), Input(1, F64), Param(0, F64)
	if j > 0 {
		e = Index().Eq(Int(I64, int64(j-1))).Select(e, e.Number(0))
	}
	m, err := New(e.Sum(), x.Sum(), y.Sum(), param)
	require.NoError(t, err)
	l := Layout{Dims: []int{len(in)}, Operands: []Operand{Rows(len(in)), Rows(len(in))}}
	for range 4 {
		l.Operands = append(l.Operands, Operand{Steps: []int{0}})
	}
	l, err = m.Layout(l)
	require.NoError(t, err)
	s, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	defer s.Close()
	dev, err := s.Open(t.Context(), "cpu:reference")
	require.NoError(t, err)
	defer dev.Close()
	u, err := m.Unit(dev.Features(), l.Rank())
	require.NoError(t, err)
	program, err := dev.Program(t.Context(), u)
	require.NoError(t, err)
	defer program.Close()
	name, size := m.Entry(&l)
	global, local, err := kernels.Geometry(u, name, size)
	require.NoError(t, err)
	k, err := program.Kernel(name)
	require.NoError(t, err)
	stream, err := dev.NewStream()
	require.NoError(t, err)
	defer stream.Close()
	var args []any
	for _, data := range [][]float64{in, by, {0}, {0}, {0}, {0}} {
		b, err := runtime.Upload(t.Context(), dev, data)
		require.NoError(t, err)
		defer b.Close()
		args = append(args, b)
	}
	require.NoError(t, stream.Launch(k, runtime.Grid{Items: global, Group: local}, append(args, p, l.Argument())...))
	require.NoError(t, stream.Sync(t.Context()))
	got := make([]float64, 1)
	require.NoError(t, runtime.Read(t.Context(), args[2].(*runtime.Buffer), got))
	return got[0]
}

// Layouts that are not valid are refused, and others are simplified.
func TestLayout(t *testing.T) {
	m, err := New(Input(0, F32))
	require.NoError(t, err)
	l, err := m.Layout(Layout{Dims: []int{2, 1, 3, 4}, Operands: []Operand{Rows(2, 1, 3, 4), Rows(2, 1, 3, 4)}})
	require.NoError(t, err)
	assert.Equal(t, []int{24}, l.Dims)
	assert.Equal(t, 0, l.Rank())
	for want, l := range map[string]Layout{
		"1 operands":     {Dims: []int{3}, Operands: []Operand{Rows(3)}},
		"2 steps":        {Dims: []int{3}, Operands: []Operand{Rows(3), Rows(3, 1)}},
		"length -1":      {Dims: []int{-1}, Operands: []Operand{Rows(3), Rows(3)}},
		"in front":       {Dims: []int{3}, Operands: []Operand{{Steps: []int{-1}}, Rows(3)}},
		"may be one":     {Dims: []int{3, 3}, Operands: []Operand{Rows(3, 3), {Steps: []int{2, 1}}}},
		"more elements":  {Dims: []int{1 << 40, 1 << 40}, Operands: []Operand{Rows(1, 1), Rows(1, 1)}},
		"beyond what an": {Dims: []int{1 << 40}, Operands: []Operand{{Steps: []int{1 << 40}}, Rows(1)}},
		"cannot be joined": {Dims: []int{2, 2, 2, 2, 2, 2, 2, 2, 2}, Operands: []Operand{
			{Steps: []int{1, 2, 4, 8, 16, 32, 64, 128, 256}}, Rows(2, 2, 2, 2, 2, 2, 2, 2, 2)}},
		"may be one of its": {Dims: []int{3}, Operands: []Operand{Rows(3), {Steps: []int{0}}}},
	} {
		_, err := m.Layout(l)
		if assert.ErrorIs(t, err, ErrInvalid, want) {
			assert.ErrorContains(t, err, want)
		}
	}
	// Dimensions lie as in most operands, and as they are given where it is the same.
	turned := Operand{Steps: []int{1, 3, 3}}
	m, err = New(Input(0, F32).Add(Input(1, F32)))
	require.NoError(t, err)
	l, err = m.Layout(Layout{Dims: []int{3, 1, 4}, Operands: []Operand{turned, turned, turned}})
	require.NoError(t, err)
	assert.Equal(t, 0, l.Rank())
	l, err = m.Layout(Layout{Dims: []int{3, 1, 4}, Operands: []Operand{turned, turned, Rows(3, 1, 4)}})
	require.NoError(t, err)
	assert.Equal(t, []int{4, 3}, l.Dims)
	assert.Equal(t, []int{1, 4}, l.Operands[2].Steps)
	l, err = m.Layout(Layout{Dims: []int{3, 1, 4}, Operands: []Operand{turned, {Steps: []int{0, 0, 1}}, Rows(3, 1, 4)}})
	require.NoError(t, err)
	assert.Equal(t, []int{3, 4}, l.Dims)
	m, err = New(Input(0, F32).Sum(), Input(0, F32).Sub(Input(0, F32).Largest()))
	require.NoError(t, err)
	l, err = m.Layout(Layout{Dims: []int{2, 3, 1, 4}, Operands: []Operand{Rows(2, 3, 1, 4), {Steps: []int{3, 1, 7, 0}},
		Rows(2, 3, 1, 4)}})
	require.NoError(t, err)
	assert.Equal(t, []int{6, 4}, l.Dims)
	assert.Equal(t, []int{1, 0}, l.Operands[1].Steps)
	_, err = m.Unit(nil, 0)
	assert.ErrorIs(t, err, ErrInvalid)
	for want, l := range map[string]Layout{
		"no dimension": {Operands: []Operand{{}, {}, {}}},
		"the step 1":   {Dims: []int{2, 3}, Operands: []Operand{Rows(2, 3), Rows(2, 3), Rows(2, 3)}},
		"may be one":   {Dims: []int{2, 3}, Operands: []Operand{Rows(2, 3), {Steps: []int{0, 0}}, Rows(2, 3)}},
		"more elements": {Dims: []int{1 << 62, 0, 4}, Operands: []Operand{Rows(1, 1, 1), {Steps: []int{1, 0, 0}},
			Rows(1, 1, 1)}},
	} {
		_, err := m.Layout(l)
		if assert.ErrorIs(t, err, ErrInvalid, want) {
			assert.ErrorContains(t, err, want)
		}
	}
	// What most operands step through downwards is turned around; what then is dense has no dimensions.
	m, err = New(Input(0, F32).Add(Input(1, F32)))
	require.NoError(t, err)
	down, up := Operand{First: 3, Steps: []int{4, -1}}, Rows(3, 4)
	l, err = m.Layout(Layout{Dims: []int{3, 4}, Operands: []Operand{down, down, down}})
	require.NoError(t, err)
	assert.Equal(t, 0, l.Rank())
	assert.Equal(t, []int{4, -1}, down.Steps) // what was given stays
	l, err = m.Layout(Layout{Dims: []int{3, 4}, Operands: []Operand{down, up, down}})
	require.NoError(t, err)
	assert.Equal(t, []Operand{up, down, up}, l.Operands)
	l, err = m.Layout(Layout{Dims: []int{3, 4}, Operands: []Operand{down, up, up}})
	require.NoError(t, err)
	assert.Equal(t, []Operand{down, up, up}, l.Operands)
	numbered, err := New(Input(0, F32).Add(Index().Cast(F32)))
	require.NoError(t, err)
	l, err = numbered.Layout(Layout{Dims: []int{3, 4}, Operands: []Operand{down, down}})
	require.NoError(t, err)
	assert.Equal(t, []Operand{down, down}, l.Operands)
	for _, first := range []int{0, math.MaxInt} {
		_, err = m.Layout(Layout{
			Dims: []int{2}, Operands: []Operand{{First: first, Steps: []int{math.MinInt}}, {First: first, Steps: []int{-1}},
				{First: 1, Steps: []int{-1}}}})
		assert.ErrorIs(t, err, ErrInvalid)
	}
	o, err := Rows(3, 1).Broadcast([]int{3, 1}, []int{2, 3, 4})
	require.NoError(t, err)
	assert.Equal(t, []int{0, 1, 0}, o.Steps)
	_, err = Rows(3).Broadcast([]int{3}, []int{4})
	assert.ErrorIs(t, err, ErrInvalid)
}

// Outputs may be inputs, also where one is stored before another is read.
func TestInPlace(t *testing.T) {
	a, b := Input(0, F32), Input(1, F32)
	for name, c := range map[string]struct {
		outputs []*Expr
		want    [2]float32
	}{
		"swap": {[]*Expr{b, a}, [2]float32{2, 1}},
		"sum":  {[]*Expr{a.Add(b), a}, [2]float32{3, 1}},
	} {
		m, err := New(c.outputs...)
		require.NoError(t, err)
		for _, kernels := range []string{"", "go"} {
			for _, n := range []int{Tile - 1, 3 * Tile} {
				s, err := runtime.New(runtime.Config{CPUKernels: kernels})
				require.NoError(t, err)
				dev, err := s.Open(t.Context(), "cpu:0")
				require.NoError(t, err)
				x, err := runtime.Upload(t.Context(), dev, slices.Repeat([]float32{1}, n))
				require.NoError(t, err)
				y, err := runtime.Upload(t.Context(), dev, slices.Repeat([]float32{2}, n))
				require.NoError(t, err)
				u, err := m.Unit(dev.Features(), 0)
				require.NoError(t, err)
				p, err := dev.Program(t.Context(), u)
				require.NoError(t, err)
				k, err := p.Kernel(Kernel)
				require.NoError(t, err)
				stream, err := dev.NewStream()
				require.NoError(t, err)
				require.NoError(t, stream.Launch(k, runtime.Items(n), x, y, x, y, uint64(n)))
				require.NoError(t, stream.Sync(t.Context()))
				for i, buf := range []*runtime.Buffer{x, y} {
					got := make([]float32, n)
					require.NoError(t, runtime.Read(t.Context(), buf, got))
					assert.Equal(t, slices.Repeat([]float32{c.want[i]}, n), got, "%s %q n=%d", name, kernels, n)
				}
				require.NoError(t, stream.Launch(k, runtime.Items(1), x, y, x, y, uint64(1)<<63))
				assert.ErrorIs(t, stream.Sync(t.Context()), runtime.ErrInvalidArgument)
				for _, c := range []interface{ Close() error }{stream, p, x, y, dev, s} {
					_ = c.Close()
				}
			}
		}
	}
}

// An output of a map with reductions may be an input too: what is stored when elements are visited for a sum is
// not read again, by rows or by columns.
func TestInPlaceWithSums(t *testing.T) {
	a, b := Input(0, F32), Input(1, F32)
	m, err := New(a.Sub(b), b, Apply(Sum, a.Add(b)), Apply(Largest, b))
	require.NoError(t, err)
	for _, set := range []string{"", "go"} {
		s, err := runtime.New(runtime.Config{CPUKernels: set})
		require.NoError(t, err)
		dev, err := s.Open(t.Context(), "cpu:0")
		require.NoError(t, err)
		for _, c := range []struct {
			rows, n int
			columns bool
		}{{3, 100, false}, {2, 2*32768 + 5, false}, {700, 3, false}, {64, 300, true}, {8193, 2, true}, {5, 1, true}} {
			step := []int{c.n, 1}
			if c.columns {
				step = []int{1, c.rows}
			}
			l := Layout{Dims: []int{c.rows, c.n}, Operands: []Operand{{Steps: step}, {Steps: step}, {Steps: step}, {Steps: step},
				{Steps: []int{1, 0}}, {Steps: []int{1, 0}}}}
			l, err := m.Layout(l)
			require.NoError(t, err)
			u, err := m.Unit(dev.Features(), l.Rank())
			require.NoError(t, err)
			p, err := dev.Program(t.Context(), u)
			require.NoError(t, err)
			name, size := m.Entry(&l)
			k, err := p.Kernel(name)
			require.NoError(t, err)
			items, group, err := kernels.Geometry(u, name, size)
			require.NoError(t, err)
			xs, ys := make([]float32, c.rows*c.n), make([]float32, c.rows*c.n)
			for i := range xs {
				xs[i], ys[i] = float32(i%17), float32(i%5)-2
			}
			x, err := runtime.Upload(t.Context(), dev, xs)
			require.NoError(t, err)
			y, err := runtime.Upload(t.Context(), dev, ys)
			require.NoError(t, err)
			sums, err := runtime.Upload(t.Context(), dev, make([]float32, c.rows))
			require.NoError(t, err)
			most, err := runtime.Upload(t.Context(), dev, make([]float32, c.rows))
			require.NoError(t, err)
			stream, err := dev.NewStream()
			require.NoError(t, err)
			require.NoError(t, stream.Launch(k, runtime.Grid{Items: items, Group: group}, x, y, x, y, sums, most, l.Argument()))
			require.NoError(t, stream.Sync(t.Context()))
			got := make([]float32, len(xs))
			require.NoError(t, runtime.Read(t.Context(), x, got))
			sum, largest := make([]float32, c.rows), slices.Repeat([]float32{-9}, c.rows)
			for i := range xs {
				require.Equal(t, xs[i]-ys[i], got[i], "%+v: element %d", c, i)
				row := i / c.n
				if c.columns {
					row = i % c.rows
				}
				sum[row], largest[row] = sum[row]+xs[i]+ys[i], max(largest[row], ys[i])
			}
			require.NoError(t, runtime.Read(t.Context(), y, got))
			require.Equal(t, ys, got, "%+v", c)
			for buf, want := range map[*runtime.Buffer][]float32{sums: sum, most: largest} {
				got := make([]float32, c.rows)
				require.NoError(t, runtime.Read(t.Context(), buf, got))
				require.Equal(t, want, got, "%+v %q", c, set) // whole numbers, whose sums are exact
			}
			for _, c := range []interface{ Close() error }{stream, p, x, y, sums, most} {
				_ = c.Close()
			}
		}
		_ = dev.Close()
		_ = s.Close()
	}
}

// A map with more numbers than registers runs without a compiler, and one with many on little of a thread's stack.
func TestManyNumbers(t *testing.T) {
	for _, count := range []int{100, 300} {
		e := Input(0, F64)
		for i := range count {
			e = e.Add(Float(F64, float64(i)+0.5))
		}
		m, err := New(e)
		require.NoError(t, err)
		l, err := m.Layout(Layout{Dims: []int{2000}, Operands: []Operand{Rows(2000), Rows(2000)}})
		require.NoError(t, err)
		c := m.Case("many", l, []func() []float64{kernels.Uniform("f64", 2000, 1, 0, 1)}, nil)
		results, err := parity.Run(t.Context(), parity.Options{Devices: []string{"cpu:0"}, Cases: []kernels.Case{c}})
		require.NoError(t, err)
		require.NotEmpty(t, results)
		assert.Equal(t, parity.Pass, results[0].Verdict, results[0].Reason)
	}
}

// What was found wrong once.
func TestValues(t *testing.T) {
	eval := func(e *Expr, inputs ...float64) Value {
		m, err := New(e)
		require.NoError(t, err)
		var in []Value
		for _, x := range inputs {
			in = append(in, Value{Float: x})
		}
		return m.Eval(in, nil, 0)[0]
	}
	x, y, z := Input(0, F32), Input(1, F32), Input(2, F32)
	assert.Equal(t, 1+0x1p-23, eval(Apply(FMA, x, y, z), 97, 172961*0x1p-24, 0x1p-80).Float, "rounded once")
	assert.Equal(t, math.Inf(1), eval(Apply(Rem, x, y), 1, 0x1p-140).Bound, "the divisor may be zero")
	v, w := Input(0, F64), Input(1, F64)
	assert.Equal(t, -math.Pi, eval(Apply(Atan2, v, w), -2.2e-308, -math.MaxFloat64).Float)
	p := eval(v.Pow(w), math.MaxFloat64, -0.3723146739171026)
	assert.InDelta(t, 1.70704941427904608e-115, p.Float, p.Bound)
	gradient := Gradient(Apply(Rem, x, y), x.Number(1), y)[0]
	assert.Equal(t, -8.0, eval(gradient.Add(x.Sub(x)), float64(float32(0.89999998)), float64(float32(0.1))).Float)
	e := x.Mul(y)
	assert.Equal(t, 1.0, eval(Gradient(e.Output(F16), x.Number(1), e)[0]).Float)
	for _, wrong := range []*Expr{Int(I32, 0).Number(1.5), Int(U8, 0).Number(300), Int(I32, 0).Number(math.NaN()),
		Random(nil, 0, 0),
		Apply(Add, &Expr{}, x), Gradient(x, nil, x)[0]} {
		assert.ErrorIs(t, wrong.Err(), ErrInvalid)
	}
	assert.Equal(t, "const.u64.d02ab486cedc0000;out.u64.0", func() string {
		m, _ := New(Int(U64, 0).Number(1.5e19))
		return m.String()
	}())
	_, err := New(&Expr{})
	assert.ErrorIs(t, err, ErrInvalid)
	m, err := New(v)
	require.NoError(t, err)
	_, err = m.Unit(&source.Features{}, 0)
	assert.ErrorContains(t, err, "double precision")
}

// The reference, whose functions block programs in Go have too, is right where package math is not: among
// denormal numbers, near the ends of the range, near multiples of π/2.
func TestLimits(t *testing.T) {
	x, y := Input(0, F64), Input(1, F64)
	for _, c := range []struct {
		e          *Expr
		x, y, want float64
	}{
		{x.Log(), 5e-324, 0, -744.4400719213812}, {x.Log(), 1e-310, 0, -713.8013788281542},
		{x.Exp(), 709.5744502375717, 0, 1.4597155608516412e308},
		{Apply(Expm1, x), 709.782712893384, 0, 1.7976931348622732e308},
		{Apply(Sinh, x), -710, 0, -1.1169973830808555e308}, {Apply(Cosh, x), 710, 0, 1.1169973830808555e308},
		{Apply(Sin, x), math.Pi, 0, 1.2246467991473532e-16},
		{Apply(Cos, x), 5.319372648326541e255, 0, -4.687165924254628e-19},
		{Apply(Tan, x), math.Pi / 2, 0, 1.633123935319537e16}, {Apply(Sigmoid, x), -710, 0, 4.47628622567513e-309},
		{Apply(GELU, x), -36, 0, -1.505744663687022e-282}, {x.Pow(y), 0.6362928641485426, 1022, 2.1752437521546628e-201},
		{x.Pow(y), 1e-310, 0.25, 3.162277660168377e-78},
	} {
		m, err := New(c.e)
		require.NoError(t, err)
		ulps := 2 * 0x1p-52 * math.Abs(c.want)
		assert.InDelta(t, c.want, m.Eval([]Value{{Float: c.x}, {Float: c.y}}, nil, 0)[0].Float, ulps, "%s of %v", m, c.x)
	}
}

func TestReplace(t *testing.T) {
	x, y := Input(0, F32), Input(1, F32)
	e := x.Mul(y).Add(x.Exp())
	sum := Input(0, F32).Add(Input(1, F32))
	m, err := New(e.Replace(sum, Float(F32, 2)))
	require.NoError(t, err)
	want, err := New(sum.Mul(Float(F32, 2)).Add(sum.Exp()))
	require.NoError(t, err)
	assert.Equal(t, want.String(), m.String())
	assert.Same(t, e, e.Replace(), "nothing is replaced")
	m, err = New(e.Replace(nil, x))
	require.NoError(t, err)
	want, err = New(x.Mul(x).Add(x.Exp()))
	require.NoError(t, err)
	assert.Equal(t, want.String(), m.String())
	require.ErrorIs(t, e.Replace(Int(I32, 1)).Err(), ErrInvalid)
	assert.Equal(t, map[Op]int{Mul: 1, Add: 1, Exp: 1}, e.Operations())
	assert.False(t, e.Indexed())
	assert.True(t, Index().Cast(F32).Add(x).Indexed())
}

func TestInputOfTruths(t *testing.T) {
	b := Input(0, Bool)
	assert.Equal(t, Bool, b.Type())
	m, err := New(b.Select(Input(1, F32), Float(F32, -1)), b)
	require.NoError(t, err)
	assert.Equal(t, []Type{U8, F32}, m.Inputs())
	assert.Equal(t, []Type{F32, U8}, m.Outputs())
	for _, u := range []uint64{0, 1, 255} {
		got := m.Eval([]Value{{Int: u}, {Float: 3}}, nil, 0)
		want := []float64{-1, 0}
		if u != 0 {
			want = []float64{3, 1}
		}
		assert.Equal(t, want, []float64{got[0].Float, float64(got[1].Int)})
	}
}

// TestRoundedOnce: a cast to 16 bits rounds once on every evaluator, also between denormal numbers, and an explicit
// cast to F32 before it rounds there, too.
func TestRoundedOnce(t *testing.T) {
	list := []float64{0x1p-134 + 0x1p-200, -0x1p-134 - 0x1p-180, 0x1p-134, 0x1.8p-133 + 0x1p-170, 1 + 0x1p-11 + 0x1p-40,
		1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-11, 65519.999999, 65520, 3.4e38, 3.396e38, 1e300, 0x1p-25 + 0x1p-60, 0x1p-25, 0,
		math.Copysign(0, -1), math.Inf(-1), math.NaN(), 16842753, 2147483647}
	for _, to := range []Type{F16, BF16} {
		once, twice := Input(0, F64).Cast(to).Output(to), Input(0, F64).Cast(F32).Cast(to).Output(to)
		for i, e := range []*Expr{once, twice} {
			m, err := New(e)
			require.NoError(t, err)
			b, err := m.Block()
			require.NoError(t, err)
			memory := [][]byte{kernels.Encode("f64", list), make([]byte, 2*len(list))}
			l := Layout{Dims: []int{len(list)}, Operands: []Operand{Rows(len(list)), Rows(len(list))}}
			b.Run(&l, memory, nil, 0, len(list))
			for j, x := range list {
				if i == 1 {
					x = float64(float32(x))
				}
				want := kernels.Encode(to.String(), []float64{x})
				assert.Equal(t, want, memory[1][2*j:2*j+2], "%v of %b", m, x)
			}
		}
	}
}
