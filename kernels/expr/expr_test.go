package expr_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/kernels"
	. "github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime/parity"
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
		"values are not":    v.Cast(F16),
		"an output of type": v.Output(I8),
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
	for _, text := range []string{"", "out", "input.f32.0", "input.f32.0;out.f32.1", "input.f32.99;out.f32.0", "input.f32.0;add.f32.0;out.f32.1",
		"const.f32.;out.f32.0", "const.f32.zz;out.f32.0", "input.f32.0;sin.f64.0;out.f64.1", "input.f32.0;input.f32.0;out.f32.1"} {
		_, err := Parse(text)
		assert.ErrorIs(t, err, ErrInvalid, text)
	}
}

// Philox agrees with the known answers of its authors' Random123 (kat_vectors: philox4x32 10).
func TestPhilox(t *testing.T) {
	m, err := New(Random(Param(0, U64), 0, 0), Random(Param(0, U64), 0, 1), Random(Param(0, U64), 0, 2), Random(Param(0, U64), 0, 3))
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

// Layouts that are not valid are refused, and others are simplified.
func TestLayout(t *testing.T) {
	m, err := New(Input(0, F32))
	require.NoError(t, err)
	l, err := m.Layout(Layout{Dims: []int{2, 1, 3, 4}, Operands: []Operand{Rows(2, 1, 3, 4), Rows(2, 1, 3, 4)}})
	require.NoError(t, err)
	assert.Equal(t, []int{24}, l.Dims)
	assert.Equal(t, 0, l.Rank())
	for want, l := range map[string]Layout{
		"1 operands":        {Dims: []int{3}, Operands: []Operand{Rows(3)}},
		"2 steps":           {Dims: []int{3}, Operands: []Operand{Rows(3), Rows(3, 1)}},
		"length -1":         {Dims: []int{-1}, Operands: []Operand{Rows(3), Rows(3)}},
		"in front":          {Dims: []int{3}, Operands: []Operand{{Steps: []int{-1}}, Rows(3)}},
		"may be one":        {Dims: []int{3, 3}, Operands: []Operand{Rows(3, 3), {Steps: []int{2, 1}}}},
		"more elements":     {Dims: []int{1 << 40, 1 << 40}, Operands: []Operand{Rows(1, 1), Rows(1, 1)}},
		"beyond what an":    {Dims: []int{1 << 40}, Operands: []Operand{{Steps: []int{1 << 40}}, Rows(1)}},
		"cannot be joined":  {Dims: []int{2, 2, 2, 2, 2, 2, 2, 2, 2}, Operands: []Operand{{Steps: []int{1, 2, 4, 8, 16, 32, 64, 128, 256}}, Rows(2, 2, 2, 2, 2, 2, 2, 2, 2)}},
		"may be one of its": {Dims: []int{3}, Operands: []Operand{Rows(3), {Steps: []int{0}}}},
	} {
		_, err := m.Layout(l)
		if assert.ErrorIs(t, err, ErrInvalid, want) {
			assert.ErrorContains(t, err, want)
		}
	}
	o, err := Rows(3, 1).Broadcast([]int{3, 1}, []int{2, 3, 4})
	require.NoError(t, err)
	assert.Equal(t, []int{0, 1, 0}, o.Steps)
	_, err = Rows(3).Broadcast([]int{3}, []int{4})
	assert.ErrorIs(t, err, ErrInvalid)
}
