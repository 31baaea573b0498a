package check

// Members, indices, vector components and vector literals.

import (
	"strings"

	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// index types a[i]; a vector can be indexed too.
func (p *parser) index(a, i *tree.Expr, tok int) *tree.Expr {
	if a.Type.IsVector() {
		i = p.value(i)
		if !i.Type.IsInteger() && !i.Type.IsUnknown() {
			p.errorf(p.PosOf(i), "index", "an index must be an integer, not '%s'", i.Type.Bare())
		}
		p.checkHalf(a)
		return p.node(&tree.Expr{Op: tree.OpComponent, A: a, B: i, Type: componentType(a, 1), LValue: a.LValue, Tok: tok})
	}
	a, i = p.value(a), p.value(i)
	e := &tree.Expr{Op: tree.OpIndex, A: a, B: i, Tok: tok}
	if a.Type.IsUnknown() || i.Type.IsUnknown() {
		return p.node(e)
	}
	if a.Type.IsInteger() && i.Type.IsPointer() {
		e.A, e.B = i, a
	}
	if !e.A.Type.IsPointer() || e.A.Type.Elem.IsVoid() {
		return p.refuse(tok, p.PosOf(e), "index", "'%s' cannot be indexed", a.Type.Bare())
	}
	if !e.B.Type.IsInteger() {
		return p.refuse(tok, p.PosOf(i), "index", "an index must be an integer, not '%s'", i.Type.Bare())
	}
	p.complete(e.A.Type, e.A)
	e.Type, e.LValue = e.A.Type.Elem, true
	return p.node(e)
}

// componentType returns the type of n components of vector a, with its address space and
// qualifiers.
func componentType(a *tree.Expr, n int) *tree.Type {
	return tree.Vector(a.Type.Base, n).With(a.Type.Q).In(a.Type.Space)
}

// arrow types p-> as (*p).
func (p *parser) arrow(e *tree.Expr, tok int, pos token.Pos) *tree.Expr {
	e = p.value(e)
	if e.Type.IsUnknown() {
		return e
	}
	if !e.Type.IsPointer() {
		return p.refuse(tok, pos, "operator ->", "'->' needs a pointer, not '%s'", e.Type.Bare())
	}
	return p.node(&tree.Expr{Op: tree.OpUnary, Text: "*", A: e, Type: e.Type.Elem, LValue: true, Tok: tok})
}

// member types a.name for structs, unions and vectors.
func (p *parser) member(a *tree.Expr, name string, tok int, pos token.Pos) *tree.Expr {
	switch a.Type.Kind {
	case tree.TUnknown:
		return p.node(&tree.Expr{Op: tree.OpBad, A: a, Tok: tok})
	case tree.TVector:
		return p.swizzle(a, name, tok, pos)
	case tree.TRecord:
	default:
		return p.refuse(tok, pos, "member", "'%s' has no members", a.Type.Bare())
	}
	if !a.Type.Rec.Complete {
		return p.refuse(tok, pos, "member", "'%s' is not defined here", a.Type.Bare())
	}
	path := a.Type.Rec.Find(name)
	if path == nil {
		return p.refuse(tok, pos, "member", "'%s' has no member '%s'", a.Type.Bare(), name)
	}
	t := path[len(path)-1].Type.With(a.Type.Q & (tree.QConst | tree.QVolatile)).In(a.Type.Space)
	return p.node(&tree.Expr{Op: tree.OpMember, A: a, Path: path, Type: t, LValue: a.LValue, Tok: tok})
}

// swizzle types a.xy, a.s01, a.lo ... A swizzle of a swizzle becomes a single swizzle.
func (p *parser) swizzle(a *tree.Expr, name string, tok int, pos token.Pos) *tree.Expr {
	p.checkHalf(a)
	if a.Type.IsUnknown() {
		return p.bad(tok)
	}
	lanes := laneNames(name, a.Type.N)
	if lanes == nil {
		return p.refuse(tok, pos, "swizzle", "'%s' has no component '%s'", a.Type.Bare(), name)
	}
	e := &tree.Expr{Op: tree.OpSwizzle, A: a, Lanes: lanes, Type: componentType(a, len(lanes)), LValue: a.LValue, Tok: tok}
	if in := tree.Unparen(a); in.Op == tree.OpSwizzle {
		e.A = in.A
		e.Lanes = make([]int, len(lanes))
		for i, l := range lanes {
			if l >= len(in.Lanes) {
				l = 0 // the undefined fourth component of a 3-vector's .hi
			}
			e.Lanes[i] = in.Lanes[l]
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
func (p *parser) vectorLiteral(typ *tree.Type, args []*tree.Expr, tok int) *tree.Expr {
	e := &tree.Expr{Op: tree.OpVecLit, Type: typ.Bare(), Tok: tok}
	n := 0
	for _, a := range args {
		a = p.value(a)
		switch {
		case a.Type.IsUnknown():
			return p.bad(tok)
		case a.Type.IsScalar():
			a = p.conv(a, tree.Scalar(typ.Base))
		case a.Type.IsVector() && a.Type.Base == typ.Base:
		default:
			return p.refuse(tok, p.PosOf(a), "vector literal", "'%s' cannot be a part of '%s'", a.Type.Bare(),
				typ.Bare())
		}
		n += a.Type.Width()
		e.Args = append(e.Args, a)
	}
	if n != typ.N && !(n == 1 && len(args) == 1) {
		return p.refuse(tok, p.Toks[tok].Pos, "vector literal", "'%s' takes %d components, not %d", typ.Bare(), typ.N,
			n)
	}
	return p.node(e)
}
