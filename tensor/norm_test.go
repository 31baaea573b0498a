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

// normal normalizes the elements whose indices group maps to one key.
func normal(x []float64, shape []int, eps float64, center bool, group func(at []int) int) []float64 {
	members := map[int][]int{}
	eachIndex(shape, func(i int, at []int) { members[group(at)] = append(members[group(at)], i) })
	y := make([]float64, len(x))
	for _, list := range members {
		mean, variance := 0.0, 0.0
		for _, i := range list {
			if center {
				mean += x[i] / float64(len(list))
			}
		}
		for _, i := range list {
			variance += (x[i] - mean) * (x[i] - mean) / float64(len(list))
		}
		for _, i := range list {
			y[i] = (x[i] - mean) / math.Sqrt(variance+eps)
		}
	}
	return y
}

func TestNorm(t *testing.T) {
	s, r := scope(t), rand.New(rand.NewPCG(31, 32))
	for _, c := range []struct{ shape, axes []int }{
		{[]int{3, 5}, nil}, {[]int{2, 3, 4}, []int{1, 2}}, {[]int{2, 3, 4}, []int{0, 2}}, {[]int{2, 3, 4}, []int{1}},
		{[]int{4}, []int{0}}, {[]int{0, 4}, nil}, {[]int{3, 1}, []int{0}},
	} {
		x := someDoubles(s, r, c.shape...)
		list := c.axes
		if list == nil {
			list = []int{len(c.shape) - 1}
		}
		var lengths []int
		for _, i := range list {
			lengths = append(lengths, c.shape[i])
		}
		gamma, beta := someDoubles(s, r, lengths...), someDoubles(s, r, lengths...)
		rest := func(at []int) int {
			k := 0
			for i, p := range at {
				if !slices.Contains(list, i) {
					k = k*c.shape[i] + p
				}
			}
			return k
		}
		factors, terms := values[float64](t, gamma), values[float64](t, beta)
		for _, center := range []bool{true, false} {
			want := normal(values[float64](t, x), c.shape, 0.01, center, rest)
			f := func(args ...*Tensor) *Tensor {
				if center {
					return args[0].LayerNorm(args[1], args[2], 0.01, c.axes...)
				}
				return args[0].RMSNorm(args[1], 0.01, c.axes...)
			}
			args := []*Tensor{x, gamma, beta}
			if !center {
				args = args[:2]
			}
			plain := x.LayerNorm(nil, nil, 0.01, list...)
			if !center {
				plain = x.RMSNorm(nil, 0.01, list...)
			}
			assert.InDeltaSlice(t, want, values[float64](t, plain), 1e-12)
			eachIndex(c.shape, func(i int, at []int) {
				var own []int
				for _, k := range list {
					own = append(own, at[k])
				}
				k := indexOf(lengths, own)
				if want[i] *= factors[k]; center {
					want[i] += terms[k]
				}
			})
			assert.InDeltaSlice(t, want, values[float64](t, f(args...)), 1e-12)
			gradients(t, f, args...)
			gradients(t, func(args ...*Tensor) *Tensor { return Grad(f(args...).Exp().Sum(), args[0])[0] }, args...)
		}
	}
	// Numbers far from 0, small ones, and halves.
	x := From(s, []float32{10000, 10001, 10002, 10003})
	assert.InDeltaSlice(t, []float32{-1.341641, -0.447214, 0.447214, 1.341641},
		values[float32](t, x.LayerNorm(nil, nil, 0)), 1e-5)
	assert.InDeltaSlice(t, []float64{1e-3 / math.Sqrt(1e-6+1e-5)},
		values[float64](t, From(s, []float64{1e-3}, 1).RMSNorm(nil, 1e-5)), 1e-12)
	half := x.Sub(10000).Mul(300).Cast(F16).LayerNorm(Ones(s, F16, 4), nil, 0)
	assert.Equal(t, F16, half.Type())
	assert.InDelta(t, 1.3416, values[runtime.Float16](t, half)[3].Float64(), 1e-3)
	assert.Equal(t, F32, x.Cast(F16).RMSNorm(Ones(s, F32, 4), 0).Type())
	assert.Equal(t, F64, x.Cast(I32).LayerNorm(nil, nil, 0).Type())
	for _, y := range []*Tensor{x.LayerNorm(Ones(s, F32, 3), nil, 0), x.LayerNorm(nil, nil, 0, 1),
		x.RMSNorm(Ones(s, F32, 1, 4), 0), x.GroupNorm(2, nil, nil, 0),
		Ones(s, F32, 2, 3).GroupNorm(2, nil, nil, 0), Ones(s, F32, 2, 4).GroupNorm(2, Ones(s, F32, 2), nil, 0),
		x.BatchNormInference(nil, nil, x, x, 0)} {
		assert.ErrorIs(t, y.Err(), ErrShape)
	}
	y, mean, variance := Ones(s, F32, 2, 3).BatchNorm(nil, Ones(s, F32, 2), 0)
	for _, bad := range []*Tensor{y, mean, variance} {
		assert.ErrorIs(t, bad.Err(), ErrShape)
	}
}

func TestChannelNorm(t *testing.T) {
	s, r := scope(t), rand.New(rand.NewPCG(33, 34))
	for _, shape := range [][]int{{3, 4}, {2, 4, 3}, {2, 4, 2, 3}, {0, 4, 2}, {2, 4, 0}} {
		x, gamma, beta := someDoubles(s, r, shape...), someDoubles(s, r, 4), someDoubles(s, r, 4)
		data, factors, terms := values[float64](t, x), values[float64](t, gamma), values[float64](t, beta)
		scaled := func(y []float64) []float64 {
			eachIndex(shape, func(i int, at []int) { y[i] = y[i]*factors[at[1]] + terms[at[1]] })
			return y
		}
		f := func(args ...*Tensor) *Tensor { return args[0].GroupNorm(2, args[1], args[2], 0.01) }
		want := scaled(normal(data, shape, 0.01, true, func(at []int) int { return at[0]*2 + at[1]/2 }))
		assert.InDeltaSlice(t, want, values[float64](t, f(x, gamma, beta)), 1e-12)
		gradients(t, f, x, gamma, beta)
		f = func(args ...*Tensor) *Tensor {
			y, _, _ := args[0].BatchNorm(args[1], args[2], 0.01)
			return y
		}
		want = scaled(normal(data, shape, 0.01, true, func(at []int) int { return at[1] }))
		assert.InDeltaSlice(t, want, values[float64](t, f(x, gamma, beta)), 1e-12)
		gradients(t, f, x, gamma, beta)
		if x.Len() == 0 {
			continue
		}
		gradients(t, func(args ...*Tensor) *Tensor { return Grad(f(args...).Exp().Sum(), args[0])[0] }, x, gamma, beta)
		y, mean, variance := x.BatchNorm(gamma, beta, 0.01)
		require.Equal(t, []int{4}, mean.Shape())
		again := x.BatchNormInference(gamma, beta, mean, variance, 0.01)
		assert.InDeltaSlice(t, values[float64](t, y), values[float64](t, again), 1e-12)
		gradients(t, func(args ...*Tensor) *Tensor {
			_, mean, variance := args[0].BatchNorm(nil, nil, 0)
			return mean.Mul(variance)
		}, x)
		gradients(t, func(a ...*Tensor) *Tensor { return a[0].BatchNormInference(a[1], a[2], a[3], a[4].Square(), 0.01) }, x,
			gamma, beta, someDoubles(s, r, 4), someDoubles(s, r, 4))
	}
}

func TestNormPlans(t *testing.T) {
	s := scope(t)
	x, gamma, beta, g := gaussian(s, 1, 1, 64, 256), gaussian(s, 2, 1, 256), gaussian(s, 3, 1, 256),
		gaussian(s, 4, 1, 64, 256)
	y := x.LayerNorm(gamma, beta, 1e-5)
	assert.Len(t, tasks(t, y), 1)
	assert.Len(t, tasks(t, GradOf([]*Tensor{y}, []*Tensor{g}, x)...), 1)
	assert.Len(t, tasks(t, GradOf([]*Tensor{y}, []*Tensor{g}, x, gamma, beta)...), 3)
	y = x.RMSNorm(gamma, 1e-5)
	assert.Len(t, tasks(t, y), 1)
	assert.Len(t, tasks(t, GradOf([]*Tensor{y}, []*Tensor{g}, x)...), 1)
	images, per := x.Reshape(2, 16, 16, 32), gaussian(s, 2, 1, 16)
	assert.Len(t, tasks(t, images.GroupNorm(4, per, per, 1e-5)), 2)
	y, _, _ = images.BatchNorm(per, per, 1e-5)
	assert.Len(t, tasks(t, y), 5) // sums of a channel are computed once, not for each of its elements
	assert.Len(t, tasks(t, images.BatchNormInference(per, per, per, per, 1e-5).Relu()), 1)
	// Rows are reduced in the order in which the result reads them, so that nothing is computed for both orders.
	assert.Equal(t, []string{"tanh max sub exp sum reciprocal mul exp"}, tasks(t, x.Tanh().Softmax(-1).Flip(-1).Exp()))
	assert.Equal(t, []string{"tanh max sub exp sum reciprocal mul sum sub"}, tasks(t, less(x.Tanh().Softmax(-1).Flip(-1))))
	assert.Equal(t, []string{"tanh max sub exp sum reciprocal mul sum sub"},
		tasks(t, less(x.Tanh().Softmax(-1).Flip(-1)).Flip(-1)))
}

// Kernels that compute a softmax or a normalization whole have its name, which the CPU knows, and others do not.
func TestNamedOperations(t *testing.T) {
	s := scope(t)
	x, gamma := gaussian(s, 1, 1, 32, 8, 64), gaussian(s, 2, 1, 64)
	y := x.Softmax(-1)
	maps := func(ts ...*Tensor) (text string) {
		p, err := newPlan(ts, true, nil)
		require.NoError(t, err)
		for _, k := range p.tasks {
			text += k.(*kernel).m.String() + "\n"
		}
		return text
	}
	const layerNorm = "input.f32.0;param.f32.0;param.f32.1;normalize.f32.0,1,2;input.f32.1;mul.f32.3,4;" +
		"input.f32.2;add.f32.5,6;"
	assert.Equal(t, "input.f32.0;softmax.f32.0;out.f32.1\n", maps(y))
	assert.Equal(t, layerNorm+"out.f32.7\n", maps(x.LayerNorm(gamma, gaussian(s, 3, 1, 64), 1e-5)))
	assert.Equal(t, layerNorm+"out.f16.7\n", maps(x.LayerNorm(gamma, gaussian(s, 3, 1, 64), 1e-5).Cast(F16)))
	for named, list := range map[string][]*Tensor{
		";softmax.f32.":      {y.Exp(), x.Exp().Softmax(-1), x.Cast(F16).Softmax(-1), x.Reshape(-1).Softmax(0)},
		";softmax.f64.":      {x.Cast(F64).Softmax(-1)},
		";normalize.f32.":    {x.LayerNorm(nil, nil, 1e-5)},
		";rmsnormalize.f32.": {x.RMSNorm(gamma, 1e-5), x.RMSNorm(gamma, 1e-5).Mul(x)},
	} {
		for i, y := range list {
			assert.Contains(t, maps(y), named, i)
		}
	}
	// Rows of two dimensions that are no neighbours, a kernel that needs other sums, another operation.
	for i, y := range []*Tensor{x.LayerNorm(nil, nil, 1e-5, 0, 2), y.Sum(), x.LogSoftmax(-1)} {
		assert.NotRegexp(t, "softmax|normalize", maps(y), i)
	}
}

func less(x *Tensor) *Tensor { return x.Sub(x.Sum(-1).Unsqueeze(-1)) }

// BenchmarkLayerNorm measures a layer normalization and its gradients.
func BenchmarkLayerNorm(b *testing.B) {
	s := scope(b)
	x, gamma, beta, g := gaussian(s, 1, 1, 4096, 1024), gaussian(s, 2, 1, 1024), gaussian(s, 3, 1, 1024),
		gaussian(s, 4, 1, 4096, 1024)
	f := func(a ...*Tensor) *Tensor { return a[0].LayerNorm(a[1], a[2], 1e-5) }
	b.Run("forward", func(b *testing.B) {
		bench(b, func(a ...*Tensor) []*Tensor { return []*Tensor{f(a...)} }, 0, x, gamma, beta)
	})
	b.Run("gradients", func(b *testing.B) {
		bench(b, func(a ...*Tensor) []*Tensor { return GradOf([]*Tensor{f(a...)}, []*Tensor{a[3]}, a[:3]...) }, 0, x, gamma,
			beta, g)
	})
}

// BenchmarkBatchNorm measures a batch normalization and its gradients.
func BenchmarkBatchNorm(b *testing.B) {
	s := scope(b)
	x, gamma, beta, g := gaussian(s, 1, 1, 16, 64, 56, 56), gaussian(s, 2, 1, 64), gaussian(s, 3, 1, 64),
		gaussian(s, 4, 1, 16, 64, 56, 56)
	f := func(a ...*Tensor) *Tensor {
		y, _, _ := a[0].BatchNorm(a[1], a[2], 1e-5)
		return y
	}
	b.Run("forward", func(b *testing.B) {
		bench(b, func(a ...*Tensor) []*Tensor { return []*Tensor{f(a...)} }, 0, x, gamma, beta)
	})
	b.Run("gradients", func(b *testing.B) {
		bench(b, func(a ...*Tensor) []*Tensor { return GradOf([]*Tensor{f(a...)}, []*Tensor{a[3]}, a[:3]...) }, 0, x, gamma,
			beta, g)
	})
}
