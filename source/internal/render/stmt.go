package render

// Statements in C++.

import (
	"strings"

	"github.com/concord-compute/concord/source/internal/loops"
	"github.com/concord-compute/concord/source/internal/tree"
)

// stmt writes one statement on the line of its position.
func (r *renderer) stmt(s *tree.Stmt) {
	if s == nil {
		return
	}
	r.at(s.Pos)
	switch s.Kind {
	case tree.StEmpty:
		r.w(";")
	case tree.StExpr:
		r.w(s.E, ";")
	case tree.StDecl:
		for i, sym := range s.Syms {
			if i > 0 {
				r.w(" ")
			}
			r.variable(sym)
		}
	case tree.StBlock:
		r.body(s)
	case tree.StIf:
		r.ifStmt(s)
	case tree.StWhile:
		r.unroll(s)
		r.w("while (", truth{s.E}, ") ")
		r.body(s.Body)
	case tree.StDo:
		r.unroll(s)
		r.w("do ")
		r.body(s.Body)
		r.w(" while (", truth{s.E}, ");")
	case tree.StFor:
		r.forStmt(s)
	case tree.StSwitch:
		r.w("switch (", s.E, ") ")
		r.body(s.Body)
	default:
		r.jumpStmt(s)
	}
}

func (r *renderer) jumpStmt(s *tree.Stmt) {
	switch s.Kind {
	case tree.StCase:
		r.cases(s)
		r.labelled(s.Body)
	case tree.StDefault:
		r.w("default: ")
		r.labelled(s.Body)
	case tree.StLabel, tree.StGoto:
		if r.d.msl {
			r.refuse(s.Pos, "goto", "Metal has no goto and no labels")
		}
		if s.Kind == tree.StGoto {
			r.w("goto u_", s.Text, ";")
			return
		}
		r.w("u_", s.Text, ": ")
		r.labelled(s.Body)
	case tree.StBreak:
		r.w("break;")
	case tree.StContinue:
		r.w("continue;")
	case tree.StReturn:
		if r.returns {
			r.w("return void(cc_left = true);")
			return
		}
		r.w("return")
		if s.E != nil {
			r.w(" ", s.E)
		}
		r.w(";")
	}
}

// cases writes the label of a case, which may stand for a range of values.
func (r *renderer) cases(s *tree.Stmt) {
	const most = 4096 // the most labels in a row, if ranges have to be written as single labels
	r.w("case ", s.Val)
	switch {
	case !s.Last.OK || s.Last == s.Val:
	case r.d.gnu:
		r.w(" ... ", s.Last)
	case s.Last.Bits-s.Val.Bits > most:
		r.refuse(s.Pos, "case", "a range of more than %d values cannot be rendered for this target", most)
	default:
		for c := s.Val; c != s.Last; {
			c.Bits++
			r.w(": case ", c)
		}
	}
	r.w(": ")
}

// unroll writes a #pragma unroll, without or with a number, for compilers that support it.
func (r *renderer) unroll(s *tree.Stmt) {
	if count, ok := strings.CutPrefix(s.Unroll, "unroll"); ok && r.d.gpu && strings.Trim(count, " ()0123456789") == "" {
		r.w("_Pragma(\"", s.Unroll, "\") ")
	}
}

// labelled writes the statement after a label; C++ requires one there.
func (r *renderer) labelled(s *tree.Stmt) {
	if s.Kind == tree.StDecl {
		r.w(";")
	}
	r.stmt(s)
}

// body writes a statement in braces, so that every else stays with its if.
func (r *renderer) body(s *tree.Stmt) {
	r.w("{")
	if ps, ok := r.planned(s); ok {
		r.pieces(ps)
	} else if s.Kind == tree.StBlock {
		for _, k := range s.List {
			r.stmt(k)
		}
	} else {
		r.stmt(s)
	}
	r.w(" }")
}

// ifStmt writes a chain of else if without recursion, and without nested braces, which would be too
// deep for C++ compilers in long chains.
func (r *renderer) ifStmt(s *tree.Stmt) {
	for {
		r.w("if (")
		r.guardCond(s)
		r.w(") ")
		r.body(s.Body)
		if s.Alt == nil {
			return
		}
		r.w(" else ")
		if _, ok := r.planned(s.Alt); ok || s.Alt.Kind != tree.StIf {
			r.body(s.Alt)
			return
		}
		s = s.Alt
		r.at(s.Pos)
	}
}

// forStmt writes a for loop. Declarations move in front of the loop if there are several, or if
// jumps may bypass an initializer.
func (r *renderer) forStmt(s *tree.Stmt) {
	outside := s.Init != nil && s.Init.Kind == tree.StDecl &&
		(r.fn.Split || len(s.Init.Syms) != 1 || r.needsAssign(s.Init.Syms[0].Init))
	if outside {
		r.w("{ ")
		for _, sym := range s.Init.Syms {
			r.variable(sym)
			r.w(" ")
		}
	}
	r.unroll(s)
	r.w("for (")
	switch {
	case s.Init == nil || outside:
		r.w(";")
	case s.Init.Kind == tree.StDecl:
		r.variable(s.Init.Syms[0])
	default:
		r.w(s.Init.E, ";")
	}
	if s.E != nil {
		r.w(" ", truth{s.E})
	}
	r.w("; ")
	if s.Post != nil {
		r.expr(s.Post)
	}
	r.w(") ")
	r.body(s.Body)
	if outside {
		r.w(" }")
	}
}

// guardCond writes the condition of an if. It is a constant if the bounds of the loop over the
// items already ensure it.
func (r *renderer) guardCond(s *tree.Stmt) {
	switch {
	case r.plan == nil || !r.plan.Needless[s]:
		r.cond(s.E)
	case loops.IsReturn(s.Body):
		r.w("!CC_SMALL && (", truth{s.E}, ")")
	default:
		r.w("CC_SMALL || (", truth{s.E}, ")")
	}
}
