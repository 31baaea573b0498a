package tensor

// Small graphs that were once planned or computed wrongly, which tests/tensors has found.

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// unfused is a scope in which each operation is a kernel of its own.
func unfused(t testing.TB) *Scope {
	session, err := runtime.New(runtime.Config{NoFusion: true})
	require.NoError(t, err)
	dev, err := session.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	s := NewScope(dev)
	t.Cleanup(func() {
		assert.NoError(t, s.Close())
		assert.NoError(t, dev.Close())
		assert.NoError(t, session.Close())
	})
	return s
}

// A reshape whose dimensions do not divide those before it is a view of what lies in order, also where a kernel cannot
// walk it.
func TestReshapeOfDense(t *testing.T) {
	for _, s := range []*Scope{scope(t), unfused(t)} {
		x := From(s, numbers(14), 2, 7)
		y := x.Reshape(7, 2)
		assert.Equal(t, []float32{1, 5, 9, 13, 17, 21, 25}, values[float32](t, y.Sum(1)))
		assert.Equal(t, append(numbers(14), numbers(14)...), values[float32](t, y.Expand(2, 7, 2)))
		assert.Equal(t, numbers(14), values[float32](t, y))
		assert.Equal(t, []float32{0, 1, 2, 7, 8, 9}, values[float32](t, x.Slice(All, Range{0, 3, 1}).Reshape(3, 2)),
			"a copy is needed")
		assert.Empty(t, values[float32](t, x.Slice(Range{0, 0, 1}).Reshape(3, 0).Add(1)))
		flipped := x.Flip(1) // once computed, it is a view of x, which a reshape has to copy
		require.NoError(t, Eval(t.Context(), flipped))
		assert.Equal(t, []float32{11, 7, 3}, values[float32](t, flipped.Reshape(7, 2).Sum(1).Slice(Range{0, 3, 1})))
		assert.Equal(t, []float32{6, 5, 4, 3, 2, 1, 0, 13, 12, 11, 10, 9, 8, 7}, values[float32](t, flipped.Reshape(7, 2)))
	}
}

// A softmax over rows of which each is two dimensions of what it reads, one of them stretched.
func TestRowsOfSeveralDimensions(t *testing.T) {
	for _, s := range []*Scope{scope(t), unfused(t)} {
		x := From(s, []float32{0, 1, 2, 0}, 2, 2).Expand(3, 2, 2).Reshape(6, 2)
		e, f := float32(math.Exp(-2)), float32(math.Exp(-1))
		a, b, c, d := e/(3+3*e), 1/(3+3*f), 1/(3+3*e), f/(3+3*f)
		assert.InDeltaSlice(t, []float32{a, b, c, d, a, b, c, d, a, b, c, d}, values[float32](t, x.Softmax(0)), 1e-6)
	}
}

// Products of unsigned integers wrap, also those with the highest bit set.
func TestProductOfUnsigned(t *testing.T) {
	s := scope(t)
	assert.Equal(t, []uint64{
		1<<63 + 3}, values[uint64](t, From(s, []uint64{1<<63 + 1}, 1).MatMul(From(s, []uint64{3}, 1))))
	assert.Equal(t, []uint32{
		1<<31 + 3}, values[uint32](t, From(s, []uint32{1<<31 + 1}, 1).MatMul(From(s, []uint32{3}, 1))))
}

// An expression with more inputs, outputs and reductions than a kernel has is divided: many reductions of one tensor.
func TestManyReductions(t *testing.T) {
	for _, s := range []*Scope{scope(t), unfused(t)} {
		x := From(s, numbers(6), 2, 3)
		y := x.Sum(1)
		for i := range 40 {
			y = y.Add(x.Mul(i).Square().Max(1))
		}
		assert.Equal(t, []float32{3 + 4*20540, 12 + 25*20540}, values[float32](t, y))
	}
}

// A chain that is longer than a kernel becomes few kernels, of which each but the last has a good part of what
// a kernel may have.
func TestChainIsDivided(t *testing.T) {
	s := scope(t)
	chain, sums, n := From(s, numbers(2)), From(s, numbers(2)), 1000
	for range n {
		chain = chain.Add(0.5)
		sums = sums.Add(From(s, numbers(2)))
	}
	assert.LessOrEqual(t, len(tasks(t, chain)), 1+n/(mostOperations*3/4))
	assert.LessOrEqual(t, len(tasks(t, sums)), 1+n/(mostInputs-2))
	assert.Equal(t, []float32{500, 501}, values[float32](t, chain))
	assert.Equal(t, []float32{0, 1001}, values[float32](t, sums))
}

// Triangles and diagonal matrices of truths are truths.
func TestTrianglesOfTruths(t *testing.T) {
	s := scope(t)
	x := Full(s, Bool, true, 2, 2)
	assert.Equal(t, []bool{true, false, true, true}, values[bool](t, x.Tril(0)))
	assert.Equal(t, []bool{true, true, false, true}, values[bool](t, x.Triu(0)))
	assert.Equal(t, []bool{true, false, false, true}, values[bool](t, Full(s, Bool, true, 2).Diag()))
}

// A number that a function makes is computed once, not for each element that it is stretched to.
func TestOneNumberIsComputedOnce(t *testing.T) {
	s := scope(t)
	step, x := Full(s, F32, 3), gaussian(s, 1, 1, 2*manyTimes.Default)
	require.NoError(t, Eval(t.Context(), step, x))
	y := x.Mul(step.Log().Expm1().Add(1))
	assert.Len(t, tasks(t, y), 2)
	assert.Len(t, tasks(t, x.Narrow(0, 0, 8).Mul(step.Exp())), 1, "of few elements it is not worth a kernel")
	got, err := Read[float32](t.Context(), y)
	require.NoError(t, err)
	xs, err := Read[float32](t.Context(), x)
	require.NoError(t, err)
	assert.InDelta(t, 3*xs[77], got[77], 1e-5)
}

// A product that only a concatenation reads is computed into its place.
func TestProductsAreComputedIntoTheirPlaces(t *testing.T) {
	s := scope(t)
	a, b, c := gaussian(s, 1, 1, 5, 7), gaussian(s, 2, 1, 7, 3), gaussian(s, 3, 1, 4)
	require.NoError(t, Eval(t.Context(), a, b, c))
	p := a.MatMul(b)
	whole := Concat(0, c.Neg(), p.Flatten(), b.T().MatMul(a.T()).Flatten())
	assert.Len(t, tasks(t, whole), 3)
	assert.Len(t, tasks(t, whole, p), 4, "a product that was asked for has a place of its own")
	assert.Len(t, tasks(t, Concat(1, p, p.Neg())), 3, "nor one with other readers, or between other elements")
	padded := a.MatMul(b).Flatten().Pad(7, [2]int{2, 3})
	edge, err := Read[float32](t.Context(), padded)
	require.NoError(t, err)
	got, err := Read[float32](t.Context(), whole)
	require.NoError(t, err)
	want, err := Read[float32](t.Context(), p)
	require.NoError(t, err)
	assert.Equal(t, want, got[4:19])
	assert.Equal(t, append(append([]float32{7, 7}, want...), 7, 7, 7), edge)
	f := Compile(s, func(a ...*Tensor) []*Tensor {
		return []*Tensor{Concat(0, a[2].Neg(), a[0].MatMul(a[1]).Flatten(), a[1].T().MatMul(a[0].T()).Flatten())}
	})
	for range 3 {
		out, err := f.Call(t.Context(), a, b, c)
		require.NoError(t, err)
		again, err := Read[float32](t.Context(), out[0])
		require.NoError(t, err)
		assert.Equal(t, got, again)
	}
}

// Results that are computed from the same elements are computed by one kernel, also where none is made of another.
func TestResultsOfTheSameElementsAreOneKernel(t *testing.T) {
	s := scope(t)
	n := manyTimes.Default
	w, m, g := gaussian(s, 1, 1, n), gaussian(s, 2, 1, n), gaussian(s, 3, 1, n)
	require.NoError(t, Eval(t.Context(), w, m, g))
	next := m.Mul(0.9).Add(g)
	limit := next.Clamp(-1, 1)
	step := w.Sub(next.Mul(0.1))
	assert.Len(t, tasks(t, step, limit), 1)
	assert.Len(t, tasks(t, step, limit, g.Sum().Add(g)), 2, "but not where one needs a sum of all")
	require.NoError(t, Eval(t.Context(), step, limit))
	ws, err := Read[float32](t.Context(), w)
	require.NoError(t, err)
	gs, err := Read[float32](t.Context(), g)
	require.NoError(t, err)
	ms, err := Read[float32](t.Context(), m)
	require.NoError(t, err)
	got, err := Read[float32](t.Context(), step)
	require.NoError(t, err)
	clamped, err := Read[float32](t.Context(), limit)
	require.NoError(t, err)
	for i := range got {
		v := ms[i]*0.9 + gs[i]
		assert.InDelta(t, ws[i]-0.1*v, got[i], 1e-5)
		assert.InDelta(t, min(max(v, -1), 1), clamped[i], 1e-5)
	}
}
