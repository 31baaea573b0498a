package tensor

// Tensors of data that lies in another order than its shape says.

import (
	"fmt"
	"slices"
	"strings"
)

// Layout says in which order the elements of an array lie in memory: its dimensions, the one that changes most slowly
// first, each once. So {0, 2, 3, 1} are images [batch, channels, rows, columns] whose channels lie side by side. An
// empty one is [RowMajor].
type Layout []int

// RowMajor is the layout in which the last dimension changes fastest. It is that of results, and suits all devices.
var RowMajor Layout

// ColumnMajor returns the layout in which the first of some dimensions changes fastest, as in Fortran.
func ColumnMajor(rank int) Layout {
	l := counts(0, max(rank, 0))
	slices.Reverse(l)
	return l
}

// ChannelsLast returns the layout of arrays [batch, channels, ...] of at least 2 dimensions whose channels change
// fastest: NHWC of 4, as image files and other frameworks have it.
func ChannelsLast(rank int) Layout {
	l := counts(0, max(rank, 0))
	if rank > 2 {
		l = append(append(l[:1:1], l[2:]...), 1)
	}
	return l
}

// Strides returns how many elements apart neighbours along each dimension of a shape are, or nil if the layout is not
// one of so many dimensions.
func (l Layout) Strides(shape ...int) []int {
	stored, ok := l.stored(shape)
	if !ok {
		return nil
	}
	strides := make([]int, len(shape))
	for i, stride := range rowMajor(stored) {
		strides[l.at(i)] = stride
	}
	return strides
}

// at returns the dimension that is at place i in the order of the memory.
func (l Layout) at(i int) int {
	if len(l) == 0 {
		return i
	}
	return l[i]
}

// stored returns the lengths of a shape in the order of the memory; false unless the layout is one of this shape.
func (l Layout) stored(shape []int) ([]int, bool) {
	if len(l) == 0 {
		return shape, true
	}
	stored := make([]int, len(l))
	for i, d := range l {
		if len(l) != len(shape) || d < 0 || d >= len(shape) || slices.Contains(l[:i], d) {
			return nil, false
		}
		stored[i] = shape[d]
	}
	return stored, len(l) == len(shape)
}

// String names the layout: "row-major", "column-major", or its dimensions from the slowest on, such as "[0 2 3 1]".
func (l Layout) String() string {
	switch {
	case slices.IsSorted(l):
		return "row-major"
	case slices.Equal(l, ColumnMajor(len(l))):
		return "column-major"
	}
	return "[" + strings.Trim(fmt.Sprint([]int(l)), "[]") + "]"
}

// FromLayout returns a tensor of that shape with a copy of data, whose elements lie in the given layout. They are
// copied to the device as they are, and stay so: what is computed of the tensor reads them where they lie, or a
// copy in order, as a plan decides. The layout has to be one of the shape's dimensions, or the result has a mistake
// that wraps [ErrShape].
//
// To read a tensor x in a layout l other than [RowMajor], Read(ctx, x.Permute(l...)).
func FromLayout[T Element](s *Scope, data []T, l Layout, shape ...int) *Tensor {
	stored, ok := l.stored(shape)
	if !ok {
		return failf(s, "from layout", ErrShape, "layout %v of shape %v", []int(l), shape)
	}
	t := From(s, data, append([]int{}, stored...)...)
	if t.err != nil || len(l) == 0 {
		return t
	}
	back := make([]int, len(l))
	for i, d := range l {
		back[d] = i
	}
	return t.Permute(back...)
}
