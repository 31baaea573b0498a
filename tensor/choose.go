package tensor

// Which tensors of a plan are stored, and which are computed again by each kernel that needs them.

import (
	"math/bits"
	"slices"

	"github.com/concord-compute/concord/kernels/expr"
)

// choose decides what is stored: what was asked for, what calls read and write, and what several kernels would compute otherwise
// where that costs more than to store it. It returns the tensors that may lie in any order of dimensions.
func (p *planner) choose() (free []*Tensor) {
	users := map[*Tensor]map[*Tensor]visits{} // the stored tensors whose kernels would compute it
	reads := map[*Tensor]int{}                // how many operations read it
	for _, t := range p.order {
		for _, a := range t.sources() {
			reads[a]++
		}
	}
	use := func(t, by *Tensor, v visits) {
		if users[t] == nil {
			users[t] = map[*Tensor]visits{}
		}
		users[t][by] |= v
	}
	for _, t := range slices.Backward(p.order) {
		_, isView := t.op.(*viewOp)
		stored := p.places[t] != nil || p.kept[t]
		if p.kept[t] && isView && p.places[t] == nil {
			b := base(t)
			if p.solid(b) {
				p.keep(b)
				_, resolves := p.resolve(t, nil)
				stored = !resolves
			}
		}
		switch op := t.op.(type) {
		case *callOp:
			stored = true
			p.keep(t)
			for i, a := range t.args {
				p.readable(op, i, a)
			}
		case *partOp:
			p.keep(t)
			continue
		case *joinOp:
			stored = true
			p.keep(t)
			if p.fuse && op.fill == nil {
				for _, part := range op.parts {
					p.settle(t, part, reads)
				}
			}
		case *reduceOp:
			stored = stored || !p.fuse || len(users[t]) > 1
		case *mapOp:
			stored = stored || !p.fuse && !kinds[op.what].inline ||
				len(users[t]) > 1 && p.dear(t, len(users[t])) || p.fuse && p.number(t, users[t])
			if p.fuse && !stored && p.repeated(t, users[t], reads) {
				stored, p.once[t] = true, true
			}
		}
		if stored {
			switch t.op.(type) {
			case *mapOp, *reduceOp:
				if p.places[t] == nil {
					free = append(free, t)
				}
			}
			p.keep(t)
		}
		before := p.before(t)
		for _, a := range t.sources() {
			if stored {
				use(a, t, 1<<before)
			} else {
				for by, v := range users[t] {
					use(a, by, v<<before)
				}
			}
		}
	}
	return free
}

// visits has a bit for each time that a kernel visits the elements of a tensor: bit i for the visit after which i levels of reductions follow
// that visit their elements again.
type visits uint64

// before returns 1 if t is a reduction whose kernel visits the elements again once it is known, and 0 otherwise: the CPU keeps rows in a
// cache, but neither columns nor long rows.
func (p *planner) before(t *Tensor) int {
	if _, ok := t.op.(*reduceOp); !ok || t.divided() || t.scope.engine.groups {
		return 0
	}
	a := t.args[0]
	last := len(a.shape) - 1
	// That rows are few depends on the threads, but a plan does not: two of them are assumed.
	if n, rows := a.shape[last], count(t.shape); n > expr.LongestKept || n > expr.Kept && rows < 4 {
		return 1
	}
	steps := p.lies(a)
	if steps == nil {
		return 0
	}
	// The innermost of the other dimensions lies further in.
	for j, s := range steps[:last] {
		if a.shape[j] > 1 && s != 0 && max(s, -s) < max(steps[last], -steps[last]) {
			return 1
		}
	}
	return 0
}

// repeated reports whether it takes longer to compute t at each of several visits of a kernel than to store it and to read it.
func (p *planner) repeated(t *Tensor, users map[*Tensor]visits, reads map[*Tensor]int) bool {
	most := 0
	for _, v := range users {
		most = max(most, bits.OnesCount64(uint64(v)))
	}
	return most > 1 && p.dearer(t, most, reads)
}

// dearer reports whether it takes longer to compute t at each of so many visits than to store it and to read it.
func (p *planner) dearer(t *Tensor, visits int, reads map[*Tensor]int) bool {
	n := max(count(t.shape), 1)
	move := moveEffort(n * size(t.typ))
	compute, inputs := p.effort(t, reads)
	return (visits-1)*(compute+inputs*move) > (visits+1)*move+launchEffort/n
}

// Efforts are in the time in which the CPU adds two numbers in registers and all its threads, measured with tensors of 4 KiB to 64 MiB. launchEffort is that of another task.
const launchEffort = 10000

// moveEffort returns that of reading or storing an element of a tensor of so many bytes, which lie in caches or not.
func moveEffort(bytes int) int {
	switch {
	case bytes <= 1<<20:
		return 2
	case bytes <= 4<<20:
		return 3
	case bytes <= 16<<20:
		return 5
	}
	return 12
}

// efforts are those of functions of f32; all other operations have 1.
var efforts = map[expr.Op]int{expr.Div: 4, expr.Sqrt: 4, expr.Rsqrt: 6, expr.Exp: 6, expr.Sigmoid: 8, expr.Tanh: 10, expr.Exp2: 10, expr.GELU: 16,
	expr.Log: 16, expr.Log2: 16, expr.Erf: 20, expr.Erfc: 20, expr.Expm1: 30, expr.Cosh: 30, expr.Log1p: 40, expr.Sinh: 40, expr.Atan: 40,
	expr.Sin: 50, expr.Cos: 50, expr.Atan2: 50, expr.Tan: 60, expr.Pow: 100}

// effort returns that of computing an element of t from what is stored, and how many stored elements are read for it. What several operations read is decided
// for itself: it counts as stored if two visits would be enough to store it.
func (p *planner) effort(t *Tensor, readers map[*Tensor]int) (compute, reads int) {
	const enough = 1000 // to store anything but tensors of few elements, for which the estimate does not matter
	seen := map[*Tensor]bool{}
	var visit func(t *Tensor)
	visit = func(t *Tensor) {
		switch o := t.op.(type) {
		case *mapOp:
			for op, n := range o.e.Operations() {
				compute += n * max(1, efforts[op])
			}
		case *viewOp:
			if o.expand { // an element of the caches
				return
			}
		default:
			reads++
			return
		}
		for _, a := range t.sources() {
			if seen[a] || compute > enough {
				continue
			}
			seen[a] = true
			if _, placed := p.place(a); placed || readers[a] > 1 && p.stores(a, readers) {
				if count(a.shape) > 1 {
					reads++
				}
				continue
			}
			visit(a)
		}
	}
	visit(t)
	return compute, reads
}

// stores reports whether two visits are enough to store t.
func (p *planner) stores(t *Tensor, readers map[*Tensor]int) bool {
	yes, known := p.twice[t]
	if !known {
		yes = p.dearer(t, 2, readers)
		p.twice[t] = yes
	}
	return yes
}

// function reports whether an operation on floating numbers is computed by a series of others.
func function(op expr.Op) bool { return op != expr.Div && efforts[op] > 0 }

// settle gives the result of a call, of which a part of a tensor is the only reader, its place in that tensor, so that it is not copied there.
func (p *planner) settle(whole *Tensor, part part, reads map[*Tensor]int) {
	c := part.t
	for reads[c] == 1 && c.data == nil {
		if o, ok := c.op.(*viewOp); !ok || !o.shape {
			break
		}
		c = c.args[0]
	}
	o, ok := c.op.(*callOp)
	if !ok || len(o.parts) > 0 || c.data != nil || reads[c] != 1 || p.kept[c] || p.places[c] != nil || count(c.shape) == 0 {
		return
	}
	at := p.places[whole].within(part.at)
	if steps, ok := reshaped(at.steps, part.t.shape, c.shape); ok && isDense(c.shape, steps) {
		p.places[c] = &place{at.v, at.first, rowMajor(c.shape)}
	}
}

// manyTimes is how often a number may be computed again before it is stored instead, and how many elements make it worthwhile to read them once.
const manyTimes = 4096

// number reports whether t is one number, made by a function of stored ones, that a kernel would compute for each of many elements.
func (p *planner) number(t *Tensor, users map[*Tensor]visits) bool {
	if count(t.shape) != 1 || !p.dear(t, 1) {
		return false
	}
	for _, a := range walk([]*Tensor{t}, func(t *Tensor) []*Tensor { return t.sources() }) {
		if _, sum := a.op.(*reduceOp); sum && a.data == nil {
			return false
		}
	}
	for by := range users {
		if count(by.shape) >= manyTimes {
			return true
		}
	}
	return false
}

// readable makes sure that argument i of a call is stored, or is a view of what is stored.
func (p *planner) readable(o *callOp, i int, a *Tensor) {
	b := base(a)
	if _, placed := p.place(b); placed || p.solid(b) || count(b.shape) <= count(a.shape) {
		if !placed { // what if it were stored
			p.places[b] = &place{steps: rowMajor(b.shape)}
		}
		at, ok := p.resolve(a, nil)
		if !placed {
			delete(p.places, b)
		}
		if ok && o.takes(i, a.shape, at.steps) {
			p.keep(b)
			return
		}
	}
	p.keep(p.copied(a))
}

// copied returns the dense tensor that is read in place of a: a itself, or a copy if a is stored in another way.
func (p *planner) copied(a *Tensor) *Tensor {
	if at, ok := p.place(a); !ok || slices.Equal(at.steps, rowMajor(a.shape)) {
		return a
	}
	if p.copies[a] == nil {
		c := a.copied()
		p.copies[a] = c
		p.order = append(p.order, c)
	}
	return p.copies[a]
}

// dear reports whether it costs more to compute t in each of several kernels than to store it: it has a function, or what it is made of is
// more memory than it is itself.
func (p *planner) dear(t *Tensor, kernels int) bool {
	bytes, costly, seen := 0, false, map[*Tensor]bool{}
	var visit func(t *Tensor, depth int)
	visit = func(t *Tensor, depth int) {
		if seen[t] || costly {
			return
		}
		seen[t] = true
		if _, ok := p.place(t); ok {
			bytes += count(t.shape) * size(t.typ)
			return
		}
		switch o := t.op.(type) {
		case *viewOp:
			if o.expand { // each element is read from the caches after the first time
				visit(t.args[0], depth)
				return
			}
		case *mapOp:
			for op := range o.e.Operations() {
				costly = costly || function(op)
			}
			costly = costly || o.e.Indexed() && depth > 0
		case *reduceOp:
			costly = true
		default: // will be stored
			bytes += count(t.shape) * size(t.typ)
			return
		}
		if depth > 16 {
			costly = true
		}
		for _, a := range t.sources() {
			visit(a, depth+1)
		}
	}
	visit(t, 0)
	own := count(t.shape) * size(t.typ)
	return costly || kernels*bytes > bytes+own*(1+kernels)
}
