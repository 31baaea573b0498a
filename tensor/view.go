package tensor

// Views: tensors whose elements are those of another one in other places. They copy nothing. Where the elements
// of a view lie is computed by linear forms of the variables of a loop, so that a kernel may read any chain of
// views in place.

import (
	"slices"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/kernels/expr"
)

// viewOp is one view. It is of its first arg. Exactly one of perm, cut, slide, expand, shape and same is set.
type viewOp struct {
	name   string
	perm   []int                     // dimension j of the view is dimension perm[j]
	cut    []span                    // of each dimension
	slide  *slide                    // a dimension becomes windows
	expand bool                      // dimensions of length 1 are repeated
	shape  bool                      // the same elements in order
	same   bool                      // the same tensor, for the sake of its gradient
	back   func(g *Tensor) []*Tensor // the gradients of the args after the first, or nil
}

// span is the part of a dimension that a slice takes: element i of it is element start + i·step.
type span struct{ start, step int }

// slide is how a dimension becomes windows of size elements, one dimension for their number and one for the
// places in them: element j of window i is element i·stride + j·dilation.
type slide struct{ axis, size, stride, dilation int }

func (o *viewOp) String() string { return o.name }

// variable counts the elements of a dimension of a loop, from 0 to extent-1. It may be divided: then its value is
// outer·(extent of inner) + inner.
type variable struct {
	extent       int
	outer, inner *variable
	number       int // in the order in which they were made
}

// linear is a number that depends on variables: offset + Σ factor·variable.
type linear struct {
	offset int
	terms  []term // by the variables' numbers
}

type term struct {
	v      *variable
	factor int
}

func of(v *variable) linear { return linear{terms: []term{{v, 1}}} }

// plus returns a + k·b.
func (a linear) plus(k int, b linear) linear {
	out := linear{a.offset + k*b.offset, slices.Clone(a.terms)}
	for _, t := range b.terms {
		out.add(t.v, k*t.factor)
	}
	return out
}

func (a *linear) add(v *variable, factor int) {
	if i := slices.IndexFunc(a.terms, func(t term) bool { return t.v == v }); i >= 0 {
		a.terms[i].factor += factor
		return
	}
	a.terms = append(a.terms, term{v, factor})
}

// divided returns a in terms of variables that are not divided.
func (a linear) divided() linear {
	out := linear{offset: a.offset}
	var put func(v *variable, factor int)
	put = func(v *variable, factor int) {
		switch {
		case v.outer != nil:
			put(v.outer, factor*v.inner.extent)
			put(v.inner, factor)
		case factor != 0 && v.extent != 1:
			out.add(v, factor)
		}
	}
	for _, t := range a.terms {
		put(t.v, t.factor)
	}
	out.terms = slices.DeleteFunc(out.terms, func(t term) bool { return t.factor == 0 })
	slices.SortFunc(out.terms, func(x, y term) int { return x.v.number - y.v.number })
	return out
}

// factorOf returns the factor of a variable.
func (a linear) factorOf(v *variable) int {
	for _, t := range a.terms {
		if t.v == v {
			return t.factor
		}
	}
	return 0
}

// step returns the factor of a divided variable, whose parts are given, outermost first, and whether they lie as one.
func (a linear) step(parts []*variable) (step int, ok bool) {
	var below *variable
	for _, v := range slices.Backward(parts) {
		if v.extent == 1 {
			continue
		}
		f := a.factorOf(v)
		if below == nil {
			step = f
		} else if f != a.factorOf(below)*below.extent {
			return 0, false
		}
		below = v
	}
	return step, true
}

func (a linear) write(b *strings.Builder) {
	b.WriteString(strconv.Itoa(a.offset))
	for _, t := range a.terms {
		b.WriteByte('+')
		b.WriteString(strconv.Itoa(t.factor))
		b.WriteByte('.')
		b.WriteString(strconv.Itoa(t.v.number))
	}
}

// access gives for each dimension of a tensor the index of its element.
type access []linear

func (a access) divided() access {
	out := make(access, len(a))
	for i := range a {
		out[i] = a[i].divided()
	}
	return out
}

// through returns the access to the tensor, of the given shape, that a view is of, for an access to the view;
// false if the view is a reshape of dimensions that no variables walk through evenly. new makes variables.
func (o *viewOp) through(a access, shape, viewed []int, vars *variables) (access, bool) {
	switch {
	case o.same:
		return a, true
	case o.perm != nil:
		in := make(access, len(shape))
		for j, d := range o.perm {
			in[d] = a[j]
		}
		return in, true
	case o.cut != nil:
		in := make(access, len(shape))
		for j, c := range o.cut {
			in[j] = linear{offset: c.start}.plus(c.step, a[j])
		}
		return in, true
	case o.slide != nil:
		i := o.slide.axis
		in := slices.Delete(slices.Clone(a), i+1, i+2)
		in[i] = linear{}.plus(o.slide.stride, a[i]).plus(o.slide.dilation, a[i+1])
		return in, true
	case o.expand:
		in := slices.Clone(a)
		for j, d := range shape {
			if d == 1 {
				in[j] = linear{}
			}
		}
		return in, true
	}
	return vars.reshape(a, viewed, shape)
}

// variables makes the variables of a loop.
type variables struct{ made int }

func (vs *variables) new(extent int) *variable {
	vs.made++
	return &variable{extent: extent, number: vs.made}
}

// reshape returns an access to shape to for an access to shape from, which has as many elements.
func (vs *variables) reshape(a access, from, to []int) (access, bool) {
	out := make(access, len(to))
	i, j := 0, 0
	for i < len(from) || j < len(to) {
		i0, j0, n, m := i, j, 1, 1
		// The next dimensions of both with one product; those of length 1 at the end join the last ones.
		for first := true; first || n != m; first = false {
			if n <= m && i < len(from) {
				n *= from[i]
				i++
			} else if j < len(to) {
				m *= to[j]
				j++
			} else {
				break
			}
		}
		if n != m {
			return nil, false // only with a dimension of length 0
		}
		flat, stride := linear{}, 1
		for d := i - 1; d >= i0; d-- {
			flat = flat.plus(stride, a[d])
			stride *= from[d]
		}
		if !vs.digits(flat.divided(), to[j0:j], out[j0:j]) {
			return nil, false
		}
	}
	return out, true
}

// digits writes flat as a number whose digits count the dimensions of shape.
func (vs *variables) digits(flat linear, shape []int, out []linear) bool {
	if len(shape) == 1 {
		out[0] = flat
		return true
	}
	offset, stride := flat.offset, 1
	strides := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		strides[d] = stride
		stride *= shape[d]
		out[d] = linear{offset: offset % shape[d]}
		offset /= shape[d]
	}
	if flat.offset < 0 || offset > 0 {
		return false
	}
	for work := flat.terms; len(work) > 0; work = work[1:] {
		t := work[0]
		if t.factor < 0 {
			return false
		}
		d := slices.IndexFunc(strides, func(s int) bool { return s <= t.factor })
		for d >= 0 && shape[d] == 1 {
			d--
		}
		if d < 0 || t.factor%strides[d] != 0 {
			return false
		}
		if room := strides[d] * shape[d]; t.factor*(t.v.extent-1) >= room {
			if t.v.outer != nil || room%t.factor != 0 || t.v.extent%(room/t.factor) != 0 {
				return false
			}
			t.v.outer, t.v.inner = vs.new(t.v.extent/(room/t.factor)), vs.new(room/t.factor)
			work = append(slices.Clone(work), term{t.v.inner, t.factor}, term{t.v.outer, room})
			continue
		}
		out[d].add(t.v, t.factor/strides[d])
	}
	for d := range out {
		most := out[d].offset
		for _, t := range out[d].terms {
			most += t.factor * (t.v.extent - 1)
		}
		if most >= shape[d] {
			return false
		}
	}
	return true
}

// view returns a view of t.
func (t *Tensor) view(o *viewOp, shape []int) *Tensor { return made(o, t.typ, shape, t) }

// Permute returns t with its dimensions in another order: dimension j of the result is dimension order[j] of t.
func (t *Tensor) Permute(order ...int) *Tensor {
	if bad := check("permute", t); bad != nil {
		return bad
	}
	if len(order) != len(t.shape) {
		return failf(t.scope, "permute", ErrShape, "%d of the dimensions of %v", len(order), t.shape)
	}
	perm, shape := make([]int, len(order)), make([]int, len(order))
	for j, d := range order {
		i, ok := t.axis(d)
		if !ok || slices.Contains(perm[:j], i) {
			return failf(t.scope, "permute", ErrShape, "the order %v of the dimensions of %v", order, t.shape)
		}
		perm[j], shape[j] = i, t.shape[i]
	}
	if slices.IsSorted(perm) {
		return t
	}
	return t.view(&viewOp{name: "permute", perm: perm}, shape)
}

// Transpose returns t with two dimensions exchanged.
func (t *Tensor) Transpose(a, b int) *Tensor {
	if bad := check("transpose", t); bad != nil {
		return bad
	}
	i, ok := t.axis(a)
	j, too := t.axis(b)
	if !ok || !too {
		return failf(t.scope, "transpose", ErrShape, "axes %d and %d of shape %v", a, b, t.shape)
	}
	order := counts(0, len(t.shape))
	order[i], order[j] = j, i
	return t.Permute(order...)
}

// T returns t with its last two dimensions exchanged, a vector as it is.
func (t *Tensor) T() *Tensor {
	if t.err != nil || len(t.shape) < 2 {
		return t
	}
	return t.Transpose(-2, -1)
}

// Reshape returns the elements of t, in order, with another shape of as many elements. One length may be -1: it is
// what the others leave.
func (t *Tensor) Reshape(shape ...int) *Tensor {
	if bad := check("reshape", t); bad != nil {
		return bad
	}
	to := slices.Clone(shape)
	if i := slices.Index(to, -1); i >= 0 {
		if slices.Contains(to[i+1:], -1) {
			return failf(t.scope, "reshape", ErrShape, "%v has more than one -1", shape)
		}
		to[i] = 1
		if n := count(to); n > 0 && count(t.shape)%n == 0 {
			to[i] = count(t.shape) / n
		}
	}
	if err := checkShape(to); err != nil {
		return fail(t.scope, "reshape", err)
	}
	if count(to) != count(t.shape) {
		return failf(t.scope, "reshape", ErrShape, "%v with %d elements to %v", t.shape, count(t.shape), shape)
	}
	if slices.Equal(to, t.shape) {
		return t
	}
	return t.view(&viewOp{name: "reshape", shape: true}, to)
}

// Flatten returns the elements of t in one dimension.
func (t *Tensor) Flatten() *Tensor { return t.Reshape(-1) }

// Unsqueeze returns t with a dimension of length 1 in front of dimension axis; negative axes count from behind
// the last dimension.
func (t *Tensor) Unsqueeze(axis int) *Tensor {
	if t.err != nil {
		return t
	}
	if axis < 0 {
		axis += len(t.shape) + 1
	}
	if axis < 0 || axis > len(t.shape) {
		return failf(t.scope, "unsqueeze", ErrShape, "axis %d of shape %v", axis, t.shape)
	}
	return t.Reshape(slices.Insert(slices.Clone(t.shape), axis, 1)...)
}

// Squeeze returns t without dimensions of length 1: the given ones, or all if there are none.
func (t *Tensor) Squeeze(axes ...int) *Tensor {
	if bad := check("squeeze", t); bad != nil {
		return bad
	}
	list, err := t.axes(axes)
	if err != nil {
		return fail(t.scope, "squeeze", err)
	}
	var shape []int
	for i, d := range t.shape {
		switch {
		case !slices.Contains(list, i):
		case d == 1:
			continue
		case len(axes) > 0:
			return failf(t.scope, "squeeze", ErrShape, "axis %d of shape %v is not of length 1", i, t.shape)
		}
		shape = append(shape, d)
	}
	return t.Reshape(shape...)
}

// Expand returns t stretched to a shape as NumPy broadcasts: missing leading dimensions are added, and
// dimensions of length 1 are repeated. A length of -1 leaves a dimension as it is.
func (t *Tensor) Expand(shape ...int) *Tensor {
	if bad := check("expand", t); bad != nil {
		return bad
	}
	to, shift := slices.Clone(shape), len(shape)-len(t.shape)
	if shift < 0 {
		return failf(t.scope, "expand", ErrShape, "%v has more dimensions than %v", t.shape, shape)
	}
	for j := range to {
		if to[j] == -1 && j >= shift {
			to[j] = t.shape[j-shift]
		}
	}
	if err := checkShape(to); err != nil {
		return fail(t.scope, "expand", err)
	}
	for j, d := range t.shape {
		if d != 1 && d != to[j+shift] {
			return failf(t.scope, "expand", ErrShape, "%v does not stretch to %v", t.shape, shape)
		}
	}
	if slices.Equal(to, t.shape) {
		return t
	}
	ones := append(slices.Repeat([]int{1}, shift), t.shape...)
	return t.Reshape(ones...).expand(to)
}

func (t *Tensor) expand(to []int) *Tensor {
	if t.err != nil || slices.Equal(t.shape, to) {
		return t
	}
	return t.view(&viewOp{name: "expand", expand: true}, to)
}

// Range selects elements of a dimension, as Python's slices do: from Start up to, without, Stop, every Step-th.
// Negative places count from the end, and places beyond the ends are moved to them. A Step of 0 stands for 1,
// and a negative Step goes backwards.
type Range struct{ Start, Stop, Step int }

// End is the Stop of a Range that reaches to the end, or, with a negative Step, to the beginning.
const End = int(^uint(0) >> 1)

// All is the Range of a whole dimension.
var All = Range{0, End, 1}

// Slice returns the given parts of the first dimensions of t.
func (t *Tensor) Slice(ranges ...Range) *Tensor {
	if bad := check("slice", t); bad != nil {
		return bad
	}
	if len(ranges) > len(t.shape) {
		return failf(t.scope, "slice", ErrShape, "%d ranges for shape %v", len(ranges), t.shape)
	}
	cut, shape, whole := make([]span, len(t.shape)), slices.Clone(t.shape), true
	for j, n := range t.shape {
		cut[j] = span{0, 1}
		if j < len(ranges) {
			cut[j], shape[j] = ranges[j].span(n)
			whole = whole && cut[j] == span{0, 1} && shape[j] == n
		}
	}
	if whole {
		return t
	}
	return t.view(&viewOp{name: "slice", cut: cut}, shape)
}

// span returns the part of a dimension of length n, and its length.
func (r Range) span(n int) (span, int) {
	step := r.Step
	if step == 0 {
		step = 1
	}
	place := func(i, lo, hi int) int {
		if i < 0 {
			i += n
		}
		return min(max(i, lo), hi)
	}
	if step > 0 {
		start, stop := place(r.Start, 0, n), n
		if r.Stop != End {
			stop = place(r.Stop, 0, n)
		}
		if stop <= start {
			return span{0, 1}, 0
		}
		return span{start, step}, (stop-start-1)/step + 1
	}
	start, stop := place(r.Start, -1, n-1), -1
	if r.Stop != End {
		stop = place(r.Stop, -1, n-1)
	}
	if stop >= start {
		return span{0, 1}, 0
	}
	return span{start, step}, (start-stop-1)/-step + 1
}

// Narrow returns n elements of a dimension, from element start on.
func (t *Tensor) Narrow(axis, start, n int) *Tensor {
	if bad := check("narrow", t); bad != nil {
		return bad
	}
	i, ok := t.axis(axis)
	if !ok || start < 0 || n < 0 || start > t.shape[i]-n {
		return failf(t.scope, "narrow", ErrShape, "%d elements from %d on of axis %d of %v", n, start, axis, t.shape)
	}
	ranges := slices.Repeat([]Range{All}, i+1)
	ranges[i] = Range{start, start + n, 1}
	return t.Slice(ranges...)
}

// Index returns element i of a dimension, which the result does not have.
func (t *Tensor) Index(axis, i int) *Tensor {
	if bad := check("index", t); bad != nil {
		return bad
	}
	d, ok := t.axis(axis)
	if ok && i < 0 {
		i += t.shape[d]
	}
	if !ok || i < 0 || i >= t.shape[d] {
		return failf(t.scope, "index", ErrShape, "element %d of axis %d of %v", i, axis, t.shape)
	}
	return t.Narrow(d, i, 1).Squeeze(d)
}

// Flip returns t with the elements of dimensions in reverse order; of all if none are given.
func (t *Tensor) Flip(axes ...int) *Tensor {
	if bad := check("flip", t); bad != nil {
		return bad
	}
	list, err := t.axes(axes)
	if err != nil {
		return fail(t.scope, "flip", err)
	}
	ranges := slices.Repeat([]Range{All}, len(t.shape))
	for _, i := range list {
		ranges[i] = Range{End, End, -1}
	}
	return t.Slice(ranges...)
}

// grad is the gradient of a view: g in the places that the view took.
func (o *viewOp) grad(t, g *Tensor) []*Tensor {
	a := t.args[0]
	switch {
	case o.back != nil:
		return append([]*Tensor{nil}, o.back(g)...)
	case !IsFloat(t.typ):
		return []*Tensor{nil}
	case o.same:
		return []*Tensor{g}
	case o.perm != nil:
		back := make([]int, len(o.perm))
		for j, d := range o.perm {
			back[d] = j
		}
		return []*Tensor{g.Permute(back...)}
	case o.slide != nil:
		return []*Tensor{o.slide.back(g, a.shape)}
	case o.expand:
		var axes []int
		for j, d := range a.shape {
			if d == 1 && t.shape[j] != 1 {
				axes = append(axes, j)
			}
		}
		return []*Tensor{g.reduceAxes("expand'", expr.Sum, axes, g.typ).Reshape(a.shape...)}
	case o.shape:
		return []*Tensor{g.Reshape(a.shape...)}
	}
	return []*Tensor{join("slice'", a.typ, a.shape, zero(a.typ), part{g, o.cut})}
}
