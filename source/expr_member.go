package source

// Members, indices, vector components and vector literals.

import (
	"strings"

	"github.com/concord-compute/concord/source/internal/token"
)

// index types a[i]; a vector can be indexed too.
func (p *parser) index(a, i *expr, tok int) *expr {
	if a.typ.isVector() {
		i = p.value(i)
		if !i.typ.isInteger() && !i.typ.isUnknown() {
			p.errorf(p.posOf(i), "index", "an index must be an integer, not '%s'", i.typ.bare())
		}
		p.checkHalf(a)
		return p.node(&expr{op: opComponent, a: a, b: i, typ: componentType(a, 1), lval: a.lval, tok: tok})
	}
	a, i = p.value(a), p.value(i)
	e := &expr{op: opIndex, a: a, b: i, tok: tok}
	if a.typ.isUnknown() || i.typ.isUnknown() {
		return p.node(e)
	}
	if a.typ.isInteger() && i.typ.isPointer() {
		e.a, e.b = i, a
	}
	if !e.a.typ.isPointer() || e.a.typ.elem.isVoid() {
		p.errorf(p.posOf(e), "index", "'%s' cannot be indexed", a.typ.bare())
		return p.bad(tok)
	}
	if !e.b.typ.isInteger() {
		p.errorf(p.posOf(i), "index", "an index must be an integer, not '%s'", i.typ.bare())
		return p.bad(tok)
	}
	p.complete(e.a.typ, e.a)
	e.typ, e.lval = e.a.typ.elem, true
	return p.node(e)
}

// componentType is the type of n components of vector a: in its memory, with
// its qualifiers.
func componentType(a *expr, n int) *ctype {
	return vector(a.typ.base, n).with(a.typ.q).in(a.typ.space)
}

// arrow makes p-> the same as (*p).
func (p *parser) arrow(e *expr, tok int, pos token.Pos) *expr {
	e = p.value(e)
	if e.typ.isUnknown() {
		return e
	}
	if !e.typ.isPointer() {
		p.errorf(pos, "operator ->", "'->' needs a pointer, not '%s'", e.typ.bare())
		return p.bad(tok)
	}
	return p.node(&expr{op: opUnary, text: "*", a: e, typ: e.typ.elem, lval: true, tok: tok})
}

// member types a.name for structs, unions and vectors.
func (p *parser) member(a *expr, name string, tok int, pos token.Pos) *expr {
	switch a.typ.kind {
	case tUnknown:
		return p.node(&expr{op: opBad, a: a, tok: tok})
	case tVector:
		return p.swizzle(a, name, tok, pos)
	case tRecord:
	default:
		p.errorf(pos, "member", "'%s' has no members", a.typ.bare())
		return p.bad(tok)
	}
	if !a.typ.rec.complete {
		p.errorf(pos, "member", "'%s' is not defined here", a.typ.bare())
		return p.bad(tok)
	}
	path := a.typ.rec.find(name)
	if path == nil {
		p.errorf(pos, "member", "'%s' has no member '%s'", a.typ.bare(), name)
		return p.bad(tok)
	}
	t := path[len(path)-1].typ.with(a.typ.q & (qConst | qVolatile)).in(a.typ.space)
	return p.node(&expr{op: opMember, a: a, path: path, typ: t, lval: a.lval, tok: tok})
}

// swizzle types a.xy, a.s01, a.lo ... A swizzle of a swizzle becomes one.
func (p *parser) swizzle(a *expr, name string, tok int, pos token.Pos) *expr {
	p.checkHalf(a)
	if a.typ.isUnknown() {
		return p.bad(tok)
	}
	lanes := laneNames(name, a.typ.n)
	if lanes == nil {
		p.errorf(pos, "swizzle", "'%s' has no component '%s'", a.typ.bare(), name)
		return p.bad(tok)
	}
	e := &expr{op: opSwizzle, a: a, lanes: lanes, typ: componentType(a, len(lanes)), lval: a.lval, tok: tok}
	if in := unparen(a); in.op == opSwizzle {
		e.a = in.a
		e.lanes = make([]int, len(lanes))
		for i, l := range lanes {
			if l >= len(in.lanes) {
				l = 0 // the undefined fourth component of a 3-vector's .hi
			}
			e.lanes[i] = in.lanes[l]
		}
	}
	return p.node(e)
}

// laneNames returns the lanes that name selects from a vector of width n, or
// nil.
func laneNames(name string, n int) []int {
	half := (n + 1) / 2
	if n == 3 {
		half = 2
	}
	lanes := make([]int, 0, 16)
	switch name {
	case "lo", "hi", "even", "odd":
		for i := range half {
			l := map[string]int{"lo": i, "hi": half + i, "even": 2 * i, "odd": 2*i + 1}[name]
			lanes = append(lanes, l) // lane 3 of a 3-vector is its padding: undefined, as in OpenCL
		}
		return lanes
	}
	set := "xyzw"
	if name[0] == 's' || name[0] == 'S' {
		name, set = strings.ToLower(name[1:]), "0123456789abcdef"
	} else if strings.ContainsRune("rgba", rune(name[0])) {
		set = "rgba"
	}
	for i := range len(name) {
		l := strings.IndexByte(set, name[i])
		if l < 0 || l >= n {
			return nil
		}
		lanes = append(lanes, l)
	}
	switch len(lanes) {
	case 1, 2, 3, 4, 8, 16:
		return lanes
	}
	return nil
}

// vectorLiteral types (float4)(a, b.xy, 1): exactly as many components as the
// vector has, or one scalar for all.
func (p *parser) vectorLiteral(typ *ctype, args []*expr, tok int) *expr {
	e := &expr{op: opVecLit, typ: typ.bare(), tok: tok}
	n := 0
	for _, a := range args {
		a = p.value(a)
		switch {
		case a.typ.isUnknown():
			return p.bad(tok)
		case a.typ.isScalar():
			a = p.conv(a, scalar(typ.base))
		case a.typ.isVector() && a.typ.base == typ.base:
		default:
			p.errorf(p.posOf(a), "vector literal", "'%s' cannot be a part of '%s'", a.typ.bare(), typ.bare())
			return p.bad(tok)
		}
		n += a.typ.width()
		e.args = append(e.args, a)
	}
	if n != typ.n && !(n == 1 && len(args) == 1) {
		p.errorf(p.toks[tok].Pos, "vector literal", "'%s' takes %d components, not %d", typ.bare(), typ.n, n)
		return p.bad(tok)
	}
	return p.node(e)
}
