package spirv

import (
	"strings"

	"github.com/concord-compute/concord/source/internal/tree"
)

// Objects, and the operators that change them.

// place writes an expression that designates an object.
func (f *function) place(e *tree.Expr) place {
	f.Step()
	switch e.Op {
	case tree.OpParen, tree.OpLoad:
		return f.place(e.A)
	case tree.OpSym:
		return f.symbol(e.Sym)
	case tree.OpUnary:
		if e.Text == "*" {
			return f.pointee(e.A)
		}
	case tree.OpIndex:
		if e.A.Op == tree.OpDecay {
			return f.index(f.place(e.A.A), e)
		}
		return f.index(memory(e.A.Type.Elem, f.expr(e.A).one()), e)
	case tree.OpMember:
		p := f.place(e.A)
		for _, m := range e.Path {
			p = f.member(p, m)
		}
		return p
	case tree.OpSwizzle:
		if len(e.Lanes) == 1 {
			return f.component(f.place(e.A), min(e.Lanes[0], e.A.Type.N-1))
		}
	case tree.OpComponent:
		p := f.place(e.A)
		lane := f.expr(e.B)
		i := f.convert(lane.one(), lane.t.Base, tree.UInt)
		if c, ok := f.b.Value(i); ok && int(c) < p.t.N {
			return f.component(p, int(c))
		}
		p.lane = i
		return p
	case tree.OpCompound:
		p := f.placeOf(e.Sym, f.variable(e.Sym))
		f.initialize(p, e.Init)
		return p
	case tree.OpString:
		p := known(e.Type, tree.Constant, f.textAt(e.Text), 1)
		p.base = f.pushLong(pushConstants)
		return p
	}
	v := f.expr(e)
	if v.at != nil {
		return *v.at
	}
	p := f.spill(v.t)
	f.store(p, v)
	return p
}

// pointee returns the object that a pointer expression points to.
func (f *function) pointee(pointer *tree.Expr) place {
	if at := target(pointer); at != nil {
		return f.place(at)
	}
	return memory(pointer.Type.Elem, f.expr(pointer).one())
}

// index returns an element of p.
func (f *function) index(p place, e *tree.Expr) place {
	i := f.expr(e.B)
	q := f.element(p, e.Type, i.one(), i.t.Base)
	q.volatile = q.volatile || e.Type.Q&tree.QVolatile != 0
	return q
}

// object is the target of an assignment: a place, or some lanes of a vector at a place.
type object struct {
	place
	lanes []int // nil for all
}

// object writes the target of an assignment.
func (f *function) object(e *tree.Expr) object {
	if s := tree.Unparen(e); s.Op == tree.OpSwizzle && len(s.Lanes) > 1 {
		return object{f.fixed(f.place(s.A)), s.Lanes}
	}
	return object{place: f.fixed(f.place(e))}
}

// fixed returns a place whose address is computed now, because it is used more than once.
func (f *function) fixed(p place) place { return f.settled(p) }

// get returns the value of an object.
func (f *function) get(o object) value {
	v := f.load(o.place)
	if o.lanes == nil {
		return v
	}
	out := value{t: tree.Vector(v.t.Base, len(o.lanes))}
	for _, l := range o.lanes {
		out.ids = append(out.ids, v.ids[min(l, len(v.ids)-1)])
	}
	return out
}

// put assigns to an object. Lanes are stored one by one, since other items may store to the others.
func (f *function) put(o object, v value) {
	if o.lanes == nil {
		f.store(o.place, v)
		return
	}
	for i, l := range o.lanes {
		if l < o.t.N {
			f.store(f.component(o.place, l), scalar(tree.Scalar(o.t.Base), v.ids[i]))
		}
	}
}

// assign writes = and the compound assignments. The right side comes first, as with clang.
func (f *function) assign(e *tree.Expr) value {
	b := f.expr(e.B)
	o := f.object(e.A)
	if e.Text != "=" {
		b = f.changed(strings.TrimSuffix(e.Text, "="), e.A.Type, f.get(o), b)
	}
	b = f.as(b, e.A.Type)
	f.put(o, b)
	return b
}

// changed returns a op b, where a has the type t of the left side of an assignment.
func (f *function) changed(op string, t *tree.Type, a, b value) value {
	switch {
	case t.IsPointer():
		return f.pointerArithmetic(op, a, b, t.Bare())
	case t.IsVector():
		return f.operate(op, a, b, t)
	case op == "<<" || op == ">>":
		return f.operate(op, a, b, tree.Promoted(t))
	}
	return f.operate(op, a, b, tree.Usual(t, b.t))
}

// increment writes ++ and --.
func (f *function) increment(e *tree.Expr) value {
	o := f.object(e.A)
	was := f.get(o)
	t := e.A.Type.Bare()
	var now value
	switch {
	case t.Is(tree.Bool) && e.Text == "++":
		now = scalar(t, f.constant(tree.Bool, 1))
	case t.Is(tree.Bool):
		now = scalar(t, f.binary("^", tree.UInt, was.one(), f.uint(1)))
	case t.IsPointer():
		now = f.pointerArithmetic(e.Text[:1], was, scalar(tree.IntType, f.uint(1)), t)
	default:
		one := f.constantOf(tree.IntValue(tree.Int, 1).Convert(tree.Scalar(t.Base)))
		now = f.as(f.operate(e.Text[:1], was, scalar(tree.Scalar(t.Base), one), t), t)
	}
	f.put(o, now)
	if e.Op == tree.OpPostInc {
		return was
	}
	return now
}
