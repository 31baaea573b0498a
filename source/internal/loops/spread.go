package loops

// Divergence analysis: how differences between items spread. If a variable may differ between
// items, variables that are computed from it may differ, too. If a condition may differ, the items
// diverge, and variables that are assigned on one branch only may differ after it. If some items
// may leave a loop earlier than others, they diverge in the loop. Each variable and statement is
// examined again only when something that it depends on changes, which happens once, so the work is
// linear in the text.

import "github.com/concord-compute/concord/source/internal/tree"

// dependent is to be examined again when a variable is found to differ: another variable that is
// assigned from it, or a statement whose condition depends on it.
type dependent struct {
	sym *tree.Symbol
	at  *place
}

// spreading is the state of spread: the variables that may differ, and their dependents.
type spreading struct {
	*flow
	dependents map[*tree.Symbol][]dependent
	changed    []*tree.Symbol // may differ between items; their dependents are still to be visited
}

// spread computes varies, and the places that only some items reach.
func (w *flow) spread() {
	s := &spreading{flow: w, dependents: map[*tree.Symbol][]dependent{}}
	for sym, differs := range w.varies {
		if differs {
			s.changed = append(s.changed, sym)
		}
	}
	for _, sym := range w.order {
		for _, a := range w.Writes[sym] {
			if !s.depend(a.value, dependent{sym: sym}) {
				s.vary(sym)
			}
		}
	}
	for _, p := range w.places {
		switch p.s.Kind {
		case tree.StSwitch:
			s.part(p)
		case tree.StIf, tree.StFor, tree.StWhile, tree.StDo:
			if !s.depend(p.s.E, dependent{at: p}) {
				s.part(p)
			}
		}
	}
	for len(s.changed) > 0 {
		sym := s.changed[len(s.changed)-1]
		s.changed = s.changed[:len(s.changed)-1]
		for _, d := range s.dependents[sym] {
			s.Step()
			if d.at != nil {
				s.part(d.at)
			} else {
				s.vary(d.sym)
			}
		}
	}
}

// depend enters d as a dependent of all variables that e depends on. It returns false if e may
// differ regardless of them.
func (s *spreading) depend(e *tree.Expr, d dependent) bool {
	var mentions []*tree.Symbol
	if !s.depends(e, func(sym *tree.Symbol) bool {
		mentions = append(mentions, sym)
		return !s.varies[sym]
	}) {
		return false
	}
	for _, sym := range mentions {
		s.dependents[sym] = append(s.dependents[sym], d)
	}
	return true
}

// vary marks a variable as one that may differ between items.
func (s *spreading) vary(sym *tree.Symbol) {
	if !s.varies[sym] {
		s.varies[sym] = true
		s.changed = append(s.changed, sym)
	}
}

// part marks a statement, and all statements in it, as one whose end only some items may reach.
func (s *spreading) part(at *place) {
	if at.split {
		return
	}
	for list := []*place{at}; len(list) > 0; {
		p := list[len(list)-1]
		list = list[:len(list)-1]
		if p.split {
			continue
		}
		s.Step()
		p.split = true
		list = append(list, p.inner...)
		for _, sym := range p.writes {
			s.vary(sym)
		}
		if p.jump != nil {
			list = append(list, s.leave(p.jump)...)
		}
	}
}

// leave returns the loops that only some items leave by a jump: for a return, all loops around it.
func (s *spreading) leave(j *jump) []*place {
	var loops []*place
	for p := j.at; p != nil; p = p.up {
		switch p.s.Kind {
		case tree.StFor, tree.StWhile, tree.StDo:
			if j.target == nil || j.target == p.s {
				loops = append(loops, p)
			}
		}
		if p.left || p.s == j.target {
			break
		}
		p.left = j.target == nil
	}
	return loops
}
