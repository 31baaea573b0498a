package gomlx

// Attention.

import (
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"

	"github.com/concord-compute/concord/tensor"
)

// attended is the shape of the products of queries and keys, [batch, heads, queries, keys].
type attended [4]int

// view is how an operand that stretches to the products is read: its dimensions with ones put in, and the order that
// makes them those of the products.
type view struct {
	dims, order []int
}

func (v view) of(x array) array { return x.Reshape(v.dims...).Permute(v.order...) }

// fits reports whether the view stretches to the products.
func (v view) fits(p attended) bool {
	dims := make([]int, len(p))
	for i, j := range v.order {
		dims[i] = v.dims[j]
	}
	return fits(dims, p[:])
}

// mask returns how a mask is read. One of four dimensions has those of the products as axesLayout orders them. Of fewer
// dimensions, the interface says that they are [queries, keys] or [batch, queries, keys]; GoMLX's own version takes
// those of truths for the first dimensions of the products.
func (p attended) mask(shape shapes.Shape, axesLayout compute.AttentionAxesLayout) (view, error) {
	heads := []int{0, 1, 2, 3}
	layout := []int{0, axesLayout.HeadsAxis(), axesLayout.SeqAxis(), 3}
	d := shape.Dimensions
	var views []view
	add := func(order []int, dims ...int) {
		if v := (view{dims, order}); v.fits(p) {
			views = append(views, v)
		}
	}
	switch len(d) {
	case 4:
		add(layout, d...)
	case 3:
		add(heads, d[0], 1, d[1], d[2])
	case 2:
		add(heads, 1, 1, d[0], d[1])
	}
	if len(d) < 4 && shape.DType == dtypes.Bool {
		add(layout, append(slices.Clone(d), slices.Repeat([]int{1}, 4-len(d))...)...)
	}
	switch {
	case len(views) == 0:
		return view{}, errors.Errorf("a mask of shape %s for products of %v", shape, p)
	case len(views) == 2 && size(d) != 1:
		return view{}, errors.Wrapf(compute.ErrNotImplemented, "a mask of shape %s, which fits %v in two ways", shape, p)
	}
	return views[0], nil
}

// FusedScaledDotProductAttention returns softmax(query·keyᵀ·scale + mask)·value for each head. A mask of four
// dimensions has the order of axesLayout, [batch, heads, queries, keys] or [batch, queries, heads, keys]. A bias is
// always [batch, heads, queries, keys], of which the first ones may be left out. A query that sees no key has zeros. It
// has no states for a gradient of its own.
func (f *function) FusedScaledDotProductAttention(query, key, value compute.Value,
	axesLayout compute.AttentionAxesLayout, options *compute.ScaledDotProductAttentionConfig) (
	output compute.Value, statesForVJP []compute.Value, err error) {
	const op = compute.OpTypeFusedScaledDotProductAttention
	if options == nil {
		options = &compute.ScaledDotProductAttentionConfig{}
	}
	extra := []compute.Value{options.Mask, options.Bias, options.QuerySeqLen, options.KeyValueSeqLen}
	in, err := f.operands(op, optional([]compute.Value{query, key, value}, extra...)...)
	if err != nil {
		return nil, nil, err
	}
	q, k, v := in[0].shape, in[1].shape, in[2].shape
	heads, seq := axesLayout.HeadsAxis(), axesLayout.SeqAxis()
	if axesLayout != compute.AttentionAxesLayoutBHSD && axesLayout != compute.AttentionAxesLayoutBSHD {
		return nil, nil, errors.Wrapf(compute.ErrNotImplemented, "%s with the layout %s", op, axesLayout)
	}
	if q.Rank() != 4 || k.Rank() != 4 || v.Rank() != 4 ||
		!q.DType.IsFloat() || k.DType != q.DType || v.DType != q.DType {
		return nil, nil, errors.Errorf("%s of %s, %s and %s", op, q, k, v)
	}
	if q.Dimensions[heads] < 0 || k.Dimensions[heads] < 0 || q.Dimensions[3] < 0 {
		return nil, nil, errors.Wrapf(compute.ErrNotImplemented, "%s of %s, %s and %s", op, q, k, v)
	}
	if !slices.Equal(k.Dimensions[:3], v.Dimensions[:3]) || q.Dimensions[0] != k.Dimensions[0] ||
		q.Dimensions[3] != k.Dimensions[3] || k.Dimensions[heads] == 0 || q.Dimensions[heads]%k.Dimensions[heads] != 0 {
		return nil, nil, errors.Errorf("%s of %s, %s and %s", op, q, k, v)
	}
	products := attended{q.Dimensions[0], q.Dimensions[heads], q.Dimensions[seq], k.Dimensions[seq]}
	rest := in[3:]
	views := make([]view, 2)
	for i, x := range extra {
		if x == nil {
			continue
		}
		s := rest[0].shape
		rest = rest[1:]
		switch {
		case i < 2 && s.IsDynamic():
			err = errors.Wrapf(compute.ErrNotImplemented, "a mask of the dynamic shape %s", s)
		case i == 0 && !s.DType.IsFloat() && s.DType != dtypes.Bool, i == 1 && !s.DType.IsFloat():
			err = errors.Errorf("a mask of shape %s", s)
		case i == 0:
			views[i], err = products.mask(s, axesLayout)
		case i == 1:
			views[i] = view{behind(s.Dimensions, 4), []int{0, 1, 2, 3}}
			if s.Rank() < 2 || views[i].dims == nil || !views[i].fits(products) {
				err = errors.Errorf("a bias of shape %s for products of %v", s, products)
			}
		case s.Rank() != 1 || !fits(s.Dimensions, products[:1]) || !s.DType.IsInt():
			err = errors.Errorf("lengths of shape %s for products of %v", s, products)
		}
		if err != nil {
			return nil, nil, errors.WithMessage(err, op.String())
		}
	}
	scale, causal := options.Scale, options.Causal
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(q.Dimensions[3]))
	}
	shape := q.Clone()
	shape.Dimensions[3] = v.Dimensions[3]
	output, err = f.single(op, shape, in, func(_ *trace, in []array) array {
		front := []int{0, heads, seq, 3}
		part := func(i int) array { return computed(in[i].Permute(front...)) }
		q, k, v := part(0), part(1), part(2)
		rest := in[3:]
		// sees says which keys a query sees, and added is added to the products.
		var sees, added array
		length := func(t array) array { return convert(t, tensor.I64).Reshape(-1, 1, 1, 1) }
		for i, x := range extra {
			if x == nil {
				continue
			}
			t := rest[0]
			rest = rest[1:]
			switch {
			case i == 2:
				sees = combined(sees, counted(t.Scope(), tensor.I64, 0, []int{q.Dim(2), 1}).Lt(length(t)), array.And)
			case i == 3:
				sees = combined(sees, counted(t.Scope(), tensor.I64, 1, []int{1, k.Dim(2)}).Lt(length(t)), array.And)
			case t.Type() == tensor.Bool:
				sees = combined(sees, views[i].of(t), array.And)
			default:
				added = combined(added, views[i].of(computed(t)), array.Add)
			}
		}
		mask := added
		if mask == nil {
			mask = sees
		} else if sees != nil {
			mask = tensor.Where(sees, added, math.Inf(-1))
		}
		y := tensor.Attention(q, k, v, tensor.AttentionOptions{Mask: mask, Causal: causal, Scale: &scale})
		return y.Permute(front...).Cast(in[0].Type())
	})
	return output, nil, err
}
