package tensor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// each calls f with the index of every element of a shape, in order.
func each(shape []int, f func(at []int)) {
	at := make([]int, len(shape))
	for range count(shape) {
		f(at)
		for d := len(shape) - 1; d >= 0; d-- {
			if at[d]++; at[d] < shape[d] {
				break
			}
			at[d] = 0
		}
	}
}

// flat returns the number of an element in order.
func flat(shape, at []int) int {
	n := 0
	for d, i := range at {
		n = n*shape[d] + i
	}
	return n
}

// named returns the element that an index names among n, or -1.
func named(i int64, n int) int {
	if i < 0 {
		i += int64(n)
	}
	if i < 0 || i >= int64(n) {
		return -1
	}
	return int(i)
}

// someIndices returns random indices, of which some name no element.
func someIndices(r *rand.Rand, n, among int) []int64 {
	x := make([]int64, n)
	for i := range x {
		x[i] = r.Int64N(int64(2*among+2)) - int64(among) - 1
	}
	return x
}

func someNumbers(r *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	return x
}

func TestTake(t *testing.T) {
	s := scope(t)
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		shape, index []int
		axis         int
	}{
		{[]int{5}, []int{7}, 0}, {[]int{5, 3}, []int{}, 0}, {[]int{5, 3}, []int{4}, -1}, {[]int{4, 7, 2}, []int{2, 3}, 1},
		{[]int{3, 1, 2, 2}, []int{3}, 2},
		{[]int{0, 3}, []int{2}, 0}, {[]int{3, 0}, []int{2}, 0}, {[]int{4}, []int{0, 3}, 0},
		{[]int{2, 1, 2, 1, 2, 1, 5, 2}, []int{3}, 6}, {[]int{70, 33}, []int{900}, 0},
		{[]int{3, 5, 4}, []int{700}, 1},
	} {
		x, i := someNumbers(r, count(c.shape)), someIndices(r, count(c.index), 4)
		a := From(s, x, c.shape...)
		index := From(s, i, c.index...)
		y := a.Take(c.axis, index)
		d, _ := a.axis(c.axis)
		shape := slices.Concat(c.shape[:d], c.index, c.shape[d+1:])
		require.Equal(t, shape, y.Shape())
		want := make([]float64, count(shape))
		each(shape, func(at []int) {
			if k := named(i[flat(c.index, at[d:d+len(c.index)])], c.shape[d]); k >= 0 {
				want[flat(shape, at)] = x[flat(c.shape, slices.Concat(at[:d], []int{k}, at[d+len(c.index):]))]
			}
		})
		assert.Equal(t, want, values[float64](t, y), c)
		assert.Equal(t, want, values[float64](t, a.Take(c.axis, index.Cast(I8))), c)
		// The gradient, and that of IndexAdd, which is the other way.
		g := GradOf([]*Tensor{y}, []*Tensor{From(s, want, shape...)}, a)[0]
		sums := slices.Repeat([]float64{0}, len(x))
		each(shape, func(at []int) {
			if k := named(i[flat(c.index, at[d:d+len(c.index)])], c.shape[d]); k >= 0 {
				sums[flat(c.shape, slices.Concat(at[:d], []int{k}, at[d+len(c.index):]))] += want[flat(shape, at)]
			}
		})
		assert.InDeltaSlice(t, sums, values[float64](t, g), 1e-10, c)
		assert.InDeltaSlice(t, sums, values[float64](t, Zeros(s, F64, c.shape...).IndexAdd(c.axis, index, y)), 1e-10, c)
		// The last one of those with one place stays.
		set, src := slices.Clone(x), someNumbers(r, count(shape))
		each(shape, func(at []int) {
			if k := named(i[flat(c.index, at[d:d+len(c.index)])], c.shape[d]); k >= 0 {
				set[flat(c.shape, slices.Concat(at[:d], []int{k}, at[d+len(c.index):]))] = src[flat(shape, at)]
			}
		})
		if len(c.index) < 2 { // of each place, the order of indices is that of elements
			assert.Equal(t, set, values[float64](t, a.IndexSet(c.axis, index, From(s, src, shape...))), c)
		}
	}
	table := From(s, []float32{1, 2, 3, 4, 5, 6}, 3, 2)
	assert.Equal(t, []float32{5, 6, 1, 2, 0, 0}, values[float32](t, Embedding(table, From(s, []uint8{2, 0, 3}))))
	assert.Equal(t, []bool{true, false, true},
		values[bool](t, From(s, []bool{false, true}).Take(0, From(s, []int32{1, -2, -1}))))
	assert.Equal(t, []float32{
		0, 0}, values[float32](t, table.T().Take(1, From(s, []uint64{math.MaxUint64, 1 << 63})).Index(0, 0)))
}

func TestTakeAlong(t *testing.T) {
	s := scope(t)
	r := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct {
		shape, index []int
		axis         int
	}{
		{[]int{5}, []int{7}, 0}, {[]int{5, 3}, []int{2, 3}, 0}, {[]int{5, 3}, []int{5, 4}, -1},
		{[]int{4, 7, 2}, []int{4, 3, 2}, 1}, {[]int{4, 0}, []int{4, 2}, 1},
		{[]int{0, 3}, []int{0, 3}, 1}, {[]int{2, 3, 1, 1, 1, 2, 2, 2}, []int{2, 5, 1, 1, 1, 2, 2, 2}, 1},
		{[]int{3, 500}, []int{3, 1500}, 1}, {[]int{1500, 2}, []int{700, 2}, 0},
	} {
		x, i := someNumbers(r, count(c.shape)), someIndices(r, count(c.index), 5)
		a, index := From(s, x, c.shape...), From(s, i, c.index...)
		y := a.TakeAlong(c.axis, index)
		require.Equal(t, c.index, y.Shape())
		d, _ := a.axis(c.axis)
		src := someNumbers(r, count(c.index))
		want, sums, set := make([]float64, len(i)), slices.Clone(x), slices.Clone(x)
		each(c.index, func(at []int) {
			if k := named(i[flat(c.index, at)], c.shape[d]); k >= 0 {
				from := slices.Clone(at)
				from[d] = k
				want[flat(c.index, at)] = x[flat(c.shape, from)]
				sums[flat(c.shape, from)] += src[flat(c.index, at)]
				set[flat(c.shape, from)] = src[flat(c.index, at)]
			}
		})
		assert.Equal(t, want, values[float64](t, y), c)
		z := From(s, src, c.index...)
		assert.InDeltaSlice(t, sums, values[float64](t, a.ScatterAdd(c.axis, index, z)), 1e-9, c)
		assert.Equal(t, set, values[float64](t, a.Scatter(c.axis, index, z)), c)
		if count(c.shape) < 100 {
			gradients(t, func(args ...*Tensor) *Tensor {
				return args[0].Square().TakeAlong(c.axis, index).Mul(args[1]).Sum().Add(args[0].ScatterAdd(c.axis, index,
					args[1]).Sin()).
					Add(args[0].Scatter(c.axis, index, args[1]).Square())
			}, a, z)
		}
	}
	a := From(s, numbers(6), 2, 3)
	assert.Equal(t, []float32{2, 5}, values[float32](t, a.TakeAlong(1, From(s, []int64{2}, 1, 1))), "stretched")
	assert.Equal(t, []float32{3, 3, 4, 4}, values[float32](t,
		From(s, []float32{3, 4}, 1, 2).TakeAlong(1, From(s, []int64{0, 0, 1, 1}, 2, 2))), "stretched")
	assert.Equal(t, []bool{true, false, true},
		values[bool](t, From(s, []bool{false, false, true}).ScatterAdd(0, From(s, []int64{0, 0, 1}),
			From(s, []bool{true, true, false}))))
	assert.Equal(t, []uint8{4, 0}, values[uint8](t, Zeros(s, U8, 2).ScatterAdd(0, Zeros(s, U32, 260), Ones(s, U8))),
		"integers wrap")
	one := Zeros(s, F16, 1).ScatterAdd(0, Zeros(s, U32, 4096), Ones(s, F16))
	assert.Equal(t, []float32{4096}, values[float32](t, one.Cast(F32)), "half is added in F32")
}

func TestScatterAddHasTheSameBits(t *testing.T) {
	s := scope(t)
	r := rand.New(rand.NewPCG(5, 6))
	const n = 20000
	x := make([]float32, n)
	i := make([]int32, n)
	for k := range x {
		x[k], i[k] = float32(r.NormFloat64()), r.Int32N(50)
	}
	sum := func() []float32 {
		return values[float32](t, Zeros(s, F32, 50).ScatterAdd(0, From(s, i), From(s, x)))
	}
	first := sum()
	for range 3 {
		assert.Equal(t, first, sum())
	}
	g := func() []float32 {
		table := Ones(s, F32, 50, 7)
		return values[float32](t, Grad(Embedding(table, From(s, i)).Mul(From(s, x, n, 1)).Sum(), table)[0])
	}
	assert.Equal(t, g(), g())
}

func TestOneHot(t *testing.T) {
	s := scope(t)
	assert.Equal(t, []float32{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
		values[float32](t, From(s, []int64{1, -1, 3, 2}).OneHot(3, F32)))
	assert.Equal(t, []bool{false, true}, values[bool](t, From(s, []uint64{1}).OneHot(2, Bool)))
	assert.Equal(t, []int{2, 0}, From(s, []int8{1, 2}).OneHot(0, F32).Shape())
	assert.Len(t, values[uint8](t, From(s, []int8{1, 2}).OneHot(300, U8)), 600)
}

func TestArgMax(t *testing.T) {
	s := scope(t)
	r := rand.New(rand.NewPCG(7, 8))
	for _, c := range []struct {
		shape []int
		axis  int
	}{{[]int{5}, 0}, {[]int{3, 4}, 0}, {[]int{3, 4}, -1}, {[]int{2, 3, 40}, 1}, {[]int{1}, 0}, {[]int{100000}, 0},
		{[]int{30000, 2}, 0}, {[]int{20000, 33}, 0}, {[]int{0, 3}, 1}, {[]int{2, 40009}, 1},
		{[]int{2, 1, 1, 2, 1, 3, 1, 2}, 5}} {
		x := make([]float64, count(c.shape))
		for i := range x {
			x[i] = float64(r.IntN(5))
			if r.IntN(40) == 0 && len(x) < 1000 {
				x[i] = math.NaN()
			}
		}
		a := From(s, x, c.shape...)
		d, _ := a.axis(c.axis)
		shape := slices.Delete(slices.Clone(c.shape), d, d+1)
		largest, smallest := make([]int64, count(shape)), make([]int64, count(shape))
		each(shape, func(at []int) {
			var row []float64
			for i := range c.shape[d] {
				row = append(row, x[flat(c.shape, slices.Insert(slices.Clone(at), d, i))])
			}
			var hi, lo int
			for i, v := range row {
				if v > row[hi] || v != v && row[hi] == row[hi] {
					hi = i
				}
				if v < row[lo] || v != v && row[lo] == row[lo] {
					lo = i
				}
			}
			largest[flat(shape, at)], smallest[flat(shape, at)] = int64(hi), int64(lo)
		})
		for i, typ := range []Type{F64, F32, F16, BF16} {
			s.engine.groups = i%2 == 1 // long axes in two launches, as GPUs have them
			y := a.Cast(typ)
			assert.Equal(t, largest, values[int64](t, y.ArgMax(c.axis)), "%v %v", c, typ)
			assert.Equal(t, smallest, values[int64](t, y.ArgMin(c.axis)), "%v %v", c, typ)
		}
	}
	assert.Equal(t, []int64{1}, values[int64](t, From(s, []bool{false, true, true}).ArgMax(0)))
	assert.Equal(t, []int64{2}, values[int64](t, From(s, []uint64{1, 0, math.MaxUint64}).ArgMax(0)))
	assert.Equal(t, []int64{1, 0}, values[int64](t, From(s, []float32{1, 4, 2, 3}, 2, 2).T().ArgMax(1)), "of a view")
	x := From(s, []float32{1, 4, 2, 3}, 2, 2)
	turned := x.ArgMax(1).Unsqueeze(1).Cast(F32).Expand(2, 2).Flip(1)
	assert.Equal(t, []float32{2, 5, 3, 4}, values[float32](t, turned.Add(x)), "beside a row in the opposite order")
}

func TestIndexErrors(t *testing.T) {
	s := scope(t)
	x, i := From(s, numbers(6), 2, 3), From(s, []int64{0, 1})
	for what, bad := range map[string]*Tensor{
		"float indices": x.Take(0, x), "axis": x.Take(2, i), "rank": Ones(s, F32, 1, 1, 1, 1, 1, 1, 1, 1).Take(0,
			Zeros(s, I64, 1, 1)),
		"along rank": x.TakeAlong(0, i), "along shape": x.TakeAlong(0, Zeros(s, I64, 2, 2)),
		"scatter shape": x.ScatterAdd(0, Zeros(s, I64, 2, 2), x),
		"index add":     x.IndexAdd(0, i, Ones(s, F32, 3, 3)), "table": Embedding(x.Flatten(), i),
		"one hot":        x.OneHot(3, F32),
		"one hot length": i.OneHot(-1, F32),
		"empty":          Ones(s, F32, 2, 0).ArgMax(1), "number": Ones(s, F32, 1).Squeeze().ArgMax(0),
		"bool": x.Take(0, From(s, []bool{true})),
	} {
		assert.Error(t, bad.Err(), what)
		assert.Contains(t, fmt.Sprint(bad.Err()), "index_test.go", what)
	}
	assert.ErrorIs(t, x.Take(2, i).Err(), ErrShape)
	assert.ErrorIs(t, x.Take(0, x).Err(), ErrType)
}
