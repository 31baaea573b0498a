package tensor

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLayoutStrides(t *testing.T) {
	assert.Equal(t, []int{784, 1}, RowMajor.Strides(1000, 784))
	assert.Equal(t, []int{1, 1000}, ColumnMajor(2).Strides(1000, 784))
	assert.Equal(t, []int{3 * 4 * 5, 1, 3 * 5, 3}, ChannelsLast(4).Strides(2, 3, 4, 5))
	assert.Equal(t, []int{}, RowMajor.Strides())
	assert.Equal(t, []int{}, ColumnMajor(0).Strides())
	assert.Nil(t, ColumnMajor(3).Strides(1, 2))
	for want, l := range map[string]Layout{"row-major": nil, "column-major": ColumnMajor(3), "[0 2 3 1]": ChannelsLast(4),
		"[0 2 1]": ChannelsLast(3)} {
		assert.Equal(t, want, l.String())
	}
	assert.Equal(t, "row-major", ChannelsLast(2).String(), "channels are last already")
}

// TestFromLayout lays random tensors of up to five dimensions in random orders by their strides, and has every element
// where it belongs, also in what is computed and read back in that order.
func TestFromLayout(t *testing.T) {
	s := scope(t)
	r := rand.New(rand.NewPCG(4, 7))
	for range 60 {
		rank := r.IntN(6)
		l, shape := Layout(r.Perm(rank)), make([]int, rank)
		for i := range shape {
			shape[i] = r.IntN(6)
			if r.IntN(8) > 0 {
				shape[i]++
			}
		}
		n, strides := count(shape), l.Strides(shape...)
		want, data := make([]int32, n), make([]int32, n)
		for i := range want {
			at, rest := 0, i
			for d := rank - 1; d >= 0; d-- {
				at += rest % shape[d] * strides[d]
				rest /= shape[d]
			}
			want[i] = int32(i*7 + 1)
			data[at] = want[i]
		}
		x := FromLayout(s, data, l, shape...)
		require.NoError(t, x.Err())
		require.Equal(t, shape, x.Shape())
		require.Equal(t, want, values[int32](t, x), "%v of %v", l, shape)
		require.Equal(t, data, values[int32](t, x.Permute(l...)), "%v of %v", l, shape)
		for i := range want {
			want[i] *= 2
		}
		require.Equal(t, want, values[int32](t, x.Add(x)), "%v of %v", l, shape)
	}
}

// TestFromLayoutComputes: products and convolutions of tensors in another layout are those of tensors in order.
func TestFromLayoutComputes(t *testing.T) {
	s := scope(t)
	a, b := numbers(5*7), numbers(7*3)
	x, y := From(s, a, 5, 7), From(s, b, 7, 3)
	in := func(x *Tensor, l Layout) *Tensor {
		return FromLayout(s, values[float32](t, x.Permute(l...)), l, x.Shape()...)
	}
	assert.Equal(t, values[float32](t, x.MatMul(y)),
		values[float32](t, in(x, ColumnMajor(2)).MatMul(in(y, ColumnMajor(2)))))
	images, filters := From(s, numbers(2*3*5*4), 2, 3, 5, 4), From(s, numbers(2*3*3*3), 2, 3, 3, 3)
	want := Conv(images, filters, nil, ConvOptions{})
	got := Conv(in(images, ChannelsLast(4)), in(filters, ChannelsLast(4)), nil, ConvOptions{})
	assert.Equal(t, values[float32](t, want), values[float32](t, got))
	assert.Equal(t, tasks(t, x.Add(1)), tasks(t, in(x, Layout{0, 1}).Add(1)), "row-major data is no view")
}

func TestFromLayoutRefuses(t *testing.T) {
	s := scope(t)
	for _, l := range []Layout{{0}, {0, 0}, {0, 2}, {-1, 0}, {0, 1, 2}} {
		x := FromLayout(s, numbers(6), l, 2, 3)
		assert.ErrorIs(t, x.Err(), ErrShape, "%v", []int(l))
		_, err := Read[float32](context.Background(), x.Add(1))
		assert.ErrorIs(t, err, ErrShape)
	}
	assert.ErrorIs(t, FromLayout(s, numbers(5), ColumnMajor(2), 2, 3).Err(), ErrShape)
	assert.ErrorIs(t, FromLayout(s, numbers(6), nil, 2, -3).Err(), ErrShape)
	assert.Equal(t, []float32{4}, values[float32](t, FromLayout(s, []float32{4}, Layout{})), "no dimensions")
	for _, l := range []Layout{RowMajor, {}} {
		assert.Equal(t, []int{3, 1}, l.Strides(2, 3), "an empty layout is row-major")
		assert.Equal(t, numbers(6), values[float32](t, FromLayout(s, numbers(6), l, 2, 3)))
	}
	order := ColumnMajor(2)
	x := FromLayout(s, numbers(6), order, 2, 3)
	slices.Sort(order)
	assert.Equal(t, []float32{0, 2, 4, 1, 3, 5}, values[float32](t, x), "the tensor has its own")
}
