package tensor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// someDoubles returns a tensor of F64 of random numbers.
func someDoubles(s *Scope, r *rand.Rand, shape ...int) *Tensor {
	data := make([]float64, count(shape))
	for i := range data {
		data[i] = 2*r.Float64() - 1
	}
	return From(s, data, shape...)
}

// eachIndex calls f for each index of a shape, and with its number.
func eachIndex(shape []int, f func(i int, at []int)) {
	at := make([]int, len(shape))
	for i := range count(shape) {
		rest := i
		for d := len(shape) - 1; d >= 0; d-- {
			at[d], rest = rest%shape[d], rest/shape[d]
		}
		f(i, at)
	}
}

// indexOf returns the index of an element of a dense tensor.
func indexOf(shape, at []int) int {
	i := 0
	for d, n := range shape {
		i = i*n + at[d]
	}
	return i
}

type convCase struct {
	x, w []int
	o    ConvOptions
	bias bool
}

var convCases = []convCase{
	{x: []int{2, 3, 9}, w: []int{5, 3, 3}, bias: true},
	{x: []int{1, 4, 11}, w: []int{6, 2, 4}, o: ConvOptions{Stride: []int{2}, Pad: [][2]int{{3, 1}}, Dilation: []int{2},
		Groups: 2}, bias: true},
	{x: []int{1, 2, 5}, w: []int{3, 2, 3}, o: ConvOptions{Pad: [][2]int{{2, 2}}, InputDilation: []int{3}}},
	{x: []int{1, 2, 9}, w: []int{3, 2, 3}, o: ConvOptions{Pad: [][2]int{{-2, -1}}}},
	{x: []int{1, 2, 5}, w: []int{3, 2, 3}, o: ConvOptions{Pad: [][2]int{{-2, -3}}, InputDilation: []int{3},
		Stride: []int{2}}},
	{x: []int{2, 3, 6, 7}, w: []int{4, 3, 3, 2}, bias: true},
	{x: []int{1, 2, 1, 1}, w: []int{4, 2, 1, 1}, bias: true},
	{x: []int{2, 5, 4, 5}, w: []int{3, 5, 2, 3}, o: ConvOptions{Stride: []int{2, 1}, Pad: [][2]int{{1, 0}, {1, 2}},
		Dilation: []int{1, 2}}},
	{x: []int{3, 6, 2, 3}, w: []int{4, 3, 1, 1}, o: ConvOptions{Groups: 2}, bias: true},
	{x: []int{2, 4, 8, 9}, w: []int{6, 2, 3, 3}, o: ConvOptions{Stride: []int{2, 3}, Pad: [][2]int{{1, 0}, {2, 3}},
		Dilation: []int{2, 1}, Groups: 2}, bias: true},
	{x: []int{3, 4, 5, 6}, w: []int{4, 1, 3, 3}, o: ConvOptions{Pad: [][2]int{{1, 1}, {1, 1}}, Groups: 4}},
	{x: []int{1, 2, 7, 5}, w: []int{3, 2, 2, 3}, o: ConvOptions{Stride: []int{3, 1}, Pad: [][2]int{{4, 0}, {-1, 5}},
		InputDilation: []int{2, 1}}},
	{x: []int{2, 3, 3, 3}, w: []int{2, 3, 1, 1}, o: ConvOptions{Stride: []int{2, 2}}},
	{x: []int{1, 2, 3, 4}, w: []int{2, 2, 5, 2}}, // filters longer than the image
	{x: []int{0, 2, 3, 4}, w: []int{2, 2, 3, 2}, bias: true},
	{x: []int{2, 0, 3, 4}, w: []int{2, 0, 3, 2}, bias: true},
	{x: []int{2, 1, 0, 4}, w: []int{2, 1, 3, 2}, o: ConvOptions{Pad: [][2]int{{2, 2}, {0, 0}}}, bias: true},
	{x: []int{1, 2, 4, 5, 3}, w: []int{3, 2, 2, 3, 2}, bias: true},
	{x: []int{2, 4, 5, 4, 3}, w: []int{4, 2, 3, 2, 2},
		o:    ConvOptions{Stride: []int{2, 1, 2}, Pad: [][2]int{{1, 2}, {0, 1}, {1, 1}}, Dilation: []int{1, 2, 1}, Groups: 2},
		bias: true},
	{x: []int{1, 1, 3, 3, 2}, w: []int{2, 1, 3, 2, 1}, o: ConvOptions{Pad: [][2]int{{-1, 2}, {1, -1}, {0, 0}},
		InputDilation: []int{2, 2, 1}}},
	{x: []int{1, 1, 3, 3, 2}, w: []int{2, 1, 2, 2, 1}, o: ConvOptions{Pad: [][2]int{{-3, 0}, {0, 0}, {0, 0}}}},
}

// want computes a convolution by its definition.
func (c convCase) want(x, w, bias []float64) (y []float64, shape []int) {
	dims, groups := len(c.x)-2, max(c.o.Groups, 1)
	axes, ok := c.o.axes(c.x[2:], c.w[2:])
	if !ok {
		panic(fmt.Sprint(c))
	}
	shape = []int{c.x[0], c.w[0]}
	for _, a := range axes {
		shape = append(shape, a.out)
	}
	y = make([]float64, count(shape))
	eachIndex(shape, func(i int, at []int) {
		sum := 0.0
		if c.bias {
			sum = bias[at[1]]
		}
		eachIndex(c.w[1:], func(j int, tap []int) {
			from := append([]int{at[0], at[1]/(c.w[0]/groups)*c.w[1] + tap[0]}, make([]int, dims)...)
			for d, a := range axes {
				p := at[2+d]*a.stride + tap[1+d]*a.dilation - a.pad
				if p < 0 || p%a.spread != 0 || p/a.spread >= c.x[2+d] {
					return
				}
				from[2+d] = p / a.spread
			}
			sum += x[indexOf(c.x, from)] * w[at[1]*count(c.w[1:])+j]
		})
		y[i] = sum
	})
	return y, shape
}

func TestConv(t *testing.T) {
	s, r := scope(t), rand.New(rand.NewPCG(21, 22))
	for _, c := range convCases {
		t.Run(fmt.Sprintf("%v %v %+v", c.x, c.w, c.o), func(t *testing.T) {
			x, w, bias := someDoubles(s, r, c.x...), someDoubles(s, r, c.w...), someDoubles(s, r, c.w[0])
			args := []*Tensor{x, w}
			f := func(args ...*Tensor) *Tensor {
				if len(args) == 2 {
					return Conv(args[0], args[1], nil, c.o)
				}
				return Conv(args[0], args[1], args[2], c.o)
			}
			if c.bias {
				args = append(args, bias)
			}
			want, shape := c.want(values[float64](t, x), values[float64](t, w), values[float64](t, bias))
			y := f(args...)
			require.NoError(t, y.Err())
			assert.Equal(t, shape, y.Shape())
			assert.InDeltaSlice(t, want, values[float64](t, y), 1e-12)
			for i, got := range values[float32](t, Conv(x.Cast(F32), w.Cast(F32), nil, c.o)) {
				if !c.bias {
					require.InDelta(t, want[i], got, 1e-4)
				}
			}
			gradients(t, f, args...)
			if count(c.x)+count(c.w) > 150 {
				return
			}
			// The gradients of the gradients.
			u := someDoubles(s, r, shape...)
			gradients(t, func(args ...*Tensor) *Tensor {
				g := GradOf([]*Tensor{f(args...)}, []*Tensor{u}, args[:2]...)
				return Concat(0, g[0].Flatten(), g[1].Flatten())
			}, args...)
		})
	}
}

func TestConvMistakes(t *testing.T) {
	s := scope(t)
	x, w := Ones(s, F32, 1, 4, 5, 5), Ones(s, F32, 2, 4, 3, 3)
	for _, y := range []*Tensor{
		Conv(x, w.Index(0, 0), nil, ConvOptions{}), Conv(x, w, nil, ConvOptions{Groups: 2}),
		Conv(x, w, nil, ConvOptions{Groups: -1}),
		Conv(x, w, Ones(s, F32, 3), ConvOptions{}), Conv(x, w, nil, ConvOptions{Stride: []int{1}}),
		Conv(x, w, nil, ConvOptions{Stride: []int{1, 0}}),
		Conv(x, w, nil, ConvOptions{Dilation: []int{1, -1}}), Conv(x, w, nil, ConvOptions{InputDilation: []int{1, 1 << 40}}),
		Conv(x, w, nil, ConvOptions{Pad: [][2]int{{1, 1}}}),
		Conv(Ones(s, F32, 4, 5), w, nil, ConvOptions{}), Conv(x, w, nil, ConvOptions{Pad: [][2]int{{1 << 40, 0}, {0, 0}}}),
		ConvTranspose(x, w, nil, ConvTransposeOptions{}),
		ConvTranspose(x, Ones(s, F32, 4, 2, 3, 3), nil, ConvTransposeOptions{OutputPad: []int{-1, 0}}),
		x.Windows(2, 0, 1, 1), x.Windows(4, 1, 1, 1), Ones(s, F32, 1, 1, 1, 1, 1, 1, 1, 1).Windows(0, 1, 1, 1),
	} {
		assert.ErrorIs(t, y.Err(), ErrShape)
	}
	assert.ErrorIs(t, Conv(x.Cast(I32), w.Cast(I32), nil, ConvOptions{}).Err(), ErrType)
	assert.ErrorIs(t, ConvTranspose(x.Cast(I32), Ones(s, I32, 4, 1, 1, 1), nil, ConvTransposeOptions{}).Err(), ErrType)
}

func TestConvTranspose(t *testing.T) {
	s, r := scope(t), rand.New(rand.NewPCG(23, 24))
	for _, c := range []struct {
		x, w []int
		o    ConvTransposeOptions
	}{
		{[]int{2, 3, 4}, []int{3, 2, 3}, ConvTransposeOptions{}},
		{[]int{1, 3, 4}, []int{3, 2, 4}, ConvTransposeOptions{Stride: []int{2}, Pad: [][2]int{{1, 2}}, OutputPad: []int{1}}},
		{[]int{1, 4, 3, 2}, []int{4, 2, 2, 3}, ConvTransposeOptions{Stride: []int{2, 3}, Pad: [][2]int{{0, 1}, {1, 0}},
			Dilation: []int{1, 2}, Groups: 2}},
		{[]int{1, 2, 2, 2, 3}, []int{2, 1, 2, 3, 2}, ConvTransposeOptions{Stride: []int{2, 1, 1}}},
		{[]int{0, 2, 3}, []int{2, 1, 2}, ConvTransposeOptions{}},
		{[]int{1, 1, 2}, []int{1, 1, 2}, ConvTransposeOptions{Pad: [][2]int{{2, 2}}}},
	} {
		t.Run(fmt.Sprintf("%v %v %+v", c.x, c.w, c.o), func(t *testing.T) {
			x, w := someDoubles(s, r, c.x...), someDoubles(s, r, c.w...)
			groups := max(c.o.Groups, 1)
			bias := someDoubles(s, r, c.w[1]*groups)
			y := ConvTranspose(x, w, bias, c.o)
			require.NoError(t, y.Err())
			// The convolution with the same filters is its adjoint.
			o := ConvOptions{Stride: c.o.Stride, Dilation: c.o.Dilation, Pad: c.o.Pad, Groups: c.o.Groups}
			u := someDoubles(s, r, y.Shape()...)
			if count(y.shape) > 0 {
				back := Conv(u, w, nil, o)
				sum, other := y.Sub(bias.Reshape(append([]int{-1}, slices.Repeat([]int{1}, len(c.x)-2)...)...)).Mul(u).Sum(),
					x.Mul(back.Slice(All)).Sum()
				require.Equal(t, x.Shape(), back.Shape())
				assert.InDelta(t, values[float64](t, other)[0], values[float64](t, sum)[0], 1e-9)
			}
			gradients(t, func(args ...*Tensor) *Tensor { return ConvTranspose(args[0], args[1], args[2], c.o) }, x, w, bias)
		})
	}
}

func TestWindows(t *testing.T) {
	s, r := scope(t), rand.New(rand.NewPCG(25, 26))
	x := From(s, numbers(7))
	assert.Equal(t, []float32{0, 2, 4, 2, 4, 6}, values[float32](t, x.Windows(0, 3, 2, 2).Slice(All)))
	assert.Len(t, tasks(t, x.Windows(0, 3, 1, 1).Max(1)), 1)
	for _, c := range [][5]int{{7, 3, 1, 1, 1}, {9, 3, 2, 1, 1}, {9, 2, 3, 1, 0}, {11, 3, 2, 2, 2}, {8, 2, 2, 1, 1},
		{9, 2, 2, 1, 1}, {10, 3, 1, 3, 0}, {2, 3, 1, 1, 0}, {5, 1, 2, 1, 0}, {11, 2, 2, 3, 0}} {
		shape := []int{3, 2}
		shape[c[4]%2] = c[0]
		axis := c[4] % 2
		x := someDoubles(s, r, shape...)
		y := x.Windows(axis, c[1], c[2], c[3])
		require.NoError(t, y.Err())
		data, got := values[float64](t, x), values[float64](t, y)
		eachIndex(y.shape, func(i int, at []int) {
			from := slices.Delete(slices.Clone(at), axis+1, axis+2)
			from[axis] = at[axis]*c[2] + at[axis+1]*c[3]
			require.Equal(t, data[indexOf(shape, from)], got[i])
		})
		f := func(args ...*Tensor) *Tensor { return args[0].Windows(axis, c[1], c[2], c[3]).Square() }
		gradients(t, f, x)
		gradients(t, func(args ...*Tensor) *Tensor { return Grad(f(args...).Mul(0.7).Exp().Sum(), args[0])[0] }, x)
	}
}

// BenchmarkConv measures convolutions and their gradients.
func BenchmarkConv(b *testing.B) {
	same := [][2]int{{1, 1}, {1, 1}}
	for _, c := range []convCase{
		{x: []int{16, 64, 56, 56}, w: []int{64, 64, 3, 3}, o: ConvOptions{Pad: same}},
		{x: []int{16, 256, 14, 14}, w: []int{256, 256, 3, 3}, o: ConvOptions{Pad: same}},
		{x: []int{16, 64, 56, 56}, w: []int{256, 64, 1, 1}},
		{x: []int{8, 3, 224, 224}, w: []int{64, 3, 7, 7}, o: ConvOptions{Stride: []int{2, 2}, Pad: [][2]int{{3, 3}, {3, 3}}}},
		{x: []int{16, 128, 28, 28}, w: []int{128, 1, 3, 3}, o: ConvOptions{Pad: same, Groups: 128}},
		{x: []int{128, 32, 28, 28}, w: []int{64, 32, 3, 3}, o: ConvOptions{Pad: same}},
		{x: []int{2, 32, 16, 28, 28}, w: []int{32, 32, 3, 3, 3}, o: ConvOptions{Pad: [][2]int{{1, 1}, {1, 1}, {1, 1}}}},
	} {
		s := scope(b)
		x, w := gaussian(s, 1, 1, c.x...), gaussian(s, 2, 1, c.w...)
		g := gaussian(s, 3, 1, Conv(x, w, nil, c.o).shape...)
		for i, name := range []string{"images", "filters"} {
			b.Run(fmt.Sprintf("%v %v gradient of %s", c.x, c.w, name), func(b *testing.B) {
				bench(b, func(a ...*Tensor) []*Tensor {
					return GradOf([]*Tensor{Conv(a[0], a[1], nil, c.o)}, []*Tensor{a[2]}, a[i])
				}, 0, x, w, g)
			})
		}
		b.Run(fmt.Sprintf("%v %v", c.x, c.w), func(b *testing.B) {
			bench(b, func(a ...*Tensor) []*Tensor { return []*Tensor{Conv(a[0], a[1], nil, c.o)} }, 0, x, w)
		})
	}
}
