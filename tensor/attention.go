package tensor

// Attention, in blocks of queries, so that no more than a part of the products of all queries and keys is in memory.
//
// A block is some queries of some heads, with all keys that they may see. Forward it is a product of matrices,
// one kernel that masks the rows of the product and makes them weights, less a factor, and a product of these
// with the values, which is divided by the sums of the weights. The logarithms of the sums stay, and from them
// the gradient computes the weights of a block again.

import (
	"math"
	"slices"

	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime"
)

// AttentionOptions say which keys a query sees, and how products are scaled.
type AttentionOptions struct {
	// Mask stretches to [batch..., heads, queries, keys]. A Bool says what a query sees; other numbers are added
	// to the products. nil is none.
	Mask *Tensor
	// Causal lets query i see only the keys up to i + Offset; false lets it see all.
	Causal bool
	Offset int // 0 is up to i
	// Scale is the factor of the products; nil is 1/√width.
	Scale *float64
}

// Attention returns for each query the mean of the values, weighted by how well the query fits the keys:
//
//	softmax(Scale · q·kᵀ + Mask) · v
//
// q has the shape [batch..., heads, queries, width], k [batch..., heads of keys, keys, width] and v [batch...,
// heads of keys, keys, width of values]. The heads of keys divide the heads of queries; neighbouring heads of
// queries share them. The result is [batch..., heads, queries, width of values]; a query that sees no key has
// zeros. The operands are floating-point numbers, of which half and bfloat16 are computed in F32, and the type
// is that of Promote. Memory beside the operands and the result is some dozens of MiB and what grows with the
// queries, also for the gradients of q, k and v. The gradient of a Mask, and those of gradients, take memory
// for all products.
func Attention(q, k, v *Tensor, o AttentionOptions) *Tensor {
	const name = "attention"
	ts := append([]*Tensor{q, k, v}, present(o.Mask)...)
	if bad := check(name, ts...); bad != nil {
		return bad
	}
	s, rank := inner(ts...), len(q.shape)
	if rank < 3 || len(k.shape) != rank || len(v.shape) != rank {
		return failf(s, name, ErrShape, "queries %v, keys %v and values %v", q.shape, k.shape, v.shape)
	}
	heads, shared := q.shape[rank-3], k.shape[rank-3]
	switch batch := rank - 3; {
	case !slices.Equal(q.shape[:batch], k.shape[:batch]), !slices.Equal(k.shape[:rank-1], v.shape[:rank-1]),
		q.shape[rank-1] != k.shape[rank-1], q.shape[rank-1] == 0,
		shared == 0 && heads > 0, shared > 0 && heads%shared != 0,
		max(q.Dim(-2), k.Dim(-2), q.Dim(-1), v.Dim(-1)) > math.MaxInt32/2:
		return failf(s, name, ErrShape, "queries %v, keys %v and values %v", q.shape, k.shape, v.shape)
	}
	typ := Promote(Promote(q.typ, k.typ), v.typ)
	if !IsFloat(typ) {
		return failf(s, name, ErrType, "%v, %v and %v", q.typ, k.typ, v.typ)
	}
	at, batch := typ.Computed(), q.shape[:rank-3]
	result := append(slices.Clone(q.shape[:rank-1]), v.shape[rank-1])
	shape := append(slices.Clone(q.shape[:rank-1]), k.shape[rank-2])
	for _, list := range [][]int{result, shape} {
		if err := checkShape(list); err != nil {
			return fail(s, name, err)
		}
	}
	a := attention{groups: count(batch) * shared, queries: q.shape[rank-2], keys: k.shape[rank-2], width: q.shape[rank-1],
		values: v.shape[rank-1],
		scale:  1 / math.Sqrt(float64(q.shape[rank-1])), causal: o.Causal,
		offset: min(max(o.Offset, -math.MaxInt32/2), math.MaxInt32/2)}
	if o.Scale != nil {
		a.scale = *o.Scale
	}
	if o.Mask != nil {
		if all, err := broadcast(o.Mask.shape, shape); err != nil || !slices.Equal(all, shape) {
			return failf(s, name, ErrShape, "a mask %v for %v products", o.Mask.shape, shape)
		}
	}
	if count(result) == 0 || a.keys == 0 {
		return filled(s, typ, result, zero(typ))
	}
	a.heads, a.repeats = shared, heads/shared
	args := []*Tensor{q.Cast(at).Reshape(a.groups, a.repeats, a.queries, a.width),
		k.Cast(at).Reshape(a.groups, a.keys, a.width), v.Cast(at).Reshape(a.groups, a.keys, a.values)}
	if mask := o.Mask; mask != nil {
		if a.mask = at; mask.typ == Bool {
			a.mask = Bool
		}
		if len(batch) > MaxRank-4 {
			batch = []int{count(batch)}
		}
		// a view, without elements of its own for what is stretched
		apart := append(slices.Clone(batch), shared, a.repeats, a.queries, a.keys)
		args = append(args, mask.Cast(a.mask).Expand(shape...).Reshape(apart...))
	}
	c := &callOp{name: name, takes: a.takes, run: a.forward}
	c.back = func(t *Tensor, gs []*Tensor) []*Tensor {
		g := gs[0]
		if g == nil {
			g = Zeros(t.scope, t.typ, t.shape...)
		}
		return a.back(t, c.parts[0], g)
	}
	y := call(c, []Spec{{at, []int{a.groups, a.repeats, a.queries, a.values}},
		{at, []int{a.groups, a.repeats, a.queries}}}, args...)[0]
	return y.Reshape(result...).Cast(typ)
}

// attention is a call of Attention: of each group, a head of keys of an element of the batch, the keys serve
// some heads of queries.
type attention struct {
	groups, heads, repeats, queries, keys, width, values int
	scale                                                float64
	causal                                               bool
	offset                                               int
	mask                                                 Type // 0 if there is none
}

// takes accepts any mask, and everything else dense.
func (a attention) takes(i int, shape, strides []int) bool {
	return i == 3 && a.mask != 0 || isDense(shape, strides)
}

// composed returns the result for the arguments of the call, with operations of tensors on all products at once.
func (a attention) composed(args []*Tensor) *Tensor {
	q, k, v := args[0], args[1].Unsqueeze(1), args[2].Unsqueeze(1)
	s := q.MatMul(k.T()).Mul(a.scale)
	none := Full(s.scope, s.typ, math.Inf(-1))
	switch a.mask {
	case 0:
	case Bool:
		s = Where(args[3].Reshape(s.shape...), s, none)
	default:
		s = s.Add(args[3].Reshape(s.shape...))
	}
	if a.causal {
		last := Iota(s.scope, I64, a.queries, 1).Add(a.offset)
		s = Where(Iota(s.scope, I64, a.keys).Le(last), s, none)
	}
	m := s.Max(-1).StopGradient().Unsqueeze(-1)
	e := s.Sub(Where(m.Eq(math.Inf(-1)), 0, m)).Exp()
	sum := e.Sum(-1).Unsqueeze(-1)
	return e.MatMul(v).Div(Where(sum.Eq(0), 1, sum))
}

// again returns tensors that are the given ones, as new ends of a computation.
func again(ts []*Tensor) []*Tensor {
	list := make([]*Tensor, len(ts))
	for i, t := range ts {
		list[i] = t.view(&viewOp{name: "again", same: true}, t.shape)
	}
	return list
}

// back returns the gradients of the arguments for that of the result t. sums are the logarithms of the sums of weights.
func (a attention) back(t, sums, g *Tensor) []*Tensor {
	args := t.args
	specs := []Spec{{t.typ, args[0].shape}, {t.typ, args[1].shape}, {t.typ, args[2].shape}}
	c := &callOp{name: "attention'", takes: a.takes, run: a.backward}
	c.back = func(t *Tensor, gs []*Tensor) []*Tensor { // of the gradients of what is composed
		from := again(append(slices.Clone(args), g))
		ends := from[:3]
		if a.mask != 0 && a.mask != Bool {
			ends = from[:4]
		}
		ends = append(slices.Clone(ends), from[len(args)])
		var ys, us []*Tensor
		for i, d := range GradOf([]*Tensor{a.composed(from)}, from[len(args):], from[:3]...) {
			if gs[i] != nil {
				ys, us = append(ys, d), append(us, gs[i])
			}
		}
		list := make([]*Tensor, len(t.args))
		for i, d := range GradOf(ys, us, ends...) {
			at := i
			if i == len(ends)-1 {
				at = len(args) + 1
			}
			list[at] = d
		}
		return list
	}
	list := call(c, specs, append(slices.Clone(args), sums, g, g.Mul(t).Sum(-1))...)
	switch a.mask {
	case 0:
	case Bool:
		list = append(list, nil)
	default:
		from := again(args)
		list = append(list, GradOf([]*Tensor{a.composed(from)}, []*Tensor{g}, from[3])...)
	}
	return list
}

// blockRows is how many queries of a head a block has at most, and blockProducts how many products of queries and keys,
// unless one query has more. They are whole blocks for 4096 keys, whose rows have a pitch.
const blockRows, blockProducts = 512, 1<<21 + 1<<17

// pitch is the distance of the rows of a block for a number of keys. Rows at distances of whole pages would
// share the same few lines of a cache.
func pitch(keys int) int {
	const line = 16
	if keys < 16*line {
		return keys
	}
	return ((keys+line-1)/line | 1) * line
}

// block is a part of the work: some rows of queries of some groups, and the keys that they may see.
type block struct {
	group, groups int // the first group, and how many there are
	head          int // which one of the repeats
	row, rows     int
	keys          int
}

// sizes returns how many rows a block has at most, and how many products, and how many rows of all of its
// groups together.
func (a attention) sizes() (high, products, rows int) {
	wide := pitch(a.keys)
	high = max(min(a.queries, blockRows, blockProducts/wide), 1)
	return high, min(a.groups*high*wide, max(blockProducts, wide)), min(a.groups*high, blockProducts)
}

// each calls f for the blocks, one after the other.
func (a attention) each(f func(b block) error) error {
	high, _, _ := a.sizes()
	for row := 0; row < a.queries; row += high {
		n := min(high, a.queries-row)
		keys := a.keys
		if a.causal { // at least one, which may be masked
			keys = min(max(row+n+a.offset, 1), a.keys)
		}
		wide := max(min(a.groups, blockProducts/(n*pitch(keys))), 1)
		for head := range a.repeats {
			for group, some := 0, 0; group < a.groups; group += some {
				if some = min(wide, a.groups-group); a.mask != 0 { // of one element of the batch, since the mask may lie unevenly
					some = min(some, a.heads-group%a.heads)
				}
				if err := f(block{group, some, head, row, n, keys}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// matrices are some matrices in memory, one a step after the other.
type matrices struct {
	buf       *runtime.Buffer
	first     int
	width     int // of rows
	step      int
	transpose bool
}

// rows returns rows of queries, or of what has as many rows, of a block.
func (a attention) rows(b block, buf *runtime.Buffer, width int) matrices {
	return matrices{buf: buf, first: ((b.group*a.repeats+b.head)*a.queries + b.row) * width, width: width,
		step: a.repeats * a.queries * width}
}

// shared returns the keys of a block, or what has as many rows.
func (a attention) shared(b block, buf *runtime.Buffer, width int) matrices {
	return matrices{buf: buf, first: b.group * a.keys * width, width: width, step: a.keys * width}
}

func (b block) scores(buf *runtime.Buffer) matrices {
	return matrices{buf: buf, width: pitch(b.keys), step: b.rows * pitch(b.keys)}
}

func (m matrices) t() matrices {
	m.transpose = !m.transpose
	return m
}

// operand returns the matrices as an operand of a map.
func (m matrices) operand() expr.Operand {
	return expr.Operand{First: m.first, Steps: []int{m.step, m.width, 1}}
}

// column returns numbers of which rows have one each as an operand of a map.
func (m matrices) column() expr.Operand {
	return expr.Operand{First: m.first, Steps: []int{m.step, m.width, 0}}
}

// multiply queues c = alpha·x·y + beta·c for n matrices c of m rows and cols columns; x has k columns.
func (r *run) multiply(t Type, n, m, cols, k int, alpha, beta float64, x, y, c matrices) error {
	var bufs []*runtime.Buffer
	for _, m := range []matrices{x, y, c} {
		b, err := m.buf.Slice(m.first, m.buf.Len()-m.first)
		if err != nil {
			return err
		}
		r.temps = append(r.temps, b)
		bufs = append(bufs, b)
	}
	number := func(v float64) any {
		if t == F64 {
			return v
		}
		return float32(v)
	}
	defines := []string{"T=" + t.String(), define("TRANS_A", x.transpose), define("TRANS_B", y.transpose)}
	return r.catalog("gemm_batch", "gemm_batch", defines, []int{n, m, cols}, uint32(m), uint32(cols), uint32(k),
		number(alpha), bufs[0], uint32(x.width), bufs[1], uint32(y.width), number(beta), bufs[2], uint32(c.width), uint32(n),
		uint64(x.step), uint64(y.step), uint64(c.step))
}

// apply queues a map of outputs, with the operands of the layout, inputs first, in memory.
func (r *run) apply(dims []int, operands []expr.Operand, memory []*runtime.Buffer, outputs ...*expr.Expr) error {
	m, err := expr.New(outputs...)
	if err != nil {
		return err
	}
	l, err := m.Layout(expr.Layout{Dims: dims, Operands: operands})
	if err != nil {
		return err
	}
	m, params := shared(m, l, outputs)
	var args []any
	for _, b := range memory {
		args = append(args, b)
	}
	return r.mapped(m, &l, append(args, params...))
}

// masks is what the kernels of blocks need for masks.
type masks struct {
	attention
	typ    Type
	mask   operand
	counts *runtime.Buffer // 0, 1, 2, ... as elements of rows and columns, for a causal mask
}

func (a attention) masks(r *run, typ Type, in []operand) (m masks, err error) {
	m = masks{attention: a, typ: typ}
	if a.mask != 0 {
		m.mask = in[3]
	}
	if a.causal {
		n := max(a.queries, a.keys)
		if m.counts, err = r.temp(I32, n); err != nil {
			return m, err
		}
		err = r.apply([]int{n}, []expr.Operand{{Steps: []int{1}}}, []*runtime.Buffer{m.counts},
			expr.Index().Cast(I32).Output(I32))
	}
	return m, err
}

// hide queues a kernel that makes those scores of a block -∞ that are of keys which a query does not see for its place.
func (m masks) hide(r *run, b block, scores matrices) error {
	from := max(b.row+m.offset+1, 0) // the first key that the first row does not see
	if !m.causal || from >= b.keys {
		return nil
	}
	s, row, col := expr.Input(0, m.typ), expr.Input(1, I32), expr.Input(2, I32)
	seen := col.Le(row.Add(expr.Int(I32, int64(m.offset)))).Select(s, s.Number(math.Inf(-1)))
	at := scores.operand()
	at.First += from
	return r.apply([]int{b.groups, b.rows, b.keys - from}, []expr.Operand{at, {First: b.row, Steps: []int{0, 1, 0}},
		{First: from, Steps: []int{0, 0, 1}}, at},
		[]*runtime.Buffer{scores.buf, m.counts, m.counts, scores.buf}, seen.Output(m.typ))
}

// score returns the scores of a block as an expression of inputs, with the mask as the last one, and its
// operand and memory.
func (m masks) score(b block, slot int) (*expr.Expr, []expr.Operand, []*runtime.Buffer) {
	s := expr.Input(0, m.typ)
	if m.attention.mask == 0 {
		return s, nil, nil
	}
	batch := len(m.mask.strides) - 4
	strides := m.mask.strides[batch:]
	at := expr.Operand{First: m.mask.first + b.group%m.heads*strides[0] + b.head*strides[1] + b.row*strides[2],
		Steps: []int{strides[0], strides[2], strides[3]}}
	for i, rest := batch-1, b.group/m.heads; i >= 0; i-- {
		at.First += rest % m.mask.shape[i] * m.mask.strides[i]
		rest /= m.mask.shape[i]
	}
	x := expr.Input(slot, m.attention.mask)
	if m.attention.mask == Bool {
		s = x.Select(s, s.Number(math.Inf(-1)))
	} else {
		s = s.Add(x)
	}
	return s, []expr.Operand{at}, []*runtime.Buffer{m.mask.v.data.buf}
}

func (a attention) forward(r *run, out, in []operand) error {
	typ := out[0].typ
	bufs, err := r.buffers(in[0], in[1], in[2], out[0], out[1])
	if err != nil {
		return err
	}
	masks, err := a.masks(r, typ, in)
	if err != nil {
		return err
	}
	_, products, rows := a.sizes()
	memory, err := r.temp(typ, products)
	if err != nil {
		return err
	}
	sums, err := r.temp(typ, rows)
	if err != nil {
		return err
	}
	return a.each(func(b block) error {
		q, k, v, y := a.rows(b, bufs[0], a.width), a.shared(b, bufs[1], a.width), a.shared(b, bufs[2], a.values),
			a.rows(b, bufs[3], a.values)
		scores, sum, logs := b.scores(memory), matrices{buf: sums, width: 1, step: b.rows}, a.rows(b, bufs[4], 1)
		if err := r.multiply(typ, b.groups, b.rows, b.keys, a.width, a.scale, 0, q, k.t(), scores); err != nil {
			return err
		}
		if err := masks.hide(r, b, scores); err != nil {
			return err
		}
		s, operands, more := masks.score(b, 1)
		most := s.Largest()
		none := most.Eq(most.Number(math.Inf(-1)))
		most = none.Select(most.Number(0), most)
		e := s.Sub(most).Exp()
		total := e.Sum()
		log := total.Eq(total.Number(0)).Select(total.Number(math.Inf(1)), total.Log().Add(most))
		operands = append(append([]expr.Operand{scores.operand()}, operands...), scores.operand(), sum.column(),
			logs.column())
		more = append(append([]*runtime.Buffer{memory}, more...), memory, sums, bufs[4])
		if err := r.apply([]int{b.groups, b.rows, b.keys}, operands, more, e.Output(typ), total.Output(typ),
			log.Output(typ)); err != nil {
			return err
		}
		if err := r.multiply(typ, b.groups, b.rows, a.values, b.keys, 1, 0, scores, v, y); err != nil {
			return err
		}
		x, all := expr.Input(0, typ), expr.Input(1, typ)
		mean := x.Div(all.Eq(all.Number(0)).Select(all.Number(1), all))
		return r.apply([]int{b.groups, b.rows, a.values}, []expr.Operand{y.operand(), sum.column(), y.operand()},
			[]*runtime.Buffer{bufs[3], sums, bufs[3]}, mean.Output(typ))
	})
}

// backward computes the gradients of queries, keys and values. Its arguments are those of the call, the
// logarithms of the sums of weights, the gradient of the result, and the sums of the products of this with the
// result.
func (a attention) backward(r *run, out, in []operand) error {
	typ, n := out[0].typ, len(in)
	bufs, err := r.buffers(in[0], in[1], in[2], out[0], out[1], out[2], in[n-3], in[n-2], in[n-1])
	if err != nil {
		return err
	}
	masks, err := a.masks(r, typ, in)
	if err != nil {
		return err
	}
	for _, b := range bufs[4:6] {
		if err := r.stream.Fill(b, make([]byte, size(typ))); err != nil {
			return err
		}
	}
	_, products, _ := a.sizes()
	var memory [2]*runtime.Buffer
	for i := range memory {
		if memory[i], err = r.temp(typ, products); err != nil {
			return err
		}
	}
	return a.each(func(b block) error {
		q, k, v := a.rows(b, bufs[0], a.width), a.shared(b, bufs[1], a.width), a.shared(b, bufs[2], a.values)
		dq, dk, dv := a.rows(b, bufs[3], a.width), a.shared(b, bufs[4], a.width), a.shared(b, bufs[5], a.values)
		logs, g, dots := a.rows(b, bufs[6], 1), a.rows(b, bufs[7], a.values), a.rows(b, bufs[8], 1)
		scores, ds := b.scores(memory[0]), b.scores(memory[1])
		if err := r.multiply(typ, b.groups, b.rows, b.keys, a.width, a.scale, 0, q, k.t(), scores); err != nil {
			return err
		}
		if err := masks.hide(r, b, scores); err != nil {
			return err
		}
		if err := r.multiply(typ, b.groups, b.rows, b.keys, a.values, 1, 0, g, v.t(), ds); err != nil {
			return err
		}
		s, operands, more := masks.score(b, 4)
		p := s.Sub(expr.Input(1, typ)).Exp()
		d := p.Mul(expr.Input(2, typ).Sub(expr.Input(3, typ)))
		operands = append(append([]expr.Operand{scores.operand(), logs.column(), ds.operand(), dots.column()}, operands...),
			scores.operand(), ds.operand())
		more = append(append([]*runtime.Buffer{memory[0], bufs[6], memory[1], bufs[8]}, more...), memory[0], memory[1])
		if err := r.apply([]int{b.groups, b.rows, b.keys}, operands, more, p.Output(typ), d.Output(typ)); err != nil {
			return err
		}
		if err := r.multiply(typ, b.groups, b.keys, a.values, b.rows, 1, 1, scores.t(), g, dv); err != nil {
			return err
		}
		if err := r.multiply(typ, b.groups, b.rows, a.width, b.keys, a.scale, 0, ds, k, dq); err != nil {
			return err
		}
		return r.multiply(typ, b.groups, b.keys, a.width, b.rows, a.scale, 1, ds.t(), q, dk)
	})
}
