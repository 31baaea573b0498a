package tensor

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// Operations by index need memory for their results, and for what is indexed, but none for what is not.
func TestIndexMemory(t *testing.T) {
	const mega, small = 1 << 20, 1 << 16
	few := func(s *Scope, n int) *Tensor { return From(s, []int64{7, 3, 7, 100}).Reshape(-1).Narrow(0, 0, n) }
	for name, c := range map[string]struct {
		typ   Type
		shape []int
		f     func(x *Tensor) *Tensor
		most  int // bytes besides x
	}{
		"set one element": {F32, []int{2 * mega}, func(x *Tensor) *Tensor {
			return x.IndexSet(0, few(x.scope, 1), Ones(x.scope, F32))
		}, 8 * mega},
		"set bytes": {U8, []int{8 * mega}, func(x *Tensor) *Tensor {
			return x.IndexSet(0, few(x.scope, 4), Iota(x.scope, U8, 4))
		}, 8 * mega},
		"set rows": {F32, []int{2048, 1024}, func(x *Tensor) *Tensor {
			return x.IndexSet(0, few(x.scope, 4), Ones(x.scope, F32, 4, 1024))
		}, 8 * mega},
		"set columns": {F32, []int{2048, 1024}, func(x *Tensor) *Tensor {
			return x.IndexSet(1, few(x.scope, 1), Ones(x.scope, F32, 1))
		}, 8*mega + 2*small},
		"scatter": {F32, []int{2048, 1024}, func(x *Tensor) *Tensor {
			return x.Scatter(0, Full(x.scope, I64, 5, 1, 1024), Ones(x.scope, F32))
		}, 8 * mega},
		"add one element": {F32, []int{2 * mega}, func(x *Tensor) *Tensor {
			return x.IndexAdd(0, few(x.scope, 1), Ones(x.scope, F32))
		}, 8 * mega},
		"add one half": {F16, []int{4 * mega}, func(x *Tensor) *Tensor {
			return x.IndexAdd(0, few(x.scope, 3), Ones(x.scope, F16))
		}, 8 * mega},
		"take columns": {F32, []int{2048, 1024}, func(x *Tensor) *Tensor {
			return x.Take(1, Iota(x.scope, I32, 1024).Neg())
		}, 8 * mega},
		"take of windows": {F32, []int{2 * mega}, func(x *Tensor) *Tensor {
			return x.Windows(0, 512, 1, 1).Take(0, Iota(x.scope, I64, 4096))
		}, 8 * mega},
		"take of narrow rows": {F32, []int{2048, 1024}, func(x *Tensor) *Tensor {
			return x.Narrow(1, 5, 512).Take(0, few(x.scope, 4))
		}, 0},
		"gradient of set": {F32, []int{2 * mega}, func(x *Tensor) *Tensor {
			return Grad(x.IndexSet(0, few(x.scope, 2), Ones(x.scope, F32)).Sum(), x)[0]
		}, 16 * mega},
		"gradient of columns": {F32, []int{2048, 1024}, func(x *Tensor) *Tensor {
			return Grad(x.Take(1, few(x.scope, 4)).Sum(), x)[0]
		}, 8*mega + 4*small},
		"gradient of all taken": {F32, []int{2048, 1024}, func(x *Tensor) *Tensor {
			return Grad(x.Take(1, Iota(x.scope, I64, 1024)).Sum(), x)[0]
		}, 16 * mega},
	} {
		session, err := runtime.New(runtime.Config{})
		require.NoError(t, err)
		dev, err := session.Open(t.Context(), "cpu:0")
		require.NoError(t, err)
		s := NewScope(dev)
		x := Full(s, c.typ, 1, c.shape...)
		require.NoError(t, Eval(t.Context(), x))
		before := dev.Stats().Peak
		y := c.f(x)
		require.NoError(t, y.Sync(t.Context()), name)
		assert.LessOrEqual(t, dev.Stats().Peak-before, int64(c.most+small), name)
		require.NoError(t, s.Close())
		require.NoError(t, dev.Close())
		require.NoError(t, session.Close())
	}
}

// Whether the last ones are found by sorting or in a table does not change what is stored, nor the gradients.
func TestSetRows(t *testing.T) {
	r := rand.New(rand.NewPCG(34, 17))
	everywhere(t, func(t *testing.T, s *Scope) {
		for range max(few(s, 60), 2) {
			outer, n, in, m := 1+r.IntN(4), 1+r.IntN(40), 1+r.IntN(3), 1+r.IntN(12)
			index := make([]int64, m)
			for i := range index {
				index[i] = int64(r.IntN(n+4) - 2) // some twice, some from the end, some of no element
			}
			data, src := someNumbers(r, outer*n*in), someNumbers(r, outer*m*in)
			x, y := From(s, data, outer, n, in), From(s, src, outer, m, in)
			got := x.IndexSet(1, From(s, index, m), y)
			want, stays, stored := slices.Clone(data), slices.Repeat([]float64{1}, len(data)), make([]float64, len(src))
			for o := range outer {
				for j := range in {
					last := map[int]int{}
					for i, k := range index {
						if at := named(k, n); at >= 0 {
							last[at] = i
						}
					}
					for at, i := range last {
						to, from := (o*n+at)*in+j, (o*m+i)*in+j
						want[to], stays[to], stored[from] = src[from], 0, 1
					}
				}
			}
			require.Equal(t, want, values[float64](t, got))
			g := Grad(got.Mul(3).Sum(), x, y)
			require.Equal(t, stays, values[float64](t, g[0].Div(3)))
			require.Equal(t, stored, values[float64](t, g[1].Div(3)))
			// 3·stays·got has none of src, and 3·stored is that of y
			second := Grad(g[0].Mul(got).Sum().Add(g[1].Mul(y).Sum()), y)[0]
			for i, v := range values[float64](t, second) {
				require.InDelta(t, 3*stored[i], v, 1e-12)
			}
		}
	})
}

// Rows that overlap or lie apart are read where they are.
func TestTakeOfViews(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Scope) {
		x := From(s, numbers(60), 6, 10)
		i := From(s, []int32{4, -1, 0, 99, 4})
		for name, v := range map[string]*Tensor{"windows": x.Flatten().Windows(0, 4, 1, 1),
			"apart": x.Flatten().Windows(0, 3, 7, 1), "narrow": x.Narrow(1, 2, 5),
			"from a place on": x.Narrow(0, 1, 5).Narrow(1, 3, 7), "flipped": x.Flip(0), "transposed": x.T(),
			"expanded": x.Narrow(0, 0, 1).Expand(5, 10)} {
			for axis := range 2 {
				want, got := v.Copy().Take(axis, i), v.Take(axis, i)
				require.Equal(t, values[float32](t, want), values[float32](t, got), "%s, axis %d", name, axis)
				weights := Iota(s, F32, got.Shape()...).Add(1)
				require.Equal(t, values[float32](t, Grad(v.Copy().Take(axis, i).Mul(weights).Sum(), x)[0]),
					values[float32](t, Grad(got.Mul(weights).Sum(), x)[0]), "%s, axis %d", name, axis)
			}
		}
		require.ElementsMatch(t, []float32{0, 1, 2},
			values[float32](t, x.Flatten().Windows(0, 3, 7, 1).Take(0, From(s, []int64{0}))))
		require.False(t, math.IsNaN(float64(values[float32](t, x.Take(1, i).Sum())[0])))
	})
}
