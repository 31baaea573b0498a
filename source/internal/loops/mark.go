package loops

// Marking the statements that a plan executes once for the group.

import "github.com/concord-compute/concord/source/internal/tree"

// mark finds the statements that must be executed once for the group: barriers and the statements
// around them, and the assignments of the variables on which these depend, with everything that
// those depend on.
func (f *Plan) mark() {
	f.delay()
	for _, at := range f.barriers {
		f.take(at)
	}
	for _, j := range f.jumps {
		if j.at.s.Kind == tree.StReturn && j.at.late {
			f.take(j.at)
		}
	}
	for len(f.taken)+len(f.sharing) > 0 {
		if n := len(f.taken) - 1; n >= 0 {
			at := f.taken[n]
			f.taken = f.taken[:n]
			f.join(at)
			continue
		}
		n := len(f.sharing) - 1
		sym := f.sharing[n]
		f.sharing = f.sharing[:n]
		for _, w := range f.Writes[sym] { // its assignments are executed once
			f.take(w.at)
			f.share(w.value)
		}
	}
}

// take marks a place and all statements around it as statements of the group.
func (f *Plan) take(at *place) {
	for ; at != nil && !f.group[at.s]; at = at.up {
		f.group[at.s] = true
		f.taken = append(f.taken, at)
	}
}

// join marks everything that has to be executed once because a statement is.
func (f *Plan) join(at *place) {
	s := at.s
	if s.Kind != tree.StExpr || !isBarrier(s.E) {
		f.share(s.E)
	}
	if s.Kind == tree.StFor {
		f.share(s.Post)
		if s.Init != nil {
			f.group[s.Init] = true
			f.share(s.Init.E)
			for _, sym := range s.Init.Syms {
				f.shareVariable(sym)
			}
		}
	}
	for _, j := range f.leaving[s] {
		f.take(j.at)
	}
	switch s.Kind {
	case tree.StFor, tree.StWhile, tree.StDo:
		f.sweep(at)
	}
}

// share marks the variables that e mentions as variables of the group.
func (f *Plan) share(e *tree.Expr) {
	tree.WalkExpr(e, func(x *tree.Expr) {
		f.Step()
		if x.Op == tree.OpSym && tree.RootVariable(x) != nil {
			f.shareVariable(x.Sym)
		}
	})
}

func (f *Plan) shareVariable(sym *tree.Symbol) {
	if !f.Shared[sym] {
		f.Shared[sym] = true
		f.sharing = append(f.sharing, sym)
	}
}

// sweep marks the returns in a loop that is executed once for the group.
func (f *Plan) sweep(loop *place) {
	for list := []*place{loop}; len(list) > 0; {
		p := list[len(list)-1]
		list = list[:len(list)-1]
		if p.swept {
			continue
		}
		f.Step()
		p.swept = true
		list = append(list, p.inner...)
		if p.jump != nil && p.s.Kind == tree.StReturn {
			f.take(p)
		}
	}
}

// delay finds the places after which, in any enclosing block, there is something that all items do
// together.
func (f *Plan) delay() {
	last := map[*tree.Stmt]int{} // the last statement of a block that waits
	for _, p := range f.places {
		if p.up != nil && p.up.s.Kind == tree.StBlock && f.waits[p.s] {
			last[p.up.s] = p.index
		}
	}
	for _, p := range f.places {
		if p.up != nil {
			p.late = p.up.late || p.up.s.Kind == tree.StBlock && p.index < last[p.up.s]
		}
	}
}
