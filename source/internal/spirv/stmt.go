package spirv

import (
	"strings"

	"github.com/concord-compute/concord/source/internal/spirv/module"
	"github.com/concord-compute/concord/source/internal/tree"
)

// stmt writes one statement. What follows a jump in a block is never executed, and dropped.
func (f *function) stmt(s *tree.Stmt) {
	if s == nil || !f.f.Open() {
		return
	}
	f.Step()
	f.line(s.Pos)
	defer f.release(len(f.temporaries))
	switch s.Kind {
	case tree.StExpr:
		f.effect(s.E)
	case tree.StDecl:
		f.declare(s.Syms)
	case tree.StBlock:
		f.list(s.List)
	case tree.StIf:
		f.ifStmt(s)
	case tree.StWhile:
		f.loop(s, nil, s.E, nil)
	case tree.StFor:
		f.loop(s, s.Init, s.E, s.Post)
	case tree.StDo:
		f.doStmt(s)
	case tree.StSwitch:
		f.switchStmt(s)
	case tree.StGoto:
		f.gotoStmt(s)
	case tree.StCase, tree.StDefault: // which switchStmt has refused
	case tree.StLabel:
		if f.gotos != nil {
			f.list([]*tree.Stmt{s})
		} else {
			f.stmt(s.Body)
		}
	case tree.StBreak:
		f.leave(breakNumber)
	case tree.StContinue:
		f.leave(continueNumber)
	case tree.StReturn:
		f.giveBack(s.E)
	}
}

// effect writes an expression whose value is not used. A volatile object is still read.
func (f *function) effect(e *tree.Expr) {
	if in := tree.Unparen(e); in.LValue && in.Type.Q&tree.QVolatile == 0 && !in.Acts {
		return
	}
	f.expr(e)
}

// declare writes the initializers of variables.
func (f *function) declare(syms []*tree.Symbol) {
	for _, s := range syms {
		if s.Init != nil {
			f.initialize(f.placeOf(s, f.variable(s)), s.Init)
		}
	}
}

// ifStmt writes a chain of else if without recursion.
func (f *function) ifStmt(s *tree.Stmt) {
	var ends []id
	for s != nil {
		if s.Kind != tree.StIf {
			f.stmt(s)
			break
		}
		f.Step()
		f.line(s.Pos)
		if c := tree.Fold(s.E); c.OK { // the other part is not written
			if !c.IsZero() {
				f.stmt(s.Body)
				break
			}
			s = s.Alt
			continue
		}
		if len(ends) > maxChain {
			f.refuse(s.Pos, "limit", "a chain of more than %d else if cannot be expressed in SPIR-V", maxChain)
			break
		}
		yes, no, end := f.b.NewID(), f.b.NewID(), f.b.NewID()
		if s.Alt == nil {
			no = end
		}
		c := f.cond(s.E)
		f.f.BranchTo(end, c, yes, no)
		f.f.Label(yes)
		f.stmt(s.Body)
		f.f.Branch(end)
		ends = append(ends, end)
		if s = s.Alt; s != nil {
			f.f.Label(no)
		}
	}
	for i := len(ends) - 1; i >= 0; i-- {
		f.f.Merge(ends[i])
	}
}

// loop writes while and for.
func (f *function) loop(s, first *tree.Stmt, cond, post *tree.Expr) {
	f.stmt(first)
	head, test, body, next, end := f.b.NewID(), f.b.NewID(), f.b.NewID(), f.b.NewID(), f.b.NewID()
	f.f.Label(head)
	f.f.Loop(end, next, test, unroll(s))
	f.f.Label(test)
	if cond != nil {
		f.line(s.Pos)
		f.f.BranchIf(f.cond(cond), body, end)
		f.f.Label(body)
	}
	f.jumps = append(f.jumps, jump{end: end, next: next})
	f.stmt(s.Body)
	f.jumps = f.jumps[:len(f.jumps)-1]
	f.leaveIfGoing(s.Body, end)
	f.f.Label(next)
	if post != nil {
		f.line(s.Pos)
		f.expr(post)
	}
	f.f.Branch(head)
	f.f.Merge(end)
}

// unroll returns the loop control for a #pragma unroll.
func unroll(s *tree.Stmt) uint32 {
	if strings.HasPrefix(s.Unroll, "unroll") && !strings.HasSuffix(strings.TrimRight(s.Unroll, " )"), "1") {
		return module.LoopUnroll
	}
	return 0
}

// doStmt writes do ... while.
func (f *function) doStmt(s *tree.Stmt) {
	head, body, next, end := f.b.NewID(), f.b.NewID(), f.b.NewID(), f.b.NewID()
	f.f.Label(head)
	f.f.Loop(end, next, body, unroll(s))
	f.f.Label(body)
	f.jumps = append(f.jumps, jump{end: end, next: next})
	f.stmt(s.Body)
	f.jumps = f.jumps[:len(f.jumps)-1]
	f.leaveIfGoing(s.Body, end)
	f.f.Label(next)
	f.line(s.Pos)
	f.f.BranchIf(f.cond(s.E), head, end)
	f.f.Merge(end)
}

// section is the part of a switch from one label to the next.
type section struct {
	labels []*tree.Stmt // as many as stand in a row
	list   []*tree.Stmt
}

// sections splits the body of a switch at its labels. What stands before the first one is never executed.
func sections(body *tree.Stmt) (list []section) {
	for _, s := range statements(body) {
		if s.Kind == tree.StCase || s.Kind == tree.StDefault {
			var now section
			for s.Kind == tree.StCase || s.Kind == tree.StDefault {
				now.labels = append(now.labels, s)
				s = s.Body
			}
			list = append(list, now)
		}
		if n := len(list); n > 0 {
			list[n-1].list = append(list[n-1].list, s)
		}
	}
	return list
}

// statements returns the statements of a block, or the only one.
func statements(body *tree.Stmt) []*tree.Stmt {
	if body.Kind == tree.StBlock {
		return body.List
	}
	return []*tree.Stmt{body}
}

// refuseCases refuses labels of a switch that are in other statements, of which s is one of its body.
func (f *function) refuseCases(s *tree.Stmt) {
	for s != nil && (s.Kind == tree.StCase || s.Kind == tree.StDefault) {
		s = s.Body
	}
	f.findCases(s)
}

func (f *function) findCases(s *tree.Stmt) {
	for ; s != nil && s.Kind != tree.StSwitch; s = s.Alt {
		if s.Kind == tree.StCase || s.Kind == tree.StDefault {
			f.refuse(s.Pos, "case", "a label of a switch inside of another statement cannot be expressed in SPIR-V")
		}
		f.findCases(s.Body)
		for _, k := range s.List {
			f.findCases(k)
		}
	}
}

// maxSections is the largest number of labels of a switch, and maxChain that of nested selections, that SPIR-V's
// readers have to accept.
const (
	maxSections = 16383
	maxChain    = 700
)

// switchStmt writes a switch. It first computes the number of the section to begin with, so that ranges, values of 64
// bits and a default anywhere are all the same; sections fall through to the next one only, which SPIR-V allows.
func (f *function) switchStmt(s *tree.Stmt) {
	v := f.expr(s.E)
	parts := sections(s.Body)
	if len(parts) > maxSections {
		f.refuse(s.Pos, "switch", "the switch has more than %d labels", maxSections)
		return
	}
	for _, s := range statements(s.Body) {
		f.refuseCases(s)
	}
	end := f.b.NewID()
	otherwise, number := end, f.uint(len(parts))
	var values []uint32
	var targets []id
	for i, part := range parts {
		target := f.b.NewID()
		for _, l := range part.labels {
			if l.Kind == tree.StDefault {
				otherwise = target
				continue
			}
			number = f.choose(tree.UInt, f.matches(v, l), f.uint(i), number)
		}
		values, targets = append(values, uint32(i)), append(targets, target)
	}
	f.f.Switch(end, number, otherwise, values, targets)
	f.jumps = append(f.jumps, jump{end: end})
	for i, part := range parts {
		f.f.Label(targets[i])
		f.list(part.list)
		if f.gotos != nil {
			f.leaveIfGoing(&tree.Stmt{Kind: tree.StBlock, List: part.list}, end)
		}
	}
	f.f.Branch(end)
	f.jumps = f.jumps[:len(f.jumps)-1]
	f.f.Merge(end)
}

// matches returns the condition that the operand of a switch has a label's value.
func (f *function) matches(v value, label *tree.Stmt) id {
	k := v.t.Base
	if label.Last == label.Val {
		return f.compare("==", k, v.one(), f.constantOf(label.Val))
	}
	low := f.compare(">=", k, v.one(), f.constantOf(label.Val))
	return f.test(module.OpLogicalAnd, low, f.compare("<=", k, v.one(), f.constantOf(label.Last)))
}
