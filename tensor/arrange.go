package tensor

// Other arrangements of elements, made of views and joins: rolled, repeated, padded by elements, triangles and
// diagonals.

import "slices"

// Roll returns t with the elements of an axis moved by shift places to higher indices, or with a negative shift
// to lower ones; those that would leave it return at its other end.
func (t *Tensor) Roll(axis, shift int) *Tensor {
	if bad := check("roll", t); bad != nil {
		return bad
	}
	i, ok := t.axis(axis)
	if !ok {
		return failf(t.scope, "roll", ErrShape, "axis %d of shape %v", axis, t.shape)
	}
	n := t.shape[i]
	if n == 0 {
		return t
	}
	if shift = (shift%n + n) % n; shift == 0 {
		return t
	}
	return Concat(i, t.Narrow(i, n-shift, shift), t.Narrow(i, 0, n-shift))
}

// Tile returns t repeated along dimensions, as NumPy does: the last of times is of the last dimension, missing
// ones are 1, and missing dimensions are put in front. It is a view.
func (t *Tensor) Tile(times ...int) *Tensor {
	const name = "tile"
	if bad := check(name, t); bad != nil {
		return bad
	}
	rank := max(len(t.shape), len(times))
	shape := append(slices.Repeat([]int{1}, rank-len(t.shape)), t.shape...)
	times = append(slices.Repeat([]int{1}, rank-len(times)), times...)
	if slices.Min(append(times, 0)) < 0 {
		return failf(t.scope, name, ErrShape, "%v times", times)
	}
	t = t.Reshape(shape...)
	for i, n := range times {
		t = t.repeated(i, n, 1)
	}
	return t
}

// Repeat returns t with each element of an axis n times, one after the other. It is a view.
func (t *Tensor) Repeat(axis, n int) *Tensor {
	const name = "repeat"
	if bad := check(name, t); bad != nil {
		return bad
	}
	i, ok := t.axis(axis)
	if !ok || n < 0 {
		return failf(t.scope, name, ErrShape, "%d times along axis %d of shape %v", n, axis, t.shape)
	}
	return t.repeated(i, 1, n)
}

// repeated returns the whole of a dimension several times, and each of its elements.
func (t *Tensor) repeated(i, whole, each int) *Tensor {
	if t.err != nil || whole == 1 && each == 1 {
		return t
	}
	outer, n, inner := around(t.shape, i)
	shape := slices.Clone(t.shape)
	shape[i] = whole * n * each
	if err := checkShape(shape); err != nil {
		return fail(t.scope, "repeat", err)
	}
	return t.Reshape(outer, 1, n, 1, inner).Expand(outer, whole, n, each, inner).Reshape(shape...)
}

// PadMode says which elements are put around a tensor.
type PadMode int

// The elements around a dimension 1 2 3 4, two on each side.
const (
	Replicate PadMode = iota // 1 1 | 1 2 3 4 | 4 4
	Reflect                  // 3 2 | 1 2 3 4 | 3 2
	Symmetric                // 2 1 | 1 2 3 4 | 4 3
	Circular                 // 3 4 | 1 2 3 4 | 1 2
)

// String returns the name of the mode.
func (m PadMode) String() string {
	if m < Replicate || m > Circular {
		return "unknown"
	}
	return [...]string{"replicate", "reflect", "symmetric", "circular"}[m]
}

// PadWith returns t with elements of itself around it: margins[j] are the numbers in front of and behind
// dimension j, missing ones 0. A margin is not longer than the dimension, with Reflect shorter, but with
// Replicate any length. The gradient is added up where the elements come from.
func (t *Tensor) PadWith(mode PadMode, margins ...[2]int) *Tensor {
	name := "pad " + mode.String()
	if bad := check(name, t); bad != nil {
		return bad
	}
	if len(margins) > len(t.shape) || mode < Replicate || mode > Circular {
		return failf(t.scope, name, ErrShape, "%d margins for shape %v", len(margins), t.shape)
	}
	for i, m := range margins {
		n := t.shape[i]
		if m == [2]int{} {
			continue
		}
		most := map[PadMode]int{Replicate: End, Reflect: n - 1, Symmetric: n, Circular: n}[mode]
		if n == 0 || min(m[0], m[1]) < 0 || max(m[0], m[1]) > most {
			return failf(t.scope, name, ErrShape, "margins of %v for axis %d of shape %v", m, i, t.shape)
		}
		var before, behind *Tensor
		switch mode {
		case Replicate:
			before, behind = t.Narrow(i, 0, 1).repeated(i, 1, m[0]), t.Narrow(i, n-1, 1).repeated(i, 1, m[1])
		case Reflect:
			before, behind = t.Narrow(i, 1, m[0]).Flip(i), t.Narrow(i, n-1-m[1], m[1]).Flip(i)
		case Symmetric:
			before, behind = t.Narrow(i, 0, m[0]).Flip(i), t.Narrow(i, n-m[1], m[1]).Flip(i)
		case Circular:
			before, behind = t.Narrow(i, n-m[0], m[0]), t.Narrow(i, 0, m[1])
		}
		if t = Concat(i, before, t, behind); t.err != nil {
			return t
		}
	}
	return t
}

// Tril returns the matrices in the last two dimensions with zeros above diagonal k, which is the main one for
// 0, and others above it for positive and below it for negative k.
func (t *Tensor) Tril(k int) *Tensor { return t.triangle("tril", k, true) }

// Triu returns the matrices in the last two dimensions with zeros below diagonal k, which counts as Tril's.
func (t *Tensor) Triu(k int) *Tensor { return t.triangle("triu", k, false) }

func (t *Tensor) triangle(name string, k int, lower bool) *Tensor {
	if bad := check(name, t); bad != nil {
		return bad
	}
	if len(t.shape) < 2 {
		return failf(t.scope, name, ErrShape, "%v has no matrix", t.shape)
	}
	row, col := Iota(t.scope, I64, t.Dim(-2)).Unsqueeze(1), Iota(t.scope, I64, t.Dim(-1))
	d := col.Sub(row)
	if lower {
		return Where(d.Le(k), t, Zeros(t.scope, t.typ))
	}
	return Where(d.Ge(k), t, Zeros(t.scope, t.typ))
}

// Diagonal returns diagonal k of the matrices in the last two dimensions, which become one: the main diagonal
// for 0, and others above it for positive and below it for negative k. It is a view.
func (t *Tensor) Diagonal(k int) *Tensor {
	const name = "diagonal"
	if bad := check(name, t); bad != nil {
		return bad
	}
	rank := len(t.shape)
	if rank < 2 {
		return failf(t.scope, name, ErrShape, "%v has no matrix", t.shape)
	}
	m, n := t.shape[rank-2], t.shape[rank-1]
	start, length := k, min(m, n-k)
	if k < 0 {
		start, length = -k*n, min(m+k, n)
	}
	shape := append(slices.Clone(t.shape[:rank-2]), m*n)
	if length <= 0 {
		return t.Reshape(shape...).Narrow(-1, 0, 0)
	}
	ranges := slices.Repeat([]Range{All}, rank-1)
	ranges[rank-2] = Range{start, start + (length-1)*(n+1) + 1, n + 1}
	return t.Reshape(shape...).Slice(ranges...)
}

// Diag returns matrices with the elements of the last dimension in their main diagonals and zeros elsewhere.
func (t *Tensor) Diag() *Tensor {
	const name = "diag"
	if bad := check(name, t); bad != nil {
		return bad
	}
	if len(t.shape) == 0 {
		return failf(t.scope, name, ErrShape, "a number has no dimension")
	}
	n := t.Dim(-1)
	i := Iota(t.scope, I64, n)
	shape := append(slices.Clone(t.shape), n)
	if err := checkShape(shape); err != nil {
		return fail(t.scope, name, err)
	}
	return Where(i.Unsqueeze(1).Eq(i), t.Unsqueeze(-1), Zeros(t.scope, t.typ))
}
