package expr

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// step returns an expression of an optimizer with some of its numbers.
func step(rate, decay float64) *Expr {
	w, g, m := Input(0, F32), Input(1, F32), Input(2, F32)
	m = m.Mul(w.Number(decay)).Add(g.Mul(w.Number(1 - decay)))
	return w.Sub(m.Mul(w.Number(rate)).Mul(w.Number(2))).Mul(w.Number(1)).Output(F16)
}

// Expressions that differ in numbers alone have one map, whatever the numbers are.
func TestParametersAreOneMap(t *testing.T) {
	r := rand.New(rand.NewPCG(34, 16))
	forms := map[string]bool{}
	for range 200 {
		rate, decay := r.Float64(), 0.6+0.3*r.Float64()
		list, values := Parameters(step(rate, decay))
		require.ElementsMatch(t, []any{float32(decay), float32(1 - decay), float32(rate)}, values)
		m, err := New(list...)
		require.NoError(t, err)
		assert.Equal(t, []Type{F16}, m.Outputs())
		forms[m.String()] = true
		// The parameters have the effect of the numbers.
		literal, err := New(step(rate, decay))
		require.NoError(t, err)
		var params []Value
		for _, v := range values {
			params = append(params, Value{Float: float64(v.(float32))})
		}
		in := []Value{{Float: 0.5}, {Float: -3}, {Float: 2}}
		require.InDelta(t, literal.Eval(in, nil, 0)[0].Float, m.Eval(in, params, 0)[0].Float, 1e-6)
	}
	assert.Len(t, forms, 1)
}

func TestParameters(t *testing.T) {
	x, i, u := Input(0, F32), Input(0, I64), Input(0, U8)
	ints := func(n int64) *Expr { return Int(I64, n) }
	for name, c := range map[string]struct {
		e      *Expr
		values []any
	}{
		"simple numbers":   {x.Mul(x.Number(2)).Add(x.Number(0.5)).Sub(x.Number(0)).Max(x.Number(math.Inf(-1))), nil},
		"one twice":        {x.Mul(x.Number(0.3)).Add(x.Number(0.3)), []any{float32(0.3)}},
		"folded":           {x.Mul(x.Number(3).Mul(x.Number(0.25))), []any{float32(0.75)}},
		"integers":         {i.Mul(ints(1000)).Add(ints(2)), []any{int64(1000)}},
		"divisors":         {Apply(Rem, i.Div(ints(1000)), ints(77)), nil},
		"shifts":           {Apply(Shl, i, ints(7)), nil},
		"a number divided": {ints(1000).Div(i), []any{int64(1000)}},
		"bytes":            {u.Add(Int(U8, 200)), []any{uint8(200)}},
		"an output alone":  {Float(F64, 0.1).Output(F64), []any{0.1}},
		"of no use":        {Int(I64, 0).Mul(i).Add(ints(9)).Output(I64), []any{int64(9)}},
		"parameters":       {x.Mul(Param(0, F32)).Add(x.Number(7)), nil},
		"truths":           {Apply(Or, Input(0, Bool), Int(Bool, 1)), nil},
	} {
		list, values := Parameters(c.e)
		assert.Equal(t, c.values, values, name)
		m, err := New(list...)
		require.NoError(t, err, name)
		if len(c.values) > 0 {
			assert.Len(t, m.Params(), len(values), name)
		}
	}
	many := x
	for k := range 40 {
		many = many.Mul(x.Number(3 + float64(k))).Sub(x)
	}
	list, values := Parameters(many)
	assert.Len(t, values, mostShared)
	_, err := New(list...)
	require.NoError(t, err)
	list, values = Parameters(x.Add(i), nil)
	assert.Nil(t, values)
	assert.Len(t, list, 2)
}
