package tensor

// Elements by index: taken, stored, added, and the places of the largest ones.
//
// Two calls do the work, and each is the other's gradient: gatherParts reads rows of tables at places, and
// addRows adds rows up at places. A third one, setRows, stores rows. A place is the number of a row, a U32; the
// places of indices that name no element are beyond the last row. There is one for each row that is read or
// written, but none for the other rows of a table, nor for the parts that one list of indices is for. Sums are
// made of rows in the order of their places and then of their own, without atomic operations, so that they have
// the same bits at every run.

import (
	"math"
	"slices"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime"
)

// around returns how many elements lie before, in and behind a dimension.
func around(shape []int, axis int) (outer, n, inner int) {
	return count(shape[:axis]), shape[axis], count(shape[axis+1:])
}

// integers returns a tensor with a mistake if index has no integers.
func integers(name string, index *Tensor) *Tensor {
	if IsFloat(index.typ) || index.typ == Bool {
		return failf(index.scope, name, ErrType, "indices of type %v", index.typ)
	}
	return nil
}

// counted32 returns a tensor with a mistake if a kernel cannot count elements in 32 bits.
func counted32(s *Scope, name string, what []int, numbers ...int) *Tensor {
	if slices.Max(numbers) >= math.MaxUint32 {
		return failf(s, name, ErrShape, "%v has more elements than a kernel counts, 2^32", what)
	}
	return nil
}

// placesOf returns the places that indices name in a table of outer × n × inner elements, or of outer × n rows
// with inner 1. index has outer × count × inner elements, and the result is a matrix of outer rows, of which
// each names places of one of outer equal parts of the table.
func placesOf(index *Tensor, outer, n, inner int) *Tensor {
	if index.Len() == 0 {
		return filled(index.scope, U32, []int{outer, 0}, zero(U32))
	}
	if index.typ == U32 && outer == 1 && inner == 1 {
		return index.Reshape(1, -1)
	}
	shape := []int{outer, index.Len() / (outer * inner), inner}
	args := []*Tensor{index.Reshape(shape...)}
	i, number := expr.Input(0, index.typ).Cast(I64), func(x int) *expr.Expr { return expr.Int(I64, int64(x)) }
	if isSigned(index.typ) {
		i = i.Lt(number(0)).Select(i.Add(number(n)), i)
	}
	there := expr.Apply(expr.And, number(-1).Lt(i), i.Lt(number(n)))
	plus := func(x *Tensor) *expr.Expr {
		args = append(args, x.Expand(shape...))
		return i.Add(expr.Input(len(args)-1, U32).Cast(I64))
	}
	if outer > 1 {
		i = plus(Iota(index.scope, U32, outer, 1, 1).Mul(n))
	}
	if inner > 1 {
		i = i.Mul(number(inner))
		i = plus(Iota(index.scope, U32, inner))
	}
	return apply("places", there.Select(i.Cast(U32), expr.Int(U32, -1)), U32, shape, args...).Reshape(outer, -1)
}

// gatherRows returns the rows of a matrix at places, zeros where there is none.
func gatherRows(table, places *Tensor) *Tensor {
	n := table.shape[1]
	return gatherParts(table.Reshape(1, table.shape[0], n), places).Reshape(places.Len(), n)
}

// gatherParts returns the rows at places of each matrix of a table, parts × rows × n, zeros where there is
// none: parts × places × n. Rows may lie apart or overlap in memory, as those of views do.
func gatherParts(table, places *Tensor) *Tensor {
	parts, rows, n, results := table.shape[0], table.shape[1], table.shape[2], places.Len()
	if rows == 0 || parts*results*n == 0 {
		return filled(inner(table, places), table.typ, []int{parts, results, n}, zero(table.typ))
	}
	takes := func(i int, shape, strides []int) bool {
		return isDense(shape, strides) || i == 0 && (n == 1 || strides[2] == 1) && slices.Min(strides) >= 0
	}
	o := &callOp{name: "gather", takes: takes, run: onMemory(runGather)}
	o.back = func(t *Tensor, gs []*Tensor) []*Tensor {
		if !IsFloat(t.typ) {
			return []*Tensor{nil, nil}
		}
		if bad := counted32(t.scope, o.name, t.shape, parts*n); bad != nil {
			return []*Tensor{bad, nil}
		}
		// the parts side by side, so that they need no places of their own
		wide := gs[0].Permute(1, 0, 2).Reshape(results, parts*n)
		return []*Tensor{addRows(wide, t.args[1], rows).Reshape(rows, parts, n).Permute(1, 0, 2), nil}
	}
	return call(o, []Spec{{table.typ, []int{parts, results, n}}}, table, places)[0]
}

func runGather(r *run, b []*runtime.Buffer, out, in []operand) error {
	parts, rows, n, results := in[0].shape[0], uint32(in[0].shape[1]), in[0].shape[2], out[0].shape[1]
	defines := []string{"T=" + out[0].typ.Stored().String()}
	switch {
	case parts > 1 || !isDense(in[0].shape, in[0].strides):
		return r.catalog("gather", "gather_parts", defines, []int{parts, results, n}, b[0], b[1], b[2],
			uint32(parts), rows, uint32(results), uint32(n), uint64(in[0].strides[0]), uint64(in[0].strides[1]))
	case n == 1:
		return r.catalog("take_along", "take_along", defines, []int{results}, b[0], b[1], b[2], uint32(1), rows,
			uint32(results), uint32(1))
	}
	return r.catalog("gather", "gather", defines, []int{results, n}, b[0], b[1], b[2], rows, uint32(results), uint32(n))
}

// catalog queues a kernel of the catalog.
func (r *run) catalog(family, kernel string, defines []string, sizes []int, args ...any) error {
	p, err := r.engine.catalog(r.ctx, family, defines...)
	if err != nil {
		return err
	}
	k, err := p.kernel(kernel)
	if err != nil {
		return err
	}
	g, err := p.grid(kernel, sizes...)
	if err != nil {
		return err
	}
	return r.stream.Launch(k, g, args...)
}

// addRows returns a matrix of rows rows, each the sum of those rows of src whose place it is; of Bools, whether
// one is true. places is a matrix like that of placesOf, with as many elements as src has rows.
func addRows(src, places *Tensor, rows int) *Tensor {
	n := src.shape[1]
	if rows*n == 0 || places.Len() == 0 {
		return filled(inner(src, places), src.typ, []int{rows, n}, zero(src.typ))
	}
	if src.typ == Bool {
		return segments("segment_max", nil, src.Cast(U8), places, rows).Cast(Bool)
	}
	return segments("segment_add", nil, src, places, rows)
}

// segments combines the rows of src that have the same place with that row of onto, or, if that is nil, of a
// matrix of rows rows of zeros.
func segments(kernel string, onto, src, places *Tensor, rows int) *Tensor {
	parts, each := places.shape[0], places.shape[1]
	var ids, order *Tensor
	if parts == 1 {
		ids, order = places, Iota(places.scope, U32, 1, each)
	} else {
		// sorted part by part, for which also places that do not exist have to stay in their part, and name no row
		// of src
		there := places.Lt(rows)
		ids = Where(there, places, Iota(places.scope, U32, parts, 1).Mul(rows/parts))
		order = Where(there, Iota(places.scope, U32, parts, each), math.MaxUint32)
	}
	for parts%2 == 0 && 2*each <= kernels.SortBlock { // a part may be several, which stay one after the other
		parts, each = parts/2, 2*each
	}
	ids, order = sortPairs(ids.Reshape(parts, each), order.Reshape(parts, each), false)
	o := &callOp{name: kernel, takes: onlyDense}
	o.run = onMemory(func(r *run, b []*runtime.Buffer, out, in []operand) (err error) {
		to := b[len(in)]
		if onto != nil {
			err = r.copy(out[0], in[3])
		} else {
			err = r.stream.Fill(to, make([]byte, size(out[0].typ)))
		}
		if err != nil {
			return err
		}
		n := out[0].shape[1]
		return r.catalog("segment", kernel, []string{"T=" + out[0].typ.String()}, []int{rows, n},
			b[0], b[1], b[2], to, uint32(in[0].shape[0]), uint32(count(in[1].shape)), uint32(rows), uint32(n))
	})
	o.back = func(t *Tensor, gs []*Tensor) []*Tensor {
		if !IsFloat(t.typ) {
			return make([]*Tensor, len(t.args))
		}
		return []*Tensor{gatherRows(gs[0], places), nil, nil, gs[0]}[:len(t.args)]
	}
	args := append([]*Tensor{src, ids, order}, present(onto)...)
	return call(o, []Spec{{src.typ, []int{rows, src.shape[1]}}}, args...)[0]
}

// copy queues a copy of a dense operand.
func (r *run) copy(to, from operand) error {
	var b [2]*runtime.Buffer
	for i, o := range []operand{to, from} {
		part, err := o.v.data.buf.Slice(o.first, count(o.shape))
		if err != nil {
			return err
		}
		b[i], r.temps = part, append(r.temps, part)
	}
	return r.stream.Copy(b[0], b[1])
}

// mostSpare is how many rows a table has for each that is stored in it, up to which the last ones are found by
// a number for each row of the table.
const mostSpare = 4

// noPlace is the place of an index that names no row.
const noPlace = math.MaxUint32

// setRows returns a table with rows of src stored at places, the last one of those with the same place.
func setRows(table, src, places *Tensor) *Tensor {
	rows, n, m := table.shape[0], table.shape[1], places.Len()
	o := &callOp{name: "scatter", takes: onlyDense}
	last := func() *Tensor { // the places without those of rows that later ones replace
		own := gatherRows(lastOf(places, rows).Reshape(-1, 1), places).Reshape(places.shape...)
		return Where(own.Sub(1).Eq(Iota(places.scope, U32, places.shape...)), places, noPlace)
	}
	args := []*Tensor{table, src, places}
	if rows > mostSpare*m { // they are found by sorting
		parts, each := places.shape[0], places.shape[1]
		for parts%2 == 0 && 2*each <= kernels.SortBlock {
			parts, each = parts/2, 2*each
		}
		ids, order := sortPairs(places.Reshape(parts, each), Iota(places.scope, U32, parts, each), false)
		args = []*Tensor{table, src, ids, order}
		last = func() *Tensor {
			id := ids.Flatten()
			next := Concat(0, id.Narrow(0, 1, m-1), Full(id.scope, U32, noPlace, 1))
			_, back := sortPairs(order, Where(id.Eq(next), noPlace, id).Reshape(parts, each), false)
			return back
		}
	}
	o.run = onMemory(func(r *run, b []*runtime.Buffer, out, in []operand) error {
		err := r.copy(out[0], in[0])
		if err != nil {
			return err
		}
		kernel, at := "scatter_runs", b[3]
		if len(in) == 3 {
			kernel = "scatter"
			if at, err = r.temp(U32, rows); err != nil {
				return err
			}
			if err := r.last(at, b[2], rows, m); err != nil {
				return err
			}
		}
		return r.catalog("scatter", kernel, []string{"T=" + out[0].typ.Stored().String()}, []int{m, n},
			b[1], b[2], at, b[len(in)], uint32(rows), uint32(m), uint32(n))
	})
	o.back = func(t *Tensor, gs []*Tensor) []*Tensor {
		list := make([]*Tensor, len(args))
		if IsFloat(t.typ) {
			list[0] = setRows(gs[0], filled(t.scope, t.typ, []int{m, n}, zero(t.typ)), places)
			list[1] = gatherRows(gs[0], last())
		}
		return list
	}
	return call(o, []Spec{{table.typ, table.shape}}, args...)[0]
}

// lastOf returns for each of rows places 1 more than the number of the last element of places that names it, or
// 0: a U32 matrix of one row.
func lastOf(places *Tensor, rows int) *Tensor {
	run := func(r *run, b []*runtime.Buffer, _, in []operand) error {
		return r.last(b[1], b[0], rows, count(in[0].shape))
	}
	o := &callOp{name: "scatter_last", takes: onlyDense, run: onMemory(run)}
	return call(o, []Spec{{U32, []int{1, rows}}}, places)[0]
}

// last queues lastOf of n places.
func (r *run) last(to, places *runtime.Buffer, rows, n int) error {
	if err := r.stream.Fill(to, uint32(0)); err != nil {
		return err
	}
	return r.catalog("scatter", "scatter_last", []string{"T=u32"}, []int{n}, places, to, uint32(rows), uint32(n))
}

// Take returns the elements of an axis that index names: the axis is replaced by the dimensions of index, a
// tensor of integers of any shape. Negative indices count from the end, as NumPy's; the elements of an index
// beyond the first or the last one are 0. The gradient is added up at the places that were read.
func (t *Tensor) Take(axis int, index *Tensor) *Tensor {
	const name = "take"
	if bad := check(name, t, index); bad != nil {
		return bad
	}
	i, shape, bad := t.taken(name, axis, index)
	if bad != nil {
		return bad
	}
	outer, n, in := around(t.shape, i)
	return gatherParts(t.Reshape(outer, n, in), placesOf(index.Reshape(1, -1), 1, n, 1)).Reshape(shape...)
}

// taken returns an axis counted from the front, and the shape of the elements that an index takes from it.
func (t *Tensor) taken(name string, axis int, index *Tensor) (int, []int, *Tensor) {
	if bad := integers(name, index); bad != nil {
		return 0, nil, bad
	}
	i, ok := t.axis(axis)
	if !ok {
		return 0, nil, failf(t.scope, name, ErrShape, "axis %d of shape %v", axis, t.shape)
	}
	shape := slices.Concat(t.shape[:i], index.shape, t.shape[i+1:])
	if err := checkShape(shape); err != nil {
		return 0, nil, fail(t.scope, name, err)
	}
	outer, n, in := around(t.shape, i)
	return i, shape, counted32(t.scope, name, shape, outer*n, outer*index.Len(), in)
}

// Embedding returns the rows of a table, a matrix, that ids name, a tensor of integers of any shape: a tensor
// of the shape of ids and one more dimension, the length of a row. It is Take along axis 0.
func Embedding(table, ids *Tensor) *Tensor {
	if bad := check("embedding", table, ids); bad != nil {
		return bad
	}
	if len(table.shape) != 2 {
		return failf(table.scope, "embedding", ErrShape, "a table of shape %v, which is no matrix", table.shape)
	}
	return table.Take(0, ids)
}

// TakeAlong returns elements of t by an index of integers for each. Element i of the axis of the result is element
// index[i] of that of t, at the same place in all other dimensions, along which both stretch as NumPy does. Indices
// count as those of Take. The gradient is added up at the places that were read.
func (t *Tensor) TakeAlong(axis int, index *Tensor) *Tensor {
	const name = "take along"
	if bad := check(name, t, index); bad != nil {
		return bad
	}
	if bad := integers(name, index); bad != nil {
		return bad
	}
	i, ok := t.axis(axis)
	if !ok || len(index.shape) != len(t.shape) {
		return failf(t.scope, name, ErrShape, "axis %d of shape %v by indices of shape %v", axis, t.shape, index.shape)
	}
	from, by := slices.Clone(t.shape), slices.Clone(index.shape)
	from[i], by[i] = 1, 1
	shape, err := broadcast(from, by)
	if err != nil {
		return fail(t.scope, name, err)
	}
	from, shape[i] = slices.Clone(shape), index.shape[i]
	from[i] = t.shape[i]
	if bad := counted32(t.scope, name, shape, count(from), count(shape)); bad != nil {
		return bad
	}
	outer, n, in := around(from, i)
	places := placesOf(index.Expand(shape...), outer, n, in)
	return gatherRows(t.Expand(from...).Reshape(-1, 1), places).Reshape(shape...)
}

// ScatterAdd returns t with elements of src added: each to the element of t that index names along the axis, with the
// same place in all other dimensions. index, of integers, and src stretch to one shape that differs from t's in the
// axis alone, and src takes t's type. Indices count as those of Take; those that name no element are left out. What is
// added to one element is added in order, so that the bits are the same at every run. Half and bfloat16 are added in
// F32, and of Bools the result is whether one is true. The gradient passes to t, and to each element of src from where
// it was added.
func (t *Tensor) ScatterAdd(axis int, index, src *Tensor) *Tensor {
	return t.scatter("scatter add", axis, index, src, (*Tensor).plus)
}

// Scatter returns t with elements of src in the places that index names along the axis, as ScatterAdd has them.
// Where several have one place, the last of them, in the order of src, is stored. The gradient passes to the
// elements of t that stay, and to those of src that are stored.
func (t *Tensor) Scatter(axis int, index, src *Tensor) *Tensor {
	return t.scatter("scatter", axis, index, src, (*Tensor).set)
}

func (t *Tensor) scatter(name string, axis int, index, src *Tensor,
	into func(t, rows, places *Tensor) *Tensor) *Tensor {
	if bad := check(name, t, index, src); bad != nil {
		return bad
	}
	if bad := integers(name, index); bad != nil {
		return bad
	}
	i, ok := t.axis(axis)
	shape, err := broadcast(index.shape, src.shape)
	if err != nil {
		return fail(t.scope, name, err)
	}
	if ok && len(shape) == len(t.shape) {
		like := slices.Clone(shape)
		like[i] = t.shape[i]
		ok = slices.Equal(like, t.shape)
	} else {
		ok = false
	}
	if !ok {
		return failf(t.scope, name, ErrShape, "%v by indices of shape %v into %v along axis %d", src.shape, index.shape,
			t.shape, axis)
	}
	if bad := counted32(t.scope, name, t.shape, t.Len(), count(shape)); bad != nil {
		return bad
	}
	outer, n, in := around(t.shape, i)
	return into(t, src.Cast(t.typ).Expand(shape...).Reshape(-1, 1), placesOf(index.Expand(shape...), outer, n, in))
}

// IndexAdd returns t with parts of src added to the elements of an axis that index names: src stretches to the
// shape that Take has, and takes t's type. Sums, indices and gradients are those of ScatterAdd.
func (t *Tensor) IndexAdd(axis int, index, src *Tensor) *Tensor {
	return t.indexed("index add", axis, index, src, (*Tensor).plus)
}

// IndexSet returns t with parts of src in place of the elements of an axis that index names: src stretches to
// the shape that Take has, and takes t's type. Of several parts with one place the last one is stored, and
// gradients are those of Scatter.
func (t *Tensor) IndexSet(axis int, index, src *Tensor) *Tensor {
	return t.indexed("index set", axis, index, src, (*Tensor).set)
}

func (t *Tensor) indexed(name string, axis int, index, src *Tensor,
	into func(t, rows, places *Tensor) *Tensor) *Tensor {
	if bad := check(name, t, index, src); bad != nil {
		return bad
	}
	i, shape, bad := t.taken(name, axis, index)
	if bad != nil {
		return bad
	}
	outer, n, in := around(t.shape, i)
	rows := src.Cast(t.typ).Expand(shape...)
	if rows.err != nil {
		return rows
	}
	return into(t, rows.Reshape(outer*index.Len(), in), placesOf(index.Reshape(1, -1).Expand(outer, index.Len()), outer, n,
		1))
}

// plus returns t with rows added at places. The rows of t are as long as they are.
func (t *Tensor) plus(rows, places *Tensor) *Tensor {
	if t.Len() == 0 || rows.Len() == 0 {
		return t
	}
	n := t.Len() / rows.shape[1]
	if t.typ == Bool || t.op != nil && t.op.kind() == kindFill && t.typ.Computed() == t.typ &&
		!t.scope.engine.computed([]*Tensor{t}) {
		// What t has is in no memory, which would have to be copied.
		return t.Add(addRows(rows, places, n).Reshape(t.shape...))
	}
	return segments("segment_add", t.Reshape(n, -1), rows, places, n).Reshape(t.shape...)
}

// set returns t with rows stored at places.
func (t *Tensor) set(rows, places *Tensor) *Tensor {
	if t.Len() == 0 || rows.Len() == 0 {
		return t
	}
	return setRows(t.Reshape(-1, rows.shape[1]), rows, places).Reshape(t.shape...)
}

// OneHot returns a tensor with one more dimension than t, which has integers: element t of that is 1, and all
// others are 0. It is the last one, of length n, and all of it is 0 where t is negative or not below n.
func (t *Tensor) OneHot(n int, typ Type) *Tensor {
	const name = "one hot"
	if bad := check(name, t); bad != nil {
		return bad
	}
	if bad := integers(name, t); bad != nil {
		return bad
	}
	if n < 0 {
		return failf(t.scope, name, ErrShape, "a dimension of length %d", n)
	}
	wide := I64
	if t.typ == U64 {
		wide = U64
	}
	return t.Cast(wide).Unsqueeze(-1).Eq(Iota(t.scope, wide, n)).Cast(typ)
}
