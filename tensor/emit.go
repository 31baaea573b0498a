package tensor

// How a kernel is put together: the operations between what is read and what is stored become expressions of kernels/expr,
// and chains of views become the places that the kernel reads.

import (
	"slices"
	"strings"

	"github.com/concord-compute/concord/kernels/expr"
)

// mostOperations is how many operations of tensors a kernel computes at most, and mostInputs how many operands it reads.
const mostOperations, mostInputs = 128, 14

// value is the memory of a tensor in a plan.
type value struct {
	typ  Type
	n    int
	data *array // if it has been computed before; else the plan computes it
	kept bool   // needed after the plan
	have bool   // computed before the plan
	arg  int    // 1 more than the number of the argument of a compiled function that it is
}

// place is where the elements of a tensor lie in a value: the element of index i is first + Σ steps[j]·i[j].
type place struct {
	v     *value
	first int
	steps []int
}

// rowMajor returns the steps of dense elements.
func rowMajor(shape []int) []int { return expr.Rows(shape...).Steps }

// within returns the place of part of a tensor that lies at p.
func (p place) within(at []span) place {
	out := place{p.v, p.first, slices.Clone(p.steps)}
	for j, s := range at {
		out.first += s.start * p.steps[j]
		out.steps[j] *= s.step
	}
	return out
}

// flat returns the index in the value of the element that an access names.
func (p place) flat(a access) linear {
	out := linear{offset: p.first}
	for j, l := range a {
		out = out.plus(p.steps[j], l)
	}
	return out.divided()
}

// output is a tensor that a kernel stores.
type output struct {
	t   *Tensor
	a   access // of the element that belongs to a position of the loop
	to  place
	e   *expr.Expr
	row bool // one element for each row
}

// kernel is a task: a loop over a domain that computes a map and stores its outputs.
type kernel struct {
	outs   []output
	inputs []input
	m      *expr.Map
	params []any // of m, which has none until the plan is made
	layout expr.Layout
	reads  []read
	names  []string // of the operations, for people

	reductions []*Tensor // that it computes
}

// read is a tensor that another task of the plan stores, and the first access to it.
type read struct {
	t *Tensor
	a access
}

// input is an element that a kernel reads.
type input struct {
	v    *value
	at   linear
	text string
}

func (k *kernel) String() string { return strings.Join(k.names, " ") }

func (k *kernel) values() (in, out []*value) {
	for _, i := range k.inputs {
		in = append(in, i.v)
	}
	for _, o := range k.outs {
		out = append(out, o.to.v)
	}
	return in, out
}

// emitter makes the expressions of one kernel.
type emitter struct {
	p          *planner
	vars       variables
	domain     []*variable
	row        *variable        // the dimension that is reduced, the last one of the loop; nil if there is none
	fresh      bool             // row is not among the dimensions of the outputs
	reduction  *Tensor          // the first one that was emitted
	inside     map[*Tensor]bool // stored by this kernel
	memo       map[memoKey]*expr.Expr
	indexed    bool
	depth      int  // of reductions around what is emitted
	outside    bool // an element is read outside of reductions
	inputs     []input
	reads      []read
	names      []string
	reductions []*Tensor
	bad        *Tensor // what has to be stored before the kernel can be made
	maps       int     // operations that were begun
	under      []mark  // what is being emitted, outermost first
	work       map[*Tensor]work
	cut        *Tensor // where to divide a kernel that became too large
	around     access  // to the innermost tensor, of those that are being emitted, for whose elements one is repeated
}

// work is what a kernel computes and reads for a tensor, less what it has for others before.
type work struct{ maps, inputs int }

// mark is the state when the emission of a tensor began.
type mark struct {
	t     *Tensor
	begun work
}

type memoKey struct {
	t  *Tensor
	at string
}

// split is the reason that a kernel cannot be made before another tensor is stored.
type split struct{ store *Tensor }

func (split) Error() string { return "tensor: the kernel has to be divided" }

// tooLarge is the reason that a kernel cannot be made: it has too much of something, for which cut is a good place to divide it if there is one.
type tooLarge struct {
	cut *Tensor
	err error
}

func (t tooLarge) Error() string {
	if t.err == nil {
		return "more operations or operands than a kernel has"
	}
	return t.err.Error()
}

func (t tooLarge) Unwrap() error { return t.err }

// kernel makes the kernel that computes some tensors in one loop, which is over the elements of the last one. at has the places of the
// elements of the others in that loop, as reads of another kernel has them, and to the places of all in memory.
func (p *planner) kernel(ts []*Tensor, at []access, to []place) (*kernel, []access, error) {
	e := &emitter{p: p, memo: map[memoKey]*expr.Expr{}, inside: map[*Tensor]bool{}, work: map[*Tensor]work{}}
	for _, t := range ts {
		e.inside[t] = true
	}
	main := ts[len(ts)-1]
	var whole access
	for _, d := range main.shape {
		v := e.vars.new(d)
		e.domain = append(e.domain, v)
		whole = append(whole, of(v))
	}
	outs := make([]output, len(ts))
	all := make([]access, len(ts))
	// The main output is first, since it defines the loop.
	for n := range ts {
		i := len(ts) - 1 - n
		a := whole
		if n > 0 {
			a = at[i].renumbered(e.domain)
		}
		x := e.emit(ts[i], a)
		if e.bad != nil {
			return nil, nil, split{e.bad}
		}
		if x == nil {
			return nil, nil, tooLarge{e.cut, nil}
		}
		if err := x.Err(); err != nil {
			return nil, nil, err
		}
		outs[i] = output{t: ts[i], a: a, to: to[i], e: x.Output(ts[i].typ.Stored())}
		all[i] = a
	}
	if e.fresh && e.outside {
		return nil, nil, split{e.reduction}
	}
	k, err := e.finish(outs)
	if s, ok := err.(tooLarge); ok {
		s.cut = e.middle(main)
		err = s
	}
	return k, all, err
}

// largest is how much of a kernel's work a tensor is worth that is stored since the kernel became too large: one part of this.
const largest = 4

// divide finds the innermost tensor whose storing takes a good part of the work from a kernel that has just become too large.
func (e *emitter) divide() *Tensor {
	good := func(w work) bool { return w.maps >= mostOperations/largest || w.inputs >= mostInputs/largest }
	for i, m := range slices.Backward(e.under) {
		for _, a := range m.t.args {
			if w, done := e.work[a]; done && good(w) && e.divides(a) {
				return a
			}
		}
		if i > 0 && good(work{e.maps - m.begun.maps, len(e.inputs) - m.begun.inputs}) && e.divides(m.t) {
			return m.t
		}
	}
	return nil
}

// middle finds the tensor whose work is next to half of that for t.
func (e *emitter) middle(t *Tensor) *Tensor {
	var found *Tensor
	half, seen := e.work[t].maps/2, map[*Tensor]bool{}
	for t != nil && !seen[t] {
		seen[t] = true
		var most *Tensor
		for _, a := range t.args {
			if w, done := e.work[a]; done && (most == nil || w.maps > e.work[most].maps) {
				most = a
			}
		}
		if t = most; t != nil && e.divides(t) {
			if found = t; e.work[t].maps <= half {
				break
			}
		}
	}
	return found
}

// divides reports whether a kernel may be divided at t.
func (e *emitter) divides(t *Tensor) bool {
	if _, stored := e.p.place(t); stored || e.inside[t] {
		return false
	}
	switch t.op.(type) {
	case *mapOp, *reduceOp:
		return len(t.args) > 0
	}
	return false
}

// renumbered returns an access to the first variables of another kernel's domain as one to those of this domain, which has the same
// lengths. Domains number their variables from 1 on.
func (a access) renumbered(domain []*variable) access {
	out := make(access, len(a))
	for i, l := range a {
		out[i].offset = l.offset
		for _, t := range l.terms {
			out[i].add(domain[t.v.number-1], t.factor)
		}
	}
	return out
}

// emit returns the value of the element of t that an access names, or nil if bad is set or the kernel becomes too large.
func (e *emitter) emit(t *Tensor, a access) *expr.Expr {
	if e.bad != nil {
		return nil
	}
	key := memoKey{t, a.text()}
	if x, ok := e.memo[key]; ok {
		return x
	}
	begun := work{e.maps, len(e.inputs)}
	e.under = append(e.under, mark{t, begun})
	x := e.make(t, a)
	if x == nil && e.bad == nil && e.cut == nil {
		e.cut = e.divide()
	}
	e.under = e.under[:len(e.under)-1]
	if x != nil {
		e.memo[key] = x
		e.work[t] = work{max(e.work[t].maps, e.maps-begun.maps), max(e.work[t].inputs, len(e.inputs)-begun.inputs)}
	}
	return x
}

func (a access) text() string {
	var b strings.Builder
	for _, l := range a.divided() {
		l.write(&b)
		b.WriteByte(',')
	}
	return b.String()
}

func (e *emitter) make(t *Tensor, a access) *expr.Expr {
	if !e.inside[t] {
		if at, ok := e.p.place(t); ok {
			return e.read(t, at, a)
		}
	}
	switch o := t.op.(type) {
	case *viewOp:
		if in, ok := o.through(a, t.args[0].shape, t.shape, &e.vars); ok {
			if around := e.around; o.expand {
				e.around = a
				defer func() { e.around = around }()
			}
			return e.emit(t.args[0], in)
		}
		if at, ok := e.p.resolve(t, e.inside); ok {
			return e.read(t, at, a)
		}
		if !e.inside[t.args[0]] {
			return e.store(e.p.copied(t.args[0]), t)
		}
		return e.store(t.args[0], t)
	case *mapOp:
		return e.apply(o, t, a)
	case *reduceOp:
		return e.reduce(o, t, a)
	}
	return e.store(t, t)
}

// store demands that a tensor is stored first, or where that is stored already or is what the kernel computes, the other one.
func (e *emitter) store(t, other *Tensor) *expr.Expr {
	if _, stored := e.p.place(t); stored || e.inside[t] {
		t = other
	}
	e.bad = t
	return nil
}

// read returns an element of a tensor in memory.
func (e *emitter) read(t *Tensor, at place, a access) *expr.Expr {
	e.outside = e.outside || e.depth == 0
	flat := at.flat(a)
	var b strings.Builder
	flat.write(&b)
	i := slices.IndexFunc(e.inputs, func(in input) bool { return in.v == at.v && in.text == b.String() })
	if i < 0 {
		if len(e.inputs) == mostInputs {
			return nil
		}
		i = len(e.inputs)
		e.inputs = append(e.inputs, input{at.v, flat, b.String()})
	}
	if t.data == nil && !slices.ContainsFunc(e.reads, func(r read) bool { return r.t == t }) {
		e.reads = append(e.reads, read{t, a})
	}
	return expr.Input(i, t.typ)
}

func (e *emitter) apply(o *mapOp, t *Tensor, a access) *expr.Expr {
	if o.e.Indexed() {
		flat := place{steps: rowMajor(t.shape)}.flat(a)
		var domain []int
		whole := access{}
		for _, v := range e.domain {
			domain, whole = append(domain, v.extent), append(whole, of(v))
		}
		if e.row != nil || !flat.equal(place{steps: rowMajor(domain)}.flat(whole)) {
			return e.store(t, t)
		}
		e.indexed = true
	}
	if len(t.args) > 0 {
		e.maps++
	}
	if e.maps > mostOperations {
		return nil
	}
	with := make([]*expr.Expr, len(t.args))
	for i, x := range t.args {
		if with[i] = e.emit(x, a); with[i] == nil {
			return nil
		}
	}
	if !kinds[o.what].hidden {
		e.names = append(e.names, o.name)
	}
	return o.e.Replace(with...)
}

func (a linear) equal(b linear) bool { return a.offset == b.offset && slices.Equal(a.terms, b.terms) }

// reduce returns the reduction of a row, whose elements are counted by the last variable of the loop.
func (e *emitter) reduce(o *reduceOp, t *Tensor, a access) *expr.Expr {
	x := t.sources()[0]
	n := x.shape[len(x.shape)-1]
	uses := func(v *variable) bool {
		var whole linear
		for _, p := range of(v).divided().terms {
			whole.add(p.v, 1)
		}
		return slices.ContainsFunc(a, func(l linear) bool {
			return slices.ContainsFunc(l.divided().terms, func(p term) bool { return whole.factorOf(p.v) != 0 })
		})
	}
	switch {
	case e.indexed:
		return e.store(t, t)
	case e.row != nil:
		if e.row.extent != n || n > 1 && uses(e.row) {
			return e.store(t, t)
		}
	default:
		for _, v := range e.domain {
			if v.extent == n && n > 1 && !uses(v) {
				e.row = v
			}
		}
		if e.row == nil {
			e.row, e.fresh = e.vars.new(n), true
		}
		e.reduction = t
	}
	rows := 1
	for _, v := range e.domain {
		if v != e.row {
			rows *= v.extent
		}
	}
	if rows > count(t.shape) { // it would be computed again for rows that share it
		return e.store(t, t)
	}
	at := of(e.row)
	if slices.ContainsFunc(e.around, func(l linear) bool { return l.factorOf(e.row) < 0 }) {
		at = linear{offset: n - 1}.plus(-1, at) // as what the result is repeated for, so that both are the same elements
	}
	e.depth++
	v := e.emit(x, append(slices.Clone(a), at))
	e.depth--
	if v == nil {
		return nil
	}
	e.names, e.reductions = append(e.names, o.name), append(e.reductions, t)
	return expr.Apply(o.op, v)
}

// leaves returns variables, each as the ones that it is divided into.
func leaves(list []*variable) []*variable {
	var out []*variable
	for _, v := range list {
		if v.outer != nil {
			out = append(out, leaves([]*variable{v.outer, v.inner})...)
		} else {
			out = append(out, v)
		}
	}
	return out
}

// finish makes the map and the layout.
func (e *emitter) finish(outs []output) (*kernel, error) {
	var exprs []*expr.Expr
	for _, o := range outs {
		exprs = append(exprs, o.e)
	}
	used := expr.Used(exprs...)
	with, kept := make([]*expr.Expr, len(e.inputs)), []input{}
	for i, in := range e.inputs {
		if i < len(used) && used[i] != 0 {
			with[i] = expr.Input(len(kept), used[i])
			kept = append(kept, in)
		}
	}
	if len(kept) < len(e.inputs) {
		for i := range exprs {
			exprs[i] = exprs[i].Replace(with...)
			if outs[i].t.typ.Stored() != exprs[i].Type() {
				exprs[i] = exprs[i].Output(outs[i].t.typ.Stored())
			}
		}
	}
	for i := range outs {
		outs[i].e = exprs[i]
	}
	m, err := expr.New(exprs...)
	if err != nil { // each operation by itself is well formed
		return nil, tooLarge{err: err}
	}
	k := &kernel{outs: outs, inputs: kept, m: m, reads: e.reads, names: e.names, reductions: e.reductions}
	var loop, row []*variable
	for _, v := range e.domain {
		if v != e.row {
			loop = append(loop, v)
		}
	}
	loop = leaves(loop)
	if m.Reduces() {
		row = leaves([]*variable{e.row})
	} else if e.row != nil { // the reduction was of a number, and is gone
		loop = leaves(e.domain)
	}
	l := expr.Layout{}
	for _, v := range loop {
		l.Dims = append(l.Dims, v.extent)
	}
	if m.Reduces() {
		l.Dims = append(l.Dims, e.row.extent)
	}
	add := func(at linear) bool {
		o := expr.Operand{First: at.offset}
		for _, v := range loop {
			o.Steps = append(o.Steps, at.factorOf(v))
		}
		if m.Reduces() {
			step := 0
			for i := len(row) - 1; i >= 0; i-- { // all parts of the row have to be one dimension
				f := at.factorOf(row[i])
				if i == len(row)-1 {
					step = f
				} else if below := row[i+1]; f != at.factorOf(below)*below.extent {
					return false
				}
			}
			o.Steps = append(o.Steps, step)
		}
		l.Operands = append(l.Operands, o)
		return true
	}
	for _, in := range kept {
		if !add(in.at.divided()) {
			e.store(e.reduction.sources()[0], e.reduction)
			return nil, split{e.bad}
		}
	}
	for j, o := range outs {
		if !add(o.to.flat(o.a)) {
			return nil, split{e.reduction}
		}
		if m.Reduces() {
			step := l.Operands[len(l.Operands)-1].Steps[len(l.Dims)-1]
			if k.outs[j].row = m.OncePerRow(j); k.outs[j].row != (step == 0) && e.row.extent > 1 {
				return nil, split{e.reduction}
			} else if k.outs[j].row {
				l.Operands[len(l.Operands)-1].Steps[len(l.Dims)-1] = 0
			}
		}
	}
	if k.layout, err = laidOut(m, l); err != nil {
		return nil, tooLarge{err: err}
	}
	return k, nil
}
