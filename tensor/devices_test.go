package tensor

import (
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
)

// TestDevices computes operations that are kernels of the catalog, or have no other test with other devices
// than cpu:0, on each device that there is.
func TestDevices(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	const n = 3000
	x, i := make([]float32, n), make([]int64, n)
	for k := range x {
		x[k], i[k] = float32(r.IntN(200)-100), r.Int64N(80)-40
		if k%97 == 5 {
			x[k] = float32(math.NaN())
		}
	}
	// Results whose bits are the same on every device.
	compute := func(s *Scope) map[string]*Tensor {
		a, index := From(s, x), From(s, i)
		m, small := a.Reshape(50, 60), index.Reshape(50, 60)
		whole := Where(m.IsNaN(), 0, m)
		out := map[string]*Tensor{
			"take": m.Take(1, index.Slice(Range{0, 9, 1})), "take rows": m.Take(0, index), "take along": m.TakeAlong(1, small),
			"scatter":     m.Scatter(1, small, m),
			"scatter add": whole.ScatterAdd(1, small, whole),
			"index add":   whole.IndexAdd(0, small.Index(0, 0), Ones(s, F32, 60, 60)), "argmax": m.ArgMax(0),
			"argmin":  a.ArgMin(0),
			"one hot": index.OneHot(7, U8), "cumsum": whole.CumSum(0), "long cumsum": Where(a.IsNaN(), 1, a).CumSum(0),
			"cumsum of i16": index.Cast(I16).CumSum(0), "einsum": Einsum("ij,kj->ik", whole, whole),
			"uniform": Uniform(s, F32, 9, -1, 1, n), "uniform f16": Uniform(s, F16, 9, 0, 1, n),
			"bernoulli": Bernoulli(s, 9, 0.4, n), "integers": RandInt(s, I32, 9, -50, 100, n),
			"permutation": Permutation(s, 9, n), "seeds": Seeds(s, 9, 5), "dropout": whole.Dropout(0.4, 9),
			"embedding": Grad(Embedding(whole, index).Mul(whole.Sum(0)).Sum(), whole)[0],
			"pad":       m.PadWith(Reflect, [2]int{3, 4}), "triu": m.Triu(2), "diagonal": m.Diagonal(-3), "tile": m.Tile(1, 2),
			"roll": m.Roll(0, 7),
		}
		out["sorted"], out["order"] = a.Sort(0, false)
		out["sorted down"], out["order down"] = m.Sort(0, true)
		out["largest"], out["places of largest"] = a.TopK(20, 0, true)
		out["smallest"], out["places of smallest"] = m.TopK(55, 1, false)
		return out
	}
	read := func(s *Scope) map[string][]float64 {
		list := map[string][]float64{}
		for name, y := range compute(s) {
			list[name] = values[float64](t, y.Cast(F64))
		}
		return list
	}
	want := read(scope(t))
	same := func(name string, s *Scope) {
		for what, got := range read(s) {
			require.Len(t, got, len(want[what]), what)
			for k, v := range got {
				if w := want[what][k]; v != w && (v == v || w == w) {
					assert.Fail(t, "another result", "%s, %s: element %d is %v, and on cpu:0 %v", name, what, k, v, w)
					break
				}
			}
		}
	}
	session, err := runtime.New(runtime.Config{NoFusion: true})
	require.NoError(t, err)
	defer session.Close()
	dev, err := session.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer dev.Close()
	apart := NewScope(dev)
	defer apart.Close()
	same("cpu:0 without fusion", apart)
	for _, name := range []string{"cpu:reference", "opencl:0", "cuda:0", "rocm:0", "metal:0"} {
		t.Run(name, func(t *testing.T) {
			dev, err := runtime.Open(t.Context(), name)
			if backend, _, _ := strings.Cut(name, ":"); err != nil && !strings.Contains(os.Getenv("CONCORD_REQUIRE"), backend) {
				t.Skip(err)
			}
			require.NoError(t, err)
			defer dev.Close()
			s := NewScope(dev)
			defer s.Close()
			same(name, s)
			z := Normal(s, F32, 9, 0, 1, n)
			assert.InDeltaSlice(t, values[float32](t, Normal(scope(t), F32, 9, 0, 1, n)), values[float32](t, z), 1e-4)
		})
	}
}

// A compiled function draws other numbers with another seed, and the same ones with the same seed; kernels that
// need memory besides their operands compute in its graph what they compute apart.
func TestCompiledIndex(t *testing.T) {
	s := scope(t)
	f := func(args ...*Tensor) []*Tensor {
		x, index, seed := args[0], args[1], args[2]
		y := Embedding(x.Dropout(0.3, seed), index)
		v, order := y.Sum(1).Sort(0, true)
		top, _ := y.TopK(2, 1, true)
		return []*Tensor{v, order, top, y.CumSum(0), Grad(y.Square().Sum(), x)[0], x.Flatten().ArgMax(0),
			Permutation(s, seed, 2000), Uniform(s, F32, seed, 0, 1, 7)}
	}
	r := rand.New(rand.NewPCG(17, 18))
	i := make([]int32, 2500)
	for k := range i {
		i[k] = r.Int32N(300)
	}
	x, index := From(s, someNumbers(r, 300*9), 300, 9), From(s, i)
	c := Compile(s, f)
	var before []float64
	for _, seed := range []uint64{1, 2, 2, 1 << 63} {
		key := From(s, []uint64{seed})
		got, err := c.Call(t.Context(), x, index, key)
		require.NoError(t, err)
		want := f(x, index, key)
		for k := range want {
			assert.Equal(t, values[float64](t, want[k].Cast(F64)), values[float64](t, got[k].Cast(F64)), "result %d", k)
		}
		numbers := values[float64](t, got[7].Cast(F64))
		assert.Equal(t, seed == 2 && before != nil && numbers[0] == before[0], numbers[0] == append(before, -1)[0])
		before = numbers
	}
}
