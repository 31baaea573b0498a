package source

// What a plan does once for the group.

// mark finds what must be done once for the group: barriers and what is around
// them, the variables that decide about these, their assignments and what decides
// about those.
func (f *fission) mark() {
	f.delay()
	for _, at := range f.barriers {
		f.take(at)
	}
	for _, j := range f.jumps {
		if j.at.s.kind == stReturn && j.at.late {
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
		for _, w := range f.writes[sym] { // its assignments are done once
			f.take(w.at)
			f.share(w.value)
		}
	}
}

// take makes the statements on the way to a place statements of the group.
func (f *fission) take(at *place) {
	for ; at != nil && !f.group[at.s]; at = at.up {
		f.group[at.s] = true
		f.taken = append(f.taken, at)
	}
}

// join finds what has to be done once because a statement is.
func (f *fission) join(at *place) {
	s := at.s
	if s.kind != stExpr || !isBarrier(s.e) {
		f.share(s.e)
	}
	if s.kind == stFor {
		f.share(s.post)
		if s.init != nil {
			f.group[s.init] = true
			f.share(s.init.e)
			for _, sym := range s.init.syms {
				f.shareVariable(sym)
			}
		}
	}
	for _, j := range f.leaving[s] {
		f.take(j.at)
	}
	switch s.kind {
	case stFor, stWhile, stDo:
		f.sweep(at)
	}
}

// share makes the variables that e mentions variables of the group.
func (f *fission) share(e *expr) {
	walkExpr(e, func(x *expr) {
		f.Step()
		if x.op == opSym && rootVariable(x) != nil {
			f.shareVariable(x.sym)
		}
	})
}

func (f *fission) shareVariable(sym *symbol) {
	if !f.shared[sym] {
		f.shared[sym] = true
		f.sharing = append(f.sharing, sym)
	}
}

// sweep takes the returns in a loop that the items go through together.
func (f *fission) sweep(loop *place) {
	for list := []*place{loop}; len(list) > 0; {
		p := list[len(list)-1]
		list = list[:len(list)-1]
		if p.swept {
			continue
		}
		f.Step()
		p.swept = true
		list = append(list, p.inner...)
		if p.jump != nil && p.s.kind == stReturn {
			f.take(p)
		}
	}
}

// delay finds the places with something behind them that all items do together, in
// whatever block around.
func (f *fission) delay() {
	last := map[*stmt]int{} // the last statement of a block that waits
	for _, p := range f.places {
		if p.up != nil && p.up.s.kind == stBlock && f.waits[p.s] {
			last[p.up.s] = p.index
		}
	}
	for _, p := range f.places {
		if p.up != nil {
			p.late = p.up.late || p.up.s.kind == stBlock && p.index < last[p.up.s]
		}
	}
}
