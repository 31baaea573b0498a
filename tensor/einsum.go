package tensor

// Sums of products by Einstein's convention.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/concord-compute/concord/kernels/expr"
)

// Einsum returns sums of products of tensors, in NumPy's notation: spec has a letter for each dimension of each
// tensor, such as "bij,bjk->bik". Dimensions with one letter go together; they have one length, or length 1,
// which stretches. Letters that are not in the result are summed over. Without an arrow the result has the
// letters that occur once, in the order of the alphabet. A letter twice in one tensor stands for its diagonal.
// An ellipsis stands for the dimensions that have no letter, which stretch as NumPy does and are first in a
// result without an arrow. Tensors are multiplied one after the other from the left, by MatMul where there is a
// matrix; types are those of MatMul.
func Einsum(spec string, ts ...*Tensor) *Tensor {
	const name = "einsum"
	if len(ts) == 0 {
		return failf(nil, name, ErrShape, "no tensor")
	}
	if bad := check(name, ts...); bad != nil {
		return bad
	}
	typ := ts[0].typ
	var shapes [][]int
	for _, t := range ts {
		typ = Promote(typ, t.typ)
		shapes = append(shapes, t.shape)
	}
	list, out, err := parseEinsum(spec, shapes)
	if err != nil {
		return failf(inner(ts...), name, ErrShape, "%q of %v: %v", spec, shapes, err)
	}
	terms := make([]labeled, len(ts))
	lengths := map[int]int{}
	for i, t := range ts {
		terms[i] = labeled{t.Cast(typ), list[i]}.diagonals()
		if bad := terms[i].t; bad.err != nil {
			return bad
		}
		for j, l := range terms[i].labels {
			n, known := lengths[l]
			switch d := terms[i].t.shape[j]; {
			case !known || n == 1:
				lengths[l] = d
			case d != 1 && d != n:
				return failf(inner(ts...), name, ErrShape, "%q of %v: lengths %d and %d of one dimension", spec, shapes, n, d)
			}
		}
	}
	for i, x := range terms {
		terms[i] = x.sum(func(l int) bool {
			return slices.Contains(out, l) || slices.ContainsFunc(slices.Concat(terms[:i], terms[i+1:]), func(y labeled) bool {
				return slices.Contains(y.labels, l)
			})
		})
	}
	all := terms[0]
	for i, x := range terms[1:] {
		if i+2 < len(terms) { // what follows multiplies sums, which are not rounded before
			all.t = all.t.Cast(typ.Computed())
		}
		all = all.times(x, lengths, func(l int) bool {
			return slices.Contains(out, l) || slices.ContainsFunc(terms[i+2:], func(y labeled) bool {
				return slices.Contains(y.labels, l)
			})
		})
	}
	return all.as(out, lengths).Cast(typ)
}

// parseEinsum returns the labels of the dimensions of each operand and of the result: letters, and for those of
// an ellipsis -1 for the last, -2 for the one before it and so on.
func parseEinsum(spec string, shapes [][]int) (list [][]int, out []int, err error) {
	const dots = "..."
	left, right, arrow := strings.Cut(strings.ReplaceAll(spec, " ", ""), "->")
	parts := strings.Split(left, ",")
	if len(parts) != len(shapes) {
		return nil, nil, fmt.Errorf("%d lists of letters for %d tensors", len(parts), len(shapes))
	}
	parse := func(s string, more func(letters int) int) (labels []int, err error) {
		before, behind, ellipsis := strings.Cut(s, dots)
		for _, r := range before + behind {
			if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
				return nil, fmt.Errorf("%q is not a letter", r)
			}
		}
		n := more(len(before) + len(behind))
		if n < 0 || n > 0 && !ellipsis {
			return nil, fmt.Errorf("%q does not have a letter for each dimension", s)
		}
		for _, r := range before {
			labels = append(labels, int(r))
		}
		for i := n; i > 0; i-- {
			labels = append(labels, -i)
		}
		for _, r := range behind {
			labels = append(labels, int(r))
		}
		return labels, nil
	}
	most, times := 0, map[int]int{}
	for i, s := range parts {
		labels, err := parse(s, func(letters int) int { return len(shapes[i]) - letters })
		if err != nil {
			return nil, nil, err
		}
		list = append(list, labels)
		for _, l := range labels {
			times[l]++
			most = max(most, -l)
		}
	}
	if !arrow {
		for l, n := range times {
			if l < 0 || n == 1 {
				out = append(out, l)
			}
		}
		slices.Sort(out)
		return list, out, nil
	}
	out, err = parse(right, func(int) int {
		if strings.Contains(right, dots) {
			return most
		}
		return 0
	})
	for i, l := range out {
		if times[l] == 0 || slices.Contains(out[:i], l) {
			return nil, nil, fmt.Errorf("%q in the result is in no tensor, or twice", rune(l))
		}
	}
	return list, out, err
}

// labeled is a tensor with a label for each dimension.
type labeled struct {
	t      *Tensor
	labels []int
}

// diagonals replaces dimensions that have one label by their diagonal.
func (x labeled) diagonals() labeled {
	for i := 0; i < len(x.labels); i++ {
		j := slices.Index(x.labels[i+1:], x.labels[i])
		if j < 0 {
			continue
		}
		j += i + 1
		if x.t.shape[i] != x.t.shape[j] {
			return labeled{t: failf(x.t.scope, "einsum", ErrShape, "the diagonal of axes %d and %d of %v", i, j, x.t.shape)}
		}
		var order, labels []int
		for d, l := range x.labels {
			if d != i && d != j {
				order, labels = append(order, d), append(labels, l)
			}
		}
		x = labeled{x.t.Permute(append(order, i, j)...).Diagonal(0), append(labels, x.labels[i])}
		i = -1
	}
	return x
}

// sum reduces the dimensions that are not kept.
func (x labeled) sum(keep func(label int) bool) labeled {
	var axes, labels []int
	for d, l := range x.labels {
		if keep(l) {
			labels = append(labels, l)
		} else {
			axes = append(axes, d)
		}
	}
	if len(axes) == 0 {
		return x
	}
	op := expr.Sum
	if x.t.typ == Bool {
		op = expr.Any
	}
	return labeled{x.t.reduceAxes("einsum", op, axes, x.t.typ.Computed()), labels}
}

// as returns x with dimensions in the order of labels, which are all that it has and others, of length 1 or,
// with lengths, of these.
func (x labeled) as(labels []int, lengths map[int]int) *Tensor {
	var order, shape, to []int
	for _, l := range labels {
		n := 1
		if d := slices.Index(x.labels, l); d >= 0 {
			order, n = append(order, d), x.t.shape[d]
		}
		shape = append(shape, n)
		to = append(to, lengths[l])
	}
	t := x.t.Permute(order...).Reshape(shape...)
	if lengths != nil {
		t = t.Expand(to...)
	}
	return t
}

// times returns the product of x and y, summed over the labels of both that are not kept. All labels of one
// alone are kept.
func (x labeled) times(y labeled, lengths map[int]int, keep func(label int) bool) labeled {
	var batch, rows, summed, cols []int
	for _, l := range x.labels {
		switch {
		case !slices.Contains(y.labels, l):
			rows = append(rows, l)
		case keep(l):
			batch = append(batch, l)
		default:
			summed = append(summed, l)
		}
	}
	for _, l := range y.labels {
		if !slices.Contains(x.labels, l) {
			cols = append(cols, l)
		}
	}
	out := slices.Concat(batch, rows, cols)
	if len(summed) == 0 || len(rows) == 0 && len(cols) == 0 { // element by element
		all := append(slices.Clone(out), summed...)
		wide := Promote(x.t.typ, y.t.typ).Computed()
		return labeled{x.as(all, nil).Cast(wide).Mul(y.as(all, nil)), all}.sum(func(l int) bool {
			return slices.Contains(out, l)
		})
	}
	size := func(labels []int) int {
		n := 1
		for _, l := range labels {
			n *= lengths[l]
		}
		return n
	}
	a := x.as(slices.Concat(batch, rows, summed), lengths).Reshape(size(batch), size(rows), size(summed))
	b := y.as(slices.Concat(batch, summed, cols), lengths).Reshape(size(batch), size(summed), size(cols))
	var shape []int
	for _, l := range out {
		shape = append(shape, lengths[l])
	}
	return labeled{a.MatMul(b).Reshape(shape...), out}
}
