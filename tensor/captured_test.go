package tensor

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// What a compiled function takes from around it is computed once, not in each call.
func TestCapturedIsComputedOnce(t *testing.T) {
	s := scope(t)
	w, x := gaussian(s, 1, 1, 300, 200), gaussian(s, 2, 1, 1, 200)
	for name, c := range map[string]struct {
		around *Tensor
		f      func(x, around *Tensor) *Tensor
	}{
		"transposed weights": {w.T().Copy(), (*Tensor).matMul},
		"a product":          {w.T().MatMul(w), (*Tensor).matMul},
		"a function":         {w.Slice(Range{0, 200, 1}).Exp(), (*Tensor).matMul},
		"a reduction":        {w.Square().Sum(0), func(x, y *Tensor) *Tensor { return x.Mul(y) }},
		"positions":          {Iota(s, F32, 200, 200).Sin(), (*Tensor).matMul},
		"a sorted tensor":    {first(w.Sort(1, false)).T(), (*Tensor).matMul},
		"the result itself":  {w.Exp(), func(_, y *Tensor) *Tensor { return y }},
		"a view of a result": {w.MatMul(w.T()).Narrow(0, 0, 200), (*Tensor).matMul},
	} {
		want := values[float32](t, c.f(x, c.around.StopGradient()))
		f := Compile(s, func(a ...*Tensor) []*Tensor { return []*Tensor{c.f(a[0], c.around)} })
		p, err := f.Plan(t.Context(), x)
		require.NoError(t, err)
		assert.Len(t, p.Tasks, 1, "%s:\n%v", name, p)
		for range 3 {
			before := s.Device().Stats().Launches
			out, err := f.Call(t.Context(), x)
			require.NoError(t, err)
			assert.Equal(t, before+1, s.Device().Stats().Launches, name)
			assert.InDeltaSlice(t, want, values[float32](t, out[0]), 1e-3, name)
		}
		require.NotNil(t, c.around.data, name)
		require.NoError(t, f.Close())
	}
}

func (t *Tensor) matMul(x *Tensor) *Tensor { return t.MatMul(x) }

func first(a, _ *Tensor) *Tensor { return a }

// A number that is stretched needs no memory, and a function's own operations are not computed before its calls.
func TestCapturedNumbers(t *testing.T) {
	s := scope(t)
	x, ones := gaussian(s, 3, 1, 50, 100), Ones(s, F64, 1).Cast(F32).Expand(50, 100)
	f := Compile(s, func(a ...*Tensor) []*Tensor {
		y := a[0].Mul(ones).Exp()
		return []*Tensor{y, Grad(y.Sum(), a[0])[0]}
	})
	out, err := f.Call(t.Context(), x)
	require.NoError(t, err)
	assert.Nil(t, ones.data)
	assert.Equal(t, values[float32](t, x.Exp()), values[float32](t, out[0]))
	assert.Equal(t, values[float32](t, x.Exp()), values[float32](t, out[1]))
}

// What is large but a stretch or a simple function of indexes is not stored: only what it is made of is.
func TestCapturedStretchesTakeNoMemory(t *testing.T) {
	s := scope(t)
	w, few := From(s, []float32{1, 2, 3, 4}), From(s, []int64{7})
	for name, around := range map[string]*Tensor{
		"stretched":               w.Mul(2).Reshape(4, 1, 1).Expand(4, 1000, 1000),
		"a function of stretched": w.Mul(2).Reshape(4, 1, 1).Expand(4, 1000, 1000).Add(1),
		"a causal mask":           Iota(s, I64, 2048, 1).Ge(Iota(s, I64, 2048)),
		"a mask by a length":      Iota(s, I64, 2048, 1).Ge(Iota(s, I64, 2048)).And(Iota(s, I64, 2048).Lt(few)),
	} {
		want := values[float32](t, around.Cast(F32).Sum(-1))
		x := Full(s, F32, 1)
		f := Compile(s, func(a ...*Tensor) []*Tensor { return []*Tensor{around.Cast(F32).Mul(a[0]).Sum(-1)} })
		before := s.Device().Stats().Live
		out, err := f.Call(t.Context(), x)
		require.NoError(t, err, name)
		assert.Nil(t, around.data, name)
		assert.Less(t, s.Device().Stats().Live-before, int64(1<<20), name)
		assert.InEpsilonSlice(t, want, values[float32](t, out[0]), 1e-5, name)
		require.NoError(t, f.Close())
	}
}

// Gradients pass through what was computed when a function was traced.
func TestCapturedHasGradient(t *testing.T) {
	s := scope(t)
	w := From(s, []float64{1, 2, 3})
	e := w.Exp()
	f := Compile(s, func(a ...*Tensor) []*Tensor { return Grad(a[0].Mul(e).Sum(), w) })
	for _, x := range []float64{2, 3} {
		out, err := f.Call(t.Context(), Full(s, F64, x, 3))
		require.NoError(t, err)
		assert.InDeltaSlice(t, []float64{x * math.E, x * math.Exp(2), x * math.Exp(3)}, values[float64](t, out[0]), 1e-12)
	}
}

// A nil context is an error wherever one is given, before anything is done.
func TestNilContext(t *testing.T) {
	s := scope(t)
	x := From(s, []float32{1, 2, 3})
	f := Compile(s, func(a ...*Tensor) []*Tensor { return []*Tensor{a[0].Exp()} })
	var none context.Context
	errs := map[string]error{"eval": Eval(none, x.Add(1)), "eval of nothing": Eval(none), "sync": x.Add(1).Sync(none),
		"npy":  SaveNPY(none, t.TempDir()+"/x", x),
		"save": Save(none, t.TempDir()+"/x", map[string]*Tensor{"x": x}, nil)}
	_, errs["read"] = Read[float32](none, x)
	_, errs["number"] = Number(none, x.Sum())
	_, errs["keep"] = x.Add(1).Keep(none)
	_, errs["call"] = f.Call(none, x)
	_, errs["call donating"] = f.CallDonating(none, []bool{true}, x)
	_, _, errs["call owned"] = f.CallOwned(none, nil, x)
	_, errs["plan"] = f.Plan(none, x)
	other := scope(t)
	_, errs["to"] = x.To(none, other)
	for name, err := range errs {
		assert.ErrorIs(t, err, runtime.ErrInvalidArgument, name)
		assert.ErrorContains(t, err, "context is nil", name)
	}
	assert.Equal(t, []float32{1, 2, 3}, values[float32](t, x))
}
