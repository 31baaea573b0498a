package tensor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestArrange(t *testing.T) {
	s := scope(t)
	x := From(s, numbers(6), 2, 3)
	for what, c := range map[string]struct {
		got  *Tensor
		want []float32
	}{
		"roll":           {x.Roll(1, 1), []float32{2, 0, 1, 5, 3, 4}},
		"roll back":      {x.Roll(-2, -5), []float32{3, 4, 5, 0, 1, 2}},
		"roll around":    {x.Roll(1, 3), numbers(6)},
		"tile":           {x.Tile(2), []float32{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}},
		"tile more":      {From(s, []float32{1, 2}).Tile(2, 1, 2), []float32{1, 2, 1, 2, 1, 2, 1, 2}},
		"tile none":      {x.Tile(0), nil},
		"repeat":         {x.Repeat(0, 2), []float32{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}},
		"repeat columns": {x.Repeat(-1, 2), []float32{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}},
		"pad replicate":  {From(s, numbers(3)).PadWith(Replicate, [2]int{2, 4}), []float32{0, 0, 0, 1, 2, 2, 2, 2, 2}},
		"pad reflect":    {From(s, numbers(3)).PadWith(Reflect, [2]int{2, 1}), []float32{2, 1, 0, 1, 2, 1}},
		"pad symmetric":  {From(s, numbers(3)).PadWith(Symmetric, [2]int{3, 1}), []float32{2, 1, 0, 0, 1, 2, 2}},
		"pad circular":   {From(s, numbers(3)).PadWith(Circular, [2]int{3, 1}), []float32{0, 1, 2, 0, 1, 2, 0}},
		"pad two": {From(s, numbers(4), 2, 2).PadWith(Reflect, [2]int{1, 0}, [2]int{0, 1}),
			[]float32{2, 3, 2, 0, 1, 0, 2, 3, 2}},
		"tril":                {x.Tril(0), []float32{0, 0, 0, 3, 4, 0}},
		"tril above":          {x.Tril(1), []float32{0, 1, 0, 3, 4, 5}},
		"triu":                {x.Triu(0), []float32{0, 1, 2, 0, 4, 5}},
		"triu below":          {x.Triu(-1), numbers(6)},
		"triu NaN":            {Full(s, F32, math.NaN(), 1, 2).Triu(2), []float32{0, 0}},
		"diagonal":            {x.Diagonal(0), []float32{0, 4}},
		"diagonal above":      {x.Diagonal(2), []float32{2}},
		"diagonal below":      {x.Diagonal(-1), []float32{3}},
		"no diagonal":         {x.Diagonal(3), nil},
		"diagonals of a view": {x.T().Add(0).Diagonal(-1), []float32{1, 5}},
		"diagonals":           {From(s, numbers(8), 2, 2, 2).Diagonal(0), []float32{0, 3, 4, 7}},
		"diag":                {From(s, []float32{1, 2}).Diag(), []float32{1, 0, 0, 2}},
	} {
		require.NoError(t, c.got.Err(), what)
		assert.Equal(t, c.want, append([]float32(nil), values[float32](t, c.got)...), what)
	}
	y := From(s, someNumbers(rand.New(rand.NewPCG(1, 1)), 24), 2, 4, 3)
	for what, f := range map[string]func(t *Tensor) *Tensor{
		"roll": func(t *Tensor) *Tensor { return t.Roll(1, 3) }, "tile": func(t *Tensor) *Tensor {
			return t.Tile(2, 1, 1, 3)
		},
		"repeat": func(t *Tensor) *Tensor { return t.Repeat(1, 3) }, "triu": func(t *Tensor) *Tensor { return t.Triu(1) },
		"diagonal": func(t *Tensor) *Tensor { return t.Diagonal(-1) }, "diag": (*Tensor).Diag,
		"replicate": func(t *Tensor) *Tensor { return t.PadWith(Replicate, [2]int{1, 2}) },
		"reflect":   func(t *Tensor) *Tensor { return t.PadWith(Reflect, [2]int{}, [2]int{3, 2}, [2]int{1, 0}) },
		"circular":  func(t *Tensor) *Tensor { return t.PadWith(Circular, [2]int{2, 1}, [2]int{4, 0}) },
	} {
		t.Run(what, func(t *testing.T) {
			gradients(t, func(args ...*Tensor) *Tensor { return f(args[0].Square()) }, y)
		})
	}
	wide := From(s, numbers(6), 1, 1, 1, 1, 1, 1, 2, 3)
	assert.Equal(t, []float32{1, 0, 4, 3, 1, 0, 4, 3},
		values[float32](t, wide.Tile(2, 1, 1).Repeat(0, 1).Roll(-1, 1).Slice(All, All, All, All, All, All, All,
			Range{2, 0, -1})), "eight dimensions")
}

func TestArrangeErrors(t *testing.T) {
	s := scope(t)
	x := From(s, numbers(6), 2, 3)
	for what, bad := range map[string]*Tensor{
		"roll": x.Roll(2, 1), "tile": x.Tile(-1), "repeat": x.Repeat(0, -1), "repeat axis": x.Repeat(2, 1),
		"mode": x.PadWith(7), "margins": x.PadWith(Reflect, [2]int{}, [2]int{}, [2]int{}),
		"reflect": x.PadWith(Reflect, [2]int{2, 0}), "circular": x.PadWith(Circular, [2]int{0, 3}),
		"empty": Ones(s, F32, 0).PadWith(Replicate, [2]int{1, 0}), "negative": x.PadWith(Replicate, [2]int{-1, 0}),
		"tril": x.Flatten().Tril(0), "diagonal": x.Flatten().Diagonal(0), "diag": x.Sum().Diag(),
		"large": x.Tile(1<<40, 1<<40), "rank": Ones(s, F32, 1, 1, 1, 1, 1, 1, 1, 1).Diag(),
	} {
		assert.ErrorIs(t, bad.Err(), ErrShape, what)
		assert.Contains(t, fmt.Sprint(bad.Err()), "arrange_test.go", what)
	}
}

// einsum computes the sum of products over all letters, in float64. There are no ellipses.
func einsum(spec string, shapes [][]int, data [][]float64) ([]int, []float64) {
	left, right, _ := strings.Cut(spec, "->")
	parts := strings.Split(left, ",")
	var letters string
	length := map[rune]int{}
	for i, p := range parts {
		for j, l := range p {
			if !strings.ContainsRune(letters, l) {
				letters += string(l)
			}
			length[l] = max(length[l], shapes[i][j])
			if shapes[i][j] == 0 {
				length[l] = 0
			}
		}
	}
	var all, shape []int
	for _, l := range letters {
		all = append(all, length[l])
	}
	for _, l := range right {
		shape = append(shape, length[l])
	}
	out := make([]float64, count(shape))
	each(all, func(at []int) {
		place := func(p string, shape []int) int {
			var i []int
			for j, l := range p {
				i = append(i, min(at[strings.IndexRune(letters, l)], shape[j]-1))
			}
			return flat(shape, i)
		}
		x := 1.0
		for i, p := range parts {
			x *= data[i][place(p, shapes[i])]
		}
		out[place(right, shape)] += x
	})
	return shape, out
}

// Between the products of more than two tensors sums are not rounded to the type of the operands.
func TestEinsumOfHalfByParts(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Scope) {
		x := Einsum("ij,jk,kl->il", Full(s, F16, 300, 2, 10), Full(s, F16, 300, 10, 2), Full(s, F16, 1e-4, 2, 3))
		require.NoError(t, x.Err())
		assert.Equal(t, F16, x.Type())
		for _, v := range values[float32](t, x.Cast(F32)) {
			assert.InDelta(t, 180, v, 0.2)
		}
	})
}

func TestEinsum(t *testing.T) {
	s := scope(t)
	r := rand.New(rand.NewPCG(13, 14))
	for _, c := range []struct {
		spec   string
		shapes [][]int
	}{
		{"ij,jk->ik", [][]int{{3, 4}, {4, 2}}}, {"bhqd,bkhd->bhqk", [][]int{{2, 3, 4, 5}, {2, 6, 3, 5}}},
		{"i,j,k->kij", [][]int{{2}, {3}, {4}}},
		{"ij,jk,kl,lm->im", [][]int{{2, 3}, {3, 4}, {4, 2}, {2, 3}}}, {"iij,jk->ik", [][]int{{3, 3, 2}, {2, 4}}},
		{"iii->i", [][]int{{3, 3, 3}}}, {"iji,k->", [][]int{{2, 3, 2}, {4}}},
		{"ij,jk->ik", [][]int{{3, 1}, {4, 2}}}, {"bi,bi->b", [][]int{{1, 4}, {3, 4}}},
		{"bij,bjk->bik", [][]int{{1, 2, 3}, {4, 3, 2}}}, {"ij,ij->i", [][]int{{3, 4}, {3, 4}}},
		{"abcd,cdef->abef", [][]int{{2, 2, 3, 2}, {3, 2, 2, 2}}}, {"ij->", [][]int{{3, 4}}},
		{"ij,j->ji", [][]int{{0, 4}, {4}}}, {"ij,jk->ik", [][]int{{3, 0}, {0, 2}}},
		{"abcdefgh->hgfedcba", [][]int{{1, 2, 1, 2, 1, 2, 1, 2}}},
		{"abc,abc,abc->b", [][]int{{2, 3, 2}, {2, 3, 2}, {2, 1, 2}}}, {",ij,->ji", [][]int{{}, {2, 3}, {}}},
	} {
		var ts []*Tensor
		var data [][]float64
		for _, shape := range c.shapes {
			data = append(data, someNumbers(r, count(shape)))
			ts = append(ts, From(s, data[len(data)-1], shape...))
		}
		shape, want := einsum(c.spec, c.shapes, data)
		got := Einsum(c.spec, ts...)
		require.NoError(t, got.Err(), c.spec)
		assert.Equal(t, append([]int{}, shape...), append([]int{}, got.Shape()...), c.spec)
		assert.InDeltaSlice(t, want, values[float64](t, got), 1e-10, c.spec)
		if got.Len() > 0 && !slices.ContainsFunc(ts, func(x *Tensor) bool { return x.Len() == 0 }) {
			gradients(t, func(args ...*Tensor) *Tensor { return Einsum(c.spec, args...) }, ts...)
		}
	}
	x := From(s, numbers(6), 2, 3)
	assert.Equal(t, values[float32](t, x.T()), values[float32](t, Einsum("ba", x)), "an order without an arrow")
	assert.Equal(t, []float32{15}, values[float32](t, Einsum("... -> ", x)))
	assert.Equal(t, []float32{3, 5, 7}, values[float32](t, Einsum("i...->...", x)))
	assert.Equal(t, []bool{true, false}, values[bool](t, Einsum("ij,j->i", From(s, []bool{true, true, true, false}, 2, 2),
		From(s, []bool{false, true}))))
	assert.Equal(t, []int8{-56}, values[int8](t, Einsum("i,i->", From(s, []int8{100, 100}), From(s, []int8{1, 1}))),
		"integers wrap")
	assert.Equal(t, F64, Einsum("i,i", From(s, []int64{1, 2}), From(s, []float32{1, 2})).Type())
	for _, spec := range []string{"i", "i,i", "ij->k", "ij->ii", "i1", "ijk", "i->i", "ij,", "ij->i->j", "...ijk", "ii"} {
		bad := Einsum(spec, x)
		assert.ErrorIs(t, bad.Err(), ErrShape, spec)
		assert.Contains(t, fmt.Sprint(bad.Err()), "arrange_test.go", spec)
	}
	assert.ErrorIs(t, Einsum("ij,jk", x, x).Err(), ErrShape)
	assert.ErrorIs(t, Einsum("").Err(), ErrShape)
}

// The second result of a call, when the first one has been computed before.
func TestResultsApart(t *testing.T) {
	s := scope(t)
	v, i := From(s, []float32{3, 1, 2}).Sort(0, false)
	assert.Equal(t, []float32{1, 2, 3}, values[float32](t, v))
	assert.Equal(t, []int64{1, 2, 0}, values[int64](t, i))
	v, i = From(s, []float32{3, 1, 2}).Sort(0, false)
	assert.Equal(t, []int64{1, 2, 0}, values[int64](t, i))
	assert.Equal(t, []float32{1, 2, 3}, values[float32](t, v))
}
