package tensor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
)

type poolCase struct {
	x, size []int
	o       PoolOptions
}

var poolCases = []poolCase{
	{[]int{2, 3, 9}, []int{3}, PoolOptions{}},
	{[]int{1, 2, 6, 8}, []int{2, 2}, PoolOptions{}},
	{[]int{1, 2, 7, 9}, []int{2, 3}, PoolOptions{}},
	{[]int{2, 2, 7, 8}, []int{3, 3}, PoolOptions{Stride: []int{2, 2}, Pad: [][2]int{{1, 1}, {1, 1}}}},
	{[]int{1, 1, 6, 7}, []int{3, 2}, PoolOptions{Stride: []int{1, 3}, Pad: [][2]int{{0, 2}, {1, 0}},
		Dilation: []int{2, 3}}},
	{[]int{1, 1, 6, 7}, []int{3, 2}, PoolOptions{Stride: []int{1, 1}, Pad: [][2]int{{3, 2}, {2, 2}}, CountPad: true}},
	{[]int{1, 2, 3, 4, 5}, []int{2, 3, 2}, PoolOptions{Stride: []int{1, 2, 3}}},
	{[]int{2, 40}, []int{13}, PoolOptions{Stride: []int{2}}},
	{[]int{2, 40}, []int{13}, PoolOptions{Stride: []int{5}, Dilation: []int{2}}},
	{[]int{1, 61}, []int{15}, PoolOptions{}},
	{[]int{1, 50}, []int{16}, PoolOptions{Stride: []int{1}, Pad: [][2]int{{20, 0}}}},
	{[]int{2, 20, 17}, []int{20, 17}, PoolOptions{}},
	{[]int{2, 2, 3}, []int{3, 2}, PoolOptions{}}, // windows that are too long
	{[]int{0, 2, 3}, []int{2}, PoolOptions{}},
	{[]int{3, 0}, []int{2}, PoolOptions{Pad: [][2]int{{2, 1}}}},
	{[]int{2, 5}, []int{1}, PoolOptions{Stride: []int{2}}},
}

// want reduces the windows by their definition. place receives the index of the first maximum in x, or -1.
func (c poolCase) want(x []float64, reduce func(window []float64, padded int) float64,
	place func(at int)) (y []float64, shape []int) {
	rank, dims := len(c.x), len(c.size)
	stride, _ := sizesOf(c.o.Stride, dims, 0, 1)
	dilation, _ := sizesOf(c.o.Dilation, dims, 1, 1)
	pad := c.o.Pad
	if pad == nil {
		pad = make([][2]int, dims)
	}
	shape = slices.Clone(c.x)
	step := slices.Clone(stride)
	for d, n := range c.size {
		if step[d] == 0 {
			step[d] = n
		}
		shape[rank-dims+d] = kernels.ConvOut(c.x[rank-dims+d], n, step[d], pad[d][0], pad[d][1], dilation[d])
	}
	eachIndex(shape, func(_ int, at []int) {
		var window []float64
		best, padded := -1, 0
		eachIndex(c.size, func(_ int, tap []int) {
			from := slices.Clone(at)
			for d := range tap {
				p := at[rank-dims+d]*step[d] + tap[d]*dilation[d] - pad[d][0]
				if from[rank-dims+d] = p; p < 0 || p >= c.x[rank-dims+d] {
					padded++
					return
				}
			}
			i := indexOf(c.x, from)
			if best < 0 || x[i] > x[best] || x[i] != x[i] && x[best] == x[best] {
				best = i
			}
			window = append(window, x[i])
		})
		if place != nil {
			place(best)
		}
		y = append(y, reduce(window, padded))
	})
	return y, shape
}

func TestPool(t *testing.T) {
	s, r := scope(t), rand.New(rand.NewPCG(27, 28))
	for _, c := range poolCases {
		t.Run(fmt.Sprintf("%v %v %+v", c.x, c.size, c.o), func(t *testing.T) {
			x := someDoubles(s, r, c.x...)
			data := values[float64](t, x)
			want, shape := c.want(data, func(w []float64, padded int) float64 {
				sum := 0.0
				for _, v := range w {
					sum += v
				}
				n := len(w)
				if c.o.CountPad {
					n += padded
				}
				return sum / float64(max(n, 1))
			}, nil)
			y := x.AvgPool(c.size, c.o)
			require.NoError(t, y.Err())
			assert.Equal(t, shape, y.Shape())
			assert.InDeltaSlice(t, want, values[float64](t, y), 1e-12)
			if count(c.x) < 200 {
				gradients(t, func(args ...*Tensor) *Tensor { return args[0].AvgPool(c.size, c.o) }, x)
			}
			if c.o.Pad == nil && count(c.x) < 200 || count(c.x) > 0 && c.x[1] < 40 {
				gradients(t, func(args ...*Tensor) *Tensor { return args[0].Mul(100).MaxPool(c.size, c.o).Maximum(-1e3) }, x)
			}
			// Numbers of which many are equal, infinite, or NaN.
			for i := range data {
				data[i] = float64(r.IntN(3))
				if r.IntN(9) == 0 {
					data[i] = math.Inf(-1)
				}
				if r.IntN(50) == 0 {
					data[i] = math.NaN()
				}
			}
			x = From(s, data, c.x...)
			var places []int
			want, _ = c.want(data, func(w []float64, _ int) float64 {
				most := math.Inf(-1)
				for _, v := range w {
					most = max(most, v)
				}
				return most
			}, func(at int) { places = append(places, at) })
			y = x.MaxPool(c.size, c.o)
			same(t, want, values[float64](t, y))
			u := someDoubles(s, r, shape...)
			added := make([]float64, len(data))
			for i, g := range values[float64](t, u) {
				if at := places[i]; at >= 0 && !math.IsInf(data[at], -1) {
					added[at] += g
				}
			}
			for i, g := range values[float64](t, GradOf([]*Tensor{y}, []*Tensor{u}, x)[0]) {
				if !math.IsInf(data[i], -1) { // margins are equal to them
					require.InDelta(t, added[i], g, 1e-12, "element %d of %v", i, data)
				}
			}
			for i, v := range values[int32](t, Where(x.IsNaN(), 0, x).Maximum(-5).Cast(I32).MaxPool(c.size, c.o)) {
				if places[i] >= 0 {
					require.GreaterOrEqual(t, v, int32(-5))
				} else {
					require.Equal(t, int32(math.MinInt32), v)
				}
			}
		})
	}
}

// same compares numbers, of which NaNs are equal.
func same(t *testing.T, want, got []float64) {
	t.Helper()
	require.Len(t, got, len(want))
	for i, w := range want {
		require.True(t, w == got[i] || w != w && got[i] != got[i], "element %d is %v, not %v", i, got[i], w)
	}
}

func TestGlobalPool(t *testing.T) {
	s := scope(t)
	x := From(s, numbers(48), 2, 3, 4, 2)
	assert.Equal(t, []float32{7, 15, 23, 31, 39, 47}, values[float32](t, x.GlobalMaxPool()))
	assert.Equal(t, []float32{3.5, 11.5, 19.5, 27.5, 35.5, 43.5}, values[float32](t, x.GlobalAvgPool()))
	assert.Equal(t, []int{2, 3, 1, 1}, x.GlobalMaxPool().Shape())
	assert.Len(t, tasks(t, x.GlobalAvgPool()), 1)
	one := Ones(s, F32, 1, 2, 5, 5)
	g := Grad(one.GlobalMaxPool().Sum(), one)[0]
	assert.Equal(t, []float32{1, 0}, values[float32](t, g.Reshape(2, 25).Slice(Range{0, 1, 1}, Range{0, 2, 1})))
	assert.Equal(t, []float32{2}, values[float32](t, g.Sum()))
	assert.Equal(t, []float64{1.5}, values[float64](t, From(s, []int32{1, 2}, 1, 1, 2).GlobalAvgPool()))
	for _, y := range []*Tensor{x.Index(0, 0).Index(0, 0).GlobalAvgPool(), Ones(s, F32, 2, 3, 0).GlobalMaxPool(),
		x.MaxPool(nil, PoolOptions{}), x.MaxPool([]int{0}, PoolOptions{}),
		x.AvgPool([]int{2, 2, 2, 2, 2}, PoolOptions{}), x.AvgPool([]int{2}, PoolOptions{Stride: []int{1, 1}}),
		x.MaxPool([]int{2}, PoolOptions{Pad: [][2]int{{-1, 0}}})} {
		assert.ErrorIs(t, y.Err(), ErrShape)
	}
	assert.ErrorIs(t, x.Cast(Bool).MaxPool([]int{2}, PoolOptions{}).Err(), ErrType)
}

func TestPoolPlans(t *testing.T) {
	s := scope(t)
	x := gaussian(s, 1, 1, 2, 8, 16, 16)
	assert.Len(t, tasks(t, x.MaxPool([]int{2, 2}, PoolOptions{})), 1)
	assert.Len(t, tasks(t, x.AvgPool([]int{3, 3}, PoolOptions{Stride: []int{2, 2}}).Relu()), 1)
	assert.Len(t, tasks(t, x.MaxPool([]int{2, 2}, PoolOptions{}).Relu(), x), 1)
	assert.Len(t, tasks(t, x.AvgPool([]int{2, 2}, PoolOptions{Stride: []int{1, 1}}).Add(1).Exp()), 1)
	// a part for each place of a row, and of a column
	assert.Len(t, tasks(t, Grad(x.AvgPool([]int{2, 2}, PoolOptions{}).Sum(), x)[0]), 4)
}

// BenchmarkPool measures pooling and its gradients.
func BenchmarkPool(b *testing.B) {
	for _, c := range []struct {
		x, size []int
		o       PoolOptions
	}{
		{[]int{16, 64, 112, 112}, []int{2, 2}, PoolOptions{}},
		{[]int{16, 64, 112, 112}, []int{3, 3}, PoolOptions{Stride: []int{2, 2}, Pad: [][2]int{{1, 1}, {1, 1}}}},
		{[]int{16, 64, 56, 56}, []int{3, 3}, PoolOptions{Stride: []int{1, 1}, Pad: [][2]int{{1, 1}, {1, 1}}}},
	} {
		s := scope(b)
		x := gaussian(s, 1, 1, c.x...)
		for _, name := range []string{"max", "avg"} {
			pool := func(x *Tensor) *Tensor {
				if name == "max" {
					return x.MaxPool(c.size, c.o)
				}
				return x.AvgPool(c.size, c.o)
			}
			g := gaussian(s, 3, 1, pool(x).shape...)
			b.Run(fmt.Sprintf("%v %v %s", c.x, c.size, name), func(b *testing.B) {
				bench(b, func(args ...*Tensor) []*Tensor { return []*Tensor{pool(args[0])} }, 0, x)
			})
			b.Run(fmt.Sprintf("%v %v %s gradient", c.x, c.size, name), func(b *testing.B) {
				bench(b, func(args ...*Tensor) []*Tensor {
					return GradOf([]*Tensor{pool(args[0])}, []*Tensor{args[1]}, args[0])
				}, 0, x, g)
			})
		}
	}
}
