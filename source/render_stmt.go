package source

// Statements in C++.

import "strings"

// stmt writes one statement on the line it comes from.
func (r *renderer) stmt(s *stmt) {
	if s == nil {
		return
	}
	r.at(s.pos)
	switch s.kind {
	case stEmpty:
		r.w(";")
	case stExpr:
		r.expr(s.e)
		r.w(";")
	case stDecl:
		for i, sym := range s.syms {
			if i > 0 {
				r.w(" ")
			}
			r.variable(sym)
		}
	case stBlock:
		r.body(s)
	case stIf:
		r.ifStmt(s)
	case stWhile:
		r.unroll(s)
		r.w("while (")
		r.cond(s.e)
		r.w(") ")
		r.body(s.body)
	case stDo:
		r.unroll(s)
		r.w("do ")
		r.body(s.body)
		r.w(" while (")
		r.cond(s.e)
		r.w(");")
	case stFor:
		r.forStmt(s)
	case stSwitch:
		r.w("switch (")
		r.expr(s.e)
		r.w(") ")
		r.body(s.body)
	default:
		r.jumpStmt(s)
	}
}

func (r *renderer) jumpStmt(s *stmt) {
	switch s.kind {
	case stCase:
		r.cases(s)
		r.labelled(s.body)
	case stDefault:
		r.w("default: ")
		r.labelled(s.body)
	case stLabel, stGoto:
		if r.d.msl {
			r.refuse(s.pos, "goto", "Metal has no goto and no labels")
		}
		if s.kind == stGoto {
			r.w("goto u_", s.text, ";")
			return
		}
		r.w("u_", s.text, ": ")
		r.labelled(s.body)
	case stBreak:
		r.w("break;")
	case stContinue:
		r.w("continue;")
	case stReturn:
		if r.returns {
			r.w("return void(cc_left = true);")
			return
		}
		r.w("return")
		if s.e != nil {
			r.w(" ")
			r.expr(s.e)
		}
		r.w(";")
	}
}

// cases writes the label of a case, which may stand for a range of values.
func (r *renderer) cases(s *stmt) {
	const most = 4096 // labels in a row, where ranges have to be written out
	value := func(c constant) {
		r.literal(&expr{op: opLit, typ: caseType(s), val: c})
	}
	r.w("case ")
	value(s.val)
	switch {
	case !s.last.ok || s.last == s.val:
	case r.d.gnu:
		r.w(" ... ")
		value(s.last)
	case uint64(s.last.i-s.val.i) > most:
		r.refuse(s.pos, "case", "a range of more than %d values cannot be rendered for this target", most)
	default:
		for c := s.val; c.i < s.last.i; {
			c.i++
			r.w(": case ")
			value(c)
		}
	}
	r.w(": ")
}

// unroll passes a #pragma unroll on to the compilers that it is for: alone or with
// a number.
func (r *renderer) unroll(s *stmt) {
	if count, ok := strings.CutPrefix(s.unroll, "unroll"); ok && r.d.gpu && strings.Trim(count, " ()0123456789") == "" {
		r.w("_Pragma(\"", s.unroll, "\") ")
	}
}

// caseType is the type of a case label: that of the switch.
func caseType(s *stmt) *ctype {
	if s.e != nil {
		return s.e.typ
	}
	return intType
}

// labelled writes what a label stands before: C++ wants a statement there.
func (r *renderer) labelled(s *stmt) {
	if s.kind == stDecl {
		r.w(";")
	}
	r.stmt(s)
}

// body writes a statement in braces, which keep every else with its if.
func (r *renderer) body(s *stmt) {
	r.w("{")
	if ps, ok := r.planned(s); ok {
		r.pieces(ps)
	} else if s.kind == stBlock {
		for _, k := range s.list {
			r.stmt(k)
		}
	} else {
		r.stmt(s)
	}
	r.w(" }")
}

// ifStmt writes a chain of else if without recursion, which keeps long chains
// shallow for the C++ compiler's readers too.
func (r *renderer) ifStmt(s *stmt) {
	for {
		r.w("if (")
		r.guardCond(s)
		r.w(") ")
		r.body(s.body)
		if s.alt == nil {
			return
		}
		r.w(" else ")
		if _, ok := r.planned(s.alt); ok || s.alt.kind != stIf {
			r.body(s.alt)
			return
		}
		s = s.alt
		r.at(s.pos)
	}
}

// forStmt writes a loop. Several variables, and any where jumps may pass an
// initializer, move in front of it.
func (r *renderer) forStmt(s *stmt) {
	outside := s.init != nil && s.init.kind == stDecl &&
		(r.fn.split || len(s.init.syms) != 1 || r.needsAssign(s.init.syms[0].init))
	if outside {
		r.w("{ ")
		for _, sym := range s.init.syms {
			r.variable(sym)
			r.w(" ")
		}
	}
	r.unroll(s)
	r.w("for (")
	switch {
	case s.init == nil || outside:
		r.w(";")
	case s.init.kind == stDecl:
		r.variable(s.init.syms[0])
	default:
		r.expr(s.init.e)
		r.w(";")
	}
	if s.e != nil {
		r.w(" ")
		r.cond(s.e)
	}
	r.w("; ")
	if s.post != nil {
		r.expr(s.post)
	}
	r.w(") ")
	r.body(s.body)
	if outside {
		r.w(" }")
	}
}

// guardCond writes the condition of an if: a constant where the loop over the items
// has taken care of it.
func (r *renderer) guardCond(s *stmt) {
	switch {
	case r.plan == nil || !r.plan.needless[s]:
		r.cond(s.e)
	case isReturn(s.body):
		r.w("!CC_SMALL && (")
		r.cond(s.e)
		r.w(")")
	default:
		r.w("CC_SMALL || (")
		r.cond(s.e)
		r.w(")")
	}
}
