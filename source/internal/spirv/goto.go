package spirv

// goto, where its label stands in the same list of statements or in one around it. SPIR-V has structured control flow
// only: a variable of the function holds the number of the label that is being jumped to, 0 for none. A goto
// sets it; statements up to the label are skipped while it is set; a loop is left. Where a goto leads
// back, everything from the label to the last such goto is a loop. A break or continue that leaves this loop
// for one around it is such a number, too.

import (
	"slices"

	"github.com/concord-compute/concord/source/internal/spirv/module"
	"github.com/concord-compute/concord/source/internal/tree"
)

// The numbers of jumps that have no label.
const (
	breakNumber = iota + 1
	continueNumber
	firstLabel
)

// gotos is what is known of a function's labels; nil if it has no goto.
type gotos struct {
	going   id             // the variable
	number  map[string]int // of each label
	visible map[string]int // how many lists around the statement that is being written have the label
	leaving map[*tree.Stmt][]string
	nested  int // loops that gotos make, around the statement
}

// maxGotoLoops is how deep loops that gotos make may be nested.
const maxGotoLoops = 100

// findGotos prepares the variable for a function that has a goto.
func (f *function) findGotos() {
	if !hasGoto(f.decl.Body) {
		return
	}
	f.gotos = &gotos{number: map[string]int{}, visible: map[string]int{}, leaving: map[*tree.Stmt][]string{}}
	f.gotos.going = f.f.Variable(f.b.Int(32))
	f.f.Store(f.gotos.going, f.uint(0))
}

func hasGoto(s *tree.Stmt) bool {
	for ; s != nil; s = s.Alt {
		if s.Kind == tree.StGoto || hasGoto(s.Body) || slices.ContainsFunc(s.List, hasGoto) {
			return true
		}
	}
	return false
}

// labelNumber returns the number of a label.
func (g *gotos) labelNumber(label string) int {
	n, ok := g.number[label]
	if !ok {
		n = firstLabel + len(g.number)
		g.number[label] = n
	}
	return n
}

// leaves returns the labels outside of s that a goto in it names, each once.
func (g *gotos) leaves(s *tree.Stmt) []string {
	if s == nil || g == nil {
		return nil
	}
	known, ok := g.leaving[s]
	if ok {
		return known
	}
	skip := map[string]bool{} // those inside, and those that are known
	var all []string
	for k := s; k != nil; k = k.Alt {
		if k.Kind == tree.StGoto {
			all = append(all, k.Text)
		}
		all = append(all, g.leaves(k.Body)...)
		for _, one := range k.List {
			all = append(all, g.leaves(one)...)
		}
		for _, l := range append(labelsOf(k.List), labelsOf([]*tree.Stmt{k, k.Body})...) {
			skip[l] = true
		}
	}
	for _, l := range all {
		if !skip[l] {
			skip[l] = true
			known = append(known, l)
		}
	}
	g.leaving[s] = known
	return known
}

// labelsOf returns the labels in a list of statements, but not those in lists inside of them.
func labelsOf(list []*tree.Stmt) (names []string) {
	for _, s := range list {
		for s != nil && (s.Kind == tree.StLabel || s.Kind == tree.StCase || s.Kind == tree.StDefault) {
			if s.Kind == tree.StLabel {
				names = append(names, s.Text)
			}
			s = s.Body
		}
	}
	return names
}

// item is a label or a statement of a list.
type item struct {
	label string
	s     *tree.Stmt
}

// list writes a list of statements.
func (f *function) list(stmts []*tree.Stmt) {
	if f.gotos == nil {
		for _, s := range stmts {
			f.stmt(s)
		}
		return
	}
	var items []item
	for _, s := range stmts {
		for s.Kind == tree.StLabel {
			items = append(items, item{label: s.Text})
			s = s.Body
		}
		items = append(items, item{s: s})
	}
	f.items(items)
}

// items writes labels and statements.
func (f *function) items(items []item) {
	g := f.gotos
	pending := map[string]bool{} // labels that a goto may be on its way to
	var skipped id               // the end of the selection that skips statements, if one is open
	resume := func() {
		if skipped != 0 {
			f.f.Merge(skipped)
			skipped = 0
		}
	}
	guard := func() {
		resume()
		if len(pending) > 0 && f.f.Open() {
			rest := f.b.NewID()
			skipped = f.b.NewID()
			f.f.BranchTo(skipped, f.goes(0), rest, skipped)
			f.f.Label(rest)
		}
	}
	last := map[string]int{} // of each label, the last statement with a goto to it
	for i, it := range items {
		g.visible[it.label]++
		for _, l := range g.leaves(it.s) {
			last[l] = i
		}
	}
	for i := 0; i < len(items); i++ {
		f.Step()
		if items[i].s != nil {
			f.stmt(items[i].s)
			if leaves := g.leaves(items[i].s); len(leaves) > 0 {
				for _, l := range leaves {
					pending[l] = true
				}
				guard()
			}
			continue
		}
		resume()
		label := items[i].label
		if pending[label] {
			f.branch(f.goes(g.labelNumber(label)), func() { f.f.Store(g.going, f.uint(0)) }, nil)
			delete(pending, label)
		}
		if end := f.loopEnd(items, i, last); end > i {
			f.again(label, items[i+1:end+1], pending)
			for _, it := range items[i+1 : end+1] {
				for _, l := range g.leaves(it.s) {
					pending[l] = true
				}
			}
			delete(pending, label)
			i = end
		}
		guard()
	}
	resume()
	for _, it := range items {
		g.visible[it.label]--
	}
}

// loopEnd returns the index of the last statement with a goto that leads back to the label at i, or to one between
// that statement and i.
func (f *function) loopEnd(items []item, i int, last map[string]int) int {
	end := max(i, last[items[i].label])
	for k := i + 1; k < end; k++ { // gotos back to these have to be in the loop, too
		if items[k].s == nil {
			end = max(end, last[items[k].label])
		}
	}
	return end
}

// goes returns the condition that the function is on its way to the label of a number.
func (f *function) goes(number int) id {
	return f.test(module.OpIEqual, f.f.Load(f.b.Int(32), f.gotos.going), f.uint(number))
}

// again writes the statements from a label to the last goto that leads back to it, as a loop. pending are the labels
// that a goto in front of it may be on its way to.
func (f *function) again(label string, items []item, pending map[string]bool) {
	if !f.f.Open() {
		return
	}
	for _, it := range items {
		if pending[it.label] {
			f.refuse(f.pos, "goto", "a goto into the loop that the label '%s' begins cannot be expressed in SPIR-V", label)
			return
		}
	}
	if f.gotos.nested++; f.gotos.nested > maxGotoLoops {
		f.refuse(f.pos, "goto", "loops of goto are nested deeper than %d", maxGotoLoops)
		return
	}
	defer func() { f.gotos.nested-- }()
	write := func() {
		head, body, next, end := f.b.NewID(), f.b.NewID(), f.b.NewID(), f.b.NewID()
		f.f.Label(head)
		f.f.Loop(end, next, body, 0)
		f.f.Label(body)
		f.f.Store(f.gotos.going, f.uint(0))
		f.jumps = append(f.jumps, jump{end: end, isGoto: true, left: map[int]bool{}})
		f.items(items)
		left := f.jumps[len(f.jumps)-1].left
		f.jumps = f.jumps[:len(f.jumps)-1]
		f.f.Label(next)
		f.f.BranchIf(f.goes(f.gotos.labelNumber(label)), head, end)
		f.f.Merge(end)
		for _, n := range []int{breakNumber, continueNumber} {
			if left[n] && f.f.Open() {
				f.branch(f.goes(n), func() {
					f.f.Store(f.gotos.going, f.uint(0))
					f.leave(n)
				}, nil)
			}
		}
	}
	if len(pending) > 0 {
		f.branch(f.goes(0), write, nil)
		return
	}
	write()
}

// leave writes a break or continue.
func (f *function) leave(number int) {
	for i := len(f.jumps) - 1; i >= 0; i-- {
		j := f.jumps[i]
		switch {
		case j.isGoto:
			j.left[number] = true
			f.f.Store(f.gotos.going, f.uint(number))
			f.f.Branch(j.end)
		case number == breakNumber:
			f.f.Branch(j.end)
		case j.next != 0:
			f.f.Branch(j.next)
		default:
			continue
		}
		return
	}
}

// gotoStmt writes a goto, or refuses one whose label is elsewhere.
func (f *function) gotoStmt(s *tree.Stmt) {
	if f.inExpression > 0 || f.gotos == nil || f.gotos.visible[s.Text] == 0 {
		f.refuse(s.Pos, "goto", "a goto to a label in another block cannot be expressed in SPIR-V")
		return
	}
	f.f.Store(f.gotos.going, f.uint(f.gotos.labelNumber(s.Text)))
}

// leaveIfGoing leaves a loop or a switch, whose body has been written, if a goto leads out of it.
func (f *function) leaveIfGoing(body *tree.Stmt, end id) {
	if len(f.gotos.leaves(body)) > 0 && f.f.Open() {
		stay, out := f.b.NewID(), f.b.NewID()
		f.f.BranchTo(stay, f.goes(0), stay, out)
		f.f.Label(out)
		f.f.Branch(end)
		f.f.Label(stay)
	}
}
