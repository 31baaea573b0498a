package nn

// Layers whose parameters the members of a group divide (tensor parallel), and parameters of which a member has a
// part.
//
// All members have the same activations and the same loss, except between the columns of one matrix and the rows of
// the next one, where each has its columns. Before the columns stands enter, whose gradient is the sum of the
// members', and behind the rows leave, which is a sum of the members' and whose gradient is passed on as it is. So
// each member's gradients are those of its own loss, as on one device: AllReduce alone has the gradient of the sum of
// all members' losses, which here would be as many times as large.

import (
	"context"
	encoding "encoding/binary"
	"slices"

	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/tensor"
)

// Division says which part of a matrix a member of a group has.
type Division string

// The divisions of the matrix of a [Dense]. A member has as many columns or rows as others, or one more or less.
const (
	Whole   Division = ""        // all of it
	Columns Division = "columns" // some of its columns, of which the results are for a layer with Rows
	Rows    Division = "rows"    // the rows for results of a layer with Columns, whose products members add up
)

// cut is what lies between columns and rows: this member's part of the last dimension, and how long all of it is.
type cut struct {
	all  int
	part cluster.Part
}

// partsOf divides n into one part for each member; the sizes of two differ by one at most.
func partsOf(n, members int) []cluster.Part {
	parts := make([]cluster.Part, members)
	for i := range parts {
		first := n * i / members
		parts[i] = cluster.Part{First: first, Count: n*(i+1)/members - first}
	}
	return parts
}

// partOf returns this member's part of n.
func (p *Pass) partOf(n int) cluster.Part { return partsOf(n, p.scope.Size())[p.scope.Rank()] }

// enter returns x, which all members have alike, for each member's columns.
func (p *Pass) enter(x *tensor.Tensor) *tensor.Tensor {
	if p.scope.Size() == 1 {
		return x
	}
	return tensor.WithGradient(x, []*tensor.Tensor{x}, func(g *tensor.Tensor) []*tensor.Tensor {
		return []*tensor.Tensor{g.AllReduce(cluster.Sum)}
	})
}

// leave returns the sum of all members' x, which all of them then have alike.
func (p *Pass) leave(x *tensor.Tensor) *tensor.Tensor {
	if p.scope.Size() == 1 {
		return x
	}
	return tensor.WithGradient(x.AllReduce(cluster.Sum), []*tensor.Tensor{x},
		func(g *tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{g} })
}

// columns is a dense layer of which a member has columns, as whole units. x has entered.
type columns struct {
	Dense
	unit int
}

// Apply returns the member's columns.
func (l columns) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	if n := l.Out / l.unit; n < p.scope.Size() {
		return p.Fail(x, "%d members cannot divide columns in %d units of %d", p.scope.Size(), n, l.unit)
	}
	y := p.MatMul(x, p.divide("weight", forAct(l.Init, l.Act), 1, l.unit, x.Dim(-1), l.Out))
	if !l.NoBias {
		y = y.Add(p.divide("bias", Zeros, 0, l.unit, l.Out))
	}
	return l.Act.Apply(p, y)
}

// rows is a dense layer of which a member has the rows, as whole units, for its part of a last dimension.
type rows struct {
	Dense
	unit, all int
}

// Apply returns what all members have.
func (l rows) Apply(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	y := p.leave(p.MatMul(x, p.divide("weight", forAct(l.Init, l.Act), 0, l.unit, l.all, l.Out)))
	if !l.NoBias {
		y = y.Add(p.Param("bias", Zeros, l.Out))
	}
	return l.Act.Apply(p, y)
}

// divided is [Dense.Apply] of a layer with a Division.
func (l Dense) divided(p *Pass, x *tensor.Tensor) *tensor.Tensor {
	open := p.cut
	switch {
	case l.Ternary:
		return p.Fail(x, "ternary weights have one scale, and are not divided")
	case l.Divided == Columns && open != nil:
		return p.Fail(x, "columns behind columns, which rows have to follow")
	case l.Divided == Columns && !eachByItself(l.Act):
		return p.Fail(x, "%v of columns that members divide", l.Act)
	case l.Divided == Columns:
		y := columns{l, 1}.Apply(p, p.enter(x))
		p.cut = &cut{l.Out, p.partOf(l.Out)}
		return y
	case l.Divided == Rows && (open == nil || x.Dim(-1) != open.part.Count):
		return p.Fail(x, "rows without columns before them")
	case l.Divided == Rows:
		p.cut = nil
		return rows{l, 1, open.all}.Apply(p, x)
	}
	return p.Fail(x, "no division %q; there are %q and %q", l.Divided, Columns, Rows)
}

// eachByItself reports whether an activation is of each element by itself.
func eachByItself(a Activation) bool {
	return !slices.Contains([]Activation{Softmax, LogSoftmax, SwiGLU}, a)
}

// passes reports whether a layer may stand between columns and rows.
func (c *cut) passes(l Layer) bool {
	switch l := l.(type) {
	case Dense:
		return l.Divided != Whole
	case Activation:
		return eachByItself(l)
	case Dropout, Sequence:
		return true
	}
	return false
}

// divided is [Embedding.Apply] of a table of which each member has some rows: those of others are rows of zeros here,
// so that the sum is the row of the one member that has it.
func (l Embedding) divided(p *Pass, init Init, x *tensor.Tensor) *tensor.Tensor {
	if l.Count < p.scope.Size() {
		return p.Fail(x, "%d members cannot divide %d rows", p.scope.Size(), l.Count)
	}
	own := p.partOf(l.Count)
	x = x.Cast(tensor.I64)
	x = tensor.Where(x.Lt(0), x.Add(l.Count), x).Sub(own.First)
	x = tensor.Where(x.Ge(0).And(x.Lt(own.Count)), x, own.Count)
	return p.leave(tensor.Embedding(p.divide("weight", init, 0, 1, l.Count, l.Width), x))
}

// divide is [Pass.Param] of a parameter that members divide along an axis, in whole units. It returns this member's
// part.
func (p *Pass) divide(name string, init Init, axis, unit int, shape ...int) *tensor.Tensor {
	if p.scope.Size() == 1 {
		return p.Param(name, init, shape...)
	}
	if p.owner != nil {
		return p.Fail(tensor.Zeros(p.scope, p.typ, shape...), "members that have some of the layers do not divide them, too")
	}
	parts := partsOf(shape[axis]/unit, p.scope.Size())
	for i := range parts {
		parts[i] = cluster.Part{First: parts[i].First * unit, Count: parts[i].Count * unit}
	}
	return p.declared(Param{Name: p.named(name), Whole: slices.Clone(shape), axis: axis, parts: parts}, init)
}

// shapeAt returns the shape of a member's part of a parameter.
func (v *Param) shapeAt(rank int) []int {
	if v.Whole == nil {
		return v.Shape
	}
	shape := slices.Clone(v.Whole)
	if v.axis < 0 {
		if v.parts[rank].Count == 0 {
			return []int{0}
		}
		return shape
	}
	shape[v.axis] = v.parts[rank].Count
	return shape
}

// of returns a member's part of a parameter.
func (v *Param) of(whole *tensor.Tensor, rank int) *tensor.Tensor {
	switch {
	case v.Whole == nil || v.axis < 0 && v.parts[rank].Count > 0:
		return whole
	case v.axis < 0:
		return whole.Flatten().Narrow(0, 0, 0)
	}
	return whole.Narrow(v.axis, v.parts[rank].First, v.parts[rank].Count)
}

// whole returns parameters as they are where no member has a part.
func whole(list []Param) (out []Param) {
	for _, v := range list {
		if v.Whole != nil {
			v.Shape = v.Whole
		}
		v.First = elements(out)
		out = append(out, Param{Name: v.Name, Shape: v.Shape, First: v.First})
	}
	return out
}

// isDivided reports whether members have parts of parameters.
func isDivided(list []Param) bool {
	return slices.ContainsFunc(list, func(v Param) bool { return v.Whole != nil })
}

// common returns what all members have alike of a row of parameters.
func common(list []Param, row *tensor.Tensor) *tensor.Tensor {
	if !isDivided(list) {
		return row
	}
	var parts []*tensor.Tensor
	for _, v := range list {
		if v.Whole == nil {
			parts = append(parts, row.Narrow(0, v.First, v.Len()))
		}
	}
	return together(row.Scope(), row.Type(), parts)
}

// merged returns a row of parameters with other values for what all members have alike.
func merged(list []Param, row, alike *tensor.Tensor) *tensor.Tensor {
	if !isDivided(list) {
		return alike
	}
	var parts []*tensor.Tensor
	at := 0
	for _, v := range list {
		from, first := row, v.First
		if v.Whole == nil {
			from, first, at = alike, at, at+v.Len()
		}
		parts = append(parts, from.Narrow(0, first, v.Len()))
	}
	return together(row.Scope(), row.Type(), parts)
}

// contents returns the bytes of a row of parameters in which they are whole, at rank 0. Members that have parts send
// them, and get nil. One whole parameter at a time has to fit rank 0's device.
func contents(ctx context.Context, s *tensor.Scope, list []Param, row *tensor.Tensor) (data []byte, err error) {
	if !isDivided(list) {
		return raw(ctx, row)
	}
	for _, v := range list {
		one, err := v.gathered(ctx, s, row.Narrow(0, v.First, v.Len()).Reshape(v.Shape...))
		if err != nil {
			return nil, err
		}
		data = append(data, one...)
	}
	return data, nil
}

// gathered returns the bytes of a whole parameter at rank 0.
func (v *Param) gathered(ctx context.Context, s *tensor.Scope, own *tensor.Tensor) ([]byte, error) {
	work := s.Scope()
	defer work.Close()
	own = own.Mul(tensor.Ones(work, own.Type(), 1)) // in work
	if s.Rank() != 0 {
		if v.Whole == nil {
			return nil, nil
		}
		return nil, tensor.Eval(ctx, own.Send(0))
	}
	var all []*tensor.Tensor
	for rank := range s.Size() {
		switch {
		case v.Whole == nil && rank > 0 || v.axis < 0 && v.parts[rank].Count == 0:
		case rank == 0:
			all = append(all, own)
		default:
			all = append(all, tensor.Receive(work, rank, own.Type(), v.shapeAt(rank)...))
		}
	}
	if len(all) == 1 { // which may have no dimensions
		return raw(ctx, all[0])
	}
	return raw(ctx, tensor.Concat(v.axis, all...))
}

// raw returns the bytes of the elements of a tensor as files have them.
func raw(ctx context.Context, x *tensor.Tensor) ([]byte, error) {
	switch x.Type() {
	case tensor.F32:
		return little[float32](ctx, x)
	case tensor.F64:
		return little[float64](ctx, x)
	}
	return little[int64](ctx, x)
}

// little reads the elements of a tensor, with their lowest bytes first.
func little[T float32 | float64 | int64](ctx context.Context, x *tensor.Tensor) ([]byte, error) {
	list, err := tensor.Read[T](ctx, x)
	if err != nil {
		return nil, err
	}
	return encoding.Append(make([]byte, 0, encoding.Size(list)), encoding.LittleEndian, list)
}

// cut returns this member's parts of rows and parameters of a file, whose bytes are whole, in scope s. Only one whole
// parameter at a time has to fit the device.
func (v *Param) cut(ctx context.Context, s *tensor.Scope, t tensor.Type, whole []byte) (*tensor.Tensor, error) {
	shape := v.Shape
	if v.Whole != nil {
		shape = v.Whole
	}
	return v.alone(ctx, s, t, func(work *tensor.Scope) *tensor.Tensor {
		return v.of(tensor.FromBytes(work, t, whole, shape...), s.Rank())
	})
}

// alone returns a part in scope s, and what it was taken from takes no memory any more.
func (v *Param) alone(ctx context.Context, s *tensor.Scope, t tensor.Type,
	part func(work *tensor.Scope) *tensor.Tensor) (*tensor.Tensor, error) {
	if v.Len() == 0 {
		return tensor.Zeros(s, t, v.Shape...), nil
	}
	work := s.Scope()
	defer work.Close()
	return copyTo(ctx, s, part(work))
}
