package tensor

// How a kernel is put together: the operations between what is read and what is stored become expressions of
// kernels/expr, and chains of views become the places that the kernel reads.

import (
	"errors"
	"slices"
	"strings"

	"github.com/concord-compute/concord/kernels/expr"
)

// mostOperations is how many operations of tensors a kernel computes at most, and mostInputs how many operands it
// reads.
const mostOperations, mostInputs = 128, 14

// output is a tensor that a kernel stores.
type output struct {
	n   *node
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
	fills  bool     // a value of which others store parts after it

	reductions []*node // that it computes
}

// read is a node that another task of the plan stores, and the first access to it.
type read struct {
	n *node
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

// emitter makes the expressions of one kernel. Its decisions about storage reach the kernels that are made after it
// only by attempt.
type emitter struct {
	*storage
	vars       variables
	domain     []*variable
	row        *variable // the dimension that is reduced, the last one of the loop; nil if there is none
	fresh      bool      // row is not among the dimensions of the outputs
	reduction  *node     // the first one that was emitted
	computed   []*node   // by this kernel: its outputs, and what is stored no longer because it computes it
	memo       map[memoKey]*expr.Expr
	indexed    bool
	depth      int  // of reductions around what is emitted
	outside    bool // an element is read outside of reductions
	inputs     []input
	reads      []read
	names      []string
	reductions []*node
	first      *node // what has to be stored before the kernel can be made, and why
	reason     string
	maps       int    // operations that were begun
	under      []mark // what is being emitted, outermost first
	work       map[*node]work
	cut        *node  // where to divide a kernel that became too large
	stretched  access // to the innermost node, of those that are being emitted, to whose shape one is stretched
}

// work is what a kernel computes and reads for a node, less what it has for others before.
type work struct{ maps, inputs int }

// mark is the state when the emission of a node began.
type mark struct {
	n     *node
	begun work
}

type memoKey struct {
	n  *node
	at string
}

// attempt is what came of making a kernel: the kernel, or what has to be stored before it can be made, and why, or what
// is wrong.
type attempt struct {
	kernel *kernel
	first  []*node
	reason string
	err    error
}

// kernel makes the kernel that computes some nodes in one loop, which is over the elements of the last one. at has the
// places of the elements of the others in that loop, as reads of another kernel has them, and to the places of all in
// memory. What is spare is computed by the kernel even if it is stored.
func (s *storage) attempt(ns []*node, at []access, to []place, spare ...*node) attempt {
	e := &emitter{storage: s, memo: map[memoKey]*expr.Expr{}, computed: slices.Concat(ns, spare), work: map[*node]work{}}
	main := ns[len(ns)-1]
	var whole access
	for _, d := range main.shape {
		v := e.vars.new(d)
		e.domain = append(e.domain, v)
		whole = append(whole, of(v))
	}
	outs := make([]output, len(ns))
	// The main output is first, since it defines the loop.
	for i, n := range slices.Backward(ns) {
		a := whole
		if i < len(ns)-1 {
			a = at[i].renumbered(e.domain)
		}
		x := e.emit(n, a)
		switch {
		case e.first != nil:
			return attempt{first: []*node{e.first}, reason: e.reason}
		case x == nil:
			return e.divided(main, e.cut, nil)
		case x.Err() != nil:
			return attempt{err: x.Err()}
		}
		outs[i] = output{n: n, a: a, to: to[i], e: x.Output(n.typ.Stored())}
	}
	if e.fresh && e.outside {
		return attempt{first: []*node{e.reduction}, reason: "its kernel reads elements outside of the rows it reduces"}
	}
	k, err := e.finish(outs)
	switch {
	case e.first != nil:
		return attempt{first: []*node{e.first}, reason: e.reason}
	case err != nil:
		return e.divided(main, e.middle(main), err)
	}
	return attempt{kernel: k}
}

// divided returns the attempt at a kernel of n that became too large: what is stored first is cut, or without it all
// args of n that are not.
func (e *emitter) divided(n, cut *node, err error) attempt {
	cuts := n.args
	if cut != nil {
		cuts = []*node{cut}
	}
	a := attempt{reason: "a kernel with it is too large", err: err}
	for _, x := range cuts {
		if _, ok := e.resolve(x); !ok {
			a.first = append(a.first, x)
		}
	}
	if err == nil {
		a.err = errLarge
	}
	return a
}

var errLarge = errors.New("more operations or operands than a kernel has")

// largest is how much of a kernel's work a node is worth that is stored since the kernel became too large: one part of
// this.
const largest = 4

// divide finds the innermost node whose storing takes a good part of the work from a kernel that has just become too
// large.
func (e *emitter) divide() *node {
	good := func(w work) bool { return w.maps >= mostOperations/largest || w.inputs >= mostInputs/largest }
	for i, m := range slices.Backward(e.under) {
		for _, a := range m.n.args {
			if w, done := e.work[a]; done && good(w) && e.divides(a) {
				return a
			}
		}
		if i > 0 && good(work{e.maps - m.begun.maps, len(e.inputs) - m.begun.inputs}) && e.divides(m.n) {
			return m.n
		}
	}
	return nil
}

// middle finds the node whose work is next to half of that for n.
func (e *emitter) middle(n *node) *node {
	var found *node
	half, seen := e.work[n].maps/2, map[*node]bool{}
	for n != nil && !seen[n] {
		seen[n] = true
		var most *node
		for _, a := range n.args {
			if w, done := e.work[a]; done && (most == nil || w.maps > e.work[most].maps) {
				most = a
			}
		}
		if n = most; n != nil && e.divides(n) {
			if found = n; e.work[n].maps <= half {
				break
			}
		}
	}
	return found
}

// divides reports whether a kernel may be divided at n.
func (e *emitter) divides(n *node) bool {
	if _, stored := e.place(n); stored || slices.Contains(e.computed, n) {
		return false
	}
	return !kinds[n.what].stored && !n.is(kindView) && len(n.args) > 0
}

// renumbered returns an access to the first variables of another kernel's domain as one to those of this domain, which
// has the same lengths. Domains number their variables from 1 on.
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

// emit returns the value of the element of n that an access names, or nil if something has to be stored first or the
// kernel becomes too large.
func (e *emitter) emit(n *node, a access) *expr.Expr {
	if e.first != nil {
		return nil
	}
	key := memoKey{n, a.text()}
	if x, ok := e.memo[key]; ok {
		return x
	}
	begun := work{e.maps, len(e.inputs)}
	e.under = append(e.under, mark{n, begun})
	x := e.make(n, a)
	if x == nil && e.first == nil && e.cut == nil {
		e.cut = e.divide()
	}
	e.under = e.under[:len(e.under)-1]
	if x != nil {
		e.memo[key] = x
		e.work[n] = work{max(e.work[n].maps, e.maps-begun.maps), max(e.work[n].inputs, len(e.inputs)-begun.inputs)}
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

func (e *emitter) make(n *node, a access) *expr.Expr {
	if at, ok := e.place(n); ok && !slices.Contains(e.computed, n) {
		return e.read(n, at, a)
	}
	switch {
	case n.is(kindView):
		o, from := n.op.(*viewOp), n.args[0]
		if in, ok := o.through(a, from.shape, n.shape, &e.vars); ok {
			if stretched := e.stretched; o.expand {
				e.stretched = a
				defer func() { e.stretched = stretched }()
			}
			return e.emit(from, in)
		}
		if at, ok := e.resolve(n, e.computed...); ok {
			return e.read(n, at, a)
		}
		if !slices.Contains(e.computed, from) {
			from = e.copied(from)
		}
		return e.store(from, n, "a kernel reads it by a reshape that no strides describe")
	case kinds[n.what].maps:
		return e.apply(n.op.(*mapOp), n, a)
	case n.is(kindReduction):
		return e.reduce(n.op.(*reduceOp), n, a)
	}
	return e.store(n, n, "no kernel computes it with others")
}

// store demands that a node is stored first, or where that is stored already or is what the kernel computes, the other
// one.
func (e *emitter) store(n, other *node, reason string) *expr.Expr {
	if _, stored := e.place(n); stored || slices.Contains(e.computed, n) {
		n = other
	}
	e.first, e.reason = n, reason
	return nil
}

// read returns an element of a node in memory.
func (e *emitter) read(n *node, at place, a access) *expr.Expr {
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
	if n.data == nil && !slices.ContainsFunc(e.reads, func(r read) bool { return r.n == n }) {
		e.reads = append(e.reads, read{n, a})
	}
	return expr.Input(i, n.typ)
}

func (e *emitter) apply(o *mapOp, n *node, a access) *expr.Expr {
	if o.e.Indexed() {
		flat := place{strides: rowMajor(n.shape)}.flat(a)
		var domain []int
		whole := access{}
		for _, v := range e.domain {
			domain, whole = append(domain, v.extent), append(whole, of(v))
		}
		if e.row != nil || !flat.equal(place{strides: rowMajor(domain)}.flat(whole)) {
			return e.store(n, n, "it depends on the indices of another loop than that of its kernel")
		}
		e.indexed = true
	}
	if len(n.args) > 0 {
		e.maps++
	}
	if e.maps > mostOperations {
		return nil
	}
	with := make([]*expr.Expr, len(n.args))
	for i, x := range n.args {
		if with[i] = e.emit(x, a); with[i] == nil {
			return nil
		}
	}
	if !kinds[o.what].hidden {
		e.names = append(e.names, o.name)
	}
	// If the kernel reads a part of what ends here from memory, this is no definition of it and keeps its form.
	return o.e.Replace(with...).Named(o.completes)
}

func (a linear) equal(b linear) bool { return a.offset == b.offset && slices.Equal(a.terms, b.terms) }

// reduce returns the reduction of a row, whose elements are counted by the last variable of the loop.
func (e *emitter) reduce(o *reduceOp, n *node, a access) *expr.Expr {
	x := n.args[0]
	length := x.shape[len(x.shape)-1]
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
		return e.store(n, n, "a kernel that uses the indices of elements does not reduce")
	case e.row != nil:
		if e.row.extent != length || length > 1 && uses(e.row) {
			return e.store(n, n, "a kernel reduces one dimension")
		}
	default:
		for _, v := range e.domain {
			if v.extent == length && length > 1 && !uses(v) {
				e.row = v
			}
		}
		if e.row == nil {
			e.row, e.fresh = e.vars.new(length), true
		}
		e.reduction = n
	}
	rows := 1
	for _, v := range e.domain {
		if v != e.row {
			rows *= v.extent
		}
	}
	if rows > count(n.shape) {
		return e.store(n, n, "rows of a kernel share it")
	}
	at := of(e.row)
	if !o.locates() && slices.ContainsFunc(e.stretched, func(l linear) bool { return l.factorOf(e.row) < 0 }) {
		at = linear{offset: length - 1}.plus(-1, at) // as what the result is stretched to, so that both are the same elements
	}
	e.depth++
	v := e.emit(x, append(slices.Clone(a), at))
	e.depth--
	if v == nil {
		return nil
	}
	e.names, e.reductions = append(e.names, o.name), append(e.reductions, n)
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

// finish makes the map and the layout; neither a kernel nor an error if something has to be stored first.
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
			if outs[i].n.typ.Stored() != exprs[i].Type() {
				exprs[i] = exprs[i].Output(outs[i].n.typ.Stored())
			}
		}
	}
	for i := range outs {
		outs[i].e = exprs[i]
	}
	m, err := expr.New(exprs...)
	if err != nil { // each operation by itself is well formed
		return nil, err
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
			step, ok := at.step(row)
			if !ok {
				return false
			}
			o.Steps = append(o.Steps, step)
		}
		l.Operands = append(l.Operands, o)
		return true
	}
	for _, in := range kept {
		if !add(in.at.divided()) {
			e.store(e.reduction.args[0], e.reduction, "the rows that a kernel reduces do not lie evenly")
			return nil, nil
		}
	}
	for j, o := range outs {
		if !add(o.to.flat(o.a)) {
			e.first, e.reason = e.reduction, "the rows that a kernel stores do not lie evenly"
			return nil, nil
		}
		if m.Reduces() {
			step := l.Operands[len(l.Operands)-1].Steps[len(l.Dims)-1]
			if k.outs[j].row = m.OncePerRow(j); k.outs[j].row != (step == 0) && e.row.extent > 1 {
				e.first, e.reason = e.reduction, "a kernel stores rows and elements of rows"
				return nil, nil
			} else if k.outs[j].row {
				l.Operands[len(l.Operands)-1].Steps[len(l.Dims)-1] = 0
			}
		}
	}
	if k.layout, err = laidOut(m, l); err != nil {
		return nil, err
	}
	return k, nil
}
