package tensor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/kernels/expr"
)

// A number that changes from step to step, such as a learning rate, needs no new program.
func TestNumbersShareAProgram(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Scope) {
		w, g := gaussian(s, 1, 1, 40, 30), gaussian(s, 2, 1, 40, 30)
		steps := 1000
		if testing.Short() {
			steps = 100
		}
		start, programs := s.Device().Stats().Compiles, 0
		for i := range steps {
			in := s.Scope()
			rate := 0.001 + float64(i)*0.37
			next := Full(in, F32, rate).Mul(g).Neg().Add(w.Mul(1 - 0.01*rate)).LeakyRelu(rate).Softmax(-1)
			require.NoError(t, Eval(t.Context(), next, Full(in, I64, 1000+i, 7)))
			if i%97 == 5 {
				x := next.Max()
				want := values[float32](t, From(in, []float32{float32(rate)}).Mul(g).Neg().Add(w.Mul(1-0.01*rate)).LeakyRelu(
					rate).Softmax(-1).Max())
				assert.InDelta(t, want[0], values[float32](t, x)[0], 1e-5)
			}
			if i == 5 {
				programs = s.engine.programs.Len()
			}
			require.NoError(t, in.Close())
		}
		assert.LessOrEqual(t, s.engine.programs.Len(), programs+2)
		assert.LessOrEqual(t, s.Device().Stats().Compiles-start, int64(programs+2))
	})
}

// Programs are kept up to a number of bytes, however many differ.
func TestProgramsTakeBoundedMemory(t *testing.T) {
	s := scope(t)
	x := From(s, numbers(8))
	sum := func() (bytes int) {
		for _, key := range s.engine.programs.Keys() {
			if p, _ := s.engine.programs.Peek(key); key.family == expr.Family {
				bytes += kernels.UnitBytes(p.unit)
			}
		}
		return bytes
	}
	s.engine.most = 4 << 20
	for i := range 60 {
		y := x
		for j := range 12 { // another program for each i
			if y = y.Exp(); i>>j&1 == 1 {
				y = y.Sin()
			}
		}
		require.NoError(t, Eval(t.Context(), y.Softmax(-1)))
		require.Equal(t, sum(), s.engine.kept)
		require.LessOrEqual(t, s.engine.kept, s.engine.most)
	}
	assert.Greater(t, s.engine.programs.Len(), 3)
	assert.Less(t, s.engine.programs.Len(), 60)
}

// A thousand small functions stay, and programs of the catalog do not count.
func TestAThousandProgramsStay(t *testing.T) {
	s := scope(t)
	x := From(s, numbers(16)).Reshape(4, 4)
	const programs = 8
	for i := range programs {
		y := x
		for j := range 3 {
			if y = y.Exp(); i>>j&1 == 1 {
				y = y.Sin()
			}
		}
		require.NoError(t, Eval(t.Context(), y))
	}
	kept := s.engine.kept
	assert.LessOrEqual(t, kept/programs*1000, s.engine.most)
	require.NoError(t, Eval(t.Context(), x.MatMul(x)))
	assert.Equal(t, kept, s.engine.kept)
}
