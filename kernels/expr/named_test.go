package expr_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	. "github.com/concord-compute/concord/kernels/expr"
)

// spelled has named operations of x, and the expressions that define them.
func spelled(x, n, epsilon *Expr) map[Op][2]*Expr {
	e := x.Sub(x.Largest()).Exp()
	scaled := func(e *Expr) *Expr { return e.Mul(Apply(Rsqrt, e.Mul(e).Sum().Div(n).Add(epsilon))) }
	return map[Op][2]*Expr{
		Softmax:      {x.Softmax(), e.Mul(e.Number(1).Div(e.Sum()))},
		Normalize:    {Apply(Normalize, x, n, epsilon), scaled(x.Sub(x.Sum().Div(n)))},
		RMSNormalize: {Apply(RMSNormalize, x, n, epsilon), scaled(x)},
	}
}

func newMap(t *testing.T, outputs ...*Expr) *Map {
	m, err := New(outputs...)
	require.NoError(t, err)
	return m
}

// The canonical form has named operations as one node, and all that is made of a map is what is made of its definition.
func TestNamedOperations(t *testing.T) {
	for _, typ := range []Type{F32, F64} {
		x, w := Input(0, typ), Input(1, typ)
		for _, arg := range []*Expr{x, x.Mul(w).Exp(), w.Softmax().Add(x), x.Softmax().Softmax()} {
			for op, f := range spelled(arg, Length().Cast(typ), Float(typ, 0.01)) {
				// Parts of the definition are among the other outputs.
				rest := []*Expr{arg.Sub(arg.Largest()).Exp(), arg.Sum().Add(w)}
				m, want := newMap(t, append(rest, f[0])...), newMap(t, append(rest, f[1])...)
				assert.Regexp(t, fmt.Sprintf(`;%v\.%v\.\d`, op, typ), m)
				assert.NotEqual(t, want.String(), m.String())
				parsed, err := Parse(m.String())
				require.NoError(t, err)
				for _, m := range []*Map{m, parsed} {
					assert.Equal(t, want.Inputs(), m.Inputs())
					assert.Equal(t, want.Text(1), m.Text(1))
					got, err := m.Steps()
					require.NoError(t, err)
					steps, err := want.Steps()
					require.NoError(t, err)
					require.Len(t, got, len(steps))
					for i := range got {
						assert.Equal(t, steps[i].Block, got[i].Block)
					}
				}
			}
		}
	}
	_, err := New(Int(I32, 1).Softmax())
	assert.ErrorIs(t, err, ErrInvalid)
	_, err = New(Input(0, F32).Normalize(Float(F64, 1)))
	assert.ErrorIs(t, err, ErrInvalid)
	_, err = New(Input(0, Bool).RMSNormalize(Float(F32, 1)))
	assert.ErrorIs(t, err, ErrInvalid)
	list := []*Expr{Input(0, F32)}
	for range 8 { // each has two reductions, of which a map has few
		list = append(list, list[len(list)-1].Softmax())
	}
	_, err = New(list...)
	assert.ErrorIs(t, err, ErrInvalid)
}

// Named finds definitions, and nothing else.
func TestNamed(t *testing.T) {
	x, w := Input(0, F32), Input(1, F32)
	n, epsilon := Float(F32, 70), Float(F32, 0.01)
	arg := x.Mul(w)
	for op, f := range spelled(arg, n, epsilon) {
		assert.Equal(t, newMap(t, f[0]).String(), newMap(t, f[1].Named(op)).String())
		for _, other := range []Op{0, Exp, Softmax, Normalize, RMSNormalize, RMSNormalize + 1, 255} {
			if other != op && other+op != Normalize+RMSNormalize { // the first one is the second one of x - m
				assert.Same(t, f[1], f[1].Named(other), "%v as %v", op, other)
			}
		}
	}
	e, far := arg.Sub(arg.Largest()).Exp(), x.Sub(w.Largest()).Exp()
	for _, f := range []*Expr{e, e.Mul(e.Number(2).Div(e.Sum())), far.Mul(far.Number(1).Div(far.Sum())),
		e.Mul(x.Number(1).Div(x.Sum())), e.Div(e.Sum()), new(Expr), Apply(Exp)} {
		assert.Same(t, f, f.Named(Softmax))
	}
	d := x.Sub(x.Sum().Div(n))
	f := d.Mul(Apply(Rsqrt, d.Mul(d).Sum().Div(Float(F32, 69)).Add(epsilon)))
	assert.Same(t, f, f.Named(Normalize), "two numbers of elements")
}

func TestMatch(t *testing.T) {
	x, y, p := Input(0, F32), Input(1, F32), Param(0, F32)
	pattern := x.Softmax().Mul(p).Add(y)
	a, b, half := Input(1, F32), Input(0, F32), Float(F32, 0.5)
	for _, e := range []*Expr{a.Softmax().Mul(half).Add(b), b.Add(half.Mul(a.Softmax()))} {
		found := newMap(t, e).Match(pattern)
		require.NotNil(t, found)
		assert.Equal(t, []int{1, 0}, found.Inputs)
		assert.Equal(t, 0.5, found.Number(0, &Launch{}))
	}
	found := newMap(t, a.Softmax().Mul(Param(0, F32)).Add(b)).Match(pattern)
	require.NotNil(t, found)
	assert.Equal(t, 2.0, found.Number(0, &Launch{Params: []uint64{0x40000000}}))
	found = newMap(t, a.Softmax().Mul(Length().Cast(F32)).Add(b)).Match(pattern)
	require.NotNil(t, found)
	assert.Equal(t, 7.0, found.Number(0, &Launch{Layout: Layout{Dims: []int{2, 7}}}))
	for _, outputs := range [][]*Expr{{a.Softmax().Mul(half).Sub(b)}, {a.Mul(half).Add(b)}, {a.Softmax().Mul(b).Add(b)},
		{a.Softmax().Mul(half).Add(b.Exp())}, {a.Softmax().Mul(half).Add(b).Output(F16)},
		{a.Softmax().Mul(half).Add(Input(0, F16))}, {a.Softmax().Mul(half).Add(b), b}} {
		assert.Nil(t, newMap(t, outputs...).Match(pattern))
	}
	same := Input(0, F32)
	square := newMap(t, same.Mul(same).Add(Float(F32, 1).Mul(Param(0, F32))))
	assert.NotNil(t, square.Match(x.Mul(x).Add(p)))
	assert.NotNil(t, square.Match(x.Mul(y).Add(p)), "two inputs of a pattern may be one of the map")
	assert.Nil(t, newMap(t, a.Mul(b).Add(Param(0, F32))).Match(x.Mul(x).Add(p)))
}
